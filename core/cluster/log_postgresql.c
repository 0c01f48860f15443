/*
 * The log in PostgreSQL; its tables are in log_tables.c. An append is one statement and one
 * transaction. It locks the row of assay_cluster, checks epoch and head, inserts the entry and
 * advances the head. A newer lead has changed the epoch in that row.
 */
#include "core/cluster/log_postgresql_internal.h"

#include <stdio.h>
#include <stdlib.h>

#define READ_ENTRIES "256"

/* No lead lasts that long: the clock of the server was set back, or this is another server. */
#define TOO_LONG "clock_timestamp() + interval '20 s'"
_Static_assert(2 * CLUSTER_LOG_LEASE_MS == 20000, "TOO_LONG");

/* Columns for struct cluster_log_head: c is the row of assay_cluster, n the row of its leader. */
#define HEAD(name, address)                                                                        \
    "c.log, c.epoch, c.leader, " name ", " address ", "                                            \
    "CASE WHEN c.lease_until BETWEEN clock_timestamp() AND " TOO_LONG                              \
    " THEN floor(extract(epoch FROM c.lease_until - clock_timestamp()) * 1000)::bigint"            \
    " ELSE 0 END, "                                                                                \
    "c.head, c.at_ms, c.chain, CASE WHEN c.verify THEN 1 ELSE 0 END::bigint, c.format::bigint, "   \
    "floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint"

static const struct pg_statement position_sql = {
    .number = PG_POSITION,
    .sql = "SELECT " HEAD("coalesce(n.name, '')", "coalesce(n.address, '')") //
    " FROM assay_cluster c LEFT JOIN assay_node n ON n.node = c.leader"};

/* $1 node, $2 epoch or 0, $3 lease in ms */
static const struct pg_statement lead_sql = {
    .number = PG_LEAD,
    .commits = true,
    .sql = "UPDATE assay_cluster c SET epoch = CASE WHEN $2 = 0 THEN epoch + 1 ELSE epoch END,"
           " leader = $1, lease_until = clock_timestamp() + $3 * interval '1 ms'"
           " WHERE CASE WHEN $2 = 0 THEN leader = $1 OR lease_until < clock_timestamp()"
           " OR lease_until > " TOO_LONG " ELSE epoch = $2 AND leader = $1 END"
           " RETURNING " HEAD("''::text", "''::text")};

/*
 * $1 sequence, $2 epoch, $3 format, $4 rows, $5 chain, $6 at_ms, $7 lease in ms, $8 chain before,
 * $9 not 0: an entry without rows. Epoch and sequence alone do not fence a server that lost its
 * last rows, because it assigns them again.
 */
static const struct pg_statement append_sql = {
    .number = PG_APPEND,
    .commits = true,
    .sql = "WITH fence AS (UPDATE assay_cluster SET head = $1, chain = $5, at_ms = $6,"
           " format = $3, verify = verify AND $9 = 0,"
           " lease_until = clock_timestamp() + $7 * interval '1 ms'"
           " WHERE epoch = $2 AND head = $1 - 1 AND chain = $8 RETURNING 1),"
           " entry AS (INSERT INTO assay_log (seq, epoch, format, at_ms, rows, chain)"
           " SELECT $1, $2, $3, $6, $4, $5 FROM fence RETURNING 1)"
           " SELECT pg_notify('assay_log', '') FROM entry"};

/* $1 sequence, $2 bytes */
static const struct pg_statement read_sql = {
    .number = PG_READ,
    .sql = "SELECT seq, epoch, format::bigint, rows, chain FROM (SELECT *,"
           " sum(octet_length(rows)) OVER (ORDER BY seq) - octet_length(rows) AS before"
           " FROM (SELECT * FROM assay_log WHERE seq > $1 ORDER BY seq LIMIT " READ_ENTRIES ") a) b"
           " WHERE before < $2 ORDER BY seq"};

static const struct pg_statement chain_sql = {.number = PG_CHAIN,
                                              .sql = "SELECT chain FROM assay_log WHERE seq = $1"};

/* The row o was noted during the last lease. */
#define LIVE "abs(extract(epoch FROM clock_timestamp() - o.seen_at)) <= 10"
_Static_assert(CLUSTER_LOG_LEASE_MS == 10000, "the seconds of LIVE and note_sql");

/*
 * $1 node, $2 name, $3 address, $4 format, $5 sequence, $6 free bytes, $7, $8 hash, 0: no new one;
 * $9 version. No row: another server registered with this id, or a node with this name, within the
 * last lease. Of two live nodes with one name each keeps it.
 */
static const struct pg_statement note_sql = {
    .number = PG_NODE,
    .sql =
        "INSERT INTO assay_node AS n"
        " (node, name, address, formats, applied_seq, free_bytes, hash_seq, hash, version,"
        " seen_at) SELECT $1, $2, $3, $4, $5, $6, $7, $8, $9, clock_timestamp()"
        " WHERE coalesce((SELECT o.node = $1 FROM assay_node o WHERE o.name = $2"
        " AND (o.node = $1 OR o.address <> $3) AND " LIVE " ORDER BY o.node <> $1 LIMIT 1), true)"
        " ON CONFLICT (node) DO UPDATE SET name = excluded.name, address = excluded.address,"
        " version = excluded.version, formats = excluded.formats,"
        " applied_seq = excluded.applied_seq,"
        " free_bytes = excluded.free_bytes, seen_at = excluded.seen_at, stopped = '',"
        " hash_seq = CASE WHEN $7 = 0 THEN n.hash_seq ELSE $7 END,"
        " hash = CASE WHEN $7 = 0 THEN n.hash ELSE $8 END"
        " WHERE (n.name = excluded.name AND n.address = excluded.address)"
        " OR abs(extract(epoch FROM excluded.seen_at - n.seen_at)) > 10"
        " RETURNING n.differs_at"};

/* The same parameters: who has this id, else who has this name; 1: it has the name. */
static const struct pg_statement taken_sql = {
    .number = PG_TAKEN,
    .sql = "SELECT o.name, o.address, CASE WHEN o.node = $1 THEN 0 ELSE 1 END::bigint"
           " FROM assay_node o WHERE (o.node = $1 OR (o.name = $2 AND o.address <> $3)) AND " LIVE
           " ORDER BY o.node <> $1 LIMIT 1"};

static void close_log(struct cluster_log *l)
{
    pg_close(&log_of(l)->pg);
    free(l);
}

static const char *why(const struct cluster_log *l)
{
    return ((const struct log_postgresql *)l)->pg.why;
}

static void wait_for(struct cluster_log *l, int wake, unsigned ms)
{
    pg_wait(log_begin(l), wake, ms);
}

static void head_of(const PGresult *r, struct cluster_log_head *out)
{
    out->epoch = pg_get_number(r, 0, 1);
    out->lease_ms = (int64_t)pg_get_number(r, 0, 5);
    out->sequence = pg_get_number(r, 0, 6);
    out->at_ms = (int64_t)pg_get_number(r, 0, 7);
    out->format = (uint32_t)pg_get_number(r, 0, 10);
    pg_get_fixed(r, 0, 0, out->log, sizeof(out->log));
    pg_get_fixed(r, 0, 2, out->leader, sizeof(out->leader));
    pg_get_text(r, 0, 3, out->leader_name, NODE_TEXT);
    pg_get_text(r, 0, 4, out->leader_address, NODE_TEXT);
    pg_get_fixed(r, 0, 8, out->chain, sizeof(out->chain));
    out->verify = pg_get_number(r, 0, 9) != 0;
    out->clock_ms = (int64_t)pg_get_number(r, 0, 11);
}

/* ${none}: the status if there is no row. */
static enum cluster_log_status run_head(struct pg *pg, const struct pg_statement *s,
                                        const struct pg_parameters *p, enum cluster_log_status none,
                                        struct cluster_log_head *out)
{
    PGresult *r;
    enum cluster_log_status status = pg_run(pg, s, p, &r);
    if (status != CLUSTER_LOG_OK)
        return status;
    if (PQntuples(r) == 0)
        status = none;
    else
        head_of(r, out);
    PQclear(r);
    return status;
}

/* Who has the id or the name of the node. */
static enum cluster_log_status find_taken(struct pg *pg, const struct cluster_log_node *node,
                                          struct cluster_log_head *out)
{
    PGresult *r;
    struct pg_parameters p = {0};
    pg_uuid(&p, node->id);
    pg_text(&p, node->name);
    pg_text(&p, node->address);
    enum cluster_log_status status = pg_run(pg, &taken_sql, &p, &r);
    if (status != CLUSTER_LOG_OK)
        return status;
    out->taken = PQntuples(r) == 1; /* otherwise it was removed: register it again */
    if (out->taken) {
        pg_get_text(r, 0, 0, out->taken_name, NODE_TEXT);
        pg_get_text(r, 0, 1, out->taken_address, NODE_TEXT);
        out->taken_by_name = pg_get_number(r, 0, 2) != 0;
    }
    PQclear(r);
    return status;
}

static enum cluster_log_status note(struct pg *pg, const struct cluster_log_node *node,
                                    struct cluster_log_head *out)
{
    PGresult *r;
    struct pg_parameters p = {0};
    pg_uuid(&p, node->id);
    pg_text(&p, node->name);
    pg_text(&p, node->address);
    pg_number(&p, node->format);
    pg_number(&p, node->sequence);
    pg_number(&p, node->free_bytes);
    pg_number(&p, node->hash_sequence);
    pg_bytes(&p, node->hash, sizeof(node->hash));
    pg_text(&p, node->version);
    enum cluster_log_status status = pg_run(pg, &note_sql, &p, &r);
    if (status != CLUSTER_LOG_OK)
        return status;
    bool noted = PQntuples(r) == 1;
    if (noted)
        out->differs_at = pg_get_number(r, 0, 0);
    PQclear(r);
    return noted ? status : find_taken(pg, node, out);
}

static enum cluster_log_status position(struct cluster_log *l, const struct cluster_log_node *node,
                                        struct cluster_log_head *out)
{
    struct pg *pg = log_begin(l);
    const struct pg_parameters none = {0};
    enum cluster_log_status status = CLUSTER_LOG_OK;
    *out = (struct cluster_log_head){0};
    if (node != NULL)
        status = note(pg, node, out);
    return status == CLUSTER_LOG_OK ? run_head(pg, &position_sql, &none, CLUSTER_LOG_NONE, out)
                                    : status;
}

static enum cluster_log_status lead(struct cluster_log *l, const uint8_t node[NODE_BYTES],
                                    uint64_t epoch, unsigned lease_ms, struct cluster_log_head *out)
{
    struct pg *pg = log_begin(l);
    struct pg_parameters p = {0};
    pg_uuid(&p, node);
    pg_number(&p, epoch);
    pg_number(&p, lease_ms);
    *out = (struct cluster_log_head){0};
    enum cluster_log_status status = run_head(pg, &lead_sql, &p, CLUSTER_LOG_LED, out);
    if (epoch == 0)
        log_of(l)->partition = 0; /* another log may have been created */
    if (status == CLUSTER_LOG_OK)
        status = log_tables_extend(log_of(l), out->sequence + 1);
    if (status == CLUSTER_LOG_OK && epoch == 0)
        pg_unlisten(pg);
    return status;
}

static enum cluster_log_status append(struct cluster_log *l, const struct cluster_log_entry *e)
{
    PGresult *r;
    struct pg_parameters p = {0};
    pg_number(&p, e->sequence);
    pg_number(&p, e->epoch);
    pg_number(&p, e->format);
    pg_bytes(&p, e->rows.p, e->rows.n);
    pg_bytes(&p, e->chain, sizeof(e->chain));
    pg_number(&p, (uint64_t)e->at_ms);
    pg_number(&p, CLUSTER_LOG_LEASE_MS);
    pg_bytes(&p, e->before, sizeof(e->before));
    pg_number(&p, e->mark);
    enum cluster_log_status status = pg_run(log_begin(l), &append_sql, &p, &r);
    if (status != CLUSTER_LOG_OK)
        return status;
    status = PQntuples(r) == 1 ? CLUSTER_LOG_OK : CLUSTER_LOG_LED;
    PQclear(r);
    return status;
}

static enum cluster_log_status read_entries(struct cluster_log *l, uint64_t after,
                                            cluster_log_entry_fn *each, void *arg)
{
    PGresult *r;
    struct pg_parameters p = {0};
    bool more = true;
    pg_number(&p, after);
    pg_number(&p, CLUSTER_LOG_READ_BYTES);
    enum cluster_log_status status = pg_run(log_begin(l), &read_sql, &p, &r);
    if (status != CLUSTER_LOG_OK)
        return status;
    int count = PQntuples(r);
    for (int i = 0; i < count && more; i++) {
        struct cluster_log_entry e = {.sequence = pg_get_number(r, i, 0),
                                      .epoch = pg_get_number(r, i, 1),
                                      .format = (uint32_t)pg_get_number(r, i, 2),
                                      .rows = pg_get_bytes(r, i, 3)};
        pg_get_fixed(r, i, 4, e.chain, sizeof(e.chain));
        more = each(arg, &e);
    }
    PQclear(r);
    return count == 0 ? CLUSTER_LOG_NONE : CLUSTER_LOG_OK;
}

static enum cluster_log_status chain_at(struct cluster_log *l, uint64_t sequence,
                                        uint8_t out[STORE_CHAIN_BYTES])
{
    PGresult *r;
    struct pg_parameters p = {0};
    pg_number(&p, sequence);
    enum cluster_log_status status = pg_run(log_begin(l), &chain_sql, &p, &r);
    if (status != CLUSTER_LOG_OK)
        return status;
    bool there = PQntuples(r) == 1;
    if (there)
        pg_get_fixed(r, 0, 0, out, STORE_CHAIN_BYTES);
    PQclear(r);
    return there ? CLUSTER_LOG_OK : CLUSTER_LOG_NONE;
}

static const struct cluster_log_engine engine = {
    .why = why,
    .lead = lead,
    .append = append,
    .read = read_entries,
    .position = position,
    .chain = chain_at,
    .first = log_tables_first,
    .trim = log_tables_trim,
    .wait = wait_for,
    .make = log_tables_make,
    .nodes = log_tables_nodes,
    .remove = log_tables_remove,
    .verify = log_tables_verify,
    .stop = log_tables_stop,
    .warnings = log_tables_warnings,
    .free = close_log,
};

struct cluster_log *log_postgresql_new(const char *source, const char *name)
{
    struct log_postgresql *l = calloc(1, sizeof(*l));
    if (l == NULL)
        return NULL;
    snprintf(l->name, sizeof(l->name), "assay %s", name);
    l->log.engine = &engine;
    l->pg = (struct pg){.source = source, .name = l->name};
    return &l->log;
}
