#include "core/hasher.h"

#include "core/http/password.h"
#include "core/http/request.h"

#include <stdlib.h>
#include <string.h>

struct hash_job {
    struct away_job away;
    request_hash_fn *done;
    char hash[PASSWORD_HASH_SIZE];
    bool ok;
    size_t size;
    char password[];
};

static bool work(struct away_job *away)
{
    struct hash_job *job = (struct hash_job *)away;
    job->ok = password_hash((struct str){job->password, job->size}, job->hash);
    explicit_bzero(job->password, job->size);
    return false;
}

static void over(struct away_job *away, struct request *r)
{
    struct hash_job *job = (struct hash_job *)away;
    if (r != NULL)
        job->done(r, job->ok ? str_of(job->hash) : (struct str){0});
    explicit_bzero(job->password, job->size);
    free(job);
}

void request_hash(struct request *r, struct str password, request_hash_fn *done)
{
    struct away *hasher = r->worker->hasher;
    struct hash_job *job = away_waiting(hasher) >= HASHER_QUEUE ? NULL : malloc(sizeof(*job) + password.n);
    if (job == NULL) {
        done(r, (struct str){0});
        return;
    }
    *job = (struct hash_job){.away = {.work = work, .over = over}, .done = done, .size = password.n};
    memcpy(job->password, password.p, password.n);
    away_send(hasher, &job->away, r);
}
