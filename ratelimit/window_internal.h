/*
 * The arithmetic of fixed windows, pure. A slot's state is one word: when its window ends (32 bits, seconds since the epoch), how near its
 * limit it is (3 bits, so that a full table can tell whom to keep without knowing limits), its tag (6 bits) and what was used (23 bits).
 */
#ifndef ASSAY_RATELIMIT_WINDOW_INTERNAL_H
#define ASSAY_RATELIMIT_WINDOW_INTERNAL_H

#include "ratelimit/ratelimit.h"

enum {
    HEAT_FULL = 4,   /* used up; below it, quarters of the limit */
    HEAT_UNBORN = 7, /* made and not charged yet: its end is only how long it is kept for that */
};
#define STATE_TAG 23
#define STATE_RESERVED_END 0xffffffffu /* not a key's: see table.c */

static inline uint64_t state_make(uint32_t end, unsigned heat, unsigned tag, uint32_t used)
{
    return (uint64_t)end << 32 | (uint64_t)heat << 29 | (uint64_t)(tag % RATELIMIT_TAGS) << STATE_TAG | used;
}

static inline uint32_t state_end(uint64_t state)
{
    return (uint32_t)(state >> 32);
}

static inline unsigned state_heat(uint64_t state)
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

static inline unsigned heat_of(uint32_t used, uint32_t limit)
{
    return (unsigned)(4 * used >= limit) + (4 * used >= 2 * limit) + (4 * used >= 3 * limit) + (used >= limit);
}

static inline uint32_t window_end(int64_t now, uint32_t seconds)
{
    return ((uint32_t)now / seconds + 1) * seconds;
}

/*
 * window_used(state, now, seconds, end): what is used of the window in force at ${now}; *end, the end of the window that ${now} is in,
 * becomes that of the stored one where this clock lags a little behind its start.
 */
static inline uint32_t window_used(uint64_t state, int64_t now, uint32_t seconds, uint32_t *end)
{
    uint32_t stored = state_end(state);
    if (stored < *end || state_heat(state) == HEAT_UNBORN || (int64_t)stored - seconds > now + RATELIMIT_LATE_SECONDS)
        return 0; /* it is over, or nobody was in it, or the clock was stepped back since */
    *end = stored;
    return state_used(state);
}

/*
 * state_over(state, now): nobody's clock is in its window any more, as far as clocks may lag; or it lies so far ahead that the clock was
 * stepped back since.
 */
static inline bool state_over(uint64_t state, int64_t now)
{
    int64_t end = state_end(state);
    return end + RATELIMIT_LATE_SECONDS < now || end > now + RATELIMIT_SECONDS_MAX + RATELIMIT_LATE_SECONDS;
}

#endif
