/*
 * The table within the file: where a key's slot is, and how it gets one. For ratelimit.c and file.c only.
 *
 *   header | claims | notes | buckets of four slots, a cache line each
 *
 * A key may lie in any of four buckets that its hash names: in the first while that has two free slots, so that most are found at once;
 * else in the emptier of the first two or, where both are full, of the others. With half of all slots used, no neighbourhood is full.
 */
#ifndef ASSAY_RATELIMIT_TABLE_H
#define ASSAY_RATELIMIT_TABLE_H

#include "pair.h"
#include "ratelimit.h"

#define BUCKET_SLOTS 4
#define BUCKETS_OF_KEY 4
#define BUCKETS_MIN 8
#define CLAIMS 16384
#define NOTES 1024
#define NOTE_WORDS 16

struct table_header {
    char magic[8];
    uint64_t version, bytes, buckets, claims, notes;
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
    /*
     * This process's last charge: who comes again right away needs no look at a word that other processes fight for before it swaps it. Only
     * while the clock has not jumped, or the word might be the same again in another time.
     */
    struct {
        struct pair *slot;
        struct pair is;
        uint32_t jumps;
    } last;
};

/* table_find(rl, hash): the slot of the key with that hash where it is one of its first two buckets, where nearly all are; else NULL. */
static inline struct pair *table_find(const struct ratelimit *rl, uint64_t hash);

/*
 * table_slot(rl, hash, time): its slot in any bucket, made where there is none (evicting the coldest of a full neighbourhood). NULL:
 * ${time} no longer holds; or other processes undid it again and again, or the memory is damaged.
 */
struct pair *table_slot(struct ratelimit *rl, uint64_t hash, const struct ratelimit_time *time);

/* table_look(rl, hash): its slot in any bucket, or NULL. Makes none. */
struct pair *table_look(const struct ratelimit *rl, uint64_t hash);

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

static inline uint64_t bucket_second(const struct ratelimit *rl, uint64_t hash)
{
    uint64_t index = hash >> 32 & rl->mask;
    return index ^ (uint64_t)(index == bucket_first(rl, hash));
}

/* table_tell_time(rl, time): table_advance where the clock of the table is not ${time}'s already, as it is but for once a second. */
static inline bool table_tell_time(struct ratelimit *rl, struct ratelimit_time *time)
{
    uint64_t clock = word_load(&rl->header->clock);
    return (clock == time->token && clock >> 32 == (uint64_t)time->now) || table_advance(rl, time);
}

/* all four are compared before anything is decided: which of them it is, no processor can guess */
static inline struct pair *bucket_find(struct pair *bucket, uint64_t hash)
{
    unsigned found = 0;
    for (unsigned i = 0; i < BUCKET_SLOTS; i++)
        found |= (unsigned)(word_load(&bucket[i].key) == hash) << i;
    return found == 0 ? NULL : &bucket[__builtin_ctz(found)];
}

static inline struct pair *table_find(const struct ratelimit *rl, uint64_t hash)
{
    struct pair *slot = bucket_find(table_bucket(rl, bucket_first(rl, hash)), hash);
    return slot != NULL ? slot : bucket_find(table_bucket(rl, bucket_second(rl, hash)), hash);
}

#endif
