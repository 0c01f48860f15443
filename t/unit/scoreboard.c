/* The scoreboard in shared memory. */
#include "core/shm/scoreboard.h"
#include "t/kit/suite.h"

#include <check.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static char dir[64], path[128];
static struct scoreboard *sb;

static void setup(void)
{
    strcpy(dir, "/tmp/assay-scoreboard-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(dir));
    snprintf(path, sizeof(path), "%s/scoreboard", dir);
    sb = scoreboard_create(path);
    ck_assert_ptr_nonnull(sb);
}

static void teardown(void)
{
    scoreboard_close(sb);
    unlink(path);
    rmdir(dir);
}

/* a full file system takes no page from processes that write to it */
START_TEST(the_file_has_its_full_size_from_the_start)
{
    struct stat st;
    ck_assert_int_eq(stat(path, &st), 0);
    ck_assert_int_ge(st.st_blocks * 512, st.st_size);
}
END_TEST

START_TEST(slots_are_claimed_once_and_released)
{
    struct score *first = scoreboard_claim(sb, ROLE_WORKER, 0, 0, 1);
    struct score *second = scoreboard_claim(sb, ROLE_WORKER, 1, 0, 1);
    ck_assert_ptr_ne(first, second);
    scoreboard_release(sb, first);
    ck_assert_ptr_eq(scoreboard_claim(sb, ROLE_WRITER, 0, 0, 1), first);
}
END_TEST

START_TEST(a_full_scoreboard_gives_no_slot)
{
    for (int i = 0; i < SCOREBOARD_SLOTS; i++)
        ck_assert_ptr_nonnull(scoreboard_claim(sb, ROLE_WORKER, 0, 0, 1));
    ck_assert_ptr_null(scoreboard_claim(sb, ROLE_WORKER, 0, 0, 1));
}
END_TEST

START_TEST(role_is_known_by_pid)
{
    struct score *s = scoreboard_claim(sb, ROLE_WORKER, 0, 0, 1);
    score_set(s->pid, 4711);
    ck_assert_int_eq(scoreboard_role_of(sb, 4711), ROLE_WORKER);
    ck_assert_int_eq(scoreboard_role_of(sb, 4712), ROLE_NONE);
}
END_TEST

START_TEST(an_auditor_cannot_change_its_role)
{
    struct score *s = scoreboard_claim(sb, ROLE_AUDITOR, 0, 0, 1);
    score_set(sb->auditor_pid[s - sb->auditor_slot], 4711);
    score_set(s->role, ROLE_WORKER);
    score_set(s->pid, 1);
    ck_assert_int_eq(scoreboard_role_of(sb, 4711), ROLE_AUDITOR);
}
END_TEST

START_TEST(the_auditors_mapping_has_only_auditor_slots)
{
    struct score *s = scoreboard_claim(sb, ROLE_AUDITOR, 0, 0, 1);
    pid_t child = fork();
    if (child == 0) {
        scoreboard_unmap_private(sb);
        score_set(s->requests, 5);
        /* the page of the worker slots is unmapped: the kernel cannot read from it either */
        int null = open("/dev/null", O_WRONLY);
        int pipes[2];
        _exit(null >= 0 && pipe(pipes) == 0 && write(pipes[1], &sb->slot[0], 8) < 0 ? 0 : 1);
    }
    int status;
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    ck_assert_uint_eq(score_get(s->requests), 5);
}
END_TEST

START_TEST(a_scoreboard_of_another_version_is_not_opened)
{
    const struct scoreboard *same = scoreboard_open(path);
    ck_assert_ptr_nonnull(same);
    scoreboard_close(same);
    score_set(sb->version, SCOREBOARD_VERSION + 1);
    ck_assert_ptr_null(scoreboard_open(path));
    ck_assert_ptr_null(scoreboard_open("/nonexistent/scoreboard"));
}
END_TEST

int main(void)
{
    Suite *s = suite_create("scoreboard");
    TCase *t = tcase_create("scoreboard");
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, the_file_has_its_full_size_from_the_start);
    tcase_add_test(t, slots_are_claimed_once_and_released);
    tcase_add_test(t, a_full_scoreboard_gives_no_slot);
    tcase_add_test(t, role_is_known_by_pid);
    tcase_add_test(t, an_auditor_cannot_change_its_role);
    tcase_add_test(t, the_auditors_mapping_has_only_auditor_slots);
    tcase_add_test(t, a_scoreboard_of_another_version_is_not_opened);
    suite_add_tcase(s, t);
    return suite_run(s);
}
