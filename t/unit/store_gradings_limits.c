/*
 * The history of a report in a full store, which keeps space to delete it, and damaged histories,
 * which assay check reports.
 */
#include "t/kit/store_gradings.h"
#include "store/engine/cursor.h"
#include "store/engine/snapshot.h"
#include "store/engine/txn.h"

/* ---- a full store ---- */

/* Apply ${c} and continue; the transaction must not fail. */
static enum store_status apply(struct store_txn *t, struct store_change c)
{
    struct store_answer a;
    store_apply(t, &c, k.now, &a);
    ck_status(store_txn_error(t), STORE_OK);
    return (enum store_status)a.status;
}

static struct store_change regrade(uint64_t id)
{
    return (struct store_change){
        .kind = CHANGE_REPORT_UPDATE, .workspace = w, .id = id, .fields = CHANGE_REGENERATE};
}

/* A report with ${gradings} gradings that waits for another one. */
static uint64_t create_waiting(uint32_t gradings)
{
    enum { AT_ONCE = 20 };
    struct store_txn *t;
    uint64_t id = create();
    for (uint32_t n = 1; n <= gradings;) {
        ck_status(store_begin(k.s, &t), STORE_OK);
        for (uint32_t end = n + AT_ONCE; n < end && n <= gradings; n++) {
            ck_status(apply(t, kit_done_change(id, n, 50)), STORE_OK);
            ck_status(apply(t, regrade(id)), STORE_OK);
        }
        ck_status(store_commit(t), STORE_OK);
    }
    return id;
}

/* False: the changes do not fit together. */
static bool commit(struct store_txn *t)
{
    enum store_status status = store_commit(t);
    ck_assert(status == STORE_OK || status == STORE_FULL);
    return status == STORE_OK;
}

/* Create reports until the store refuses a single one. */
static void fill(void)
{
    for (unsigned at_once = 50; at_once != 0;) {
        struct store_txn *t;
        enum store_status status = STORE_OK;
        ck_status(store_begin(k.s, &t), STORE_OK);
        for (unsigned i = 0; i < at_once && status == STORE_OK; i++)
            status = apply(t, kit_create_change(w, "https://b.com/", "b.com"));
        ck_assert(status == STORE_OK || status == STORE_FULL);
        if (!commit(t) || status == STORE_FULL)
            at_once = at_once > 1 ? 1 : 0;
    }
}

/*
 * Finish ${count} gradings with the longest list of failed checks in one transaction, or else one
 * by one. Returns how many the store refuses.
 */
static unsigned finish_all(const uint64_t *ids, unsigned count, uint32_t attempt)
{
    static char failed[STORE_FAILED_MAX];
    struct store_txn *t;
    unsigned refused = 0;
    memset(failed, 'f', sizeof(failed));
    ck_status(store_begin(k.s, &t), STORE_OK);
    for (unsigned i = 0; i < count; i++) {
        struct store_change c = kit_done_change(ids[i], attempt, 50);
        c.failed = (struct str){failed, sizeof(failed)};
        refused += apply(t, c) == STORE_FULL;
    }
    if (commit(t))
        return refused;
    if (count == 1)
        return 1;
    refused = 0;
    for (unsigned i = 0; i < count; i++)
        refused += finish_all(ids + i, 1, attempt);
    return refused;
}

/* Columns: gradings that each report has before; results that are applied in a transaction. */
static const struct {
    uint32_t gradings;
    unsigned at_once;
} bursts[] = {{30, 1}, {100, 1}, {100, 50}};

START_TEST(a_full_store_keeps_space_to_delete_long_histories)
{
    enum { REPORTS = 50 };
    uint64_t ids[REPORTS];
    unsigned refused = 0;
    store_close(k.s);
    kit_remove(k.dir);
    kit_dir(k.dir);
    k.s = kit_store(k.dir, STORE_WRITE, 8 << 20);
    w = kit_workspace(&k, "acme");
    for (int i = 0; i < REPORTS; i++)
        ids[i] = create_waiting(bursts[_i].gradings);
    fill();
    for (unsigned i = 0; i < REPORTS; i += bursts[_i].at_once)
        refused += finish_all(ids + i, bursts[_i].at_once, bursts[_i].gradings + 1);
    ck_assert_uint_gt(refused, 0);
    for (unsigned i = 0; i < REPORTS; i++) {
        const struct store_change gone = {
            .kind = CHANGE_REPORT_DELETE, .workspace = w, .id = ids[i]};
        ck_status(kit_status(&k, &gone), STORE_OK);
    }
    ck_assert_uint_eq(rows(), 0);
    kit_check_clean(k.s);
}
END_TEST

/* ---- assay check ---- */

static void expect_problem(const char *sentence)
{
    ck_assert_uint_ge(kit_problems(k.s), 1);
    ck_assert_msg(strcmp(kit_problem, sentence) == 0, "%s", kit_problem);
}

static struct buf copy_of_row(uint64_t id, uint64_t number)
{
    MDB_txn *txn;
    MDB_val v;
    struct key key;
    struct buf out = {0};
    row_key(&key, id, number);
    ck_status(store_snapshot(k.s, &txn), STORE_OK);
    ck_status(store_get(k.s, txn, SPACE_GRADING, &key, &v), STORE_OK);
    buf_add(&out, v.mv_data, v.mv_size);
    store_read_end(k.s);
    return out;
}

START_TEST(a_malformed_row_is_reported_and_not_served)
{
    uint64_t id = graded(2);
    struct buf row = copy_of_row(id, 1);
    if (_i == 0)
        row.n--;
    else if (_i == 1)
        row.p[0] = 101; /* the score */
    else if (_i == 2)
        row.p[1] = RESULT_NONE;
    else
        row.n = 3;
    put_row(id, 1, buf_view(&row));
    expect_problem("a grading is malformed");
    ck_status(list(id, 0, 10).status, STORE_CORRUPT);
    ck_status(list(id, 0, 1).status, STORE_OK);
    buf_free(&row);
}
END_TEST

START_TEST(a_row_of_no_report_is_reported)
{
    uint64_t id = graded(1);
    struct buf row = copy_of_row(id, 1);
    put_row(id + 1, 1, buf_view(&row));
    expect_problem("a grading has no report");
    buf_free(&row);
}
END_TEST

START_TEST(a_newest_row_that_differs_from_its_report_is_reported)
{
    char sentence[80];
    uint64_t id = graded(2);
    snprintf(sentence, sizeof(sentence), "report %u differs from its last grading", (unsigned)id);
    delete_row(id, 2);
    expect_problem(sentence);
}
END_TEST

START_TEST(more_than_a_hundred_rows_are_reported)
{
    char sentence[80];
    uint64_t id = graded(STORE_GRADINGS_MAX + 1);
    struct buf row = copy_of_row(id, STORE_GRADINGS_MAX);
    snprintf(sentence, sizeof(sentence), "report %u has more than 100 gradings", (unsigned)id);
    put_row(id, 1, buf_view(&row));
    expect_problem(sentence);
    ck_assert_uint_eq(list(id, 0, 200).count, STORE_GRADINGS_MAX);
    buf_free(&row);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("store_gradings_limits");
    TCase *tc = tcase_create("gradings");
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_set_timeout(tc, 60);
    tcase_add_loop_test(tc, a_full_store_keeps_space_to_delete_long_histories, 0, 3);
    tcase_add_loop_test(tc, a_malformed_row_is_reported_and_not_served, 0, 4);
    tcase_add_test(tc, a_row_of_no_report_is_reported);
    tcase_add_test(tc, a_newest_row_that_differs_from_its_report_is_reported);
    tcase_add_test(tc, more_than_a_hundred_rows_are_reported);
    suite_add_tcase(suite, tc);
    return kit_run(suite);
}
