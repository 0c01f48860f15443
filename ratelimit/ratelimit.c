#include "ratelimit/ratelimit.h"

#include "ratelimit/siphash_internal.h"
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

/* what tells a window's keys from others; with the key's size */
static inline uint64_t what_of(const struct ratelimit_window *w)
{
    return w->salt + ((uint64_t)w->seconds << 32) + ((uint64_t)w->key_size << 56);
}

static uint64_t hash_of(const struct ratelimit *rl, const struct ratelimit_window *w)
{
    assert(w->key_size <= RATELIMIT_KEY_MAX);
    return w->hash != 0 ? w->hash : hash_key(&rl->hash_keys, what_of(w), w->key, w->key_size);
}

uint64_t ratelimit_hash(const struct ratelimit *rl, const struct ratelimit_window *window)
{
    struct ratelimit_window anew = *window;
    anew.hash = 0;
    return hash_of(rl, &anew);
}

/* both lines of the pair: for a key that found the first one full, as some do in a table that is half full */
static inline void expect(const struct ratelimit *rl, struct ratelimit_window *window, uint64_t hash)
{
    pair_fetch(table_bucket(rl, bucket_first(rl, hash)));
    pair_fetch(table_bucket(rl, bucket_first(rl, hash) ^ 1));
    window->hash = hash;
}

static __attribute__((noinline)) void expect_long(const struct ratelimit *rl, struct ratelimit_window *window)
{
    expect(rl, window, ratelimit_hash(rl, window));
}

void ratelimit_expect(const struct ratelimit *rl, struct ratelimit_window *window)
{
    if (!hash_is_short(&rl->hash_keys, window->key_size)) {
        expect_long(rl, window);
        return;
    }
    uint64_t hash = hash_short(&rl->hash_keys, what_of(window), window->key, window->key_size);
    expect(rl, window, hash + (hash == 0));
}

/* ---- one window ---- */

struct found {
    uint32_t end, used; /* used: before this request */
    bool full;
};

enum charged {
    CHARGED,
    REFUSED,
    GONE,    /* the slot is another key's by now */
    OUTDATED /* the time no longer holds */
};

static inline bool is_key(const struct pair *is, uint64_t hash)
{
    return is->key == hash && !state_reserved(is->state);
}

/* what was full and still is what it was, was full at one moment: a refused request writes nothing. Else ${is} becomes what it is. */
static inline bool still_is(struct pair *slot, struct pair *is)
{
    struct pair seen = {word_load(&slot->key), word_load(&slot->state)};
    bool same = seen.key == is->key && seen.state == is->state;
    *is = seen;
    return same;
}

/* ${is}: what the slot was when it was last looked at */
static inline enum charged charge(struct ratelimit *rl, struct pair *slot, struct pair is, const struct ratelimit_window *w,
                                  const struct ratelimit_time *time, struct found *out)
{
    uint32_t end = window_end(time->now, w->seconds);
    uint64_t hash = is.key;
    unsigned overtaken = 0;
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
        struct pair next = {hash, state_make(out->end, heat_of(out->used + 1, w->limit), w->tag, out->used + 1)};
        if (pair_swap(slot, &is, next))
            return CHARGED;
        if (++overtaken % 2 == 1) /* having waited, it goes on at once by what the next swap finds */
            pair_give_way();
    }
    return GONE;
}

static enum charged take_one(struct ratelimit *rl, uint64_t hash, const struct ratelimit_window *w, const struct ratelimit_time *time,
                             struct found *out)
{
    struct pair *slot = table_look(rl, hash), is = {0, 0};
    if (slot != NULL)
        is = (struct pair){hash, word_load(&slot->state)};
    for (;;) {
        enum charged charged = slot == NULL ? GONE : charge(rl, slot, is, w, time, out);
        if (charged != GONE)
            return charged;
        slot = table_slot(rl, hash, time);
        if (slot == NULL) { /* nothing to count in: a table that is not sound refuses nobody */
            *out = (struct found){window_end(time->now, w->seconds), 0, false};
            return table_time_holds(rl, time) ? CHARGED : OUTDATED;
        }
        is = (struct pair){hash, word_load(&slot->state)};
    }
}

static void look_one(const struct ratelimit *rl, uint64_t hash, const struct ratelimit_window *w, int64_t now, struct found *out)
{
    const struct pair *slot = table_look(rl, hash);
    uint64_t state = slot == NULL ? 0 : word_load(&slot->state);
    if (slot == NULL || word_load(&slot->key) != hash || state_reserved(state))
        state = 0;
    out->end = window_end(now, w->seconds);
    out->used = window_used(state, now, w->seconds, &out->end);
    out->full = out->used >= w->limit;
}

/* one less in the window that ends at ${end}, or nothing where that is over; ${all}: none at all */
static bool give_back(struct ratelimit *rl, uint64_t hash, const struct ratelimit_window *w, uint32_t end, bool all)
{
    struct pair *slot = table_look(rl, hash);
    if (slot == NULL)
        return false;
    struct pair is = {hash, word_load(&slot->state)};
    while (is_key(&is, hash) && state_heat(is.state) != HEAT_UNBORN && state_end(is.state) == end && state_used(is.state) > 0) {
        uint32_t used = all ? 0 : state_used(is.state) - 1;
        if (pair_swap(slot, &is, (struct pair){hash, state_make(end, heat_of(used, w->limit), w->tag, used)}))
            return true;
    }
    return false;
}

/* ---- several ---- */

static uint32_t left(const struct ratelimit_window *w, uint32_t used)
{
    return used < w->limit ? w->limit - used : 0;
}

/* the window that headers tell of: the one with the fewest remaining; where some are full, the full one that ends last */
static bool tell(const struct ratelimit_window *windows, const struct found *found, size_t count, uint32_t charged,
                 struct ratelimit_state *out)
{
    size_t best = 0;
    for (size_t i = 1; i < count; i++) {
        uint32_t a = left(&windows[i], found[i].used), b = left(&windows[best], found[best].used);
        if (a < b || (found[i].full && found[best].full && found[i].end > found[best].end))
            best = i;
    }
    uint32_t remaining = left(&windows[best], found[best].used);
    *out = (struct ratelimit_state){(unsigned)best, 0, windows[best].limit, remaining > 0 ? remaining - charged : 0, found[best].end};
    return found[best].full;
}

/* half of the limit or all of it, just now */
static bool is_near(const struct ratelimit_window *w, uint32_t used)
{
    return used == w->limit / 2 + w->limit % 2 || used == w->limit;
}

static bool look(const struct ratelimit *rl, const struct ratelimit_window *windows, const uint64_t *hashes, size_t count, int64_t now,
                 struct ratelimit_state *out)
{
    struct found found[RATELIMIT_WINDOWS_MAX];
    for (size_t i = 0; i < count; i++)
        look_one(rl, hashes[i], &windows[i], now, &found[i]);
    return tell(windows, found, count, 0, out);
}

/*
 * What nearly every decision is: of a known key, in its first bucket, by the time that the table has already, in the window that goes on;
 * one that takes it to no further quarter of its limit, or that finds all of it used. Its answer; or NOT_SETTLED: it is not that; or
 * OVERTAKEN: another process was quicker to change the slot. Then nothing is done.
 *
 * One look and one swap, without a loop: memory is far slower than all of this, and the fewer instructions there are from one decision's
 * look to the next one's, the more of them a processor has under way at once.
 *
 * The swap is of the state alone. It was read before the key was, so it was this key's; and while it is what it was, the slot is this key's
 * still, but for one case: the key was evicted from a full table, another key got the slot, and has the very same state by now: as much
 * used, of a window with the same end, all of that while this process stopped between two instructions. Then the request counts for that
 * other key, which is one too many of it and no harm to the limit; its own key has lost its count anyway. (Read after the key, the state
 * could be of a key that took the slot when this one's window was over: that one would pay for this one, in a table with room for both.)
 * When the clock is looked at among these does not matter: nothing here begins a window, and what is counted is counted in one that the
 * time is in.
 *
 * ${own}: the look takes the cache line away from others at once, as the swap will have to.
 */
enum { NOT_SETTLED = 2, OVERTAKEN = 3 };

/*
 * A charge that leaves the state's heat as it is: then it is the same state and one more used, and nobody is near who was not. Of a limit
 * that is not used up: so never one with a heat of HEAT_FULL or more.
 */
static inline bool keeps_heat(uint64_t state, uint32_t used, uint32_t limit)
{
    int32_t into = (int32_t)(4 * used) - (int32_t)(state_heat(state) * limit); /* its quarter, in quarters of a request: 26 bits */
    return into >= 0 && into + 4 < (int32_t)limit;
}

/* ${slot}: where that key is or, as far as anybody knows, was. What ${out} has is of use only where this settles it. */
static inline __attribute__((always_inline)) int settle_in(struct ratelimit *rl, struct pair *slot, const struct ratelimit_window *w,
                                                           uint64_t hash, struct ratelimit_time time, struct ratelimit_state *out)
{
    uint64_t state = word_load(&slot->state);
    uint32_t used = state_used(state), limit = w->limit;
    if (word_load(&slot->key) != hash || !table_has_time(rl, &time))
        return NOT_SETTLED;
    out->reset = state_end(state);
    if (state_end(state) - (uint32_t)time.now - 1 >= w->seconds)
        return NOT_SETTLED;
    out->window = out->near = 0;
    out->limit = limit;
    if (used >= limit) {
        out->remaining = 0;
        return still_is(slot, &(struct pair){hash, state}) ? 1 : NOT_SETTLED;
    }
    out->remaining = limit - used - 1;
    if (state_tag(state) != w->tag || !keeps_heat(state, used, limit))
        return NOT_SETTLED;
    return word_swap(&slot->state, state, state + 1) ? 0 : OVERTAKEN;
}

static inline __attribute__((always_inline)) int settle(struct ratelimit *rl, const struct ratelimit_window *w, uint64_t hash,
                                                        struct ratelimit_time time, bool own, struct ratelimit_state *out)
{
    struct pair *bucket = table_bucket(rl, bucket_first(rl, hash));
    if (own)
        pair_fetch(bucket);
    return settle_in(rl, bucket_slot(bucket, hash), w, hash, time, out);
}

/* the same of a key that found its first bucket full, or its pair nearly so: one in fifteen, in a table that is half full */
static int settle_elsewhere(struct ratelimit *rl, const struct ratelimit_window *w, uint64_t hash, struct ratelimit_time time,
                            struct ratelimit_state *out)
{
    int settled = NOT_SETTLED;
    struct pair *slot = table_look(rl, hash);
    while (slot != NULL && (settled = settle_in(rl, slot, w, hash, time, out)) == OVERTAKEN)
        pair_give_way();
    return settled;
}

/* most limiters have one window, and need none of what several do */
static __attribute__((noinline)) int take_single(struct ratelimit *rl, const struct ratelimit_window *w, uint64_t hash,
                                                 struct ratelimit_time time, struct ratelimit_state *out)
{
    struct found found;
    int settled = settle_elsewhere(rl, w, hash + (hash == 0), time, out);
    if (settled != NOT_SETTLED)
        return settled;
    if (!table_tell_time(rl, &time))
        return -1;
    enum charged charged = take_one(rl, hash + (hash == 0), w, &time, &found);
    uint32_t used = found.used + (charged == CHARGED);
    if (charged == OUTDATED)
        return -1;
    *out = (struct ratelimit_state){0, charged == CHARGED && is_near(w, used), w->limit, left(w, used), found.end};
    return charged == CHARGED ? 0 : 1;
}

/* of a key that several processes charge this moment */
static __attribute__((noinline)) int take_contended(struct ratelimit *rl, const struct ratelimit_window *w, uint64_t hash,
                                                    struct ratelimit_time time, struct ratelimit_state *out)
{
    int settled;
    do {
        pair_give_way();
        settled = settle(rl, w, hash, time, true, out);
    } while (settled == OVERTAKEN);
    return settled != NOT_SETTLED ? settled : take_single(rl, w, hash, time, out);
}

static inline __attribute__((always_inline)) int take_short(struct ratelimit *rl, const struct ratelimit_window *w, uint64_t hash,
                                                            struct ratelimit_time time, struct ratelimit_state *out)
{
    int settled = settle(rl, w, hash, time, false, out);
    if (settled == OVERTAKEN)
        return take_contended(rl, w, hash, time, out);
    return settled != NOT_SETTLED ? settled : take_single(rl, w, hash, time, out);
}

static int take_several(struct ratelimit *rl, const struct ratelimit_window *windows, size_t count, struct ratelimit_time time,
                        struct ratelimit_state *out)
{
    struct found found[RATELIMIT_WINDOWS_MAX];
    uint64_t hashes[RATELIMIT_WINDOWS_MAX];
    if (!table_tell_time(rl, &time))
        return -1;
    for (size_t i = 0; i < count; i++)
        hashes[i] = hash_of(rl, &windows[i]);
    /* a request that is refused writes nothing, so all are looked at first */
    if (look(rl, windows, hashes, count, time.now, out))
        return table_time_holds(rl, &time) ? 1 : -1;
    for (size_t i = 0; i < count; i++) {
        enum charged charged = take_one(rl, hashes[i], &windows[i], &time, &found[i]);
        if (charged == CHARGED)
            continue;
        for (size_t k = 0; k < i; k++) /* the last of it went this moment */
            give_back(rl, hashes[k], &windows[k], found[k].end, false);
        if (charged == OUTDATED)
            return -1;
        tell(&windows[i], &found[i], 1, 0, out);
        out->window = (unsigned)i;
        return 1;
    }
    tell(windows, found, count, 1, out);
    for (size_t i = 0; i < count; i++)
        out->near |= (uint32_t)is_near(&windows[i], found[i].used + 1) << i;
    return 0;
}

/* several windows, or a key that takes more to hash */
static __attribute__((noinline)) int take_any(struct ratelimit *rl, const struct ratelimit_window *windows, size_t count,
                                              struct ratelimit_time time, struct ratelimit_state *out)
{
    assert(count > 0 && count <= RATELIMIT_WINDOWS_MAX);
    if (count > 1)
        return take_several(rl, windows, count, time, out);
    return take_short(rl, windows, hash_of(rl, windows), time, out);
}

int ratelimit_take(struct ratelimit *rl, const struct ratelimit_window *windows, size_t count, struct ratelimit_time time,
                   struct ratelimit_state *out)
{
    uint64_t hash = windows->hash;
    if (count != 1)
        return take_any(rl, windows, count, time, out);
    if (hash == 0) {
        if (!hash_is_short(&rl->hash_keys, windows->key_size))
            return take_any(rl, windows, count, time, out);
        hash = hash_short(&rl->hash_keys, what_of(windows), windows->key, windows->key_size);
    }
    return take_short(rl, windows, hash, time, out);
}

uint64_t ratelimit_token(const struct ratelimit *rl)
{
    return word_load(&rl->header->clock);
}

int ratelimit_peek(struct ratelimit *rl, const struct ratelimit_window *windows, size_t count, int64_t now, struct ratelimit_state *out)
{
    uint64_t hashes[RATELIMIT_WINDOWS_MAX];
    assert(count > 0 && count <= RATELIMIT_WINDOWS_MAX);
    for (size_t i = 0; i < count; i++)
        hashes[i] = hash_of(rl, &windows[i]);
    return look(rl, windows, hashes, count, now, out) ? 1 : 0;
}

bool ratelimit_reset(struct ratelimit *rl, const struct ratelimit_window *window, int64_t now)
{
    uint64_t hash = hash_of(rl, window);
    struct found found;
    look_one(rl, hash, window, now, &found);
    return found.used > 0 && give_back(rl, hash, window, found.end, true);
}

/* ---- what operators see ---- */

static bool is_in_use(const struct pair *slot, int64_t now, uint64_t *state)
{
    *state = word_load(&slot->state);
    return word_load(&slot->key) != 0 && !state_reserved(*state) && state_heat(*state) != HEAT_UNBORN && !state_over(*state, now) &&
           (int64_t)state_end(*state) > now;
}

void ratelimit_usage(const struct ratelimit *rl, int64_t now, struct ratelimit_usage *out)
{
    uint64_t buckets = rl->mask + 1, step = buckets > SAMPLE_BUCKETS ? buckets / SAMPLE_BUCKETS : 1, state;
    *out = (struct ratelimit_usage){.slots = buckets * BUCKET_SLOTS, .bytes = rl->bytes};
    for (uint64_t at = 0; at < buckets * BUCKET_SLOTS; at += at % BUCKET_SLOTS == BUCKET_SLOTS - 1 ? (step - 1) * BUCKET_SLOTS + 1 : 1)
        if (is_in_use(rl->slots + at, now, &state))
            out->used_by[state_tag(state)] += step;
    for (unsigned tag = 0; tag < RATELIMIT_TAGS; tag++) {
        out->evicted_by[tag] = word_load(&rl->header->evicted[tag]);
        out->used += out->used_by[tag];
        out->evicted_alive += out->evicted_by[tag];
    }
}
