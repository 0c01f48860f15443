/*
 * Long commands show their progress on a terminal, in a line that they erase at the end, and
 * nowhere else. Ctrl-C ends them without partial results.
 */
#include "t/kit/harness.h"

#include <poll.h>
#include <signal.h>
#include <sys/stat.h>

#define CLEAR "\r\033[K"

static struct origin *origin;
static struct server *server;
static struct watched *work;
static char *backup;

static void setup(void)
{
    origin = origin_usual();
    server = server_new(&(struct server_options){.origin = origin});
    server_start(server);
    for (int i = 0; i < 50; i++)
        report_queued(server, text("http://127.0.0.1/%d", i));
    backup = text("%s/backup", server->dir);
}

static void teardown(void)
{
    server_free(server);
    origin_stop(origin);
}

#define run_work(by, ...)                                                                          \
    (work = watch_start((by), NULL, assay_path(), "-c", server->conf, __VA_ARGS__, NULL))

/*
 * Columns: the command; whether its argument is the backup's directory; its progress line; its last
 * words; whether the server runs.
 */
static const struct {
    const char *command;
    bool of_backup;
    const char *line, *last;
    bool beside_server;
} works[] = {
    {"check", false, "Checking: ", "no errors", true},
    {"check", false, "Checking: ", "no errors", false},
    {"backup", true, "Copying: ", "The backup is in", true},
    {"backup", true, "Copying: ", "The backup is in", false},
    {"restore", true, "Checking and restoring: ", "Restored ", false},
};

/* "12 of 34 (35 %)" after ${line}; the last one is at most its total. */
static void expect_counts(const char *line)
{
    size_t seen = 0;
    for (const char *at = strstr(work->said, line); at; at = strstr(at + 1, line), seen++) {
        unsigned long long done, total;
        unsigned percent;
        ck_assert_msg(sscanf(at + strlen(line), "%llu of %llu (%u %%)", &done, &total, &percent) ==
                          3,
                      "%s", at);
        ck_assert_msg(percent <= 100 && total > 0, "%s", at);
    }
    ck_assert_uint_gt(seen, 0);
}

START_TEST(progress_shows_on_a_terminal_and_is_erased)
{
    if (!strcmp(works[_i].command, "restore"))
        assay_ok(server, "backup", backup, NULL);
    if (!works[_i].beside_server)
        server_stop(server);
    run_work(BY_TERMINAL, works[_i].command, works[_i].of_backup ? backup : NULL);
    ck_assert_msg(watch_wait(work) == 0, "%s", work->said);
    expect_counts(text("%s%s", CLEAR, works[_i].line));
    const char *last = strstr(work->said, works[_i].last), *cleared = NULL;
    for (const char *at = work->said; (at = strstr(at, CLEAR)) != NULL; at++)
        cleared = at;
    ck_assert_msg(last && cleared && cleared < last && !strstr(cleared, works[_i].line), "%s",
                  work->said);
    watch_close(work);
    if (works[_i].beside_server)
        server_stop(server);
}
END_TEST

START_TEST(no_progress_shows_without_a_terminal)
{
    struct run runs[] = {
        assay(server, "backup", backup, NULL), assay(server, "check", NULL),
        assay(server, "audit", origin_url(origin, "/good"), origin_url(origin, "/bad"), NULL)};
    for (size_t i = 0; i < COUNT(runs); i++)
        ck_assert_msg(!strpbrk(runs[i].out, "\r\033") && !strpbrk(runs[i].err, "\r\033"),
                      "%s: %s%s", runs[i].command, runs[i].out, runs[i].err);
    server_stop(server);
    struct run restore = assay(server, "restore", backup, NULL);
    ck_assert_msg(restore.status == 0 && !strpbrk(restore.err, "\r\033"), "%d: %s", restore.status,
                  restore.err);
}
END_TEST

START_TEST(audit_counts_pages_and_prints_a_summary)
{
    static const char *const lines[] = {"Grading: 0 of 3 (0 %)", "Grading: 2 of 3 (66 %)"};
    server_stop(server);
    origin_held(origin, "/held");
    run_work(BY_TERMINAL, "audit", origin_url(origin, "/good"), origin_url(origin, "/held"),
             origin_url(origin, "/missing"));
    for (size_t i = 0; i < COUNT(lines); i++)
        watch_expect(work, lines[i]);
    origin_release(origin, "/held");
    watch_expect(work, "3 pages");
    ck_assert_int_eq(watch_wait(work), 2); /* the slowest */
    const char *sum = strstr(work->said, "3 pages"), *good = strstr(sum, "/good"),
               *held = strstr(sum, "/held"), *missing = strstr(sum, "/missing");
    ck_assert_msg(good && held && missing && good < held && held < missing,
                  "not in the order given: %s", sum);
    ck_assert_ptr_null(strstr(sum, "Grading"));
    watch_close(work);
}
END_TEST

static bool made(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0;
}

/* Stopped before or during its work: there is no partial backup, and the store is unchanged. */
START_TEST(ctrl_c_leaves_no_partial_file)
{
    for (int round = 0; round < 8; round++) {
        run_work(BY_TERMINAL, "backup", backup);
        if (round % 2)
            watch_expect(work, "Copying");
        else
            poll(NULL, 0, round * 3);
        kill(work->pid, SIGINT);
        int status = watch_wait(work);
        watch_close(work);
        if (status == 0) {
            assay_ok(server, "--set", text("data_dir=%s", backup), "check", NULL);
            run_program("/bin/rm", "-r", backup, NULL);
        } else {
            ck_assert_msg(status == 1 || status == 128 + SIGINT, "%d: %s", status, work->said);
            ck_assert_msg(!made(text("%s/data.mdb", backup)), "%s", work->said);
        }
    }
    assay_ok(server, "backup", backup, NULL);
    server_stop(server);
    for (int round = 0; round < 8; round++) {
        run_work(BY_TERMINAL, "restore", backup);
        if (round % 2)
            watch_expect(work, "Checking and restoring");
        else
            poll(NULL, 0, round * 3);
        kill(work->pid, SIGINT);
        int status = watch_wait(work);
        watch_close(work);
        ck_assert_msg(status == 0 || status == 1 || status == 128 + SIGINT, "%d: %s", status,
                      work->said);
        assay_ok(server, "check", NULL);
    }
    server_start(server);
    expect_int(http_get(server, "/api/v1/reports"), "meta.total", 50);
    server_stop(server);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("terminal_progress");
    TCase *tcase = harness_case(suite, "a server each");
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_loop_test(tcase, progress_shows_on_a_terminal_and_is_erased, 0, COUNT(works));
    tcase_add_test(tcase, no_progress_shows_without_a_terminal);
    tcase_add_test(tcase, audit_counts_pages_and_prints_a_summary);
    tcase_add_test(tcase, ctrl_c_leaves_no_partial_file);
    return harness_main(suite);
}
