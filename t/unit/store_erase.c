/*
 * Erasure of visitors' data: every byte, with its agent or workspace, or after the retention time;
 * and leads that several visitors share.
 */
#include "t/kit/store_widget.h"

#include "store/engine/txn.h"

/* ---- erasure ---- */

static size_t bytes_found(const char *pattern, size_t n)
{
    MDB_env *env;
    MDB_txn *txn;
    size_t found = 0;
    store_close(kit.s);
    ck_assert_int_eq(mdb_env_create(&env), 0);
    mdb_env_set_maxdbs(env, DB_COUNT);
    ck_assert_int_eq(mdb_env_open(env, kit.dir, MDB_RDONLY, 0600), 0);
    ck_assert_int_eq(mdb_txn_begin(env, NULL, MDB_RDONLY, &txn), 0);
    for (int db = 0; db < DB_COUNT; db++) {
        MDB_dbi dbi;
        MDB_cursor *cursor;
        MDB_val k, v;
        ck_assert_int_eq(mdb_dbi_open(txn, schema_db_names[db], 0, &dbi), 0);
        ck_assert_int_eq(mdb_cursor_open(txn, dbi, &cursor), 0);
        while (mdb_cursor_get(cursor, &k, &v, MDB_NEXT) == 0)
            found += (memmem(k.mv_data, k.mv_size, pattern, n) != NULL) +
                     (v.mv_size > 0 && memmem(v.mv_data, v.mv_size, pattern, n) != NULL);
        mdb_cursor_close(cursor);
    }
    mdb_txn_abort(txn);
    mdb_env_close(env);
    kit.s = kit_store(kit.dir, STORE_WRITE, MAP_BYTES);
    return found;
}

/* the operator's view of the only lead */
static const char *only_lead(void)
{
    static struct texts t;
    t = rows(ROWS_LEADS, (struct store_rows_query){.limit = 10});
    ck_assert_uint_eq(t.count, 1);
    return t.text[0];
}

START_TEST(a_shared_lead_distinguishes_its_senders)
{
    struct visitor v = visitor_new(), w = visitor_new();
    ck_assert_uint_eq(lead(&v, "a@b", "Ann").code, 201);
    ck_assert_uint_eq(lead(&w, "a@b", "Bea").code, 200);
    ck_assert_str_eq(only_lead(), "a@b Ann 555-walrus {\"x\":1}, a@b Bea 555-walrus {\"x\":1}");
    lead(&w, "a@b", "Cleo"); /* each changes its own part */
    ck_assert_str_eq(only_lead(), "a@b Ann 555-walrus {\"x\":1}, a@b Cleo 555-walrus {\"x\":1}");
    lead(&v, "a@b", "Anna");
    ck_assert_str_eq(only_lead(), "a@b Anna 555-walrus {\"x\":1}, a@b Cleo 555-walrus {\"x\":1}");
    kit_check_clean(kit.s);
}
END_TEST

START_TEST(erasing_a_sender_removes_its_part_of_a_shared_lead)
{
    struct visitor both[] = {visitor_new(), visitor_new()};
    lead(&both[0], "a@b", "Ann");
    lead(&both[1], "a@b", "Bea");
    ck_status(kit_status(&kit, &(struct store_change){.kind = CHANGE_VISITOR_ERASE, OF(&both[_i])}),
              STORE_OK);
    ck_assert_str_eq(only_lead(),
                     _i == 0 ? "a@b Bea 555-walrus {\"x\":1}" : "a@b Ann 555-walrus {\"x\":1}");
    ck_assert_uint_eq(bytes_found(_i == 0 ? "Ann" : "Bea", 3), 0);
    ck_assert_uint_eq(bytes_found((const char *)both[_i].id.b, ULID_BYTES), 0);
    kit_check_clean(kit.s);
    ck_status(
        kit_status(&kit, &(struct store_change){.kind = CHANGE_VISITOR_ERASE, OF(&both[1 - _i])}),
        STORE_OK);
    ck_assert_uint_eq(rows(ROWS_LEADS, (struct store_rows_query){.limit = 10}).count, 0);
    struct visitor next = visitor_new();
    ck_assert_uint_eq(lead(&next, "a@b", "Eve").code, 201);
    kit_check_clean(kit.s);
}
END_TEST

/*
 * Directly: the lead's record becomes ${bytes}, and its old value is copied to ${was}, of the size
 * of ${room}.
 */
static size_t lead_replace(const struct ulid *id, MDB_val bytes, char *was, size_t room)
{
    MDB_env *env;
    MDB_txn *txn;
    MDB_dbi dbi;
    struct key k;
    MDB_val v;
    store_close(kit.s);
    key_space(&k, SPACE_LEAD);
    key_bytes(&k, id->b, ULID_BYTES);
    MDB_val key = key_val(&k);
    ck_assert_int_eq(mdb_env_create(&env), 0);
    mdb_env_set_maxdbs(env, DB_COUNT);
    ck_assert_int_eq(mdb_env_open(env, kit.dir, 0, 0600), 0);
    ck_assert_int_eq(mdb_txn_begin(env, NULL, 0, &txn), 0);
    ck_assert_int_eq(mdb_dbi_open(txn, schema_db_names[schema_space_db[SPACE_LEAD]], 0, &dbi), 0);
    ck_assert_int_eq(mdb_get(txn, dbi, &key, &v), 0);
    const size_t n = v.mv_size;
    ck_assert_uint_le(n, room);
    memcpy(was, v.mv_data, n);
    ck_assert_int_eq(mdb_put(txn, dbi, &key, &bytes, 0), 0);
    ck_assert_int_eq(mdb_txn_commit(txn), 0);
    mdb_env_close(env);
    kit.s = kit_store(kit.dir, STORE_WRITE, MAP_BYTES);
    return n;
}

START_TEST(a_truncated_lead_is_invalid)
{
    char whole[1024], was[1024];
    struct visitor v = visitor_new(), w = visitor_new();
    lead(&v, "a@b", "Ann");
    struct ulid id = lead(&w, "a@b", "Bea").first;
    const size_t length = lead_replace(&id, (MDB_val){1, "x"}, whole, sizeof(whole));
    for (size_t n = 0; n < length; n++) {
        lead_replace(&id, (MDB_val){n, whole}, was, sizeof(was));
        ck_assert_uint_eq(rows(ROWS_LEADS, (struct store_rows_query){.limit = 10}).count, 0);
    }
    lead_replace(&id, (MDB_val){length, whole}, was, sizeof(was));
    ck_assert_str_eq(only_lead(), "a@b Ann 555-walrus {\"x\":1}, a@b Bea 555-walrus {\"x\":1}");
    kit_check_clean(kit.s);
}
END_TEST

START_TEST(many_senders_do_not_evict_the_first)
{
    struct visitor first = visitor_new(), last = first;
    lead(&first, "a@b", "Ann");
    for (int i = 0; i < 20; i++) {
        char name[8];
        last = visitor_new();
        snprintf(name, sizeof(name), "n%d.", i);
        ck_assert_uint_eq(lead(&last, "a@b", name).code, 200);
    }
    const char *shown = only_lead();
    size_t senders = 0;
    for (const char *at = shown; (at = strstr(at, "a@b")) != NULL; at++)
        senders++;
    ck_assert_msg(strncmp(shown, "a@b Ann ", 8) == 0 && strstr(shown, " n19. ") && senders == 8,
                  "%s", shown);
    kit_check_clean(kit.s);
    ck_status(kit_status(&kit, &(struct store_change){.kind = CHANGE_AGENT_DELETE, .agent = agent}),
              STORE_OK);
    kit_purge(&kit, 3);
    ck_assert_uint_eq(bytes_found("a@b", 3), 0);
}
END_TEST

/* A visitor with records of every kind. */
static struct visitor talkative(void)
{
    struct visitor v = visitor_new();
    char key[32] = "idem giraffe", body[32] = "idem body";
    struct store_change c = {.kind = CHANGE_MESSAGE_POST,
                             OF(&v),
                             .text = STR("I am a walrus"),
                             .client_id = STR("client-giraffe"),
                             .url = STR("https://shop.example/zebra"),
                             .data = STR("{\"title\":\"ocelot\"}"),
                             .answer = STR("dear walrus"),
                             .idem_key = {key, 32},
                             .idem_body = {body, 32}};
    ck_status(kit_status(&kit, &c), STORE_OK);
    lead(&v, "walrus@example.com", "Wally Walrus");
    events(&v, (const char *const[]){"page.walrus", NULL});
    rate(&v, 2, "walruses deserve better");
    char note_key[32] = "idem heron";
    const struct store_change note = {.kind = CHANGE_NOTE,
                                      .workspace = workspace,
                                      .id = 7,
                                      .conversation = v.conversation,
                                      .name = STR("Otto Otter"),
                                      .text = STR("a heron, not a walrus"),
                                      .idem_key = {note_key, 32},
                                      .idem_body = {body, 32}};
    ck_status(kit_status(&kit, &note), STORE_OK);
    const struct store_change stage = {.kind = CHANGE_COUPON_PENDING,
                                       OF(&v),
                                       .text = STR("walrus20"),
                                       .expires_at = kit.now + HOUR};
    ck_status(kit_status(&kit, &stage), STORE_OK);
    return v;
}

START_TEST(erasure_leaves_no_byte_of_the_visitor)
{
    static const char *const patterns[] = {"walrus", "Walrus", "giraffe",  "zebra", "zulu",
                                           "ocelot", "secret", "walrus20", "Otter", "heron"};
    struct visitor v = talkative();
    kit.now += 2 * DAY;
    char next[32];
    /* a second conversation of the same visitor */
    struct store_answer second = init_try(&agent, v.secret, next);
    ck_assert(!ulid_eq(&second.first, &v.conversation));
    for (size_t i = 0; i < sizeof(patterns) / sizeof(*patterns); i++)
        ck_assert_msg(bytes_found(patterns[i], strlen(patterns[i])) > 0, "%s never existed",
                      patterns[i]);
    const struct store_change erase = {
        .kind = CHANGE_VISITOR_ERASE, .agent = v.agent, .visitor = v.id};
    ck_status(kit_status(&kit, &erase), STORE_OK);
    for (size_t i = 0; i < sizeof(patterns) / sizeof(*patterns); i++)
        ck_assert_msg(bytes_found(patterns[i], strlen(patterns[i])) == 0, "%s still exists",
                      patterns[i]);
    const struct ulid *ids[] = {&v.id, &v.conversation, &second.first};
    for (size_t i = 0; i < 3; i++)
        /* the last id is stored as such */
        ck_assert_uint_eq(bytes_found((const char *)ids[i]->b, ULID_BYTES), i == 2 ? 1 : 0);
    ck_status(session(&agent, &v.id, &v.conversation), STORE_NOT_FOUND);
    ck_status(kit_status(&kit, &erase), STORE_NOT_FOUND);
    for (int kind = ROWS_CONVERSATIONS; kind <= ROWS_RATINGS; kind++)
        ck_assert_uint_eq(rows((enum store_rows)kind, (struct store_rows_query){.limit = 9}).count,
                          0);
}
END_TEST

START_TEST(erasing_one_visitor_keeps_the_others)
{
    struct visitor v = talkative(), w = visitor_new();
    post(&w, "an otter");
    lead(&w, "otter@example.com", "O");
    ck_status(kit_status(&kit, &(struct store_change){.kind = CHANGE_VISITOR_ERASE, OF(&v)}),
              STORE_OK);
    ck_status(session(&agent, &w.id, &w.conversation), STORE_OK);
    ck_assert_uint_eq(messages(&w.conversation, NULL, NULL, false, 9).count, 2);
    ck_assert_uint_eq(rows(ROWS_LEADS, (struct store_rows_query){.limit = 9}).count, 1);
    ck_status(kit_status(&kit, &(struct store_change){.kind = CHANGE_VISITOR_ERASE,
                                                      .agent = w.id,
                                                      .visitor = w.id}),
              STORE_NOT_FOUND);
}
END_TEST

START_TEST(a_large_visitor_is_invisible_at_once_and_deleted_in_batches)
{
    struct visitor v = visitor_new();
    struct store_txn *t;
    struct store_answer a;
    store_read_end(kit.s);
    ck_status(store_begin(kit.s, &t), STORE_OK);
    for (int i = 0; i < 1500; i++) {
        store_apply(
            t,
            &(struct store_change){
                .kind = CHANGE_MESSAGE_POST, OF(&v), .text = STR("walrus"), .answer = STR("a")},
            kit.now, &a);
        ck_status(a.status, STORE_OK);
    }
    ck_status(store_commit(t), STORE_OK);
    events(&v, (const char *const[]){"page.walrus", NULL});
    ck_status(kit_status(&kit, &(struct store_change){.kind = CHANGE_VISITOR_ERASE, OF(&v)}),
              STORE_OK);
    size_t count;
    const struct store_event *e = store_events(kit.s, &count);
    bool purge = false;
    for (size_t i = 0; i < count; i++)
        purge |= e[i].kind == EVENT_PURGE;
    ck_assert(purge);
    ck_assert_uint_eq(rows(ROWS_CONVERSATIONS, (struct store_rows_query){.limit = 9}).count, 0);
    ck_assert_uint_eq(rows(ROWS_EVENTS, (struct store_rows_query){.limit = 9}).count, 0);
    ck_assert_uint_eq(conversation(&v.conversation).version, 0);
    ck_status(session(&agent, &v.id, &v.conversation), STORE_NOT_FOUND);
    kit_check_clean(kit.s);
    ck_assert_uint_ge(kit_purge(&kit, 100), 15);
    ck_assert_uint_eq(bytes_found("walrus", 6), 0);
}
END_TEST

static bool stop_always(void *arg)
{
    (void)arg;
    return true;
}

START_TEST(an_erasure_completes_while_maintenance_stops)
{
    struct visitor v = talkative();
    struct store_txn *t;
    struct store_answer a;
    store_read_end(kit.s);
    ck_status(store_begin(kit.s, &t), STORE_OK);
    store_txn_stop_when(t, stop_always, NULL);
    store_apply(t, &(struct store_change){.kind = CHANGE_VISITOR_ERASE, OF(&v)}, kit.now, &a);
    ck_status(a.status, STORE_OK);
    ck_status(store_commit(t), STORE_OK);
    ck_assert_uint_eq(bytes_found("walrus", 6), 0);
    ck_assert_uint_eq(kit_purge(&kit, 100), 0);
}
END_TEST

START_TEST(deleting_an_agent_deletes_its_visitors)
{
    struct visitor v = talkative();
    struct ulid other = agent_new(workspace);
    struct visitor w = visitor_of(&other);
    ck_status(kit_status(&kit, &(struct store_change){.kind = CHANGE_AGENT_DELETE, .agent = agent}),
              STORE_OK);
    ck_status(session(&agent, &v.id, &v.conversation), STORE_NOT_FOUND);
    for (int kind = ROWS_LEADS; kind <= ROWS_RATINGS; kind++)
        ck_assert_uint_eq(rows((enum store_rows)kind, (struct store_rows_query){.limit = 9}).count,
                          0);
    kit_check_clean(kit.s);
    kit_purge(&kit, 3);
    ck_assert_uint_eq(bytes_found("walrus", 6), 0);
    ck_status(session(&other, &w.id, &w.conversation), STORE_OK);
}
END_TEST

/*
 * A list skips at most as many of them at once as it may while others wait, and continues after
 * them.
 */
START_TEST(rows_of_a_deleted_agent_are_skipped_in_batches)
{
    enum { EVENTS = 50, BATCHES = 20, AT_ONCE = 200 };
    const char *kinds[EVENTS + 1] = {NULL};
    struct visitor stays = visitor_new();
    events(&stays, (const char *const[]){"page.first", NULL});
    struct ulid other = agent_new(workspace);
    struct visitor goes = visitor_of(&other);
    for (int i = 0; i < EVENTS; i++)
        kinds[i] = "page.gone";
    for (int i = 0; i < BATCHES; i++)
        events(&goes, kinds);
    ck_status(kit_status(&kit, &(struct store_change){.kind = CHANGE_AGENT_DELETE,
                                                      .agent = other,
                                                      .workspace = workspace}),
              STORE_OK);
    struct store_rows_query q = {.limit = 10};
    struct texts t = rows(ROWS_EVENTS, q);
    for (int pages = 1; pages < EVENTS * BATCHES / AT_ONCE; pages++) {
        ck_assert_uint_eq(t.count, 1);
        ck_assert_str_eq(t.text[0], ""); /* no row: where to continue */
        ck_status(t.end, STORE_OK);
        q.after = t.id[0];
        t = rows(ROWS_EVENTS, q);
    }
    q.after = t.id[0];
    t = rows(ROWS_EVENTS, q);
    ck_assert_uint_eq(t.count, 1);
    ck_assert_str_ne(t.text[0], "");
    ck_status(t.end, STORE_NOT_FOUND);
}
END_TEST

START_TEST(an_erasure_does_not_wait_for_the_purge_of_a_large_project)
{
    enum { REPORTS = 300, SLICES = 60, LIMIT = 3 };
    struct store_project p;
    for (int i = 0; i < REPORTS; i++)
        kit_create(&kit, workspace, "https://a.com/x", "a.com");
    talkative();
    ck_status(kit_project(kit.s, workspace, "a.com", &p), STORE_OK);
    store_read_end(kit.s);
    ck_status(kit_status(&kit, &(struct store_change){.kind = CHANGE_PROJECT_DELETE,
                                                      .workspace = workspace,
                                                      .id = p.id}),
              STORE_OK);
    ck_status(kit_status(&kit, &(struct store_change){.kind = CHANGE_AGENT_DELETE, .agent = agent}),
              STORE_OK);
    enum store_status status = STORE_OK;
    for (int i = 0; i < SLICES && status == STORE_OK; i++) {
        kit_maintain(&kit, LIMIT, 1);
        status = kit_status(&kit, &(struct store_change){.kind = CHANGE_PURGE, .limit = LIMIT});
    }
    ck_status(status, STORE_NOT_FOUND);
    ck_assert_uint_eq(bytes_found("walrus", 6), 0);
    kit_purge(&kit, LIMIT);
}
END_TEST

START_TEST(a_deleted_workspace_leaves_nothing)
{
    talkative();
    ck_status(
        kit_status(&kit, &(struct store_change){.kind = CHANGE_WORKSPACE_DELETE, .id = workspace}),
        STORE_OK);
    kit_purge(&kit, 3);
    ck_assert_uint_eq(bytes_found("walrus", 6), 0);
    ck_assert_uint_eq(bytes_found((const char *)agent.b, ULID_BYTES), 0);
}
END_TEST

/*
 * The purge of the workspace does not wait for the erasure of an agent that was deleted before it.
 *
 * Cause of the bug: until that erasure was complete, the check reported records of a workspace that
 * does not exist.
 */
START_TEST(records_of_a_deleted_agent_may_outlive_their_workspace)
{
    talkative();
    ck_status(kit_status(&kit, &(struct store_change){.kind = CHANGE_AGENT_DELETE, .agent = agent}),
              STORE_OK);
    ck_status(
        kit_status(&kit, &(struct store_change){.kind = CHANGE_WORKSPACE_DELETE, .id = workspace}),
        STORE_OK);
    kit_maintain(&kit, 100, 100);
    ck_status(kit_get_workspace(kit.s, workspace, NULL), STORE_NOT_FOUND);
    ck_assert_uint_gt(bytes_found("walrus", 6), 0);
    kit_check_clean(kit.s);
    kit_purge(&kit, 3);
    ck_assert_uint_eq(bytes_found("walrus", 6), 0);
    kit_check_clean(kit.s);
}
END_TEST

/* ---- retention ---- */

static unsigned retain(uint32_t what, int64_t before, uint64_t limit)
{
    unsigned batches = 0;
    enum store_status status;
    while ((status = kit_status(&kit, &(struct store_change){.kind = CHANGE_RETAIN,
                                                             .fields = what,
                                                             .expires_at = before,
                                                             .limit = limit})) == STORE_OK)
        batches++;
    ck_status(status, STORE_NOT_FOUND);
    return batches;
}

START_TEST(expired_data_is_deleted_in_batches_and_the_rest_stays)
{
    struct visitor old = talkative();
    for (int i = 0; i < 5; i++)
        events(&old, (const char *const[]){"a", "b", NULL});
    kit.now += 10 * DAY;
    struct visitor young = visitor_new();
    events(&young, (const char *const[]){"young", NULL});
    ck_assert_uint_ge(retain(RETAIN_EVENTS, kit.now - DAY, 3), 4);
    ck_assert_uint_eq(rows(ROWS_EVENTS, (struct store_rows_query){.limit = 20}).count, 1);
    ck_assert_uint_eq(rows(ROWS_CONVERSATIONS, (struct store_rows_query){.limit = 20}).count, 2);
    ck_assert_uint_ge(retain(RETAIN_CONVERSATIONS, kit.now - DAY, 2), 1);
    ck_assert_uint_eq(rows(ROWS_CONVERSATIONS, (struct store_rows_query){.limit = 20}).count, 1);
    ck_status(session(&agent, &young.id, &young.conversation), STORE_OK);
    ck_status(session(&agent, &old.id, &old.conversation), STORE_NOT_FOUND);
    /* a lead and a rating survive the conversation, and their visitor stays known */
    ck_assert_uint_eq(rows(ROWS_LEADS, (struct store_rows_query){.limit = 20}).count, 1);
}
END_TEST

START_TEST(a_visitor_without_data_is_deleted_at_any_batch_end)
{
    struct visitor v = visitor_new();
    char next[32];
    post(&v, "x");
    if (_i >= 2)
        events(&v, (const char *const[]){"a", "b", NULL});
    kit.now += 10 * DAY;
    retain(RETAIN_CONVERSATIONS, kit.now - DAY, _i % 2 == 0 ? 100 : 1);
    retain(RETAIN_EVENTS, kit.now - DAY, _i % 2 == 0 ? 100 : 1);
    ck_assert_uint_eq(bytes_found((const char *)v.id.b, ULID_BYTES), 0);
    ck_assert_uint_eq(init_try(&agent, v.secret, next).code, 1);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("store_erase");
    TCase *tc = tcase_create("widget");
    tcase_set_timeout(tc, 60);
    tcase_add_checked_fixture(tc, widget_begin, widget_end);
    tcase_add_test(tc, a_shared_lead_distinguishes_its_senders);
    tcase_add_loop_test(tc, erasing_a_sender_removes_its_part_of_a_shared_lead, 0, 2);
    tcase_add_test(tc, a_truncated_lead_is_invalid);
    tcase_add_test(tc, many_senders_do_not_evict_the_first);
    tcase_add_test(tc, erasure_leaves_no_byte_of_the_visitor);
    tcase_add_test(tc, erasing_one_visitor_keeps_the_others);
    tcase_add_test(tc, a_large_visitor_is_invisible_at_once_and_deleted_in_batches);
    tcase_add_test(tc, an_erasure_completes_while_maintenance_stops);
    tcase_add_test(tc, deleting_an_agent_deletes_its_visitors);
    tcase_add_test(tc, rows_of_a_deleted_agent_are_skipped_in_batches);
    tcase_add_test(tc, an_erasure_does_not_wait_for_the_purge_of_a_large_project);
    tcase_add_test(tc, a_deleted_workspace_leaves_nothing);
    tcase_add_test(tc, records_of_a_deleted_agent_may_outlive_their_workspace);
    tcase_add_test(tc, expired_data_is_deleted_in_batches_and_the_rest_stays);
    tcase_add_loop_test(tc, a_visitor_without_data_is_deleted_at_any_batch_end, 0, 4);
    suite_add_tcase(suite, tc);
    return kit_run(suite);
}
