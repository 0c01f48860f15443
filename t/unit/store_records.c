/* Workspaces, channels, transactions and status texts of the store. */
#include "t/kit/store_fixtures.h"

/* ---- workspaces ---- */

START_TEST(a_workspace_is_found_by_id_and_by_name)
{
    uint64_t id = kit_workspace(&k, "acme");
    struct store_workspace workspace;
    ck_status(kit_get_workspace(k.s, id, &workspace), STORE_OK);
    ck_assert(str_eq(workspace.name, STR("acme")));
    ck_assert_int_eq(workspace.created_at, NOW);
    ck_assert_uint_eq(workspace.version, 1);
    ck_assert_uint_eq(workspace.reports + workspace.projects, 0);
    ck_status(kit_get_workspace(k.s, id + 1, NULL), STORE_NOT_FOUND);
}
END_TEST

START_TEST(a_taken_or_malformed_workspace_name_is_refused)
{
    char long_name[500];
    memset(long_name, 'x', sizeof(long_name));
    kit_workspace(&k, "acme");
    ck_status(
        change((struct store_change){.kind = CHANGE_WORKSPACE_CREATE, .name = STR("acme")}).status,
        STORE_EXISTS);
    ck_status(change((struct store_change){.kind = CHANGE_WORKSPACE_CREATE}).status, STORE_INVALID);
    ck_status(change((struct store_change){.kind = CHANGE_WORKSPACE_CREATE,
                                           .name = {long_name, sizeof(long_name)}})
                  .status,
              STORE_INVALID);
    ck_status(change((struct store_change){.kind = CHANGE_KINDS}).status, STORE_INVALID);
    ck_status(change((struct store_change){.kind = 0}).status, STORE_INVALID);
}
END_TEST

struct names {
    int records, ends;
    uint64_t last;
};

static void each_workspace(void *arg, enum store_status status,
                           const struct store_workspace *workspace)
{
    struct names *n = arg;
    if (workspace == NULL) {
        ck_status(status, STORE_NOT_FOUND);
        n->ends++;
        return;
    }
    ck_assert_uint_gt(workspace->id, n->last);
    n->last = workspace->id;
    n->records++;
}

START_TEST(store_each_lists_every_live_workspace_by_id)
{
    char name[16];
    struct names n = {0};
    for (int i = 0; i < 300; i++) {
        snprintf(name, sizeof(name), "w%d", i);
        kit_workspace(&k, name);
    }
    ck_status(change((struct store_change){.kind = CHANGE_WORKSPACE_DELETE, .id = 7}).status,
              STORE_OK);
    store_workspace_each(k.s, each_workspace, &n);
    ck_assert_int_eq(n.records, 299);
    ck_assert_int_eq(n.ends, 1);
}
END_TEST

START_TEST(deleting_a_workspace_frees_its_name_at_once)
{
    uint64_t id = kit_workspace(&k, "acme");
    size_t count;
    uint64_t report = kit_create(&k, id, "https://a.com/", "a.com");
    kit_key(&k, id, 1);
    ck_status(change((struct store_change){.kind = CHANGE_WORKSPACE_DELETE, .id = id}).status,
              STORE_OK);
    const struct store_event *e = store_events(k.s, &count);
    ck_assert_uint_eq(count, 2);
    ck_assert_uint_eq(e[0].kind, EVENT_WORKSPACE_DELETED);
    ck_assert_uint_eq(e[0].workspace, id);
    ck_assert_uint_eq(e[1].kind, EVENT_MAINTENANCE);
    ck_status(kit_get_workspace(k.s, id, NULL), STORE_NOT_FOUND);
    ck_status(kit_find_key(k.s, 1, NULL), STORE_NOT_FOUND);
    ck_status(kit_report(k.s, id, report, NULL), STORE_NOT_FOUND);
    ck_status(kit_project(k.s, id, "a.com", NULL), STORE_NOT_FOUND);
    ck_assert_uint_eq(kit_jobs(k.s), 0);
    ck_status(change((struct store_change){.kind = CHANGE_WORKSPACE_DELETE, .id = id}).status,
              STORE_NOT_FOUND);
    struct store_change c = kit_create_change(id, "https://a.com/", "a.com");
    ck_status(kit_status(&k, &c), STORE_NOT_FOUND);
    c = kit_done_change(report, 1, 90);
    ck_status(kit_status(&k, &c), STORE_STALE);
    uint64_t again = kit_workspace(&k, "acme");
    ck_assert_uint_gt(again, id);
    kit_check_clean(k.s);
    /* report, project, key, two tail records, the manifest that covers them, workspace */
    ck_assert_uint_eq(kit_purge(&k, 1), 7);
    kit_check_clean(k.s);
    struct store_usage u;
    ck_status(store_usage(k.s, &u), STORE_OK);
    ck_assert_uint_eq(u.workspaces, 1);
    ck_assert_uint_eq(u.keys + u.projects + u.reports + u.jobs, 0);
    ck_status(kit_get_workspace(k.s, again, NULL), STORE_OK);
}
END_TEST

/* ---- channels ---- */

static void each_channel(void *arg, uint64_t channel, uint64_t sequence)
{
    uint64_t *sums = arg;
    sums[0] += channel;
    sums[1] += sequence;
}

static void drop_channel(void *arg, uint64_t channel, uint64_t sequence)
{
    (void)sequence;
    store_sender_drop(arg, channel);
}

START_TEST(a_channel_note_is_read_back_replaced_and_deleted)
{
    struct store_txn *t;
    uint64_t sequence, sums[2] = {0};
    struct str answers;
    ck_status(store_begin(k.s, &t), STORE_OK);
    ck_status(store_sender_get(t, 5, &sequence, &answers), STORE_NOT_FOUND);
    store_sender_note(t, 5, 1, STR("first"));
    store_sender_note(t, 5, 2, STR("second, longer"));
    for (uint64_t c = 6; c < 40; c++)
        store_sender_note(t, c << 40, 1, (struct str){0});
    ck_status(store_commit(t), STORE_OK);
    kit_reopen(&k);
    ck_status(store_begin(k.s, &t), STORE_OK);
    ck_status(store_sender_get(t, 5, &sequence, &answers), STORE_OK);
    ck_assert_uint_eq(sequence, 2);
    ck_assert(str_eq(answers, STR("second, longer")));
    store_sender_each(t, each_channel, sums);
    ck_assert_uint_eq(sums[1], 2 + 34);
    store_sender_each(t, drop_channel, t);
    ck_status(store_sender_get(t, 5, &sequence, &answers), STORE_NOT_FOUND);
    sums[0] = sums[1] = 0;
    store_sender_each(t, each_channel, sums);
    ck_assert_uint_eq(sums[0] + sums[1], 0);
    store_abort(t);
    ck_status(store_begin(k.s, &t), STORE_OK);
    ck_status(store_sender_get(t, 5, &sequence, &answers), STORE_OK);
    store_abort(t);
}
END_TEST

START_TEST(an_aborted_transaction_leaves_nothing_and_no_events)
{
    struct store_txn *t;
    struct store_answer a;
    size_t count;
    w = kit_workspace(&k, "acme");
    ck_status(store_begin(k.s, &t), STORE_OK);
    struct store_change c = kit_create_change(w, "https://a.com/", "a.com");
    store_apply(t, &c, k.now, &a);
    ck_status(a.status, STORE_OK);
    store_abort(t);
    store_events(k.s, &count);
    ck_assert_uint_eq(count, 0);
    ck_status(kit_report(k.s, w, a.id, NULL), STORE_NOT_FOUND);
    ck_status(kit_project(k.s, w, "a.com", NULL), STORE_NOT_FOUND);
    ck_assert_uint_eq(kit_create(&k, w, "https://a.com/", "a.com"), a.id);
    kit_check_clean(k.s);
}
END_TEST

START_TEST(every_status_has_its_text)
{
    for (int i = 0; i < STORE_STATUSES; i++)
        ck_assert_str_ne(store_status_text(i), "unknown");
    ck_assert_str_eq(store_status_text(STORE_STATUSES), "unknown");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("store_records");
    TCase *tc = tcase_create("records");
    tcase_add_checked_fixture(tc, store_setup, store_teardown);
    tcase_set_timeout(tc, 30);
    tcase_add_test(tc, a_workspace_is_found_by_id_and_by_name);
    tcase_add_test(tc, a_taken_or_malformed_workspace_name_is_refused);
    tcase_add_test(tc, store_each_lists_every_live_workspace_by_id);
    tcase_add_test(tc, deleting_a_workspace_frees_its_name_at_once);
    tcase_add_test(tc, a_channel_note_is_read_back_replaced_and_deleted);
    tcase_add_test(tc, an_aborted_transaction_leaves_nothing_and_no_events);
    tcase_add_test(tc, every_status_has_its_text);
    suite_add_tcase(suite, tc);
    return kit_run(suite);
}
