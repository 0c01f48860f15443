/* The job queue of a writer that leads a cluster: auditors of other nodes come and go. */
#include "core/writer/job_queue.h"
#include "t/kit/suite.h"

#include <check.h>
#include <stdio.h>

enum { OWN = 2, MOST = 40, CAPACITY = 32, SHARE = 24 }; /* the share of one workspace */

static struct job_queue *q;

static void setup(void)
{
    q = job_queue_new(OWN, CAPACITY, MOST);
    for (unsigned i = 0; i < OWN; i++)
        job_queue_auditor_connected(q, i);
}

static void lose(int index)
{
    job_queue_auditor_lost(q, (unsigned)index, false);
    job_queue_auditor_left(q, (unsigned)index);
}

static void teardown(void)
{
    job_queue_free(q);
}

static void add_many(uint64_t workspace, unsigned count)
{
    static uint64_t report = 1000;
    char url[64];
    for (unsigned i = 0; i < count; i++, report++) {
        snprintf(url, sizeof(url), "http://many%llu/", (unsigned long long)report);
        ck_assert(job_queue_add(q, workspace, report, 1, str_of(url)));
    }
}

static unsigned go_out(void)
{
    unsigned n = 0;
    while (job_queue_take(q) != NULL)
        n++;
    return n;
}

/* how many of the running jobs each auditor has */
static void count_at(void *arg, struct grading_job *job)
{
    ((unsigned *)arg)[job->auditor]++;
}

START_TEST(auditors_of_other_nodes_get_indexes_of_their_own)
{
    for (int i = OWN; i < MOST; i++)
        ck_assert_int_eq(job_queue_auditor_joined(q, CAPACITY), i);
    ck_assert_int_eq(job_queue_auditor_joined(q, CAPACITY), -1);
    lose(OWN + 7);
    lose(OWN + 3);
    ck_assert_int_eq(job_queue_auditor_joined(q, CAPACITY), OWN + 3);
    ck_assert_int_eq(job_queue_auditor_joined(q, CAPACITY), OWN + 7);
    ck_assert_int_eq(job_queue_auditor_joined(q, CAPACITY), -1);
}
END_TEST

START_TEST(an_auditor_that_drains_keeps_its_index_until_it_leaves)
{
    ck_assert_int_eq(job_queue_auditor_joined(q, CAPACITY), OWN);
    job_queue_auditor_lost(q, OWN, false);
    ck_assert_int_eq(job_queue_auditor_joined(q, CAPACITY), OWN + 1);
    job_queue_auditor_left(q, OWN);
    ck_assert_int_eq(job_queue_auditor_joined(q, CAPACITY), OWN);
}
END_TEST

START_TEST(jobs_of_an_auditor_that_left_run_at_others)
{
    unsigned at[MOST] = {0}, after[MOST] = {0};
    for (int i = 0; i < 4; i++)
        job_queue_auditor_joined(q, CAPACITY);
    add_many(1, 60);
    ck_assert_uint_eq(go_out(), 60);
    job_queue_each_running(q, count_at, at);
    ck_assert_uint_gt(at[OWN + 1], 0);
    lose(OWN + 1);
    ck_assert_uint_eq(go_out(), at[OWN + 1]);
    job_queue_each_running(q, count_at, after);
    ck_assert_uint_eq(after[OWN + 1], 0);
    ck_assert_uint_eq(job_queue_size(q), 60);
}
END_TEST

START_TEST(a_smaller_auditor_gets_fewer_jobs)
{
    unsigned at[MOST] = {0};
    int small = job_queue_auditor_joined(q, 4), same = job_queue_auditor_joined(q, 0);
    add_many(1, 200);
    go_out();
    job_queue_each_running(q, count_at, at);
    ck_assert_uint_eq(at[small], 3); /* three quarters */
    ck_assert_uint_gt(at[same], 3);
    ck_assert_uint_le(at[same], SHARE);
}
END_TEST

/* whichever auditors there are when they are added, and while they run */
START_TEST(a_host_has_two_running_jobs_over_all_auditors)
{
    for (uint64_t id = 1; id <= 20; id++)
        ck_assert(job_queue_add(q, id, id, 1, STR("http://same.example/")));
    ck_assert_uint_eq(go_out(), 2);
    for (int i = OWN; i < MOST; i++) {
        job_queue_auditor_joined(q, CAPACITY);
        ck_assert_uint_eq(go_out(), 0);
    }
    struct grading_job *job = NULL;
    for (uint64_t id = 1; job == NULL; id++) {
        struct grading_job *one = job_queue_find(q, id);
        job = one->auditor >= 0 ? one : NULL;
    }
    job_queue_remove(q, job);
    ck_assert_uint_eq(go_out(), 1);
}
END_TEST

START_TEST(shares_hold_at_each_auditor)
{
    for (int i = 0; i < 4; i++)
        job_queue_auditor_joined(q, CAPACITY);
    unsigned at[MOST] = {0};
    add_many(1, 2000);
    go_out();
    job_queue_each_running(q, count_at, at);
    for (int i = 0; i < OWN + 4; i++)
        ck_assert_msg(at[i] > 0 && at[i] <= SHARE, "auditor %d has %u jobs", i, at[i]);
    add_many(2, 50);
    ck_assert_uint_ge(go_out(), OWN + 4);
}
END_TEST

/* jobs that must run alone move with their hosts, and others wait for them there */
START_TEST(a_job_alone_is_not_forgotten_when_auditors_come_and_go)
{
    int remote = job_queue_auditor_joined(q, CAPACITY);
    add_many(1, 30);
    ck_assert_uint_eq(go_out(), 30);
    unsigned at[MOST] = {0};
    job_queue_each_running(q, count_at, at);
    ck_assert_uint_gt(at[remote], 1);
    ck_assert_ptr_null(job_queue_auditor_lost(q, (unsigned)remote, true));
    job_queue_auditor_left(q, (unsigned)remote);
    ck_assert_uint_eq(go_out(), 0); /* the own auditors have other jobs */
    ck_assert_int_eq(job_queue_auditor_joined(q, CAPACITY), remote);
    ck_assert_uint_eq(go_out(), 1);
    ck_assert_uint_gt(job_queue_size(q), 1);
    struct grading_job *guilty = job_queue_auditor_lost(q, (unsigned)remote, true);
    ck_assert_ptr_nonnull(guilty);
    ck_assert(guilty->alone);
    job_queue_remove(q, guilty);
    job_queue_auditor_left(q, (unsigned)remote);
    for (unsigned i = 0; i < OWN; i++)
        job_queue_auditor_lost(q, i, false);
    unsigned left = (unsigned)job_queue_size(q), ran = 0;
    for (unsigned i = 0; i < OWN; i++)
        job_queue_auditor_connected(q, i);
    for (struct grading_job *job; (job = job_queue_take(q)) != NULL; ran++)
        if (job->alone || ran > left)
            job_queue_remove(q, job);
    ck_assert_uint_eq(ran, left);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("job_queue_nodes");
    TCase *t = tcase_create("nodes");
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, auditors_of_other_nodes_get_indexes_of_their_own);
    tcase_add_test(t, an_auditor_that_drains_keeps_its_index_until_it_leaves);
    tcase_add_test(t, jobs_of_an_auditor_that_left_run_at_others);
    tcase_add_test(t, a_smaller_auditor_gets_fewer_jobs);
    tcase_add_test(t, a_host_has_two_running_jobs_over_all_auditors);
    tcase_add_test(t, shares_hold_at_each_auditor);
    tcase_add_test(t, a_job_alone_is_not_forgotten_when_auditors_come_and_go);
    suite_add_tcase(s, t);
    return suite_run(s);
}
