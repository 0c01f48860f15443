/* The log of changed documents, which the follower of answers/ reads. store/answers_log.h has the
 * public part. */
#ifndef ASSAY_STORE_RECORDS_ANSWERS_LOG_H
#define ASSAY_STORE_RECORDS_ANSWERS_LOG_H

#include "store/engine/cursor.h"
#include "store/engine/txn.h"

/*
 * schema_read_answer_file(value, out): a record of SPACE_ANSWER_FILE; ${last} is 0.
 * schema_read_answers(value, last): one of SPACE_ANSWERS.
 */
bool schema_read_answer_file(MDB_val value, struct store_answers *out);
bool schema_read_answers(MDB_val value, uint64_t *last);

/* answers_read(s, txn, agent, out): STORE_NOT_FOUND: the agent never had documents. */
enum store_status answers_read(struct store *s, MDB_txn *txn, const struct ulid *agent,
                               struct store_answers *out);

/* answers_row_number(w, out): the number of the cursor's row of the log; false: malformed. */
bool answers_row_number(const struct cursor *w, uint64_t *out);

/*
 * answers_log(t, agent, document, before): the texts of ${document} are written or deleted; the
 * number of that change, 0 after an error or for an erased agent. ${before}: the document's number
 * before, 0: it is new.
 */
uint64_t answers_log(struct store_txn *t, const struct ulid *agent, uint64_t document,
                     uint64_t before);

/*
 * answers_rebuild(t, agent, sound): rebuild the answer file, if there is one, as the next
 * generation. ${sound}: the old file answers until then.
 */
void answers_rebuild(struct store_txn *t, const struct ulid *agent, bool sound);

/*
 * answers_erase(t, agent): the agent is deleted; the follower deletes file, rows and the file's
 * record.
 */
void answers_erase(struct store_txn *t, const struct ulid *agent);

/*
 * Of a row set, before its rows are written. answers_follow(t, agent, last): the agent's row of
 * SPACE_ANSWERS becomes ${last}; 0: it is deleted. answers_follow_document(t, agent, document,
 * before, change): the document's change number was ${before} and becomes ${change}; 0: it did not
 * exist, or is deleted. Deletions come last: they get the numbers that no document has.
 */
void answers_follow(struct store_txn *t, const struct ulid *agent, uint64_t last);
void answers_follow_document(struct store_txn *t, const struct ulid *agent, uint64_t document,
                             uint64_t before, uint64_t change);

/* answers_write_back(t): by the commit. */
void answers_write_back(struct store_txn *t);

#endif
