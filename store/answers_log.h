/*
 * The log of changed documents, and the state of each agent's answer file (answers/). Part of
 * store.h, whose rules about snapshots apply.
 *
 *   document written or deleted -> its row in the log, in the same transaction
 *                               -> the follower (answers/follower.h) changes the answer file, and
 *                                  writes the row's number there, in one SQLite transaction
 *                               -> CHANGE_ANSWERS: the rows up to that number are deleted
 *
 * Changes of an agent's documents are numbered from 1 and never reused. A document keeps the number
 * of the change that set its texts. Invariant: a document whose number is above ${indexed} has a
 * row in the log. Only its newest row is kept, so the log has at most one row per document. A row
 * with number 0 says that the file must be built or deleted.
 *
 * The number of the newest change is replicated. Log, file and ${indexed} are of this store.
 */
#ifndef ASSAY_STORE_ANSWERS_LOG_H
#define ASSAY_STORE_ANSWERS_LOG_H

#include "store/synced.h"

#define ANSWERS_FORMAT 2 /* of answer files: PRAGMA user_version */

enum answers_state {
    ANSWERS_TO_BUILD, /* the file is incomplete and is not read */
    ANSWERS_BUILT,
    ANSWERS_DELETED, /* the agent is deleted: the follower deletes the file */
    ANSWERS_STATES
};

struct store_answers {
    uint64_t last;       /* number of the newest change; 0: the agent is erased */
    uint64_t indexed;    /* changes up to it are in the file and no longer in the log */
    uint32_t generation; /* of the file; each new file of an agent gets the next one, in its name */
    uint32_t oldest;     /* oldest generation whose file may still exist */
    uint32_t serving;    /* generation that answers until a file is built; 0: none */
    enum answers_state state;
};

/* store_answers_get(s, agent, out): STORE_NOT_FOUND: the agent never had documents. */
enum store_status store_answers_get(struct store *s, const struct ulid *agent,
                                    struct store_answers *out);

/*
 * store_answers_unindexed(s, out): rows of the log of all agents: changes, and files to build or
 * delete.
 */
enum store_status store_answers_unindexed(struct store *s, uint64_t *out);

#endif
