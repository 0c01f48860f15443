/* What a struct store remembers for records. Created by layer.c. */
#ifndef ASSAY_STORE_RECORDS_CONTEXT_H
#define ASSAY_STORE_RECORDS_CONTEXT_H

#include "store/engine/environment.h"

/* Slots of the table of changed workspaces and projects: cached_records.h. */
#define CACHE_CHAINS 64

/* The agent whose documents changed last: answers_log.c. */
struct changed_answers {
    struct ulid agent;
    uint64_t last; /* number of the last change; 0: the agent has no row in SPACE_ANSWERS */
    uint64_t free; /* applying rows: changes from it on have a row in the log; 0: not known */
    struct answer_file_record file; /* generation 0: there is none */
    bool known, last_dirty, file_dirty, event_sent;
};

struct records_context {
    union LZ4_streamHC_u *compressor;    /* of results: result.c */
    struct plain_results *plain_results; /* results, until the snapshot ends */
    struct store_report *reports;        /* the page of a list */
    struct store_project *projects;
    size_t report_cap, project_cap;

    /* thresholds.c */
    bool rates; /* results follow these thresholds */
    unsigned good, decent;
    bool rated;         /* all results follow them */
    bool rating_failed; /* writer: the last re-rating failed, and when */
    int64_t rating_failed_at;

    /* the writer */
    unsigned background_turn; /* which kind of background work is next: purge.c */
    struct ulid set_aside;    /* scope whose erasure failed; none: erase.c */

    /* the write transaction */
    struct buf compressed; /* a report's results */
    bool rerated;          /* results were re-rated */
    struct synced_counters synced;
    bool synced_known, synced_dirty;
    struct changed_answers answers;
    uint64_t unindexed; /* rows of SPACE_ANSWERS_LOG written, less those deleted; may wrap */
    struct cached_record *cache[CACHE_CHAINS];
    struct cached_record *unused;
    struct cached_record *named; /* the project that project_for found last */
};

#endif
