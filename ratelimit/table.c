/*
 * Making a slot. A slot itself changes by single swaps of both its words, which is all that charging takes. But two processes that meet a
 * new key could make two slots for it, and each would admit the whole limit. So a slot is made through the key's claim, a pair of words
 * that many keys share, in four steps, each one swap, which any process that comes by carries on from where it stands (help):
 *
 *   claim idle                    slot: over, empty, or somebody to evict
 *   claim open (hash, target)     .                                           nobody else makes a slot through this claim
 *   .                             slot reserved (claim, turn, number)         by anyone who helps, each under a number of its own
 *   claim decided (number)        .                                           that reservation and no other
 *   .                             slot the key's, not charged yet
 *   claim idle, next turn
 *
 * Why it takes the numbers: a process may sleep anywhere and go on after all is long done. A swap of the claim fails then, since the turn
 * has moved on. A swap of the slot may succeed (it may be over again, or look the same), but leaves a reservation that the claim does not
 * name: it is void, and void is free. Only the decided number becomes a key's slot, and each number is written once.
 *
 * A key's slot never moves. Where the target is not what it was chosen for (it got a key meanwhile, or a hotter one), the claim goes back
 * to idle with the next turn, and who needs it chooses anew.
 */
#include "ratelimit/table_internal.h"
#include "ratelimit/window_internal.h"

#define TRIES_MAX 10000

enum phase { IDLE, OPEN_FREE /* takes only a free slot */, OPEN_EVICT /* takes one no hotter than it was */, DECIDED };

/* ---- a claim's state: turn 23, heat 3, phase 2, target 4, number 32 bits ---- */

static inline uint64_t claim_make(uint32_t turn, unsigned heat, enum phase phase, unsigned target)
{
    return (uint64_t)(turn & 0x7fffff) << 41 | (uint64_t)heat << 38 | (uint64_t)phase << 36 | (uint64_t)target << 32;
}

static inline uint32_t claim_turn(uint64_t state)
{
    return (uint32_t)(state >> 41);
}

static inline unsigned claim_heat(uint64_t state)
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
    return claim_make(claim_turn(state), 0, DECIDED, claim_target(state)) | number;
}

/* what a reserved slot's key is: whose reservation it is */
static inline uint64_t reservation_of(const struct ratelimit *rl, const struct pair *claim, uint64_t state)
{
    return (uint64_t)(claim - rl->claims) << 32 | claim_turn(state);
}

/* ---- places ---- */

static void buckets_of(const struct ratelimit *rl, uint64_t hash, struct pair *out[BUCKETS_OF_KEY])
{
    uint64_t first = bucket_first(rl, hash), other = hash >> 32 & rl->mask;
    if ((first ^ other) <= 1)
        other ^= 2; /* not the same two again */
    uint64_t index[BUCKETS_OF_KEY] = {first, first ^ 1, other, other ^ 1};
    for (unsigned i = 0; i < BUCKETS_OF_KEY; i++) {
        out[i] = table_bucket(rl, index[i]);
        __builtin_prefetch(out[i]);
    }
}

static struct pair *place(struct pair *const buckets[BUCKETS_OF_KEY], unsigned target)
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

struct pair *table_look(const struct ratelimit *rl, uint64_t hash)
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

bool table_advance(struct ratelimit *rl, struct ratelimit_time *time)
{
    for (;;) { /* where another process told its own time meanwhile, this one may still be ahead of it: untold it would count in secret */
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

static void help(struct ratelimit *rl, struct pair *claim, struct pair is, const struct ratelimit_time *time);

/* the claim that ${slot} is reserved for while that goes on, or NULL: the reservation is void */
static struct pair *reserved_for(const struct ratelimit *rl, struct pair slot, struct pair *claim_is)
{
    if (slot.key >> 32 >= CLAIMS)
        return NULL;
    struct pair *claim = &rl->claims[slot.key >> 32];
    *claim_is = pair_read(claim);
    return reservation_of(rl, claim, claim_is->state) == slot.key && claim_phase(claim_is->state) != IDLE ? claim : NULL;
}

/*
 * how unwelcome it is to evict a key: one that was not charged yet goes before a saturated one and after all others, or two could chase
 * each other
 */
static unsigned warmth(uint64_t state)
{
    return state_heat(state) == HEAT_UNBORN ? HEAT_FULL : state_heat(state);
}

static bool is_free(struct pair slot, int64_t now)
{
    return slot.key == 0 || state_over(slot.state, now);
}

/* put a reservation in place of what the target is, where that is what it was chosen for */
static bool reserve(struct ratelimit *rl, struct pair *slot, struct pair is, uint64_t reservation, struct pair claim_is,
                    const struct ratelimit_time *time)
{
    bool over = state_reserved(is.state) || is_free(is, time->now);
    if (!over && (claim_phase(claim_is.state) == OPEN_FREE || warmth(is.state) > claim_heat(claim_is.state)))
        return false;
    uint64_t number = __atomic_fetch_add(&rl->header->nonce, 1, __ATOMIC_RELAXED);
    struct pair reserved = {reservation, (uint64_t)STATE_RESERVED_END << 32 | (uint32_t)number};
    bool lost_count = !over && state_used(is.state) > 0;
    if (!table_time_holds(rl, time))
        return true;
    unsigned tag = state_tag(is.state);
    if (pair_swap(slot, &is, reserved) && lost_count)
        __atomic_fetch_add(&rl->header->evicted[tag], 1, __ATOMIC_RELAXED);
    return true; /* not swapped: it changed, look again */
}

static void close_turn(struct pair *claim, struct pair is)
{
    pair_swap(claim, &is, (struct pair){0, claim_make(claim_turn(is.state) + 1, 0, IDLE, 0)});
}

static void help_open(struct ratelimit *rl, struct pair *claim, struct pair is, struct pair *slot, const struct ratelimit_time *time)
{
    struct pair slot_is = pair_read(slot), other_is, *other;
    uint64_t reservation = reservation_of(rl, claim, is.state);
    if (state_reserved(slot_is.state) && slot_is.key == reservation)
        pair_swap(claim, &is, (struct pair){is.key, claim_decided(is.state, (uint32_t)slot_is.state)});
    else if (state_reserved(slot_is.state) && (other = reserved_for(rl, slot_is, &other_is)) != NULL)
        help(rl, other, other_is, time); /* its target holds its own reservation: it goes no deeper */
    else if (!reserve(rl, slot, slot_is, reservation, is, time))
        close_turn(claim, is);
}

static void help_decided(struct ratelimit *rl, struct pair *claim, struct pair is, struct pair *slot, const struct ratelimit_time *time)
{
    struct pair reserved = {reservation_of(rl, claim, is.state), (uint64_t)STATE_RESERVED_END << 32 | (uint32_t)is.state};
    uint32_t kept_until = (uint32_t)time->now + RATELIMIT_LATE_SECONDS + 1;
    pair_swap(slot, &reserved, (struct pair){is.key, state_make(kept_until, HEAT_UNBORN, 0, 0)});
    close_turn(claim, is);
}

/* one step of whatever goes on at ${claim}, which was ${is} */
static void help(struct ratelimit *rl, struct pair *claim, struct pair is, const struct ratelimit_time *time)
{
    struct pair *buckets[BUCKETS_OF_KEY];
    buckets_of(rl, is.key, buckets);
    struct pair *slot = place(buckets, claim_target(is.state));
    if (claim_phase(is.state) == DECIDED)
        help_decided(rl, claim, is, slot, time);
    else if (claim_phase(is.state) != IDLE)
        help_open(rl, claim, is, slot, time);
}

/* ---- choosing ---- */

struct choice {
    unsigned target, heat;
    enum phase phase; /* IDLE: none yet */
};

/* whom a full neighbourhood loses: the coldest, then whoever used least; ties by chance of the hash */
static void consider(struct choice *best, uint64_t *best_rank, unsigned target, uint64_t state, uint64_t hash)
{
    uint64_t rank =
        (uint64_t)warmth(state) << 40 | (uint64_t)state_used(state) << 8 | ((target + (hash >> 20)) % (BUCKETS_OF_KEY * BUCKET_SLOTS));
    if (best->phase == IDLE || rank < *best_rank) {
        *best = (struct choice){target, warmth(state), OPEN_EVICT};
        *best_rank = rank;
    }
}

/* a free slot: of the first two buckets unless they are nearly full and the other two less so; of two, of the first that has one */
static bool choose_free(const unsigned used[BUCKETS_OF_KEY], const unsigned free_at[BUCKETS_OF_KEY], struct choice *out)
{
    enum { NEARLY_FULL = 2 * BUCKET_SLOTS - 2 };
    unsigned own = used[0] + used[1], other = used[2] + used[3], bucket = own >= NEARLY_FULL && other < own ? 2 : 0;
    bucket += used[bucket] == BUCKET_SLOTS;
    if (used[bucket] == BUCKET_SLOTS)
        return false;
    *out = (struct choice){bucket * BUCKET_SLOTS + free_at[bucket], 0, OPEN_FREE};
    return true;
}

/* phase IDLE: another one's reservation stood there and was helped on; choose again */
static struct choice choose(struct ratelimit *rl, struct pair *const buckets[BUCKETS_OF_KEY], uint64_t hash,
                            const struct ratelimit_time *time)
{
    unsigned used[BUCKETS_OF_KEY] = {0}, free_at[BUCKETS_OF_KEY] = {0};
    struct choice best = {0, 0, IDLE};
    uint64_t rank = 0;
    for (unsigned target = 0; target < BUCKETS_OF_KEY * BUCKET_SLOTS; target++) {
        struct pair *slot = place(buckets, target), claim_is, *claim;
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
            consider(&best, &rank, target, is.state, hash);
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
        /* what is found while the claim is idle in this turn is all there is, if the swap below finds the same turn */
        if ((slot = find_in(buckets, hash)) != NULL)
            return slot;
        struct choice choice = choose(rl, buckets, hash, time);
        if (choice.phase != IDLE)
            pair_swap(claim, &is, (struct pair){hash, claim_make(claim_turn(is.state), choice.heat, choice.phase, choice.target)});
    }
    return NULL;
}
