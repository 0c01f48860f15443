/* assay stats --watch: on a terminal, in a pipe and as JSON, beside a server that works, stops and comes back. operating.md. */
#include "harness.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

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
    if (server->pid > 0) {
        kill(server->pid, SIGKILL);
        server_wait(server, 5000);
    }
    server_free(server);
}

/* ---- the watcher ---- */

static struct watcher {
    pid_t pid;
    int from; /* the terminal's other side, or the pipe's end */
    int terminal; /* the terminal itself, -1: there is none */
    struct termios before;
    char said[1 << 20];
    size_t size;
} watcher;

static void watcher_exec(int out, bool terminal, va_list words)
{
    const char *argv[16] = {assay_path(), "-c", server->conf};
    size_t n = 3;
    while ((argv[n] = va_arg(words, const char *)) != NULL)
        n++;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (terminal) { /* a session of its own, whose terminal it is: sizes and Ctrl-C come by signals */
        setsid();
        ioctl(out, TIOCSCTTY, 0);
        dup2(out, STDIN_FILENO);
    }
    dup2(out, STDOUT_FILENO);
    execv(argv[0], (char *const *)(uintptr_t)argv);
    _exit(127);
}

static void watcher_start(int terminal, ...)
{
    int ends[2];
    va_list words;
    watcher = (struct watcher){.terminal = -1};
    if (terminal) {
        watcher.from = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
        ck_assert(watcher.from >= 0 && grantpt(watcher.from) == 0 && unlockpt(watcher.from) == 0);
        watcher.terminal = open(ptsname(watcher.from), O_RDWR | O_NOCTTY | O_CLOEXEC);
        ck_assert_int_ge(watcher.terminal, 0);
        ck_assert_int_eq(ioctl(watcher.from, TIOCSWINSZ, &(struct winsize){.ws_row = 40, .ws_col = 160}), 0);
        ck_assert_int_eq(tcgetattr(watcher.terminal, &watcher.before), 0);
    } else {
        ck_assert_int_eq(pipe2(ends, O_CLOEXEC), 0);
        watcher.from = ends[0];
    }
    va_start(words, terminal);
    watcher.pid = fork();
    if (watcher.pid == 0)
        watcher_exec(terminal ? watcher.terminal : ends[1], terminal != 0, words);
    va_end(words);
    ck_assert_int_gt(watcher.pid, 0);
    if (!terminal)
        close(ends[1]);
}

/* Read on until a condition holds; false at the end of its output, or after 15 s. */
static bool watcher_until(bool (*holds)(const char *arg), const char *arg)
{
    for (int64_t deadline = now_ms() + 15000; now_ms() < deadline;) {
        if (holds(arg))
            return true;
        struct pollfd fd = {watcher.from, POLLIN, 0};
        if (poll(&fd, 1, 100) <= 0)
            continue;
        ck_assert_uint_lt(watcher.size, sizeof(watcher.said) - 1);
        ssize_t n = read(watcher.from, watcher.said + watcher.size, sizeof(watcher.said) - 1 - watcher.size);
        if (n <= 0)
            return holds(arg);
        watcher.size += (size_t)n;
        watcher.said[watcher.size] = '\0';
    }
    return false;
}

static bool has_said(const char *text)
{
    return strstr(watcher.said, text) != NULL;
}

static void expect_said(const char *text)
{
    ck_assert_msg(watcher_until(has_said, text), "never said: %s\n%s", text, watcher.said);
}

static void forget(void)
{
    watcher.size = 0;
    watcher.said[0] = '\0';
}

/* A frame on a terminal goes from one "home" to the end of its drawing. */
static bool has_frame_after_forgetting(const char *unused)
{
    (void)unused;
    char *home = strstr(watcher.said, "\033[H");
    return home != NULL && strstr(home, "\033[J") != NULL;
}

static int watcher_wait(void)
{
    int status = -1;
    for (int64_t deadline = now_ms() + 10000; now_ms() < deadline; poll(NULL, 0, 5)) {
        if (waitpid(watcher.pid, &status, WNOHANG) == watcher.pid)
            return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
        if (watcher.terminal >= 0) /* the end of its output must be taken for it to go on */
            watcher_until(has_said, LEAVE);
    }
    kill(watcher.pid, SIGKILL);
    waitpid(watcher.pid, &status, 0);
    ck_abort_msg("it did not end\n%s", watcher.said);
    return -1;
}

static void expect_terminal_clean(void)
{
    struct termios now;
    expect_said(LEAVE);
    ck_assert_msg(strlen(strstr(watcher.said, LEAVE)) == strlen(LEAVE), "more comes behind the end");
    ck_assert_int_eq(tcgetattr(watcher.terminal, &now), 0);
    ck_assert_uint_eq(now.c_lflag, watcher.before.c_lflag);
    ck_assert_int_eq(now.c_cc[VMIN], watcher.before.c_cc[VMIN]);
}

static void watcher_close(void)
{
    close(watcher.from);
    if (watcher.terminal >= 0)
        close(watcher.terminal);
}

static void ask(int times)
{
    for (int i = 0; i < times; i++)
        expect_status(http_get(server, "/api/v1/reports"), 200);
}

/* ---- on a terminal ---- */

START_TEST(a_terminal_shows_workers_routes_writer_store_and_auditors_until_q)
{
    static const char *const parts[] = {"PROCESS", "worker 0", "worker 1", "auditor 0", "writer ", "batch", "commit p50", "store ",
                                        "readers", "queue", "ROUTE", "GET /api/v1/reports", "LIMITER", "widget-leads", "STREAMS"};
    ask(20);
    watcher_start(true, "stats", "--watch", "--interval", "200ms", NULL);
    expect_said(ENTER);
    for (size_t i = 0; i < COUNT(parts); i++)
        expect_said(parts[i]);
    ck_assert_int_eq(write(watcher.from, "q", 1), 1);
    ck_assert_int_eq(watcher_wait(), 0);
    expect_terminal_clean();
    watcher_close();
    server_stop(server);
}
END_TEST

static const int endings[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};

START_TEST(a_signal_leaves_a_clean_terminal)
{
    watcher_start(true, "stats", "--watch", NULL);
    expect_said("PROCESS");
    kill(watcher.pid, endings[_i]);
    ck_assert_int_eq(watcher_wait(), 0);
    expect_terminal_clean();
    watcher_close();
}
END_TEST

START_TEST(ctrl_c_typed_leaves_a_clean_terminal)
{
    watcher_start(true, "stats", "--watch", NULL);
    expect_said("PROCESS");
    ck_assert_int_eq(write(watcher.from, "\003", 1), 1);
    ck_assert_int_eq(watcher_wait(), 0);
    expect_terminal_clean();
    watcher_close();
}
END_TEST

START_TEST(ctrl_z_gives_the_terminal_back_and_goes_on_after_it)
{
    int status;
    watcher_start(true, "stats", "--watch", "--interval", "200ms", NULL);
    expect_said("PROCESS");
    kill(watcher.pid, SIGTSTP);
    expect_said(LEAVE);
    ck_assert_int_eq(waitpid(watcher.pid, &status, WUNTRACED), watcher.pid);
    ck_assert(WIFSTOPPED(status));
    forget();
    kill(watcher.pid, SIGCONT);
    expect_said(ENTER);
    expect_said("PROCESS");
    ck_assert_int_eq(write(watcher.from, "q", 1), 1);
    ck_assert_int_eq(watcher_wait(), 0);
    expect_terminal_clean();
    watcher_close();
}
END_TEST

START_TEST(a_terminal_that_goes_away_ends_it)
{
    watcher_start(true, "stats", "--watch", NULL);
    expect_said("PROCESS");
    close(watcher.terminal);
    close(watcher.from);
    watcher.terminal = -1;
    int ended = watcher_wait();
    ck_assert_msg(ended < 128, "signal %d", ended - 128);
}
END_TEST

/* Rows and columns of a frame: from its "home" on, without what steers. */
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

/* Columns: rows and columns of the terminal; what is there all the same. */
static const struct {
    unsigned short rows, columns;
    const char *says;
} sizes[] = {{12, 40, "writer"}, {5, 20, "assayd"}, {24, 80, "GET"}, {60, 200, "widget-leads"}};

START_TEST(the_screen_follows_the_terminals_size)
{
    size_t rows, columns;
    ask(3);
    watcher_start(true, "stats", "--watch", "--interval", "1h", NULL); /* so that it is the size that shows it anew */
    expect_said("LIMITER");
    watcher_until(has_said, "\033[J");
    forget();
    ck_assert_int_eq(ioctl(watcher.from, TIOCSWINSZ, &(struct winsize){.ws_row = sizes[_i].rows, .ws_col = sizes[_i].columns}), 0);
    ck_assert_msg(watcher_until(has_frame_after_forgetting, ""), "nothing new");
    measure(watcher.said, &rows, &columns);
    ck_assert_uint_le(rows, sizes[_i].rows);
    ck_assert_uint_le(columns, sizes[_i].columns);
    ck_assert_msg(has_said(sizes[_i].says), "%s", watcher.said);
    kill(watcher.pid, SIGTERM);
    ck_assert_int_eq(watcher_wait(), 0);
    watcher_close();
}
END_TEST

START_TEST(keys_order_the_routes)
{
    ask(3);
    watcher_start(true, "stats", "--watch", "--interval", "1h", NULL);
    expect_said("by requests");
    ck_assert_int_eq(write(watcher.from, "n", 1), 1);
    expect_said("by name");
    ck_assert_int_eq(write(watcher.from, "e", 1), 1);
    expect_said("by errors");
    ck_assert_int_eq(write(watcher.from, "t", 1), 1);
    expect_said("by time");
    ck_assert_int_eq(write(watcher.from, "q", 1), 1);
    ck_assert_int_eq(watcher_wait(), 0);
    watcher_close();
}
END_TEST

START_TEST(it_goes_on_over_a_server_that_dies_and_comes_back)
{
    watcher_start(true, "stats", "--watch", "--interval", "100ms", NULL);
    expect_said("PROCESS");
    server_signal(server, SIGKILL);
    server_wait(server, 5000);
    forget();
    expect_said("No server runs");
    server_start(server);
    forget();
    expect_said(text("assayd %d", server->pid));
    forget();
    expect_said("store ");
    kill(server_process(server, "assayd: writer"), SIGKILL);
    forget();
    expect_said("1 processes replaced");
    ck_assert_int_eq(write(watcher.from, "q", 1), 1);
    ck_assert_int_eq(watcher_wait(), 0);
    expect_terminal_clean();
    watcher_close();
    server_signal(server, SIGTERM);
    ck_assert_int_eq(server_wait(server, 10000), 0);
}
END_TEST

/* ---- where there is no terminal ---- */

static bool has_two_turns(const char *text)
{
    const char *first = strstr(watcher.said, text);
    return first != NULL && strstr(first + 1, text) != NULL;
}

START_TEST(a_pipe_gets_plain_text_until_its_reader_leaves)
{
    ask(3);
    watcher_start(false, "stats", "--watch", "--interval", "100ms", NULL);
    ck_assert_msg(watcher_until(has_two_turns, "GET /api/v1/reports\n"), "%s", watcher.said);
    ck_assert_ptr_null(strchr(watcher.said, '\033'));
    watcher_close();
    ck_assert_int_eq(watcher_wait(), 0);
}
END_TEST

static bool has_a_line(const char *unused)
{
    (void)unused;
    return strchr(watcher.said, '\n') != NULL;
}

static struct json_object *turn(void)
{
    forget();
    ck_assert(watcher_until(has_a_line, ""));
    forget(); /* it may have begun before */
    ck_assert(watcher_until(has_two_turns, "\n"));
    char *line = watcher.said;
    if (*line != '{')
        line = strchr(line, '\n') + 1;
    return json_tokener_parse(line);
}

static double number_in(struct json_object *from, const char *name)
{
    struct json_object *value = NULL;
    ck_assert_msg(json_object_object_get_ex(from, name, &value), "no %s in %s", name, json_object_to_json_string(from));
    return json_object_get_double(value);
}

static struct json_object *part(struct json_object *from, const char *name)
{
    struct json_object *value = NULL;
    ck_assert_msg(json_object_object_get_ex(from, name, &value), "no %s in %s", name, json_object_to_json_string(from));
    return value;
}

START_TEST(json_is_an_object_a_turn_that_adds_up)
{
    ask(30);
    watcher_start(false, "--json", "stats", "--watch", "--interval", "300ms", NULL);
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
    ck_assert(number_in(part(o, "auditors"), "queue") == 0);
    ck_assert(number_in(part(o, "writer"), "changes_per_s") >= 0);
    ck_assert_uint_gt(json_object_array_length(part(o, "limiters")), 5);
    json_object_put(o);
    watcher_close();
    ck_assert_int_eq(watcher_wait(), 0);
}
END_TEST

static const char *const wrong_intervals[] = {"soon", "0", "99ms", "-1s", "1"};

START_TEST(an_interval_that_is_none_is_refused)
{
    struct run run = assay(server, "stats", "--watch", "--interval", wrong_intervals[_i], NULL);
    ck_assert_msg(run.status == 2 && strstr(run.err, "--interval") != NULL, "%d: %s", run.status, run.err);
}
END_TEST

START_TEST(an_interval_without_watch_is_refused)
{
    struct run run = assay(server, "stats", "--interval", "1s", NULL);
    ck_assert_msg(run.status == 2 && strstr(run.err, "--watch") != NULL, "%d: %s", run.status, run.err);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("stats");
    TCase *tcase = harness_case(suite, "a server each");
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, a_terminal_shows_workers_routes_writer_store_and_auditors_until_q);
    tcase_add_loop_test(tcase, a_signal_leaves_a_clean_terminal, 0, COUNT(endings));
    tcase_add_test(tcase, ctrl_c_typed_leaves_a_clean_terminal);
    tcase_add_test(tcase, ctrl_z_gives_the_terminal_back_and_goes_on_after_it);
    tcase_add_test(tcase, a_terminal_that_goes_away_ends_it);
    tcase_add_loop_test(tcase, the_screen_follows_the_terminals_size, 0, COUNT(sizes));
    tcase_add_test(tcase, keys_order_the_routes);
    tcase_add_test(tcase, it_goes_on_over_a_server_that_dies_and_comes_back);
    tcase_add_test(tcase, a_pipe_gets_plain_text_until_its_reader_leaves);
    tcase_add_test(tcase, json_is_an_object_a_turn_that_adds_up);
    tcase_add_loop_test(tcase, an_interval_that_is_none_is_refused, 0, COUNT(wrong_intervals));
    tcase_add_test(tcase, an_interval_without_watch_is_refused);
    return harness_main(suite);
}
