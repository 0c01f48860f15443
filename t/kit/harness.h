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

/* ---- time and text (harness.c) ---- */

int64_t now_ms(void); /* CLOCK_MONOTONIC */

/* text(format, …): a new string. */
char *text(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* wait_until(holds, arg, within_ms): ask until ${holds} says so; false when the deadline passed. */
typedef bool condition_fn(void *arg);
bool wait_until(condition_fn *holds, void *arg, int within_ms) __attribute__((warn_unused_result));

/* ---- a server (harness.c) ---- */

struct origin;

struct server_options {
    unsigned workers;  /* 0: two */
    unsigned auditors; /* 0: one */
    /* its port is opened in audit.ports, loopback in audit.allow_private */
    const struct origin *origin;
    const char *yaml; /* more of the configuration, or NULL */
    /* more of its `audit` map, as `key: value` separated by commas, or NULL */
    const char *audit;
    /* loopback stays closed to the auditor, as every private address */
    bool strict;
    bool no_key; /* make no workspace and key */
};

struct server {
    pid_t pid; /* of the master; 0 when it does not run */
    int output;
    struct server_options options;
    char *dir, *conf, *log, *data, *run;
    char *address; /* 127.0.0.1:41873 */
    char *url;     /* http://127.0.0.1:41873 */
    uint16_t port;
    char *ready; /* its ready line */
    char *key;   /* a key with every scope, of the workspace "main" */
};

/*
 * server_new(options): a private directory with a configuration in it; nothing runs yet.
 * server_free also stops it and removes the directory; server_discard kills what still runs, which
 * proves nothing: for teardowns of tests that end a server themselves.
 */
struct server *server_new(const struct server_options *options);
void server_free(struct server *s);
void server_discard(struct server *s);

/* server_configure(s, yaml): write the configuration anew with other extra lines. */
void server_configure(struct server *s, const char *yaml);

/*
 * server_start(s): start assayd and wait for its ready line; the first start also makes the
 * workspace and the key, unless told not to.
 */
void server_start(struct server *s);
/* server_start_with(s, yaml): configured so. */
void server_start_with(struct server *s, const char *yaml);
/*
 * server_spawn(s, …): the same, but wait for nothing; further arguments end with NULL.
 * server_ready: wait for the ready line; false when it ends first or after ${within_ms}.
 */
void server_spawn(struct server *s, ...);
bool server_ready(struct server *s, int within_ms);

/*
 * server_stop(s): TERM, and the exit status must be 0 and no process of it have crashed.
 * server_signal: to the master. server_wait: its exit status, 128 + signal, or -1 after
 * ${within_ms}.
 */
void server_stop(struct server *s);
void server_signal(const struct server *s, int signal);
int server_wait(struct server *s, int within_ms);

/*
 * server_shared(options): server_new and server_start for an unchecked fixture; server_shared_stop
 * its teardown: a server that does not stop well fails the program.
 */
struct server *server_shared(const struct server_options *options);
void server_shared_stop(struct server *s);

/*
 * server_log(s): what it wrote to standard error so far. server_says(s, words, from, within_ms):
 * wait for these words behind byte ${from} of it.
 */
char *server_log(const struct server *s);
bool server_says(const struct server *s, const char *words, size_t from, int within_ms)
    __attribute__((warn_unused_result));

/*
 * server_process(s, title): the pid of the child of the master with exactly this title ("assayd:
 * worker 0"), or 0. server_children: how many processes hang below the master.
 */
pid_t server_process(const struct server *s, const char *title);
size_t server_children(const struct server *s, pid_t *pids, size_t max);
/*
 * server_replaces(s, title, old, within_ms): wait for another child of this title than ${old};
 * false when none comes in time.
 */
bool server_replaces(const struct server *s, const char *title, pid_t old, int within_ms)
    __attribute__((warn_unused_result));
char *process_title(pid_t pid);
/* process_seconds(pid): what it has used of its processor's time. */
double process_seconds(pid_t pid);
bool process_alive(pid_t pid); /* false for a zombie */

/*
 * harness_case(suite, name): a test case of it with a timeout fit for a server. harness_main: run
 * the suite; the exit status of the program.
 */
TCase *harness_case(Suite *suite, const char *name);
int harness_main(Suite *suite);
/*
 * harness_main_at_once: the same, with the cases that harness_case made side by side, each in a
 * process of its own: for cases that wait more than they work. What was opened or started before
 * is shared by all; fixtures are not.
 */
int harness_main_at_once(Suite *suite);

/* ---- the command line (harness_run.c) ---- */

/* A program's end. */
struct run {
    int status; /* exit status, or 128 + signal */
    char *out, *err;
    const char *command;
};

/* run_program(path, …): arguments end with NULL; 20 s. */
struct run run_program(const char *path, ...);
/*
 * assay(s, …): the operators' command line on this server's configuration. assay_ok: it must exit
 * 0; its standard output without the last newline.
 */
struct run assay(const struct server *s, ...);
char *assay_ok(const struct server *s, ...);
/* assay_list(s, …): what the command prints with --json, a record a line, as an array. */
struct json_object *assay_list(const struct server *s, ...);
/*
 * record_text(record, name): a member, which must be there, as text (NULL: null). record_find(list,
 * name, value): the first record whose member is this, or NULL.
 */
const char *record_text(struct json_object *record, const char *name);
struct json_object *record_find(struct json_object *list, const char *name, const char *value);
const char *assayd_path(void);
const char *assay_path(void);

/*
 * key_new(s, workspace, scope, …): a new key's secret; no scope means all of reports and projects.
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
 * http(s, .method = "PUT", .path = "/api/v1/reports/1", …): one request on a connection of its own,
 * so that any worker may get it. Kept till the process ends; response_free is for long loops.
 */
#define http(s, ...) http_call((s), &(struct call){__VA_ARGS__})
struct response *http_call(const struct server *s, const struct call *call);
void response_free(struct response *r);

/*
 * server_internal(s): the same server at its internal listener, whose ready line comes after the
 * first. metric(internal, name): a number of /metrics, by name and labels as they stand there; -1:
 * no such line.
 */
struct server server_internal(const struct server *s);
long metric(const struct server *internal, const char *name);

/* A form's POST or PUT, a GET, a DELETE with the server's key. */
struct response *http_get(const struct server *s, const char *path);
struct response *http_post(const struct server *s, const char *path, const char *form);
struct response *http_put(const struct server *s, const char *path, const char *form);
struct response *http_delete(const struct server *s, const char *path);

/* A client that keeps its connection: http_kept on the same ${client} uses it again. */
struct client;
struct client *client_new(const struct server *s);
void client_free(struct client *client);
#define http_kept(client, ...) client_call((client), &(struct call){__VA_ARGS__})
struct response *client_call(struct client *client, const struct call *call);

/*
 * header(r, name): its value, NULL when absent. header_times: how often it was sent. header_number:
 * it must be there once, and a number.
 */
const char *header(const struct response *r, const char *name);
size_t header_times(const struct response *r, const char *name);
long header_number(const struct response *r, const char *name);

/*
 * at(r, path): what is at "data.0.id" of the body; NULL when there is none (or it is null). int_at,
 * str_at, bool_at fail the test when it is not of that type.
 */
struct json_object *at(const struct response *r, const char *path);
bool has(const struct response *r, const char *path); /* null counts */
int64_t int_at(const struct response *r, const char *path);
const char *str_at(const struct response *r, const char *path);
bool bool_at(const struct response *r, const char *path);
size_t len_at(const struct response *r, const char *path);

/* has_exactly(r, path, "a b c"): the object there has these members and no others. */
bool has_exactly(const struct response *r, const char *path, const char *names);

/* response_text(r): request and response, for messages (the whole goes to standard error). */
const char *response_text(const struct response *r);

/*
 * expect(r, condition): fail with request and response. expect_status, expect_error: the status,
 * and the contract's error of that code and shape.
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
 * error_mistake(r, status, code): what is wrong with this error response, or NULL. ${code} may list
 * several, "a|b".
 */
const char *error_mistake(const struct response *r, int status, const char *code);

/* ---- exact bytes (harness_raw.c) ---- */

struct raw {
    int fd;
    char *in; /* what came and was not yet taken */
    size_t in_size;
    bool closed; /* the peer's end was seen */
    char *sent;  /* since the last response, for messages */
};

/*
 * raw_open(s): connect. raw_send: all of it (a reset is not a failure: it shows when reading).
 * raw_text: the same for a C string.
 */
struct raw *raw_open(const struct server *s);
void raw_send(struct raw *raw, const void *bytes, size_t size);
void raw_text(struct raw *raw, const char *format, ...) __attribute__((format(printf, 2, 3)));
/*
 * raw_get(raw, key, path): a GET with that credential. raw_post(raw, key, headers, form): this form
 * to /api/v1/reports; ${headers}: more lines, each with its end.
 */
void raw_get(struct raw *raw, const char *key, const char *path);
void raw_post(struct raw *raw, const char *key, const char *headers, const char *form);
/*
 * raw_response(raw, head, within_ms): the next response (${head}: to a HEAD); status 0 when none
 * came whole in time.
 */
struct response *raw_response(struct raw *raw, bool head, int within_ms);
/*
 * raw_closed(raw, within_ms): whether the peer ends the connection in time; what it sends before
 * stays readable.
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
 * watch_start(by, dir, path, …): start a program in ${dir} (NULL: here); arguments end with NULL. A
 * terminal of 40 rows and 160 columns is its input, output and errors; a pipe its output alone.
 */
enum watch_by { BY_TERMINAL, BY_PIPE };
struct watched *watch_start(enum watch_by by, const char *dir, const char *path, ...);
/*
 * watch_until(w, holds, arg): read on until a condition on what it said holds; false at the end of
 * its output, or after 15 s. watch_expect: it must say these words. watch_forget: what it said so
 * far.
 */
typedef bool watched_fn(const struct watched *w, const char *arg);
bool watch_until(struct watched *w, watched_fn *holds, const char *arg)
    __attribute__((warn_unused_result));
watched_fn watch_has_said;
void watch_expect(struct watched *w, const char *words);
void watch_forget(struct watched *w);
void watch_type(struct watched *w, const char *keys);
void watch_resize(struct watched *w, unsigned short rows, unsigned short columns);
/* watch_wait(w): read on until it ends; exit status or 128 + signal. watch_close: leave it. */
int watch_wait(struct watched *w);
void watch_close(struct watched *w);

/* ---- pages to be graded (harness_origin.c) ---- */

enum { ORIGIN_PAGES = 64, ORIGIN_BODY = 24 * 1024 };

/*
 * origin_start(): a process that serves on a free port of 127.0.0.1; what is unknown answers 404.
 * Pages may be set at any time by any process that shares it.
 */
struct origin *origin_start(void);
void origin_stop(struct origin *o);
uint16_t origin_port(const struct origin *o);
char *origin_url(const struct origin *o, const char *path); /* http://127.0.0.1:PORT${path} */

/*
 * origin_page(o, path, status, headers, body): answer ${path} (its query does not count) so.
 * ${headers}: lines that end in \r\n, or "".
 */
void origin_page(struct origin *o, const char *path, int status, const char *headers,
                 const char *body);
/*
 * origin_delay: answer that path so much later. origin_pad: with so many spaces behind the body.
 * origin_hold: do not answer it until origin_release. origin_hits: requests for it since it was
 * held, or else since the start.
 */
void origin_delay(struct origin *o, const char *path, int delay_ms);
void origin_pad(struct origin *o, const char *path, size_t spaces);
void origin_hold(struct origin *o, const char *path);
void origin_release(struct origin *o, const char *path);
unsigned origin_hits(const struct origin *o, const char *path);

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
 * report_new(s, url): a report that is done or failed; its id. report_queued: one that is not
 * waited for. report_wait: GET it until it is no longer pending.
 */
int64_t report_new(const struct server *s, const char *url);
int64_t report_queued(const struct server *s, const char *url);
struct response *report_wait(const struct server *s, int64_t id);
/* report_listed(s, search): wait for the list to have one whose URL has this in it; its id. */
int64_t report_listed(const struct server *s, const char *search);
char *report_path(int64_t id);

/*
 * held_post(s, o, path): a POST that waits up to 25 s for the page at ${path}, which is held; it
 * returns when the auditor has asked for the page.
 */
struct raw *held_post(const struct server *s, struct origin *o, const char *path);

/*
 * form(name, value, …): a form with its values percent-encoded; ends with NULL. encode: one value.
 */
char *form(const char *name, ...);
char *encode(const char *value);

#endif
