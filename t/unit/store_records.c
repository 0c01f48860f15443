/* Workspaces, keys, projects, jobs, channels and purges: every result of their changes. */
#include "t/kit/store.h"

static struct kit k;

static void setup(void)
{
    kit_open(&k);
}

static void teardown(void)
{
    kit_close(&k);
}

static struct store_answer change(struct store_change c)
{
    return kit_apply(&k, &c);
}

/* ---- workspaces ---- */

START_TEST(a_workspace_is_found_by_id_and_by_name)
{
    uint64_t id = kit_workspace(&k, "acme");
    struct store_workspace w;
    ck_status(kit_get_workspace(k.s, id, &w), STORE_OK);
    ck_assert(str_eq(w.name, STR("acme")));
    ck_assert_int_eq(w.created_at, NOW);
    ck_assert_uint_eq(w.version, 1);
    ck_assert_uint_eq(w.reports + w.projects, 0);
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

static void each_workspace(void *arg, enum store_status status, const struct store_workspace *w)
{
    struct names *n = arg;
    if (w == NULL) {
        ck_status(status, STORE_NOT_FOUND);
        n->ends++;
        return;
    }
    ck_assert_uint_gt(w->id, n->last);
    n->last = w->id;
    n->records++;
}

static void each_key(void *arg, enum store_status status, const struct store_key *key)
{
    struct names *n = arg;
    if (key == NULL) {
        ck_status(status, STORE_NOT_FOUND);
        n->ends++;
        return;
    }
    ck_assert_uint_gt(key->id, n->last);
    n->last = key->id;
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

/* ---- keys ---- */

START_TEST(a_key_is_found_by_its_hash_with_its_fields)
{
    uint64_t w = kit_workspace(&k, "acme");
    uint64_t id = kit_key(&k, w, 9);
    struct store_key key;
    ck_status(kit_find_key(k.s, 9, &key), STORE_OK);
    ck_assert_uint_eq(key.id, id);
    ck_assert_uint_eq(key.workspace, w);
    ck_assert_uint_eq(key.scopes, SCOPE_REPORTS_READ);
    ck_assert_int_eq(key.created_at, NOW);
    ck_assert_int_eq(key.revoked_at | key.expires_at | key.last_used_at, 0);
    ck_assert(str_eq(key.name, STR("a key")));
    ck_assert_uint_eq(key.hash[31], 9);
    ck_status(kit_find_key(k.s, 8, NULL), STORE_NOT_FOUND);
}
END_TEST

START_TEST(a_key_is_refused_without_workspace_or_with_a_used_or_short_hash)
{
    uint64_t w = kit_workspace(&k, "acme");
    char hash[32];
    memset(hash, 1, sizeof(hash));
    kit_key(&k, w, 1);
    struct store_change c = {.kind = CHANGE_KEY_CREATE, .workspace = w, .hash = {hash, 32}};
    ck_status(kit_status(&k, &c), STORE_EXISTS);
    c.hash.n = 31;
    ck_status(kit_status(&k, &c), STORE_INVALID);
    c.hash.n = 32;
    hash[0] = 2;
    c.workspace = w + 1;
    ck_status(kit_status(&k, &c), STORE_NOT_FOUND);
}
END_TEST

START_TEST(revoking_a_key_emits_one_event_and_needs_its_workspace)
{
    size_t count;
    uint64_t w = kit_workspace(&k, "acme"), other = kit_workspace(&k, "other");
    uint64_t id = kit_key(&k, w, 1);
    struct store_key key;
    ck_status(kit_find_key(k.s, 1, &key), STORE_OK);
    ck_assert_int_eq(key.revoked_at, 0);
    ck_status(change((struct store_change){.kind = CHANGE_KEY_REVOKE, .workspace = other, .id = id})
                  .status,
              STORE_NOT_FOUND);
    ck_status(change((struct store_change){.kind = CHANGE_KEY_REVOKE, .workspace = w, .id = id + 1})
                  .status,
              STORE_NOT_FOUND);
    k.now += 5;
    ck_status(change((struct store_change){.kind = CHANGE_KEY_REVOKE, .id = id}).status, STORE_OK);
    const struct store_event *e = store_events(k.s, &count);
    ck_assert_uint_eq(count, 1);
    ck_assert_uint_eq(e->kind, EVENT_KEY_REVOKED);
    ck_assert_uint_eq(e->id, id);
    k.now += 5;
    ck_status(change((struct store_change){.kind = CHANGE_KEY_REVOKE, .id = id}).status, STORE_OK);
    store_events(k.s, &count);
    ck_assert_uint_eq(count, 0);
    ck_status(kit_find_key(k.s, 1, &key), STORE_OK);
    ck_assert_int_eq(key.revoked_at, NOW + 5);
}
END_TEST

START_TEST(a_rotated_key_lives_until_the_overlap_ends)
{
    uint64_t w = kit_workspace(&k, "acme");
    char hash[32];
    memset(hash, 1, sizeof(hash));
    struct store_change c = {.kind = CHANGE_KEY_CREATE,
                             .workspace = w,
                             .name = STR("ci"),
                             .scopes = 3,
                             .hash = {hash, 32},
                             .expires_at = NOW + 100 * HOUR};
    uint64_t id = kit_apply(&k, &c).id;
    k.now += HOUR;
    memset(hash, 2, sizeof(hash));
    c = (struct store_change){
        .kind = CHANGE_KEY_ROTATE, .id = id, .hash = {hash, 32}, .expires_at = NOW + 2 * HOUR};
    struct store_answer a = kit_apply(&k, &c);
    struct store_key old, new;
    ck_status(a.status, STORE_OK);
    ck_assert_uint_ne(a.id, id);
    ck_status(kit_find_key(k.s, 1, &old), STORE_OK);
    ck_status(kit_find_key(k.s, 2, &new), STORE_OK);
    ck_assert_int_eq(old.expires_at, NOW + 2 * HOUR);
    ck_assert_int_eq(new.expires_at, NOW + 101 * HOUR);
    ck_assert_uint_eq(new.scopes, 3);
    ck_assert_uint_eq(new.workspace, w);
    ck_assert(str_eq(new.name, STR("ci")));
    ck_status(kit_status(&k, &c), STORE_EXISTS);
    memset(hash, 3, sizeof(hash));
    change((struct store_change){.kind = CHANGE_KEY_REVOKE, .id = id});
    ck_status(kit_status(&k, &c), STORE_NOT_FOUND);
    kit_check_clean(k.s);
}
END_TEST

START_TEST(a_rotation_never_extends_the_old_key)
{
    uint64_t w = kit_workspace(&k, "acme");
    char hash[32];
    struct store_key old;
    memset(hash, 1, sizeof(hash));
    struct store_change c = {
        .kind = CHANGE_KEY_CREATE, .workspace = w, .hash = {hash, 32}, .expires_at = NOW + HOUR};
    uint64_t id = kit_apply(&k, &c).id;
    memset(hash, 2, sizeof(hash));
    c = (struct store_change){
        .kind = CHANGE_KEY_ROTATE, .id = id, .hash = {hash, 32}, .expires_at = NOW + 24 * HOUR};
    ck_status(kit_status(&k, &c), STORE_OK);
    ck_status(kit_find_key(k.s, 1, &old), STORE_OK);
    ck_assert_int_eq(old.expires_at, NOW + HOUR);
}
END_TEST

START_TEST(touching_a_key_changes_neither_events_nor_version)
{
    uint64_t w = kit_workspace(&k, "acme");
    uint64_t id = kit_key(&k, w, 1);
    struct store_key key;
    struct store_workspace before, after;
    size_t count;
    kit_get_workspace(k.s, w, &before);
    k.now += 77;
    ck_status(change((struct store_change){.kind = CHANGE_KEY_TOUCH, .id = id}).status, STORE_OK);
    store_events(k.s, &count);
    ck_assert_uint_eq(count, 0);
    kit_get_workspace(k.s, w, &after);
    ck_assert_uint_eq(before.version, after.version);
    ck_status(kit_find_key(k.s, 1, &key), STORE_OK);
    ck_assert_int_eq(key.last_used_at, NOW + 77);
    ck_status(change((struct store_change){.kind = CHANGE_KEY_TOUCH, .id = id + 1}).status,
              STORE_NOT_FOUND);
}
END_TEST

START_TEST(each_key_of_one_workspace_or_of_all_by_id)
{
    uint64_t a = kit_workspace(&k, "a"), b = kit_workspace(&k, "b");
    for (uint8_t i = 1; i <= 40; i++)
        kit_key(&k, i % 2 ? a : b, i);
    struct names n = {0}, all = {0}, none = {0};
    store_key_each(k.s, a, each_key, &n);
    ck_assert_int_eq(n.records, 20);
    store_key_each(k.s, 0, each_key, &all);
    ck_assert_int_eq(all.records, 40);
    store_key_each(k.s, b + 1, each_key, &none);
    ck_assert_int_eq(none.records, 0);
    ck_assert_int_eq(n.ends + all.ends + none.ends, 3);
}
END_TEST

/* ---- projects ---- */

START_TEST(the_first_report_of_a_host_creates_its_project)
{
    uint64_t w = kit_workspace(&k, "acme");
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
    uint64_t w = kit_workspace(&k, "acme");
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
    uint64_t w = kit_workspace(&k, "acme");
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
    uint64_t w = kit_workspace(&k, "acme");
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
    uint64_t w = kit_workspace(&k, "acme");
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
    uint64_t w = kit_workspace(&k, "acme");
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
    uint64_t w = kit_workspace(&k, "acme");
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
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_set_timeout(tc, 30);
    tcase_add_test(tc, a_workspace_is_found_by_id_and_by_name);
    tcase_add_test(tc, a_taken_or_malformed_workspace_name_is_refused);
    tcase_add_test(tc, store_each_lists_every_live_workspace_by_id);
    tcase_add_test(tc, deleting_a_workspace_frees_its_name_at_once);
    tcase_add_test(tc, a_key_is_found_by_its_hash_with_its_fields);
    tcase_add_test(tc, a_key_is_refused_without_workspace_or_with_a_used_or_short_hash);
    tcase_add_test(tc, revoking_a_key_emits_one_event_and_needs_its_workspace);
    tcase_add_test(tc, a_rotated_key_lives_until_the_overlap_ends);
    tcase_add_test(tc, a_rotation_never_extends_the_old_key);
    tcase_add_test(tc, touching_a_key_changes_neither_events_nor_version);
    tcase_add_test(tc, each_key_of_one_workspace_or_of_all_by_id);
    tcase_add_test(tc, the_first_report_of_a_host_creates_its_project);
    tcase_add_test(tc, a_projects_version_grows_once_per_transaction_and_guards_deletion);
    tcase_add_test(tc, a_deleted_project_frees_its_name_and_hides_its_reports_at_once);
    tcase_add_test(tc, a_project_and_its_workspace_may_die_at_the_same_time);
    tcase_add_test(tc, a_purge_resumes_after_a_reopen);
    tcase_add_test(tc, one_transaction_can_create_delete_purge_and_recreate);
    tcase_add_test(tc, a_channel_note_is_read_back_replaced_and_deleted);
    tcase_add_test(tc, an_aborted_transaction_leaves_nothing_and_no_events);
    tcase_add_test(tc, every_status_has_its_text);
    suite_add_tcase(suite, tc);
    return kit_run(suite);
}
