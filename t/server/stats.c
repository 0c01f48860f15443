/*
 * assay stats --watch: on a terminal, in a pipe and as JSON, with a server that works, stops and
 * restarts.
 */
#include "t/kit/harness.h"

#include <signal.h>
#include <sys/wait.h>

#define ENTER "\033[?1049h"
#define LEAVE "\033[?25h\033[?1049l"

static struct server *server;

static void setup(void)
{
    server = server_new(&(struct server_options){.workers = 2});
    server_start(server);
}

static void teardown(void)
{
    server_discard(server);
}

/* ---- the stats process ---- */

static struct watched *watcher;

/* assay with these arguments on this server's configuration */
#define watch(by, ...)                                                                             \
    (watcher = watch_start((by), NULL, assay_path(), "-c", server->conf, __VA_ARGS__, NULL))

/* A frame on a terminal goes from one "home" to the end of its output. */
static bool has_new_frame(const struct watched *w, const char *unused)
{
    (void)unused;
    char *home = strstr(w->said, "\033[H");
    return home != NULL && strstr(home, "\033[J") != NULL;
}

static void expect_terminal_clean(void)
{
    struct termios now;
    watch_expect(watcher, LEAVE);
    ck_assert_msg(strlen(strstr(watcher->said, LEAVE)) == strlen(LEAVE), "output after the end");
    ck_assert_int_eq(tcgetattr(watcher->terminal, &now), 0);
    ck_assert_uint_eq(now.c_lflag, watcher->before.c_lflag);
    ck_assert_int_eq(now.c_cc[VMIN], watcher->before.c_cc[VMIN]);
}

static void ask(int times)
{
    for (int i = 0; i < times; i++)
        expect_status(http_get(server, "/api/v1/reports"), 200);
}

/* ---- on a terminal ---- */

START_TEST(a_terminal_shows_workers_routes_writer_store_and_auditors_until_q)
{
    static const char *const parts[] = {
        "PROCESS",    "worker 0",     "worker 1", "auditor 0", "writer ", "batch",
        "commit p50", "store ",       "readers",  "queue",     "ROUTE",   "GET /api/v1/reports",
        "LIMITER",    "widget-leads", "STREAMS"};
    ask(20);
    watch(BY_TERMINAL, "stats", "--watch", "--interval", "200ms");
    watch_expect(watcher, ENTER);
    for (size_t i = 0; i < COUNT(parts); i++)
        watch_expect(watcher, parts[i]);
    watch_type(watcher, "q");
    ck_assert_int_eq(watch_wait(watcher), 0);
    expect_terminal_clean();
    watch_close(watcher);
    server_stop(server);
}
END_TEST

static const int endings[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};

START_TEST(a_signal_restores_the_terminal)
{
    watch(BY_TERMINAL, "stats", "--watch");
    watch_expect(watcher, "PROCESS");
    kill(watcher->pid, endings[_i]);
    ck_assert_int_eq(watch_wait(watcher), 0);
    expect_terminal_clean();
    watch_close(watcher);
}
END_TEST

START_TEST(ctrl_c_restores_the_terminal)
{
    watch(BY_TERMINAL, "stats", "--watch");
    watch_expect(watcher, "PROCESS");
    watch_type(watcher, "\003");
    ck_assert_int_eq(watch_wait(watcher), 0);
    expect_terminal_clean();
    watch_close(watcher);
}
END_TEST

START_TEST(ctrl_z_restores_the_terminal_and_fg_continues)
{
    int status;
    watch(BY_TERMINAL, "stats", "--watch", "--interval", "200ms");
    watch_expect(watcher, "PROCESS");
    kill(watcher->pid, SIGTSTP);
    watch_expect(watcher, LEAVE);
    ck_assert_int_eq(waitpid(watcher->pid, &status, WUNTRACED), watcher->pid);
    ck_assert(WIFSTOPPED(status));
    watch_forget(watcher);
    kill(watcher->pid, SIGCONT);
    watch_expect(watcher, ENTER);
    watch_expect(watcher, "PROCESS");
    watch_type(watcher, "q");
    ck_assert_int_eq(watch_wait(watcher), 0);
    expect_terminal_clean();
    watch_close(watcher);
}
END_TEST

START_TEST(a_closed_terminal_ends_stats)
{
    watch(BY_TERMINAL, "stats", "--watch");
    watch_expect(watcher, "PROCESS");
    watch_close(watcher);
    int ended = watch_wait(watcher);
    ck_assert_msg(ended < 128, "signal %d", ended - 128);
}
END_TEST

/* Rows and columns of a frame: from its "home", without control sequences. */
static void measure(const char *frame, size_t *rows, size_t *columns)
{
    size_t column = 0;
    *rows = 1;
    *columns = 0;
    for (const char *c = strstr(frame, "\033[H"); *c != '\0' && strncmp(c, "\033[J", 3) != 0; c++) {
        if (*c == '\033') {
            c += strcspn(c, "HKlh");
        } else if (*c == '\n') {
            ++*rows;
            column = 0;
        } else if (*c != '\r' && ++column > *columns) {
            *columns = column;
        }
    }
}

/* Columns: rows and columns of the terminal; text that is always shown. */
static const struct {
    unsigned short rows, columns;
    const char *says;
} sizes[] = {{12, 40, "writer"}, {5, 20, "assayd"}, {24, 80, "GET"}, {60, 200, "widget-leads"}};

START_TEST(the_screen_follows_the_terminals_size)
{
    size_t rows, columns;
    ask(3);
    /* so that the resize causes the new frame */
    watch(BY_TERMINAL, "stats", "--watch", "--interval", "1h");
    watch_expect(watcher, "LIMITER");
    watch_expect(watcher, "\033[J");
    watch_forget(watcher);
    watch_resize(watcher, sizes[_i].rows, sizes[_i].columns);
    ck_assert_msg(watch_until(watcher, has_new_frame, ""), "no new frame");
    measure(watcher->said, &rows, &columns);
    ck_assert_uint_le(rows, sizes[_i].rows);
    ck_assert_uint_le(columns, sizes[_i].columns);
    ck_assert_msg(watch_has_said(watcher, sizes[_i].says), "%s", watcher->said);
    kill(watcher->pid, SIGTERM);
    ck_assert_int_eq(watch_wait(watcher), 0);
    watch_close(watcher);
}
END_TEST

START_TEST(keys_change_the_order_of_routes)
{
    ask(3);
    watch(BY_TERMINAL, "stats", "--watch", "--interval", "1h");
    watch_expect(watcher, "by requests");
    watch_type(watcher, "n");
    watch_expect(watcher, "by name");
    watch_type(watcher, "e");
    watch_expect(watcher, "by errors");
    watch_type(watcher, "t");
    watch_expect(watcher, "by time");
    watch_type(watcher, "q");
    ck_assert_int_eq(watch_wait(watcher), 0);
    watch_close(watcher);
}
END_TEST

START_TEST(stats_continue_across_a_server_restart)
{
    watch(BY_TERMINAL, "stats", "--watch", "--interval", "100ms");
    watch_expect(watcher, "PROCESS");
    server_signal(server, SIGKILL);
    server_wait(server, 5000);
    watch_forget(watcher);
    watch_expect(watcher, "No server runs");
    server_start(server);
    watch_forget(watcher);
    watch_expect(watcher, text("assayd %d", server->pid));
    watch_forget(watcher);
    watch_expect(watcher, "store ");
    kill(server_process(server, "assayd: writer"), SIGKILL);
    watch_forget(watcher);
    watch_expect(watcher, "1 processes replaced");
    watch_type(watcher, "q");
    ck_assert_int_eq(watch_wait(watcher), 0);
    expect_terminal_clean();
    watch_close(watcher);
    server_signal(server, SIGTERM);
    ck_assert_int_eq(server_wait(server, 10000), 0);
}
END_TEST

/* ---- without a terminal ---- */

static bool has_two_intervals(const struct watched *w, const char *text)
{
    const char *first = strstr(w->said, text);
    return first != NULL && strstr(first + 1, text) != NULL;
}

START_TEST(a_pipe_gets_plain_text_until_closed)
{
    ask(3);
    watch(BY_PIPE, "stats", "--watch", "--interval", "100ms");
    ck_assert_msg(watch_until(watcher, has_two_intervals, "GET /api/v1/reports\n"), "%s",
                  watcher->said);
    ck_assert_msg(strstr(watcher->said, "  index 0 B  ") != NULL, "%s", watcher->said);
    ck_assert_ptr_null(strchr(watcher->said, '\033'));
    watch_close(watcher);
    ck_assert_int_eq(watch_wait(watcher), 0);
}
END_TEST

static bool has_a_line(const struct watched *w, const char *unused)
{
    (void)unused;
    return strchr(w->said, '\n') != NULL;
}

static struct json_object *turn(void)
{
    watch_forget(watcher);
    ck_assert(watch_until(watcher, has_a_line, ""));
    watch_forget(watcher); /* it may have started before */
    ck_assert(watch_until(watcher, has_two_intervals, "\n"));
    char *line = watcher->said;
    if (*line != '{')
        line = strchr(line, '\n') + 1;
    return json_tokener_parse(line);
}

static double number_in(struct json_object *from, const char *name)
{
    struct json_object *value = NULL;
    ck_assert_msg(json_object_object_get_ex(from, name, &value), "no %s in %s", name,
                  json_object_to_json_string(from));
    return json_object_get_double(value);
}

static struct json_object *part(struct json_object *from, const char *name)
{
    struct json_object *value = NULL;
    ck_assert_msg(json_object_object_get_ex(from, name, &value), "no %s in %s", name,
                  json_object_to_json_string(from));
    return value;
}

START_TEST(json_is_one_object_per_interval)
{
    ask(30);
    watch(BY_PIPE, "--json", "stats", "--watch", "--interval", "300ms");
    struct json_object *o = turn(), *list = part(o, "processes"), *routes = part(o, "routes");
    double by_worker = 0, by_route = 0;
    ck_assert(json_object_get_boolean(part(o, "running")));
    ck_assert_uint_eq(json_object_array_length(list), 4);
    for (size_t i = 0; i < json_object_array_length(list); i++) {
        struct json_object *p = json_object_array_get_idx(list, i);
        if (strcmp(json_object_get_string(part(p, "process")), "worker") == 0)
            by_worker += number_in(p, "total");
    }
    for (size_t i = 0; i < json_object_array_length(routes); i++)
        by_route += number_in(json_object_array_get_idx(routes, i), "total");
    ck_assert(by_worker == by_route && by_route >= 30);
    ck_assert(number_in(part(o, "store"), "map_bytes") > number_in(part(o, "store"), "used_bytes"));
    ck_assert(number_in(part(o, "store"), "index_bytes") == 0);
    ck_assert(number_in(part(o, "auditors"), "queue") == 0);
    ck_assert(number_in(part(o, "writer"), "changes_per_s") >= 0);
    ck_assert_uint_gt(json_object_array_length(part(o, "limiters")), 5);
    json_object_put(o);
    watch_close(watcher);
    ck_assert_int_eq(watch_wait(watcher), 0);
}
END_TEST

static const char *const wrong_intervals[] = {"soon", "0", "99ms", "-1s", "1"};

START_TEST(a_malformed_interval_is_refused)
{
    struct run run = assay(server, "stats", "--watch", "--interval", wrong_intervals[_i], NULL);
    ck_assert_msg(run.status == 2 && strstr(run.err, "--interval") != NULL, "%d: %s", run.status,
                  run.err);
}
END_TEST

START_TEST(an_interval_without_watch_is_refused)
{
    struct run run = assay(server, "stats", "--interval", "1s", NULL);
    ck_assert_msg(run.status == 2 && strstr(run.err, "--watch") != NULL, "%d: %s", run.status,
                  run.err);
}
END_TEST

int main(void)
{
    suite_processes(3);
    Suite *suite = suite_create("stats");
    TCase *tcase = harness_case(suite, "a server each");
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, a_terminal_shows_workers_routes_writer_store_and_auditors_until_q);
    tcase_add_loop_test(tcase, a_signal_restores_the_terminal, 0, COUNT(endings));
    tcase_add_test(tcase, ctrl_c_restores_the_terminal);
    tcase_add_test(tcase, ctrl_z_restores_the_terminal_and_fg_continues);
    tcase_add_test(tcase, a_closed_terminal_ends_stats);
    tcase_add_loop_test(tcase, the_screen_follows_the_terminals_size, 0, COUNT(sizes));
    tcase_add_test(tcase, keys_change_the_order_of_routes);
    tcase_add_test(tcase, stats_continue_across_a_server_restart);
    tcase_add_test(tcase, a_pipe_gets_plain_text_until_closed);
    tcase_add_test(tcase, json_is_one_object_per_interval);
    tcase_add_loop_test(tcase, a_malformed_interval_is_refused, 0, COUNT(wrong_intervals));
    tcase_add_test(tcase, an_interval_without_watch_is_refused);
    return harness_main(suite);
}
