#include "core/shm/connection_table.h"

#include <errno.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>

#define SLOT_BITS 11
#define BEING_TAKEN (UINT32_C(1) << 31) /* bit of an owner: the row does not count yet */
#define SERIAL_MAX ((BEING_TAKEN >> SLOT_BITS) - 1)
/* so that the rows that an address may use are hardly ever all taken */
#define ROWS_PER_CONNECTION 4
/* rows that an address may use; and four more for each worker, one for each of its generations */
#define PROBES_MIN 64
_Static_assert(CONNECTION_TABLE_SLOTS <= 1 << SLOT_BITS, "a slot must fit into an owner");

/* the connections that one process has of one address */
struct row {
    _Atomic uint64_t address; /* hashed */
    _Atomic uint32_t owner;   /* 0, or an owner that is gone: free */
    _Atomic uint32_t count;
};

struct connection_table {
    size_t size;           /* bytes */
    size_t rows;           /* a power of two */
    _Atomic size_t probes; /* a reload may raise it */
    uint64_t seed[2];
    uint32_t serial; /* of the master */
    _Atomic uint32_t slots_used;
    _Atomic uint32_t eviction_for; /* the slot that requests an eviction, plus one; 0: none */
    _Atomic uint64_t events[CONNECTION_TABLE_EVENTS];
    _Atomic uint32_t owner[CONNECTION_TABLE_SLOTS]; /* serial and slot; 0: no process */
    _Atomic uint32_t open[CONNECTION_TABLE_SLOTS];  /* connections of this slot */
    struct row row[];
};

/* ---- the table ---- */

static size_t probes_for(unsigned workers)
{
    return PROBES_MIN + 4 * (size_t)workers;
}

struct connection_table *connection_table_new(size_t connections, unsigned workers)
{
    size_t rows = 1024, probes = probes_for(workers);
    while (rows < ROWS_PER_CONNECTION * connections || rows < 2 * probes)
        rows *= 2;
    size_t size = sizeof(struct connection_table) + rows * sizeof(struct row);
    struct connection_table *c =
        mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (c == MAP_FAILED)
        return NULL;
    if (getrandom(c->seed, sizeof(c->seed), 0) != sizeof(c->seed)) {
        munmap(c, size);
        return NULL;
    }
    c->size = size;
    c->probes = probes;
    c->rows = rows;
    return c;
}

bool connection_table_reserve(struct connection_table *c, size_t connections, unsigned workers)
{
    size_t probes = probes_for(workers);
    if (ROWS_PER_CONNECTION * connections > c->rows || 2 * probes > c->rows)
        return false;
    if (probes > c->probes)
        c->probes = probes;
    return true;
}

void connection_table_free(struct connection_table *c)
{
    if (c != NULL)
        munmap(c, c->size);
}

void connection_table_open_slot(struct connection_table *c, unsigned slot)
{
    c->serial = c->serial % SERIAL_MAX + 1;
    atomic_store(&c->open[slot], 0);
    atomic_store(&c->owner[slot], c->serial << SLOT_BITS | slot);
    if (c->slots_used <= slot)
        c->slots_used = slot + 1;
}

void connection_table_close_slot(struct connection_table *c, unsigned slot)
{
    atomic_store(&c->owner[slot], 0);
    atomic_store(&c->open[slot], 0);
    connection_table_cancel_eviction(c, slot);
}

/* ---- all connections ---- */

size_t connection_table_count(const struct connection_table *c)
{
    size_t sum = 0;
    for (uint32_t i = 0, end = atomic_load(&c->slots_used); i < end; i++)
        sum += atomic_load(&c->open[i]);
    return sum;
}

bool connection_table_add(struct connection_table *c, unsigned slot, size_t max)
{
    atomic_fetch_add(&c->open[slot], 1);
    if (connection_table_count(c) <= max)
        return true;
    connection_table_remove(c, slot);
    return false;
}

void connection_table_remove(struct connection_table *c, unsigned slot)
{
    atomic_fetch_sub(&c->open[slot], 1);
}

/* ---- connections of an address ---- */

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
        memcpy(&part, (const char *)address + at,
               size - at < sizeof(part) ? size - at : sizeof(part));
        h = mix(h ^ part) + c->seed[1];
    }
    return h;
}

static bool is_alive(const struct connection_table *c, uint32_t owner)
{
    uint32_t slot = owner & ((1u << SLOT_BITS) - 1);
    return owner != 0 && slot < CONNECTION_TABLE_SLOTS && atomic_load(&c->owner[slot]) == owner;
}

static struct row *probe(struct connection_table *c, uint64_t address, size_t i)
{
    return &c->row[(address + i) & (c->rows - 1)];
}

/* the row of this owner and address, or a free one made so; NULL: all are taken */
static struct row *own_row(struct connection_table *c, uint32_t me, uint64_t address)
{
    for (size_t i = 0; i < c->probes; i++) {
        struct row *r = probe(c, address, i);
        if (atomic_load(&r->address) == address && atomic_load(&r->owner) == me)
            return r;
    }
    for (size_t i = 0; i < c->probes; i++) {
        struct row *r = probe(c, address, i);
        uint32_t was = atomic_load(&r->owner);
        if (is_alive(c, was & ~BEING_TAKEN) ||
            !atomic_compare_exchange_strong(&r->owner, &was, me | BEING_TAKEN))
            continue;
        atomic_store(&r->count, 0);
        atomic_store(&r->address, address);
        atomic_store(&r->owner, me);
        return r;
    }
    return NULL;
}

static size_t sum_rows(struct connection_table *c, uint64_t address)
{
    size_t sum = 0;
    for (size_t i = 0; i < c->probes; i++) {
        struct row *r = probe(c, address, i);
        if (atomic_load(&r->address) != address)
            continue;
        uint32_t owner = atomic_load(&r->owner), count = atomic_load(&r->count);
        /* read again: it may have changed hands */
        if (is_alive(c, owner) && atomic_load(&r->address) == address &&
            atomic_load(&r->owner) == owner)
            sum += count;
    }
    return sum;
}

bool connection_table_add_address(struct connection_table *c, unsigned slot, const void *address,
                                  size_t size, size_t max, uint32_t *row)
{
    uint64_t h = hash(c, address, size);
    struct row *own = own_row(c, atomic_load(&c->owner[slot]), h);
    *row = 0;
    if (own == NULL)
        return true;
    *row = (uint32_t)(own - c->row) + 1;
    atomic_fetch_add(&own->count, 1);
    if (max == 0 || sum_rows(c, h) <= max)
        return true;
    connection_table_remove_address(c, *row);
    *row = 0;
    return false;
}

void connection_table_remove_address(struct connection_table *c, uint32_t row)
{
    if (row != 0 && atomic_fetch_sub(&c->row[row - 1].count, 1) == 1)
        atomic_store(&c->row[row - 1].owner, 0);
}

size_t connection_table_address_count(const struct connection_table *c, uint32_t row)
{
    return row == 0 ? 1 : atomic_load_explicit(&c->row[row - 1].count, memory_order_relaxed);
}

/* ---- evictions and events ---- */

void connection_table_request_eviction(struct connection_table *c, unsigned slot)
{
    atomic_store(&c->eviction_for, slot + 1);
}

void connection_table_cancel_eviction(struct connection_table *c, unsigned slot)
{
    uint32_t mine = slot + 1;
    if (atomic_load_explicit(&c->eviction_for, memory_order_relaxed) == mine)
        atomic_compare_exchange_strong(&c->eviction_for, &mine, 0);
}

bool connection_table_eviction_requested(const struct connection_table *c, unsigned slot)
{
    uint32_t slot_for = atomic_load_explicit(&c->eviction_for, memory_order_relaxed);
    return slot_for != 0 && slot_for != slot + 1;
}

bool connection_table_take_eviction(struct connection_table *c)
{
    return atomic_exchange(&c->eviction_for, 0) != 0;
}

/* rounded up, so that some process has less while not all connections are open */
int connection_table_compare_share(const struct connection_table *c, unsigned slot, size_t max)
{
    size_t processes = 0, open = atomic_load(&c->open[slot]);
    for (uint32_t i = 0, end = atomic_load(&c->slots_used); i < end; i++)
        processes += atomic_load(&c->owner[i]) != 0;
    size_t share = processes == 0 ? max : (max + processes - 1) / processes;
    return open < share ? -1 : open > share;
}

void connection_table_count_event(struct connection_table *c, enum connection_table_event event)
{
    atomic_fetch_add_explicit(&c->events[event], 1, memory_order_relaxed);
}

uint64_t connection_table_event_count(const struct connection_table *c,
                                      enum connection_table_event event)
{
    return atomic_load_explicit(&c->events[event], memory_order_relaxed);
}
