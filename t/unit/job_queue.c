/* The job queue of the writer: order, fairness, hosts and auditors. */
#include "core/writer/job_queue.h"
#include "t/kit/suite.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>

enum { CAPACITY = 32, SHARE = 24 }; /* the share of one workspace */

static struct job_queue *q;

static void add(uint64_t workspace, uint64_t report, const char *url)
{
    ck_assert(job_queue_add(q, workspace, report, 1, str_of(url)));
}

/* start every startable job: their number, their reports in ${out} */
static size_t drain(uint64_t *out, size_t max)
{
    size_t n = 0;
    struct grading_job *job;
    while (n < max && (job = job_queue_take(q)) != NULL)
        out[n++] = job->report;
    return n;
}

static void setup_one(void)
{
    q = job_queue_new(1, CAPACITY, 1);
    job_queue_auditor_connected(q, 0);
}

static void teardown(void)
{
    job_queue_free(q);
}

START_TEST(workspaces_take_turns)
{
    uint64_t got[6];
    char url[64];
    for (uint64_t i = 1; i <= 4; i++) {
        snprintf(url, sizeof(url), "http://host%llu/", (unsigned long long)i);
        add(1, i, url);
    }
    add(2, 10, "http://other1/");
    add(3, 20, "http://other2/");
    ck_assert_uint_eq(drain(got, 6), 6);
    size_t second = 0, third = 0;
    for (size_t i = 0; i < 6; i++) {
        second = got[i] == 10 ? i : second;
        third = got[i] == 20 ? i : third;
    }
    ck_assert_msg(second < 3 && third < 3, "the small workspaces had turns %zu and %zu", second,
                  third);
}
END_TEST

START_TEST(a_job_with_a_waiting_caller_goes_first)
{
    uint64_t got[1];
    add(1, 1, "http://a/");
    add(1, 2, "http://b/");
    add(2, 3, "http://c/");
    job_queue_prioritize(q, 2);
    ck_assert_uint_eq(drain(got, 1), 1);
    ck_assert_uint_eq(got[0], 2);
}
END_TEST

START_TEST(a_host_has_at_most_two_running_jobs)
{
    uint64_t got[8];
    add(1, 1, "http://same.example/a");
    add(1, 2, "http://same.example/b");
    add(2, 3, "http://same.example:80/c");
    add(1, 4, "http://same.example/d");
    add(1, 5, "http://free.example/");
    add(2, 6, "http://same.example/e?x");
    size_t n = drain(got, 8), same = 0, spare = 0;
    for (size_t i = 0; i < n; i++) {
        same += got[i] != 5;
        spare += got[i] == 5;
    }
    ck_assert_uint_eq(same, 2);
    ck_assert_uint_eq(spare, 1);
    job_queue_remove(q, job_queue_find(q, got[0] == 5 ? got[1] : got[0]));
    ck_assert_uint_ge(drain(got, 8), 1);
}
END_TEST

/*
 * the per-host slots (shm/host_slots.h) would make a third one wait within the auditor, where it
 * takes the slot of another job
 */
START_TEST(ports_schemes_and_paths_do_not_change_the_host)
{
    static const char *const urls[] = {"http://same.example/", "https://same.example:8443/x",
                                       "http://same.example:80/c", "https://same.example?q"};
    static const char *const v6[] = {"http://[2606:2800::1]/", "https://[2606:2800::1]:8443/",
                                     "http://[2606:2800::1]?q"};
    uint64_t got[8];
    for (size_t i = 0; i < 4; i++)
        add(1, i + 1, urls[i]);
    ck_assert_uint_eq(drain(got, 8), 2);
    for (size_t i = 0; i < 3; i++)
        add(1, i + 11, v6[i]);
    ck_assert_uint_eq(drain(got, 8), 2);
}
END_TEST

START_TEST(host_always_goes_to_the_same_auditor)
{
    job_queue_free(q);
    q = job_queue_new(4, 32, 4);
    for (unsigned i = 0; i < 4; i++)
        job_queue_auditor_connected(q, i);
    for (int round = 0; round < 3; round++) {
        add(1, 1, "https://shop.example/a");
        add(2, 2, "https://shop.example/b");
        struct grading_job *a = job_queue_take(q), *b = job_queue_take(q);
        ck_assert_ptr_nonnull(a);
        ck_assert_ptr_nonnull(b);
        ck_assert_int_eq(a->auditor, b->auditor);
        job_queue_remove(q, a);
        job_queue_remove(q, b);
    }
}
END_TEST

START_TEST(no_job_runs_without_an_auditor)
{
    job_queue_auditor_lost(q, 0, false);
    add(1, 1, "http://a/");
    ck_assert_ptr_null(job_queue_take(q));
    job_queue_auditor_connected(q, 0);
    ck_assert_ptr_nonnull(job_queue_take(q));
}
END_TEST

START_TEST(jobs_of_a_dead_auditor_run_again_one_at_a_time)
{
    uint64_t got[4];
    add(1, 1, "http://a/");
    add(1, 2, "http://b/");
    ck_assert_uint_eq(drain(got, 4), 2);
    ck_assert_ptr_null(job_queue_auditor_lost(q, 0, true));
    add(1, 3, "http://c/");
    job_queue_auditor_connected(q, 0);
    ck_assert_uint_eq(drain(got, 4), 1);
    ck_assert_msg(got[0] != 3, "a new job ran beside a suspected one");
    job_queue_remove(q, job_queue_find(q, got[0]));
    uint64_t first = got[0];
    ck_assert_uint_eq(drain(got, 4), 1);
    ck_assert_uint_eq(got[0], 3 - first);
    job_queue_remove(q, job_queue_find(q, got[0]));
    ck_assert_uint_eq(drain(got, 4), 1);
    ck_assert_uint_eq(got[0], 3);
}
END_TEST

START_TEST(only_the_suspected_job_runs_alone)
{
    uint64_t got[4];
    add(1, 1, "http://a/");
    add(1, 2, "http://b/");
    add(2, 3, "http://c/");
    ck_assert_uint_eq(drain(got, 4), 3);
    job_queue_suspect(q, 1, 1); /* another auditor's message is ignored */
    job_queue_suspect(q, 0, 2);
    ck_assert_ptr_null(job_queue_auditor_lost(q, 0, true));
    job_queue_auditor_connected(q, 0);
    ck_assert_uint_eq(drain(got, 4), 1);
    ck_assert_uint_eq(got[0], 2);
    job_queue_remove(q, job_queue_find(q, 2));
    ck_assert_uint_eq(drain(got, 4), 2);
    ck_assert(!job_queue_find(q, 1)->alone && !job_queue_find(q, 3)->alone);
}
END_TEST

START_TEST(a_job_is_excused_once)
{
    uint64_t got[4];
    for (uint64_t round = 0; round < 2; round++) {
        add(1, 1, "http://a/");
        add(1, 10 + round, "http://b/");
        ck_assert_uint_eq(drain(got, 4), 2);
        job_queue_suspect(q, 0, 10 + round);
        ck_assert_ptr_null(job_queue_auditor_lost(q, 0, true));
        job_queue_auditor_connected(q, 0);
        ck_assert(job_queue_find(q, 10 + round)->alone);
        ck_assert(job_queue_find(q, 1)->alone == (round == 1));
        job_queue_remove(q, job_queue_find(q, 10 + round));
    }
    ck_assert_uint_eq(drain(got, 4), 1);
    struct grading_job *guilty = job_queue_auditor_lost(q, 0, true);
    ck_assert_ptr_nonnull(guilty);
    ck_assert_uint_eq(guilty->report, 1);
}
END_TEST

START_TEST(suspected_jobs_are_found_behind_any_backlog)
{
    uint64_t got[200];
    char url[64];
    for (uint64_t i = 1; i <= 200; i++) {
        snprintf(url, sizeof(url), "http://backlog%llu/", (unsigned long long)i);
        add(1, i, url);
    }
    ck_assert_uint_eq(drain(got, 200), SHARE);
    ck_assert_ptr_null(job_queue_auditor_lost(q, 0, true));
    job_queue_auditor_connected(q, 0);
    for (int i = 0; i < SHARE; i++) {
        struct grading_job *job = job_queue_take(q);
        ck_assert_ptr_nonnull(job);
        ck_assert(job->alone);
        ck_assert_ptr_null(job_queue_take(q));
        job_queue_remove(q, job);
    }
    ck_assert_uint_eq(drain(got, 200), SHARE);
}
END_TEST

START_TEST(only_a_crash_while_alone_is_blamed_on_the_job)
{
    uint64_t got[4];
    add(1, 1, "http://a/");
    add(1, 2, "http://b/");
    ck_assert_uint_eq(drain(got, 4), 2);
    ck_assert_ptr_null(job_queue_auditor_lost(q, 0, true));
    job_queue_auditor_connected(q, 0);
    ck_assert_uint_eq(drain(got, 4), 1);
    struct grading_job *guilty = job_queue_auditor_lost(q, 0, true);
    ck_assert_ptr_nonnull(guilty);
    ck_assert_uint_eq(guilty->report, got[0]);
}
END_TEST

START_TEST(a_draining_auditor_is_not_blamed)
{
    struct grading_job *job;
    add(1, 1, "http://a/");
    add(1, 2, "http://b/");
    ck_assert_ptr_nonnull(job_queue_take(q));
    job = job_queue_take(q);
    job_queue_return(q, job);
    ck_assert_ptr_null(job_queue_auditor_lost(q, 0, false));
    job_queue_auditor_connected(q, 0);
    uint64_t got[4];
    ck_assert_uint_eq(drain(got, 4), 2);
}
END_TEST

START_TEST(a_newer_attempt_replaces_an_older_one_in_any_state)
{
    add(1, 1, "http://a/");
    ck_assert_ptr_nonnull(job_queue_take(q));
    ck_assert(job_queue_add(q, 1, 1, 2, STR("http://a/")));
    ck_assert_uint_eq(job_queue_find(q, 1)->attempt, 2);
    ck_assert(job_queue_add(q, 1, 1, 1, STR("http://a/")));
    ck_assert_uint_eq(job_queue_find(q, 1)->attempt, 2);
    ck_assert_uint_eq(job_queue_size(q), 2); /* the older one until its auditor returns it */
    job_queue_return(q, job_queue_find_running(q, 0, 1, 1));
    ck_assert_uint_eq(job_queue_size(q), 1);
}
END_TEST

/* ---- shares ---- */

static void add_many(uint64_t workspace, unsigned count)
{
    static uint64_t report = 100000;
    char url[64];
    for (unsigned i = 0; i < count; i++, report++) {
        snprintf(url, sizeof(url), "http://many%llu/", (unsigned long long)report);
        add(workspace, report, url);
    }
}

static unsigned go_out(void)
{
    unsigned n = 0;
    while (job_queue_take(q) != NULL)
        n++;
    return n;
}

/* the auditor's capacity, the share of one workspace */
static const unsigned shares[][2] = {{1, 1}, {2, 1},   {3, 2},    {4, 3},
                                     {8, 6}, {32, 24}, {100, 75}, {1024, 768}};

START_TEST(one_workspace_never_fills_an_auditor)
{
    unsigned capacity = shares[_i][0];
    job_queue_free(q);
    q = job_queue_new(1, capacity, 1);
    job_queue_auditor_connected(q, 0);
    add_many(1, 2 * capacity);
    ck_assert_uint_eq(go_out(), shares[_i][1]);
    add_many(2, 1);
    ck_assert_uint_eq(go_out(), capacity > 1);
}
END_TEST

START_TEST(a_new_workspace_gets_a_share_beside_busy_ones)
{
    for (uint64_t workspace = 1; workspace <= 4; workspace++) {
        add_many(workspace, 1);
        ck_assert_msg(job_queue_take(q) != NULL, "workspace %llu got no slot",
                      (unsigned long long)workspace);
        add_many(workspace, 2 * CAPACITY);
        go_out();
    }
}
END_TEST

START_TEST(a_workspace_with_a_waiting_caller_takes_only_its_share)
{
    for (uint64_t i = 1; i <= 2 * CAPACITY; i++) {
        char url[64];
        snprintf(url, sizeof(url), "http://prioritized%llu/", (unsigned long long)i);
        add(1, i, url);
        job_queue_prioritize(q, i);
    }
    add(2, 1000, "http://patient/");
    uint64_t got[2 * CAPACITY];
    ck_assert_uint_eq(drain(got, 2 * CAPACITY), SHARE + 1);
    ck_assert_uint_eq(got[SHARE], 1000);
}
END_TEST

/* ---- withdrawn ---- */

START_TEST(a_withdrawn_queued_job_is_removed)
{
    job_queue_auditor_lost(q, 0, false);
    add(1, 1, "http://a/");
    ck_assert(!job_queue_withdraw(q, job_queue_find(q, 1)));
    ck_assert_ptr_null(job_queue_find(q, 1));
    ck_assert_uint_eq(job_queue_withdrawn(q, 1), 0);
    ck_assert_uint_eq(job_queue_size(q), 0);
}
END_TEST

START_TEST(a_withdrawn_running_job_counts_until_returned)
{
    add(1, 1, "http://same/a");
    add(1, 2, "http://same/b");
    add(1, 3, "http://same/c");
    ck_assert_uint_eq(go_out(), 2);
    for (uint64_t i = 1; i <= 2; i++) {
        ck_assert(job_queue_withdraw(q, job_queue_find(q, i)));
        ck_assert_ptr_null(job_queue_find(q, i));
    }
    ck_assert_uint_eq(job_queue_withdrawn(q, 1), 2);
    ck_assert_uint_eq(job_queue_size(q), 3);
    ck_assert_uint_eq(go_out(), 0); /* its host still has two */
    ck_assert_ptr_null(job_queue_find_running(q, 0, 1, 2));
    job_queue_return(q, job_queue_find_running(q, 0, 1, 1));
    ck_assert_ptr_null(job_queue_find_running(q, 0, 1, 1));
    ck_assert_uint_eq(job_queue_withdrawn(q, 1), 1);
    ck_assert_uint_eq(job_queue_size(q), 2);
    ck_assert_uint_eq(go_out(), 1);
}
END_TEST

/* created and deleted at once, repeatedly: never more run than a workspace's share */
START_TEST(pairs_of_create_and_delete_fill_no_auditor)
{
    unsigned out = 0;
    for (unsigned i = 0; i < 4000; i++) {
        struct grading_job *job;
        add_many(1, 1);
        if ((job = job_queue_take(q)) == NULL)
            continue;
        out++;
        job_queue_withdraw(q, job);
    }
    ck_assert_uint_eq(out, SHARE);
    add_many(2, 1);
    ck_assert_uint_eq(go_out(), 1);
}
END_TEST

static void count_job(void *arg, struct grading_job *job)
{
    unsigned *count = arg;
    *count += 1;
    job_queue_withdraw(q, job);
}

START_TEST(a_dead_auditor_leaves_no_withdrawn_job)
{
    unsigned out = 0;
    add_many(1, 8);
    add(2, 1, "http://other/");
    ck_assert_uint_eq(go_out(), 9);
    ck_assert(job_queue_withdraw(q, job_queue_find(q, 1)));
    job_queue_each_running(q, count_job, &out);
    ck_assert_uint_eq(out, 8);
    ck_assert_ptr_null(job_queue_auditor_lost(q, 0, true));
    ck_assert_uint_eq(job_queue_size(q), 0);
    ck_assert_uint_eq(job_queue_withdrawn(q, 1), 0);
    job_queue_auditor_connected(q, 0);
    add_many(1, CAPACITY);
    ck_assert_uint_eq(go_out(), SHARE);
}
END_TEST

/*
 * when no job can run, none is searched until that may have changed: each of the events that change
 * it
 */
START_TEST(a_job_is_found_after_a_time_when_none_could_run)
{
    for (uint64_t id = 1; id <= 70; id++)
        add(1, id, "http://same.example/");
    add(1, 100, "http://behind.example/");
    ck_assert_uint_eq(drain((uint64_t[8]){0}, 8), 2);
    ck_assert_ptr_null(job_queue_take(q));
    add(1, 101, "http://same.example/x");
    ck_assert_ptr_null(job_queue_take(q));
    add(2, 102, "http://other.example/"); /* a job is added that can run */
    ck_assert_uint_eq(job_queue_take(q)->report, 102);
    ck_assert_ptr_null(job_queue_take(q));
    job_queue_remove(q, job_queue_find(q, 2)); /* a host has a free slot */
    ck_assert_uint_eq(job_queue_take(q)->report, 3);
    ck_assert_ptr_null(job_queue_take(q));
    for (uint64_t id = 4; id <= 20; id++) /* the jobs before it end */
        job_queue_remove(q, job_queue_find(q, id));
    ck_assert_uint_eq(job_queue_take(q)->report, 100);
    ck_assert_ptr_null(job_queue_take(q));
    job_queue_return(q, job_queue_find(q, 3)); /* a job is returned */
    ck_assert_ptr_nonnull(job_queue_take(q));
    ck_assert_ptr_null(job_queue_take(q));
    job_queue_auditor_lost(q, 0, false);
    ck_assert_ptr_null(job_queue_take(q));
    job_queue_auditor_connected(q, 0);
    ck_assert_ptr_nonnull(job_queue_take(q));
}
END_TEST

START_TEST(a_report_below_the_highest_id_is_found)
{
    add(1, 9, "http://a/");
    add(1, 3, "http://b/");
    add(1, 3, "http://b/");
    add(1, 9, "http://a/");
    ck_assert_uint_eq(job_queue_size(q), 2);
}
END_TEST

START_TEST(random_operations_keep_the_counts)
{
    unsigned seed = 7;
    uint64_t out[64], n_out = 0;
    for (int i = 0; i < 20000; i++) {
        seed = seed * 1103515245u + 12345u;
        unsigned dice = seed >> 16 & 7;
        uint64_t id = (seed >> 8) % 500 + 1;
        char url[64];
        snprintf(url, sizeof(url), "http://h%u/", (seed >> 4) % 40);
        if (dice < 4)
            job_queue_add(q, id % 7 + 1, id, (uint32_t)(i / 1000) + 1, str_of(url));
        else if (dice == 4)
            job_queue_prioritize(q, id);
        else if (dice == 5 && job_queue_find(q, id) != NULL)
            job_queue_withdraw(q, job_queue_find(q, id));
        else if (dice == 7 && i % 50 != 0 &&
                 job_queue_find_running(q, 0, id, (uint32_t)(i / 1000) + 1) != NULL)
            job_queue_return(q, job_queue_find_running(q, 0, id, (uint32_t)(i / 1000) + 1));
        else if (dice == 6)
            n_out += drain(out, 64);
        else if (i % 50 == 0) {
            job_queue_auditor_lost(q, 0, true);
            job_queue_auditor_connected(q, 0);
        }
    }
    ck_assert_uint_gt(n_out, 100);
    size_t left = 0, withdrawn = 0;
    for (uint64_t id = 1; id <= 500; id++)
        left += job_queue_find(q, id) != NULL;
    for (uint64_t workspace = 1; workspace <= 7; workspace++)
        withdrawn += job_queue_withdrawn(q, workspace);
    ck_assert_uint_eq(left + withdrawn, job_queue_size(q));
    /* when everything is withdrawn, nothing runs */
    for (uint64_t id = 1; id <= 500; id++)
        if (job_queue_find(q, id) != NULL)
            job_queue_withdraw(q, job_queue_find(q, id));
    for (uint64_t id = 1; id <= 500; id++)
        for (uint32_t attempt = 1; attempt <= 20; attempt++)
            if (job_queue_find_running(q, 0, id, attempt) != NULL)
                job_queue_return(q, job_queue_find_running(q, 0, id, attempt));
    ck_assert_uint_eq(job_queue_size(q), 0);
    for (uint64_t workspace = 1; workspace <= 7; workspace++)
        ck_assert_uint_eq(job_queue_withdrawn(q, workspace), 0);
    for (uint64_t id = 1; id <= 32; id++) {
        char url[64];
        snprintf(url, sizeof(url), "http://fresh%llu/", (unsigned long long)id);
        add(1, id, url);
    }
    ck_assert_uint_eq(drain(out, 64), SHARE);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("job_queue");
    TCase *t = tcase_create("queue");
    tcase_add_checked_fixture(t, setup_one, teardown);
    tcase_add_test(t, workspaces_take_turns);
    tcase_add_test(t, a_job_with_a_waiting_caller_goes_first);
    tcase_add_test(t, a_host_has_at_most_two_running_jobs);
    tcase_add_test(t, ports_schemes_and_paths_do_not_change_the_host);
    tcase_add_test(t, host_always_goes_to_the_same_auditor);
    tcase_add_test(t, no_job_runs_without_an_auditor);
    tcase_add_test(t, jobs_of_a_dead_auditor_run_again_one_at_a_time);
    tcase_add_test(t, only_the_suspected_job_runs_alone);
    tcase_add_test(t, a_job_is_excused_once);
    tcase_add_test(t, suspected_jobs_are_found_behind_any_backlog);
    tcase_add_test(t, only_a_crash_while_alone_is_blamed_on_the_job);
    tcase_add_test(t, a_draining_auditor_is_not_blamed);
    tcase_add_test(t, a_newer_attempt_replaces_an_older_one_in_any_state);
    tcase_add_test(t, a_job_is_found_after_a_time_when_none_could_run);
    tcase_add_test(t, a_report_below_the_highest_id_is_found);
    tcase_add_loop_test(t, one_workspace_never_fills_an_auditor, 0,
                        (int)(sizeof(shares) / sizeof(*shares)));
    tcase_add_test(t, a_new_workspace_gets_a_share_beside_busy_ones);
    tcase_add_test(t, a_workspace_with_a_waiting_caller_takes_only_its_share);
    tcase_add_test(t, a_withdrawn_queued_job_is_removed);
    tcase_add_test(t, a_withdrawn_running_job_counts_until_returned);
    tcase_add_test(t, pairs_of_create_and_delete_fill_no_auditor);
    tcase_add_test(t, a_dead_auditor_leaves_no_withdrawn_job);
    tcase_add_test(t, random_operations_keep_the_counts);
    suite_add_tcase(s, t);
    return suite_run(s);
}
