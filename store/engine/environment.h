/*
 * The environment: one LMDB environment per process, shared by its threads, and a struct store for
 * each thread. environment.c opens and closes it; snapshot.h reads; txn.h writes.
 */
#ifndef ASSAY_STORE_ENVIRONMENT_H
#define ASSAY_STORE_ENVIRONMENT_H

#include "store/engine/txn.h"

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

struct store {
    struct shared_env *shared;
    MDB_env *env; /* of ${shared} */
    MDB_dbi dbi[DB_COUNT];
    enum store_mode mode;
    char dir[4096];
    char why[1024];

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
    uint64_t file_bytes;      /* data.mdb is at least that long */
    unsigned background_turn; /* which kind of background work is next: records/purge.c */
    struct ulid set_aside;    /* scope whose erasure failed; none: records/erase.c */
    uint64_t random[32];      /* for ids */
    size_t random_left;       /* of them, not used yet */

    store_stage_fn *stage; /* store_on_stage */
    void *stage_arg;
    struct buf scratch;

    /* records/ */
    struct packer *packer;        /* of results: result.c */
    struct unpacked *unpacked;    /* results, until the snapshot ends */
    struct store_report *reports; /* the page of a list */
    struct store_project *projects;
    size_t report_cap, project_cap;
    bool rates; /* results follow these thresholds: thresholds.c */
    unsigned good, decent;
    bool rated;         /* all results follow them */
    bool rating_failed; /* writer: the last re-rating failed, and when */
    int64_t rating_failed_at;

    /* index/ */
    struct index_snapshot *index_snapshots; /* snapshot.h */
    size_t index_snapshot_count;
    uint64_t index_snapshot_clock;
    uint64_t lost_segment; /* number of the last missing or damaged segment; 0: none */
    struct project_names *project_names;   /* project_names_internal.h, the latest used first */
    struct match_cache_entry *match_cache; /* match_cache_internal.h, the latest used first */
    size_t match_cache_bytes, match_cache_count;
    uint64_t rows_made;    /* counts rebuilds of a tail or of project names */
    uint64_t mapped_bytes; /* of segment files: the most that this process may map */
    uint32_t segment_rows, ngram_block_shift, log_entries, small_rows; /* struct store_options */

    /* answers/ */
    struct reader_cache *answers; /* open answer files */
};

/* store_stage_begins(s, what): report the stage of store_on_stage. */
void store_stage_begins(struct store *s, const char *what);

/* Bytes of the smallest value that LMDB keeps on a page of its own. */
#define PAGE_VALUE_BYTES ((size_t)4080)

#endif
