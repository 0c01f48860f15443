/*
 * Waiting on the event loop for another thread or for the writer. A request contains a waiter. A
 * job contains a struct pending, which points to the waiter; a waiter that ends first sets that
 * pointer to NULL. On the loop's thread only.
 */
#ifndef ASSAY_ASYNC_WAITER_H
#define ASSAY_ASYNC_WAITER_H

#include "core/conn/connection.h"

struct waiter {
    struct conn *conn;
    struct pending *pending;     /* NULL: it does not wait */
    uint64_t from_us, waited_us; /* start of this wait; sum of all waits before it */
};

struct pending {
    struct waiter *waiter; /* NULL: gone */
};

/* waiter_begin(w, pending), waiter_end(w): a wait begins and ends. */
static inline void waiter_begin(struct waiter *w, struct pending *pending)
{
    w->pending = pending;
    w->from_us = clock_mono_us();
}

static inline void waiter_end(struct waiter *w)
{
    w->pending = NULL;
    w->waited_us += clock_mono_us() - w->from_us;
}

/* waiter_suspend(w, pending), waiter_resume(w): the same, and hear when the client hangs up. */
static inline void waiter_suspend(struct waiter *w, struct pending *pending)
{
    waiter_begin(w, pending);
    conn_watch(w->conn);
}

static inline void waiter_resume(struct waiter *w)
{
    waiter_end(w);
    conn_unwatch(w->conn);
}

/* waiter_cancel(w): its memory is freed; no callback gets it any more. */
static inline void waiter_cancel(struct waiter *w)
{
    if (w->pending != NULL)
        w->pending->waiter = NULL;
}

/* waiter_is_unwanted(w): it is gone, or its client hung up. */
static inline bool waiter_is_unwanted(const struct waiter *w)
{
    return w == NULL || w->conn->hung_up;
}

#endif
