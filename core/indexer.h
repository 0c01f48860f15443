/*
 * The indexer: the thread that runs the follower of answer files (store/answers/follower.h), beside
 * the loop of the writer, which carries out its changes (writer_thread.h).
 *
 *   commit -> EVENT_ANSWERS -> writer_thread_wake -> the thread steps
 */
#ifndef ASSAY_INDEXER_H
#define ASSAY_INDEXER_H

#include "core/writer_thread.h"

struct indexer;

/* indexer_new(store): NULL: the thread cannot start, and the log says why. */
struct indexer *indexer_new(struct store *store);
/* indexer_end(i): as writer_thread_end; the next indexer goes on. indexer_free(i): after the end. */
bool indexer_end(struct indexer *i);
void indexer_free(struct indexer *i);
struct writer_thread *indexer_thread(struct indexer *i);

#endif
