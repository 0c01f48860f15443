/*
 * The indexer: the thread that runs the follower of answer files (store/answers/follower.h), beside
 * the loop of the writer, which is the only one to change the store.
 *
 *   commit -> EVENT_ANSWERS -> indexer_wake -> the thread steps
 *     -> a change of its own waits -> indexer_fd is readable -> indexer_take: into the batch
 *     -> commit -> indexer_noted -> the thread goes on
 *
 * The writer's process only.
 */
#ifndef ASSAY_INDEXER_H
#define ASSAY_INDEXER_H

#include "../store/store.h"

struct indexer;

/* indexer_new(store): NULL: the thread cannot start, and the log says why. */
struct indexer *indexer_new(struct store *store);
/* indexer_free(i): the thread ends after its step; the next indexer goes on from there. */
void indexer_free(struct indexer *i);

/* indexer_wake(i): the log of changed documents has more. */
void indexer_wake(struct indexer *i);

/*
 * indexer_fd(i): readable when a change of the thread waits. indexer_take(i, out): that change;
 * false: there is none. indexer_noted(i, status): what became of it; once for each that was taken.
 */
int indexer_fd(const struct indexer *i);
bool indexer_take(struct indexer *i, struct store_change *out);
void indexer_noted(struct indexer *i, enum store_status status);

#endif
