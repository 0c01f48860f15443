/*
 * The change feed: what a commit changed, to those who follow it. Workers get events, the job queue
 * gets jobs, the background threads are woken.
 */
#ifndef ASSAY_WRITER_CHANGE_FEED_H
#define ASSAY_WRITER_CHANGE_FEED_H

#include "core/writer/maintenance.h"
#include "core/writer/shared_keys.h"

struct change_feed {
    struct process *process;
    struct store *store;
    struct clients *clients;
    struct writer_jobs *jobs;
    struct writer_threads *threads;
    struct writer_maintenance *maintenance;
    struct leading *leading;
    struct shared_keys *keys;
};

/*
 * change_feed_notify(f): queue the events of the last commit for the workers.
 * change_feed_position(f): in a cluster: show workers the position, and tell those that wait; after
 * each commit, and once a turn.
 * change_feed_follow(f, items, count): update jobs, threads and maintenance; ${items} are the
 * changes of that commit.
 */
void change_feed_notify(struct change_feed *f);
void change_feed_position(struct change_feed *f);
void change_feed_follow(struct change_feed *f, const struct item *items, size_t count);

#endif
