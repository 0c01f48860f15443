/*
 * Collections: what one site synced of one kind to one agent, and its sync generations. A
 * generation is one sync from begin to completion.
 */
#ifndef ASSAY_STORE_RECORDS_COLLECTION_H
#define ASSAY_STORE_RECORDS_COLLECTION_H

#include "store/engine/txn.h"

#define SYNC_ID_MAX 128 /* bytes */

/*
 * A collection while a transaction changes it: read once, written by collection_close. ${live},
 * ${left}: the generations that an item moves to and from, each with its row.
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

/* collection_named(s, txn, agent, kind, site, out): its id. collection_read: by id, borrowed. */
enum store_status collection_named(struct store *s, MDB_txn *txn, const struct ulid *agent,
                                   enum synced_kind kind, struct str site, uint64_t *out);
enum store_status collection_read(struct store *s, MDB_txn *txn, uint64_t id,
                                  struct store_collection *out);

/*
 * collection_open(o, t, agent, kind, site): an existing or a new one; nothing is written yet.
 * collection_by_id(o, t, id): one that must exist. collection_begin(o): it changes; a new one gets
 * its id. All false after an error. collection_close(o): write the changes.
 */
bool collection_open(struct open_collection *o, struct store_txn *t, const struct ulid *agent,
                     enum synced_kind kind, struct str site);
bool collection_by_id(struct open_collection *o, struct store_txn *t, uint64_t id);
bool collection_begin(struct open_collection *o);
void collection_close(struct open_collection *o);
/* collection_has_room(o): may its agent have one more of that kind? */
bool collection_has_room(struct open_collection *o);

/*
 * generations_closed(c): the last generation that can no longer be completed, because so many
 * began later; 0: none. Its row counts all items last seen in it or earlier, unless a later one
 * is complete.
 */
static inline uint64_t generations_closed(const struct collection_record *c)
{
    return c->generations > STORE_SYNCS_OPEN ? c->generations - STORE_SYNCS_OPEN : 0;
}

/*
 * generation_of(o, sync_id): the one that this sync_id began; 0: none. generation_begin: the next.
 */
uint64_t generation_of(struct open_collection *o, struct str sync_id);
uint64_t generation_begin(struct open_collection *o, struct str sync_id);
/* generation_count(o, from, to): an item moves; NULL: it did not exist, or is deleted. */
void generation_count(struct open_collection *o, const uint64_t *from, const uint64_t *to);
/* generation_complete(o, number, sync_id): delete items seen last before it; returns how many. */
uint64_t generation_complete(struct open_collection *o, uint64_t number, struct str sync_id);

/*
 * synced_counters(t): the counters, to be changed; NULL after an error. synced_next_document(t):
 * the next id; 0 after an error. synced_write_back(t): by the commit.
 */
struct synced_counters *synced_counters(struct store_txn *t);
uint64_t synced_next_document(struct store_txn *t);
void synced_write_back(struct store_txn *t);

#endif
