#include "core/conn/eviction_internal.h"

#include "core/conn/conn_internal.h"
#include "core/shm/connection_table.h"

#include <stdlib.h>
#include <string.h>

#define STALE_MS 400
/* a first request may be on its way for so long, and would be lost */
#define FIRST_REQUEST_MS 50
/* without progress for longer, which is more than a round trip, an upload or response is slow */
#define SLOW_MS 200
#define CANDIDATES 32 /* kept of one scan */
/* between scans, and the lifetime of their candidates: scans take less than 1 % of the time */
#define SCAN_EVERY_MS(connections) (10 + (connections) / 100)

/* In ascending order: the last is evicted first. */
enum eviction_class {
    EVICT_NEVER,
    EVICT_STREAM,
    EVICT_IDLE,
    EVICT_HEAD,
    EVICT_SLOW_RESPONSE,
    EVICT_SLOW_BODY,
    EVICT_LONG_IDLE,
    EVICT_SLOW_HEAD,
};

struct candidate {
    struct conn *conn;
    uint64_t rank; /* the largest is evicted first */
    uint64_t age;
};
#define RANK_CLASS(rank) ((rank) >> 56) /* the bit of a heavy address, and the class */

struct eviction {
    const struct loop *loop;
    struct conn *ring;
    struct candidate candidates[CANDIDATES]; /* ascending by rank */
    size_t count;
    uint64_t scanned_ms;
    uint64_t best_class; /* of the last scan; lower ones may be outranked by newer connections */
    bool none_found;     /* by the last scan */
};

struct eviction *eviction_new(const struct loop *loop, struct conn *ring)
{
    struct eviction *eviction = calloc(1, sizeof(*eviction));
    if (eviction != NULL)
        *eviction = (struct eviction){.loop = loop, .ring = ring};
    return eviction;
}

void eviction_free(struct eviction *eviction)
{
    free(eviction);
}

/* ---- rank ---- */

/* no complete request head has arrived yet */
static bool is_new(const struct conn *c)
{
    return c->requests == 0 && !c->head_done;
}

/* Time without progress. Of a new connection since its admission: single bytes do not help. */
static uint64_t age_of(const struct conn *c, uint64_t now)
{
    if (c->request != NULL || c->head_done)
        return now - c->progress_ms;
    return now - (is_new(c) ? c->admitted_ms : c->phase_ms);
}

static enum eviction_class class_of(struct conn *c, uint64_t now, bool heavy)
{
    if (c->ended || !c->counted)
        return EVICT_NEVER;
    if (c->request != NULL) {
        if (c->streaming)
            return heavy ? EVICT_STREAM : EVICT_NEVER;
        return c->sending && age_of(c, now) >= SLOW_MS ? EVICT_SLOW_RESPONSE : EVICT_NEVER;
    }
    if (c->proxy_read == NULL && c->socket->input->size > 0)
        conn_note_input(c, now);
    bool stale = age_of(c, now) >= STALE_MS;
    if (c->head_done)
        return age_of(c, now) >= SLOW_MS ? EVICT_SLOW_BODY : EVICT_NEVER;
    if (is_new(c) && age_of(c, now) < FIRST_REQUEST_MS)
        return EVICT_NEVER;
    if (is_new(c) || c->receiving)
        return stale ? EVICT_SLOW_HEAD : EVICT_HEAD;
    return stale ? EVICT_LONG_IDLE : EVICT_IDLE;
}

/* The checks that cost a system call. */
static bool may_evict(struct conn *c, enum eviction_class class)
{
    if (class == EVICT_SLOW_RESPONSE)
        return !conn_made_progress(c, conn_acked_bytes(c));
    return class == EVICT_STREAM || conn_input_empty(c);
}

static size_t address_connections(const struct eviction *eviction, const struct conn *c)
{
    return c->shared_address ? 1
                             : connection_table_address_count(
                                   eviction->loop->process->connection_table, c->address);
}

static bool is_heavy(const struct eviction *eviction, const struct conn *c, size_t connections)
{
    size_t count = address_connections(eviction, c);
    return count > 1 && count > connections / EVICTION_HEAVY_SHARE;
}

static uint64_t rank_of(const struct eviction *eviction, struct conn *c, size_t connections,
                        enum eviction_class *class)
{
    size_t count = address_connections(eviction, c);
    bool heavy = is_heavy(eviction, c, connections);
    *class = class_of(c, eviction->loop->now_ms, heavy);
    uint64_t size = count == 0 ? 0 : 64 - (uint64_t)__builtin_clzll(count);
    return (uint64_t)heavy << 60 | (uint64_t) * class << 56 | size << 48 |
           (age_of(c, eviction->loop->now_ms) & 0xffffffffff);
}

/* ---- candidates ---- */

static void add_candidate(struct eviction *eviction, struct candidate one,
                          enum eviction_class class)
{
    struct candidate *all = eviction->candidates;
    size_t at = 0;
    bool full = eviction->count == CANDIDATES;
    if ((full && one.rank <= all[0].rank) || !may_evict(one.conn, class))
        return;
    if (full)
        memmove(all, all + 1, --eviction->count * sizeof(one));
    while (at < eviction->count && all[at].rank < one.rank)
        at++;
    memmove(all + at + 1, all + at, (eviction->count - at) * sizeof(one));
    all[at] = one;
    eviction->count++;
}

static void scan(struct eviction *eviction, size_t connections)
{
    enum eviction_class class;
    eviction->count = 0;
    eviction->scanned_ms = eviction->loop->now_ms;
    for (struct conn *c = eviction->ring->next; c != eviction->ring; c = c->next) {
        struct candidate one = {c, rank_of(eviction, c, connections, &class),
                                age_of(c, eviction->scanned_ms)};
        if (class != EVICT_NEVER)
            add_candidate(eviction, one, class);
    }
    eviction->best_class =
        eviction->count > 0 ? RANK_CLASS(eviction->candidates[eviction->count - 1].rank) : 0;
}

/* It made no progress since the scan. */
static bool is_still_valid(const struct eviction *eviction, const struct candidate *one,
                           size_t connections)
{
    enum eviction_class class;
    uint64_t rank = rank_of(eviction, one->conn, connections, &class);
    return class != EVICT_NEVER && RANK_CLASS(rank) >= RANK_CLASS(one->rank) &&
           age_of(one->conn, eviction->loop->now_ms) >= one->age && may_evict(one->conn, class);
}

struct conn *eviction_find(struct eviction *eviction, size_t connections)
{
    if (eviction->loop->now_ms - eviction->scanned_ms >= SCAN_EVERY_MS(connections))
        eviction->none_found = false, eviction->count = 0;
    for (int scans = 0; scans < 2 && !eviction->none_found; scans++) {
        for (; eviction->count > 0; eviction->count--) {
            const struct candidate *best = &eviction->candidates[eviction->count - 1];
            if (RANK_CLASS(best->rank) != eviction->best_class)
                break;
            if (is_still_valid(eviction, best, connections))
                return best->conn;
        }
        if (scans == 0)
            scan(eviction, connections);
    }
    eviction->none_found = true;
    return NULL;
}

bool eviction_protects(const struct eviction *eviction, struct conn *c, const struct conn *newcomer,
                       size_t connections)
{
    if (is_heavy(eviction, c, connections) ||
        (newcomer != NULL && !is_heavy(eviction, newcomer, connections)))
        return false;
    enum eviction_class class = class_of(c, eviction->loop->now_ms, false);
    return class == EVICT_HEAD || class == EVICT_IDLE;
}

void eviction_forget(struct eviction *eviction, struct conn *c)
{
    for (size_t i = 0; i < eviction->count; i++)
        if (eviction->candidates[i].conn == c) {
            memmove(eviction->candidates + i, eviction->candidates + i + 1,
                    (--eviction->count - i) * sizeof(eviction->candidates[0]));
            return;
        }
}
