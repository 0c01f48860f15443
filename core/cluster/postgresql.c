#include "core/cluster/postgresql_internal.h"

#include "core/shm/scoreboard.h"

#include <endian.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>

#define AFTER_CONNECT_MS 1000 /* minimum time of a call after it connected */

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

void pg_get_text(const PGresult *r, int row, int column, char *out, size_t size)
{
    struct str v = pg_get_bytes(r, row, column);
    snprintf(out, size, "%.*s", (int)v.n, v.p);
}

/* ---- the connection ---- */

void pg_begin(struct pg *pg)
{
    pg->until_ms = clock_mono_ms() + CLUSTER_LOG_CALL_MS;
    pg->why[0] = '\0';
}

void pg_close(struct pg *pg)
{
    PQfinish(pg->c);
    pg->c = NULL;
}

/* Joins its lines: each run of white space becomes a space. */
static void note_why(struct pg *pg, const char *text)
{
    size_t n = 0;
    for (; *text != '\0' && n < sizeof(pg->why) - 1; text++)
        if (strchr(" \t\r\n", *text) == NULL)
            pg->why[n++] = *text;
        else if (n > 0 && pg->why[n - 1] != ' ')
            pg->why[n++] = ' ';
    while (n > 0 && pg->why[n - 1] == ' ')
        n--;
    pg->why[n] = '\0';
}

/*
 * A commit that waits for a standby ends with a warning if the wait is cancelled. Every warning is
 * treated as that one, except the warning that transaction ids run out, which each statement then
 * has.
 */
static void on_notice(void *arg, const PGresult *r)
{
    struct pg *pg = arg;
    const char *severity = PQresultErrorField(r, PG_DIAG_SEVERITY_NONLOCALIZED);
    const char *file = PQresultErrorField(r, PG_DIAG_SOURCE_FILE);
    if (severity == NULL || strcmp(severity, "WARNING") != 0 ||
        (file != NULL && strcmp(file, "varsup.c") == 0))
        return;
    pg->warned = true;
    note_why(pg, PQresultErrorField(r, PG_DIAG_MESSAGE_PRIMARY));
}

static void take_notifications(struct pg *pg)
{
    for (PGnotify *n; (n = PQnotifies(pg->c)) != NULL; PQfreemem(n))
        pg->notified = true;
}

/* Waits until the socket is ready. False: the deadline has passed. */
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

/*
 * The source overrides the first three, and the others override the source. Uses libpq's blocking
 * call, because only that call tries the next host after connect_timeout.
 */
static PGconn *connect_to(const struct pg *pg)
{
    const char *const keys[] = {"target_session_attrs",
                                "connect_timeout",
                                "sslmode",
                                "dbname",
                                "application_name",
                                "client_encoding",
                                "tcp_user_timeout",
                                "keepalives_idle",
                                "keepalives_interval",
                                "keepalives_count",
                                NULL};
    const char *const values[] = {"read-write", "2", "prefer", pg->source, pg->name, "UTF8",
                                  "5000",       "2", "1",      "3",        NULL};
    return PQconnectdbParams(keys, values, 1);
}

/* ---- results ---- */

/* The last result, or the first error. NULL: the connection is lost or too slow. */
static PGresult *receive(struct pg *pg)
{
    PGresult *last = NULL;
    for (;;) {
        int left = PQflush(pg->c);
        if (left < 0 || (PQisBusy(pg->c) &&
                         (!wait_ready(pg->c, left > 0 ? POLLIN | POLLOUT : POLLIN, pg->until_ms) ||
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

/* The server or libpq ends the session, possibly during a commit. */
static bool is_end(const struct pg *pg, const PGresult *r)
{
    const char *severity = PQresultErrorField(r, PG_DIAG_SEVERITY_NONLOCALIZED);
    return PQstatus(pg->c) == CONNECTION_BAD || severity == NULL || strcmp(severity, "ERROR") != 0;
}

static enum cluster_log_status status_of(struct pg *pg, const PGresult *r, bool commits)
{
    enum cluster_log_status lost = commits ? CLUSTER_LOG_UNKNOWN : CLUSTER_LOG_AWAY;
    if (r == NULL) {
        const char *text = PQerrorMessage(pg->c);
        note_why(pg, text[0] != '\0' ? text : "no answer in time");
        return lost;
    }
    if (PQresultStatus(r) == PGRES_TUPLES_OK || PQresultStatus(r) == PGRES_COMMAND_OK)
        return pg->warned && commits ? CLUSTER_LOG_UNKNOWN : CLUSTER_LOG_OK;
    const char *text = PQresultErrorField(r, PG_DIAG_MESSAGE_PRIMARY);
    note_why(pg, text != NULL ? text : PQresultErrorMessage(r));
    if (is_end(pg, r))
        return lost;
    if (is_error(r, "42P01")) /* undefined table */
        return CLUSTER_LOG_NONE;
    /* 25006: a standby; 40: a conflict; 53: out of resources; 55P03: locked; 57: cancelled */
    if (is_error(r, "25006") || is_error(r, "40") || is_error(r, "53") || is_error(r, "55P03") ||
        is_error(r, "57"))
        return CLUSTER_LOG_AWAY;
    return CLUSTER_LOG_REFUSED;
}

/* ${sent}: libpq accepted the statement. Otherwise a part of it may be sent. */
static enum cluster_log_status finish(struct pg *pg, int sent, bool commits, PGresult **out)
{
    PGresult *r = sent ? receive(pg) : NULL;
    enum cluster_log_status status = status_of(pg, r, commits);
    take_notifications(pg);
    if (status == CLUSTER_LOG_OK && out != NULL)
        *out = r;
    else
        PQclear(r);
    if (status != CLUSTER_LOG_OK && status != CLUSTER_LOG_NONE)
        pg_close(pg);
    return status;
}

static enum cluster_log_status execute(struct pg *pg, const char *sql, bool commits)
{
    pg->warned = false;
    return finish(pg, PQsendQuery(pg->c, sql), commits, NULL);
}

/* client_min_messages: for on_notice. */
static const char session[] = "SET synchronous_commit = on; SET client_min_messages = warning;"
                              "SET default_transaction_isolation = 'read committed';"
                              "SET lock_timeout = 3000; SET statement_timeout = 0";

static enum cluster_log_status connected(struct pg *pg)
{
    if (pg->c != NULL)
        return CLUSTER_LOG_OK;
    pg->prepared = 0;
    pg->listens = pg->notified = false;
    pg->c = connect_to(pg);
    if (PQstatus(pg->c) != CONNECTION_OK) {
        note_why(pg, PQerrorMessage(pg->c));
        pg_close(pg);
        return CLUSTER_LOG_AWAY;
    }
    const uint64_t least = clock_mono_ms() + AFTER_CONNECT_MS;
    if (pg->until_ms < least)
        pg->until_ms = least;
    PQsetnonblocking(pg->c, 1);
    PQsetNoticeReceiver(pg->c, on_notice, pg);
    return execute(pg, session, false);
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

enum cluster_log_status pg_script(struct pg *pg, const char *sql, bool commits)
{
    enum cluster_log_status status = connected(pg);
    return status == CLUSTER_LOG_OK ? execute(pg, sql, commits) : status;
}

void pg_unlisten(struct pg *pg)
{
    if (pg->c != NULL && pg->listens)
        pg->listens = execute(pg, "UNLISTEN assay_log", false) != CLUSTER_LOG_OK;
}

/* Whether an entry may have been appended since the caller read the log. */
static bool is_notified(struct pg *pg)
{
    bool listens = pg->listens;
    if (pg->c != NULL && !listens)
        pg->listens = execute(pg, "LISTEN assay_log", false) == CLUSTER_LOG_OK;
    return pg->notified || pg->listens != listens;
}

void pg_wait(struct pg *pg, int wake, unsigned ms)
{
    bool notified = is_notified(pg);
    struct pollfd ready[] = {{wake, POLLIN, 0}, {pg->c != NULL ? PQsocket(pg->c) : -1, POLLIN, 0}};
    if (!notified && poll(ready, 2, (int)ms) > 0 && ready[1].revents != 0) {
        if (PQconsumeInput(pg->c) == 0)
            pg_close(pg);
        else
            take_notifications(pg);
    }
    pg->notified = false;
}
