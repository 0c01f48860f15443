#include "core/conn/eviction.h"

#include "core/shm/connection_table.h"

#include <linux/tcp.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#define STALE_MS 400
/* so long a newcomer's first request may be on its way: closed before that, it would go unanswered */
#define NEW_MS 50
/* a body or an answer is slow of which so many bytes take longer than that, which is more than a round trip */
#define PACE_BYTES 2048
#define PACE_MS 200
#define CANDIDATES 32     /* found at one look at all connections */
/* where none was found; what was found is no older either: less than a hundredth of the time goes into looking */
#define LOOK_EVERY_MS(connections) (10 + (connections) / 100)

enum turn { NEVER, STREAM, REST, HEAD, SLOW_ANSWER, SLOW_BODY, LONG_REST, SLOW_HEAD };

struct candidate {
    struct conn *conn;
    uint64_t rank; /* larger goes first */
    uint64_t age;
};
#define CLASS(rank) ((rank) >> 56) /* crowding, and what it is at */

struct eviction {
    const struct loop *loop;
    struct conn *ring;
    struct candidate found[CANDIDATES]; /* ascending */
    size_t count;
    uint64_t looked_ms, class; /* of the best then: whoever came later may go before those of another */
    bool fruitless; /* the last look found none */
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

/* ---- what a connection is at ---- */

bool conn_quiet(const struct conn *c)
{
    int waiting = 0;
    return ioctl(h2o_socket_get_fd(c->socket), FIONREAD, &waiting) != 0 || waiting == 0;
}

uint64_t conn_taken(const struct conn *c)
{
    struct tcp_info info = {0};
    socklen_t size = sizeof(info);
    if (getsockopt(h2o_socket_get_fd(c->socket), IPPROTO_TCP, TCP_INFO, &info, &size) == 0)
        return info.tcpi_bytes_acked;
    int unsent = 0;
    return ioctl(h2o_socket_get_fd(c->socket), TIOCOUTQ, &unsent) == 0 ? (uint64_t)c->socket->bytes_written - (uint64_t)unsent
                                                                       : c->sent + 1;
}

bool conn_keeps_pace(const struct conn *c, uint64_t taken)
{
    return taken - c->paced >= PACE_BYTES;
}

static bool head_complete(const h2o_buffer_t *input)
{
    size_t n = input->size < CONN_HEAD_MAX ? input->size : CONN_HEAD_MAX;
    return memmem(input->bytes, n, "\r\n\r\n", 4) != NULL || memmem(input->bytes, n, "\n\n", 2) != NULL;
}

void conn_received(struct conn *c, uint64_t now)
{
    if (!c->receiving) {
        c->receiving = true;
        c->since_ms = now;
    }
    size_t size = c->socket->input->size;
    if (!c->head_done && head_complete(c->socket->input)) {
        c->head_done = true;
        c->since_ms = now;
        /* it may have been whole for long, but no longer than the connection is there */
        c->grown = c->requests == 0 ? 0 : size;
        c->paced_ms = c->requests == 0 ? c->came_ms : now;
    }
    if (c->head_done && size >= c->grown + PACE_BYTES) {
        c->grown = size;
        c->paced_ms = now;
    }
}

/* ---- whose turn it is ---- */

/* nothing of it was ever whole */
static bool is_fresh(const struct conn *c)
{
    return c->requests == 0 && !c->head_done;
}

/* how long it is at what it is at; a byte more makes a fresh one no younger */
static uint64_t age_of(const struct conn *c, uint64_t now)
{
    if (c->request != NULL || c->head_done)
        return now - c->paced_ms;
    return now - (is_fresh(c) ? c->came_ms : c->since_ms);
}

static enum turn turn_of(struct conn *c, uint64_t now, bool crowding)
{
    if (c->ended || !c->seated)
        return NEVER;
    if (c->request != NULL) {
        if (c->streaming)
            return crowding ? STREAM : NEVER;
        return c->sending && age_of(c, now) >= PACE_MS ? SLOW_ANSWER : NEVER;
    }
    if (c->proxy_header == NULL && c->socket->input->size > 0)
        conn_received(c, now);
    bool stale = age_of(c, now) >= STALE_MS;
    if (c->head_done)
        return age_of(c, now) >= PACE_MS ? SLOW_BODY : NEVER;
    if (is_fresh(c) && age_of(c, now) < NEW_MS)
        return NEVER;
    if (is_fresh(c) || c->receiving)
        return stale ? SLOW_HEAD : HEAD;
    return stale ? LONG_REST : REST;
}

static bool may_go(struct conn *c, enum turn turn)
{
    if (turn == SLOW_ANSWER)
        return !conn_keeps_pace(c, conn_taken(c));
    return turn == STREAM || conn_quiet(c);
}

static size_t held_by(const struct eviction *eviction, const struct conn *c)
{
    return c->stands_for_many ? 1 : connection_table_address_count(eviction->loop->process->connection_table, c->share);
}

static bool crowds(const struct eviction *eviction, const struct conn *c, size_t connections)
{
    size_t held = held_by(eviction, c);
    return held > 1 && held > connections / EVICTION_CROWDING;
}

static uint64_t rank_of(const struct eviction *eviction, struct conn *c, size_t connections, enum turn *turn)
{
    size_t held = held_by(eviction, c);
    bool crowding = crowds(eviction, c, connections);
    *turn = turn_of(c, eviction->loop->now_ms, crowding);
    uint64_t size = held == 0 ? 0 : 64 - (uint64_t)__builtin_clzll(held);
    return (uint64_t)crowding << 60 | (uint64_t)*turn << 56 | size << 48 | (age_of(c, eviction->loop->now_ms) & 0xffffffffff);
}

/* among the best, in their order, if it may go; the least of them falls out */
static void keep(struct eviction *eviction, struct candidate one, enum turn turn)
{
    size_t at = 0;
    bool full = eviction->count == CANDIDATES;
    if ((full && one.rank <= eviction->found[0].rank) || !may_go(one.conn, turn))
        return;
    if (full)
        memmove(eviction->found, eviction->found + 1, --eviction->count * sizeof(one));
    while (at < eviction->count && eviction->found[at].rank < one.rank)
        at++;
    memmove(eviction->found + at + 1, eviction->found + at, (eviction->count - at) * sizeof(one));
    eviction->found[at] = one;
    eviction->count++;
}

static void look(struct eviction *eviction, size_t connections)
{
    enum turn turn;
    eviction->count = 0;
    eviction->looked_ms = eviction->loop->now_ms;
    for (struct conn *c = eviction->ring->next; c != eviction->ring; c = c->next) {
        struct candidate one = {c, rank_of(eviction, c, connections, &turn), age_of(c, eviction->looked_ms)};
        if (turn != NEVER)
            keep(eviction, one, turn);
    }
    eviction->class = eviction->count > 0 ? CLASS(eviction->found[eviction->count - 1].rank) : 0;
}

/* it is at what it was at when it was found, and may go */
static bool is_good(const struct eviction *eviction, const struct candidate *one, size_t connections)
{
    enum turn turn;
    uint64_t rank = rank_of(eviction, one->conn, connections, &turn);
    return turn != NEVER && CLASS(rank) >= CLASS(one->rank) && age_of(one->conn, eviction->loop->now_ms) >= one->age && may_go(one->conn, turn);
}

struct conn *eviction_find(struct eviction *eviction, size_t connections)
{
    if (eviction->loop->now_ms - eviction->looked_ms >= LOOK_EVERY_MS(connections))
        eviction->fruitless = false, eviction->count = 0;
    for (int looks = 0; looks < 2 && !eviction->fruitless; looks++) {
        for (; eviction->count > 0 && CLASS(eviction->found[eviction->count - 1].rank) == eviction->class; eviction->count--)
            if (is_good(eviction, &eviction->found[eviction->count - 1], connections))
                return eviction->found[eviction->count - 1].conn;
        if (looks == 0)
            look(eviction, connections);
    }
    eviction->fruitless = true;
    return NULL;
}

bool eviction_spares(const struct eviction *eviction, struct conn *c, const struct conn *newcomer, size_t connections)
{
    if (crowds(eviction, c, connections) || (newcomer != NULL && !crowds(eviction, newcomer, connections)))
        return false;
    enum turn turn = turn_of(c, eviction->loop->now_ms, false);
    return turn == HEAD || turn == REST;
}

void eviction_forget(struct eviction *eviction, struct conn *c)
{
    for (size_t i = 0; i < eviction->count; i++)
        if (eviction->found[i].conn == c) {
            memmove(eviction->found + i, eviction->found + i + 1, (--eviction->count - i) * sizeof(eviction->found[0]));
            return;
        }
}
