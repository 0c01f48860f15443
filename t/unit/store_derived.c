/*
 * Every key space is a record, derived from records, or the index of reports. Derived spaces are
 * rebuilt from records with equal content, after any changes and wherever a purge or an erasure was
 * interrupted.
 */
#include "t/kit/store_random.h"

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

START_TEST(derived_rows_are_rebuilt_equal_after_any_changes)
{
    random_seed = (uint64_t)_i * 7919 + 3;
    for (int i = 0; i < 300; i++) {
        random_act();
        if (i % 20 == 19)
            random_background();
        if (i % 60 == 59)
            expect_rebuilt();
    }
    ck_status(kit_status(&kit, &(struct store_change){.kind = CHANGE_WORKSPACE_DELETE, .id = 2}),
              STORE_OK);
    for (int i = 0; i < 8; i++) {
        random_background();
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
        random_act();
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
        random_act();
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

START_TEST(an_interrupted_repair_changes_no_list)
{
    enum store_status status = STORE_AGAIN;
    uint64_t steps = 0;
    for (int i = 0; i < 300; i++)
        random_act();
    random_background();
    struct buf lists = take_lists();
    for (; status == STORE_AGAIN; steps++) {
        status = store_rebuild(kit.s, true, stop, &steps);
        struct buf now = take_lists();
        ck_assert(str_eq(buf_view(&lists), buf_view(&now)));
        kit_check_clean(kit.s);
        buf_free(&now);
    }
    ck_status(status, STORE_OK);
    ck_assert_uint_gt(steps, 4);
    buf_free(&lists);
}
END_TEST

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
    tcase_add_checked_fixture(tc, random_begin, random_end);
    tcase_set_timeout(tc, 60);
    tcase_add_test(tc, every_space_exists_and_every_derived_row_has_a_record);
    tcase_add_loop_test(tc, derived_rows_are_rebuilt_equal_after_any_changes, 0, 6);
    tcase_add_test(tc, lost_and_wrong_rows_are_repaired);
    tcase_add_loop_test(tc, a_malformed_record_deletes_no_row, 0, 3);
    tcase_add_test(tc, an_interrupted_repair_changes_no_list);
    tcase_add_test(tc, an_interrupted_rebuild_of_small_workspaces_resumes);
    suite_add_tcase(suite, tc);
    return kit_run(suite);
}
