/*
 * How a test program runs its suite. Programs with a server end with harness_main or
 * harness_main_at_once instead (t/kit/harness.h).
 */
#ifndef ASSAY_T_KIT_SUITE_H
#define ASSAY_T_KIT_SUITE_H

#include <check.h>
#include <stdbool.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define SUITE_SKIPPED 77 /* the exit status by which make check knows a skipped test */

/* Runs ${suite} and frees it; the exit status of the program. */
static inline int suite_run(Suite *suite)
{
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}

static struct {
    int count, self; /* how many processes run the program's tests, and which this one is */
    int added;       /* tests in all of them */
} suite_share = {.count = 1};

/*
 * suite_processes(count): called first in main, runs the tests of the program in ${count} processes
 * side by side, each a share of them. For tests that wait more than they work.
 */
static inline void suite_processes(int count)
{
    pid_t parent = getpid();
    int result = EXIT_SUCCESS;
    if (getenv("CK_RUN_CASE") != NULL)
        return;
    suite_share.count = count;
    for (suite_share.self = 0; suite_share.self < count; suite_share.self++) {
        pid_t pid = fork();
        if (pid == 0) {
            prctl(PR_SET_PDEATHSIG, SIGTERM); /* Check's runner ends its test then */
            if (getppid() != parent)
                exit(EXIT_FAILURE);
            return;
        }
        if (pid < 0)
            result = EXIT_FAILURE;
    }
    for (int status; wait(&status) > 0;) {
        bool skipped = WIFEXITED(status) && WEXITSTATUS(status) == SUITE_SKIPPED;
        if (skipped && result == EXIT_SUCCESS)
            result = SUITE_SKIPPED;
        else if (status != 0 && !skipped)
            result = EXIT_FAILURE;
    }
    exit(result);
}

static inline void suite_add_test(TCase *tcase, const TTest *test, int from, int to)
{
    for (int i = from; i < to; i++)
        if (suite_share.added++ % suite_share.count == suite_share.self)
            _tcase_add_test(tcase, test, 0, 0, i, i + 1);
}

#undef tcase_add_test
#undef tcase_add_loop_test
#define tcase_add_test(tcase, test) suite_add_test(tcase, test, 0, 1)
#define tcase_add_loop_test(tcase, test, from, to) suite_add_test(tcase, test, from, (int)(to))

#endif
