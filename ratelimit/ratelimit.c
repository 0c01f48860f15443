#include "ratelimit/ratelimit.h"

#include "ratelimit/siphash.h"
#include "ratelimit/table_internal.h"
#include "ratelimit/window_internal.h"

#include <assert.h>
#include <string.h>

#define SAMPLE_BUCKETS 16384

/* ---- keys ---- */

uint64_t ratelimit_salt(const struct ratelimit *rl, const char *name)
{
    return siphash(SIPHASH_1_3, rl->header->seed, name, strlen(name));
}

/* Separates the keys of different windows; contains the key's size. */
static inline uint64_t domain_of(const struct ratelimit_window *w)
{
    return w->salt + ((uint64_t)w->seconds << 32) + ((uint64_t)w->key_size << 56);
}

static uint64_t hash_of(const struct ratelimit *rl, const struct ratelimit_window *w)
{
    assert(w->key_size <= RATELIMIT_KEY_MAX);
    return w->hash != 0 ? w->hash : hash_key(&rl->hash_keys, domain_of(w), w->key, w->key_size);
}

uint64_t ratelimit_hash(const struct ratelimit *rl, const struct ratelimit_window *window)
{
    struct ratelimit_window anew = *window;
    anew.hash = 0;
    return hash_of(rl, &anew);
}

/* Both lines of the pair: in a half-full table some keys find the first one full. */
static inline void prefetch_hash(const struct ratelimit *rl, struct ratelimit_window *window,
                                 uint64_t hash)
{
    pair_prefetch(table_bucket(rl, bucket_first(rl, hash)));
    pair_prefetch(table_bucket(rl, bucket_first(rl, hash) ^ 1));
    window->hash = hash;
}

static __attribute__((noinline)) void prefetch_long(const struct ratelimit *rl,
                                                    struct ratelimit_window *window)
{
    prefetch_hash(rl, window, ratelimit_hash(rl, window));
}

void ratelimit_prefetch(const struct ratelimit *rl, struct ratelimit_window *window)
{
    if (!hash_is_short(&rl->hash_keys, window->key_size)) {
        prefetch_long(rl, window);
        return;
    }
    uint64_t hash = hash_short(&rl->hash_keys, domain_of(window), window->key, window->key_size);
    prefetch_hash(rl, window, hash + (hash == 0));
}

/* ---- one window ---- */

struct window_use {
    uint32_t end, used; /* used: before this request */
    bool full;
};

enum charged {
    CHARGED,
    REFUSED,
    GONE,    /* another key has the slot */
    OUTDATED /* the time is no longer valid */
};

static inline bool is_key(const struct pair *is, uint64_t hash)
{
    return is->key == hash && !state_reserved(is->state);
}

/*
 * A slot that was full and is unchanged was full at one moment, so refusing writes nothing.
 * Otherwise sets ${is} to the current value.
 */
static inline bool still_is(struct pair *slot, struct pair *is)
{
    struct pair seen = {word_load(&slot->key), word_load(&slot->state)};
    bool same = seen.key == is->key && seen.state == is->state;
    *is = seen;
    return same;
}

/* ${is}: the slot's value when it was last read. */
static inline enum charged charge(struct ratelimit *rl, struct pair *slot, struct pair is,
                                  const struct ratelimit_window *w,
                                  const struct ratelimit_time *time, struct window_use *out)
{
    uint32_t end = window_end(time->now, w->seconds);
    uint64_t hash = is.key;
    unsigned lost_races = 0;
    while (is_key(&is, hash)) {
        if (!table_time_holds(rl, time))
            return OUTDATED;
        out->end = end;
        out->used = window_used(is.state, time->now, w->seconds, &out->end);
        out->full = out->used >= w->limit;
        if (out->full) {
            if (still_is(slot, &is))
                return REFUSED;
            continue;
        }
        struct pair next = {
            hash, state_make(out->end, level_of(out->used + 1, w->limit), w->tag, out->used + 1)};
        if (pair_swap(slot, &is, next))
            return CHARGED;
        /* after the wait, continue at once with the value of the next swap */
        if (++lost_races % 2 == 1)
            pair_back_off();
    }
    return GONE;
}

static enum charged take_one(struct ratelimit *rl, uint64_t hash, const struct ratelimit_window *w,
                             const struct ratelimit_time *time, struct window_use *out)
{
    struct pair *slot = table_find(rl, hash), is = {0, 0};
    if (slot != NULL)
        is = (struct pair){hash, word_load(&slot->state)};
    for (;;) {
        enum charged charged = slot == NULL ? GONE : charge(rl, slot, is, w, time, out);
        if (charged != GONE)
            return charged;
        slot = table_slot(rl, hash, time);
        if (slot == NULL) { /* no slot available: a damaged table refuses nobody */
            *out = (struct window_use){window_end(time->now, w->seconds), 0, false};
            return table_time_holds(rl, time) ? CHARGED : OUTDATED;
        }
        is = (struct pair){hash, word_load(&slot->state)};
    }
}

static void peek_one(const struct ratelimit *rl, uint64_t hash, const struct ratelimit_window *w,
                     int64_t now, struct window_use *out)
{
    const struct pair *slot = table_find(rl, hash);
    uint64_t state = slot == NULL ? 0 : word_load(&slot->state);
    if (slot == NULL || word_load(&slot->key) != hash || state_reserved(state))
        state = 0;
    out->end = window_end(now, w->seconds);
    out->used = window_used(state, now, w->seconds, &out->end);
    out->full = out->used >= w->limit;
}

/* Take one back from the window that ends at ${end}, if it has not ended; ${all}: take all back. */
static bool give_back(struct ratelimit *rl, uint64_t hash, const struct ratelimit_window *w,
                      uint32_t end, bool all)
{
    struct pair *slot = table_find(rl, hash);
    if (slot == NULL)
        return false;
    struct pair is = {hash, word_load(&slot->state)};
    while (is_key(&is, hash) && state_level(is.state) != LEVEL_UNCHARGED &&
           state_end(is.state) == end && state_used(is.state) > 0) {
        uint32_t used = all ? 0 : state_used(is.state) - 1;
        if (pair_swap(slot, &is,
                      (struct pair){hash, state_make(end, level_of(used, w->limit), w->tag, used)}))
            return true;
    }
    return false;
}

/* ---- several ---- */

static uint32_t remaining_of(const struct ratelimit_window *w, uint32_t used)
{
    return used < w->limit ? w->limit - used : 0;
}

/*
 * The window to report: the one with the fewest remaining; if some are full, the full one that ends
 * last.
 */
static bool report_window(const struct ratelimit_window *windows, const struct window_use *use,
                          size_t count, uint32_t charged, struct ratelimit_state *out)
{
    size_t best = 0;
    for (size_t i = 1; i < count; i++) {
        uint32_t a = remaining_of(&windows[i], use[i].used),
                 b = remaining_of(&windows[best], use[best].used);
        if (a < b || (use[i].full && use[best].full && use[i].end > use[best].end))
            best = i;
    }
    uint32_t remaining = remaining_of(&windows[best], use[best].used);
    *out = (struct ratelimit_state){(unsigned)best, 0, windows[best].limit,
                                    remaining > 0 ? remaining - charged : 0, use[best].end};
    return use[best].full;
}

/* just reached half of the limit, or all of it */
static bool is_near(const struct ratelimit_window *w, uint32_t used)
{
    return used == w->limit / 2 + w->limit % 2 || used == w->limit;
}

static bool peek_all(const struct ratelimit *rl, const struct ratelimit_window *windows,
                     const uint64_t *hashes, size_t count, int64_t now, struct ratelimit_state *out)
{
    struct window_use use[RATELIMIT_WINDOWS_MAX];
    for (size_t i = 0; i < count; i++)
        peek_one(rl, hashes[i], &windows[i], now, &use[i]);
    return report_window(windows, use, count, 0, out);
}

/*
 * Fast path for nearly every decision: a known key, in its first bucket, the table's clock already
 * set to this time, within the current window, and the request changes no level or finds the limit
 * used up. Returns the decision, NOT_FAST, or LOST_RACE when another process changed the slot
 * first; in the latter two cases nothing is charged.
 *
 * One read and one swap, without a loop. Memory is far slower than this code; the fewer
 * instructions a decision has, the more decisions a processor overlaps.
 *
 * Only the state is swapped. It was read before the key, so it was this key's state, and while it
 * is unchanged the slot is still this key's, with one exception: between two instructions the key
 * was evicted from a full table, another key got the slot and reached the very same state. Then the
 * request is charged to that key, which is harmless to the limit; its own key has lost its count
 * anyway. Reading the state after the key would be worse: a key that took over an expired slot
 * would be charged, in a table with free slots. The order of reading the clock does not matter,
 * since no window begins here.
 *
 * ${exclusive}: fetch the cache line for writing at once.
 */
enum { NOT_FAST = 2, LOST_RACE = 3 };

/*
 * The charge changes nothing but the count: no change of level, and no new "near". Never true for a
 * level of LEVEL_FULL or more.
 */
static inline bool keeps_level(uint64_t state, uint32_t used, uint32_t limit)
{
    /* position within its quarter, in quarters of a request: 26 bits */
    int32_t into = (int32_t)(4 * used) - (int32_t)(state_level(state) * limit);
    return into >= 0 && into + 4 < (int32_t)limit;
}

/* ${slot}: where the key is or probably was. ${out} is valid only with a decision. */
static inline __attribute__((always_inline)) int
try_fast_in_slot(struct ratelimit *rl, struct pair *slot, const struct ratelimit_window *w,
                 uint64_t hash, struct ratelimit_time time, struct ratelimit_state *out)
{
    uint64_t state = word_load(&slot->state);
    uint32_t used = state_used(state), limit = w->limit;
    if (word_load(&slot->key) != hash || !table_has_time(rl, &time))
        return NOT_FAST;
    out->reset = state_end(state);
    if (state_end(state) - (uint32_t)time.now - 1 >= w->seconds)
        return NOT_FAST;
    out->window = out->near = 0;
    out->limit = limit;
    if (used >= limit) {
        out->remaining = 0;
        return still_is(slot, &(struct pair){hash, state}) ? 1 : NOT_FAST;
    }
    out->remaining = limit - used - 1;
    if (state_tag(state) != w->tag || !keeps_level(state, used, limit))
        return NOT_FAST;
    return word_swap(&slot->state, state, state + 1) ? 0 : LOST_RACE;
}

static inline __attribute__((always_inline)) int
try_fast(struct ratelimit *rl, const struct ratelimit_window *w, uint64_t hash,
         struct ratelimit_time time, bool exclusive, struct ratelimit_state *out)
{
    struct pair *bucket = table_bucket(rl, bucket_first(rl, hash));
    if (exclusive)
        pair_prefetch(bucket);
    return try_fast_in_slot(rl, bucket_slot(bucket, hash), w, hash, time, out);
}

/* The fast path for a key outside its first bucket: one in fifteen, in a half-full table. */
static int try_fast_elsewhere(struct ratelimit *rl, const struct ratelimit_window *w, uint64_t hash,
                              struct ratelimit_time time, struct ratelimit_state *out)
{
    int result = NOT_FAST;
    struct pair *slot = table_find(rl, hash);
    while (slot != NULL && (result = try_fast_in_slot(rl, slot, w, hash, time, out)) == LOST_RACE)
        pair_back_off();
    return result;
}

/* A single window, as most limiters have. */
static __attribute__((noinline)) int take_single(struct ratelimit *rl,
                                                 const struct ratelimit_window *w, uint64_t hash,
                                                 struct ratelimit_time time,
                                                 struct ratelimit_state *out)
{
    struct window_use use;
    int result = try_fast_elsewhere(rl, w, hash + (hash == 0), time, out);
    if (result != NOT_FAST)
        return result;
    if (!table_set_time(rl, &time))
        return -1;
    enum charged charged = take_one(rl, hash + (hash == 0), w, &time, &use);
    uint32_t used = use.used + (charged == CHARGED);
    if (charged == OUTDATED)
        return -1;
    *out = (struct ratelimit_state){0, charged == CHARGED && is_near(w, used), w->limit,
                                    remaining_of(w, used), use.end};
    return charged == CHARGED ? 0 : 1;
}

/* The key is being charged by several processes. */
static __attribute__((noinline)) int take_contended(struct ratelimit *rl,
                                                    const struct ratelimit_window *w, uint64_t hash,
                                                    struct ratelimit_time time,
                                                    struct ratelimit_state *out)
{
    int result;
    do {
        pair_back_off();
        result = try_fast(rl, w, hash, time, true, out);
    } while (result == LOST_RACE);
    return result != NOT_FAST ? result : take_single(rl, w, hash, time, out);
}

static inline __attribute__((always_inline)) int
take_short(struct ratelimit *rl, const struct ratelimit_window *w, uint64_t hash,
           struct ratelimit_time time, struct ratelimit_state *out)
{
    int result = try_fast(rl, w, hash, time, false, out);
    if (result == LOST_RACE)
        return take_contended(rl, w, hash, time, out);
    return result != NOT_FAST ? result : take_single(rl, w, hash, time, out);
}

static int take_several(struct ratelimit *rl, const struct ratelimit_window *windows, size_t count,
                        struct ratelimit_time time, struct ratelimit_state *out)
{
    struct window_use use[RATELIMIT_WINDOWS_MAX];
    uint64_t hashes[RATELIMIT_WINDOWS_MAX];
    if (!table_set_time(rl, &time))
        return -1;
    for (size_t i = 0; i < count; i++)
        hashes[i] = hash_of(rl, &windows[i]);
    /* a refused request writes nothing, so check all windows first */
    if (peek_all(rl, windows, hashes, count, time.now, out))
        return table_time_holds(rl, &time) ? 1 : -1;
    for (size_t i = 0; i < count; i++) {
        enum charged charged = take_one(rl, hashes[i], &windows[i], &time, &use[i]);
        if (charged == CHARGED)
            continue;
        for (size_t k = 0; k < i; k++) /* another process used the last of it meanwhile */
            give_back(rl, hashes[k], &windows[k], use[k].end, false);
        if (charged == OUTDATED)
            return -1;
        report_window(&windows[i], &use[i], 1, 0, out);
        out->window = (unsigned)i;
        return 1;
    }
    report_window(windows, use, count, 1, out);
    for (size_t i = 0; i < count; i++)
        out->near |= (uint32_t)is_near(&windows[i], use[i].used + 1) << i;
    return 0;
}

/* Several windows, or a key that is not short. */
static __attribute__((noinline)) int take_any(struct ratelimit *rl,
                                              const struct ratelimit_window *windows, size_t count,
                                              struct ratelimit_time time,
                                              struct ratelimit_state *out)
{
    assert(count > 0 && count <= RATELIMIT_WINDOWS_MAX);
    if (count > 1)
        return take_several(rl, windows, count, time, out);
    return take_short(rl, windows, hash_of(rl, windows), time, out);
}

int ratelimit_take(struct ratelimit *rl, const struct ratelimit_window *windows, size_t count,
                   struct ratelimit_time time, struct ratelimit_state *out)
{
    uint64_t hash = windows->hash;
    if (count != 1)
        return take_any(rl, windows, count, time, out);
    if (hash == 0) {
        if (!hash_is_short(&rl->hash_keys, windows->key_size))
            return take_any(rl, windows, count, time, out);
        hash = hash_short(&rl->hash_keys, domain_of(windows), windows->key, windows->key_size);
    }
    return take_short(rl, windows, hash, time, out);
}

uint64_t ratelimit_token(const struct ratelimit *rl)
{
    return word_load(&rl->header->clock);
}

int ratelimit_peek(struct ratelimit *rl, const struct ratelimit_window *windows, size_t count,
                   int64_t now, struct ratelimit_state *out)
{
    uint64_t hashes[RATELIMIT_WINDOWS_MAX];
    assert(count > 0 && count <= RATELIMIT_WINDOWS_MAX);
    for (size_t i = 0; i < count; i++)
        hashes[i] = hash_of(rl, &windows[i]);
    return peek_all(rl, windows, hashes, count, now, out) ? 1 : 0;
}

void ratelimit_report(const struct ratelimit_window *windows, const uint32_t *used,
                      const uint32_t *ends, size_t count, uint32_t charged,
                      struct ratelimit_state *out)
{
    struct window_use use[RATELIMIT_WINDOWS_MAX];
    assert(count > 0 && count <= RATELIMIT_WINDOWS_MAX);
    for (size_t i = 0; i < count; i++)
        use[i] = (struct window_use){ends[i], used[i], used[i] >= windows[i].limit};
    report_window(windows, use, count, charged, out);
}

bool ratelimit_reset(struct ratelimit *rl, const struct ratelimit_window *window, int64_t now)
{
    uint64_t hash = hash_of(rl, window);
    struct window_use use;
    peek_one(rl, hash, window, now, &use);
    return use.used > 0 && give_back(rl, hash, window, use.end, true);
}

/* ---- usage ---- */

static bool is_in_use(const struct pair *slot, int64_t now, uint64_t *state)
{
    *state = word_load(&slot->state);
    return word_load(&slot->key) != 0 && !state_reserved(*state) &&
           state_level(*state) != LEVEL_UNCHARGED && !state_expired(*state, now) &&
           (int64_t)state_end(*state) > now;
}

void ratelimit_usage(const struct ratelimit *rl, int64_t now, struct ratelimit_usage *out)
{
    uint64_t buckets = rl->mask + 1, step = buckets > SAMPLE_BUCKETS ? buckets / SAMPLE_BUCKETS : 1,
             state;
    *out = (struct ratelimit_usage){.slots = buckets * BUCKET_SLOTS, .bytes = rl->bytes};
    for (uint64_t at = 0; at < buckets * BUCKET_SLOTS;
         at += at % BUCKET_SLOTS == BUCKET_SLOTS - 1 ? (step - 1) * BUCKET_SLOTS + 1 : 1)
        if (is_in_use(rl->slots + at, now, &state))
            out->used_by[state_tag(state)] += step;
    for (unsigned tag = 0; tag < RATELIMIT_TAGS; tag++) {
        out->evicted_by[tag] = word_load(&rl->header->evicted[tag]);
        out->used += out->used_by[tag];
        out->evicted_alive += out->evicted_by[tag];
    }
}
