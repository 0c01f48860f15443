/*
 * Changes that arrived while no node led. They are held for a while, since another node may lead
 * soon, in the order in which they came.
 */
#ifndef ASSAY_WRITER_HELD_CHANGES_H
#define ASSAY_WRITER_HELD_CHANGES_H

#include "core/writer/clients.h"

#define HELD_MS 2000
#define HELD_BYTES (64u << 20) /* more are not held */

struct held_change {
    struct client *client;
    struct frame_head head;
    char *payload;
    uint64_t until_ms;
};

struct held_changes {
    struct held_change *list;
    size_t count, room, bytes;
};

/*
 * held_add(h, client, frame): a copy. False: so much is held that it is not.
 * held_frame(c): as it arrived. held_drop(h, count): free the first ${count}.
 * held_forget(h): drop those of disconnected clients.
 */
bool held_add(struct held_changes *h, struct client *client, const struct frame *frame);
struct frame held_frame(const struct held_change *c);
void held_drop(struct held_changes *h, size_t count);
void held_forget(struct held_changes *h);
void held_free(struct held_changes *h);

#endif
