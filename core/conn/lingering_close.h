/*
 * Connections that were answered before their clients had sent all. To close one then is to reset it, and the reset takes the answer with it
 * from the client's hands. So its descriptor outlives it here: our side is closed, and what still comes is thrown away until the client has
 * seen that, or for a time. One per worker.
 */
#ifndef ASSAY_CONN_LINGERING_CLOSE_H
#define ASSAY_CONN_LINGERING_CLOSE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct lingering;

/* lingering_new(loop, most): for so many at once; NULL when out of memory. lingering_free closes what is left; NULL does nothing. */
struct lingering *lingering_new(void *loop, size_t most);
void lingering_free(struct lingering *l);

/* linger(l, fd, now_ms): take over ${fd}, a connection that has been answered and closed but for this descriptor. */
void linger(struct lingering *l, int fd, uint64_t now_ms);

/* lingering_tick(l, now_ms): let go of those whose time is over. lingering_count: how many are left. */
void lingering_tick(struct lingering *l, uint64_t now_ms);
size_t lingering_count(const struct lingering *l);

#endif
