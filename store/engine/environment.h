/*
 * The environment: one LMDB environment per process, shared by its threads, and a struct store for
 * each thread. open.c opens and closes it; snapshot.h reads; txn.h writes.
 */
#ifndef ASSAY_STORE_ENGINE_ENVIRONMENT_H
#define ASSAY_STORE_ENGINE_ENVIRONMENT_H

#include "store/backup.h"
#include "store/engine/schema.h"

#include <pthread.h>
#include <stdatomic.h>

/*
 * What all threads of a process share. A snapshot holds ${map} for reading, since LMDB must not
 * change the size of the map during a snapshot.
 */
struct shared_env {
    MDB_env *env;
    bool writes; /* one of the struct stores is open for writing */
    pthread_rwlock_t map;
    atomic_uint readers; /* struct stores */
    atomic_uint waiting; /* threads that wait to change the size of the map; queries stop */
    atomic_uint maps;    /* changes of the size of the map so far */
    struct segment_maps *segments; /* index/ */
    bool refuses_growth;           /* store_refuse_growth; of the writer */
    atomic_bool follows;           /* store_follow: replicated spaces change by row sets alone */
};

/*
 * Where a snapshot found a key or a report. The place is valid until the next commit, so a repeated
 * look-up is one comparison.
 */
#define KEY_PLACES 64
#define REPORT_PLACES 512

struct key_place {
    size_t snapshot;
    uint8_t hash[32];
    MDB_val value;
};

struct report_place {
    size_t snapshot;
    uint64_t id;
    MDB_val value;
};

/*
 * Cursors that stay at the last put of their space. Records put in the order of their keys
 * (reports, jobs, messages) need no search from the root then.
 */
#define TXN_CURSORS 3

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
    bool in_log;                      /* store_mark_in_log */
    bool synced;                      /* nothing repeats it after a power cut: commit syncs it */

    /* row sets: rows.h */
    bool collects, complete, follows; /* notes keys; all is written; it has applied row sets */
    struct buf noted;                 /* keys of replicated spaces that were put or deleted */

    /* background work */
    store_stop_fn *stop; /* may be NULL */
    void *stop_arg;
    bool background;             /* the current change is background work */
    uint64_t batch_limit, spent; /* records that txn_batch_limit allows, and that were used since */

    /* free_space.c */
    int full;                            /* creates are refused, and why; -1: not known yet */
    uint64_t create_pages, create_bytes; /* that creates may use; that they stored so far */
    uint64_t result_pages; /* that results may use; the pages kept for deletes are not counted */
    size_t change_bytes;   /* size of the current change */
    bool creates;
    uint64_t results, results_took; /* changes that store results; pages that these may use */
    uint64_t changes;               /* all that were carried out */

    struct buf copy; /* of a record: txn_get_copy */
};

struct store {
    struct shared_env *shared;
    MDB_env *env; /* of ${shared} */
    MDB_dbi dbi[DB_COUNT];
    enum store_mode mode;
    char dir[4096];
    char why[1024];
    struct store_options options;

    /* the snapshot */
    unsigned maps; /* shared->maps when the places below were found */
    MDB_txn *read; /* kept between snapshots, reset */
    bool reading;
    size_t snapshot; /* LMDB's transaction id of the open snapshot */
    struct key_place key_places[KEY_PLACES];
    struct report_place report_places[REPORT_PLACES];
    size_t deleting_snapshot; /* transaction in which ${deleting} was read */
    uint64_t deleting;        /* workspaces and projects that are being deleted */

    /* the writer */
    struct store_txn txn;
    struct store_event *events;
    size_t event_count, event_cap;
    uint64_t file_bytes; /* data.mdb is at least that long */
    bool collects;       /* transactions note what they write: store_rows_collect */
    uint64_t random[32]; /* for ids */
    size_t random_left;  /* of them, not used yet */

    store_stage_fn *stage; /* store_on_stage */
    void *stage_arg;
    store_lost_fn *lost; /* store_on_lost */
    void *lost_arg;
    struct buf scratch;

    /* of the layers */
    struct index_context *index;
    struct records_context *records;
    struct reader_cache *answers; /* open answer files */
};

/* store_stage_begins(s, what): report the stage of store_on_stage. */
void store_stage_begins(struct store *s, const char *what);

/* Bytes of the smallest value that LMDB keeps on a page of its own. */
#define PAGE_VALUE_BYTES ((size_t)4080)

#endif
