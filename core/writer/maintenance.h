/*
 * What the writer does in the background: purging deleted records, deleting what is older than its
 * retention time, the changes of the background threads, sweeping jobs, forgetting senders. The
 * changes go into a batch of their own, after the batch of the callers.
 */
#ifndef ASSAY_WRITER_MAINTENANCE_H
#define ASSAY_WRITER_MAINTENANCE_H

#include "core/writer/jobs.h"
#include "core/writer/leading.h"
#include "core/writer/threads.h"

struct writer_maintenance {
    struct process *process;
    struct store *store;
    struct batch *batch;
    struct sequences *sequences;
    struct writer_jobs *jobs;
    struct writer_threads *threads;
    const struct leading *leading;
    const struct deferred_results *deferred;
    bool purging;       /* CHANGE_PURGE may have something to do */
    uint32_t retaining; /* RETAIN_ bits: what may be past its retention time */
    uint64_t purge_at_ms, sweep_at_ms;
    uint64_t expire_at_ms;   /* of unknown senders, once; 0: done */
    const char *progress;    /* what goes on, as last logged; "": nothing */
    uint64_t progress_at_ms; /* when to look again */
    uint64_t logged_ms;
};

/* writer_maintenance_start(m): start the timers. writer_maintenance_on_time(m): do what is due. */
void writer_maintenance_start(struct writer_maintenance *m);
void writer_maintenance_on_time(struct writer_maintenance *m);

/* writer_maintenance_purge(m): there is something to purge. _sweep(m): sweep the jobs soon. */
void writer_maintenance_purge(struct writer_maintenance *m);
void writer_maintenance_sweep(struct writer_maintenance *m);

/* writer_maintenance_is_due(m): is there a change to add? writer_maintenance_add(m): add it. */
bool writer_maintenance_is_due(const struct writer_maintenance *m);
void writer_maintenance_add(struct writer_maintenance *m);

/* writer_maintenance_publish(m): progress, on the scoreboard and in the log. */
void writer_maintenance_publish(struct writer_maintenance *m);

#endif
