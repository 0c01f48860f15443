/*
 * A command whose work on the store crashes: it reports where, cleans up, and exits with the
 * documented status.
 */
#include "cmd/guard.h"
#include "core/base/sanitizer.h"
#include "t/kit/suite.h"

#include <check.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

static _Atomic int *shared; /* 1: the work has started; 2: it was asked to stop */
static int tidied;
static char output[4096];

static void tidy(struct cmd *cmd)
{
    (void)cmd;
    tidied++;
}

static const struct guard guard = {"no backup was made", "/data", "Do this next", tidy};

/* the status, and the output to standard error */
static int run(int (*work)(struct cmd *cmd))
{
    struct cmd cmd = {.program = "assay"};
    int fds[2], old_stderr = dup(STDERR_FILENO);
    tidied = 0;
    ck_assert(pipe(fds) == 0 && dup2(fds[1], STDERR_FILENO) >= 0);
    close(fds[1]);
    int status = guard_run(&cmd, &guard, work);
    ck_assert_int_ge(dup2(old_stderr, STDERR_FILENO), 0);
    close(old_stderr);
    size_t n = 0;
    for (ssize_t got; (got = read(fds[0], output + n, sizeof(output) - 1 - n)) > 0;)
        n += (size_t)got;
    output[n] = '\0';
    close(fds[0]);
    return status;
}

static int done(struct cmd *cmd)
{
    (void)cmd;
    return CMD_DONE;
}

static int refused(struct cmd *cmd)
{
    (void)cmd;
    return cmd_refuse("no");
}

static int crash(struct cmd *cmd)
{
    (void)cmd;
    guard_at(NULL, "the reports");
    signal(SIGSEGV, SIG_DFL); /* a sanitizer's output would say more */
    raise(SIGSEGV);
    return CMD_DONE;
}

/* as the C library ends a process with a corrupted heap */
static int crash_with_words(struct cmd *cmd)
{
    (void)cmd;
    guard_at(NULL, "the pages");
    signal(SIGABRT, SIG_DFL);
    if (write(STDERR_FILENO, "double free or corruption\n", 26) < 0)
        return CMD_REFUSED;
    abort();
}

static int be_killed(struct cmd *cmd)
{
    (void)cmd;
    raise(SIGKILL);
    return CMD_DONE;
}

START_TEST(finished_work_keeps_its_status)
{
    ck_assert_int_eq(run(done), CMD_DONE);
    ck_assert_str_eq(output, "");
    ck_assert_int_eq(run(refused), CMD_REFUSED);
    ck_assert_str_eq(output, "assay: no\n");
    ck_assert_int_eq(tidied, 0);
}
END_TEST

START_TEST(a_crash_is_reported_with_its_place_and_advice)
{
    ck_assert_int_eq(run(crash), CMD_REFUSED);
    ck_assert_str_eq(output, "assay: no backup was made: /data is damaged. Reading it ended in a "
                             "crash (SIGSEGV) at the reports. Do this next\n");
    ck_assert_int_eq(tidied, 1);
}
END_TEST

START_TEST(the_librarys_crash_output_is_suppressed)
{
    if (SANITIZED)
        return; /* a sanitizer's report must be visible */
    ck_assert_int_eq(run(crash_with_words), CMD_REFUSED);
    ck_assert_str_eq(output, "assay: no backup was made: /data is damaged. Reading it ended in a "
                             "crash (SIGABRT) at the pages. Do this next\n");
}
END_TEST

START_TEST(a_kill_is_not_reported_as_damage)
{
    ck_assert_int_eq(run(be_killed), CMD_REFUSED);
    ck_assert_msg(
        strstr(output, "signal 9 (Killed) ended the process at the opening of the store") &&
            !strstr(output, "damaged"),
        "%s", output);
    ck_assert_int_eq(tidied, 1);
}
END_TEST

static void on_term(int number)
{
    (void)number;
    *shared = 2;
}

static int wait_for_stop(struct cmd *cmd)
{
    (void)cmd;
    sigaction(SIGTERM, &(struct sigaction){.sa_handler = on_term}, NULL);
    *shared = 1;
    for (int i = 0; i < 1000 && *shared == 1; i++)
        poll(NULL, 0, 10);
    return *shared == 2 ? CMD_DONE : CMD_USAGE;
}

/* TERM to the command only, as a service manager sends it */
START_TEST(a_stop_signal_reaches_the_work)
{
    shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    int status;
    pid_t command = fork();
    if (command == 0)
        _exit(run(wait_for_stop));
    for (int i = 0; i < 1000 && *shared == 0; i++)
        poll(NULL, 0, 10);
    ck_assert_int_eq(kill(command, SIGTERM), 0);
    ck_assert_int_eq(waitpid(command, &status, 0), command);
    ck_assert_msg(WIFEXITED(status) && WEXITSTATUS(status) == CMD_DONE, "%x", (unsigned)status);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("cmd_guard");
    TCase *tcase = tcase_create("guard");
    tcase_add_test(tcase, finished_work_keeps_its_status);
    tcase_add_test(tcase, a_crash_is_reported_with_its_place_and_advice);
    tcase_add_test(tcase, the_librarys_crash_output_is_suppressed);
    tcase_add_test(tcase, a_kill_is_not_reported_as_damage);
    tcase_add_test(tcase, a_stop_signal_reaches_the_work);
    tcase_set_timeout(tcase, 60);
    suite_add_tcase(suite, tcase);
    return suite_run(suite);
}
