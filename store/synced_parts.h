/*
 * What the files of synced records share. Private to store/.
 */
#ifndef ASSAY_STORE_SYNCED_PARTS_H
#define ASSAY_STORE_SYNCED_PARTS_H

#include "store/widget_parts.h"

#define SYNC_ID_MAX 128 /* bytes */

/* ---- sync_rows.c: what a change carries ---- */

struct sync_row {
    enum sync_action action;
    uint64_t wp_id;
    int64_t modified_at;
    uint8_t hash[16];
    struct str document; /* a document_record and its texts, not yet anybody's; empty: none */
};

/* sync_row_next(rest, out): take the next row off ${rest}; false at the end, and where it is malformed: then something is left of it. */
bool sync_row_next(struct str *rest, struct sync_row *out);
/* synced_mark_set(answer, row, mark): see synced_mark. */
void synced_mark_set(struct store_answer *answer, size_t row, enum synced_mark mark);

/* ---- document.c ---- */

bool schema_read_document(MDB_val value, struct store_synced *out);
/*
 * document_get(s, txn, id, out): a document's record, borrowed. document_read: STORE_NOT_FOUND also
 * where its item is not there.
 */
enum store_status document_get(struct store *s, MDB_txn *txn, uint64_t id,
                               struct store_synced *out);
enum store_status document_read(struct store *s, MDB_txn *txn, uint64_t id,
                                struct store_synced *out);
/* document_add(t, …): a new document out of ${row}; its id, 0 after an error. document_replace: another content for the one of that id. */
uint64_t document_add(struct store_txn *t, const struct collection_record *c,
                      const struct sync_row *row);
void document_replace(struct store_txn *t, const struct collection_record *c, uint64_t id,
                      const struct sync_row *row);
void document_remove(struct store_txn *t, uint64_t id);

/* ---- collection.c ---- */

/*
 * A collection while a transaction changes it: read once, written back by collection_close. ${live}, ${left}: the generation that items
 * come to, and the one they came from last, each with its row.
 */
struct open_generation {
    uint64_t number;
    bool known;
    struct generation_record row;
};
struct open_collection {
    struct store_txn *t;
    struct collection_record record;
    struct str site, sync_id; /* borrowed from the change, or from ${texts} */
    char texts[STORE_SITE_MAX + SYNC_ID_MAX];
    struct open_generation live, left;
};

bool schema_read_collection(MDB_val value, struct store_collection *out);
/* collection_named(s, txn, agent, kind, site, out): its id. collection_read: one by id, borrowed. */
enum store_status collection_named(struct store *s, MDB_txn *txn, const struct ulid *agent,
                                   enum synced_kind kind, struct str site, uint64_t *out);
enum store_status collection_read(struct store *s, MDB_txn *txn, uint64_t id,
                                  struct store_collection *out);

/*
 * collection_open(o, t, agent, kind, site): it, or one to be made; nothing is written yet. collection_begin(o): it changes; a new one has its
 * id from here on. Both false after an error. collection_close(o): write what changed.
 */
bool collection_open(struct open_collection *o, struct store_txn *t, const struct ulid *agent,
                     enum synced_kind kind, struct str site);
/* collection_by_id(o, t, id): one that must be there. */
bool collection_by_id(struct open_collection *o, struct store_txn *t, uint64_t id);
bool collection_begin(struct open_collection *o);
/* collection_has_room(o): may its agent have one more of that kind? */
bool collection_has_room(struct open_collection *o);
void collection_close(struct open_collection *o);

/*
 * generations_closed(c): the last one that cannot be completed any more for so many begun since, 0: none. Items that it or an earlier one saw
 * last, where no complete one is later, all count in its row.
 */
static inline uint64_t generations_closed(const struct collection_record *c)
{
    return c->generations > STORE_SYNCS_OPEN ? c->generations - STORE_SYNCS_OPEN : 0;
}
/* generation_of(o, sync_id): the one a sync_id began, 0: none did. generation_begin(o, sync_id): the next one. */
uint64_t generation_of(struct open_collection *o, struct str sync_id);
uint64_t generation_begin(struct open_collection *o, struct str sync_id);
/* generation_count(o, from, to): an item moves; ${from} NULL: it was not there, ${to} NULL: it is no more. */
void generation_count(struct open_collection *o, const uint64_t *from, const uint64_t *to);
/* generation_complete(o, number, sync_id): what was seen before it is there no more; how many items that were. */
uint64_t generation_complete(struct open_collection *o, uint64_t number, struct str sync_id);

/*
 * synced_counters(t): the counters, to be changed; NULL after an error. synced_next_document(t):
 * the next id; 0 after an error.
 */
struct synced_counters *synced_counters(struct store_txn *t);
uint64_t synced_next_document(struct store_txn *t);

/* ---- sync.c ---- */

void item_key(struct key *k, uint64_t collection, uint64_t wp_id);
bool schema_read_item(MDB_val value, struct item_record *out);
/* item_there(i, complete): it has a document, and was seen in the last complete generation or later. */
static inline bool item_there(const struct item_record *i, uint64_t complete)
{
    return i->document != 0 && i->generation >= complete;
}

/* agent_of_workspace(t, c): the agent of a change is there, and its workspace's. */
enum store_status agent_of_workspace(struct store_txn *t, const struct store_change *c);

/* ---- sync_purge.c ---- */

/*
 * unseen_mark(t, c): what its last complete generation did not see is to be purged.
 */
void unseen_mark(struct store_txn *t, const struct collection_record *c);
/* over_mark(t, c): a generation was begun: where many are long over, they are to be forgotten; true then. */
bool over_mark(struct store_txn *t, const struct collection_record *c);
bool unseen_well_formed(MDB_val value);
/* unseen_slice(t, left): some of it; it takes from *left what it did. */
void unseen_slice(struct store_txn *t, uint64_t *left);
/* synced_erase(t, agent, left): all of an agent's, at most *left records; true when nothing is left of it. */
bool synced_erase(struct store_txn *t, const struct ulid *agent, uint64_t *left);

/* ---- answers_log.c ---- */

bool schema_read_answers(MDB_val value, struct store_answers *out);
/* answers_read(s, txn, agent, out): STORE_NOT_FOUND: the agent never had documents. */
enum store_status answers_read(struct store *s, MDB_txn *txn, const struct ulid *agent,
                               struct store_answers *out);
/*
 * answers_row_number(w, out): the number of the row of the log that the walk stands on; false when
 * it is malformed.
 */
bool answers_row_number(const struct walk *w, uint64_t *out);
/*
 * answers_log(t, agent, document, before): the texts of ${document} are written or deleted; the
 * number of that change, 0 after an error. ${before}: the document's number before, 0: it is new.
 */
uint64_t answers_log(struct store_txn *t, const struct ulid *agent, uint64_t document,
                     uint64_t before);
/*
 * answers_rebuild(t, agent): the answer file, if there is one, is to be built anew: the next
 * generation.
 */
void answers_rebuild(struct store_txn *t, const struct ulid *agent);
/*
 * answers_erase(t, agent): of an agent that is deleted: the follower deletes the file, the rows and
 * the record.
 */
void answers_erase(struct store_txn *t, const struct ulid *agent);

/* ---- staged.c, coupon.c ---- */

bool staged_well_formed(MDB_val value);

void coupon_key(struct key *k, const struct ulid *agent, struct str code);
bool schema_read_coupon(MDB_val value, struct store_coupon *out);

#endif
