/* The connections of one client address: max_connections_per_ip. */
#include "core/conn/conn_internal.h"

#include "core/base/log.h"
#include "core/shm/connection_table.h"

#include <netinet/in.h>

/* False: the address may have many clients (a proxy, an exempt network), so it has no limit. */
static bool find_client(struct conn *c, struct ip *ip)
{
    const struct conf *conf = c->loop->conf;
    struct sockaddr_storage peer = {0};
    return !c->internal && !c->direct &&
           h2o_socket_getpeername(c->socket, (struct sockaddr *)&peer) != 0 &&
           ip_of((struct sockaddr *)&peer, ip) && !cidr_list_has(&conf->trusted_proxies, ip) &&
           !cidr_list_has(&conf->limits_exempt, ip);
}

static void warn_per_ip(struct acceptor *a, const struct ip *ip)
{
    char text[INET6_ADDRSTRLEN];
    if (a->warned_per_ip_ms != 0 && a->loop->now_ms - a->warned_per_ip_ms < WARN_EVERY_MS)
        return;
    ip_text(ip, text);
    log_warn("refusing a connection from %s: it has %u open, the limit max_connections_per_ip",
             text, a->loop->conf->max_connections_per_ip);
    a->warned_per_ip_ms = a->loop->now_ms;
}

void conn_refuse(struct conn *c, bool tls)
{
    connection_table_count_event(acceptor_connection_table(c->acceptor), CONNECTIONS_REFUSED);
    if (!tls && conn_send_error(c, "503 Service Unavailable", "Retry-After: 1\r\n", "unavailable",
                                "There are too many connections from your address. Close some."))
        conn_linger(c);
    h2o_socket_close(c->socket);
}

bool conn_count_address(struct conn *c, bool tls)
{
    struct acceptor *a = c->acceptor;
    struct limiter_key key;
    struct ip ip;
    c->shared_address = !find_client(c, &ip);
    if (c->shared_address)
        return true;
    limiter_key_make(BY_IP, c->loop->conf->limits_ipv6_prefix, &(struct limiter_caller){.ip = &ip},
                     &key);
    if (connection_table_add_address(acceptor_connection_table(a),
                                     c->loop->process->connection_slot, key.bytes, key.size,
                                     c->loop->conf->max_connections_per_ip, &c->address))
        return true;
    warn_per_ip(a, &ip);
    conn_refuse(c, tls);
    return false;
}
