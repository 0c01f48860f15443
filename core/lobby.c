#include "core/doors_parts.h"

#include "core/crowd.h"
#include "core/log.h"
#include "core/room.h"

#include <netinet/in.h>
#include <poll.h>

#define LOBBY_PATIENT_MS 1000 /* whoever has waited for so long has one place in so many */
#define LOBBY_PATIENT_OF 4
#define LOBBY_MAX 64 /* past it those of a crowding address go, or nobody is let in */

/* connections of its address, here: those that wait and those that do not */
static size_t share_of(const struct conn *c)
{
    return c->stands_for_many ? 1 : crowd_share(doors_crowd(c->worker->doors), c->share);
}

/* who is to go where not all can wait: the newest of the address that has most, if that is more than one in so many; NULL: nobody */
static struct conn *crowding(const struct doors *d)
{
    struct conn *its = NULL;
    size_t most = 1;
    for (struct conn *c = d->lobby.next; c != &d->lobby; c = c->next)
        if (share_of(c) > 1 && share_of(c) >= most) {
            most = share_of(c);
            its = c;
        }
    return most > (d->connections + d->waiting) / ROOM_CROWDING ? its : NULL;
}

bool lobby_takes(const struct doors *d)
{
    return d->waiting < LOBBY_MAX || crowding(d) != NULL;
}

static void warn_of_crowd(struct doors *d, const struct conn *c)
{
    char text[INET6_ADDRSTRLEN];
    struct sockaddr_storage peer = {0};
    struct ip ip;
    if ((d->crowded_ms != 0 && d->worker->now_ms - d->crowded_ms < WARN_EVERY_MS) ||
        h2o_socket_getpeername(c->socket, (struct sockaddr *)&peer) == 0 || !ip_of((struct sockaddr *)&peer, &ip))
        return;
    ip_text(&ip, text);
    log_warn("connections from %s are closed: max_connections is reached, and most of those that wait are its", text);
    d->crowded_ms = d->worker->now_ms;
}

void lobby_enter(struct doors *d, h2o_socket_t *socket, struct door *door)
{
    struct conn *c = conn_new(d, door, socket, true);
    if (c == NULL) {
        h2o_socket_close(socket);
        return;
    }
    if (!conn_arrive(c, door->accept->ssl_ctx != NULL) || d->waiting <= LOBBY_MAX)
        return;
    struct conn *goes = crowding(d);
    if (goes == NULL)
        return;
    warn_of_crowd(d, goes);
    conn_turn_away(goes, goes->door->accept->ssl_ctx != NULL);
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
struct conn *lobby_patient(struct doors *d)
{
    struct conn *oldest = d->lobby.next;
    bool patient = oldest != &d->lobby && d->worker->now_ms - oldest->since_ms >= LOBBY_PATIENT_MS;
    return patient && ++d->called % LOBBY_PATIENT_OF == 0 ? oldest : NULL;
}

struct conn *lobby_next(struct doors *d)
{
    struct conn *first = NULL;
    size_t least = SIZE_MAX;
    for (struct conn *c = d->lobby.next; c != &d->lobby; c = c->next)
        if (share_of(c) < least) {
            least = share_of(c);
            first = c;
        }
    return first;
}

void lobby_sweep(struct doors *d)
{
    for (struct conn *c = d->lobby.next, *next; c != &d->lobby; c = next) {
        next = c->next;
        if (is_gone(c))
            h2o_socket_close(c->socket);
    }
}
