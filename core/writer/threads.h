/*
 * The background threads of the writer (background_thread.h): the one that follows changes into
 * the answer files, and the one that merges index segments. Both hand their changes to the loop.
 */
#ifndef ASSAY_WRITER_THREADS_H
#define ASSAY_WRITER_THREADS_H

#include "core/writer/follower_thread.h"
#include "core/writer/batch.h"
#include "core/writer/merge_thread.h"

struct writer_threads {
    struct follower_thread *answers;
    struct merge_thread *merge;
    bool change_waits; /* one of them waits for a change */
};

/* writer_threads_start(t, store): false: they cannot start, and the log says why. */
bool writer_threads_start(struct writer_threads *t, struct store *store);

/* writer_threads_watch(t, epoll): events carry &t->change_waits. */
bool writer_threads_watch(struct writer_threads *t, int epoll);

void writer_threads_wake_answers(struct writer_threads *t);
void writer_threads_wake_merge(struct writer_threads *t);

/* writer_threads_take(t, batch, limit): add the changes that wait, of ${limit} records at most. */
void writer_threads_take(struct writer_threads *t, struct batch *batch, uint64_t limit);

/*
 * writer_threads_end(t): false: one did not end in time, and the process must _exit. Files of an
 * unfinished step have no name, so nothing is lost. writer_threads_free(t): after the end.
 */
bool writer_threads_end(struct writer_threads *t);
void writer_threads_free(struct writer_threads *t);

#endif
