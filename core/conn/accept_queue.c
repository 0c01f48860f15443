#include "core/conn/acceptor_internal.h"

#include "core/shm/connection_table.h"
#include "core/base/log.h"
#include "core/conn/eviction.h"

#include <netinet/in.h>
#include <poll.h>

#define ACCEPT_QUEUE_PATIENT_MS 1000 /* whoever has waited for so long has one place in so many */
#define ACCEPT_QUEUE_PATIENT_OF 4
#define ACCEPT_QUEUE_MAX 64 /* past it those of a crowding address go, or nobody is let in */

/* connections of its address, here: those that wait and those that do not */
static size_t share_of(const struct conn *c)
{
    return c->stands_for_many ? 1 : connection_table_address_count(acceptor_connection_table(c->acceptor), c->share);
}

/* who is to go where not all can wait: the newest of the address that has most, if that is more than one in so many; NULL: nobody */
static struct conn *crowding(const struct acceptor *d)
{
    struct conn *its = NULL;
    size_t most = 1;
    for (struct conn *c = d->accept_queue.next; c != &d->accept_queue; c = c->next)
        if (share_of(c) > 1 && share_of(c) >= most) {
            most = share_of(c);
            its = c;
        }
    return most > (d->connections + d->waiting) / EVICTION_CROWDING ? its : NULL;
}

bool accept_queue_takes(const struct acceptor *d)
{
    return d->waiting < ACCEPT_QUEUE_MAX || crowding(d) != NULL;
}

static void warn_of_crowd(struct acceptor *d, const struct conn *c)
{
    char text[INET6_ADDRSTRLEN];
    struct sockaddr_storage peer = {0};
    struct ip ip;
    if ((d->crowded_ms != 0 && d->loop->now_ms - d->crowded_ms < WARN_EVERY_MS) ||
        h2o_socket_getpeername(c->socket, (struct sockaddr *)&peer) == 0 || !ip_of((struct sockaddr *)&peer, &ip))
        return;
    ip_text(&ip, text);
    log_warn("connections from %s are closed: max_connections is reached, and most of those that wait are its", text);
    d->crowded_ms = d->loop->now_ms;
}

void accept_queue_enter(struct acceptor *d, h2o_socket_t *socket, struct endpoint *endpoint)
{
    struct conn *c = conn_new(d, endpoint, socket, true);
    if (c == NULL) {
        h2o_socket_close(socket);
        return;
    }
    if (!conn_arrive(c, endpoint->accept->ssl_ctx != NULL) || d->waiting <= ACCEPT_QUEUE_MAX)
        return;
    struct conn *goes = crowding(d);
    if (goes == NULL)
        return;
    warn_of_crowd(d, goes);
    conn_turn_away(goes, goes->endpoint->accept->ssl_ctx != NULL);
}

/* its client has given up, and asked nothing before */
static bool is_gone(const struct conn *c)
{
    struct pollfd peer = {h2o_socket_get_fd(c->socket), POLLRDHUP, 0};
    if (poll(&peer, 1, 0) <= 0)
        return false;
    return (peer.revents & (POLLHUP | POLLERR)) != 0 || conn_quiet(c);
}

/* The lobby is in the order of coming. */
struct conn *accept_queue_patient(struct acceptor *d)
{
    struct conn *oldest = d->accept_queue.next;
    bool patient = oldest != &d->accept_queue && d->loop->now_ms - oldest->since_ms >= ACCEPT_QUEUE_PATIENT_MS;
    return patient && ++d->called % ACCEPT_QUEUE_PATIENT_OF == 0 ? oldest : NULL;
}

struct conn *accept_queue_next(struct acceptor *d)
{
    struct conn *first = NULL;
    size_t least = SIZE_MAX;
    for (struct conn *c = d->accept_queue.next; c != &d->accept_queue; c = c->next)
        if (share_of(c) < least) {
            least = share_of(c);
            first = c;
        }
    return first;
}

void accept_queue_sweep(struct acceptor *d)
{
    for (struct conn *c = d->accept_queue.next, *next; c != &d->accept_queue; c = next) {
        next = c->next;
        if (is_gone(c))
            h2o_socket_close(c->socket);
    }
}
