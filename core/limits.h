/*
 * The limiters: which there are, what they count and by which key. One plain value without pointers (struct limits): the built-in rows, as
 * the configuration changed and completed them. The master puts it into shared memory (limits_board.h); workers and commands judge by it.
 *
 * A limiter has up to four windows, all of which a request must fit. A window is keyed by one thing about the caller; a caller that is not
 * known by that thing (no credential yet, or a wrong one) is counted by its address, apart from all other keys.
 */
#ifndef ASSAY_LIMITS_H
#define ASSAY_LIMITS_H

#include "cidr.h"
#include "../store/bytes.h"

/* The built-in limiters; a row of the route table names one. Those the configuration adds have the numbers after these. */
enum limiter {
    LIMITER_NONE,
    LIMITER_WIDGET_INIT,
    LIMITER_WIDGET_SESSION,
    LIMITER_WIDGET_LEADS,
    LIMITER_WIDGET_TYPING,
    LIMITER_WIDGET_SATISFACTION,
    LIMITER_WIDGET_COUPON,
    LIMITER_BULK_SYNC,
    LIMITER_API,
    LIMITERS_BUILT_IN
};

#endif
