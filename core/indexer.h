/*
 * The indexer: the thread that runs the follower of answer files (store/answers/follower.h), beside
 * the loop of the writer, which carries out its changes (writer_thread.h).
 *
 *   commit -> EVENT_ANSWERS -> writer_thread_wake -> the thread steps
 */
#ifndef ASSAY_INDEXER_H
#define ASSAY_INDEXER_H

#include "writer_thread.h"

struct indexer;

/* indexer_new(store): NULL: the thread cannot start, and the log says why. */
struct indexer *indexer_new(struct store *store);
/* indexer_free(i): the thread ends after its step; the next indexer goes on from there. */
void indexer_free(struct indexer *i);
struct writer_thread *indexer_thread(struct indexer *i);

#endif
