/*
 * The follower: makes agents' answer files equal to the store. For one thread of the writer's
 * process, with a reader of the store of its own (store_share).
 *
 *   a row of the log of an agent (answers_log.h)
 *     -> the file is complete: documents that changed since its position are put or removed
 *     -> it is to be built: documents are put, collection by collection, then what changed
 *     meanwhile
 *     -> the agent is deleted: the file is deleted
 *
 * Agents take turns, one step each, so an agent with many documents does not delay others. A build
 * that is interrupted goes on where it was. Files that no agent has are deleted by the first step,
 * and missing ones are noted as lost.
 */
#ifndef ASSAY_ANSWERS_FOLLOWER_H
#define ASSAY_ANSWERS_FOLLOWER_H

#include "store/store.h"

#define FOLLOWER_STEP_DOCUMENTS 500
#define FOLLOWER_STEP_MS 100 /* a step ends after the document that it passes this with */
#define FOLLOWER_FILES 16    /* open files; each has 3 descriptors and SQLite's cache of 4 MiB */

struct follower;

/*
 * Carry out a CHANGE_ANSWERS and wait until it is committed; its status. Called between snapshots.
 */
typedef enum store_status follower_note_fn(void *arg, const struct store_change *change);

/* Is there an EVENT_ANSWERS to follow? Asked often while a file is verified, which then waits. */
typedef bool follower_wanted_fn(void *arg);

/* follower_new(s, note, wanted, arg): ${s} is borrowed. NULL: out of memory. */
struct follower *follower_new(struct store *s, follower_note_fn *note, follower_wanted_fn *wanted,
                              void *arg);
void follower_free(struct follower *f);

enum follower_result {
    FOLLOWER_IDLE,   /* nothing to do until the next EVENT_ANSWERS */
    FOLLOWER_MORE,   /* step again */
    FOLLOWER_FAILED, /* of one agent, by follower_why; it is left out for a second. Step again */
    FOLLOWER_WAIT    /* step again later: what is left is failing, by follower_why */
};
enum follower_result follower_step(struct follower *f);

/*
 * follower_verify(f): read the next file, whole, and hold its index against its texts; one that is
 * damaged is noted as lost. To be called when nobody changes documents: it costs about what
 * building
 * the file costs. A file that ${wanted} interrupts begins anew, and is left out after three times.
 * FOLLOWER_IDLE: each file had its turn.
 */
enum follower_result follower_verify(struct follower *f);

/* follower_why(f): a sentence, borrowed until the next step. */
const char *follower_why(const struct follower *f);

#endif
