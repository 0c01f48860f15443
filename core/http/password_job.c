#include "core/http/password_job.h"

#include "core/http/http.h"
#include "core/auth/password.h"
#include "core/http/request.h"

#include <stdlib.h>
#include <string.h>

struct hash_job {
    struct pool_job away;
    request_hash_fn *done;
    char hash[PASSWORD_HASH_SIZE];
    bool ok;
    size_t size;
    char password[];
};

static bool work(struct pool_job *away)
{
    struct hash_job *job = (struct hash_job *)away;
    job->ok = password_hash((struct str){job->password, job->size}, job->hash);
    explicit_bzero(job->password, job->size);
    return false;
}

static void over(struct pool_job *away, struct waiter *w)
{
    struct request *r = request_of(w);
    struct hash_job *job = (struct hash_job *)away;
    if (r != NULL)
        job->done(r, job->ok ? str_of(job->hash) : (struct str){0});
    explicit_bzero(job->password, job->size);
    free(job);
}

void request_hash(struct request *r, struct str password, request_hash_fn *done)
{
    struct thread_pool *password_pool = r->http->password_pool;
    struct hash_job *job = thread_pool_waiting(password_pool) >= HASHER_QUEUE ? NULL : malloc(sizeof(*job) + password.n);
    if (job == NULL) {
        done(r, (struct str){0});
        return;
    }
    *job = (struct hash_job){.away = {.work = work, .over = over}, .done = done, .size = password.n};
    memcpy(job->password, password.p, password.n);
    thread_pool_send(password_pool, &job->away, &r->wait);
}
