#include "core/conn/conn_internal.h"

#include "core/base/log.h"
#include "core/conn/eviction_internal.h"
#include "core/shm/connection_table.h"

#include <netinet/in.h>
#include <poll.h>

#define QUEUE_MAX 64
/* every OVERDUE_EVERY-th admission takes the oldest, if it has waited this long */
#define OVERDUE_MS 1000
#define OVERDUE_EVERY 4

/* of its address, in this worker: queued and admitted */
static size_t address_connections(const struct conn *c)
{
    return c->shared_address
               ? 1
               : connection_table_address_count(acceptor_connection_table(c->acceptor), c->address);
}

/* The newest connection of the address with the most, if that address is heavy; or NULL. */
static struct conn *find_heaviest(const struct acceptor *a)
{
    struct conn *heaviest = NULL;
    size_t most = 1;
    for (struct conn *c = a->accept_queue.next; c != &a->accept_queue; c = c->next)
        if (address_connections(c) > 1 && address_connections(c) >= most) {
            most = address_connections(c);
            heaviest = c;
        }
    return most > (a->connections + a->waiting) / EVICTION_HEAVY_SHARE ? heaviest : NULL;
}

bool accept_queue_has_room(const struct acceptor *a)
{
    return a->waiting < QUEUE_MAX || find_heaviest(a) != NULL;
}

static void warn_refused(struct acceptor *a, const struct conn *c)
{
    char text[INET6_ADDRSTRLEN];
    struct sockaddr_storage peer = {0};
    struct ip ip;
    if ((a->warned_queue_ms != 0 && a->loop->now_ms - a->warned_queue_ms < WARN_EVERY_MS) ||
        h2o_socket_getpeername(c->socket, (struct sockaddr *)&peer) == 0 ||
        !ip_of((struct sockaddr *)&peer, &ip))
        return;
    ip_text(&ip, text);
    log_warn("max_connections is reached and the accept queue is full: refusing connections from "
             "%s, which has the most in the queue",
             text);
    a->warned_queue_ms = a->loop->now_ms;
}

void accept_queue_add(struct acceptor *a, h2o_socket_t *socket, struct endpoint *endpoint)
{
    struct conn *c = conn_new(a, endpoint, socket, true);
    if (c == NULL) {
        h2o_socket_close(socket);
        return;
    }
    if (!conn_count_address(c, endpoint->accept->ssl_ctx != NULL) || a->waiting <= QUEUE_MAX)
        return;
    struct conn *refused = find_heaviest(a);
    if (refused == NULL)
        return;
    warn_refused(a, refused);
    conn_refuse(refused, refused->endpoint->accept->ssl_ctx != NULL);
}

/* The client hung up without having sent anything. */
static bool is_abandoned(const struct conn *c)
{
    struct pollfd peer = {h2o_socket_get_fd(c->socket), POLLRDHUP, 0};
    if (poll(&peer, 1, 0) <= 0)
        return false;
    return (peer.revents & (POLLHUP | POLLERR)) != 0 || conn_input_empty(c);
}

struct conn *accept_queue_overdue(struct acceptor *a)
{
    struct conn *oldest = a->accept_queue.next;
    bool overdue = oldest != &a->accept_queue && a->loop->now_ms - oldest->phase_ms >= OVERDUE_MS;
    return overdue && ++a->overdue_turns % OVERDUE_EVERY == 0 ? oldest : NULL;
}

struct conn *accept_queue_next(struct acceptor *a)
{
    struct conn *next = NULL;
    size_t fewest = SIZE_MAX;
    for (struct conn *c = a->accept_queue.next; c != &a->accept_queue; c = c->next)
        if (address_connections(c) < fewest) {
            fewest = address_connections(c);
            next = c;
        }
    return next;
}

void accept_queue_drop_closed(struct acceptor *a)
{
    for (struct conn *c = a->accept_queue.next, *next; c != &a->accept_queue; c = next) {
        next = c->next;
        if (is_abandoned(c))
            h2o_socket_close(c->socket);
    }
}
