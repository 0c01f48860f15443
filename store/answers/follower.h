/*
 * The follower keeps agents' answer files equal to the store. One thread of the writer process,
 * with its own reader of the store (store_share).
 *
 *   a row of the log of an agent (answers_log.h)
 *     -> the file is complete: put or remove documents that changed since its position
 *     -> it must be built: put all documents, collection by collection, then the changes meanwhile
 *     -> the agent is deleted: delete the file
 *
 * Agents take turns, one step each, so an agent with many documents does not delay others. An
 * interrupted build continues. The first step deletes files without an agent and notes missing ones
 * as lost.
 */
#ifndef ASSAY_STORE_ANSWERS_FOLLOWER_H
#define ASSAY_STORE_ANSWERS_FOLLOWER_H

#include "store/store.h"

#define FOLLOWER_STEP_DOCUMENTS 500
#define FOLLOWER_STEP_MS 100 /* a step ends after the document with which it exceeds this */
#define FOLLOWER_FILES 16    /* open files; each has 3 descriptors and SQLite's cache of 4 MiB */

struct follower;

/* Apply a CHANGE_ANSWERS and wait for its commit; its status. Called between snapshots. */
typedef enum store_status follower_note_fn(void *arg, const struct store_change *change);

/* Is there an EVENT_ANSWERS? Called often while a file is verified, which then waits. */
typedef bool follower_wanted_fn(void *arg);

/* follower_new(s, note, wanted, arg): ${s} is borrowed. NULL: out of memory. */
struct follower *follower_new(struct store *s, follower_note_fn *note, follower_wanted_fn *wanted,
                              void *arg);
void follower_free(struct follower *f);

enum follower_result {
    FOLLOWER_IDLE,   /* nothing to do until the next EVENT_ANSWERS */
    FOLLOWER_MORE,   /* step again */
    FOLLOWER_FAILED, /* one agent failed (follower_why) and waits for a second; step again */
    FOLLOWER_WAIT    /* the remaining agents failed (follower_why): step again later */
};
enum follower_result follower_step(struct follower *f);

/*
 * follower_verify(f): verify the next file and note it as lost if it is damaged. Call it while no
 * documents change: it costs about as much as building the file. A file that ${wanted} interrupts
 * starts again, and is skipped after three times. FOLLOWER_IDLE: each file had its turn, and the
 * next call begins with the first one.
 */
enum follower_result follower_verify(struct follower *f);

/* follower_why(f): a sentence, borrowed until the next step. */
const char *follower_why(const struct follower *f);

#endif
