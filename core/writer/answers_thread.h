/*
 * The indexer: the thread that runs the follower of answer files (store/answers/follower.h), beside
 * the loop of the writer, which carries out its changes (background_thread.h).
 *
 *   commit -> EVENT_ANSWERS -> background_thread_wake -> the thread steps
 */
#ifndef ASSAY_WRITER_ANSWERS_THREAD_H
#define ASSAY_WRITER_ANSWERS_THREAD_H

#include "core/writer/background_thread.h"

struct answers_thread;

/* answers_thread_new(store): NULL: the thread cannot start, and the log says why. */
struct answers_thread *answers_thread_new(struct store *store);
/* answers_thread_end(i): as background_thread_end; the next indexer goes on. answers_thread_free(i): after the end. */
bool answers_thread_end(struct answers_thread *i);
void answers_thread_free(struct answers_thread *i);
struct background_thread *answers_thread_loop(struct answers_thread *i);

#endif
