/*
 * Layout of the file and lookup of slots. Included by the room's .c files only.
 *
 *   header | claims | notes | buckets of four slots, one cache line each
 *
 * A key may be in any of four buckets: an aligned pair of lines chosen by its hash, which
 * processors fetch together, and another such pair. It goes into the first bucket while that has
 * space, so nearly all keys are found at once; into the other pair only if the first is nearly
 * full, and fuller. With half of all slots used, no key's four buckets are all full.
 */
#ifndef ASSAY_RATELIMIT_TABLE_INTERNAL_H
#define ASSAY_RATELIMIT_TABLE_INTERNAL_H

#include "ratelimit/hash_internal.h"
#include "ratelimit/atomic_pair_internal.h"
#include "ratelimit/ratelimit.h"

#define BUCKET_SLOTS 4 /* bucket_slot depends on it */
#define BUCKETS_OF_KEY 4
#define BUCKETS_MIN 8
#define CLAIMS 16384
#define NOTES 1024
#define NOTE_WORDS 16

struct table_header {
    char magic[8];
    uint64_t version, bytes, buckets, claims, notes, hash; /* hash: enum hash_kind */
    uint64_t seed[2];                            /* the hash's key: random, made with the file */
    uint64_t nonce __attribute__((aligned(64))); /* number of the next reservation */
    /* keys evicted during their window, by tag */
    uint64_t evicted[RATELIMIT_TAGS] __attribute__((aligned(64)));
    /* latest time, in seconds (high half), and number of jumps */
    uint64_t clock __attribute__((aligned(64)));
} __attribute__((aligned(4096)));

struct ratelimit {
    struct table_header *header;
    struct pair *claims;
    uint64_t (*notes)[NOTE_WORDS];
    struct pair *slots;
    uint64_t mask;  /* number of buckets - 1 */
    uint64_t bytes; /* of the mapping */
    int fd;         /* of the file */
    struct hash_keys hash_keys;
};

/* table_find(rl, hash): the slot of the key with ${hash}, or NULL. */
struct pair *table_find(const struct ratelimit *rl, uint64_t hash);

/*
 * table_slot(rl, hash, time): the same; inserts the key if it is missing, evicting the key of
 * lowest level if its buckets are full. NULL if ${time} is no longer valid, if other processes
 * undid the insert too often, or if the memory is damaged.
 */
struct pair *table_slot(struct ratelimit *rl, uint64_t hash, const struct ratelimit_time *time);

/*
 * table_advance_clock(rl, time): set the table's clock to ${time}, and ${time}'s token to the
 * clock. A change by more than RATELIMIT_LATE_SECONDS is a jump and invalidates earlier time
 * readings. False: ${time} is invalid.
 */
bool table_advance_clock(struct ratelimit *rl, struct ratelimit_time *time);

/* ---- used by the fast path ---- */

/*
 * table_time_holds(rl, time): no jump since ${time} was read, and it is not old. A slot read before
 * this check and swapped after it is judged by the right clock: a process with another time
 * advances the clock before it changes a slot.
 */
static inline bool clock_holds(uint64_t clock, const struct ratelimit_time *time)
{
    return (uint32_t)clock == (uint32_t)time->token &&
           clock >> 32 <= (time->token >> 32) + RATELIMIT_LATE_SECONDS;
}

static inline bool table_time_holds(const struct ratelimit *rl, const struct ratelimit_time *time)
{
    return clock_holds(word_load(&rl->header->clock), time);
}

static inline struct pair *table_bucket(const struct ratelimit *rl, uint64_t index)
{
    return rl->slots + index * BUCKET_SLOTS;
}

static inline uint64_t bucket_first(const struct ratelimit *rl, uint64_t hash)
{
    return hash & rl->mask;
}

/*
 * table_has_time(rl, time): the clock already shows ${time}, as it does except once a second; then
 * table_time_holds.
 */
static inline bool table_has_time(const struct ratelimit *rl, const struct ratelimit_time *time)
{
    return word_load(&rl->header->clock) == time->token && time->token >> 32 == (uint64_t)time->now;
}

static inline bool table_set_time(struct ratelimit *rl, struct ratelimit_time *time)
{
    return table_has_time(rl, time) || table_advance_clock(rl, time);
}

/*
 * ${other} if it has the key, else ${slot}. Without a branch, since the slot within a bucket is
 * unpredictable.
 */
static inline struct pair *slot_either(struct pair *slot, struct pair *other, uint64_t hash)
{
#if defined(__x86_64__)
    RATELIMIT_STEP();
    __asm__ volatile("cmpq %1, %2\n\tcmove %3, %0"
                     : "+r"(slot)
                     : "m"(other->key), "r"(hash), "r"(other)
                     : "cc");
    return slot;
#else
    return word_load(&other->key) == hash ? other : slot;
#endif
}

/*
 * bucket_slot(bucket, hash): the slot with ${hash} if there is one; the caller checks the slot's
 * key.
 */
static inline struct pair *bucket_slot(struct pair *bucket, uint64_t hash)
{
    return slot_either(slot_either(slot_either(bucket, bucket + 1, hash), bucket + 2, hash),
                       bucket + 3, hash);
}

static inline struct pair *bucket_find(struct pair *bucket, uint64_t hash)
{
    struct pair *slot = bucket_slot(bucket, hash);
    return word_load(&slot->key) == hash ? slot : NULL;
}

#endif
