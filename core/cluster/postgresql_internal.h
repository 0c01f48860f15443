/*
 * A connection to PostgreSQL whose calls have a deadline, by libpq's asynchronous functions. Values
 * travel in binary format. Of one thread.
 */
#ifndef ASSAY_CLUSTER_POSTGRESQL_INTERNAL_H
#define ASSAY_CLUSTER_POSTGRESQL_INTERNAL_H

#include "core/cluster/cluster_log.h"

#include <libpq-fe.h>

#define PG_PARAMETERS 12

/* The statements of the log: log_postgresql.c, log_tables.c. */
enum {
    PG_POSITION,
    PG_NODE,
    PG_TAKEN,
    PG_LEAD,
    PG_APPEND,
    PG_READ,
    PG_CHAIN,
    PG_FIRST,
    PG_PARTITIONS,
    PG_REMOVE,
    PG_VERIFY,
    PG_STOP,
    PG_MAKE,
    PG_NODES,
    PG_WARNINGS,
};

/* A statement; it is prepared when a connection first runs it. */
struct pg_statement {
    unsigned number;
    bool commits; /* it changes the log: when the connection is lost, the outcome is unknown */
    const char *sql;
};

struct pg {
    const char *source, *name;
    PGconn *c; /* NULL: not connected */
    uint32_t prepared;
    bool listens, notified;
    bool warned;       /* the server sent a warning during this statement */
    uint64_t until_ms; /* CLOCK_MONOTONIC: the deadline of this call */
    char why[512];
};

struct pg_parameters {
    int count;
    Oid types[PG_PARAMETERS];
    const char *values[PG_PARAMETERS];
    int lengths[PG_PARAMETERS], formats[PG_PARAMETERS];
    uint64_t numbers[PG_PARAMETERS];
};

void pg_number(struct pg_parameters *p, uint64_t value);
void pg_bytes(struct pg_parameters *p, const void *bytes, size_t n);
void pg_uuid(struct pg_parameters *p, const uint8_t id[NODE_BYTES]);
void pg_text(struct pg_parameters *p, const char *text);

/*
 * pg_begin(pg): a call of the engine begins, and has CLUSTER_LOG_CALL_MS.
 * pg_run(pg, statement, parameters, out): connect if needed and run it. After CLUSTER_LOG_OK ${out}
 * is the result, to free with PQclear. Failures close the connection, which rolls back; but not
 * CLUSTER_LOG_NONE.
 * pg_script(pg, sql, commits): several statements without parameters, in one transaction.
 * pg_wait(pg, wake, ms): as wait of the engine. pg_unlisten(pg): it is not called for a while.
 */
void pg_begin(struct pg *pg);
enum cluster_log_status pg_run(struct pg *pg, const struct pg_statement *statement,
                               const struct pg_parameters *parameters, PGresult **out);
enum cluster_log_status pg_script(struct pg *pg, const char *sql, bool commits);
void pg_wait(struct pg *pg, int wake, unsigned ms);
void pg_unlisten(struct pg *pg);
void pg_close(struct pg *pg);

/* Values of a result. Bytes of another length than ${n} leave ${out} as zeros. */
uint64_t pg_get_number(const PGresult *r, int row, int column);
struct str pg_get_bytes(const PGresult *r, int row, int column);
void pg_get_fixed(const PGresult *r, int row, int column, uint8_t *out, size_t n);
void pg_get_text(const PGresult *r, int row, int column, char *out, size_t size);

#endif
