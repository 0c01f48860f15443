/*
 * A worker: one libh2o event loop that owns its connections and requests, reads the store itself and
 * sends every change to the writer. All of it is one process' and one thread's, but for the threads of
 * thread_pool.h and query_threads.h.
 */
#ifndef ASSAY_WORKER_WORKER_H
#define ASSAY_WORKER_WORKER_H

#include "core/loop/loop_time.h"
#include "core/process/process.h"
#include "store/store.h"

#include <h2o.h>
#include <zlib.h>

struct writer_client;
struct thread_pool;
struct queries;
struct acceptor;
struct access_log;
struct response_cache;
struct limiting;
struct signing_keys;
struct sessions;
struct streams;
struct admission;

struct admission_queue {
    struct admission *first; /* that wait */
    bool taken;
};

struct worker {
    struct process *process;
    const struct conf *conf;
    struct store *store;
    h2o_globalconf_t config;
    h2o_context_t ctx;
    struct writer_client *writer;     /* to the writer */
    struct thread_pool *password_pool;   /* password hashes */
    struct thread_pool *body_pool;   /* what shops send */
    struct queries *queries; /* lists and searches */
    struct loop_time loop_time;
    struct admission_queue turns;    /* of large batches */
    struct acceptor *acceptor;   /* listeners and connections */
    struct access_log *access_log;
    struct str base_url;
    bool open;          /* its doors are */
    bool draining;      /* takes no new connections, answers with Connection: close */
    bool stopping;      /* draining, and idle connections are closed at once */
    bool replying;      /* a reply of ours is being started: the filter for the library's own errors leaves it alone */
    bool sent;          /* something, since the loop called */
    uint64_t now_ms;    /* CLOCK_MONOTONIC when somebody last came, asked or answered, or the loop had called all; it sleeps in between */
    char id[32]; /* the last request id made here, hex: a random half and a counter */
    struct response_cache *cache;
    struct buf body; /* of the answer that is being rendered: until the reply begins */
    struct limiting *limiting;
    struct sessions *sessions; /* visitors' tokens seen lately */
    struct streams *streams;   /* open event streams */
    struct signing_keys *secrets; /* that sign visitors' tokens */
    uint64_t secrets_at_ms;  /* when they are looked at again */
    z_stream gzip;
    uint64_t touched[1024]; /* key ids whose last use was told lately, with the minute */
};

/* worker_look_at_clock(w): the loop has called, and may have slept before. */
static inline void worker_look_at_clock(struct worker *w)
{
    w->now_ms = clock_mono_ms();
}

/* worker_ready(w): the store is open, the writer is reachable and nothing drains. */
bool worker_ready(const struct worker *w);

#endif
