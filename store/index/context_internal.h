/* What a struct store remembers for the index. Created by layer.c. */
#ifndef ASSAY_STORE_INDEX_CONTEXT_INTERNAL_H
#define ASSAY_STORE_INDEX_CONTEXT_INTERNAL_H

#include "store/index/index.h"

struct index_context {
    struct index_snapshot *snapshots; /* of the workspaces used last: snapshot.h */
    size_t snapshot_count;
    uint64_t snapshot_clock;
    uint64_t tidied;       /* calls of index_snapshot_tidy */
    uint64_t lost_segment; /* number of the last missing or damaged segment; 0: none */
    struct project_names *project_names;   /* project_names_internal.h, the latest used first */
    struct match_cache_entry *match_cache; /* match_cache_internal.h, the latest used first */
    size_t match_cache_bytes, match_cache_count;
    uint64_t rows_made;    /* counts rebuilds of a tail or of project names */
    uint64_t mapped_bytes; /* of segment files: the most that this process may map */
    uint32_t segment_rows, ngram_block_shift, log_entries, small_rows; /* struct store_options */

    /* of the write transaction: a batch of log entries for each workspace */
    struct log_batch *batches;
    size_t batch_count, batch_cap;
};

#endif
