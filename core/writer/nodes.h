/*
 * Connections between nodes of a cluster: the key that all nodes have, and the address of this one.
 * While it leads, other nodes send the changes of their workers and commands there: one connection
 * for each of these senders, with the frames that a local sender sends. Their auditors and typing
 * notices have connections too. A node that joins gets a copy of the store there at any time.
 */
#ifndef ASSAY_WRITER_NODES_H
#define ASSAY_WRITER_NODES_H

#include "core/ipc/channel_tls.h"
#include "core/writer/clients.h"
#include "core/writer/leading.h"

struct nodes {
    struct process *process;
    struct clients *clients;
    const struct leading *leading;
    struct channel_tls_context *tls; /* NULL: no cluster */
    int fd;                          /* listens; -1: no cluster */
    bool arrived;                    /* a connection waits */
    uint64_t logged_ms;              /* the last line about a refused node */
};

/*
 * nodes_start(n, epoll): read the key and listen, if the configuration has a cluster; events carry
 * &n->arrived. False: the log says why.
 */
bool nodes_start(struct nodes *n, int epoll);
void nodes_free(struct nodes *n);

/*
 * nodes_accept(n): accept all that wait. While this node does not lead, it takes only COPY of them.
 * nodes_end_slow(n): end connections whose handshake takes too long.
 * nodes_say_refused(n, client, why): ${client} did not prove that it has the key. The log gets a
 * line every few seconds.
 */
void nodes_accept(struct nodes *n);
void nodes_end_slow(struct nodes *n);
void nodes_say_refused(struct nodes *n, const struct client *client, const char *why);

#endif
