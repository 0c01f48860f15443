/* Reports: every result of their changes, and the stages of a grading. */
#include "t/kit/store.h"

static struct kit k;
static uint64_t w;

static void setup(void)
{
    kit_open(&k);
    w = kit_workspace(&k, "acme");
}

static void teardown(void)
{
    kit_close(&k);
}

static struct store_answer change(struct store_change c)
{
    return kit_apply(&k, &c);
}

static struct store_report report(uint64_t id)
{
    struct store_report r;
    ck_status(kit_report(k.s, w, id, &r), STORE_OK);
    return r;
}

static struct store_change update(uint64_t id, uint32_t fields)
{
    return (struct store_change){
        .kind = CHANGE_REPORT_UPDATE, .workspace = w, .id = id, .fields = fields};
}

/* ---- create ---- */

START_TEST(a_created_report_is_pending_and_has_a_job)
{
    size_t count;
    uint64_t id = kit_create(&k, w, "https://a.com/x", "a.com");
    const struct store_event *e = store_events(k.s, &count);
    ck_assert_uint_eq(count, 1);
    ck_assert_uint_eq(e->kind, EVENT_JOB_ADDED);
    ck_assert_uint_eq(e->id, id);
    ck_assert_uint_eq(e->value, 1);
    struct store_report r = report(id);
    ck_assert_uint_eq(r.version, 1);
    ck_assert_int_eq(r.status, REPORT_PENDING);
    ck_assert_int_eq(r.result, RESULT_NONE);
    ck_assert_int_eq(r.score, -1);
    ck_assert_int_eq(r.privacy, PRIVACY_PUBLIC);
    ck_assert_int_eq(r.generated_at, 0);
    ck_assert_int_eq(r.created_at, NOW);
    ck_assert(str_eq(r.url, STR("https://a.com/x")));
    ck_assert(str_eq(r.project_name, STR("a.com")));
    ck_assert_uint_eq(r.results.n + r.password_hash.n + r.error_code.n, 0);
    struct store_job job;
    ck_assert(store_job_get(k.s, id, &job));
    ck_assert_uint_eq(job.attempt, 1);
    ck_assert_uint_eq(job.workspace, w);
    ck_assert_uint_eq(job.deaths, 0);
    ck_assert(str_eq(job.url, STR("https://a.com/x")));
    ck_assert(!store_job_get(k.s, id + 1, &job));
}
END_TEST

START_TEST(another_workspaces_report_is_not_found)
{
    uint64_t other = kit_workspace(&k, "other"), id = kit_create(&k, w, "https://a.com/x", "a.com");
    ck_status(kit_report(k.s, other, id, NULL), STORE_NOT_FOUND);
    ck_status(
        change((struct store_change){.kind = CHANGE_REPORT_DELETE, .workspace = other, .id = id})
            .status,
        STORE_NOT_FOUND);
    struct store_change c = update(id, CHANGE_REGENERATE);
    c.workspace = other;
    ck_status(kit_status(&k, &c), STORE_NOT_FOUND);
}
END_TEST

/* Columns: the error in the change, the status. */
static const struct {
    struct store_change change;
    enum store_status status;
} bad_creates[] = {
    {{.name = {"a.com", 5}}, STORE_INVALID},
    {{.url = {"https://a.com/", 14}}, STORE_INVALID},
    {{.url = {"https://a.com/", 14}, .name = {"a.com", 5}, .privacy = 3}, STORE_INVALID},
    {{.url = {"https://\0.com/", 14}, .name = {"a.com", 5}}, STORE_INVALID},
    {{.url = {"https://a.com/", 14}, .name = {"a.com", 5}, .idem_key = {"short", 5}},
     STORE_INVALID},
    {{.url = {"https://a.com/", 14}, .name = {"a.com", 5}, .privacy = 2}, STORE_NO_PASSWORD},
    {{.url = {"https://a.com/", 14}, .name = {"a.com", 5}, .workspace = 99}, STORE_NOT_FOUND},
};

START_TEST(a_bad_create_writes_nothing)
{
    struct store_change c = bad_creates[_i].change;
    c.kind = CHANGE_REPORT_CREATE;
    if (c.workspace == 0)
        c.workspace = w;
    ck_status(kit_status(&k, &c), bad_creates[_i].status);
    struct store_usage u;
    ck_status(store_usage(k.s, &u), STORE_OK);
    ck_assert_uint_eq(u.reports + u.projects + u.jobs, 0);
    kit_check_clean(k.s);
}
END_TEST

START_TEST(ids_never_go_back)
{
    uint64_t first = kit_create(&k, w, "https://a.com/", "a.com");
    change((struct store_change){.kind = CHANGE_REPORT_DELETE, .workspace = w, .id = first});
    kit_reopen(&k);
    ck_assert_uint_eq(kit_create(&k, w, "https://a.com/", "a.com"), first + 1);
}
END_TEST

START_TEST(a_full_queue_refuses_creates_and_regenerations)
{
    struct store_change c = kit_create_change(w, "https://a.com/", "a.com");
    c.limit = 3;
    uint64_t id = 0;
    for (int i = 0; i < 3; i++)
        id = kit_apply(&k, &c).id;
    ck_status(kit_status(&k, &c), STORE_QUEUE_FULL);
    kit_done(&k, id, 1, 50);
    ck_status(kit_status(&k, &c), STORE_OK);
    struct store_change again = update(id, CHANGE_REGENERATE);
    again.limit = 3;
    ck_status(kit_status(&k, &again), STORE_QUEUE_FULL);
    ck_assert_int_eq(report(id).status, REPORT_DONE);
    change((struct store_change){.kind = CHANGE_REPORT_DELETE, .workspace = w, .id = id - 1});
    ck_status(kit_status(&k, &again), STORE_OK);
    kit_check_clean(k.s);
}
END_TEST

START_TEST(jobs_of_a_deleted_project_count_until_purged)
{
    struct store_change c = kit_create_change(w, "https://a.com/", "a.com");
    c.limit = 3;
    uint64_t id = 0;
    for (int i = 0; i < 3; i++)
        id = kit_apply(&k, &c).id;
    uint64_t project = report(id).project;
    ck_status(
        change((struct store_change){.kind = CHANGE_PROJECT_DELETE, .workspace = w, .id = project})
            .status,
        STORE_OK);
    kit_check_clean(k.s);
    ck_status(kit_status(&k, &c), STORE_QUEUE_FULL);
    const struct store_change purge = {.kind = CHANGE_PURGE_DELETED,
                                       .workspace = w,
                                       .id = project,
                                       .data = {(const char *)&id, sizeof(id)}};
    size_t count, events = 0;
    while (kit_status(&k, &c) == STORE_QUEUE_FULL) {
        ck_status(kit_status(&k, &purge), STORE_OK);
        const struct store_event *e = store_events(k.s, &count);
        for (size_t i = 0; i < count; i++)
            events += e[i].kind == EVENT_REPORT_DELETED;
        kit_check_clean(k.s);
    }
    ck_assert_uint_eq(events, 1);
}
END_TEST

START_TEST(running_jobs_without_a_report_count_as_pending)
{
    struct store_change c = kit_create_change(w, "https://a.com/", "a.com");
    c.limit = 3;
    c.beside = 2;
    ck_status(kit_status(&k, &c), STORE_OK);
    ck_status(kit_status(&k, &c), STORE_QUEUE_FULL);
    c.beside = 0;
    ck_status(kit_status(&k, &c), STORE_OK);
}
END_TEST

/* ---- update ---- */

/*
 * Columns: privacy before, sent fields, sent privacy, status, privacy after, password after ("":
 * none).
 */
static const struct {
    uint32_t before, fields, sent;
    enum store_status status;
    uint32_t after;
    const char *password;
} puts_[] = {
    {0, 0, 0, STORE_OK, 0, ""},
    {0, CHANGE_HAS_PRIVACY, 1, STORE_OK, 1, ""},
    {0, CHANGE_HAS_PRIVACY, 2, STORE_NO_PASSWORD, 0, ""},
    {0, CHANGE_HAS_PRIVACY | CHANGE_HAS_PASSWORD, 2, STORE_OK, 2, "new"},
    {0, CHANGE_HAS_PASSWORD, 0, STORE_NOT_PROTECTED, 0, ""},
    {1, CHANGE_HAS_PASSWORD, 0, STORE_NOT_PROTECTED, 1, ""},
    {1, CHANGE_HAS_PRIVACY | CHANGE_HAS_PASSWORD, 0, STORE_OK, 0, ""},
    {2, CHANGE_HAS_PASSWORD, 0, STORE_OK, 2, "new"},
    {2, CHANGE_HAS_PRIVACY, 2, STORE_OK, 2, "old"},
    {2, CHANGE_HAS_PRIVACY, 0, STORE_OK, 0, ""},
    {2, CHANGE_HAS_PRIVACY | CHANGE_HAS_PASSWORD, 1, STORE_OK, 1, ""},
    {2, CHANGE_HAS_PRIVACY, 3, STORE_INVALID, 2, "old"},
};

START_TEST(privacy_and_password_follow_the_documentation)
{
    struct store_change c = kit_create_change(w, "https://a.com/", "a.com");
    c.privacy = puts_[_i].before;
    c.hash = STR("old");
    uint64_t id = kit_apply(&k, &c).id;
    struct store_change put = update(id, puts_[_i].fields);
    put.privacy = puts_[_i].sent;
    if (puts_[_i].fields & CHANGE_HAS_PASSWORD)
        put.hash = STR("new");
    ck_status(kit_status(&k, &put), puts_[_i].status);
    struct store_report r = report(id);
    bool changed = puts_[_i].after != puts_[_i].before ||
                   strcmp(puts_[_i].password, puts_[_i].before == 2 ? "old" : "") != 0;
    ck_assert_uint_eq(r.privacy, puts_[_i].after);
    ck_assert(str_eq(r.password_hash, str_of(puts_[_i].password)));
    ck_assert_uint_eq(r.version, changed ? 2 : 1);
    kit_check_clean(k.s);
}
END_TEST

START_TEST(an_empty_update_changes_nothing)
{
    uint64_t id = kit_create(&k, w, "https://a.com/", "a.com");
    struct store_workspace before, after;
    kit_get_workspace(k.s, w, &before);
    k.now += 1000;
    struct store_change c = update(id, 0);
    struct store_answer a = kit_apply(&k, &c);
    ck_status(a.status, STORE_OK);
    ck_assert_uint_eq(a.version, 1);
    ck_assert_int_eq(report(id).updated_at, NOW);
    kit_get_workspace(k.s, w, &after);
    ck_assert_uint_eq(before.version, after.version);
}
END_TEST

START_TEST(if_match_allows_only_its_versions)
{
    uint64_t id = kit_create(&k, w, "https://a.com/", "a.com");
    uint64_t versions[2] = {7, 8};
    struct store_change c = update(id, CHANGE_HAS_PRIVACY);
    c.privacy = 1;
    c.match = (struct str){(char *)versions, sizeof(versions)};
    ck_status(kit_status(&k, &c), STORE_PRECONDITION);
    struct store_change d = {
        .kind = CHANGE_REPORT_DELETE, .workspace = w, .id = id, .match = c.match};
    ck_status(kit_status(&k, &d), STORE_PRECONDITION);
    versions[1] = 1;
    ck_status(kit_status(&k, &c), STORE_OK);
    ck_status(kit_status(&k, &d), STORE_PRECONDITION);
    versions[0] = 2;
    ck_status(kit_status(&k, &d), STORE_OK);
    ck_status(kit_status(&k, &d), STORE_NOT_FOUND);
}
END_TEST

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
    struct store_change c = update(id, CHANGE_REGENERATE);
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
    struct store_change c = update(id, CHANGE_REGENERATE);
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
    struct store_change again = update(id, CHANGE_REGENERATE);
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
    struct store_change again = update(id, CHANGE_REGENERATE);
    ck_status(kit_status(&k, &again), STORE_OK);
    ck_assert(store_job_get(k.s, id, &job));
    ck_assert_uint_eq(job.deaths, 0);
    kit_check_clean(k.s);
}
END_TEST

struct order {
    uint64_t reports[8];
    size_t count;
};

static void note(void *arg, const struct store_job *job)
{
    struct order *o = arg;
    ck_assert_uint_lt(o->count, 8);
    o->reports[o->count++] = job->report;
}

START_TEST(jobs_come_oldest_first_and_a_regeneration_queues_at_the_end)
{
    uint64_t a = kit_create(&k, w, "https://a.com/", "a.com"),
             b = kit_create(&k, w, "https://b.com/", "b.com");
    kit_done(&k, a, 1, 50);
    uint64_t c = kit_create(&k, w, "https://c.com/", "c.com");
    struct store_change again = update(a, CHANGE_REGENERATE);
    kit_apply(&k, &again);
    struct order o = {0};
    ck_status(store_job_each(k.s, note, &o), STORE_OK);
    ck_assert_uint_eq(o.count, 3);
    ck_assert_uint_eq(o.reports[0], b);
    ck_assert_uint_eq(o.reports[1], c);
    ck_assert_uint_eq(o.reports[2], a);
}
END_TEST

START_TEST(deleting_a_pending_report_deletes_its_job)
{
    size_t count;
    uint64_t id = kit_create(&k, w, "https://a.com/", "a.com");
    ck_status(change((struct store_change){.kind = CHANGE_REPORT_DELETE, .workspace = w, .id = id})
                  .status,
              STORE_OK);
    const struct store_event *e = store_events(k.s, &count);
    ck_assert_uint_eq(count, 1);
    ck_assert_uint_eq(e->kind, EVENT_REPORT_DELETED);
    ck_assert_uint_eq(e->workspace, w);
    ck_assert_uint_eq(e->id, id);
    ck_assert_uint_eq(kit_jobs(k.s), 0);
    ck_status(kit_report(k.s, w, id, NULL), STORE_NOT_FOUND);
    struct store_project p;
    ck_status(kit_project(k.s, w, "a.com", &p), STORE_OK);
    ck_assert_uint_eq(p.reports, 0);
    kit_check_clean(k.s);
}
END_TEST

START_TEST(a_serialized_change_reads_back_equal)
{
    struct buf b = {0};
    struct store_change c = kit_done_change(7, 3, 55), back;
    c.error_message = STR("none");
    change_encode(&c, &b);
    ck_assert(change_decode(buf_view(&b), &back));
    ck_assert_int_eq(back.score, 55);
    ck_assert(str_eq(back.results, c.results));
    ck_assert(str_eq(back.error_message, c.error_message));
    for (size_t n = 0; n < b.n; n++)
        ck_assert(!change_decode((struct str){b.p, n}, &back));
    buf_add(&b, "x", 1);
    ck_assert(!change_decode(buf_view(&b), &back));
    buf_free(&b);
}
END_TEST

#define COUNT(a) ((int)(sizeof(a) / sizeof(*(a))))

int main(void)
{
    Suite *suite = suite_create("store_reports");
    TCase *tc = tcase_create("reports");
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_set_timeout(tc, 30);
    tcase_add_test(tc, a_created_report_is_pending_and_has_a_job);
    tcase_add_test(tc, another_workspaces_report_is_not_found);
    tcase_add_loop_test(tc, a_bad_create_writes_nothing, 0, COUNT(bad_creates));
    tcase_add_test(tc, ids_never_go_back);
    tcase_add_test(tc, a_full_queue_refuses_creates_and_regenerations);
    tcase_add_test(tc, jobs_of_a_deleted_project_count_until_purged);
    tcase_add_test(tc, running_jobs_without_a_report_count_as_pending);
    tcase_add_loop_test(tc, privacy_and_password_follow_the_documentation, 0, COUNT(puts_));
    tcase_add_test(tc, an_empty_update_changes_nothing);
    tcase_add_test(tc, if_match_allows_only_its_versions);
    tcase_add_test(tc, findings_replace_everything_in_one_step);
    tcase_add_test(tc, a_regeneration_keeps_the_old_findings_until_the_new_ones_come);
    tcase_add_test(tc, regenerating_a_pending_report_makes_no_second_job);
    tcase_add_test(tc,
                   a_failure_keeps_the_old_score_and_results_and_the_next_success_clears_the_error);
    tcase_add_test(tc, a_first_failure_leaves_a_report_without_score_and_results);
    tcase_add_loop_test(tc, malformed_findings_are_refused, 0, COUNT(bad_findings));
    tcase_add_test(tc, findings_of_a_missing_report_are_stale);
    tcase_add_test(tc, the_second_death_of_an_auditor_fails_the_report);
    tcase_add_test(tc, jobs_come_oldest_first_and_a_regeneration_queues_at_the_end);
    tcase_add_test(tc, deleting_a_pending_report_deletes_its_job);
    tcase_add_test(tc, a_serialized_change_reads_back_equal);
    suite_add_tcase(suite, tc);
    return kit_run(suite);
}
