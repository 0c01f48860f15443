/*
 * USR2: another binary takes over under load, or the old one continues when either fails
 * (core/master/upgrade.h).
 */
#include "t/kit/harness.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <strings.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>

#define JSON "Content-Type: application/json"
#define LIMIT 8000000

static struct server *server;
static unsigned slots = 65536; /* of the limiter's table */
static char *program,
    *real; /* a link to the program that an upgrade starts, and its first target */

static void point_at(const char *target)
{
    char *next = text("%s.next", program);
    unlink(next);
    ck_assert_int_eq(symlink(target, next), 0);
    ck_assert_int_eq(rename(next, program), 0);
}

/* a shell script in place of the program */
static void point_at_script(const char *script)
{
    char *path = text("%s/script", server->dir);
    unlink(path);
    FILE *file = fopen(path, "w");
    ck_assert(file != NULL && fprintf(file, "#!/bin/sh\n%s\n", script) > 0);
    ck_assert(fchmod(fileno(file), 0755) == 0 && fclose(file) == 0);
    point_at(path);
}

static void configure(const char *more)
{
    server_configure(server, text("limits: { slots: %u, limiters: { api: { windows: [ { limit: %d, "
                                  "seconds: 2678400, key: api_key } ] } } }\n"
                                  "timeouts: { drain: 20s, upgrade: 15s }\n%s",
                                  slots, LIMIT, more));
}

static void setup(void)
{
    /* the new master is the old one's child, and then the test's */
    ck_assert_int_eq(prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
    server = server_new(&(struct server_options){.workers = 2});
    real = realpath(assayd_path(), NULL);
    program = text("%s/assayd", server->dir);
    point_at(real);
    setenv("ASSAYD", program, 1);
    configure("");
    server_start(server);
}

static void teardown(void)
{
    server_discard(server);
}

static pid_t pid_of_file(void)
{
    char line[32] = "";
    FILE *file = fopen(text("%s/assayd.pid", server->run), "r");
    if (file != NULL && fgets(line, sizeof(line), file) == NULL)
        line[0] = '\0';
    if (file != NULL)
        fclose(file);
    return (pid_t)atoi(line);
}

static bool is_succeeded(void *old)
{
    pid_t now = pid_of_file();
    return now > 0 && now != *(pid_t *)old;
}

static void expect_logged(const char *words, size_t from, int within_ms)
{
    ck_assert_msg(server_says(server, words, from, within_ms), "the log lacks \"%s\"\n%s", words,
                  server_log(server));
}

static size_t log_size(void)
{
    char *log = server_log(server);
    size_t size = strlen(log);
    free(log);
    return size;
}

struct ending {
    pid_t pid;
    int status;
};

static bool has_ended(void *arg)
{
    struct ending *e = arg;
    int status;
    return waitpid(e->pid, &status, WNOHANG) == e->pid && WIFEXITED(status) &&
           WEXITSTATUS(status) == e->status;
}

/* Another master serves and the old one drains. Returns the new pid. */
static pid_t upgrade(void)
{
    pid_t old = server->pid;
    server_signal(server, SIGUSR2);
    ck_assert_msg(wait_until(is_succeeded, &old, 20000), "no new master\n%s", server_log(server));
    server->pid = pid_of_file();
    return old;
}

static void expect_status_at_end(pid_t old, int status)
{
    ck_assert_msg(wait_until(has_ended, &(struct ending){old, status}, 30000),
                  "the old master (%d) did not exit with status %d\n%s", (int)old, status,
                  server_log(server));
}

static void expect_end(pid_t old)
{
    expect_status_at_end(old, 0);
}

static struct response *create(void)
{
    return http(server, .method = "POST", .path = "/api/v1/reports",
                .headers = {"Prefer: respond-async"}, .body = "url=http://x.test/");
}

static bool has_children(void *count)
{
    return server_children(server, NULL, 0) == *(size_t *)count;
}

/* A process that has just started may not have written its statistics. */
static bool stats_have(void *count)
{
    struct json_object *stats = assay_list(server, "stats", NULL);
    return json_object_array_length(stats) >= *(size_t *)count;
}

static void expect_service(unsigned workers)
{
    size_t count = 2 + workers;
    expect_status(http_get(server, "/api/v1/reports"), 200);
    expect_status(create(), 202);
    ck_assert_msg(wait_until(has_children, &count, 30000), "%zu children\n%s",
                  server_children(server, NULL, 0), server_log(server));
    ck_assert(wait_until(stats_have, &count, 30000));
}

START_TEST(a_new_binary_takes_over_and_the_old_one_exits)
{
    struct response *r = http_get(server, "/api/v1/reports");
    long before = atol(header(r, "X-RateLimit-Remaining"));
    for (int i = 1; i <= 3; i++) {
        ck_assert_int_eq(pid_of_file(), server->pid);
        if (i == 3) { /* what a restart would reset */
            slots = 4096;
            configure("");
        }
        expect_end(upgrade());
        r = http_get(server, "/api/v1/reports");
        ck_assert_int_eq(atol(header(r, "X-RateLimit-Remaining")), before - i);
    }
    ck_assert(server_ready(server, 1000));
    expect_service(2);
    ck_assert_str_eq(process_title(server->pid), "assayd: master");
    server_stop(server);
    ck_assert_int_eq(access(text("%s/assayd.pid", server->run), F_OK), -1);
    server_start(server);
    expect_service(2);
    server_stop(server);
}
END_TEST

START_TEST(an_upgrade_passes_unix_sockets_of_any_path)
{
    server_stop(server);
    configure(text("internal_listen: \"unix:%s/of operators 1,2.sock\"", server->dir));
    server_start(server);
    for (int i = 0; i < 2; i++)
        expect_end(upgrade());
    expect_service(2);
    struct run stats = assay(server, "stats", NULL);
    ck_assert_msg(strstr(stats.out, ", configuration generation 2,") != NULL, "%s", stats.out);
    server_stop(server);
}
END_TEST

static const unsigned worker_counts[] = {4, 1, 3};

START_TEST(the_new_master_has_its_own_workers)
{
    for (size_t i = 0; i < COUNT(worker_counts); i++) {
        server->options.workers = worker_counts[i];
        configure("");
        expect_end(upgrade());
        for (int k = 0; k < 20; k++)
            expect_status(http_get(server, "/api/v1/reports"), 200);
        expect_service(worker_counts[i]);
    }
    server_stop(server);
}
END_TEST

/* ---- the old master continues ---- */

/* The program started instead, the configuration, and the message of the old master. */
#define OTHER_DATA "# another data_dir"
static const struct {
    const char *script, *yaml, *says;
} failures[] = {
    {"exit 7", "", "ended with status 7"},
    {"kill -9 $$", "", "killed by signal 9"},
    {NULL, "", "ended with status 127"}, /* there is none */
    {"exec sleep 100", "timeouts: { upgrade: 1s, drain: 20s }\nlimits: { slots: 65536 }",
     "does not serve in time"},
    {NULL, "colour: blue", "ended with status 1"},
    {NULL, OTHER_DATA, "ended with status 2"},
    {NULL, "internal_listen: 192.0.2.1:1", "ended with status 2"},
};

static bool have_exited(void *pids)
{
    bool gone = true;
    for (size_t i = 0; i < 4; i++)
        gone = gone && !process_alive(((pid_t *)pids)[i]);
    return gone;
}

START_TEST(the_old_master_continues_when_the_new_one_fails)
{
    pid_t before[8], after[8];
    ck_assert_uint_eq(server_children(server, before, COUNT(before)), 4);
    if (strstr(failures[_i].yaml, "upgrade: 1s")) { /* the old master's timeout */
        server_configure(server, failures[_i].yaml);
        server_signal(server, SIGHUP);
        expect_logged("reloading", 0, 10000);
        ck_assert(wait_until(have_exited, before, 30000) &&
                  wait_until(has_children, &(size_t){4}, 30000));
    }
    ck_assert_uint_eq(server_children(server, before, COUNT(before)), 4);
    if (failures[_i].script != NULL)
        point_at_script(text(failures[_i].script, real));
    else if (failures[_i].yaml[0] == '\0')
        point_at("/nowhere/assayd");
    else {
        char *data = server->data;
        if (strcmp(failures[_i].yaml, OTHER_DATA) == 0)
            server->data = text("%s.other", data);
        server_configure(server, failures[_i].yaml);
        server->data = data;
    }
    size_t from = log_size();
    server_signal(server, SIGUSR2);
    for (int i = 0; i < 20; i++)
        expect_status(http_get(server, "/api/v1/reports"), 200);
    expect_logged(failures[_i].says, from, 20000);
    expect_logged("this one continues", from, 5000);
    configure("");
    expect_service(2);
    ck_assert_uint_eq(server_children(server, after, COUNT(after)), 4);
    ck_assert_msg(memcmp(before, after, sizeof(pid_t) * 4) == 0, "a process was replaced\n%s",
                  server_log(server));
    ck_assert_int_eq(pid_of_file(), server->pid);
    point_at(real);
    expect_end(upgrade());
    expect_service(2);
    kill(server->pid, SIGTERM);
    ck_assert_int_eq(server_wait(server, 20000), 0);
}
END_TEST

/*
 * The program started instead, which leaves a process (its pid is in a file); whether that process
 * exits by itself; the message of the old master.
 */
static const struct {
    const char *script, *says;
    bool ends;
} left_behind[] = {
    {"sleep 300 & echo $! >%s/left; exit 7", "ended with status 7", false},
    {"sleep 300 & echo $! >%s/left; kill -9 $$", "killed by signal 9", false},
    /* a binary that daemonizes */
    {"real=%2$s; $real \"$@\" & echo $! >%1$s/left; exit 0", "this one continues", true},
    /* a script that wraps it */
    {"sh -c 'echo $$ >%1$s/left; exec %2$s \"$@\"' sh \"$@\"; exit 9",
     "is not the process that was started", true},
};

static bool has_exited(void *pid)
{
    return !process_alive(*(pid_t *)pid);
}

/* If it held a lock or a listener, the next server could not start. */
START_TEST(a_process_of_a_failed_upgrade_inherits_nothing)
{
    int left = 0;
    point_at_script(text(left_behind[_i].script, server->dir, real));
    server_signal(server, SIGUSR2);
    expect_logged(left_behind[_i].says, 0, 10000);
    expect_logged("this one continues", 0, 10000);
    FILE *file = fopen(text("%s/left", server->dir), "r");
    ck_assert(file != NULL && fscanf(file, "%d", &left) == 1 && fclose(file) == 0);
    pid_t pid = left;
    if (left_behind[_i].ends)
        ck_assert_msg(wait_until(has_exited, &pid, 5000), "pid %d still runs\n%s", left,
                      server_log(server));
    else
        ck_assert(process_alive(pid));
    expect_service(2);
    kill(server->pid, SIGTERM);
    ck_assert_int_eq(server_wait(server, 20000), 0);
    point_at(real);
    server_start(server);
    expect_service(2);
    kill(server->pid, SIGTERM); /* the log reports an intended exit */
    ck_assert_int_eq(server_wait(server, 20000), 0);
    kill(pid, SIGKILL);
}
END_TEST

static bool no_child_is_left(void *arg)
{
    (void)arg;
    while (waitpid(-1, NULL, WNOHANG) > 0)
        ;
    return waitpid(-1, NULL, WNOHANG) < 0 && errno == ECHILD;
}

static bool new_master_runs(void *pid)
{
    pid_t pids[16];
    size_t count = server_children(server, pids, COUNT(pids));
    for (size_t i = 0; i < count && i < COUNT(pids); i++)
        if (strcmp(process_title(pids[i]), "assayd: master") == 0 ||
            strstr(process_title(pids[i]), "sleep") != NULL)
            *(pid_t *)pid = pids[i];
    /* it serves, and the old master has exited */
    if (*(pid_t *)pid == 0 && pid_of_file() != server->pid)
        *(pid_t *)pid = pid_of_file();
    return *(pid_t *)pid != 0;
}

/*
 * Whichever master is killed at any time, one server remains, and there are never two writers
 * (assay check; every created report is there).
 */
START_TEST(a_master_killed_during_an_upgrade_leaves_the_other_serving)
{
    bool old_exits = _i % 2 == 0;
    int delay_ms = _i / 2 * 7;
    pid_t old = server->pid, new_master = 0;
    expect_status(create(), 202);
    server_signal(server, SIGUSR2);
    ck_assert_msg(wait_until(new_master_runs, &new_master, 5000), "no new master\n%s",
                  server_log(server));
    poll(NULL, 0, delay_ms);
    kill(old_exits ? old : new_master, SIGKILL);
    if (old_exits) {
        ck_assert_int_eq(waitpid(old, NULL, 0), old);
        ck_assert_msg(wait_until(is_succeeded, &old, 20000),
                      "no new master: %d is%s alive, the file says %d\n%s", (int)new_master,
                      process_alive(new_master) ? "" : " not", (int)pid_of_file(),
                      server_log(server));
        server->pid = new_master;
        ck_assert_int_eq(pid_of_file(), new_master);
    } else if (!server_says(server, "drains its workers and ends", 0, 500)) {
        expect_logged("this one continues", 0, 5000);
        ck_assert_int_eq(pid_of_file(), old);
    } else { /* it was the server, and died as one */
        bool drained = !server_says(server, "ended while this one still drained", 0, 500);
        expect_status_at_end(old, drained ? 0 : 3);
        ck_assert(wait_until(no_child_is_left, NULL, 10000));
        server->pid = 0;
        server_start(server);
    }
    expect_service(2);
    struct run check = assay(server, "check", NULL);
    ck_assert_msg(check.status == 0, "%s%s", check.out, check.err);
    expect_end(upgrade());
    expect_service(2);
}
END_TEST

/*
 * When the new server dies, the old master does not drain: its supervisor must start another
 * server.
 */
START_TEST(the_death_of_a_new_master_during_takeover_ends_the_server)
{
    struct raw *under_way = raw_open(server);
    raw_text(under_way, "GET /healthz HTTP/1.1\r\nHo");
    poll(NULL, 0, 100);
    pid_t old = upgrade();
    int64_t died = now_ms();
    ck_assert_int_eq(kill(server->pid, SIGKILL), 0);
    expect_status_at_end(old, 3);
    ck_assert_int_lt(now_ms() - died, 10000); /* timeouts.drain is 20 s */
    raw_close(under_way);
    ck_assert(wait_until(no_child_is_left, NULL, 10000));
    server->pid = 0;
    server_start(server);
    expect_service(2);
    server_stop(server);
}
END_TEST

/*
 * The holder of the lock in data_dir is the writer. Another writer waits, however it was started.
 */
START_TEST(a_new_writer_waits_for_the_old_one_to_exit)
{
    server_stop(server);
    int taken = open(text("%s/writer.lock", server->data), O_RDWR | O_CLOEXEC);
    ck_assert(taken >= 0 && flock(taken, LOCK_EX | LOCK_NB) == 0);
    server_spawn(server, NULL);
    ck_assert_msg(!server_ready(server, 700), "two writers at the same time");
    close(taken);
    ck_assert_msg(server_ready(server, 10000), "%s", server_log(server));
    expect_service(2);
    server_stop(server);
}
END_TEST

/* ---- other signals during an upgrade ---- */

/* Returns the pid of the new master. */
static pid_t begin_slow_upgrade(void)
{
    int pid = 0;
    point_at_script(text("sleep 0.3\nexec %s \"$@\"", real));
    server_signal(server, SIGUSR2);
    expect_logged("starts as pid", 0, 5000);
    ck_assert(sscanf(strstr(server_log(server), "starts as pid"), "starts as pid %d", &pid) == 1);
    return pid;
}

START_TEST(a_second_upgrade_signal_changes_nothing)
{
    pid_t old = server->pid;
    begin_slow_upgrade();
    server_signal(server, SIGUSR2);
    expect_logged("one is in progress", 0, 5000);
    ck_assert(wait_until(is_succeeded, &old, 20000));
    server->pid = pid_of_file();
    expect_end(old);
    expect_service(2);
    server_stop(server);
}
END_TEST

static bool links_begin_with(void *arg)
{
    struct response *r = http_get(server, "/api/v1/reports");
    bool same = !strncmp(str_at(r, "meta.path"), arg, strlen(arg));
    response_free(r);
    return same;
}

START_TEST(a_reload_during_an_upgrade_reaches_the_new_master)
{
    pid_t old = server->pid;
    begin_slow_upgrade();
    configure("base_url: http://meanwhile.test");
    server_signal(server, SIGHUP);
    ck_assert(wait_until(is_succeeded, &old, 20000));
    server->pid = pid_of_file();
    ck_assert_msg(wait_until(links_begin_with, "http://meanwhile.test", 10000), "%s",
                  server_log(server));
    expect_end(old);
    expect_service(2);
    server_stop(server);
}
END_TEST

/*
 * The new master's writer also serves the old one's workers: a stop keeps it for as long as they
 * answer.
 */
START_TEST(a_stop_during_an_upgrade_lets_the_old_master_answer)
{
    const char *body = "url=http%3A%2F%2Fx.test%2F";
    struct raw *under_way = raw_open(server);
    raw_text(under_way,
             "POST /api/v1/reports HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\nPrefer: "
             "respond-async\r\n"
             "Content-Type: application/x-www-form-urlencoded\r\nContent-Length: %zu\r\n\r\n%.3s",
             server->key, strlen(body), body);
    poll(NULL, 0, 100);
    pid_t old = upgrade();
    server_signal(server, SIGTERM);
    poll(NULL, 0, 1500); /* its own workers have nothing to answer */
    ck_assert_msg(process_alive(server->pid), "it did not wait\n%s", server_log(server));
    raw_text(under_way, "%s", body + 3);
    expect_status(raw_response(under_way, false, 5000), 202);
    raw_close(under_way);
    expect_end(old);
    expect_end(server->pid);
    server->pid = 0;
}
END_TEST

static const int stops[] = {SIGTERM, SIGINT, SIGQUIT};

START_TEST(a_stop_during_an_upgrade_stops_both_masters)
{
    struct raw *idle = raw_open(server); /* so that the old master takes a while to exit */
    raw_text(idle, "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n");
    expect_status(raw_response(idle, false, 5000), 200);
    pid_t new_master = begin_slow_upgrade();
    if (_i >= (int)COUNT(stops)) {
        /* the new master's: it is about to start workers */
        expect_logged("counts in", log_size(), 5000);
        poll(NULL, 0, (_i / (int)COUNT(stops) - 1) * 10);
    }
    server_signal(server, stops[_i % (int)COUNT(stops)]);
    /* a supervisor that waits for the signalled master has waited for both */
    if (stops[_i % (int)COUNT(stops)] != SIGINT) {
        expect_end(server->pid);
        ck_assert_msg(!process_alive(new_master), "the new master survives the old one\n%s",
                      server_log(server));
    }
    ck_assert_msg(wait_until(no_child_is_left, NULL, 20000), "a process is left\n%s",
                  server_log(server));
    server->pid = 0;
    unsetenv("ASSAYD");
    server_start(server);
    expect_status(http_get(server, "/api/v1/reports"), 200);
}
END_TEST

/* ---- no request is lost ---- */

enum kind { READS, WRITES, SLOW_READS };
struct load {
    enum kind kind;
    bool fresh; /* a new connection for each request */
    pthread_t thread;
    atomic_uint done, created, deleted;
    long long id; /* the next one to delete */
    unsigned longest_ms;
    char *failure;
};
static atomic_bool load_ends;

static void slowly(struct raw *raw, const char *bytes)
{
    for (size_t n = strlen(bytes), at = 0; at < n; at += 16) {
        raw_send(raw, bytes + at, n - at < 16 ? n - at : 16);
        poll(NULL, 0, 15);
    }
}

static int load_request(struct raw *raw, struct load *load)
{
    const char *body = "url=http%3A%2F%2F127.0.0.1%3A80%2F";
    if (load->kind == READS)
        raw_get(raw, server->key, "/api/v1/reports");
    else if (load->kind == SLOW_READS)
        slowly(raw,
               text("GET /api/v1/reports HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\n\r\n",
                    server->key));
    else if (load->id != 0)
        raw_text(
            raw,
            "DELETE /api/v1/reports/%lld HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\n\r\n",
            load->id, server->key);
    else
        raw_post(raw, server->key, "Prefer: respond-async\r\n", body);
    return load->kind != WRITES ? 200 : load->id != 0 ? 200 : 202;
}

static void load_answered(struct load *load, const struct response *r)
{
    if (r->status == 202) {
        load->created++;
        load->id = int_at(r, "data.id");
    } else if (load->kind == WRITES && r->status == 200) {
        load->deleted++;
        load->id = 0;
    }
    load->done++;
}

static void *load_run(void *arg)
{
    struct load *load = arg;
    struct raw *raw = NULL;
    while (!load_ends && !load->failure) {
        raw = raw ? raw : raw_open(server);
        int64_t began = now_ms();
        int want = load_request(raw, load);
        struct response *r = raw_response(raw, false, 20000);
        const char *connection = header(r, "Connection");
        unsigned took = (unsigned)(now_ms() - began);
        load->longest_ms = took > load->longest_ms ? took : load->longest_ms;
        if (r->status != want)
            load->failure = text("after %u requests: status %d, not %d, %u ms\n%s", load->done,
                                 r->status, want, took, response_text(r));
        load_answered(load, r);
        if (load->fresh || (connection && !strcasecmp(connection, "close"))) {
            raw_close(raw);
            raw = NULL;
        }
        response_free(r);
    }
    raw_close(raw);
    return NULL;
}

static struct load loads[] = {
    {.kind = READS, .fresh = true},
    {.kind = READS},
    {.kind = READS},
    {.kind = WRITES, .fresh = true},
    {.kind = WRITES},
    {.kind = SLOW_READS},
    {.kind = SLOW_READS},
    {.kind = SLOW_READS, .fresh = true},
};

/* Every kind of load has got more answers (or has failed). */
static bool has_worked(void *arg)
{
    const unsigned *from = arg;
    bool all = true;
    for (size_t i = 0; i < COUNT(loads); i++)
        all = all && (loads[i].failure || loads[i].done >= from[i] + 2);
    return all;
}

/* ---- a conversation that continues throughout, read as a stream ---- */

static char *agent, *operators;
static const char *jwt, *conversation;
static atomic_uint sent;
static char *chat_failure;
static unsigned drains;

static void chat_open(void)
{
    agent = assay_ok(server, "agent", "create", "--workspace", "main", "--name", "Shop", "--origin",
                     "*", NULL);
    operators = key_new(server, "main", "conversations:read", "conversations:write", NULL);
    struct response *r = http(server, .method = "POST", .path = "/api/v1/widget/init", .key = "",
                              .headers = {JSON}, .body = text("{\"agent_id\":\"%s\"}", agent));
    expect_status(r, 200);
    jwt = str_at(r, "data.jwt");
    conversation = str_at(r, "data.conversation_id");
}

static void *chat_send(void *arg)
{
    (void)arg;
    while (!load_ends && !chat_failure) {
        char *body = text("{\"message\":\"answer %u.\"}", sent);
        struct raw *raw = raw_open(server);
        raw_text(raw,
                 "POST /api/v1/conversations/%s/messages HTTP/1.1\r\nHost: x\r\nAuthorization: "
                 "Bearer %s\r\n" JSON "\r\nConnection: close\r\nContent-Length: %zu\r\n\r\n%s",
                 conversation, operators, strlen(body), body);
        struct response *r = raw_response(raw, false, 20000);
        if (r->status == 201)
            sent++;
        else
            chat_failure = text("message %u: status %d", sent, r->status);
        raw_close(raw);
        poll(NULL, 0, 40);
    }
    return NULL;
}

/*
 * One stream to its end: all messages in order, once each. When it ends, the client reconnects with
 * the last id.
 */
static bool chat_read_stream(char last[64], unsigned *next)
{
    static char seen[1 << 20];
    size_t n = 0, at = 0;
    struct raw *raw = raw_open(server);
    raw_text(raw,
             "GET /api/v1/widget/conversation/stream HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer "
             "%s\r\nAccept: text/event-stream\r\n%s%s%s\r\n",
             jwt, last[0] ? "Last-Event-ID: " : "", last, last[0] ? "\r\n" : "");
    for (bool open = true; open && !(load_ends && *next == sent);) {
        struct pollfd p = {raw->fd, POLLIN, 0};
        if (poll(&p, 1, 1000) > 0) {
            ssize_t got = read(raw->fd, seen + n, sizeof(seen) - 1 - n);
            open = got > 0;
            n += got > 0 ? (size_t)got : 0;
            seen[n] = '\0';
        }
        for (char *id, *end;
             (id = strstr(seen + at, "\nid: ")) != NULL && (end = strstr(id, "\n\n")) != NULL;
             at = (size_t)(end - seen)) {
            unsigned number;
            const char *content = strstr(id, "\"content\":\"answer ");
            if (content == NULL || content > end)
                continue;
            bool whole = sscanf(content, "\"content\":\"answer %u", &number) == 1;
            if (whole && last[0] == '\0') /* a stream starts with new messages, not with old ones */
                *next = number;
            if (!whole || number != *next) {
                chat_failure = text("message %u came where %u was awaited", number, *next);
                raw_close(raw);
                return false;
            }
            snprintf(last, 64, "%.*s", (int)strcspn(id + 5, "\r\n"), id + 5);
            ++*next;
        }
        if (strstr(seen, "\r\n0\r\n\r\n") != NULL)
            break;
    }
    if (n == 0 || (!load_ends && strstr(seen, "event: reconnect\n") == NULL))
        chat_failure = text("a stream broke off after %u messages:\n%.*s", *next, 400,
                            n > 400 ? seen + n - 400 : seen);
    seen[0] = '\0';
    raw_close(raw);
    return chat_failure == NULL;
}

static void *chat_read(void *arg)
{
    char last[64] = "";
    while (chat_read_stream(last, arg) && !(load_ends && *(unsigned *)arg == sent))
        drains++;
    return NULL;
}

/* ---- a killed worker ---- */

struct caller {
    struct raw *raw;
    char worker[17]; /* the random half of its request ids */
    bool inside;     /* half of a request was sent */
};

static void caller_start(struct caller *caller, bool inside)
{
    caller->raw = raw_open(server);
    raw_text(caller->raw, "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n");
    struct response *r = raw_response(caller->raw, false, 5000);
    expect_status(r, 200);
    snprintf(caller->worker, sizeof(caller->worker), "%.16s", header(r, "X-Request-Id"));
    caller->inside = inside;
    if (inside)
        raw_text(caller->raw, "GET /healthz HTTP/1.1\r\nHo");
}

static void caller_stop(struct caller *caller, const char *dead)
{
    if (strcmp(caller->worker, dead) == 0)
        ck_assert_msg(raw_closed(caller->raw, 5000), "a killed worker's connection stays open");
    else {
        raw_text(caller->raw, "%s",
                 caller->inside ? "st: x\r\n\r\n" : "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n");
        expect_status(raw_response(caller->raw, false, 5000), 200);
    }
    raw_close(caller->raw);
}

struct callers {
    struct caller *all;
    int count;
    char *dead; /* the worker of the first connection that ends */
};

static bool a_connection_has_ended(void *arg)
{
    struct callers *callers = arg;
    for (int i = 0; i < callers->count && callers->dead[0] == '\0'; i++)
        if (raw_closed(callers->all[i].raw, 0))
            strcpy(callers->dead, callers->all[i].worker);
    return callers->dead[0] != '\0';
}

/* consecutive requests, each on a new connection; how many got no answer */
static void *count_failures(void *arg)
{
    unsigned *failed = arg;
    while (!load_ends) {
        struct raw *raw = raw_open(server);
        raw_get(raw, server->key, "/api/v1/reports");
        struct response *r = raw_response(raw, false, 10000);
        *failed += r->status != 200;
        raw_close(raw);
        response_free(r);
    }
    return NULL;
}

START_TEST(a_killed_worker_loses_only_its_requests)
{
    enum { CONNECTIONS = 32, THREADS = 4, KILLS = 5 };
    static struct caller callers[CONNECTIONS];
    static unsigned failed[THREADS];
    pthread_t threads[THREADS];
    unsigned total = 0;
    for (int i = 0; i < THREADS; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, count_failures, &failed[i]), 0);
    for (int kills = 0; kills < KILLS; kills++) {
        char dead[17] = "";
        unsigned its = 0;
        for (int i = 0; i < CONNECTIONS; i++)
            caller_start(&callers[i], i % 2 == 0);
        pid_t victim = server_process(server, text("assayd: worker %d", kills % 2));
        ck_assert_int_eq(kill(victim, SIGKILL), 0);
        ck_assert_msg(wait_until(a_connection_has_ended,
                                 &(struct callers){callers, CONNECTIONS, dead}, 10000),
                      "the killed worker had no connection, or its connections stay open");
        for (int i = 0; i < CONNECTIONS; i++) {
            its += strcmp(callers[i].worker, dead) == 0;
            caller_stop(&callers[i], dead);
        }
        ck_assert_msg(its < CONNECTIONS, "the killed worker had all connections");
        expect_service(2);
    }
    load_ends = true;
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
        total += failed[i];
    }
    ck_assert_msg(total <= THREADS * KILLS, "%u requests failed: more than were running", total);
    fprintf(stderr, "%d workers killed: %u requests of %d callers were running, one each\n", KILLS,
            total, THREADS);
}
END_TEST

static unsigned parameter(const char *name, unsigned otherwise)
{
    const char *value = getenv(name);
    return value ? (unsigned)atoi(value) : otherwise;
}

static void go_on(const char *what, unsigned number)
{
    unsigned from[COUNT(loads)];
    for (size_t i = 0; i < COUNT(loads); i++)
        from[i] = loads[i].done;
    ck_assert_msg(wait_until(has_worked, from, 30000), "%s %u: the load has stopped\n%s", what,
                  number, server_log(server));
}

static void reload(unsigned number)
{
    char *base = text("http://reload-%u.test", number);
    configure(text("base_url: %s", base));
    server_signal(server, SIGHUP);
    ck_assert_msg(wait_until(links_begin_with, base, 30000), "reload %u: old configuration\n%s",
                  number, server_log(server));
}

START_TEST(reloads_and_upgrades_under_load_lose_no_request)
{
    unsigned upgrades = parameter("ASSAY_T_UPGRADES", 2), reloads = parameter("ASSAY_T_RELOADS", 3),
             read = 0, kept = 0, total = 0;
    unsigned each = upgrades ? reloads / upgrades : 0, longest[2] = {0};
    pthread_t sender, reader;
    chat_open();
    char *counted = key_new(server, "main", NULL);
    ck_assert_int_eq(pthread_create(&sender, NULL, chat_send, NULL), 0);
    ck_assert_int_eq(pthread_create(&reader, NULL, chat_read, &read), 0);
    for (size_t i = 0; i < COUNT(loads); i++)
        ck_assert_int_eq(pthread_create(&loads[i].thread, NULL, load_run, &loads[i]), 0);
    pid_t old = 0;
    for (unsigned i = 0, k = 0; i < upgrades || k < reloads;) {
        for (unsigned to = i + 1 >= upgrades ? reloads : k + each; k < to; k++) {
            reload(k);
            go_on("reload", k);
        }
        if (i < upgrades) {
            if (old != 0)
                expect_end(old);
            server->options.workers = i % 2 ? 2 : 3;
            configure("");
            old = upgrade();
            go_on("upgrade", i++);
        }
        struct response *r = http(server, .path = "/api/v1/reports", .key = counted);
        ck_assert_int_eq(atol(header(r, "X-RateLimit-Remaining")), LIMIT - (long)++kept);
    }
    load_ends = true;
    for (size_t i = 0; i < COUNT(loads); i++) {
        pthread_join(loads[i].thread, NULL);
        ck_assert_msg(!loads[i].failure, "load %zu: %s\n%s", i, loads[i].failure,
                      server_log(server));
        unsigned *most = &longest[loads[i].kind == WRITES];
        *most = loads[i].longest_ms > *most ? loads[i].longest_ms : *most;
        total += loads[i].done;
    }
    pthread_join(sender, NULL);
    pthread_join(reader, NULL);
    ck_assert_msg(!chat_failure, "%s\n%s", chat_failure, server_log(server));
    ck_assert_uint_eq(read, sent);
    if (old != 0)
        expect_end(old);
    unsigned left = 0;
    for (size_t i = 0; i < COUNT(loads); i++)
        left += loads[i].created - loads[i].deleted;
    expect_int(http_get(server, "/api/v1/reports"), "meta.total", left);
    fprintf(stderr,
            "%u upgrades, %u reloads: %u requests, none failed; the longest read %u ms, write %u "
            "ms; %u messages over %u streams\n",
            upgrades, reloads, total, longest[0], longest[1], read, drains + 1);
    server_stop(server);
}
END_TEST

int main(void)
{
    suite_processes(3);
    Suite *suite = suite_create("upgrade");
    TCase *tcase = harness_case(suite, "a server each");
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, a_new_binary_takes_over_and_the_old_one_exits);
    tcase_add_test(tcase, an_upgrade_passes_unix_sockets_of_any_path);
    tcase_add_test(tcase, the_new_master_has_its_own_workers);
    tcase_add_loop_test(tcase, the_old_master_continues_when_the_new_one_fails, 0, COUNT(failures));
    tcase_add_loop_test(tcase, a_process_of_a_failed_upgrade_inherits_nothing, 0,
                        COUNT(left_behind));
    tcase_add_test(tcase, the_death_of_a_new_master_during_takeover_ends_the_server);
    tcase_add_test(tcase, a_new_writer_waits_for_the_old_one_to_exit);
    tcase_add_test(tcase, a_second_upgrade_signal_changes_nothing);
    tcase_add_test(tcase, a_reload_during_an_upgrade_reaches_the_new_master);
    tcase_add_test(tcase, a_stop_during_an_upgrade_lets_the_old_master_answer);
    tcase_add_loop_test(tcase, a_stop_during_an_upgrade_stops_both_masters, 0, 5 * COUNT(stops));
    tcase = harness_case(suite, "a master killed");
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_loop_test(tcase, a_master_killed_during_an_upgrade_leaves_the_other_serving, 0,
                        (int)parameter("ASSAY_T_KILLS", 8));
    tcase = harness_case(suite, "under load");
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_set_timeout(tcase, parameter("ASSAY_T_SECONDS", 120));
    tcase_add_test(tcase, a_killed_worker_loses_only_its_requests);
    tcase_add_test(tcase, reloads_and_upgrades_under_load_lose_no_request);
    return harness_main(suite);
}
