/* Projects in the store: counts, versions, deletion and purges. */
#include "t/kit/store_fixtures.h"

/* ---- projects ---- */

START_TEST(the_first_report_of_a_host_creates_its_project)
{
    w = kit_workspace(&k, "acme");
    struct store_project p;
    struct store_workspace before, after;
    uint64_t first = kit_create(&k, w, "https://a.com/1", "a.com");
    k.now += 10;
    uint64_t second = kit_create(&k, w, "https://a.com/2", "a.com");
    kit_get_workspace(k.s, w, &before);
    ck_assert_uint_eq(before.projects, 1);
    ck_assert_uint_eq(before.reports, 2);
    k.now += 10;
    kit_done(&k, first, 1, 80);
    k.now += 10;
    kit_done(&k, second, 1, 41);
    ck_status(kit_project(k.s, w, "a.com", &p), STORE_OK);
    ck_assert_uint_eq(p.reports, 2);
    ck_assert_uint_eq(p.scored, 2);
    ck_assert_uint_eq(p.score_total, 121);
    ck_assert_int_eq(p.created_at, NOW);
    ck_assert_int_eq(p.updated_at, NOW + 30);
    store_read_end(k.s);
    kit_get_workspace(k.s, w, &after);
    ck_assert_uint_gt(after.version, before.version);
    change((struct store_change){.kind = CHANGE_REPORT_DELETE, .workspace = w, .id = second});
    ck_status(kit_project(k.s, w, "a.com", &p), STORE_OK);
    ck_assert_uint_eq(p.reports, 1);
    ck_assert_uint_eq(p.score_total, 80);
    ck_status(kit_project(k.s, w, "b.com", NULL), STORE_NOT_FOUND);
    kit_check_clean(k.s);
}
END_TEST

START_TEST(a_projects_version_grows_once_per_transaction_and_guards_deletion)
{
    w = kit_workspace(&k, "acme");
    struct store_project p;
    struct store_txn *t;
    struct store_answer a;
    kit_create(&k, w, "https://a.com/1", "a.com");
    ck_status(kit_project(k.s, w, "a.com", &p), STORE_OK);
    ck_assert_uint_eq(p.version, 1);
    store_read_end(k.s);
    ck_status(store_begin(k.s, &t), STORE_OK);
    for (int i = 0; i < 5; i++) {
        struct store_change c = kit_create_change(w, "https://a.com/x", "a.com");
        store_apply(t, &c, k.now, &a);
        ck_status(a.status, STORE_OK);
    }
    ck_status(store_commit(t), STORE_OK);
    ck_status(kit_project(k.s, w, "a.com", &p), STORE_OK);
    ck_assert_uint_eq(p.version, 2);
    uint64_t versions[2] = {1, 17};
    struct store_change c = {.kind = CHANGE_PROJECT_DELETE,
                             .workspace = w,
                             .id = p.id,
                             .match = {(char *)versions, sizeof(versions)}};
    ck_status(kit_status(&k, &c), STORE_PRECONDITION);
    versions[1] = 2;
    ck_status(kit_status(&k, &c), STORE_OK);
}
END_TEST

START_TEST(a_deleted_project_frees_its_name_and_hides_its_reports_at_once)
{
    w = kit_workspace(&k, "acme");
    uint64_t kept = kit_create(&k, w, "https://b.com/", "b.com"), gone = 0;
    struct store_project p;
    for (int i = 0; i < 20; i++)
        gone = kit_create(&k, w, "https://a.com/", "a.com");
    kit_done(&k, gone - 1, 1, 50);
    ck_status(kit_project(k.s, w, "a.com", &p), STORE_OK);
    struct store_change c = {.kind = CHANGE_PROJECT_DELETE, .workspace = w + 1, .id = p.id};
    ck_status(kit_status(&k, &c), STORE_NOT_FOUND);
    c.workspace = w;
    ck_status(kit_status(&k, &c), STORE_OK);
    ck_status(kit_status(&k, &c), STORE_NOT_FOUND);
    ck_status(kit_report(k.s, w, gone, NULL), STORE_NOT_FOUND);
    ck_status(kit_project(k.s, w, "a.com", NULL), STORE_NOT_FOUND);
    ck_assert_uint_eq(kit_jobs(k.s), 1);
    struct store_job job;
    ck_assert(!store_job_get(k.s, gone, &job));
    struct store_change finish = kit_done_change(gone, 1, 90);
    ck_status(kit_status(&k, &finish), STORE_STALE);
    struct kit_list l =
        kit_reports(k.s, &(struct store_list_query){.workspace = w, .page = 1, .per_page = 10});
    ck_assert_uint_eq(l.total, 1);
    ck_assert_uint_eq(l.count, 1);
    ck_assert_uint_eq(l.reports[0].id, kept);
    uint64_t again = kit_create(&k, w, "https://a.com/", "a.com");
    struct store_project made;
    ck_status(kit_project(k.s, w, "a.com", &made), STORE_OK);
    ck_assert_uint_gt(made.id, p.id);
    ck_assert_uint_eq(made.reports, 1);
    kit_check_clean(k.s);
    ck_assert_uint_gt(kit_purge(&k, 3), 6);
    kit_check_clean(k.s);
    ck_status(kit_report(k.s, w, again, NULL), STORE_OK);
    struct store_usage u;
    ck_status(store_usage(k.s, &u), STORE_OK);
    ck_assert_uint_eq(u.reports, 2);
    ck_assert_uint_eq(u.projects, 2);
    ck_assert_uint_eq(u.jobs, 2);
}
END_TEST

START_TEST(a_project_and_its_workspace_may_die_at_the_same_time)
{
    w = kit_workspace(&k, "acme");
    struct store_project p;
    for (int i = 0; i < 7; i++)
        kit_create(&k, w, "https://a.com/", i % 2 ? "a.com" : "b.com");
    ck_status(kit_project(k.s, w, "a.com", &p), STORE_OK);
    change((struct store_change){.kind = CHANGE_PROJECT_DELETE, .workspace = w, .id = p.id});
    change((struct store_change){.kind = CHANGE_WORKSPACE_DELETE, .id = w});
    kit_check_clean(k.s);
    kit_purge(&k, 2);
    kit_check_clean(k.s);
    struct store_usage u;
    ck_status(store_usage(k.s, &u), STORE_OK);
    ck_assert_uint_eq(u.workspaces + u.projects + u.reports + u.jobs, 0);
}
END_TEST

START_TEST(a_purge_resumes_after_a_reopen)
{
    w = kit_workspace(&k, "acme");
    for (int i = 0; i < 30; i++)
        kit_create(&k, w, "https://a.com/", "a.com");
    change((struct store_change){.kind = CHANGE_WORKSPACE_DELETE, .id = w});
    struct store_usage u;
    unsigned steps = 0;
    do {
        ck_assert_uint_lt(steps++, 10);
        kit_maintain(&k, 10, steps);
        ck_status(store_usage(k.s, &u), STORE_OK);
    } while (u.reports == 30);
    ck_assert_uint_eq(u.reports, 20);
    kit_reopen(&k);
    kit_check_clean(k.s);
    kit_purge(&k, 0);
    ck_status(store_usage(k.s, &u), STORE_OK);
    ck_assert_uint_eq(u.reports + u.workspaces, 0);
}
END_TEST

START_TEST(one_transaction_can_create_delete_purge_and_recreate)
{
    struct store_txn *t;
    struct store_answer a;
    struct store_project p;
    w = kit_workspace(&k, "acme");
    const struct store_change create = kit_create_change(w, "https://a.com/", "a.com");
    ck_status(store_begin(k.s, &t), STORE_OK);
    for (uint64_t project = 1; project <= 3; project++) {
        store_apply(t, &create, k.now, &a);
        ck_status(a.status, STORE_OK);
        store_apply(
            t, &(struct store_change){.kind = CHANGE_PROJECT_DELETE, .workspace = w, .id = project},
            k.now, &a);
        ck_status(a.status, STORE_OK);
        const uint64_t report = project;
        const struct store_change purge = {.kind = CHANGE_PURGE_DELETED,
                                           .workspace = w,
                                           .id = project,
                                           .data = {(const char *)&report, sizeof(report)}};
        store_apply(t, &purge, k.now, &a);
        ck_status(a.status, STORE_OK);
        ck_assert_uint_eq(a.id, 1);
        store_apply(
            t, &(struct store_change){.kind = CHANGE_PURGE_DELETED, .workspace = w, .id = project},
            k.now, &a);
        ck_status(a.status, STORE_OK);
        store_apply(
            t, &(struct store_change){.kind = CHANGE_PROJECT_DELETE, .workspace = w, .id = project},
            k.now, &a);
        ck_status(a.status, STORE_NOT_FOUND);
    }
    store_apply(t, &create, k.now, &a);
    ck_status(store_commit(t), STORE_OK);
    kit_check_clean(k.s);
    ck_status(kit_project(k.s, w, "a.com", &p), STORE_OK);
    ck_assert_uint_eq(p.id, 4);
    ck_assert_uint_eq(p.reports, 1);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("store_projects");
    TCase *tc = tcase_create("records");
    tcase_add_checked_fixture(tc, store_setup, store_teardown);
    tcase_set_timeout(tc, 30);
    tcase_add_test(tc, the_first_report_of_a_host_creates_its_project);
    tcase_add_test(tc, a_projects_version_grows_once_per_transaction_and_guards_deletion);
    tcase_add_test(tc, a_deleted_project_frees_its_name_and_hides_its_reports_at_once);
    tcase_add_test(tc, a_project_and_its_workspace_may_die_at_the_same_time);
    tcase_add_test(tc, a_purge_resumes_after_a_reopen);
    tcase_add_test(tc, one_transaction_can_create_delete_purge_and_recreate);
    suite_add_tcase(suite, tc);
    return kit_run(suite);
}
