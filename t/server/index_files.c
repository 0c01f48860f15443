/*
 * Segment files of a running server: after damage to the files, or crashes of the processes that
 * write and read them, lists are correct or 503, and recover by themselves.
 */
#include "t/kit/file_damage.h"
#include "t/kit/index.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>

enum { REPORTS = 9000, SOON_MS = 20000 };

static struct server *server;
static char *small_key; /* of a workspace without segment files */

static size_t segment_files(char **last, uint64_t *bytes)
{
    char *path = text("%s/index", server->data);
    size_t count = 0;
    struct dirent *e;
    struct stat st;
    DIR *dir = opendir(path);
    *bytes = 0;
    while (dir != NULL && (e = readdir(dir)) != NULL) {
        size_t n = strlen(e->d_name);
        if (n <= 4 || strcmp(e->d_name + n - 4, ".seg") != 0 ||
            stat(text("%s/%s", path, e->d_name), &st) != 0)
            continue;
        *last = text("%s/%s", path, e->d_name);
        *bytes += (uint64_t)st.st_size;
        count++;
    }
    if (dir != NULL)
        closedir(dir);
    return count;
}

/* The store references one file, which exists, and there is no other. */
static bool has_segment(void *arg)
{
    uint64_t bytes;
    struct store_space room;
    struct store *s = index_store(server, STORE_READ);
    ck_assert_int_eq(store_space(s, &room), STORE_OK);
    store_close(s);
    return segment_files(arg, &bytes) == 1 && bytes != 0 && bytes == room.index_bytes;
}

static char *segment_file(void)
{
    char *path = NULL;
    ck_assert(wait_until(has_segment, &path, SOON_MS));
    return path;
}

static struct response *list(const char *query)
{
    return http(server, .method = "GET", .path = text("/api/v1/reports?%s", query),
                .may_fail = true);
}

/* A list is right, or 503 with Retry-After. */
static bool list_is(const char *query, int64_t total)
{
    struct response *r = list(query);
    if (r->status == 0) /* its worker was killed */
        return false;
    if (r->status == 503) {
        ck_assert_ptr_nonnull(header(r, "retry-after"));
        return false;
    }
    expect_status(r, 200);
    ck_assert_int_eq(int_at(r, "meta.total"), total);
    return true;
}

/* Columns: the query of a list; one of how many reports is in it. */
static const struct {
    const char *query;
    unsigned one_in;
} lists[] = {{"per_page=10", 1},
             {"sort_by=url&per_page=10", 1},
             {"sort_by=score&per_page=10&page=7", 1},
             {"sort_by=generated_at&per_page=10", 1},
             {"project=odd&per_page=10", 2},
             {"status=done&per_page=10", 3},
             {"search=page-&per_page=10", 1}};

static bool lists_are_right(void *arg)
{
    for (size_t i = 0; i < COUNT(lists); i++)
        if (!list_is(lists[i].query, *(unsigned *)arg / lists[i].one_in))
            return false;
    return true;
}

static void expect_lists(unsigned reports)
{
    ck_assert(wait_until(lists_are_right, &reports, SOON_MS));
}

static void begin(unsigned workers)
{
    server = server_new(&(struct server_options){.workers = workers});
    server_configure(server, "reports: { wait: 0s }");
    server_start(server);
    assay_ok(server, "workspace", "create", "small", NULL);
    small_key = assay_ok(server, "key", "create", "--workspace", "small", "--name", "k", NULL);
    struct response *r = http(server, .method = "POST", .path = "/api/v1/reports", .key = small_key,
                              .body = "url=http://small.invalid/");
    expect_status(r, 201);
    server_stop(server);
    index_fill(server, "main", 0, REPORTS);
    server_start(server);
    segment_file();
    expect_lists(REPORTS);
}

static void expect_small(void)
{
    struct response *r = http(server, .method = "GET", .path = "/api/v1/reports", .key = small_key,
                              .may_fail = true);
    ck_assert(r->status == 0 || r->status == 200);
}

START_TEST(lists_use_a_segment_file_shown_in_stats)
{
    char *path = NULL;
    uint64_t bytes;
    begin(2);
    ck_assert_uint_eq(segment_files(&path, &bytes), 1);
    struct watched *stats = watch_start(BY_PIPE, NULL, "./assay", "-c", server->conf, "--json",
                                        "stats", "--watch", "--interval", "100ms", NULL);
    watch_expect(stats, text("\"index_bytes\":%llu,", (unsigned long long)bytes));
    watch_close(stats);
    assay_ok(server, "check", NULL);
    server_free(server);
}
END_TEST

/* ---- damage ---- */

static void change_bits(const char *path)
{
    struct stat st;
    int fd = open(path, O_RDWR);
    ck_assert_int_eq(fstat(fd, &st), 0);
    for (off_t at = 0; at < st.st_size; at += 30000) {
        char byte;
        ck_assert_int_eq(pread(fd, &byte, 1, at), 1);
        byte ^= 4;
        ck_assert_int_eq(pwrite(fd, &byte, 1, at), 1);
    }
    close(fd);
}

static void make_pipe(const char *path)
{
    delete_file(path);
    ck_assert_int_eq(mkfifo(path, 0600), 0);
}

static void make_directory(const char *path)
{
    delete_file(path);
    ck_assert_int_eq(mkdir(path, 0700), 0);
}

/* Columns: what happens to the file; whether the server is stopped; its workers. */
static const struct {
    void (*happen)(const char *path);
    bool stopped;
    unsigned workers;
} damages[] = {{delete_file, true, 2},
               {truncate_file, true, 2},
               {change_bits, true, 2},
               {make_pipe, true, 2},
               {make_directory, true, 2},
               /* SIGBUS ends the process that reads it. Another worker, which has not read it yet,
                  finds its size wrong, and no process reads it. */
               {truncate_file, false, 1},
               {delete_file, false, 2}};

START_TEST(lists_return_after_segment_damage)
{
    begin(damages[_i].workers);
    char *path = segment_file();
    if (damages[_i].stopped)
        server_stop(server);
    damages[_i].happen(path);
    if (damages[_i].stopped) {
        struct run run = assay(server, "check", NULL);
        ck_assert_int_eq(run.status, 1);
        ck_assert_msg(strstr(run.out, path) != NULL, "%s%s", run.out, run.err);
        server_start(server);
    }
    expect_small();
    list("search=page-77"); /* which no process knows */
    expect_lists(REPORTS);
    if (damages[_i].stopped) {
        ck_assert(server_says(server, "rebuil", 0, SOON_MS));
        ck_assert_str_ne(segment_file(), path);
        ck_assert_int_ne(access(path, F_OK), 0);
    }
    if (damages[_i].happen == truncate_file && !damages[_i].stopped) {
        ck_assert(server_says(server, text("%s cannot be read", path), 0, SOON_MS));
        ck_assert_int_ne(access(path, F_OK), 0);
        server_discard(server);
        return;
    }
    server_stop(server);
    if (damages[_i].stopped)
        assay_ok(server, "check", NULL);
    server_free(server);
}
END_TEST

/* Its processes have verified all blocks before, so no list finds the damage soon. */
START_TEST(a_check_has_the_running_server_rebuild_a_damaged_index)
{
    begin(2);
    char *path = segment_file();
    change_bits(path);
    struct run run = assay(server, "check", NULL);
    ck_assert_int_eq(run.status, 1);
    ck_assert_msg(strstr(run.out, path) != NULL, "%s%s", run.out, run.err);
    ck_assert_msg(strstr(run.err, "wrong indexes of reports (1)") != NULL, "%s", run.err);
    expect_small();
    ck_assert(server_says(server, "rebuilt the index of reports", 0, SOON_MS));
    expect_lists(REPORTS);
    ck_assert_str_ne(segment_file(), path);
    assay_ok(server, "check", NULL);
    server_free(server);
}
END_TEST

START_TEST(check_repair_rebuilds_indexes_and_needs_a_stopped_server)
{
    begin(2);
    char *path = segment_file();
    struct run run = assay(server, "check", "--repair", NULL);
    ck_assert_int_eq(run.status, 1);
    ck_assert_msg(strstr(run.err, "stop the server first") != NULL, "%s", run.err);
    server_stop(server);
    change_bits(path);
    ck_assert_int_eq(assay(server, "check", NULL).status, 1);
    assay_ok(server, "check", "--repair", NULL);
    assay_ok(server, "check", NULL);
    server_start(server);
    expect_lists(REPORTS);
    ck_assert_ptr_null(strstr(server_log(server), "rebuil"));
    server_free(server);
}
END_TEST

/* ---- crashes ---- */

static void kill_writer(void)
{
    pid_t writer = server_process(server, "assayd: writer");
    kill(writer, SIGKILL);
    ck_assert(server_replaces(server, "assayd: writer", writer, SOON_MS));
}

static void delete_project(const char *name)
{
    struct response *r = http(server, .method = "GET", .path = "/api/v1/projects?per_page=100");
    for (int i = 0; i < 10; i++) {
        if (strcmp(str_at(r, text("data.%d.project", i)), name) != 0)
            continue;
        int64_t id = int_at(r, text("data.%d.id", i));
        expect_status(
            http(server, .method = "DELETE", .path = text("/api/v1/projects/%lld", (long long)id)),
            200);
        return;
    }
}

static bool no_work_is_left(void *arg)
{
    (void)arg;
    char *path;
    uint64_t bytes;
    struct run run = assay(server, "check", NULL);
    return run.status == 0 && segment_files(&path, &bytes) <= 1;
}

START_TEST(a_writer_killed_during_a_merge_or_purge_needs_no_repair)
{
    begin(2);
    server_stop(server);
    index_fill(server, "main", REPORTS, REPORTS);
    server_start(server);
    for (useconds_t i = 0; i < 3; i++) {
        usleep(i * 7000);
        kill_writer();
    }
    expect_lists(2 * REPORTS);
    delete_project("odd");
    for (useconds_t i = 0; i < 3; i++) {
        usleep(i * 7000);
        kill_writer();
    }
    ck_assert(list_is("project=odd", 0));
    ck_assert(list_is("per_page=10", REPORTS));
    ck_assert(wait_until(no_work_is_left, NULL, SOON_MS));
    server_free(server);
}
END_TEST

static void kill_all(void)
{
    pid_t children[16];
    size_t count = server_children(server, children, COUNT(children));
    for (size_t i = 0; i < count; i++)
        kill(children[i], SIGKILL);
    server_signal(server, SIGKILL);
    ck_assert_int_eq(server_wait(server, SOON_MS), 128 + SIGKILL);
}

START_TEST(lists_return_after_all_processes_die_during_a_rebuild)
{
    begin(2);
    for (useconds_t i = 0; i < 4; i++) {
        delete_file(segment_file());
        list("search=page-77");
        usleep(i * 15000);
        kill_all();
        ck_assert_int_le(assay(server, "check", NULL).status, 1);
        server_start(server);
        expect_lists(REPORTS);
        if (i % 2 == 0)
            kill_writer();
    }
    expect_lists(REPORTS);
    ck_assert(wait_until(no_work_is_left, NULL, SOON_MS));
    server_free(server);
}
END_TEST

/* PR_SET_PDEATHSIG kills the command's own processes soon after it. */
static void run_killed(const char *after, const char *command, const char *word)
{
    struct run run = {.err = "is in use by"};
    for (int tries = 0; tries < 100 && strstr(run.err, "is in use by") != NULL; tries++)
        run = run_program("/usr/bin/timeout", "-s", "KILL", after, assay_path(), "-c", server->conf,
                          command, word, NULL);
    ck_assert_msg(run.status == 0 || run.status == 128 + SIGKILL, "%s %d %s", command, run.status,
                  run.err);
}

START_TEST(a_killed_repair_backup_or_restore_changes_no_list)
{
    static const char *const after[] = {"0.01", "0.03", "0.05", "0.08", "0.12"};
    char *backup;
    begin(2);
    backup = text("%s/backup", server->dir);
    for (size_t i = 0; i < COUNT(after); i++)
        run_killed(after[i], "backup", text("%s/killed-%zu", server->dir, i));
    assay_ok(server, "backup", backup, NULL);
    server_stop(server);
    for (size_t i = 0; i < COUNT(after); i++) {
        run_killed(after[i], "check", "--repair");
        run_killed(after[i], "restore", backup);
    }
    server_start(server);
    for (size_t i = 0; i < COUNT(lists); i++)
        ck_assert(list_is(lists[i].query, REPORTS / lists[i].one_in)); /* at once */
    expect_status(http(server, .method = "GET", .path = "/api/v1/reports", .key = small_key), 200);
    ck_assert(wait_until(no_work_is_left, NULL, SOON_MS));
    ck_assert_int_ne(access(text("%s/restore.part", server->data), F_OK), 0);
    server_free(server);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("index_files");
    tcase_add_test(harness_case(suite, "file"), lists_use_a_segment_file_shown_in_stats);
    tcase_add_loop_test(harness_case(suite, "damage"), lists_return_after_segment_damage, 0,
                        COUNT(damages));
    tcase_add_test(harness_case(suite, "check"),
                   a_check_has_the_running_server_rebuild_a_damaged_index);
    tcase_add_test(harness_case(suite, "repair"),
                   check_repair_rebuilds_indexes_and_needs_a_stopped_server);
    tcase_add_test(harness_case(suite, "writer"),
                   a_writer_killed_during_a_merge_or_purge_needs_no_repair);
    tcase_add_test(harness_case(suite, "all"),
                   lists_return_after_all_processes_die_during_a_rebuild);
    tcase_add_test(harness_case(suite, "commands"),
                   a_killed_repair_backup_or_restore_changes_no_list);
    return harness_main_at_once(suite);
}
