/*
 * Copies of the store for nodes that join. A thread for each copy takes over the connection and
 * sends the store (core/cluster/store_copy.h). The loop does not wait for it.
 */
#ifndef ASSAY_WRITER_COPIES_H
#define ASSAY_WRITER_COPIES_H

#include "core/writer/clients.h"

#include <stdatomic.h>

#define COPIES_MAX 2 /* at once; each keeps the pages of its snapshot in use */

struct copy;

struct copies {
    struct store *store;
    int epoll;
    struct copy *list;
    size_t count;
    atomic_bool ending;
};

/*
 * copies_start(c, client): sends the store to this client, which the loop then treats as gone.
 * copies_step(c): frees ended threads; call it once a turn.
 * copies_end(c): ends all. False: a thread did not end in time; call _exit.
 */
void copies_start(struct copies *c, struct client *client);
void copies_step(struct copies *c);
bool copies_end(struct copies *c);

#endif
