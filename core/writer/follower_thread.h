/*
 * The follower thread: the background thread that applies changes of synced documents to answer
 * files (store/answers/follower.h).
 *
 *   commit -> EVENT_ANSWERS -> background_thread_wake -> the thread takes a step
 */
#ifndef ASSAY_WRITER_ANSWERS_THREAD_H
#define ASSAY_WRITER_ANSWERS_THREAD_H

#include "core/writer/background_thread.h"

struct follower_thread;

/* follower_thread_new(store): NULL: the thread cannot start, and the log says why. */
struct follower_thread *follower_thread_new(struct store *store);

/* follower_thread_end(t): as background_thread_end. follower_thread_free(t): after the end. */
bool follower_thread_end(struct follower_thread *t);
void follower_thread_free(struct follower_thread *t);

/* follower_thread_base(t): for the calls of background_thread.h. */
struct background_thread *follower_thread_base(struct follower_thread *t);

#endif
