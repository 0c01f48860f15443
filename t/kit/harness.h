/*
 * The harness of the tests in t/server and t/client: a real assayd in a private directory on a free
 * port of loopback, both programs' command lines, programs on a terminal, an origin that serves
 * pages, a client that sends exact bytes, and a client for requests.
 *
 * A test program is one process. It starts what its tests share (unchecked fixtures) and forks for
 * each test. Every process started here dies with the process that started it. A function that
 * fails fails the running test; it returns an error only where its comment says so. Memory lives as
 * long as the process.
 */
#ifndef ASSAY_T_HARNESS_H
#define ASSAY_T_HARNESS_H

#include "t/kit/suite.h"
#include "t/kit/wait.h"

#include <check.h>
#include <json-c/json.h>
#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <termios.h>
#include <unistd.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* ---- a server (harness.c) ---- */

struct origin;
struct wall_clock;

struct server_options {
    unsigned workers;  /* 0: two */
    unsigned auditors; /* 0: one */
    /* adds its port to audit.ports, loopback to audit.allow_private */
    const struct origin *origin;
    const char *yaml; /* additional configuration, or NULL */
    /* additions to its `audit` map, as `key: value` separated by commas, or NULL */
    const char *audit;
    /* the auditor may not reach loopback or any private address */
    bool strict;
    bool no_key;                    /* no workspace and no key are created */
    const struct wall_clock *clock; /* its wall clock, or NULL */
};

struct server {
    pid_t pid; /* of the master; 0: not running */
    int output;
    struct server_options options;
    char *dir, *conf, *log, *data, *run;
    char *address; /* 127.0.0.1:41873 */
    char *url;     /* http://127.0.0.1:41873 */
    uint16_t port;
    char *ready; /* its ready line */
    char *key;   /* a key of the workspace "main" with every scope */
};

/*
 * server_new(options): a private directory with a configuration; does not start the server.
 * server_free: stops the server and removes the directory. server_discard: kills the server without
 * any check, for teardowns of tests that end it themselves.
 */
struct server *server_new(const struct server_options *options);
void server_free(struct server *s);
void server_discard(struct server *s);

/* server_configure(s, yaml): rewrites the configuration with these additional lines. */
void server_configure(struct server *s, const char *yaml);

/*
 * server_start(s): starts assayd and waits for its ready line; the first start also creates the
 * workspace and the key, unless options.no_key is set.
 */
void server_start(struct server *s);
/* server_start_with(s, yaml): server_configure, then server_start. */
void server_start_with(struct server *s, const char *yaml);
/*
 * server_spawn(s, …): starts assayd and does not wait; more arguments, ended by NULL. server_ready:
 * waits for the ready line; false when the process ends first or after ${within_ms}.
 */
void server_spawn(struct server *s, ...);
bool server_ready(struct server *s, int within_ms);

/*
 * server_stop(s): sends TERM; the exit status must be 0 and no process may have crashed.
 * server_signal: sends a signal to the master. server_wait: its exit status, 128 + signal, or -1
 * after ${within_ms}.
 */
void server_stop(struct server *s);
void server_signal(const struct server *s, int signal);
int server_wait(struct server *s, int within_ms);

/*
 * server_kill(s): SIGKILL to the master; returns when all its processes have ended
 * (harness_kill.c).
 * server_start_again: starts a server that has ended on the same port.
 */
void server_kill(struct server *s);
void server_start_again(struct server *s);

/*
 * server_shared(options): server_new and server_start for an unchecked fixture. server_shared_stop
 * is its teardown; a server that does not stop cleanly fails the program.
 */
struct server *server_shared(const struct server_options *options);
void server_shared_stop(struct server *s);

/*
 * server_log(s): its standard error so far. server_says(s, words, from, within_ms): waits for these
 * words after byte ${from} of the log.
 */
char *server_log(const struct server *s);
bool server_says(const struct server *s, const char *words, size_t from, int within_ms)
    __attribute__((warn_unused_result));

/*
 * server_process(s, title): the pid of the child of the master with exactly this title ("assayd:
 * worker 0"), or 0. server_children: how many processes the master has as descendants.
 */
pid_t server_process(const struct server *s, const char *title);
size_t server_children(const struct server *s, pid_t *pids, size_t max);

/*
 * server_processes(s): the master's descendants, at most 16. processes_exited(processes): all of a
 * struct processes have ended; for wait_until.
 */
struct processes {
    pid_t pids[16];
    size_t count;
};
struct processes server_processes(const struct server *s);
bool processes_exited(void *processes);
/*
 * server_replaces(s, title, old, within_ms): waits for a child with this title other than ${old};
 * false after ${within_ms}.
 */
bool server_replaces(const struct server *s, const char *title, pid_t old, int within_ms)
    __attribute__((warn_unused_result));
char *process_title(pid_t pid);
/* process_seconds(pid): its CPU time. */
double process_seconds(pid_t pid);
bool process_alive(pid_t pid); /* false for a zombie */

/*
 * harness_case(suite, name): adds a test case with a timeout that suits a server. harness_main:
 * runs the suite; the exit status of the program.
 */
TCase *harness_case(Suite *suite, const char *name);
int harness_main(Suite *suite);
/*
 * harness_main_at_once: the same with all cases of harness_case side by side, one process each: for
 * cases that wait more than they work. All share what was opened or started before, but no
 * fixtures. suite_processes (t/kit/suite.h) does the same with the tests of one case.
 */
int harness_main_at_once(Suite *suite);

/* ---- the command line (harness_run.c) ---- */

/* The result of a program. */
struct run {
    int status; /* exit status, or 128 + signal */
    char *out, *err;
    const char *command;
};

/* run_program(path, …): arguments, ended by NULL; it may take 20 s. */
struct run run_program(const char *path, ...);
/*
 * assay(s, …): runs assay with this server's configuration. assay_ok: it must exit with 0; its
 * standard output without the last newline.
 */
struct run assay(const struct server *s, ...);
char *assay_ok(const struct server *s, ...);
/* assay_list(s, …): the output of the command with --json, one record per line, as an array. */
struct json_object *assay_list(const struct server *s, ...);
/*
 * record_text(record, name): a member as text (NULL: null); it must exist. record_find(list, name,
 * value): the first record with this member, or NULL.
 */
const char *record_text(struct json_object *record, const char *name);
struct json_object *record_find(struct json_object *list, const char *name, const char *value);
const char *assayd_path(void);
const char *assay_path(void);

/*
 * key_new(s, workspace, scope, …): the secret of a new key; without a scope, all scopes of reports
 * and projects.
 */
char *key_new(const struct server *s, const char *workspace, ...);

/* ---- requests (harness_client.c) ---- */

struct call {
    const char *method; /* GET */
    const char *path;
    const char *key;        /* NULL: the server's; "": none */
    const char *headers[8]; /* "Name: value" */
    const char *body;       /* NULL: none */
    size_t body_size;       /* 0: strlen(body) */
    int timeout_ms;         /* 0: 20 s */
    bool may_fail;          /* status 0 instead of a failed test when there is no response */
};

struct header {
    char *name, *value;
};

struct response {
    char *request; /* for messages */
    int status;    /* 0: none came */
    struct header *headers;
    size_t header_count;
    char *head, *body;
    size_t body_size;
    struct json_object *json; /* NULL when the body is not JSON */
    const char *failure;      /* why none came */
};

/*
 * http(s, .method = "PUT", .path = "/api/v1/reports/1", …): one request on a new connection, so
 * that any worker may get it. The response lives as long as the process; long loops call
 * response_free.
 */
#define http(s, ...) http_call((s), &(struct call){__VA_ARGS__})
struct response *http_call(const struct server *s, const struct call *call);
void response_free(struct response *r);

/*
 * server_internal(s): the same server at its internal listener, whose ready line is the second.
 * metric(internal, name): a value of /metrics, by name and labels as printed there; -1: no such
 * line.
 */
struct server server_internal(const struct server *s);
long metric(const struct server *internal, const char *name);

/* With the server's key; POST and PUT send a form. */
struct response *http_get(const struct server *s, const char *path);
struct response *http_post(const struct server *s, const char *path, const char *form);
struct response *http_put(const struct server *s, const char *path, const char *form);
struct response *http_delete(const struct server *s, const char *path);

/* A client that keeps its connection: each http_kept with the same ${client} uses it again. */
struct client;
struct client *client_new(const struct server *s);
void client_free(struct client *client);
#define http_kept(client, ...) client_call((client), &(struct call){__VA_ARGS__})
struct response *client_call(struct client *client, const struct call *call);

/*
 * header(r, name): its value, or NULL. header_times: how often it occurs. header_number: its value;
 * it must occur once and be a number.
 */
const char *header(const struct response *r, const char *name);
size_t header_times(const struct response *r, const char *name);
long header_number(const struct response *r, const char *name);

/*
 * at(r, path): the value at a path such as "data.0.id" of the body; NULL when it is absent or null.
 * int_at, str_at, bool_at fail the test when it has another type.
 */
struct json_object *at(const struct response *r, const char *path);
bool has(const struct response *r, const char *path); /* null counts */
int64_t int_at(const struct response *r, const char *path);
const char *str_at(const struct response *r, const char *path);
bool bool_at(const struct response *r, const char *path);
size_t len_at(const struct response *r, const char *path);

/* has_exactly(r, path, "a b c"): the object at ${path} has these members and no others. */
bool has_exactly(const struct response *r, const char *path, const char *names);

/* response_text(r): request and response for a message (in full on standard error). */
const char *response_text(const struct response *r);

/*
 * expect(r, condition): fails with request and response. expect_status: the status. expect_error:
 * the status, and an error of that code in the documented shape.
 */
#define expect(r, condition) ck_assert_msg((condition), "%s\n%s", #condition, response_text(r))
#define expect_status(r, want)                                                                     \
    do {                                                                                           \
        const struct response *expect_got_ = (r);                                                  \
        ck_assert_msg(expect_got_->status == (want), "status %d, not %d\n%s", expect_got_->status, \
                      (want), response_text(expect_got_));                                         \
    } while (0)
#define expect_error(r, want, code)                                                                \
    do {                                                                                           \
        const struct response *expect_got_ = (r);                                                  \
        const char *expect_why_ = error_mistake(expect_got_, (want), (code));                      \
        ck_assert_msg(!expect_why_, "%s\n%s", expect_why_, response_text(expect_got_));            \
    } while (0)
#define expect_str(r, path, want)                                                                  \
    do {                                                                                           \
        const struct response *expect_got_ = (r);                                                  \
        ck_assert_msg(!strcmp(str_at(expect_got_, (path)), (want)), "%s is %s, not %s\n%s",        \
                      (path), str_at(expect_got_, (path)), (want), response_text(expect_got_));    \
    } while (0)
#define expect_int(r, path, want)                                                                  \
    do {                                                                                           \
        const struct response *expect_got_ = (r);                                                  \
        ck_assert_msg(int_at(expect_got_, (path)) == (int64_t)(want), "%s is %lld, not %lld\n%s",  \
                      (path), (long long)int_at(expect_got_, (path)), (long long)(want),           \
                      response_text(expect_got_));                                                 \
    } while (0)

/*
 * error_mistake(r, status, code): what is wrong with this error response, or NULL. ${code} may be
 * several, as in "a|b".
 */
const char *error_mistake(const struct response *r, int status, const char *code);

/* ---- exact bytes (harness_raw.c) ---- */

struct raw {
    int fd;
    char *in; /* received and not yet read */
    size_t in_size;
    bool closed; /* the peer has closed */
    char *sent;  /* sent since the last response, for messages */
};

/*
 * raw_open(s): connects. raw_send: sends all bytes (a reset is not a failure: reading shows it).
 * raw_text: the same for text.
 */
struct raw *raw_open(const struct server *s);
void raw_send(struct raw *raw, const void *bytes, size_t size);
void raw_text(struct raw *raw, const char *format, ...) __attribute__((format(printf, 2, 3)));
/*
 * raw_get(raw, key, path): sends a GET with that key. raw_post(raw, key, headers, form): posts the
 * form to /api/v1/reports; ${headers}: additional lines, each with its line end.
 */
void raw_get(struct raw *raw, const char *key, const char *path);
void raw_post(struct raw *raw, const char *key, const char *headers, const char *form);
/*
 * raw_response(raw, head, within_ms): the next response (${head}: to a HEAD); status 0 when it is
 * not complete in time.
 */
struct response *raw_response(struct raw *raw, bool head, int within_ms);
/*
 * raw_closed(raw, within_ms): whether the peer closes in time; what it sent before stays readable.
 */
bool raw_closed(struct raw *raw, int within_ms);
void raw_close(struct raw *raw);

/* ---- a program on a terminal, or in a pipe (harness_terminal.c) ---- */

struct watched {
    pid_t pid;
    int from;     /* the terminal's other side, or the pipe's end; -1: closed */
    int terminal; /* the terminal itself; -1: there is none */
    struct termios before;
    char said[1 << 20];
    size_t size;
};

/*
 * watch_start(by, dir, path, …): starts a program in ${dir} (NULL: here); arguments, ended by NULL.
 * Its input, output and errors are a terminal of 40 rows and 160 columns, or its output is a pipe.
 */
enum watch_by { BY_TERMINAL, BY_PIPE };
struct watched *watch_start(enum watch_by by, const char *dir, const char *path, ...);
/*
 * watch_until(w, holds, arg): reads until a condition on the output holds; false at the end of the
 * output, or after 15 s. watch_expect: the output must contain these words. watch_forget: drops the
 * output so far.
 */
typedef bool watched_fn(const struct watched *w, const char *arg);
bool watch_until(struct watched *w, watched_fn *holds, const char *arg)
    __attribute__((warn_unused_result));
watched_fn watch_has_said;
void watch_expect(struct watched *w, const char *words);
void watch_forget(struct watched *w);
void watch_type(struct watched *w, const char *keys);
void watch_resize(struct watched *w, unsigned short rows, unsigned short columns);
/*
 * watch_wait(w): reads until it ends; exit status or 128 + signal. watch_close: closes the
 * terminal.
 */
int watch_wait(struct watched *w);
void watch_close(struct watched *w);

/* ---- pages to be graded (harness_origin.c) ---- */

enum { ORIGIN_PAGES = 64, ORIGIN_BODY = 64 * 1024 };

/*
 * origin_start(): a process that serves on a free port of 127.0.0.1; an unknown path gets 404.
 * Every process that shares it may set pages at any time.
 */
struct origin *origin_start(void);
void origin_stop(struct origin *o);
uint16_t origin_port(const struct origin *o);
char *origin_url(const struct origin *o, const char *path); /* http://127.0.0.1:PORT${path} */

/*
 * origin_page(o, path, status, headers, body): the answer to ${path}, with any query. ${headers}:
 * lines that end in \r\n, or "".
 */
void origin_page(struct origin *o, const char *path, int status, const char *headers,
                 const char *body);
/* origin_bytes: the same with status 200 and a body that can have zeros. */
void origin_bytes(struct origin *o, const char *path, const char *headers, const char *body,
                  size_t size);
/*
 * origin_delay: delays the answer to that path. origin_pad: adds spaces after its body.
 * origin_hold: does not answer until origin_release. origin_hits: requests since origin_hold, or
 * else since the start.
 */
void origin_delay(struct origin *o, const char *path, int delay_ms);
void origin_pad(struct origin *o, const char *path, size_t spaces);
void origin_hold(struct origin *o, const char *path);
void origin_release(struct origin *o, const char *path);
unsigned origin_hits(const struct origin *o, const char *path);

/*
 * origin_watch(o, host): count the requests that name this host. origin_watched(o): the most at
 * once since then.
 */
void origin_watch(struct origin *o, const char *host);
unsigned origin_watched(const struct origin *o);

/*
 * origin_held(o, path): a small page there, held. origin_asked: wait until somebody asks for a
 * page; false after 5 s.
 */
void origin_held(struct origin *o, const char *path);
bool origin_asked(const struct origin *o, const char *path);

/*
 * origin_usual(): origin_start, with three pages at /good, /decent and /bad, whose reports score in
 * that order.
 */
struct origin *origin_usual(void);

/*
 * report_new(s, url): creates a report and waits until it is done or failed; its id. report_queued:
 * does not wait. report_wait: GETs it until it is not pending.
 */
int64_t report_new(const struct server *s, const char *url);
int64_t report_queued(const struct server *s, const char *url);
struct response *report_wait(const struct server *s, int64_t id);
/* report_listed(s, search): waits until the list has a report whose URL contains this; its id. */
int64_t report_listed(const struct server *s, const char *search);
char *report_path(int64_t id);

/*
 * held_post(s, o, path): sends a POST that waits up to 25 s for the held page at ${path}; returns
 * when the auditor has requested the page.
 */
struct raw *held_post(const struct server *s, struct origin *o, const char *path);

/*
 * form(name, value, …): a form with percent-encoded values; ended by NULL. encode: one value.
 */
char *form(const char *name, ...);
char *encode(const char *value);

#endif
