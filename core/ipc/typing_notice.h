/*
 * A typing notice, in a cluster: someone in a conversation begins or stops typing, for the typing
 * tables of all nodes (core/shm/typing_table.h). It says how long, because clocks of nodes differ.
 * It is lost where a process is slow or away: the typing then shows too late or not, and it ends by
 * itself.
 *
 *   worker -> writer of its node -> writer of the leader -> writers of the other nodes
 */
#ifndef ASSAY_IPC_TYPING_NOTICE_H
#define ASSAY_IPC_TYPING_NOTICE_H

#include "core/ipc/channel.h"
#include "core/shm/typing_table.h"

#define TYPING_NOTICE_PENDING (64u << 10) /* bytes; a channel with so many to send gets no more */

struct typing_notice {
    struct ulid conversation;
    enum typist who;
    unsigned left_ms; /* at most TYPING_MS; 0: ${who} stops typing */
};

/* typing_notice_put(c, notice): queue it, or drop it where TYPING_NOTICE_PENDING bytes wait. */
void typing_notice_put(struct channel *c, const struct typing_notice *notice);

/* typing_notice_get(frame, out): of a frame TYPING. False: it is not valid. */
bool typing_notice_get(const struct frame *frame, struct typing_notice *out);

#endif
