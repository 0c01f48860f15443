#include "core/shm/typing_table.h"

#include <stdatomic.h>
#include <sys/mman.h>

#define BUCKETS 16384
#define SLOTS 4

struct slot {
    _Atomic uint64_t key; /* hash of the conversation; 0: free */
    _Atomic uint64_t until_ms[TYPISTS];
};

struct typing_table {
    struct slot slot[BUCKETS][SLOTS];
};

#define LOAD(member) atomic_load_explicit(&(member), memory_order_acquire)
#define STORE(member, value) atomic_store_explicit(&(member), (value), memory_order_release)

struct typing_table *typing_table_new(void)
{
    void *p = mmap(NULL, sizeof(struct typing_table), PROT_READ | PROT_WRITE,
                   MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    return p == MAP_FAILED ? NULL : p;
}

void typing_table_free(struct typing_table *t)
{
    if (t != NULL)
        munmap(t, sizeof(*t));
}

/* The low half of an id is random: no caller can choose it. */
static uint64_t key_of(const struct ulid *conversation)
{
    uint64_t high, low;
    ulid_halves(conversation, &high, &low);
    low ^= high * UINT64_C(0x9E3779B97F4A7C15);
    return low == 0 ? 1 : low;
}

static uint64_t last_of(const struct slot *s)
{
    uint64_t visitor = LOAD(s->until_ms[TYPIST_VISITOR]),
             other = LOAD(s->until_ms[TYPIST_OPERATOR]);
    return visitor > other ? visitor : other;
}

/* The conversation's slot, or the one of its bucket whose typing ended first. */
static struct slot *slot_for(struct typing_table *t, uint64_t key)
{
    struct slot *bucket = t->slot[key % BUCKETS], *oldest = bucket;
    for (size_t i = 0; i < SLOTS; i++) {
        if (LOAD(bucket[i].key) == key)
            return &bucket[i];
        if (last_of(&bucket[i]) < last_of(oldest))
            oldest = &bucket[i];
    }
    return oldest;
}

void typing_table_set(struct typing_table *t, const struct ulid *conversation, enum typist who,
                      uint64_t until_ms, uint64_t now_ms)
{
    uint64_t key = key_of(conversation);
    struct slot *s = slot_for(t, key);
    if (LOAD(s->key) != key) {
        if (until_ms <= now_ms)
            return;
        for (int i = 0; i < TYPISTS; i++)
            STORE(s->until_ms[i], 0);
        STORE(s->key, key);
    }
    STORE(s->until_ms[who], until_ms);
}

bool typing_table_is_typing(const struct typing_table *t, const struct ulid *conversation,
                            enum typist who, uint64_t now_ms)
{
    uint64_t key = key_of(conversation);
    const struct slot *bucket = t->slot[key % BUCKETS];
    for (size_t i = 0; i < SLOTS; i++)
        if (LOAD(bucket[i].key) == key && LOAD(bucket[i].until_ms[who]) > now_ms)
            return true;
    return false;
}
