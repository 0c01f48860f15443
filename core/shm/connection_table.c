#include "core/shm/connection_table.h"

#include <errno.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>

#define PLACE_BITS 11
#define CLAIMING (UINT32_C(1) << 31) /* of an owner: the share is being made, and counts nothing yet */
#define BIRTHS ((CLAIMING >> PLACE_BITS) - 1)
#define SPARE 4 /* shares for each connection: so the shares near an address' own place are hardly ever all taken */
#define NEAR 64 /* shares that are looked at for an address, and four more for each worker: one for each of its generations */
_Static_assert(CROWD_PLACES <= 1 << PLACE_BITS, "a place must fit into an owner");

/* what one process has of one address */
struct share {
    _Atomic uint64_t address; /* hashed */
    _Atomic uint32_t owner;   /* 0: free; of a process that is gone: as good as free */
    _Atomic uint32_t count;
};

struct connection_table {
    size_t size, shares; /* bytes; and a power of two */
    _Atomic size_t near; /* a reload may raise it */
    uint64_t seed[2];
    uint32_t births; /* the master's */
    _Atomic uint32_t top; /* places up to here were in use */
    _Atomic uint32_t asked; /* by whom: its place and one; 0: by nobody */
    _Atomic uint64_t told[CROWD_EVENTS];
    _Atomic uint32_t owner[CROWD_PLACES]; /* who is there: a number that nobody had before; 0: nobody */
    _Atomic uint32_t open[CROWD_PLACES];  /* its connections */
    struct share share[];
};

/* ---- the table ---- */

static size_t near_of(unsigned workers)
{
    return NEAR + 4 * (size_t)workers;
}

struct connection_table *connection_table_new(size_t connections, unsigned workers)
{
    size_t shares = 1024, near = near_of(workers);
    while (shares < SPARE * connections || shares < 2 * near)
        shares *= 2;
    size_t size = sizeof(struct connection_table) + shares * sizeof(struct share);
    struct connection_table *c = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (c == MAP_FAILED)
        return NULL;
    if (getrandom(c->seed, sizeof(c->seed), 0) != sizeof(c->seed)) {
        munmap(c, size);
        return NULL;
    }
    c->size = size;
    c->near = near;
    c->shares = shares;
    return c;
}

bool connection_table_fit(struct connection_table *c, size_t connections, unsigned workers)
{
    size_t near = near_of(workers);
    if (SPARE * connections > c->shares || 2 * near > c->shares)
        return false;
    if (near > c->near)
        c->near = near;
    return true;
}

void connection_table_free(struct connection_table *c)
{
    if (c != NULL)
        munmap(c, c->size);
}

void connection_table_enter(struct connection_table *c, unsigned place)
{
    c->births = c->births % BIRTHS + 1;
    atomic_store(&c->open[place], 0);
    atomic_store(&c->owner[place], c->births << PLACE_BITS | place);
    if (c->top <= place)
        c->top = place + 1;
}

void connection_table_leave(struct connection_table *c, unsigned place)
{
    atomic_store(&c->owner[place], 0);
    atomic_store(&c->open[place], 0);
    connection_table_unask(c, place);
}

/* ---- all connections ---- */

size_t connection_table_count(const struct connection_table *c)
{
    size_t sum = 0;
    for (uint32_t i = 0, top = atomic_load(&c->top); i < top; i++)
        sum += atomic_load(&c->open[i]);
    return sum;
}

bool connection_table_claim(struct connection_table *c, unsigned place, size_t most)
{
    atomic_fetch_add(&c->open[place], 1);
    if (connection_table_count(c) <= most)
        return true;
    connection_table_unclaim(c, place);
    return false;
}

void connection_table_unclaim(struct connection_table *c, unsigned place)
{
    atomic_fetch_sub(&c->open[place], 1);
}

/* ---- those of an address ---- */

static uint64_t mix(uint64_t h)
{
    h = (h ^ h >> 33) * UINT64_C(0xff51afd7ed558ccd);
    h = (h ^ h >> 33) * UINT64_C(0xc4ceb9fe1a85ec53);
    return h ^ h >> 33;
}

static uint64_t hash(const struct connection_table *c, const void *address, size_t size)
{
    uint64_t h = c->seed[0] ^ size;
    for (size_t at = 0; at < size; at += sizeof(uint64_t)) {
        uint64_t part = 0;
        memcpy(&part, (const char *)address + at, size - at < sizeof(part) ? size - at : sizeof(part));
        h = mix(h ^ part) + c->seed[1];
    }
    return h;
}

static bool is_there(const struct connection_table *c, uint32_t owner)
{
    uint32_t place = owner & ((1u << PLACE_BITS) - 1);
    return owner != 0 && place < CROWD_PLACES && atomic_load(&c->owner[place]) == owner;
}

static struct share *near(struct connection_table *c, uint64_t address, size_t i)
{
    return &c->share[(address + i) & (c->shares - 1)];
}

/* ours of this address, or a free one made ours; NULL: all near it are taken */
static struct share *own_share(struct connection_table *c, uint32_t me, uint64_t address)
{
    for (size_t i = 0; i < c->near; i++) {
        struct share *s = near(c, address, i);
        if (atomic_load(&s->address) == address && atomic_load(&s->owner) == me)
            return s;
    }
    for (size_t i = 0; i < c->near; i++) {
        struct share *s = near(c, address, i);
        uint32_t was = atomic_load(&s->owner);
        if (is_there(c, was & ~CLAIMING) || !atomic_compare_exchange_strong(&s->owner, &was, me | CLAIMING))
            continue;
        atomic_store(&s->count, 0);
        atomic_store(&s->address, address);
        atomic_store(&s->owner, me);
        return s;
    }
    return NULL;
}

static size_t all_shares(struct connection_table *c, uint64_t address)
{
    size_t sum = 0;
    for (size_t i = 0; i < c->near; i++) {
        struct share *s = near(c, address, i);
        if (atomic_load(&s->address) != address)
            continue;
        uint32_t owner = atomic_load(&s->owner), count = atomic_load(&s->count);
        /* it may have become another's meanwhile */
        if (is_there(c, owner) && atomic_load(&s->address) == address && atomic_load(&s->owner) == owner)
            sum += count;
    }
    return sum;
}

bool connection_table_arrive(struct connection_table *c, unsigned place, const void *address, size_t size, size_t most, uint32_t *share)
{
    uint64_t h = hash(c, address, size);
    struct share *own = own_share(c, atomic_load(&c->owner[place]), h);
    *share = 0;
    if (own == NULL)
        return true;
    *share = (uint32_t)(own - c->share) + 1;
    atomic_fetch_add(&own->count, 1);
    if (most == 0 || all_shares(c, h) <= most)
        return true;
    connection_table_depart(c, *share);
    *share = 0;
    return false;
}

void connection_table_depart(struct connection_table *c, uint32_t share)
{
    if (share != 0 && atomic_fetch_sub(&c->share[share - 1].count, 1) == 1)
        atomic_store(&c->share[share - 1].owner, 0);
}

size_t connection_table_share(const struct connection_table *c, uint32_t share)
{
    return share == 0 ? 1 : atomic_load_explicit(&c->share[share - 1].count, memory_order_relaxed);
}

/* ---- who waits, and what was done ---- */

void connection_table_ask(struct connection_table *c, unsigned place)
{
    atomic_store(&c->asked, place + 1);
}

void connection_table_unask(struct connection_table *c, unsigned place)
{
    uint32_t mine = place + 1;
    if (atomic_load_explicit(&c->asked, memory_order_relaxed) == mine)
        atomic_compare_exchange_strong(&c->asked, &mine, 0);
}

bool connection_table_asks(const struct connection_table *c, unsigned place)
{
    uint32_t asked = atomic_load_explicit(&c->asked, memory_order_relaxed);
    return asked != 0 && asked != place + 1;
}

bool connection_table_answer(struct connection_table *c)
{
    return atomic_exchange(&c->asked, 0) != 0;
}

/* the part is rounded up, so that while there is a free place some process has less */
int connection_table_part(const struct connection_table *c, unsigned place, size_t most)
{
    size_t there = 0, open = atomic_load(&c->open[place]);
    for (uint32_t i = 0, top = atomic_load(&c->top); i < top; i++)
        there += atomic_load(&c->owner[i]) != 0;
    size_t part = there == 0 ? most : (most + there - 1) / there;
    return open < part ? -1 : open > part;
}

void connection_table_tell(struct connection_table *c, enum connection_table_event event)
{
    atomic_fetch_add_explicit(&c->told[event], 1, memory_order_relaxed);
}

uint64_t connection_table_told(const struct connection_table *c, enum connection_table_event event)
{
    return atomic_load_explicit(&c->told[event], memory_order_relaxed);
}
