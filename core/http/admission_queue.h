/*
 * Admission queue: large changes run one at a time per worker, in order of arrival. The queue is
 * short, and a request waits in it for a limited time.
 */
#ifndef ASSAY_HTTP_ADMISSION_QUEUE_H
#define ASSAY_HTTP_ADMISSION_QUEUE_H

#include "core/http/request.h"

#define ADMISSIONS_QUEUED_MAX 16

/* A request's entry, in the request's own memory. All 0: none. */
struct admission {
    struct admission *next;
    struct admission_queue *queue;
    struct request *request;
    request_fn *start;
    uint64_t deadline_ms;
    bool running, queued;
};

/*
 * admission_take(admission, r, start): true: ${r} may run now. False: ${start} is called later, or
 * 503 was sent, since the queue is full.
 */
bool admission_take(struct admission *admission, struct request *r, request_fn *start);

/*
 * admission_release(admission): it is done or cancelled. Call it before the memory is freed;
 * calling it again does nothing.
 */
void admission_release(struct admission *admission);

/* admission_queue_tick(queue, now_ms): 503 for requests past their deadline or without a client. */
void admission_queue_tick(struct admission_queue *queue, uint64_t now_ms);

#endif
