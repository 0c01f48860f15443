/*
 * Relays: while another node leads, the changes of each local sender go to that node over a
 * connection of their own, with the sender's id and numbers, and the answers come back.
 *
 *   worker -> CHANGE -> writer of this node -> TLS -> writer of the leader
 *   worker <- ANSWER <- when this node has applied the entry of the answer <- ANSWER
 *
 * When the connection is lost, the sender is disconnected: it connects again and repeats what was
 * not answered, and the leader recognizes what it has executed.
 *
 * The auditors of this node have relays too, and get jobs of the leader over them:
 *
 *   auditor <- JOB, WITHDRAW, SLOT <- writer of this node <- TLS <- writer of the leader
 *   auditor -> RESULT, RETURNED, SUSPECT, TAKE_SLOT, FREE_SLOT -> the same way back
 *
 * When the connection of an auditor with jobs is lost, the auditor is disconnected, which ends its
 * transfers, and the master starts the next one. The leader gives the jobs to another auditor.
 *
 * One more relay of each node carries typing notices both ways. Nothing is repeated on it.
 */
#ifndef ASSAY_WRITER_RELAYS_H
#define ASSAY_WRITER_RELAYS_H

#include "core/writer/nodes.h"
#include "core/writer/typing_notices.h"

struct relay;

struct relays {
    struct process *process;
    struct nodes *nodes;
    struct clients *clients;
    struct leading *leading;
    int epoll;  /* events carry a struct relay */
    bool ready; /* it has events */
    struct relay **list;
    size_t count, capacity;
    struct relay *notices; /* NULL: not connected */
    uint64_t retry_ms;     /* when notices may get a relay again */
    uint64_t logged_ms;
};

/* relays_watch(r, epoll): events carry &r->ready. False: no descriptor. */
bool relays_watch(struct relays *r, int epoll);
void relays_free(struct relays *r);

/*
 * relays_put(r, client, frame): send a frame of a local sender to the leader. False: no node leads.
 * relays_pass(client, frame): send a frame of a local auditor that has a relay.
 * relays_tell(r, notice): send a typing notice to the leader, if there is a connection for them.
 * relays_step(r): connect auditors and notices, send, receive, and pass on answers; once a turn.
 * relays_remove_gone(r): end those of disconnected senders; before the senders are freed.
 */
bool relays_put(struct relays *r, struct client *client, const struct frame *frame);
void relays_pass(struct client *client, const struct frame *frame);
void relays_tell(struct relays *r, const struct typing_notice *notice);
void relays_step(struct relays *r);
void relays_remove_gone(struct relays *r);

#endif
