/*
 * What clients send (core/ipc/channel.h) and what the writer does with it: changes and grading
 * results go into the batch, jobs back into the queue.
 */
#ifndef ASSAY_WRITER_FRAMES_H
#define ASSAY_WRITER_FRAMES_H

#include "core/writer/batch.h"
#include "core/writer/copies.h"
#include "core/writer/deferred_changes.h"
#include "core/writer/relays.h"
#include "core/writer/remote_auditors.h"

struct frames {
    struct process *process;
    struct store *store;
    struct clients *clients;
    struct sequences *sequences;
    struct job_queue *queue;
    struct batch *batch;
    const struct leading *leading;
    struct relays *relays;
    struct copies *copies;
    struct remote_auditors *remote_auditors;
    struct deferred_changes deferred;
};

/* frames_read(f, client): handle everything that has arrived from this client. */
void frames_read(struct frames *f, struct client *client);

/*
 * frames_release_deferred(f): in a cluster: changes that wait for a node that leads go on, or are
 * answered after a while; once a turn.
 */
void frames_release_deferred(struct frames *f);

/* frames_remove_gone(f): remove disconnected clients; after the batch, which points at them. */
void frames_remove_gone(struct frames *f);

#endif
