/*
 * Copies of the store for nodes that join: a thread for each takes over the connection and sends
 * (core/cluster/store_copy.h). The loop neither reads nor waits for it.
 */
#ifndef ASSAY_WRITER_COPIES_H
#define ASSAY_WRITER_COPIES_H

#include "core/writer/clients.h"

#include <stdatomic.h>

#define COPIES_MAX 2 /* at once: each keeps pages of its snapshot in use */

struct copy;

struct copies {
    struct store *store;
    int epoll;
    struct copy *list;
    size_t count;
    atomic_bool ending;
};

/*
 * copies_start(c, client): send the store to this client, which is gone for the loop.
 * copies_step(c): free those that have ended; once a turn.
 * copies_end(c): end all. False: one did not end in time, and the process must _exit.
 */
void copies_start(struct copies *c, struct client *client);
void copies_step(struct copies *c);
bool copies_end(struct copies *c);

#endif
