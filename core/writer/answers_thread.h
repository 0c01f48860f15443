/*
 * The indexer: the background thread that applies changes of synced documents to the answer files
 * (store/answers/follower.h).
 *
 *   commit -> EVENT_ANSWERS -> background_thread_wake -> the thread takes a step
 */
#ifndef ASSAY_WRITER_ANSWERS_THREAD_H
#define ASSAY_WRITER_ANSWERS_THREAD_H

#include "core/writer/background_thread.h"

struct answers_thread;

/* answers_thread_new(store): NULL: the thread cannot start, and the log says why. */
struct answers_thread *answers_thread_new(struct store *store);

/* answers_thread_end(t): as background_thread_end. answers_thread_free(t): after the end. */
bool answers_thread_end(struct answers_thread *t);
void answers_thread_free(struct answers_thread *t);

/* answers_thread_base(t): for the calls of background_thread.h. */
struct background_thread *answers_thread_base(struct answers_thread *t);

#endif
