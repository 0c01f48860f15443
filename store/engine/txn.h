/*
 * The write transaction: one per writer process, on its loop: store_begin, store_apply…,
 * store_commit or store_abort. It keeps its first error, so that reads and puts need no checks in
 * between. What is written once is written by the commit (struct layer).
 */
#ifndef ASSAY_STORE_TXN_H
#define ASSAY_STORE_TXN_H

#include "store/engine/schema.h"

/*
 * Cursors that stay at the last put of their space. Records put in the order of their keys
 * (reports, jobs, messages) need no search from the root then.
 */
#define TXN_CURSORS 3

/* Slots of the table of changed workspaces and projects: records/cached_records.h. */
#define CACHE_CHAINS 64

struct cached_record;
struct log_batch;

struct store_txn {
    struct store *s;
    MDB_txn *mdb; /* NULL: no transaction is open */
    int64_t now;
    enum store_status error; /* the first one */
    bool counters_dirty;
    struct counters_record counters;
    struct ulid ulid; /* the last one given */
    bool ulid_known, ulid_dirty;
    MDB_cursor *cursors[TXN_CURSORS]; /* NULL: not opened, or closed by a delete */
    bool maintenance_told;            /* the transaction has an EVENT_MAINTENANCE */
    bool awaited, unawaited;          /* it has a change that a caller waits for; or one without */

    /* background work */
    store_pause_fn *pause; /* may be NULL */
    void *pause_arg;
    bool background;             /* the current change is background work */
    uint64_t batch_limit, spent; /* records that txn_batch_limit allows, and that were used since */

    /* free_space.c */
    int full;             /* creates are refused, and why; -1: not known yet */
    uint64_t spare_pages; /* that results may use; the pages kept for deletes are not counted */

    /* records/ */
    struct buf packed, copy; /* a report's results; a record */
    bool rated;              /* results were re-rated */
    struct synced_counters synced;
    bool synced_known, synced_dirty;
    struct { /* the agent whose documents changed last: answers_log.h */
        struct ulid agent;
        struct answers_record record;
        bool known, dirty, event_sent;
    } answers;
    struct cached_record *cache[CACHE_CHAINS];
    struct cached_record *spare;
    struct cached_record
        *named; /* the project that project_for found last, if its name still exists */

    /* index/: one batch of log entries for each workspace */
    struct log_batch *batches;
    size_t batch_count, batch_cap;
};

/*
 * apply_fn: carries out a change of one kind. It checks first and writes after: a status other than
 * STORE_OK means that nothing was written.
 */
typedef enum store_status apply_fn(struct store_txn *t, const struct store_change *c,
                                   struct store_answer *answer);

/* txn_keep_file_ahead(s): make data.mdb long enough for the next transactions. preallocate.c */
void txn_keep_file_ahead(struct store *s);
void txn_free(struct store_txn *t);

/* txn_fail(t, rc, what): as store_fail; ${rc} 0: ${what} is damaged. The first error stays. */
enum store_status txn_fail(struct store_txn *t, int rc, const char *what);
enum store_status txn_get(struct store_txn *t, enum space space, struct key *key, MDB_val *out);
/* txn_get_copy(t, …): as txn_get, but a copy in t->copy, which later writes do not move. */
enum store_status txn_get_copy(struct store_txn *t, enum space space, struct key *key,
                               MDB_val *out);
void txn_put(struct store_txn *t, enum space space, struct key *key, const void *value, size_t n);
/*
 * txn_reserve(t, …): ${n} bytes in the page itself, to be filled before anything else is written;
 * NULL after an error.
 */
void *txn_reserve(struct store_txn *t, enum space space, struct key *key, size_t n);
/* txn_del(t, …): delete a key that must exist, else STORE_CORRUPT. txn_drop: one that may exist. */
void txn_del(struct store_txn *t, enum space space, struct key *key);
void txn_drop(struct store_txn *t, enum space space, struct key *key);

/* txn_next(t, counter): the next id of that counter. */
#define txn_next(t, counter) ((t)->counters_dirty = true, ++(t)->counters.counter)

/* txn_ulid(t, out): the next ULID; false after an error. */
bool txn_ulid(struct store_txn *t, struct ulid *out);

void txn_event(struct store_txn *t, enum store_event_kind kind, uint64_t workspace, uint64_t id,
               uint64_t value);
/*
 * txn_mark_deleting(t, workspace, project): it is being deleted from now on; project 0: all of it.
 */
bool txn_mark_deleting(struct store_txn *t, uint64_t workspace, uint64_t project);
/* txn_match(match, version): does If-Match allow a change of that version? */
bool txn_match(struct str match, uint64_t version);

#endif
