/*
 * PostgreSQL servers of a test, on ports of loopback, each in a private directory (supervisor.h).
 * Data are as durable as PostgreSQL's defaults make them. Tests that use this file link
 * t/kit/libharness.a and libpq.
 *
 * Clients connect as the role `assay`, which owns the database `assay` and is no superuser. TCP is
 * for this role alone. A function that fails fails the running test.
 */
#ifndef ASSAY_T_KIT_POSTGRES_H
#define ASSAY_T_KIT_POSTGRES_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct supervisor;

struct postgres {
    struct supervisor *supervisor;
    uint16_t port;
    char *name; /* its application_name at the server that it follows */
};

/* postgres_missing(): NULL, or a sentence that says what is not installed. */
const char *postgres_missing(void);

/*
 * postgres_new(): starts a primary. postgres_follow(primary, sync): starts a standby of it and
 * waits until it streams. A commit on ${primary} then waits for every synchronous standby.
 * postgres_free: kills the server and removes its directory.
 */
enum postgres_sync { POSTGRES_ASYNCHRONOUS, POSTGRES_SYNCHRONOUS };
struct postgres *postgres_new(void);
struct postgres *postgres_follow(const struct postgres *primary, enum postgres_sync sync);
void postgres_free(struct postgres *p);

/*
 * postgres_stop(p, how): shuts down. An immediate shutdown recovers at the next start.
 * postgres_kill: SIGKILL to all its processes. postgres_start: starts it again and waits until it
 * accepts connections. postgres_promote: makes a primary of a standby; its commits wait for nobody.
 */
enum postgres_shutdown { POSTGRES_FAST, POSTGRES_IMMEDIATE };
void postgres_stop(struct postgres *p, enum postgres_shutdown how);
void postgres_kill(struct postgres *p);
void postgres_start(struct postgres *p);
void postgres_promote(struct postgres *p);

/*
 * postgres_pause(p): SIGSTOP to all its processes. postgres_resume: SIGCONT.
 * postgres_pause_backend: SIGSTOP to the one backend with this application_name; its pid, for
 * kill(pid, SIGCONT).
 */
void postgres_pause(struct postgres *p);
void postgres_resume(struct postgres *p);
pid_t postgres_pause_backend(const struct postgres *p, const char *application_name);

/*
 * postgres_query(p, sql, …): runs a statement as a superuser; the first column of the first row as
 * a new string, NULL: no row, or null. postgres_set: changes a setting of the server and reloads.
 */
char *postgres_query(const struct postgres *p, const char *sql, ...)
    __attribute__((format(printf, 2, 3)));
void postgres_set(const struct postgres *p, const char *setting, const char *value);

/*
 * postgres_conninfo(port, other): a connection string for libpq as the role assay. ${other}, if not
 * 0, is a second port; the connection then goes to the server that accepts writes. A port may be
 * that of a fault proxy.
 */
char *postgres_conninfo(uint16_t port, uint16_t other);

#endif
