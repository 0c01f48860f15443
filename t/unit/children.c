/* The master's table of child processes, with made-up children. */
#include "core/master/master_internal.h"

#include "core/shm/scoreboard.h"
#include "t/kit/suite.h"

#include <check.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

enum { OLD, YOUNG, NEXT };

static struct score scores[3];
static struct child children[3];
static struct child_slot *slot;
static struct generation generation;
static struct master m;

static pid_t sleeper(void)
{
    pid_t pid = fork();
    ck_assert_int_ge(pid, 0);
    if (pid != 0)
        return pid;
    setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
    for (;;)
        pause();
}

/* A worker of generation 0 serves, and one of generation 1 is to follow it. */
static void setup(void)
{
    slot = calloc(1, sizeof(*slot));
    ck_assert_ptr_nonnull(slot);
    for (int i = OLD; i <= NEXT; i++) {
        scores[i] = (struct score){0};
        children[i] = (struct child){.pid = i == NEXT ? 0 : sleeper(),
                                     .score = &scores[i],
                                     .process = {.generation = (unsigned)i}};
        score_set(scores[i].phase, i == OLD ? PHASE_READY : PHASE_STARTING);
    }
    *slot =
        (struct child_slot){.role = ROLE_WORKER, .child = &children[YOUNG], .old = &children[OLD]};
    generation = (struct generation){.number = YOUNG};
    m = (struct master){.child_slots = slot, .child_slots_count = 1, .generation = &generation};
}

static void teardown(void)
{
    for (int i = OLD; i <= YOUNG; i++) {
        kill(children[i].pid, SIGKILL);
        waitpid(children[i].pid, NULL, 0);
    }
    free(slot);
}

static void expect_told(int which)
{
    int status;
    ck_assert(children[which].draining);
    ck_assert_int_eq(waitpid(children[which].pid, &status, 0), children[which].pid);
    ck_assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGQUIT);
    children[which].pid = sleeper(); /* for the end of the test */
}

START_TEST(an_old_worker_goes_when_the_one_that_follows_it_serves)
{
    ck_assert(children_changing(&m));
    children_relieve(&m);
    ck_assert(!children[OLD].draining);
    score_set(scores[YOUNG].phase, PHASE_READY);
    children_relieve(&m);
    expect_told(OLD);
    ck_assert_ptr_null(slot->old);
    ck_assert(!children_changing(&m));
}
END_TEST

/*
 * It comes up after the master has looked who may go, and before it looks whether a reload may
 * begin.
 */
START_TEST(no_reload_begins_before_an_old_worker_was_told_to_go)
{
    children_relieve(&m);
    score_set(scores[YOUNG].phase, PHASE_READY);
    ck_assert(children_changing(&m));
    children_relieve(&m);
    expect_told(OLD);
    ck_assert(!children_changing(&m));
    generation.number = NEXT;
    children_succeed(&m);
    ck_assert(slot->old == &children[YOUNG] && slot->child == NULL);
}
END_TEST

/* At the server's start, or in the place of one that died. */
START_TEST(no_reload_begins_while_a_worker_that_follows_none_is_just_starting)
{
    slot->old = NULL;
    ck_assert(children_changing(&m));
    score_set(scores[YOUNG].phase, PHASE_READY);
    ck_assert(!children_changing(&m));
}
END_TEST

/* The one before it goes on, and a mended configuration gets in. */
START_TEST(a_reload_begins_while_one_that_failed_waits_for_its_next_try)
{
    slot->child = NULL;
    ck_assert(!children_changing(&m));
    generation.number = NEXT;
    children_succeed(&m);
    ck_assert(slot->old == &children[OLD]);
    slot->child = &children[NEXT];
    ck_assert(children_changing(&m));
    score_set(scores[NEXT].phase, PHASE_READY);
    children_relieve(&m);
    expect_told(OLD);
    ck_assert(!children_changing(&m));
}
END_TEST

/* A disk that is slow keeps it at that nearly all the time. */
START_TEST(a_reload_begins_while_the_writer_waits_for_the_disk)
{
    *slot = (struct child_slot){.role = ROLE_WRITER, .child = &children[YOUNG]};
    children[YOUNG].process.role = ROLE_WRITER;
    ck_assert(children_changing(&m) && !children_ready(&m, ROLE_WRITER));
    score_set(scores[YOUNG].phase, PHASE_SYNCING);
    ck_assert(!children_changing(&m) && children_ready(&m, ROLE_WRITER));
    children[YOUNG].process.role = ROLE_WORKER;
    ck_assert(children_changing(&m));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("children");
    TCase *tc = tcase_create("a worker's slot");
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, an_old_worker_goes_when_the_one_that_follows_it_serves);
    tcase_add_test(tc, no_reload_begins_before_an_old_worker_was_told_to_go);
    tcase_add_test(tc, no_reload_begins_while_a_worker_that_follows_none_is_just_starting);
    tcase_add_test(tc, a_reload_begins_while_one_that_failed_waits_for_its_next_try);
    tcase_add_test(tc, a_reload_begins_while_the_writer_waits_for_the_disk);
    suite_add_tcase(suite, tc);
    return suite_run(suite);
}
