/*
 * Limiter statistics while a publisher writes all the time: a reader gets one complete publication
 * or none.
 */
#include "core/shm/limiter_stats.h"
#include "t/kit/suite.h"

#include <check.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define READS 3000

static char dir[] = "/tmp/assay-board-XXXXXX", path[64];
static struct limiter_stats *board;
static struct limiters limits;

/* every window of every limiter, and the last override, is ${number} */
static void fill(uint32_t number)
{
    for (unsigned i = 1; i < limits.count; i++)
        for (unsigned w = 0; w < LIMITER_WINDOWS_MAX; w++)
            limits.rows[i].windows[w].limit = number;
    limits.overrides[LIMITERS_OVERRIDES_MAX - 1].limit = number;
}

static void begin(void)
{
    ck_assert_ptr_nonnull(mkdtemp(dir));
    snprintf(path, sizeof(path), "%s/limiters", dir);
    limiters_defaults(&limits);
    fill(0);
    board = limiter_stats_create(path, &limits);
    ck_assert_ptr_nonnull(board);
}

static void end(void)
{
    limiter_stats_close(board);
    unlink(path);
    rmdir(dir);
}

/* a full file system does not affect the counting processes */
START_TEST(the_file_has_its_full_size_from_the_start)
{
    struct stat st;
    ck_assert_int_eq(stat(path, &st), 0);
    ck_assert_int_ge(st.st_blocks * 512, st.st_size);
}
END_TEST

static pid_t start_publisher(void)
{
    pid_t parent = getpid(), pid = fork();
    ck_assert_int_ge(pid, 0);
    if (pid > 0)
        return pid;
    for (uint32_t number = 1; getppid() == parent; number++) {
        fill(number);
        limiter_stats_publish(board, &limits);
        usleep(1); /* so that readers sometimes find it idle */
    }
    _exit(0);
}

START_TEST(a_reader_sees_a_whole_publication_or_none)
{
    static struct limiters read;
    uint64_t version = 0, last = 0;
    uint32_t number = 0;
    unsigned good = 0, seen = 0;
    pid_t pid = start_publisher();
    for (unsigned long tries = 0; good < READS && tries < 100000000; tries++) {
        if (!limiter_stats_read(board, &read, &version))
            continue;
        good++;
        ck_assert_uint_eq(version % 2, 0);
        ck_assert_uint_ge(version, last);
        ck_assert_uint_ge(read.rows[1].windows[0].limit, number);
        number = read.rows[1].windows[0].limit;
        for (unsigned i = 1; i < read.count; i++)
            for (unsigned w = 0; w < LIMITER_WINDOWS_MAX; w++)
                ck_assert_uint_eq(read.rows[i].windows[w].limit, number);
        ck_assert_uint_eq(read.overrides[LIMITERS_OVERRIDES_MAX - 1].limit, number);
        seen += version != last;
        last = version;
    }
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    ck_assert_uint_eq(good, READS);
    ck_assert_uint_gt(seen, 1);
}
END_TEST

START_TEST(counters_of_many_processes_add_up)
{
    enum { PROCESSES = 4, EACH = 50000 };
    unsigned counter = (unsigned)limiter_stats_counter(board, "api");
    for (unsigned p = 0; p < PROCESSES; p++) {
        pid_t pid = fork();
        ck_assert_int_ge(pid, 0);
        if (pid == 0) {
            for (int i = 0; i < EACH; i++)
                /* two of them with one worker slot: generations overlap */
                limiter_stats_count(board, p / 2, counter, COUNT_ADMITTED);
            _exit(0);
        }
    }
    for (unsigned p = 0; p < PROCESSES; p++)
        wait(NULL);
    ck_assert_uint_eq(limiter_stats_total(board, counter, COUNT_ADMITTED), PROCESSES * EACH);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("limiter_stats");
    TCase *tcase = tcase_create("limiter_stats");
    tcase_set_timeout(tcase, 60);
    tcase_add_checked_fixture(tcase, begin, end);
    tcase_add_test(tcase, a_reader_sees_a_whole_publication_or_none);
    tcase_add_test(tcase, the_file_has_its_full_size_from_the_start);
    tcase_add_test(tcase, counters_of_many_processes_add_up);
    suite_add_tcase(suite, tcase);
    return suite_run(suite);
}
