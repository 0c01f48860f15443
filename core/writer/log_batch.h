/* Entries of the log on their way from the log thread to the loop. */
#ifndef ASSAY_WRITER_LOG_BATCH_H
#define ASSAY_WRITER_LOG_BATCH_H

#include "core/cluster/cluster_log.h"

struct log_batch_entry {
    struct store_position position; /* after it */
    size_t at, n;                   /* of its rows, in the rows of the batch */
};

struct log_batch {
    struct log_batch_entry *entries; /* in order */
    size_t count, capacity;
    struct buf rows;
};

/*
 * log_batch_add(b, entry, before): a copy; ${before}: the position before it. False: out of memory.
 * log_batch_rows(b, i): the row set of an entry. log_batch_end(b): the position after the last one.
 */
bool log_batch_add(struct log_batch *b, const struct cluster_log_entry *entry,
                   const struct store_position *before);
struct str log_batch_rows(const struct log_batch *b, size_t i);
const struct store_position *log_batch_end(const struct log_batch *b);
void log_batch_reset(struct log_batch *b);
void log_batch_free(struct log_batch *b);

#endif
