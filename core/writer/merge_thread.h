/*
 * The maintainer: the thread that merges and rebuilds indexes of reports, finds what a purge
 * deletes, and deletes files that are not in use (store/maintenance.h), beside the loop of the
 * writer, which carries out its changes (background_thread.h).
 *
 *   commit -> EVENT_MAINTENANCE -> background_thread_wake -> the thread steps
 */
#ifndef ASSAY_WRITER_MERGE_THREAD_H
#define ASSAY_WRITER_MERGE_THREAD_H

#include "core/writer/background_thread.h"

struct merge_thread;

/* merge_thread_new(store): NULL: the thread cannot start, and the log says why. */
struct merge_thread *merge_thread_new(struct store *store);
/*
 * merge_thread_end(m): as background_thread_end. The files of a step that is left have no name, so the
 * next maintainer deletes them. merge_thread_free(m): after the end.
 */
bool merge_thread_end(struct merge_thread *m);
void merge_thread_free(struct merge_thread *m);
struct background_thread *merge_thread_loop(struct merge_thread *m);

/* merge_thread_progress(m, out): as maintenance_progress. */
void merge_thread_progress(struct merge_thread *m, struct store_maintenance_status *out);

#endif
