/*
 * The table within the file: where a key's slot is, and how it gets one. For ratelimit.c and file.c only.
 *
 *   header | claims | notes | buckets of four slots, a cache line each
 *
 * A key may lie in any of four buckets: the two of an aligned pair of lines that its hash names, which processors fetch together, and two
 * of such another. In the first bucket while that has room, so that nearly all are found at once; in the other pair only where the first is
 * nearly full, and fuller. With half of all slots used, no neighbourhood is full.
 */
#ifndef ASSAY_RATELIMIT_TABLE_INTERNAL_H
#define ASSAY_RATELIMIT_TABLE_INTERNAL_H

#include "ratelimit/hash_internal.h"
#include "ratelimit/atomic_pair_internal.h"
#include "ratelimit/ratelimit.h"

#define BUCKET_SLOTS 4 /* bucket_slot names them */
#define BUCKETS_OF_KEY 4
#define BUCKETS_MIN 8
#define CLAIMS 16384
#define NOTES 1024
#define NOTE_WORDS 16

struct table_header {
    char magic[8];
    uint64_t version, bytes, buckets, claims, notes, hash; /* hash: enum hash_kind */
    uint64_t seed[2];                                              /* the hash's key: random, made with the file */
    uint64_t nonce __attribute__((aligned(64)));                   /* the next reservation's number */
    uint64_t evicted[RATELIMIT_TAGS] __attribute__((aligned(64))); /* keys that lost a count alive, by tag */
    uint64_t clock __attribute__((aligned(64))); /* the latest time that was told, in seconds (high half), and how often it jumped */
} __attribute__((aligned(4096)));

struct ratelimit {
    struct table_header *header;
    struct pair *claims;
    uint64_t (*notes)[NOTE_WORDS];
    struct pair *slots;
    uint64_t mask;  /* buckets - 1 */
    uint64_t bytes; /* of the mapping */
    int fd;         /* of the file */
    struct hash_keys hash_keys;
};

/* table_look(rl, hash): the slot of the key with that hash in any bucket, or NULL. Makes none. */
struct pair *table_look(const struct ratelimit *rl, uint64_t hash);

/*
 * table_slot(rl, hash, time): the same, made where there is none (evicting the coldest of a full neighbourhood). NULL:
 * ${time} no longer holds; or other processes undid it again and again, or the memory is damaged.
 */
struct pair *table_slot(struct ratelimit *rl, uint64_t hash, const struct ratelimit_time *time);

/*
 * table_advance(rl, time): let the table's clock be ${time}'s, and ${time}'s token the clock's. A jump by more than processes may lag
 * counts as one, and makes readings of before it invalid. False: ${time} is such a one.
 */
bool table_advance(struct ratelimit *rl, struct ratelimit_time *time);

/* ---- on every decision's way ---- */

/*
 * table_time_holds(rl, time): no jump was told since ${time} was read, and it is not old. What was read from a slot before this and is
 * swapped after it was judged by the right clock: who has another one told the jump before it changed a slot.
 */
static inline bool clock_holds(uint64_t clock, const struct ratelimit_time *time)
{
    return (uint32_t)clock == (uint32_t)time->token && clock >> 32 <= (time->token >> 32) + RATELIMIT_LATE_SECONDS;
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

/* table_has_time(rl, time): the clock of the table is ${time}'s already, as it is but for once a second. Then that holds, too. */
static inline bool table_has_time(const struct ratelimit *rl, const struct ratelimit_time *time)
{
    return word_load(&rl->header->clock) == time->token && time->token >> 32 == (uint64_t)time->now;
}

static inline bool table_tell_time(struct ratelimit *rl, struct ratelimit_time *time)
{
    return table_has_time(rl, time) || table_advance(rl, time);
}

/* ${other} where it is the slot of that key, else ${slot}: without a branch, since no processor can guess which slot of a bucket it is */
static inline struct pair *slot_either(struct pair *slot, struct pair *other, uint64_t hash)
{
#if defined(__x86_64__)
    RATELIMIT_STEP();
    __asm__ volatile("cmpq %1, %2\n\tcmove %3, %0" : "+r"(slot) : "m"(other->key), "r"(hash), "r"(other) : "cc");
    return slot;
#else
    return word_load(&other->key) == hash ? other : slot;
#endif
}

/* bucket_slot(bucket, hash): the slot of the key with that hash, if it is there: whether it is, ask the slot. */
static inline struct pair *bucket_slot(struct pair *bucket, uint64_t hash)
{
    return slot_either(slot_either(slot_either(bucket, bucket + 1, hash), bucket + 2, hash), bucket + 3, hash);
}

static inline struct pair *bucket_find(struct pair *bucket, uint64_t hash)
{
    struct pair *slot = bucket_slot(bucket, hash);
    return word_load(&slot->key) == hash ? slot : NULL;
}

#endif
