/*
 * Arithmetic of fixed windows, pure. A slot's state is one word: end of the window (32 bits,
 * seconds since the epoch), level (3 bits: quarters of the limit used, for choosing evictions
 * without knowing limits), tag (6 bits) and count (23 bits).
 */
#ifndef ASSAY_RATELIMIT_WINDOW_INTERNAL_H
#define ASSAY_RATELIMIT_WINDOW_INTERNAL_H

#include "ratelimit/ratelimit.h"

enum {
    LEVEL_FULL = 4,      /* used up; below: quarters of the limit */
    LEVEL_UNCHARGED = 7, /* inserted, not charged yet; its end only limits how long it is kept */
};
#define STATE_TAG 23
#define STATE_RESERVED_END 0xffffffffu /* a reservation, see table.c */

static inline uint64_t state_make(uint32_t end, unsigned level, unsigned tag, uint32_t used)
{
    return (uint64_t)end << 32 | (uint64_t)level << 29 |
           (uint64_t)(tag % RATELIMIT_TAGS) << STATE_TAG | used;
}

static inline uint32_t state_end(uint64_t state)
{
    return (uint32_t)(state >> 32);
}

static inline unsigned state_level(uint64_t state)
{
    return state >> 29 & 7;
}

static inline unsigned state_tag(uint64_t state)
{
    return state >> STATE_TAG & (RATELIMIT_TAGS - 1);
}

static inline uint32_t state_used(uint64_t state)
{
    return state & RATELIMIT_COUNT_MAX;
}

static inline bool state_reserved(uint64_t state)
{
    return state_end(state) == STATE_RESERVED_END;
}

static inline unsigned level_of(uint32_t used, uint32_t limit)
{
    return (unsigned)(4 * used >= limit) + (4 * used >= 2 * limit) + (4 * used >= 3 * limit) +
           (used >= limit);
}

static inline uint32_t window_end(int64_t now, uint32_t seconds)
{
    return ((uint32_t)now / seconds + 1) * seconds;
}

/*
 * window_used(state, now, seconds, end): the count of the window in force at ${now}. *end is the
 * end of the window of ${now}; it becomes that of the stored window if this clock lags a little
 * behind its start.
 */
static inline uint32_t window_used(uint64_t state, int64_t now, uint32_t seconds, uint32_t *end)
{
    uint32_t stored = state_end(state);
    if (stored < *end || state_level(state) == LEVEL_UNCHARGED ||
        (int64_t)stored - seconds > now + RATELIMIT_LATE_SECONDS)
        return 0; /* expired, uncharged, or the clock was set back since */
    *end = stored;
    return state_used(state);
}

/*
 * state_expired(state, now): the window has ended for every process's clock, or lies so far ahead
 * that the clock was set back since.
 */
static inline bool state_expired(uint64_t state, int64_t now)
{
    int64_t end = state_end(state);
    return end + RATELIMIT_LATE_SECONDS < now ||
           end > now + RATELIMIT_SECONDS_MAX + RATELIMIT_LATE_SECONDS;
}

#endif
