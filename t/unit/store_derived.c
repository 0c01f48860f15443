/*
 * Every key space is a record, derived from records, or the index of reports. Derived spaces are
 * rebuilt from records with equal content, after any changes and wherever a purge or an erasure was
 * interrupted.
 */
#include "t/kit/store_widget.h"

#include "store/engine/derived.h"
#include "store/engine/snapshot.h"
#include "store/engine/txn.h"

/* ---- what derived spaces hold ---- */

static void take_space(MDB_txn *txn, enum space space, struct buf *out)
{
    struct cursor w;
    enum store_status status = cursor_begin(kit.s, txn, &w, space);
    for (; status == STORE_OK; status = cursor_next(&w)) {
        buf_add(out, &w.k.mv_size, sizeof(w.k.mv_size));
        buf_add(out, w.k.mv_data, w.k.mv_size);
        buf_add(out, &w.v.mv_size, sizeof(w.v.mv_size));
        buf_add(out, w.v.mv_data, w.v.mv_size);
    }
    cursor_end(&w);
    ck_status(status, STORE_NOT_FOUND);
}

/* Rows of the spaces of that kind, after the number of the space. */
static struct buf take_kind(enum space_kind kind)
{
    MDB_txn *txn;
    struct buf out = {0};
    ck_status(store_snapshot(kit.s, &txn), STORE_OK);
    for (unsigned space = 0; space < SPACE_COUNT; space++) {
        if (derived_kinds[space] != kind)
            continue;
        buf_add(&out, &space, sizeof(space));
        take_space(txn, (enum space)space, &out);
    }
    store_read_end(kit.s);
    ck_assert(buf_ok(&out));
    return out;
}

static bool is_as_before(const struct buf *before, enum space_kind kind)
{
    struct buf now = take_kind(kind);
    bool same = str_eq(buf_view(before), buf_view(&now));
    buf_free(&now);
    return same;
}

/* The lists of every workspace, one after the other. */
static struct buf take_lists(void)
{
    struct buf out = {0};
    for (uint64_t w = 1; w <= 4; w++)
        for (unsigned sort = REPORT_BY_ID; sort <= REPORT_BY_SCORE; sort++) {
            struct store_list_query q = {
                .workspace = w, .sort = sort, .ascending = w % 2, .page = 1, .per_page = 1000};
            struct kit_list l = kit_reports(kit.s, &q);
            ck_status(l.status, STORE_OK);
            for (size_t i = 0; i < l.count; i++)
                buf_add(&out, &l.reports[i].id, sizeof(l.reports[i].id));
            store_read_end(kit.s);
        }
    return out;
}

static void expect_rebuilt(void)
{
    struct buf derived = take_kind(SPACE_IS_DERIVED), records = take_kind(SPACE_IS_RECORD);
    struct buf lists = take_lists();
    kit_check_clean(kit.s);
    ck_status(store_rebuild(kit.s, true, NULL, NULL), STORE_OK);
    kit_check_clean(kit.s);
    ck_assert(is_as_before(&derived, SPACE_IS_DERIVED));
    struct buf now = take_lists();
    ck_assert(str_eq(buf_view(&lists), buf_view(&now)));
    ck_assert(is_as_before(&records, SPACE_IS_RECORD));
    buf_free(&now);
    buf_free(&lists);
    buf_free(&derived);
    buf_free(&records);
}

/* ---- random changes ---- */

static uint64_t seed;
static struct visitor visitors[40];
static size_t visitor_count;
static struct ulid agents[6];
static size_t agent_count;
static uint64_t report_count, operator;

static unsigned pick(unsigned n)
{
    return (unsigned)(kit_random(&seed) % n);
}

static uint64_t some_workspace(void)
{
    return 1 + pick(4);
}

static void new_report(void)
{
    static const char *const names[] = {"a.com", "b.com", "c.com", "a name with spaces"};
    char url[64], idem[32], body[32] = {0};
    snprintf(url, sizeof(url), "https://host-%u.com/%u", pick(9), pick(1000));
    struct store_change c = kit_create_change(some_workspace(), url, names[pick(4)]);
    memset(idem, (int)pick(100), sizeof(idem));
    if (pick(3) == 0) {
        c.idem_key = (struct str){idem, sizeof(idem)};
        c.idem_body = (struct str){body, sizeof(body)};
    }
    report_count += kit_apply(&kit, &c).status == STORE_OK;
}

static void grade_report(void)
{
    if (report_count == 0)
        return;
    uint64_t id = 1 + pick((unsigned)report_count);
    kit_apply(&kit, &(struct store_change){.kind = CHANGE_REPORT_UPDATE,
                                           .workspace = some_workspace(),
                                           .id = id,
                                           .fields = CHANGE_REGENERATE});
    struct store_change c = kit_done_change(id, 1 + pick(2), (int)pick(101));
    kit_apply(&kit, &c);
}

static void delete_report(void)
{
    kit_apply(&kit, &(struct store_change){.kind = CHANGE_REPORT_DELETE,
                                           .workspace = some_workspace(),
                                           .id = 1 + pick(200)});
}

static void delete_project(void)
{
    kit_apply(&kit, &(struct store_change){.kind = CHANGE_PROJECT_DELETE,
                                           .workspace = some_workspace(),
                                           .id = 1 + pick(12)});
}

static void keys(void)
{
    static uint8_t number;
    if (pick(3) != 0)
        kit_apply(&kit, &(struct store_change){.kind = CHANGE_KEY_REVOKE, .id = 1 + pick(9)});
    else if (number < 200)
        kit_key(&kit, 1, ++number);
}

static void new_visitor(void)
{
    if (visitor_count < 40 && agent_count != 0)
        visitors[visitor_count++] = visitor_of(&agents[pick((unsigned)agent_count)]);
}

static struct visitor *some_visitor(void)
{
    return visitor_count == 0 ? NULL : &visitors[pick((unsigned)visitor_count)];
}

static void add_conversation(void)
{
    static const char *const kinds[] = {"opened", "clicked", NULL};
    static const char *const emails[] = {"a@b", "c@d", "e@f"};
    static const uint32_t sets[] = {CONVERSATION_SET_CLOSED, CONVERSATION_SET_HUMAN,
                                    CONVERSATION_SET_CLEARED, CONVERSATION_SET_CLAIMED};
    struct visitor *v = some_visitor();
    if (v == NULL)
        return;
    switch (pick(6)) {
    case 0:
        post(v, "walrus");
        break;
    case 1:
        lead(v, emails[pick(3)], "Ann");
        break;
    case 2:
        events(v, kinds);
        break;
    case 3:
        rate(v, 1 + (int32_t)pick(5), "good");
        break;
    case 4:
        set(v, sets[pick(3)]);
        break;
    default:
        operate(operator, & v->conversation, sets[pick(4)]);
    }
}

static void erase(void)
{
    struct visitor *v = some_visitor();
    if (v != NULL && pick(4) == 0)
        kit_apply(&kit, &(struct store_change){.kind = CHANGE_VISITOR_ERASE, OF(v)});
    else if (agent_count > 1 && pick(9) == 0)
        kit_apply(&kit, &(struct store_change){.kind = CHANGE_AGENT_DELETE,
                                               .agent = agents[--agent_count]});
}

static void sync_batch(void)
{
    struct buf items = {0};
    uint8_t hash[16] = {(uint8_t)pick(200)};
    const struct store_synced d = {.title = STR("A page"),
                                   .text = STR("of some words"),
                                   .url = STR("https://a.com/"),
                                   .price = MONEY_NONE};
    static const char *const sites[] = {"a.com", "b.com"};
    if (agent_count == 0)
        return;
    sync_pack(&items, SYNC_UPSERT, 1 + pick(20), hash, 0, &d);
    kit_apply(&kit, &(struct store_change){.kind = CHANGE_SYNC,
                                           .workspace = 1,
                                           .agent = agents[0],
                                           .name = str_of(sites[pick(2)]),
                                           .status = SYNCED_POST,
                                           .text = STR(""),
                                           .data = buf_view(&items)});
    buf_free(&items);
}

/* Some of the background work, interrupted. */
static void background(void)
{
    kit.now += pick(4) == 0 ? 26 * HOUR : 0; /* the idempotency keys have expired */
    for (unsigned i = pick(6); i > 0; i--)
        kit_apply(&kit, &(struct store_change){.kind = CHANGE_PURGE, .limit = 1 + pick(5)});
    kit_maintain(&kit, 1 + pick(9), pick(12));
}

/* Columns: the action, its frequency in percent. */
static const struct {
    void (*act)(void);
    unsigned often;
} acts[] = {{new_report, 30}, {grade_report, 15}, {delete_report, 5},     {delete_project, 3},
            {keys, 4},        {new_visitor, 6},   {add_conversation, 24}, {erase, 3},
            {sync_batch, 5},  {background, 5}};

static void act(void)
{
    unsigned dice = pick(100), at = 0;
    for (size_t i = 0; i < sizeof(acts) / sizeof(*acts); i++) {
        at += acts[i].often;
        if (dice < at) {
            acts[i].act();
            return;
        }
    }
}

static void begin(void)
{
    kit_segment_rows = 64;
    kit_ngram_block_shift = 6;
    kit_log_entries = 10;
    widget_begin(); /* workspace 1 and an agent */
    seed = 7;
    visitor_count = agent_count = 0;
    report_count = 0;
    agents[agent_count++] = agent;
    for (int i = 2; i <= 4; i++) {
        char name[8];
        snprintf(name, sizeof(name), "w%d", i);
        ck_assert_uint_eq(kit_workspace(&kit, name), (uint64_t)i);
        agents[agent_count++] = agent_new((uint64_t)i);
    }
    operator= kit_key(&kit, 1, 250);
}

static void end(void)
{
    widget_end();
    kit_segment_rows = kit_ngram_block_shift = kit_log_entries = 0;
}

START_TEST(derived_rows_are_rebuilt_equal_after_any_changes)
{
    seed = (uint64_t)_i * 7919 + 3;
    for (int i = 0; i < 300; i++) {
        act();
        if (i % 60 == 59)
            expect_rebuilt();
    }
    ck_status(kit_status(&kit, &(struct store_change){.kind = CHANGE_WORKSPACE_DELETE, .id = 2}),
              STORE_OK);
    for (int i = 0; i < 8; i++) {
        background();
        expect_rebuilt();
    }
    kit_purge(&kit, 100);
    expect_rebuilt();
}
END_TEST

START_TEST(every_space_exists_and_every_derived_row_has_a_record)
{
    unsigned kinds[4] = {0};
    for (unsigned space = 0; space < SPACE_COUNT; space++) {
        kinds[derived_kinds[space]]++;
        ck_assert(!derived_has_rows((enum space)space) || derived_kinds[space] == SPACE_IS_RECORD);
    }
    ck_assert(kinds[SPACE_IS_RECORD] > 20 && kinds[SPACE_IS_DERIVED] > 10 &&
              kinds[SPACE_IS_INDEX] == 5 && kinds[SPACE_IS_LOCAL] == 3);
}
END_TEST

START_TEST(lost_and_wrong_rows_are_repaired)
{
    struct store_txn *t;
    for (int i = 0; i < 200; i++)
        act();
    struct buf derived = take_kind(SPACE_IS_DERIVED);
    ck_status(store_begin(kit.s, &t), STORE_OK);
    for (unsigned space = 0; space < SPACE_COUNT; space++) {
        struct cursor w = {0};
        struct key k = {.n = 0};
        if (derived_kinds[space] != SPACE_IS_DERIVED)
            continue;
        if (cursor_begin(kit.s, t->mdb, &w, (enum space)space) == STORE_OK)
            key_bytes(&k, w.k.mv_data, w.k.mv_size);
        cursor_end(&w);
        if (k.n != 0)
            txn_del(t, (enum space)space, &k);
    }
    ck_status(store_commit(t), STORE_OK);
    ck_assert_uint_gt(kit_problems(kit.s), 5);
    ck_status(store_rebuild(kit.s, true, NULL, NULL), STORE_OK);
    kit_check_clean(kit.s);
    ck_assert(is_as_before(&derived, SPACE_IS_DERIVED));
    buf_free(&derived);
}
END_TEST

/* The last row of a space. */
static void last_row(enum space space, struct key *k, struct buf *value)
{
    MDB_txn *txn;
    struct cursor w = {0};
    ck_status(store_snapshot(kit.s, &txn), STORE_OK);
    enum store_status status = cursor_begin(kit.s, txn, &w, space);
    for (; status == STORE_OK; status = cursor_next(&w)) {
        k->n = 0;
        key_bytes(k, w.k.mv_data, w.k.mv_size);
        buf_reset(value);
        buf_add(value, w.v.mv_data, w.v.mv_size);
    }
    cursor_end(&w);
    store_read_end(kit.s);
    ck_assert_uint_gt(value->n, 4);
}

static void set_row(enum space space, struct key *k, const char *value, size_t n)
{
    struct store_txn *t;
    ck_status(store_begin(kit.s, &t), STORE_OK);
    txn_put(t, space, k, value, n);
    ck_status(store_commit(t), STORE_OK);
}

START_TEST(a_malformed_record_deletes_no_row)
{
    static const enum space spaces[] = {SPACE_WORKSPACE, SPACE_VISITOR, SPACE_KEY};
    for (int i = 0; i < 200; i++)
        act();
    struct buf derived = take_kind(SPACE_IS_DERIVED), value = {0};
    struct key k = {.n = 0};
    last_row(spaces[_i], &k, &value);
    set_row(spaces[_i], &k, value.p, 4);
    ck_status(store_rebuild(kit.s, true, NULL, NULL), STORE_CORRUPT);
    ck_assert_ptr_nonnull(strstr(store_why(kit.s), "a record with derived rows"));
    ck_assert(is_as_before(&derived, SPACE_IS_DERIVED));
    set_row(spaces[_i], &k, value.p, value.n);
    buf_free(&value);
    buf_free(&derived);
}
END_TEST

static bool stop(void *arg, uint64_t done, uint64_t total)
{
    (void)total;
    return done < *(uint64_t *)arg;
}

/* More workspaces than one pass over the reports handles. */
START_TEST(an_interrupted_rebuild_of_small_workspaces_resumes)
{
    enum { WORKSPACES = 4500 };
    uint64_t steps = 100;
    for (unsigned i = 0; i < WORKSPACES; i++) {
        char name[16];
        snprintf(name, sizeof(name), "many-%u", i);
        uint64_t w = kit_workspace(&kit, name);
        struct store_change c = kit_create_change(w, "https://a.com/", "a.com");
        ck_status(kit_status(&kit, &c), STORE_OK);
    }
    struct buf derived = take_kind(SPACE_IS_DERIVED);
    ck_status(store_rebuild(kit.s, true, stop, &steps), STORE_AGAIN);
    ck_status(store_rebuild(kit.s, true, NULL, NULL), STORE_OK);
    ck_assert(is_as_before(&derived, SPACE_IS_DERIVED));
    kit_check_clean(kit.s);
    buf_free(&derived);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("store_derived");
    TCase *tc = tcase_create("derived");
    tcase_add_checked_fixture(tc, begin, end);
    tcase_set_timeout(tc, 60);
    tcase_add_test(tc, every_space_exists_and_every_derived_row_has_a_record);
    tcase_add_loop_test(tc, derived_rows_are_rebuilt_equal_after_any_changes, 0, 6);
    tcase_add_test(tc, lost_and_wrong_rows_are_repaired);
    tcase_add_loop_test(tc, a_malformed_record_deletes_no_row, 0, 3);
    tcase_add_test(tc, an_interrupted_rebuild_of_small_workspaces_resumes);
    suite_add_tcase(suite, tc);
    return kit_run(suite);
}
