/*
 * Typing notices (core/ipc/typing_notice.h) in the writer of a node: from its workers, and from
 * other nodes. Each node that follows has one connection to the leader for them (relays.h).
 *
 * Memory is bounded by TYPING_NOTICE_PENDING for each connection, and work by NOTICES_A_SECOND.
 */
#ifndef ASSAY_WRITER_TYPING_NOTICES_H
#define ASSAY_WRITER_TYPING_NOTICES_H

#include "core/ipc/typing_notice.h"
#include "core/writer/clients.h"

#define NOTICES_A_SECOND 1000 /* of one worker or node; more are dropped */

/*
 * typing_notices_get(client, frame, out): of a frame TYPING. False: it is not valid, or this client
 * may not send it.
 */
bool typing_notices_get(const struct client *client, const struct frame *frame,
                        struct typing_notice *out);

/* typing_notices_count(client, now_ms): False: it has sent so many that this one is dropped. */
bool typing_notices_count(struct client *client, uint64_t now_ms);

/* typing_notices_show(p, notice, now_ms): in the typing table of this node. */
void typing_notices_show(const struct process *p, const struct typing_notice *notice,
                         uint64_t now_ms);

/* typing_notices_tell(c, from, notice): on the leader: to all nodes but the one of ${from}. */
void typing_notices_tell(struct clients *c, const struct client *from,
                         const struct typing_notice *notice);

#endif
