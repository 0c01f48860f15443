/*
 * The merge thread: the background thread that merges and rebuilds the report indexes, finds what a
 * purge deletes, and deletes unused files (store/maintenance.h).
 *
 *   commit -> EVENT_MAINTENANCE -> background_thread_wake -> the thread takes a step
 */
#ifndef ASSAY_WRITER_MERGE_THREAD_H
#define ASSAY_WRITER_MERGE_THREAD_H

#include "core/writer/background_thread.h"

struct merge_thread;

/* merge_thread_new(store): NULL: the thread cannot start, and the log says why. */
struct merge_thread *merge_thread_new(struct store *store);

/*
 * merge_thread_end(m): as background_thread_end. The files of an unfinished step have no name; the
 * next merge thread deletes them. merge_thread_free(m): after the end.
 */
bool merge_thread_end(struct merge_thread *m);
void merge_thread_free(struct merge_thread *m);

/* merge_thread_base(m): for the calls of background_thread.h. */
struct background_thread *merge_thread_base(struct merge_thread *m);

/* merge_thread_progress(m, out): as maintenance_progress. */
void merge_thread_progress(struct merge_thread *m, struct store_maintenance_status *out);

#endif
