#include "core/http/continuations.h"

#include "core/auth/password.h"
#include "core/http/http.h"
#include "core/http/reply.h"
#include "core/http/request.h"

#include <stdlib.h>
#include <string.h>

/*
 * Jobs in the queue of a worker. Strangers can fill it with guesses; the last places are for the
 * passwords that callers of the API set.
 */
enum { HASH_JOBS_MAX = VERIFY_JOBS_MAX + 4 };

/* What one customer of a provider usually has: /48 of IPv6, /24 of IPv4. */
enum { IPV6_BYTES = 6, IPV4_BYTES = 15 };

struct password_job {
    struct pool_job job;
    request_hash_fn *hashed; /* one of these is set */
    request_verify_fn *verified;
    struct http *http;
    struct ip network; /* of ${verified} */
    char hash[PASSWORD_HASH_SIZE];
    bool ok;
    size_t size;
    char password[];
};

/* ---- networks ---- */

static struct ip network_of(const struct ip *ip)
{
    struct ip network = {0};
    memcpy(network.b, ip->b, ip_is_v4(ip) ? IPV4_BYTES : IPV6_BYTES);
    return network;
}

static bool network_add(struct verify_jobs *jobs, const struct ip *network)
{
    size_t same = 0;
    for (size_t i = 0; i < jobs->count; i++)
        same += memcmp(&jobs->networks[i], network, sizeof(*network)) == 0;
    if (jobs->count == VERIFY_JOBS_MAX || same == VERIFY_JOBS_OF_NETWORK)
        return false;
    jobs->networks[jobs->count++] = *network;
    return true;
}

static void network_remove(struct verify_jobs *jobs, const struct ip *network)
{
    size_t i = 0;
    while (memcmp(&jobs->networks[i], network, sizeof(*network)) != 0)
        i++;
    jobs->networks[i] = jobs->networks[--jobs->count];
}

/* ---- jobs ---- */

static struct str password_of(const struct password_job *job)
{
    return (struct str){job->password, job->size};
}

/* In the thread, as verify. */
static bool hash(struct pool_job *pool_job)
{
    struct password_job *job = (struct password_job *)pool_job;
    job->ok = password_hash(password_of(job), job->hash);
    explicit_bzero(job->password, job->size);
    return false;
}

static bool verify(struct pool_job *pool_job)
{
    struct password_job *job = (struct password_job *)pool_job;
    job->ok = password_verify(password_of(job), str_of(job->hash));
    explicit_bzero(job->password, job->size);
    return false;
}

static void on_over(struct pool_job *pool_job, struct waiter *w)
{
    struct request *r = request_of(w);
    struct password_job *job = (struct password_job *)pool_job;
    if (job->verified != NULL)
        network_remove(&job->http->verify_jobs, &job->network);
    if (r != NULL && job->hashed != NULL)
        job->hashed(r, job->ok ? str_of(job->hash) : (struct str){0});
    else if (r != NULL)
        job->verified(r, job->ok);
    explicit_bzero(job->password, job->size);
    free(job);
}

/* NULL: the queue is full, or memory is short. */
static struct password_job *job_new(const struct thread_pool *pool, size_t max, struct str password)
{
    if (thread_pool_waiting(pool) >= max)
        return NULL;
    struct password_job *job = calloc(1, sizeof(*job) + password.n);
    if (job == NULL)
        return NULL;
    job->job.over = on_over;
    job->size = password.n;
    memcpy(job->password, password.p, password.n);
    return job;
}

void request_hash(struct request *r, struct str password, request_hash_fn *done)
{
    struct thread_pool *pool = r->http->password_pool;
    struct password_job *job = job_new(pool, HASH_JOBS_MAX, password);
    if (job == NULL) {
        done(r, (struct str){0});
        return;
    }
    job->job.work = hash;
    job->hashed = done;
    thread_pool_send(pool, &job->job, &r->wait);
}

/* NULL: others wait for their passwords, or memory is short. */
static struct password_job *verify_job_new(struct http *http, const struct ip *network,
                                           struct str password)
{
    if (!network_add(&http->verify_jobs, network))
        return NULL;
    struct password_job *job = job_new(http->password_pool, VERIFY_JOBS_MAX, password);
    if (job == NULL) {
        network_remove(&http->verify_jobs, network);
        return NULL;
    }
    job->http = http;
    job->network = *network;
    return job;
}

void request_verify(struct request *r, struct str password, struct str hash,
                    request_verify_fn *done)
{
    const struct ip network = network_of(&r->client_ip);
    struct password_job *job =
        hash.n < PASSWORD_HASH_SIZE ? verify_job_new(r->http, &network, password) : NULL;
    if (job == NULL) {
        reply_retry(r, "Too many passwords are being checked. Retry in a second.");
        return;
    }
    job->job.work = verify;
    job->verified = done;
    memcpy(job->hash, hash.p, hash.n);
    thread_pool_send(r->http->password_pool, &job->job, &r->wait);
}
