#include "t/kit/postgres_internal.h"
#include "t/kit/supervisor.h"
#include "t/kit/wait.h"

#include <check.h>
#include <libpq-fe.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/shm.h>
#include <unistd.h>

enum { START_MS = 60000, STOP_MS = 60000, PORTS_TRIED = 5 };

char *postgres_data(const struct postgres *p)
{
    return text("%s/data", p->supervisor->dir);
}

/* The lines of its lock file: pid, folder, start, port, folder of sockets, address, System V
 * segment, state. A killed server leaves the file. */
enum { LINE_PID, LINE_SEGMENT = 6, LINE_STATE = 7, LINES };

struct lock_file {
    char lines[LINES][256];
};

static struct lock_file read_lock_file(const char *dir)
{
    struct lock_file lock = {{""}};
    char *path = text("%s/data/postmaster.pid", dir);
    FILE *file = fopen(path, "r");
    for (int i = 0; file && i < LINES && fgets(lock.lines[i], sizeof(lock.lines[i]), file);)
        i++;
    if (file)
        fclose(file);
    free(path);
    return lock;
}

/* A killed server leaves the small segment that guards its folder. */
static void remove_segment(const char *dir)
{
    struct lock_file lock = read_lock_file(dir);
    int id;
    if (sscanf(lock.lines[LINE_SEGMENT], "%*u %d", &id) == 1)
        shmctl(id, IPC_RMID, NULL);
}

static struct postgres *server_of(void)
{
    struct postgres *p = calloc(1, sizeof(*p));
    ck_assert_ptr_nonnull(p);
    ck_assert_msg(!postgres_missing(), "%s", postgres_missing());
    p->supervisor = supervisor_new("postgres", "postgres", remove_segment);
    return p;
}

/* ---- starting ---- */

static bool is_ready_or_ended(void *arg)
{
    const struct postgres *p = arg;
    pid_t pid = supervisor_server(p->supervisor);
    struct lock_file lock = read_lock_file(p->supervisor->dir);
    return pid == 0 || (atoi(lock.lines[LINE_PID]) == pid &&
                        !strncmp(lock.lines[LINE_STATE], "ready", strlen("ready")));
}

/* False: it has ended at once, perhaps because another program has taken the port. */
static bool start(struct postgres *p)
{
    char *data = postgres_data(p), *port = text("%u", p->port);
    supervisor_start(p->supervisor, postgres_program("postgres"), "-D", data, "-p", port, "-k",
                     p->supervisor->dir, NULL);
    ck_assert_msg(wait_until(is_ready_or_ended, p, START_MS), "PostgreSQL does not start:\n%s",
                  supervisor_log(p->supervisor));
    free(data);
    free(port);
    return supervisor_server(p->supervisor) > 0;
}

static void start_on_free_port(struct postgres *p)
{
    bool started = false;
    for (int i = 0; i < PORTS_TRIED && !started; i++) {
        p->port = loopback_port();
        started = start(p);
    }
    ck_assert_msg(started, "PostgreSQL does not start:\n%s", supervisor_log(p->supervisor));
}

struct postgres *postgres_new(void)
{
    struct postgres *p = server_of();
    postgres_fill(p);
    start_on_free_port(p);
    return p;
}

void postgres_free(struct postgres *p)
{
    if (!p)
        return;
    supervisor_free(p->supervisor);
    free(p->name);
    free(p);
}

/* ---- standbys ---- */

/* The copy has the settings of the primary. Its own commits wait for nobody. */
static void copy_primary(struct postgres *p, const struct postgres *primary)
{
    char *data = postgres_data(p), *path = text("%s/postgresql.auto.conf", data);
    char *source = text("host=%s port=%u user=postgres application_name=%s",
                        primary->supervisor->dir, primary->port, p->name);
    supervisor_run(p->supervisor, -1, -1, postgres_program("pg_basebackup"), "-d", source, "-D",
                   data, "-R", "-X", "stream", "-c", "fast", "--no-sync", NULL);
    FILE *file = fopen(path, "a");
    ck_assert_ptr_nonnull(file);
    fputs("synchronous_standby_names = ''\n", file);
    ck_assert_int_eq(fclose(file), 0);
    free(source);
    free(path);
    free(data);
}

/* ${wanted} is written as in pg_stat_replication. */
struct follower {
    const struct postgres *primary, *standby;
    const char *wanted;
};

static bool streams(void *arg)
{
    const struct follower *f = arg;
    char *count = postgres_query(f->primary,
                                 "SELECT count(*) FROM pg_stat_replication WHERE state = "
                                 "'streaming' AND application_name = '%s' AND sync_state IN (%s)",
                                 f->standby->name, f->wanted);
    bool there = !strcmp(count, "1");
    free(count);
    return there;
}

/* All synchronous standbys of ${primary}: those so far, and ${name}. */
static void add_synchronous(const struct postgres *primary, const char *name)
{
    char *names = postgres_query(primary, "SELECT coalesce(substring(current_setting("
                                          "'synchronous_standby_names') from '\\((.*)\\)'), '')");
    char *all = text("%s%s%s", names, *names ? ", " : "", name);
    int count = 1;
    for (const char *at = all; (at = strchr(at, ',')) != NULL; at++)
        count++;
    char *value = text("%d (%s)", count, all);
    postgres_set(primary, "synchronous_standby_names", value);
    free(value);
    free(all);
    free(names);
}

struct postgres *postgres_follow(const struct postgres *primary, enum postgres_sync sync)
{
    struct postgres *p = server_of();
    struct follower f = {primary, p, "'async', 'potential'"};
    p->name = text("standby%d", (int)p->supervisor->self);
    copy_primary(p, primary);
    start_on_free_port(p);
    if (sync == POSTGRES_SYNCHRONOUS) {
        add_synchronous(primary, p->name);
        f.wanted = "'sync'";
    }
    ck_assert_msg(wait_until(streams, &f, START_MS), "the standby does not stream:\n%s",
                  supervisor_log(p->supervisor));
    return p;
}

void postgres_promote(struct postgres *p)
{
    char *promoted = postgres_query(p, "SELECT pg_promote()");
    ck_assert_str_eq(promoted, "t");
    free(promoted);
}

/* ---- stopping ---- */

void postgres_stop(struct postgres *p, enum postgres_shutdown how)
{
    supervisor_signal(p->supervisor, how == POSTGRES_FAST ? SIGINT : SIGQUIT);
    int status = supervisor_wait(p->supervisor, STOP_MS);
    ck_assert_msg(status == 0, "PostgreSQL stops with status %d:\n%s", status,
                  supervisor_log(p->supervisor));
}

void postgres_kill(struct postgres *p)
{
    supervisor_signal_all(p->supervisor, SIGKILL);
}

void postgres_start(struct postgres *p)
{
    ck_assert_msg(start(p), "PostgreSQL does not start:\n%s", supervisor_log(p->supervisor));
}

void postgres_pause(struct postgres *p)
{
    supervisor_signal_all(p->supervisor, SIGSTOP);
}

void postgres_resume(struct postgres *p)
{
    supervisor_signal_all(p->supervisor, SIGCONT);
}

pid_t postgres_pause_backend(const struct postgres *p, const char *application_name)
{
    char *pids = postgres_query(p,
                                "SELECT string_agg(pid::text, ' ') FROM pg_stat_activity WHERE "
                                "application_name = '%s'",
                                application_name);
    ck_assert_msg(pids && !strchr(pids, ' '), "backends of %s: %s", application_name,
                  pids ? pids : "none");
    pid_t pid = (pid_t)atoi(pids);
    free(pids);
    process_stop(pid);
    return pid;
}

/* ---- statements ---- */

char *postgres_query(const struct postgres *p, const char *sql, ...)
{
    char *statement = NULL, *out = NULL;
    char *info = text("host=%s port=%u dbname=assay user=postgres", p->supervisor->dir, p->port);
    va_list args;
    va_start(args, sql);
    ck_assert_int_gt(vasprintf(&statement, sql, args), 0);
    va_end(args);
    PGconn *connection = PQconnectdb(info);
    PGresult *result = PQexec(connection, statement);
    ExecStatusType status = PQresultStatus(result);
    ck_assert_msg(status == PGRES_TUPLES_OK || status == PGRES_COMMAND_OK, "%s: %s", statement,
                  PQerrorMessage(connection));
    if (PQntuples(result) > 0 && !PQgetisnull(result, 0, 0))
        out = text("%s", PQgetvalue(result, 0, 0));
    PQclear(result);
    PQfinish(connection);
    free(statement);
    free(info);
    return out;
}

struct reload {
    const struct postgres *p;
    char *before;
};

static bool is_reloaded(void *arg)
{
    const struct reload *reload = arg;
    char *loaded = postgres_query(reload->p, "SELECT pg_conf_load_time()");
    bool later = strcmp(loaded, reload->before) != 0;
    free(loaded);
    return later;
}

/* The checkpointer reads settings before a checkpoint; it decides whether commits wait. */
void postgres_set(const struct postgres *p, const char *setting, const char *value)
{
    struct reload reload = {p, postgres_query(p, "SELECT pg_conf_load_time()")};
    free(postgres_query(p, "ALTER SYSTEM SET %s = '%s'", setting, value));
    free(postgres_query(p, "SELECT pg_reload_conf()"));
    ck_assert_msg(wait_until(is_reloaded, &reload, START_MS), "PostgreSQL does not reload:\n%s",
                  supervisor_log(p->supervisor));
    free(postgres_query(p, "CHECKPOINT"));
    free(reload.before);
}

char *postgres_conninfo(uint16_t port, uint16_t other)
{
    if (other == 0)
        return text("host=127.0.0.1 port=%u dbname=assay user=assay", port);
    return text("host=127.0.0.1,127.0.0.1 port=%u,%u dbname=assay user=assay "
                "target_session_attrs=read-write connect_timeout=2",
                port, other);
}
