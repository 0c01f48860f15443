/*
 * Changes that arrived while no node led. They are held for a while, since another node may lead
 * soon, in the order in which they came.
 */
#ifndef ASSAY_WRITER_HELD_CHANGES_H
#define ASSAY_WRITER_HELD_CHANGES_H

#include "core/writer/clients.h"

#define HELD_MS 2000
#define HELD_BYTES (64u << 20)

struct held_change {
    struct client *client;
    struct frame_head head;
    char *payload; /* NULL: it is refused */
    uint64_t until_ms;
};

struct held_changes {
    struct held_change *list;
    size_t count, room, bytes;
};

/*
 * held_add(h, client, frame): a copy; above HELD_BYTES of all only its head, and held_is_refused is
 * true then: it is refused in its turn, since a client gets answers in the order of its changes.
 * held_frame(c): as it arrived. held_drop(h, count): free the first ${count}.
 * held_forget(h): drop those of disconnected clients.
 */
void held_add(struct held_changes *h, struct client *client, const struct frame *frame);
bool held_is_refused(const struct held_change *c);
struct frame held_frame(const struct held_change *c);
void held_drop(struct held_changes *h, size_t count);
void held_forget(struct held_changes *h);
void held_free(struct held_changes *h);

#endif
