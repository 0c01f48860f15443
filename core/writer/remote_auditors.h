/*
 * On the node that leads a cluster: the auditors of other nodes, and the host slots of the cluster.
 *
 * A remote auditor is a client like an auditor of this node. Its index in the job queue is above
 * those of this node's auditors, and is free again when it has left. It is blamed for the death of
 * its auditor only when its node says so: a connection that ends may be a node that ends.
 *
 * Each node bounds the connections of its auditors to a host by shared memory
 * (core/shm/host_slots.h). In a cluster an auditor then asks the leader for one of the two slots
 * that the host has over all nodes, before each connection.
 */
#ifndef ASSAY_WRITER_REMOTE_AUDITORS_H
#define ASSAY_WRITER_REMOTE_AUDITORS_H

#include "core/writer/clients.h"
#include "core/writer/job_queue.h"
#include "core/writer/leading.h"

/*
 * After that long without a frame it is disconnected, and its slots are free. A node that is cut
 * off notices it earlier (core/ipc/channel_tls.c) and ends its transfers; a node that is stopped
 * cannot.
 */
#define REMOTE_AUDITOR_SILENT_MS 15000

struct host_slots;

struct remote_auditors {
    const struct leading *leading;
    struct clients *clients;
    struct job_queue *queue;
    struct host_slots *slots; /* NULL: no cluster; held by an auditor's index + 1 */
    uint64_t turn_ms, logged_ms;
};

/* remote_auditors_start(r): False: out of memory. */
bool remote_auditors_start(struct remote_auditors *r);
void remote_auditors_free(struct remote_auditors *r);

/*
 * remote_auditors_joined(r, client, frame): a client of another node sends AUDITOR; it is
 * disconnected when there are too many.
 * remote_auditors_left(r, client): an auditor, also one of this node, has left the job queue.
 * remote_auditors_end_silent(r): disconnect those that send nothing; once a turn.
 */
void remote_auditors_joined(struct remote_auditors *r, struct client *client,
                            const struct frame *frame);
void remote_auditors_left(struct remote_auditors *r, const struct client *client);
void remote_auditors_end_silent(struct remote_auditors *r);

/* An auditor of any node takes and frees a slot. A node that does not lead gives none. */
void remote_auditors_take_slot(struct remote_auditors *r, struct client *client,
                               const struct frame *frame);
void remote_auditors_free_slot(struct remote_auditors *r, const struct client *client,
                               const struct frame *frame);

#endif
