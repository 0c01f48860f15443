/* The master's child slots, with made-up children. */
#include "core/master/children.h"

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
static struct child child[3];
static struct child_slot *slot;
static struct generation generation;
static struct generations generations = {&generation};
static struct children c;

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

/* A worker of generation 0 serves, and one of generation 1 replaces it. */
static void setup(void)
{
    slot = calloc(1, sizeof(*slot));
    ck_assert_ptr_nonnull(slot);
    for (int i = OLD; i <= NEXT; i++) {
        scores[i] = (struct score){0};
        child[i] = (struct child){.pid = i == NEXT ? 0 : sleeper(),
                                  .score = &scores[i],
                                  .process = {.generation = (unsigned)i}};
        score_set(scores[i].phase, i == OLD ? PHASE_READY : PHASE_STARTING);
    }
    *slot = (struct child_slot){
        .role = ROLE_WORKER, .child = &child[YOUNG], .predecessor = &child[OLD]};
    generation = (struct generation){.number = YOUNG};
    c = (struct children){.slots = slot, .slots_count = 1, .generations = &generations};
}

static void teardown(void)
{
    for (int i = OLD; i <= YOUNG; i++) {
        kill(child[i].pid, SIGKILL);
        waitpid(child[i].pid, NULL, 0);
    }
    free(slot);
}

static void expect_drained(int which)
{
    int status;
    ck_assert(child[which].draining);
    ck_assert_int_eq(waitpid(child[which].pid, &status, 0), child[which].pid);
    ck_assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGQUIT);
    child[which].pid = sleeper(); /* for the end of the test */
}

START_TEST(an_old_worker_stops_when_its_successor_serves)
{
    ck_assert(children_in_transition(&c));
    children_retire(&c);
    ck_assert(!child[OLD].draining);
    score_set(scores[YOUNG].phase, PHASE_READY);
    children_retire(&c);
    expect_drained(OLD);
    ck_assert_ptr_null(slot->predecessor);
    ck_assert(!children_in_transition(&c));
}
END_TEST

/*
 * It starts serving after the master has checked which workers to stop, and before it checks
 * whether a reload can start.
 */
START_TEST(no_reload_starts_before_an_old_worker_is_stopped)
{
    children_retire(&c);
    score_set(scores[YOUNG].phase, PHASE_READY);
    ck_assert(children_in_transition(&c));
    children_retire(&c);
    expect_drained(OLD);
    ck_assert(!children_in_transition(&c));
    generation.number = NEXT;
    children_replace(&c);
    ck_assert(slot->predecessor == &child[YOUNG] && slot->child == NULL);
}
END_TEST

/* At the server's start, or in place of a crashed worker. */
START_TEST(no_reload_starts_while_a_first_worker_is_starting)
{
    slot->predecessor = NULL;
    ck_assert(children_in_transition(&c));
    score_set(scores[YOUNG].phase, PHASE_READY);
    ck_assert(!children_in_transition(&c));
}
END_TEST

/* The previous worker continues, and a corrected configuration can be loaded. */
START_TEST(a_reload_starts_while_a_failed_child_waits_to_restart)
{
    slot->child = NULL;
    ck_assert(!children_in_transition(&c));
    generation.number = NEXT;
    children_replace(&c);
    ck_assert(slot->predecessor == &child[OLD]);
    slot->child = &child[NEXT];
    ck_assert(children_in_transition(&c));
    score_set(scores[NEXT].phase, PHASE_READY);
    children_retire(&c);
    expect_drained(OLD);
    ck_assert(!children_in_transition(&c));
}
END_TEST

/* A slow disk keeps it in that state nearly all the time. */
START_TEST(a_reload_starts_while_the_writer_waits_for_the_disk)
{
    *slot = (struct child_slot){.role = ROLE_WRITER, .child = &child[YOUNG]};
    child[YOUNG].process.role = ROLE_WRITER;
    ck_assert(children_in_transition(&c) && !children_ready(&c, ROLE_WRITER));
    score_set(scores[YOUNG].phase, PHASE_SYNCING);
    ck_assert(!children_in_transition(&c) && children_ready(&c, ROLE_WRITER));
    child[YOUNG].process.role = ROLE_WORKER;
    ck_assert(children_in_transition(&c));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("children");
    TCase *tc = tcase_create("a worker's slot");
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, an_old_worker_stops_when_its_successor_serves);
    tcase_add_test(tc, no_reload_starts_before_an_old_worker_is_stopped);
    tcase_add_test(tc, no_reload_starts_while_a_first_worker_is_starting);
    tcase_add_test(tc, a_reload_starts_while_a_failed_child_waits_to_restart);
    tcase_add_test(tc, a_reload_starts_while_the_writer_waits_for_the_disk);
    suite_add_tcase(suite, tc);
    return suite_run(suite);
}
