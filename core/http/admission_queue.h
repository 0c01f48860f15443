/*
 * Requests that take turns: one at a time, each behind those that came before it, few of them and none for long. Worker processes only.
 */
#ifndef ASSAY_HTTP_ADMISSION_QUEUE_H
#define ASSAY_HTTP_ADMISSION_QUEUE_H

#include "core/http/request.h"

#define ADMISSIONS_WAITING 16

/* A place in the line: its request's own memory. All 0: none. */
struct admission {
    struct admission *next;
    struct admission_queue *of;
    struct request *request;
    request_fn *go;
    uint64_t given_up_at_ms;
    bool taken, waits;
};

/* admission_take(turn, r, go): true: it is ${r}'s turn. False: ${go} when it is; or 503, at once where too many wait, else as admission_queue_tick says. */
bool admission_take(struct admission *turn, struct request *r, request_fn *go);

/* admission_release(turn): the turn is over, or wanted no more. Once for each that was taken, before its memory goes; more often does nothing. */
void admission_release(struct admission *turn);

/* admission_queue_tick(all, now_ms): 503 to whom WRITER_ANSWER_MS were not enough, and to clients that are gone. */
void admission_queue_tick(struct admission_queue *all, uint64_t now_ms);

#endif
