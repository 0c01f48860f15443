/* What all requests of a worker share. One per worker; only the loop's thread uses it. */
#ifndef ASSAY_HTTP_HTTP_H
#define ASSAY_HTTP_HTTP_H

#include "core/async/log_waits.h"
#include "core/async/query_threads.h"
#include "core/async/thread_pool.h"
#include "core/async/writer_client.h"
#include "core/auth/signing_keys.h"
#include "core/base/cidr.h"
#include "core/loop/loop.h"

#include <zlib.h>

struct access_log;
struct credential_cache;
struct request_limiter;
struct request;
struct response_cache;
struct sessions;
struct streams;

/* admission_queue.h */
struct admission_queue {
    struct admission *first; /* queued */
    bool busy;               /* a large change runs */
};

/*
 * Passwords that strangers let the worker check at once: at most ${VERIFY_JOBS_MAX}, and of one
 * network, which has many addresses, at most ${VERIFY_JOBS_OF_NETWORK}.
 */
enum { VERIFY_JOBS_MAX = 16, VERIFY_JOBS_OF_NETWORK = 4 };
struct verify_jobs {
    struct ip networks[VERIFY_JOBS_MAX];
    size_t count;
};

#define TOUCHES 1024

struct http {
    struct loop *loop;
    struct writer_client *writer;
    struct log_waits *log_waits;       /* NULL: no cluster */
    void (*resume)(struct request *r); /* pipeline_resume, for files that the pipeline calls */
    struct thread_pool *password_pool, *body_pool;
    struct verify_jobs verify_jobs; /* in ${password_pool} */
    struct queries *queries;
    struct signing_keys *keys; /* of visitors' tokens */
    uint64_t keys_at_ms;       /* next check of their file */
    struct access_log *access_log;
    struct response_cache *responses, *pages; /* JSON and pages of reports */
    struct credential_cache *credentials;
    struct request_limiter *limiter;
    struct sessions *sessions; /* cached visitors' tokens */
    struct streams *streams;   /* open event streams, of core/api */
    struct admission_queue admissions;
    struct str base_url;
    struct buf body; /* scratch for rendering a response body */
    z_stream gzip;
    bool replying; /* the response is not an error of libh2o: library_errors.c skips it */
    uint64_t touched[TOUCHES]; /* key id and minute of the last use sent to the writer */
};

#endif
