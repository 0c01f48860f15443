#include "core/cluster/postgresql_internal.h"

#include "core/shm/scoreboard.h"

#include <endian.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>

enum { OID_BYTES = 17, OID_NUMBER = 20, OID_TEXT = 25, OID_UUID = 2950 };

/* ---- parameters and values ---- */

static void add(struct pg_parameters *p, Oid type, const void *value, size_t n)
{
    p->types[p->count] = type;
    p->values[p->count] = n == 0 ? "" : value;
    p->lengths[p->count] = (int)n;
    p->formats[p->count] = 1;
    p->count++;
}

void pg_number(struct pg_parameters *p, uint64_t value)
{
    uint64_t *number = &p->numbers[p->count];
    *number = htobe64(value);
    add(p, OID_NUMBER, number, sizeof(*number));
}

void pg_bytes(struct pg_parameters *p, const void *bytes, size_t n)
{
    add(p, OID_BYTES, bytes, n);
}

void pg_uuid(struct pg_parameters *p, const uint8_t id[NODE_BYTES])
{
    add(p, OID_UUID, id, NODE_BYTES);
}

void pg_text(struct pg_parameters *p, const char *text)
{
    add(p, OID_TEXT, text, strlen(text));
}

uint64_t pg_get_number(const PGresult *r, int row, int column)
{
    uint64_t value = 0;
    if (PQgetlength(r, row, column) == sizeof(value))
        memcpy(&value, PQgetvalue(r, row, column), sizeof(value));
    return be64toh(value);
}

struct str pg_get_bytes(const PGresult *r, int row, int column)
{
    return (struct str){PQgetvalue(r, row, column), (size_t)PQgetlength(r, row, column)};
}

void pg_get_fixed(const PGresult *r, int row, int column, uint8_t *out, size_t n)
{
    struct str v = pg_get_bytes(r, row, column);
    memset(out, 0, n);
    if (v.n == n)
        memcpy(out, v.p, n);
}

void pg_get_text(const PGresult *r, int row, int column, char out[NODE_TEXT])
{
    struct str v = pg_get_bytes(r, row, column);
    snprintf(out, NODE_TEXT, "%.*s", (int)v.n, v.p);
}

/* ---- the connection ---- */

void pg_close(struct pg *pg)
{
    PQfinish(pg->c);
    pg->c = NULL;
}

/* One line of it. */
static void note_why(struct pg *pg, const char *text)
{
    snprintf(pg->why, sizeof(pg->why), "%.*s", (int)strcspn(text, "\n"), text);
}

/* A commit that waits for a standby ends with a warning when the wait is cancelled. */
static void on_notice(void *arg, const PGresult *r)
{
    struct pg *pg = arg;
    const char *severity = PQresultErrorField(r, PG_DIAG_SEVERITY_NONLOCALIZED);
    if (severity == NULL || strcmp(severity, "WARNING") != 0)
        return;
    pg->warned = true;
    note_why(pg, PQresultErrorField(r, PG_DIAG_MESSAGE_PRIMARY));
}

/* Until the socket is ready or the deadline has passed. False: it has. */
static bool wait_ready(const PGconn *c, short events, uint64_t until_ms)
{
    struct pollfd socket = {PQsocket(c), events, 0};
    for (;;) {
        uint64_t now = clock_mono_ms();
        int ready = now >= until_ms ? 0 : poll(&socket, 1, (int)(until_ms - now));
        if (ready >= 0 || errno != EINTR)
            return ready > 0;
    }
}

/* What the source says wins over the first three, and the others win over the source. */
static PGconn *connect_start(const struct pg *pg)
{
    const char *const pairs[][2] = {{"target_session_attrs", "read-write"},
                                    {"connect_timeout", "3"},
                                    {"sslmode", "prefer"},
                                    {"dbname", pg->source},
                                    {"application_name", pg->name},
                                    {"client_encoding", "UTF8"},
                                    {"tcp_user_timeout", "5000"},
                                    {"keepalives_idle", "2"},
                                    {"keepalives_interval", "1"},
                                    {"keepalives_count", "3"},
                                    {NULL, NULL}};
    const char *keys[16], *values[16];
    for (size_t i = 0; i < sizeof(pairs) / sizeof(*pairs); i++) {
        keys[i] = pairs[i][0];
        values[i] = pairs[i][1];
    }
    return PQconnectStartParams(keys, values, 1);
}

static bool connect_wait(struct pg *pg)
{
    const uint64_t until = clock_mono_ms() + CLUSTER_LOG_CALL_MS;
    PostgresPollingStatusType next = PGRES_POLLING_WRITING;
    while (next == PGRES_POLLING_WRITING || next == PGRES_POLLING_READING) {
        if (!wait_ready(pg->c, next == PGRES_POLLING_READING ? POLLIN : POLLOUT, until)) {
            snprintf(pg->why, sizeof(pg->why), "no connection within %d ms", CLUSTER_LOG_CALL_MS);
            return false;
        }
        next = PQconnectPoll(pg->c);
    }
    if (next != PGRES_POLLING_OK)
        note_why(pg, PQerrorMessage(pg->c));
    return next == PGRES_POLLING_OK;
}

/* ---- results ---- */

/* The last result, and the first error among all; NULL: the connection is lost or too slow. */
static PGresult *receive(struct pg *pg, uint64_t until_ms)
{
    PGresult *last = NULL;
    for (;;) {
        int left = PQflush(pg->c);
        if (left < 0 || (PQisBusy(pg->c) &&
                         (!wait_ready(pg->c, left > 0 ? POLLIN | POLLOUT : POLLIN, until_ms) ||
                          PQconsumeInput(pg->c) == 0)))
            break;
        if (PQisBusy(pg->c))
            continue;
        PGresult *r = PQgetResult(pg->c);
        if (r == NULL)
            return last;
        if (last != NULL && PQresultStatus(last) == PGRES_FATAL_ERROR) {
            PQclear(r);
            continue;
        }
        PQclear(last);
        last = r;
    }
    PQclear(last);
    return NULL;
}

static bool is_error(const PGresult *r, const char *state)
{
    const char *is = PQresultErrorField(r, PG_DIAG_SQLSTATE);
    return is != NULL && strncmp(is, state, strlen(state)) == 0;
}

/* 57: the server ends the session, which may happen while a commit waits for a standby. */
static enum cluster_log_status status_of(struct pg *pg, const PGresult *r, bool commits)
{
    enum cluster_log_status lost = commits ? CLUSTER_LOG_UNKNOWN : CLUSTER_LOG_AWAY;
    if (r == NULL) {
        note_why(pg,
                 PQstatus(pg->c) == CONNECTION_BAD ? PQerrorMessage(pg->c) : "no answer in time");
        return lost;
    }
    if (PQresultStatus(r) == PGRES_TUPLES_OK || PQresultStatus(r) == PGRES_COMMAND_OK)
        return pg->warned && commits ? CLUSTER_LOG_UNKNOWN : CLUSTER_LOG_OK;
    note_why(pg, PQresultErrorMessage(r));
    if (PQstatus(pg->c) == CONNECTION_BAD || is_error(r, "57"))
        return lost;
    if (is_error(r, "42P01")) /* undefined table */
        return CLUSTER_LOG_NONE;
    /* 25006: a standby; 40: it collides with another; 53: short of resources; 55P03: locked */
    if (is_error(r, "25006") || is_error(r, "40") || is_error(r, "53") || is_error(r, "55P03"))
        return CLUSTER_LOG_AWAY;
    return CLUSTER_LOG_REFUSED;
}

/* ${sent}: libpq took the statement. */
static enum cluster_log_status finish(struct pg *pg, int sent, bool commits, PGresult **out)
{
    PGresult *r = sent ? receive(pg, clock_mono_ms() + CLUSTER_LOG_CALL_MS) : NULL;
    enum cluster_log_status status = status_of(pg, r, commits && sent);
    PGnotify *n;
    while (pg->c != NULL && (n = PQnotifies(pg->c)) != NULL)
        PQfreemem(n);
    if (status == CLUSTER_LOG_OK && out != NULL)
        *out = r;
    else
        PQclear(r);
    if (status == CLUSTER_LOG_AWAY || status == CLUSTER_LOG_UNKNOWN)
        pg_close(pg);
    return status;
}

static enum cluster_log_status execute(struct pg *pg, const char *sql)
{
    return finish(pg, PQsendQuery(pg->c, sql), false, NULL);
}

static enum cluster_log_status connected(struct pg *pg)
{
    if (pg->c != NULL)
        return CLUSTER_LOG_OK;
    pg->prepared = 0;
    pg->listens = false;
    pg->c = connect_start(pg);
    if (pg->c == NULL || PQstatus(pg->c) == CONNECTION_BAD || !connect_wait(pg)) {
        if (pg->c != NULL && pg->why[0] == '\0')
            note_why(pg, PQerrorMessage(pg->c));
        pg_close(pg);
        return CLUSTER_LOG_AWAY;
    }
    PQsetnonblocking(pg->c, 1);
    PQsetNoticeReceiver(pg->c, on_notice, pg);
    enum cluster_log_status status = execute(
        pg, "SET synchronous_commit = on; SET default_transaction_isolation = 'read committed';"
            "SET lock_timeout = 3000; SET statement_timeout = 0; SET bytea_output = hex");
    if (status != CLUSTER_LOG_OK)
        pg_close(pg);
    return status == CLUSTER_LOG_OK ? CLUSTER_LOG_OK : CLUSTER_LOG_AWAY;
}

static enum cluster_log_status prepared(struct pg *pg, const struct pg_statement *s,
                                        const char *name, const struct pg_parameters *p)
{
    if ((pg->prepared & 1u << s->number) != 0)
        return CLUSTER_LOG_OK;
    enum cluster_log_status status =
        finish(pg, PQsendPrepare(pg->c, name, s->sql, p->count, p->types), false, NULL);
    if (status == CLUSTER_LOG_OK)
        pg->prepared |= 1u << s->number;
    return status;
}

enum cluster_log_status pg_run(struct pg *pg, const struct pg_statement *s,
                               const struct pg_parameters *p, PGresult **out)
{
    char name[16];
    snprintf(name, sizeof(name), "assay%u", s->number);
    pg->why[0] = '\0';
    enum cluster_log_status status = connected(pg);
    if (status == CLUSTER_LOG_OK)
        status = prepared(pg, s, name, p);
    if (status != CLUSTER_LOG_OK)
        return status;
    pg->warned = false;
    return finish(pg,
                  PQsendQueryPrepared(pg->c, name, p->count, p->values, p->lengths, p->formats, 1),
                  s->commits, out);
}

enum cluster_log_status pg_script(struct pg *pg, const char *sql)
{
    pg->why[0] = '\0';
    enum cluster_log_status status = connected(pg);
    return status == CLUSTER_LOG_OK ? execute(pg, sql) : status;
}

void pg_unlisten(struct pg *pg)
{
    if (pg->c != NULL && pg->listens)
        pg->listens = execute(pg, "UNLISTEN assay_log") != CLUSTER_LOG_OK;
}

void pg_wait(struct pg *pg, int wake, unsigned ms)
{
    PGnotify *n;
    if (pg->c != NULL && !pg->listens) { /* an entry may have come before */
        pg->listens = execute(pg, "LISTEN assay_log") == CLUSTER_LOG_OK;
        return;
    }
    struct pollfd ready[] = {{wake, POLLIN, 0}, {pg->c != NULL ? PQsocket(pg->c) : -1, POLLIN, 0}};
    if (poll(ready, 2, (int)ms) <= 0 || ready[1].revents == 0)
        return;
    if (PQconsumeInput(pg->c) == 0)
        pg_close(pg);
    while (pg->c != NULL && (n = PQnotifies(pg->c)) != NULL)
        PQfreemem(n);
}
