/*
 * A store in a cluster: its position in the log, its id, its signing keys, and what it refuses
 * while it follows.
 */
#include "t/kit/store.h"

#include "store/maintenance.h"
#include "store/rows.h"

static struct kit kit;

static void setup(void)
{
    kit_open(&kit);
}

static void teardown(void)
{
    kit_close(&kit);
}

static struct store_position position(uint64_t sequence)
{
    struct store_position p = {.log = "a log", .sequence = sequence};
    memset(p.chain, (int)sequence, sizeof(p.chain));
    return p;
}

static struct store_txn *begun(void)
{
    struct store_txn *t;
    store_read_end(kit.s);
    ck_status(store_begin(kit.s, &t), STORE_OK);
    return t;
}

static void expect_position(uint64_t sequence)
{
    struct store_position p, expected = position(sequence);
    store_read_end(kit.s);
    ck_status(store_position_get(kit.s, &p), STORE_OK);
    ck_assert_mem_eq(&p, &expected, sizeof(p));
}

static void set_position(struct store_txn *t, uint64_t sequence)
{
    const struct store_position p = position(sequence);
    store_position_set(t, &p);
}

/* ---- position ---- */

START_TEST(a_new_store_has_no_position)
{
    struct store_position p;
    ck_status(store_position_get(kit.s, &p), STORE_NOT_FOUND);
}
END_TEST

START_TEST(a_position_is_committed_with_its_transaction)
{
    struct store_txn *t = begun();
    set_position(t, 1);
    ck_status(store_commit(t), STORE_OK);
    expect_position(1);
    t = begun();
    set_position(t, 2);
    store_abort(t);
    expect_position(1);
    kit_reopen(&kit);
    expect_position(1);
}
END_TEST

/* The chain of an entry is known only when its rows are. */
START_TEST(a_position_can_be_set_again_after_its_row_set_was_taken)
{
    struct buf rows = {0};
    struct store_answer answer;
    store_rows_collect(kit.s, true);
    struct store_txn *t = begun();
    const struct store_change c = {.kind = CHANGE_WORKSPACE_CREATE, .name = STR("w")};
    store_apply(t, &c, 1, &answer);
    ck_status(answer.status, STORE_OK);
    set_position(t, 1);
    ck_status(store_rows_take(t, store_rows_formats.newest, &rows), STORE_OK);
    ck_assert_uint_gt(store_rows_count(buf_view(&rows)), 0);
    set_position(t, 2);
    ck_status(store_commit(t), STORE_OK);
    expect_position(2);
    buf_free(&rows);
}
END_TEST

START_TEST(a_position_is_no_row_of_a_row_set)
{
    struct buf rows = {0};
    store_rows_collect(kit.s, true);
    struct store_txn *t = begun();
    set_position(t, 1);
    ck_status(store_rows_take(t, store_rows_formats.newest, &rows), STORE_OK);
    ck_assert_uint_eq(store_rows_count(buf_view(&rows)), 0);
    store_abort(t);
    buf_free(&rows);
}
END_TEST

/* ---- empty ---- */

START_TEST(a_store_with_a_record_is_not_empty)
{
    ck_assert(store_is_empty(kit.s));
    struct store_txn *t = begun();
    set_position(t, 0);
    ck_status(store_commit(t), STORE_OK);
    store_read_end(kit.s);
    ck_assert(store_is_empty(kit.s));
    kit_workspace(&kit, "w");
    ck_assert(!store_is_empty(kit.s));
}
END_TEST

/* ---- following ---- */

START_TEST(a_store_that_follows_refuses_changes_of_replicated_spaces)
{
    const struct store_change create = {.kind = CHANGE_WORKSPACE_CREATE, .name = STR("w")},
                              purge = {.kind = CHANGE_PURGE, .limit = 1},
                              sweep = {.kind = CHANGE_INDEX_SWEEP, .workspace = 1, .limit = 1};
    store_follow(kit.s, true);
    ck_status(kit_status(&kit, &create), STORE_INVALID);
    ck_status(kit_status(&kit, &purge), STORE_INVALID);
    ck_assert_int_ne(kit_status(&kit, &sweep), STORE_INVALID);
    ck_assert(store_is_empty(kit.s));
    store_follow(kit.s, false);
    ck_status(kit_status(&kit, &create), STORE_OK);
}
END_TEST

static struct store_answer refuse_deletes(void *arg, const struct store_change *change)
{
    ck_assert_int_ne(change->kind, CHANGE_PURGE_DELETED);
    return kit_apply(arg, change);
}

static bool never(void *arg)
{
    (void)arg;
    return false;
}

START_TEST(maintenance_of_a_store_that_follows_deletes_nothing)
{
    const uint64_t workspace = kit_workspace(&kit, "w"),
                   report = kit_create(&kit, workspace, "https://a.com/", "a.com");
    struct store_change gone = {.kind = CHANGE_PROJECT_DELETE, .workspace = workspace, .id = 1};
    kit_done(&kit, report, 1, 50);
    ck_status(kit_status(&kit, &gone), STORE_OK);
    store_follow(kit.s, true);
    store_read_end(kit.s);
    struct maintenance *m = maintenance_new(kit.s, refuse_deletes, never, &kit);
    for (int i = 0; i < 100 && maintenance_step(m, false) == MAINTENANCE_MORE; i++)
        continue;
    maintenance_free(m);
}
END_TEST

START_TEST(while_another_node_is_full_creates_are_refused_and_deletes_work)
{
    struct store_space space;
    const uint64_t workspace = kit_workspace(&kit, "w"),
                   report = kit_create(&kit, workspace, "https://a.com/", "a.com");
    const struct store_change create = kit_create_change(workspace, "https://a.com/b", "a.com"),
                              delete = {.kind = CHANGE_REPORT_DELETE,
                                        .workspace = workspace,
                                        .id = report};
    ck_status(store_space(kit.s, &space), STORE_OK);
    ck_assert_uint_gt(space.growth_bytes, 0);
    ck_assert_uint_lt(space.growth_bytes, space.map_bytes);
    store_refuse_growth(kit.s, true);
    ck_status(kit_status(&kit, &create), STORE_FULL);
    ck_assert_ptr_nonnull(strstr(store_why(kit.s), "a node of the cluster"));
    ck_status(kit_status(&kit, &delete), STORE_OK);
    store_refuse_growth(kit.s, false);
    ck_status(kit_status(&kit, &create), STORE_OK);
}
END_TEST

/* ---- id ---- */

START_TEST(a_store_keeps_its_id)
{
    uint8_t a[STORE_ID_BYTES], b[STORE_ID_BYTES];
    const uint8_t zeros[STORE_ID_BYTES] = {0};
    ck_status(store_id(kit.s, a), STORE_OK);
    kit_reopen(&kit);
    ck_status(store_id(kit.s, b), STORE_OK);
    ck_assert_mem_eq(a, b, sizeof(a));
    ck_assert_mem_ne(a, zeros, sizeof(a));
}
END_TEST

/* ---- signing keys ---- */

/* Rows: the keys that a change replaces, its keys; what comes of it. */
static const struct {
    struct str before, after;
    enum store_status status;
} rotations[] = {
    {STR("x"), STR("one"), STORE_STALE},   {STR(""), STR("one"), STORE_OK},
    {STR(""), STR("two"), STORE_STALE},    {STR("on"), STR("two"), STORE_STALE},
    {STR("one"), STR(""), STORE_INVALID},  {STR("one"), STR("two"), STORE_OK},
    {STR("one"), STR("six"), STORE_STALE},
};

START_TEST(signing_keys_replace_only_those_that_the_change_names)
{
    struct str keys;
    for (size_t i = 0; i < sizeof(rotations) / sizeof(*rotations); i++)
        ck_status(kit_status(&kit, &(struct store_change){.kind = CHANGE_SIGNING_KEYS,
                                                          .text = rotations[i].before,
                                                          .data = rotations[i].after}),
                  rotations[i].status);
    ck_status(store_signing_keys(kit.s, &keys), STORE_OK);
    ck_assert(str_eq(keys, STR("two")));
    store_read_end(kit.s);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("store_position");
    TCase *tc = tcase_create("a store");
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, a_new_store_has_no_position);
    tcase_add_test(tc, a_position_is_committed_with_its_transaction);
    tcase_add_test(tc, a_position_can_be_set_again_after_its_row_set_was_taken);
    tcase_add_test(tc, a_position_is_no_row_of_a_row_set);
    tcase_add_test(tc, a_store_with_a_record_is_not_empty);
    tcase_add_test(tc, a_store_that_follows_refuses_changes_of_replicated_spaces);
    tcase_add_test(tc, maintenance_of_a_store_that_follows_deletes_nothing);
    tcase_add_test(tc, while_another_node_is_full_creates_are_refused_and_deletes_work);
    tcase_add_test(tc, a_store_keeps_its_id);
    tcase_add_test(tc, signing_keys_replace_only_those_that_the_change_names);
    suite_add_tcase(suite, tc);
    return kit_run(suite);
}
