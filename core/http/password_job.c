#include "core/http/continuations.h"

#include "core/auth/password.h"
#include "core/http/http.h"
#include "core/http/request.h"

#include <stdlib.h>
#include <string.h>

#define PASSWORD_JOBS_MAX 16 /* queued, per worker */

struct password_job {
    struct pool_job job;
    request_hash_fn *done;
    char hash[PASSWORD_HASH_SIZE];
    bool ok;
    size_t size;
    char password[];
};

/* In the thread. */
static bool hash(struct pool_job *pool_job)
{
    struct password_job *job = (struct password_job *)pool_job;
    job->ok = password_hash((struct str){job->password, job->size}, job->hash);
    explicit_bzero(job->password, job->size);
    return false;
}

static void on_hashed(struct pool_job *pool_job, struct waiter *w)
{
    struct request *r = request_of(w);
    struct password_job *job = (struct password_job *)pool_job;
    if (r != NULL)
        job->done(r, job->ok ? str_of(job->hash) : (struct str){0});
    explicit_bzero(job->password, job->size);
    free(job);
}

void request_hash(struct request *r, struct str password, request_hash_fn *done)
{
    struct thread_pool *pool = r->http->password_pool;
    bool full = thread_pool_waiting(pool) >= PASSWORD_JOBS_MAX;
    struct password_job *job = full ? NULL : malloc(sizeof(*job) + password.n);
    if (job == NULL) {
        done(r, (struct str){0});
        return;
    }
    *job = (struct password_job){
        .job = {.work = hash, .over = on_hashed}, .done = done, .size = password.n};
    memcpy(job->password, password.p, password.n);
    thread_pool_send(pool, &job->job, &r->wait);
}
