/*
 * Inserting a key. Charging only swaps a slot, key and state at once. But two processes that insert
 * the same key could create two slots, each with the whole limit. So a key is inserted through its
 * claim, a pair of words shared by many keys, in four steps of one swap each. Any process that
 * finds the claim busy continues from the current step (help):
 *
 *   claim idle                    slot: expired, empty, or chosen for eviction
 *   claim open (hash, target)     .                        excludes other inserts by this claim
 *   .                             slot reserved (claim, version, number)
 *                                                          by any helper, with a number of its own
 *   claim decided (number)        .                        selects that reservation
 *   .                             slot has the key, not charged yet
 *   claim idle, next version
 *
 * Why numbers: a process may sleep at any point and continue after the insert is done. Its swap of
 * the claim then fails, since the version has changed. Its swap of the slot may succeed (the slot
 * may have expired again or look the same), but creates a reservation that the claim does not name;
 * such a reservation is void, and a void slot is free. Only the decided number becomes a key's
 * slot, and each number is used once.
 *
 * A key's slot never moves. If the target is no longer what it was chosen for (it got a key, or a
 * higher level), the claim returns to idle with the next version, and the process chooses again.
 */
#include "ratelimit/table_internal.h"
#include "ratelimit/window_internal.h"

#define TRIES_MAX 10000

enum phase {
    IDLE,
    OPEN_FREE,  /* free slots only */
    OPEN_EVICT, /* evict a key of at most this level */
    DECIDED
};

/* ---- a claim's state: version 23, level 3, phase 2, target 4, number 32 bits ---- */

static inline uint64_t claim_make(uint32_t version, unsigned level, enum phase phase,
                                  unsigned target)
{
    return (uint64_t)(version & 0x7fffff) << 41 | (uint64_t)level << 38 | (uint64_t)phase << 36 |
           (uint64_t)target << 32;
}

static inline uint32_t claim_version(uint64_t state)
{
    return (uint32_t)(state >> 41);
}

static inline unsigned claim_level(uint64_t state)
{
    return state >> 38 & 7;
}

static inline enum phase claim_phase(uint64_t state)
{
    return state >> 36 & 3;
}

static inline unsigned claim_target(uint64_t state)
{
    return state >> 32 & 15;
}

static inline uint64_t claim_decided(uint64_t state, uint32_t number)
{
    return claim_make(claim_version(state), 0, DECIDED, claim_target(state)) | number;
}

/* the key of a reserved slot: identifies the reservation */
static inline uint64_t reservation_of(const struct ratelimit *rl, const struct pair *claim,
                                      uint64_t state)
{
    return (uint64_t)(claim - rl->claims) << 32 | claim_version(state);
}

/* ---- buckets ---- */

static void buckets_of(const struct ratelimit *rl, uint64_t hash, struct pair *out[BUCKETS_OF_KEY])
{
    uint64_t first = bucket_first(rl, hash), other = hash >> 32 & rl->mask;
    if ((first ^ other) <= 1)
        other ^= 2; /* a different pair */
    uint64_t index[BUCKETS_OF_KEY] = {first, first ^ 1, other, other ^ 1};
    for (unsigned i = 0; i < BUCKETS_OF_KEY; i++) {
        out[i] = table_bucket(rl, index[i]);
        __builtin_prefetch(out[i]);
    }
}

static struct pair *slot_at(struct pair *const buckets[BUCKETS_OF_KEY], unsigned target)
{
    return buckets[target / BUCKET_SLOTS] + target % BUCKET_SLOTS;
}

static struct pair *find_in(struct pair *const buckets[BUCKETS_OF_KEY], uint64_t hash)
{
    for (unsigned i = 0; i < BUCKETS_OF_KEY; i++) {
        struct pair *slot = bucket_find(buckets[i], hash);
        if (slot != NULL && !state_reserved(word_load(&slot->state)))
            return slot;
    }
    return NULL;
}

struct pair *table_find(const struct ratelimit *rl, uint64_t hash)
{
    struct pair *buckets[BUCKETS_OF_KEY];
    buckets_of(rl, hash, buckets);
    return find_in(buckets, hash);
}

/* ---- time ---- */

static bool clock_swap(uint64_t *at, uint64_t is, uint64_t next)
{
    RATELIMIT_STEP();
    return __atomic_compare_exchange_n(at, &is, next, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
}

bool table_advance_clock(struct ratelimit *rl, struct ratelimit_time *time)
{
    /*
     * If another process set the clock meanwhile, this time may still be later: counting by a time
     * that the clock does not show is not allowed.
     */
    for (;;) {
        uint64_t clock = word_load(&rl->header->clock);
        int64_t ahead = time->now - (int64_t)(clock >> 32);
        bool jump = ahead > RATELIMIT_LATE_SECONDS || ahead < -RATELIMIT_LATE_SECONDS;
        uint64_t next = (uint64_t)time->now << 32 | (uint32_t)((uint32_t)clock + jump);
        if (!clock_holds(clock, time))
            return false;
        if (ahead <= 0 && !jump)
            return true;
        if (clock_swap(&rl->header->clock, clock, next)) {
            time->token = next;
            return true;
        }
    }
}

/* ---- helping ---- */

static void help(struct ratelimit *rl, struct pair *claim, struct pair is,
                 const struct ratelimit_time *time);

/* The claim of a valid reservation of ${slot}; NULL: the reservation is void. */
static struct pair *reserved_for(const struct ratelimit *rl, struct pair slot,
                                 struct pair *claim_is)
{
    if (slot.key >> 32 >= CLAIMS)
        return NULL;
    struct pair *claim = &rl->claims[slot.key >> 32];
    *claim_is = pair_read(claim);
    return reservation_of(rl, claim, claim_is->state) == slot.key &&
                   claim_phase(claim_is->state) != IDLE
               ? claim
               : NULL;
}

/*
 * Rank for eviction by level. An uncharged key ranks just before a full one; otherwise two
 * inserting processes could evict each other's keys forever.
 */
static unsigned eviction_level(uint64_t state)
{
    return state_level(state) == LEVEL_UNCHARGED ? LEVEL_FULL : state_level(state);
}

static bool is_free(struct pair slot, int64_t now)
{
    return slot.key == 0 || state_expired(slot.state, now);
}

/* Replace the target by a reservation, if it still is what it was chosen for. */
static bool reserve(struct ratelimit *rl, struct pair *slot, struct pair is, uint64_t reservation,
                    struct pair claim_is, const struct ratelimit_time *time)
{
    bool over = state_reserved(is.state) || is_free(is, time->now);
    if (!over && (claim_phase(claim_is.state) == OPEN_FREE ||
                  eviction_level(is.state) > claim_level(claim_is.state)))
        return false;
    uint64_t number = __atomic_fetch_add(&rl->header->nonce, 1, __ATOMIC_RELAXED);
    struct pair reserved = {reservation, (uint64_t)STATE_RESERVED_END << 32 | (uint32_t)number};
    bool lost_count = !over && state_used(is.state) > 0;
    if (!table_time_holds(rl, time))
        return true;
    unsigned tag = state_tag(is.state);
    if (pair_swap(slot, &is, reserved) && lost_count)
        __atomic_fetch_add(&rl->header->evicted[tag], 1, __ATOMIC_RELAXED);
    return true; /* on a failed swap the caller reads it again */
}

static void release_claim(struct pair *claim, struct pair is)
{
    pair_swap(claim, &is, (struct pair){0, claim_make(claim_version(is.state) + 1, 0, IDLE, 0)});
}

static void help_open(struct ratelimit *rl, struct pair *claim, struct pair is, struct pair *slot,
                      const struct ratelimit_time *time)
{
    struct pair slot_is = pair_read(slot), other_is, *other;
    uint64_t reservation = reservation_of(rl, claim, is.state);
    if (state_reserved(slot_is.state) && slot_is.key == reservation)
        pair_swap(claim, &is,
                  (struct pair){is.key, claim_decided(is.state, (uint32_t)slot_is.state)});
    else if (state_reserved(slot_is.state) &&
             (other = reserved_for(rl, slot_is, &other_is)) != NULL)
        help(rl, other, other_is, time); /* recurses once: that target holds its own reservation */
    else if (!reserve(rl, slot, slot_is, reservation, is, time))
        release_claim(claim, is);
}

static void help_decided(struct ratelimit *rl, struct pair *claim, struct pair is,
                         struct pair *slot, const struct ratelimit_time *time)
{
    struct pair reserved = {reservation_of(rl, claim, is.state),
                            (uint64_t)STATE_RESERVED_END << 32 | (uint32_t)is.state};
    uint32_t kept_until = (uint32_t)time->now + RATELIMIT_LATE_SECONDS + 1;
    pair_swap(slot, &reserved,
              (struct pair){is.key, state_make(kept_until, LEVEL_UNCHARGED, 0, 0)});
    release_claim(claim, is);
}

/* Do one step of the insert at ${claim}, whose value was ${is}. */
static void help(struct ratelimit *rl, struct pair *claim, struct pair is,
                 const struct ratelimit_time *time)
{
    struct pair *buckets[BUCKETS_OF_KEY];
    buckets_of(rl, is.key, buckets);
    struct pair *slot = slot_at(buckets, claim_target(is.state));
    if (claim_phase(is.state) == DECIDED)
        help_decided(rl, claim, is, slot, time);
    else if (claim_phase(is.state) != IDLE)
        help_open(rl, claim, is, slot, time);
}

/* ---- choosing ---- */

struct choice {
    unsigned target, level;
    enum phase phase; /* IDLE: none yet */
};

/* Candidate for eviction: lowest level, then lowest count; ties are broken by the hash. */
static void consider_eviction(struct choice *best, uint64_t *best_rank, unsigned target,
                              uint64_t state, uint64_t hash)
{
    uint64_t rank = (uint64_t)eviction_level(state) << 40 | (uint64_t)state_used(state) << 8 |
                    ((target + (hash >> 20)) % (BUCKETS_OF_KEY * BUCKET_SLOTS));
    if (best->phase == IDLE || rank < *best_rank) {
        *best = (struct choice){target, eviction_level(state), OPEN_EVICT};
        *best_rank = rank;
    }
}

/*
 * A free slot in the first pair, unless that is nearly full and the other pair is less full; within
 * a pair, in the first bucket with a free slot.
 */
static bool choose_free(const unsigned used[BUCKETS_OF_KEY], const unsigned free_at[BUCKETS_OF_KEY],
                        struct choice *out)
{
    enum { NEARLY_FULL = 2 * BUCKET_SLOTS - 2 };
    unsigned own = used[0] + used[1], other = used[2] + used[3],
             bucket = own >= NEARLY_FULL && other < own ? 2 : 0;
    bucket += used[bucket] == BUCKET_SLOTS;
    if (used[bucket] == BUCKET_SLOTS)
        return false;
    *out = (struct choice){bucket * BUCKET_SLOTS + free_at[bucket], 0, OPEN_FREE};
    return true;
}

/* phase IDLE: found and helped another insert; choose again. */
static struct choice choose(struct ratelimit *rl, struct pair *const buckets[BUCKETS_OF_KEY],
                            uint64_t hash, const struct ratelimit_time *time)
{
    unsigned used[BUCKETS_OF_KEY] = {0}, free_at[BUCKETS_OF_KEY] = {0};
    struct choice best = {0, 0, IDLE};
    uint64_t rank = 0;
    for (unsigned target = 0; target < BUCKETS_OF_KEY * BUCKET_SLOTS; target++) {
        struct pair *slot = slot_at(buckets, target), claim_is, *claim;
        struct pair is = {word_load(&slot->key), word_load(&slot->state)};
        unsigned bucket = target / BUCKET_SLOTS;
        if (state_reserved(is.state)) {
            if ((claim = reserved_for(rl, is, &claim_is)) != NULL) {
                help(rl, claim, claim_is, time);
                return (struct choice){0, 0, IDLE};
            }
            free_at[bucket] = target % BUCKET_SLOTS;
        } else if (is_free(is, time->now)) {
            free_at[bucket] = target % BUCKET_SLOTS;
        } else {
            used[bucket]++;
            consider_eviction(&best, &rank, target, is.state, hash);
        }
    }
    choose_free(used, free_at, &best);
    return best;
}

struct pair *table_slot(struct ratelimit *rl, uint64_t hash, const struct ratelimit_time *time)
{
    struct pair *buckets[BUCKETS_OF_KEY], *slot, *claim = &rl->claims[(hash >> 13) % CLAIMS];
    buckets_of(rl, hash, buckets);
    for (unsigned tries = 0; tries < TRIES_MAX && table_time_holds(rl, time); tries++) {
        struct pair is = pair_read(claim);
        if (claim_phase(is.state) != IDLE) {
            help(rl, claim, is, time);
            continue;
        }
        /*
         * if the swap below finds the same version, the search while the claim was idle was
         * complete
         */
        if ((slot = find_in(buckets, hash)) != NULL)
            return slot;
        struct choice choice = choose(rl, buckets, hash, time);
        if (choice.phase != IDLE)
            pair_swap(claim, &is,
                      (struct pair){hash, claim_make(claim_version(is.state), choice.level,
                                                     choice.phase, choice.target)});
    }
    return NULL;
}
