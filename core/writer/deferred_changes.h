/*
 * Changes that arrive while no node leads. They wait in the order of their arrival, because another
 * node may lead soon.
 */
#ifndef ASSAY_WRITER_DEFERRED_CHANGES_H
#define ASSAY_WRITER_DEFERRED_CHANGES_H

#include "core/writer/clients.h"

#define DEFERRED_MS 2000
#define DEFERRED_BYTES (64u << 20)

struct deferred_change {
    struct client *client;
    struct frame_head head;
    char *payload; /* NULL: it is refused */
    uint64_t until_ms;
};

struct deferred_changes {
    struct deferred_change *list;
    size_t count, capacity, bytes;
};

/*
 * deferred_changes_add(d, client, frame): a copy. Above DEFERRED_BYTES in all, a copy of its head
 * alone, for which deferred_change_is_refused is true: it is refused in its turn, because a client
 * gets answers in the order of its changes. deferred_change_frame(c): the frame as it arrived.
 * deferred_changes_drop(d, count): frees the first ${count}. deferred_changes_forget(d): drops the
 * changes of disconnected clients.
 */
void deferred_changes_add(struct deferred_changes *d, struct client *client,
                          const struct frame *frame);
bool deferred_change_is_refused(const struct deferred_change *c);
struct frame deferred_change_frame(const struct deferred_change *c);
void deferred_changes_drop(struct deferred_changes *d, size_t count);
void deferred_changes_forget(struct deferred_changes *d);
void deferred_changes_free(struct deferred_changes *d);

#endif
