/* A node as the log of a cluster sees it: for tests of t/cluster. */
#ifndef ASSAY_T_CLUSTER_LOG_NODE_H
#define ASSAY_T_CLUSTER_LOG_NODE_H

#include "core/cluster/position.h"
#include "t/kit/postgres.h"

#include <stdlib.h>

enum { WITHIN_MS = 30000, A_LITTLE_MS = 1000 };

/* ${head}: as it was when this node last led or appended. */
struct log_node {
    struct cluster_log *log;
    const struct cluster_log_engine *engine;
    uint8_t id[NODE_BYTES];
    uint64_t epoch;
    struct cluster_log_head head;
    char *source, *name;
};

/*
 * log_node(number, source): a node with that number in its name and id; ${source} becomes its own.
 * log_node_at(number, server): of that server. log_node_free(n): it leaves without a word.
 * log_make(server): a log without entries. log_made(n, replace): the status of making another.
 */
struct log_node log_node(int number, char *source);
struct log_node log_node_at(int number, const struct postgres *server);
void log_node_free(struct log_node *n);
void log_make(const struct postgres *server);
enum cluster_log_status log_made(struct log_node *n, uint8_t first, bool replace);

/*
 * log_lead(n, lease_ms): begins to lead. log_must_lead(n): and succeeds, as the log then notes.
 * log_renew(n, lease_ms).
 */
enum cluster_log_status log_lead(struct log_node *n, unsigned lease_ms);
void log_must_lead(struct log_node *n);
enum cluster_log_status log_renew(struct log_node *n, unsigned lease_ms);

/*
 * log_entry(n, rows): the next entry of its lead. log_append(n, e): appends it.
 * log_must_append(n, text): and succeeds. log_settle(n, e): after an append of unknown outcome:
 * asks and appends again until the log has it, as the log thread does.
 */
struct cluster_log_entry log_entry(const struct log_node *n, struct str rows);
enum cluster_log_status log_append(struct log_node *n, const struct cluster_log_entry *e);
void log_must_append(struct log_node *n, const char *rows);
void log_settle(struct log_node *n, const struct cluster_log_entry *e);

/*
 * log_check(server): the entries continue each other from the first to the head; their number.
 * log_position(n): the head. log_expect_why(n, part): the last call that failed says that.
 * log_expect_sql(server, query, want): the value that it selects.
 */
uint64_t log_check(const struct postgres *server);
struct cluster_log_head log_position(struct log_node *n);
void log_expect_sql(const struct postgres *server, const char *query, const char *want);
void log_expect_why(const struct log_node *n, const char *part);

#endif
