/*
 * What a request can wait for, at most one at a time. The callback runs on the loop, and only while
 * the request exists.
 */
#ifndef ASSAY_HTTP_CONTINUATIONS_H
#define ASSAY_HTTP_CONTINUATIONS_H

#include "core/http/request.h"

struct pool_job;
struct query;
struct store_change;

/*
 * request_change(r, change, done): send ${change} (copied) to the writer; ${done} when it is
 * durable or refused. Without an answer in 30 s: 503, and ${done} is not called.
 */
void request_change(struct request *r, const struct store_change *change, request_change_fn *done);

/*
 * request_await(r, report, timeout_ms, done): ${done} when ${report} is finished or deleted, after
 * ${timeout_ms}, or when the worker drains. Read the record first: it may be finished.
 */
void request_await(struct request *r, uint64_t report, unsigned timeout_ms, request_fn *done);

/* request_run_in_pool(r, job): run ${job} in the thread for large bodies. */
void request_run_in_pool(struct request *r, struct pool_job *job);

/*
 * request_query(r, query): run ${query} in a query thread; ${query}->over replies. Queue full: 503
 * with Retry-After, and ${query}->over is called with NULL.
 * query_late(r): reply 503 with Retry-After for a query that was stopped.
 */
void request_query(struct request *r, struct query *query);
void query_late(struct request *r);

/*
 * request_hash(r, password, done): hash it with scrypt in the password thread; ${done} gets the
 * text to store. p NULL: the queue is full; reply 503.
 */
typedef void request_hash_fn(struct request *r, struct str hash);
void request_hash(struct request *r, struct str password, request_hash_fn *done);

/*
 * request_verify(r, password, hash, done): compare ${password} with ${hash} in the password thread.
 * Queue full: 503 with Retry-After, and ${done} is not called.
 */
typedef void request_verify_fn(struct request *r, bool right);
void request_verify(struct request *r, struct str password, struct str hash,
                    request_verify_fn *done);

#endif
