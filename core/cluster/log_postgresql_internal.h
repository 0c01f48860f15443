/* The log in PostgreSQL: what its files share. */
#ifndef ASSAY_CLUSTER_LOG_POSTGRESQL_INTERNAL_H
#define ASSAY_CLUSTER_LOG_POSTGRESQL_INTERNAL_H

#include "core/cluster/postgresql_internal.h"

struct log_postgresql {
    struct cluster_log log; /* the first member */
    char name[NODE_TEXT + 16];
    struct pg pg;
    uint64_t partition; /* the last one that is known to exist, plus one */
};

static inline struct log_postgresql *log_of(struct cluster_log *l)
{
    return (struct log_postgresql *)l;
}

/* log_begin(l): a call of the engine begins. */
static inline struct pg *log_begin(struct cluster_log *l)
{
    pg_begin(&log_of(l)->pg);
    return &log_of(l)->pg;
}

struct cluster_log *log_postgresql_new(const char *source, const char *name);

/*
 * log_tables_extend(l, sequence): make the partitions of the entries from ${sequence} on, ahead of
 * them. A part of the call that has begun.
 */
enum cluster_log_status log_tables_extend(struct log_postgresql *l, uint64_t sequence);

/* The calls of cluster_log.h that concern tables. */
enum cluster_log_status log_tables_first(struct cluster_log *l, uint64_t *out);
enum cluster_log_status log_tables_trim(struct cluster_log *l, uint64_t before, int64_t at_ms);
enum cluster_log_status log_tables_make(struct cluster_log *l, const struct cluster_log_head *head,
                                        bool replace);
enum cluster_log_status log_tables_nodes(struct cluster_log *l, cluster_log_node_fn *each,
                                         void *arg);
enum cluster_log_status log_tables_remove(struct cluster_log *l, const uint8_t node[NODE_BYTES],
                                          int64_t unseen_ms);
enum cluster_log_status log_tables_verify(struct cluster_log *l, uint64_t *sequence);
enum cluster_log_status log_tables_stop(struct cluster_log *l, const struct cluster_log_node *node);
enum cluster_log_status log_tables_warnings(struct cluster_log *l, cluster_log_warning_fn *each,
                                            void *arg);

#endif
