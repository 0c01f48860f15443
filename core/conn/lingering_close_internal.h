/*
 * Lingering close: connections answered before the client had sent the whole request. Closing such
 * a socket at once would reset it, and the client could lose the response. So the write side is
 * shut down and the rest of the input discarded, until the client closes or a time limit. One per
 * worker.
 */
#ifndef ASSAY_CONN_LINGERING_CLOSE_INTERNAL_H
#define ASSAY_CONN_LINGERING_CLOSE_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct lingering;

/*
 * lingering_new(loop, most): at most ${most} at once; NULL when memory is short.
 * lingering_free closes what is left; NULL does nothing.
 */
struct lingering *lingering_new(void *loop, size_t most);
void lingering_free(struct lingering *l);

/* lingering_add(l, fd, now_ms): takes over ${fd}, the last descriptor of an answered connection. */
void lingering_add(struct lingering *l, int fd, uint64_t now_ms);

/* lingering_tick(l, now_ms): closes connections whose time limit has passed. */
void lingering_tick(struct lingering *l, uint64_t now_ms);
size_t lingering_count(const struct lingering *l);

#endif
