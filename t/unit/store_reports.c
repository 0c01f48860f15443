/* Reports in the store: every result of their changes, and the order of their jobs. */
#include "t/kit/store_fixtures.h"

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
    struct store_change c = kit_update_change(w, id, CHANGE_REGENERATE);
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
    struct store_change again = kit_update_change(w, id, CHANGE_REGENERATE);
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
    struct store_change put = kit_update_change(w, id, puts_[_i].fields);
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
    struct store_change c = kit_update_change(w, id, 0);
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
    struct store_change c = kit_update_change(w, id, CHANGE_HAS_PRIVACY);
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
    struct store_change again = kit_update_change(w, a, CHANGE_REGENERATE);
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
    tcase_add_checked_fixture(tc, workspace_setup, store_teardown);
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
    tcase_add_test(tc, jobs_come_oldest_first_and_a_regeneration_queues_at_the_end);
    tcase_add_test(tc, deleting_a_pending_report_deletes_its_job);
    tcase_add_test(tc, a_serialized_change_reads_back_equal);
    suite_add_tcase(suite, tc);
    return kit_run(suite);
}
