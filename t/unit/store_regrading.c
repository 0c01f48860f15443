/* The stages of a grading in the store: results replace results, failures keep them. */
#include "t/kit/store_fixtures.h"

/* ---- generations ---- */

START_TEST(findings_replace_everything_in_one_step)
{
    size_t count;
    uint64_t id = kit_create(&k, w, "https://a.com/", "a.com");
    k.now += 500;
    kit_done(&k, id, 1, 84);
    const struct store_event *e = store_events(k.s, &count);
    ck_assert_uint_eq(count, 1);
    ck_assert_uint_eq(e->kind, EVENT_REPORT_FINISHED);
    ck_assert_uint_eq(e->id, id);
    struct store_report r = report(id);
    ck_assert_int_eq(r.status, REPORT_DONE);
    ck_assert_int_eq(r.score, 84);
    ck_assert_int_eq(r.result, RESULT_GOOD);
    ck_assert_int_eq(r.generated_at, NOW + 500);
    ck_assert_int_eq(r.updated_at, NOW + 500);
    ck_assert_uint_eq(r.version, 2);
    ck_assert_uint_eq(r.issues_high, 1);
    ck_assert_uint_eq(r.issues_passed, 3);
    ck_assert(str_eq(r.results, STR("{\"title\":{}}")));
    ck_assert_uint_eq(kit_jobs(k.s), 0);
    kit_check_clean(k.s);
}
END_TEST

START_TEST(a_regeneration_keeps_the_old_findings_until_the_new_ones_come)
{
    size_t count;
    uint64_t id = kit_create(&k, w, "https://a.com/", "a.com");
    kit_done(&k, id, 1, 84);
    k.now += 1000;
    struct store_change c = kit_update_change(w, id, CHANGE_REGENERATE);
    struct store_answer a = kit_apply(&k, &c);
    ck_status(a.status, STORE_OK);
    ck_assert_uint_eq(a.version, 3);
    const struct store_event *e = store_events(k.s, &count);
    ck_assert_uint_eq(count, 1);
    ck_assert_uint_eq(e->kind, EVENT_JOB_ADDED);
    ck_assert_uint_eq(e->value, 2);
    struct store_report r = report(id);
    ck_assert_int_eq(r.status, REPORT_PENDING);
    ck_assert_int_eq(r.score, 84);
    ck_assert_int_eq(r.generated_at, NOW);
    ck_assert_uint_gt(r.results.n, 0);
    ck_assert_uint_eq(r.attempt, 2);
    c = kit_done_change(id, 1, 10);
    ck_status(kit_status(&k, &c), STORE_STALE);
    c = kit_done_change(id, 2, 20);
    ck_status(kit_status(&k, &c), STORE_OK);
    ck_assert_int_eq(report(id).score, 20);
    ck_status(kit_status(&k, &c), STORE_STALE);
    kit_check_clean(k.s);
}
END_TEST

START_TEST(regenerating_a_pending_report_makes_no_second_job)
{
    size_t count;
    uint64_t id = kit_create(&k, w, "https://a.com/", "a.com");
    struct store_change c = kit_update_change(w, id, CHANGE_REGENERATE);
    struct store_answer a = kit_apply(&k, &c);
    ck_status(a.status, STORE_OK);
    ck_assert_uint_eq(a.version, 1);
    store_events(k.s, &count);
    ck_assert_uint_eq(count, 0);
    ck_assert_uint_eq(report(id).attempt, 1);
    ck_assert_uint_eq(kit_jobs(k.s), 1);
}
END_TEST

START_TEST(a_failure_keeps_the_old_score_and_results_and_the_next_success_clears_the_error)
{
    uint64_t id = kit_create(&k, w, "https://a.com/", "a.com");
    kit_done(&k, id, 1, 84);
    struct store_change again = kit_update_change(w, id, CHANGE_REGENERATE);
    kit_apply(&k, &again);
    struct store_change c = kit_failed_change(id, 2);
    ck_status(kit_status(&k, &c), STORE_OK);
    struct store_report r = report(id);
    ck_assert_int_eq(r.status, REPORT_FAILED);
    ck_assert_int_eq(r.score, 84);
    ck_assert_int_eq(r.generated_at, NOW);
    ck_assert_uint_gt(r.results.n, 0);
    ck_assert(str_eq(r.error_code, STR("dns_failed")));
    ck_assert(str_eq(r.error_message, STR("No such host.")));
    kit_check_clean(k.s);
    kit_apply(&k, &again);
    ck_assert_uint_eq(report(id).error_code.n, 0);
    kit_done(&k, id, 3, 90);
    r = report(id);
    ck_assert_int_eq(r.status, REPORT_DONE);
    ck_assert_uint_eq(r.error_code.n + r.error_message.n, 0);
    kit_check_clean(k.s);
}
END_TEST

START_TEST(a_first_failure_leaves_a_report_without_score_and_results)
{
    uint64_t id = kit_create(&k, w, "https://a.com/", "a.com");
    struct store_change c = kit_failed_change(id, 1);
    ck_status(kit_status(&k, &c), STORE_OK);
    struct store_report r = report(id);
    ck_assert_int_eq(r.score, -1);
    ck_assert_int_eq(r.result, RESULT_NONE);
    ck_assert_uint_eq(r.results.n, 0);
    kit_check_clean(k.s);
}
END_TEST

/* Columns: the error in the findings. */
static const struct store_change bad_findings[] = {
    {.status = REPORT_PENDING},
    {.status = REPORT_DONE, .score = 101, .result = 1, .results = {"{}", 2}},
    {.status = REPORT_DONE, .score = -1, .result = 1, .results = {"{}", 2}},
    {.status = REPORT_DONE, .score = 50, .result = 0, .results = {"{}", 2}},
    {.status = REPORT_DONE, .score = 50, .result = 4, .results = {"{}", 2}},
    {.status = REPORT_DONE, .score = 50, .result = 2},
    {.status = REPORT_FAILED},
    {.status = 3},
};

START_TEST(malformed_findings_are_refused)
{
    struct store_change c = bad_findings[_i];
    c.kind = CHANGE_REPORT_FINISH;
    c.id = kit_create(&k, w, "https://a.com/", "a.com");
    c.attempt = 1;
    ck_status(kit_status(&k, &c), STORE_INVALID);
    ck_assert_int_eq(report(c.id).status, REPORT_PENDING);
}
END_TEST

START_TEST(findings_of_a_missing_report_are_stale)
{
    uint64_t id = kit_create(&k, w, "https://a.com/", "a.com");
    struct store_change c = kit_done_change(id + 1, 1, 50);
    ck_status(kit_status(&k, &c), STORE_STALE);
    c = kit_done_change(id, 2, 50);
    ck_status(kit_status(&k, &c), STORE_STALE);
    change((struct store_change){.kind = CHANGE_REPORT_DELETE, .workspace = w, .id = id});
    c = kit_done_change(id, 1, 50);
    ck_status(kit_status(&k, &c), STORE_STALE);
}
END_TEST

START_TEST(the_second_death_of_an_auditor_fails_the_report)
{
    size_t count;
    uint64_t id = kit_create(&k, w, "https://a.com/", "a.com");
    struct store_change died = {.kind = CHANGE_REPORT_DIED, .id = id, .attempt = 1};
    ck_status(kit_status(&k, &died), STORE_OK);
    store_events(k.s, &count);
    ck_assert_uint_eq(count, 0);
    struct store_job job;
    ck_assert(store_job_get(k.s, id, &job));
    ck_assert_uint_eq(job.deaths, 1);
    ck_assert_int_eq(report(id).status, REPORT_PENDING);
    ck_status(kit_status(&k, &died), STORE_OK);
    const struct store_event *e = store_events(k.s, &count);
    ck_assert_uint_eq(count, 1);
    ck_assert_uint_eq(e->kind, EVENT_REPORT_FINISHED);
    struct store_report r = report(id);
    ck_assert_int_eq(r.status, REPORT_FAILED);
    ck_assert(str_eq(r.error_code, STR("too_complex")));
    ck_assert_uint_gt(r.error_message.n, 0);
    ck_status(kit_status(&k, &died), STORE_STALE);
    struct store_change again = kit_update_change(w, id, CHANGE_REGENERATE);
    ck_status(kit_status(&k, &again), STORE_OK);
    ck_assert(store_job_get(k.s, id, &job));
    ck_assert_uint_eq(job.deaths, 0);
    kit_check_clean(k.s);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("store_regrading");
    TCase *tc = tcase_create("reports");
    tcase_add_checked_fixture(tc, workspace_setup, store_teardown);
    tcase_set_timeout(tc, 30);
    tcase_add_test(tc, findings_replace_everything_in_one_step);
    tcase_add_test(tc, a_regeneration_keeps_the_old_findings_until_the_new_ones_come);
    tcase_add_test(tc, regenerating_a_pending_report_makes_no_second_job);
    tcase_add_test(tc,
                   a_failure_keeps_the_old_score_and_results_and_the_next_success_clears_the_error);
    tcase_add_test(tc, a_first_failure_leaves_a_report_without_score_and_results);
    tcase_add_loop_test(tc, malformed_findings_are_refused, 0,
                        sizeof(bad_findings) / sizeof(bad_findings[0]));
    tcase_add_test(tc, findings_of_a_missing_report_are_stale);
    tcase_add_test(tc, the_second_death_of_an_auditor_fails_the_report);
    suite_add_tcase(suite, tc);
    return kit_run(suite);
}
