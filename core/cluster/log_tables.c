/* The tables of the log in PostgreSQL. Entries are in partitions, which trimming drops. */
#include "core/cluster/log_postgresql_internal.h"

#include <stdio.h>
#include <stdlib.h>

#define PARTITION 65536 /* sequences of one */

/*
 * Attaches a table, because CREATE TABLE … PARTITION OF locks out readers of assay_log: it would
 * wait for pg_dump, and all later statements for it.
 */
static const char make_partition[] =
    "DO $$BEGIN IF to_regclass('assay_log_%1$llu') IS NULL THEN"
    " CREATE TABLE assay_log_%1$llu (LIKE assay_log INCLUDING STORAGE);"
    " ALTER TABLE assay_log ATTACH PARTITION assay_log_%1$llu"
    " FOR VALUES FROM (%2$llu) TO (%3$llu); END IF; END$$";

enum cluster_log_status log_tables_extend(struct log_postgresql *l, uint64_t sequence)
{
    char sql[512];
    const uint64_t last = (sequence + PARTITION / 2) / PARTITION;
    enum cluster_log_status status = CLUSTER_LOG_OK;
    uint64_t n = l->partition != 0 ? l->partition : sequence / PARTITION;
    for (; n <= last && status == CLUSTER_LOG_OK; n++) {
        snprintf(sql, sizeof(sql), make_partition, (unsigned long long)n,
                 (unsigned long long)n * PARTITION, (unsigned long long)(n + 1) * PARTITION);
        status = pg_script(&l->pg, sql, false);
        if (status == CLUSTER_LOG_OK)
            l->partition = n + 1;
    }
    return status;
}

/* ---- trimming ---- */

enum cluster_log_status log_tables_first(struct cluster_log *l, uint64_t *out)
{
    static const struct pg_statement first = {
        .number = PG_FIRST, .sql = "SELECT seq FROM assay_log ORDER BY seq LIMIT 1"};
    PGresult *r;
    const struct pg_parameters none = {0};
    enum cluster_log_status status = pg_run(log_begin(l), &first, &none, &r);
    if (status != CLUSTER_LOG_OK)
        return status;
    bool there = PQntuples(r) == 1;
    *out = there ? pg_get_number(r, 0, 0) : 0;
    PQclear(r);
    return there ? CLUSTER_LOG_OK : CLUSTER_LOG_NONE;
}

/*
 * The first partitions that end before the sequence $2 and the time $3. Each has $1 sequences. At
 * the highest rate of appends, two partitions fill in a minute.
 */
static const char list_partitions[] =
    "SELECT n FROM (SELECT substring(c.relname FROM '[0-9]+$')::bigint AS n FROM pg_inherits i"
    " JOIN pg_class c ON c.oid = i.inhrelid WHERE i.inhparent = 'assay_log'::regclass) p"
    " WHERE (n + 1) * $1 <= $2 AND coalesce((SELECT at_ms FROM assay_log WHERE seq >= p.n * $1"
    " AND seq < (p.n + 1) * $1 ORDER BY seq DESC LIMIT 1), 0) < $3 ORDER BY n LIMIT 8";

/* Appends wait while this statement waits for readers. */
static const char drop_partition[] =
    "SELECT set_config('lock_timeout', '100', true); DROP TABLE IF EXISTS assay_log_%llu";

enum cluster_log_status log_tables_trim(struct cluster_log *l, uint64_t before, int64_t at_ms)
{
    static const struct pg_statement list = {.number = PG_PARTITIONS, .sql = list_partitions};
    PGresult *r;
    struct pg *pg = log_begin(l);
    struct pg_parameters p = {0};
    char sql[128];
    pg_number(&p, PARTITION);
    pg_number(&p, before);
    pg_number(&p, (uint64_t)at_ms);
    enum cluster_log_status status = pg_run(pg, &list, &p, &r);
    if (status != CLUSTER_LOG_OK)
        return status;
    for (int i = 0; i < PQntuples(r) && status == CLUSTER_LOG_OK; i++) {
        snprintf(sql, sizeof(sql), drop_partition, (unsigned long long)pg_get_number(r, i, 0));
        status = pg_script(pg, sql, false);
    }
    PQclear(r);
    return status;
}

/* ---- for operators ---- */

/* Locks in the order of an append. */
static const char delete_tables[] =
    "BEGIN; DROP TABLE IF EXISTS assay_cluster, assay_log, assay_node";

static const char make_tables[] =
    "BEGIN;"
    "CREATE TABLE assay_cluster (log uuid NOT NULL, epoch bigint NOT NULL,"
    " leader uuid NOT NULL, lease_until timestamptz NOT NULL, head bigint NOT NULL,"
    " format int NOT NULL, at_ms bigint NOT NULL, chain bytea NOT NULL,"
    " verify boolean NOT NULL DEFAULT false)"
    " WITH (fillfactor = 10);"
    "CREATE UNIQUE INDEX assay_cluster_one ON assay_cluster ((true));"
    "CREATE TABLE assay_log (seq bigint PRIMARY KEY, epoch bigint NOT NULL,"
    " format int NOT NULL, at_ms bigint NOT NULL, rows bytea NOT NULL, chain bytea NOT NULL)"
    " PARTITION BY RANGE (seq);"
    "ALTER TABLE assay_log ALTER rows SET STORAGE EXTERNAL, ALTER chain SET STORAGE PLAIN;"
    "CREATE TABLE assay_node (node uuid PRIMARY KEY, name text NOT NULL,"
    " address text NOT NULL, version text NOT NULL, formats bigint NOT NULL,"
    " applied_seq bigint NOT NULL, free_bytes bigint NOT NULL, seen_at timestamptz NOT NULL,"
    " hash_seq bigint NOT NULL, hash bytea NOT NULL, differs_at bigint NOT NULL DEFAULT 0,"
    " stopped text NOT NULL DEFAULT '')";

/* $1 log, $2 leader, $3 chain */
static const char make_head[] =
    "INSERT INTO assay_cluster (log, epoch, leader, lease_until, head, format, at_ms, chain)"
    " VALUES ($1, 0, $2, 'epoch', 0, 0, 0, $3)";

/* In a transaction, which rolls back when the connection ends. */
static enum cluster_log_status make_all(struct pg *pg, const struct cluster_log_head *head,
                                        bool replace)
{
    static const struct pg_statement insert = {.number = PG_MAKE, .sql = make_head};
    PGresult *r;
    struct pg_parameters p = {0};
    pg_uuid(&p, head->log);
    pg_uuid(&p, head->leader);
    pg_bytes(&p, head->chain, sizeof(head->chain));
    enum cluster_log_status status = replace ? pg_script(pg, delete_tables, false) : CLUSTER_LOG_OK;
    if (status == CLUSTER_LOG_OK)
        status = pg_script(pg, make_tables, false);
    if (status == CLUSTER_LOG_OK)
        status = pg_run(pg, &insert, &p, &r);
    if (status != CLUSTER_LOG_OK)
        return status;
    PQclear(r);
    return pg_script(pg, "COMMIT", true);
}

enum cluster_log_status log_tables_make(struct cluster_log *l, const struct cluster_log_head *head,
                                        bool replace)
{
    struct cluster_log_head old;
    struct pg *pg = log_begin(l);
    enum cluster_log_status status =
        replace ? CLUSTER_LOG_NONE : l->engine->position(l, NULL, &old);
    if (status == CLUSTER_LOG_NONE)
        return make_all(pg, head, replace);
    if (status != CLUSTER_LOG_OK)
        return status;
    snprintf(pg->why, sizeof(pg->why),
             "the database has a log of Assay already: join it by `assay cluster join`, or replace "
             "it by `assay cluster new-log`");
    return CLUSTER_LOG_REFUSED;
}

static const char list_nodes[] =
    "SELECT node, name, address, formats, applied_seq, free_bytes,"
    " floor(extract(epoch FROM clock_timestamp() - seen_at) * 1000)::bigint,"
    " hash_seq, hash, differs_at, version, stopped"
    " FROM assay_node ORDER BY name, node";

enum cluster_log_status log_tables_nodes(struct cluster_log *l, cluster_log_node_fn *each,
                                         void *arg)
{
    static const struct pg_statement list = {.number = PG_NODES, .sql = list_nodes};
    PGresult *r;
    const struct pg_parameters none = {0};
    enum cluster_log_status status = pg_run(log_begin(l), &list, &none, &r);
    if (status != CLUSTER_LOG_OK)
        return status;
    for (int i = 0; i < PQntuples(r); i++) {
        struct cluster_log_node n = {.format = (uint32_t)pg_get_number(r, i, 3),
                                     .sequence = pg_get_number(r, i, 4),
                                     .free_bytes = pg_get_number(r, i, 5),
                                     .seen_ms = (int64_t)pg_get_number(r, i, 6),
                                     .hash_sequence = pg_get_number(r, i, 7),
                                     .differs_at = pg_get_number(r, i, 9)};
        pg_get_fixed(r, i, 8, n.hash, sizeof(n.hash));
        pg_get_fixed(r, i, 0, n.id, sizeof(n.id));
        pg_get_text(r, i, 1, n.name, sizeof(n.name));
        pg_get_text(r, i, 2, n.address, sizeof(n.address));
        pg_get_text(r, i, 10, n.version, sizeof(n.version));
        pg_get_text(r, i, 11, n.stopped, sizeof(n.stopped));
        each(arg, &n);
    }
    PQclear(r);
    return CLUSTER_LOG_OK;
}

enum cluster_log_status log_tables_remove(struct cluster_log *l, const uint8_t node[NODE_BYTES],
                                          int64_t unseen_ms)
{
    static const struct pg_statement remove = {
        .number = PG_REMOVE,
        .sql = "DELETE FROM assay_node WHERE node = $1"
               " AND seen_at < clock_timestamp() - $2 * interval '1 ms' RETURNING 1"};
    PGresult *r;
    struct pg_parameters p = {0};
    pg_uuid(&p, node);
    pg_number(&p, (uint64_t)unseen_ms);
    enum cluster_log_status status = pg_run(log_begin(l), &remove, &p, &r);
    if (status != CLUSTER_LOG_OK)
        return status;
    status = PQntuples(r) == 1 ? CLUSTER_LOG_OK : CLUSTER_LOG_NONE;
    PQclear(r);
    return status;
}

enum cluster_log_status log_tables_verify(struct cluster_log *l, uint64_t *sequence)
{
    static const struct pg_statement ask = {
        .number = PG_VERIFY, .sql = "UPDATE assay_cluster SET verify = true RETURNING head"};
    PGresult *r;
    const struct pg_parameters none = {0};
    enum cluster_log_status status = pg_run(log_begin(l), &ask, &none, &r);
    if (status != CLUSTER_LOG_OK)
        return status;
    status = PQntuples(r) == 1 ? CLUSTER_LOG_OK : CLUSTER_LOG_NONE;
    if (status == CLUSTER_LOG_OK)
        *sequence = pg_get_number(r, 0, 0);
    PQclear(r);
    return status;
}

/*
 * $1 node, $2 name, $3 address, so that another server with this id does not match; $4 why, $5
 * differs_at or 0
 */
static const char stop_node[] = "UPDATE assay_node SET stopped = $4,"
                                " differs_at = CASE WHEN $5 = 0 THEN differs_at ELSE $5 END"
                                " WHERE node = $1 AND name = $2 AND address = $3";

enum cluster_log_status log_tables_stop(struct cluster_log *l, const struct cluster_log_node *node)
{
    static const struct pg_statement stop = {.number = PG_STOP, .sql = stop_node};
    PGresult *r;
    struct pg_parameters p = {0};
    pg_uuid(&p, node->id);
    pg_text(&p, node->name);
    pg_text(&p, node->address);
    pg_text(&p, node->stopped);
    pg_number(&p, node->differs_at);
    enum cluster_log_status status = pg_run(log_begin(l), &stop, &p, &r);
    if (status == CLUSTER_LOG_OK)
        PQclear(r);
    return status;
}

/* Columns: a condition on the settings of the server, and what it means for the log. */
static const char list_warnings[] =
    "SELECT sentence FROM (VALUES"
    " ('synchronous_standby_names', '', 'synchronous_standby_names is empty: an entry is on one"
    " server alone, and is lost with its disk'),"
    " ('fsync', 'off', 'fsync is off: a power cut can damage the database'),"
    " ('full_page_writes', 'off', 'full_page_writes is off: a power cut can damage the database')"
    ") w (name, bad, sentence) WHERE current_setting(w.name) = w.bad";

enum cluster_log_status log_tables_warnings(struct cluster_log *l, cluster_log_warning_fn *each,
                                            void *arg)
{
    static const struct pg_statement list = {.number = PG_WARNINGS, .sql = list_warnings};
    PGresult *r;
    const struct pg_parameters none = {0};
    enum cluster_log_status status = pg_run(log_begin(l), &list, &none, &r);
    if (status != CLUSTER_LOG_OK)
        return status;
    for (int i = 0; i < PQntuples(r); i++)
        each(arg, PQgetvalue(r, i, 0));
    PQclear(r);
    return CLUSTER_LOG_OK;
}
