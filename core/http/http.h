/*
 * The HTTP side of a worker: what all its requests share. One per worker; the loop's thread alone
 * uses it.
 */
#ifndef ASSAY_HTTP_HTTP_H
#define ASSAY_HTTP_HTTP_H

#include "core/async/query_threads.h"
#include "core/async/thread_pool.h"
#include "core/async/writer_client.h"
#include "core/auth/signing_keys.h"
#include "core/loop/loop.h"

#include <zlib.h>

struct access_log;
struct limiting;
struct response_cache;
struct sessions;
struct streams;

/* One large change at a time: admission_queue.h. */
struct admission_queue {
    struct admission *first; /* that wait */
    bool taken;
};

#define TOUCHED 1024

struct http {
    struct loop *loop;
    struct writer_client *writer;
    struct thread_pool *password_pool, *body_pool;
    struct queries *queries;
    struct signing_keys *keys; /* sign visitors' tokens */
    uint64_t keys_at_ms;       /* when the file of keys is looked at again */
    struct access_log *access_log;
    struct response_cache *cache;
    struct limiting *limiting;
    struct sessions *sessions; /* visitors' tokens seen lately */
    struct streams *streams;   /* open event streams: core/api's */
    struct admission_queue admissions;
    struct str base_url;
    struct buf body; /* of the answer that is being rendered: until the reply begins */
    z_stream gzip;
    bool replying; /* a reply of ours begins: the filter for the library's own errors skips it */
    uint64_t touched[TOUCHED]; /* ids of keys whose last use was told lately, with the minute */
};

/*
 * http_start(h, loop): everything of ${h} but streams and the writer client, which are the caller's.
 * loop->store is open. It makes loop->ctx on a new event loop, with the pipeline on every path and
 * the contract's errors on what libh2o answers by itself. False with the reason in the log.
 * http_finish(h) frees it.
 */
bool http_start(struct http *h, struct loop *loop) __attribute__((warn_unused_result));
void http_finish(struct http *h);

/* http_tick(h): once a turn of the loop. */
void http_tick(struct http *h);

/* http_ready(h): the store is open, the writer is reachable and nothing drains. */
bool http_ready(const struct http *h);

#endif
