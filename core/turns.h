/*
 * Requests that take turns: one at a time, each behind those that came before it, few of them and none for long. Worker processes only.
 */
#ifndef ASSAY_TURNS_H
#define ASSAY_TURNS_H

#include "core/http/request.h"

#define TURNS_WAITING 16

/* A place in the line: its request's own memory. All 0: none. */
struct turn_place {
    struct turn_place *next;
    struct turns *of;
    struct request *request;
    request_fn *go;
    uint64_t given_up_at_ms;
    bool taken, waits;
};

/* turn_take(turn, r, go): true: it is ${r}'s turn. False: ${go} when it is; or 503, at once where too many wait, else as turns_tick says. */
bool turn_take(struct turn_place *turn, struct request *r, request_fn *go);

/* turn_give(turn): the turn is over, or wanted no more. Once for each that was taken, before its memory goes; more often does nothing. */
void turn_give(struct turn_place *turn);

/* turns_tick(w): 503 to whom LINK_ANSWER_MS were not enough, and to clients that are gone. */
void turns_tick(struct worker *w);

#endif
