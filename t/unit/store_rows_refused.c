/*
 * Row sets that are refused: truncated, altered, forged with a correct checksum, or too large for
 * the store. Nothing of them is applied, and the next one can be.
 */
#include "t/kit/store_copy.h"

#include "store/engine/derived.h"

#include <xxhash.h>

/* Offsets in a row set: store/rows.h. */
#define LAYOUT_AT 10
#define COUNT_AT 14
#define BYTES_AT 22
#define SUM_AT 30
#define HEAD_BYTES 38
#define ROW_BYTES 7 /* before the key of a row that is put */

static uint64_t number_at(const struct buf *set, size_t at)
{
    uint64_t v;
    memcpy(&v, set->p + at, sizeof(v));
    return v;
}

static void set_number(struct buf *set, size_t at, uint64_t v)
{
    memcpy(set->p + at, &v, sizeof(v));
}

/* Make length and checksum correct again. */
static void seal(struct buf *set)
{
    set_number(set, BYTES_AT, set->n - HEAD_BYTES);
    set_number(set, SUM_AT,
               XXH3_64bits_withSeed(set->p + HEAD_BYTES, set->n - HEAD_BYTES,
                                    XXH3_64bits(set->p, SUM_AT)));
}

static struct buf copy_of(const struct buf *set)
{
    struct buf out = {0};
    buf_add(&out, set->p, set->n);
    ck_assert(buf_ok(&out));
    return out;
}

/* The row set of a create: a report, its job, its counters, no deletion. */
static const struct buf *a_create(void)
{
    struct store_change c = kit_create_change(1, "https://a.com/x", "a.com");
    ck_status(kit_status(&kit, &c), STORE_OK);
    return &row_sets[row_set_count - 1].rows;
}

static struct store_txn *begun(void)
{
    struct store_txn *t;
    store_read_end(copy.s);
    ck_status(store_begin(copy.s, &t), STORE_OK);
    return t;
}

/* ---- altered ---- */

START_TEST(a_truncated_row_set_is_refused_and_nothing_is_written)
{
    const struct buf *set = a_create();
    for (; row_sets_applied + 1 < row_set_count;)
        copy_apply(1);
    struct store_txn *t = begun();
    for (size_t n = 0; n < set->n; n++) {
        char *part = malloc(n == 0 ? 1 : n); /* its end is known to the sanitizer */
        ck_assert_ptr_nonnull(part);
        memcpy(part, set->p, n);
        ck_status(store_rows_apply(t, (struct str){part, n}), STORE_CORRUPT);
        free(part);
    }
    ck_status(store_txn_error(t), STORE_OK);
    ck_status(store_commit(t), STORE_OK);
    copy_expect_equal();
}
END_TEST

START_TEST(a_flipped_bit_is_found_and_nothing_is_written)
{
    copy_apply(SIZE_MAX);
    struct buf set = copy_of(a_create());
    struct store_txn *t = begun();
    for (size_t bit = 0; bit < set.n * 8; bit++) {
        set.p[bit / 8] = (char)(set.p[bit / 8] ^ 1 << bit % 8);
        enum store_status status = store_rows_apply(t, buf_view(&set));
        ck_assert_msg(status == STORE_CORRUPT || status == STORE_OTHER_FORMAT, "bit %zu: %s", bit,
                      store_status_text(status));
        set.p[bit / 8] = (char)(set.p[bit / 8] ^ 1 << bit % 8);
    }
    ck_status(store_commit(t), STORE_OK);
    buf_free(&set);
    copy_expect_equal();
}
END_TEST

/* ---- forged ---- */

/* The row at ${at}, its key and its value. */
static size_t row_bytes(const struct buf *set, size_t at)
{
    uint16_t key;
    uint32_t value;
    memcpy(&key, set->p + at + 1, sizeof(key));
    memcpy(&value, set->p + at + 3, sizeof(value));
    return ROW_BYTES + key + value;
}

static void no_key(struct buf *set)
{
    memset(set->p + HEAD_BYTES + 1, 0, 2);
}

static void long_key(struct buf *set)
{
    memset(set->p + HEAD_BYTES + 1, 0xff, 2);
}

static void long_value(struct buf *set)
{
    memset(set->p + HEAD_BYTES + 3, 0xff, 4);
}

static void one_row_more(struct buf *set)
{
    set_number(set, COUNT_AT, number_at(set, COUNT_AT) + 1);
}

static void one_row_less(struct buf *set)
{
    set_number(set, COUNT_AT, number_at(set, COUNT_AT) - 1);
}

static void other_database(struct buf *set)
{
    set->p[HEAD_BYTES] = DB_COUNT;
}

static void other_tag(struct buf *set)
{
    set->p[HEAD_BYTES + ROW_BYTES] = '?';
}

static void other_id(struct buf *set)
{
    set->p[HEAD_BYTES + ROW_BYTES + 2]++;
}

/* One row, of the index of reports, which is local. */
static void local_space(struct buf *set)
{
    set->n = HEAD_BYTES + row_bytes(set, HEAD_BYTES);
    set_number(set, COUNT_AT, 1);
    set->p[HEAD_BYTES] = (char)schema_space_db[SPACE_LOG];
    set->p[HEAD_BYTES + ROW_BYTES] = (char)schema_space_tag[SPACE_LOG];
}

static void first_row_twice(struct buf *set)
{
    size_t n = row_bytes(set, HEAD_BYTES);
    struct buf out = {0};
    buf_add(&out, set->p, HEAD_BYTES + n);
    buf_add(&out, set->p + HEAD_BYTES, set->n - HEAD_BYTES);
    buf_free(set);
    *set = out;
    one_row_more(set);
}

static void first_row_last(struct buf *set)
{
    size_t n = row_bytes(set, HEAD_BYTES);
    struct buf out = {0};
    buf_add(&out, set->p, HEAD_BYTES);
    buf_add(&out, set->p + HEAD_BYTES + n, set->n - HEAD_BYTES - n);
    buf_add(&out, set->p + HEAD_BYTES, n);
    buf_free(set);
    *set = out;
}

/* The first row is the report's. */
static void short_report(struct buf *set)
{
    uint32_t n = 5;
    size_t was = row_bytes(set, HEAD_BYTES);
    struct buf out = {0};
    memcpy(set->p + HEAD_BYTES + 3, &n, sizeof(n));
    buf_add(&out, set->p, HEAD_BYTES + row_bytes(set, HEAD_BYTES));
    buf_add(&out, set->p + HEAD_BYTES + was, set->n - HEAD_BYTES - was);
    buf_free(set);
    *set = out;
}

static void bytes_behind(struct buf *set)
{
    buf_adds(set, "more");
}

static void (*const forgeries[])(struct buf *set) = {
    no_key,       long_key,     long_value,     one_row_more, one_row_less,
    other_tag,    other_id,     other_database, local_space,  first_row_twice,
    short_report, bytes_behind, first_row_last};

START_TEST(a_forged_row_set_is_refused_and_nothing_is_written)
{
    copy_apply(SIZE_MAX);
    struct buf set = copy_of(a_create());
    ck_assert_int_eq(set.p[HEAD_BYTES], DB_RECORD);
    ck_assert_int_eq(set.p[HEAD_BYTES + ROW_BYTES], schema_space_tag[SPACE_REPORT]);
    struct store_txn *t = begun();
    forgeries[_i](&set);
    seal(&set);
    ck_status(store_rows_apply(t, buf_view(&set)), STORE_CORRUPT);
    ck_status(store_txn_error(t), STORE_OK);
    ck_status(store_commit(t), STORE_OK);
    buf_free(&set);
    copy_expect_equal();
}
END_TEST

/* Bytes of random changes are altered. What is not refused must not end the process. */
START_TEST(random_forgeries_do_no_harm)
{
    for (int i = 0; i < 200; i++)
        random_act();
    for (; row_sets_applied < row_set_count; copy_apply(1)) {
        struct buf set = copy_of(&row_sets[row_sets_applied].rows);
        for (unsigned n = 1 + random_below(4); n > 0; n--)
            set.p[HEAD_BYTES + random_below((unsigned)(set.n - HEAD_BYTES))] =
                (char)random_below(256);
        seal(&set);
        struct store_txn *t = begun();
        enum store_status status = store_rows_apply(t, buf_view(&set));
        ck_assert(status == STORE_OK || status == STORE_CORRUPT);
        store_abort(t);
        buf_free(&set);
    }
    copy_expect_equal();
}
END_TEST

/* ---- formats and order ---- */

START_TEST(a_row_set_of_another_layout_is_refused)
{
    struct buf set = copy_of(a_create());
    const uint32_t layout = STORE_LAYOUT + 1;
    memcpy(set.p + LAYOUT_AT, &layout, sizeof(layout));
    seal(&set);
    struct store_txn *t = begun();
    ck_status(store_rows_apply(t, buf_view(&set)), STORE_OTHER_FORMAT);
    store_abort(t);
    buf_free(&set);
}
END_TEST

START_TEST(changes_and_row_sets_do_not_mix)
{
    struct store_answer answer;
    struct buf out = {0};
    const struct store_change c = {.kind = CHANGE_WORKSPACE_CREATE, .name = STR("other")};
    store_follow(copy.s, false);
    struct store_txn *t = begun();
    ck_status(store_rows_take(t, store_rows_formats.newest, &out),
              STORE_INVALID); /* it does not collect */
    store_apply(t, &c, NOW, &answer);
    ck_status(answer.status, STORE_OK);
    ck_status(store_rows_apply(t, buf_view(&row_sets[0].rows)), STORE_INVALID);
    store_abort(t);
    t = begun();
    ck_status(store_rows_apply(t, buf_view(&row_sets[0].rows)), STORE_OK);
    store_apply(t, &c, NOW, &answer);
    ck_status(answer.status, STORE_INVALID);
    store_abort(t);
    buf_free(&out);
    store_follow(copy.s, true);
}
END_TEST

START_TEST(nothing_is_changed_after_the_row_set_was_taken)
{
    struct store_txn *t;
    struct store_answer answer;
    struct buf out = {0};
    const struct store_change c = {.kind = CHANGE_WORKSPACE_CREATE, .name = STR("other")};
    store_read_end(kit.s);
    store_rows_collect(kit.s, true);
    ck_status(store_begin(kit.s, &t), STORE_OK);
    store_apply(t, &c, NOW, &answer);
    ck_status(store_rows_take(t, store_rows_formats.newest, &out), STORE_OK);
    store_apply(t, &c, NOW, &answer);
    ck_status(answer.status, STORE_INVALID);
    ck_status(store_commit(t), STORE_OK);
    copy_apply(SIZE_MAX);
    t = begun();
    ck_status(store_rows_apply(t, buf_view(&out)), STORE_OK);
    ck_status(store_commit(t), STORE_OK);
    copy_expect_equal();
    buf_free(&out);
}
END_TEST

/* ---- a full map ---- */

static void small_copy(void)
{
    kit_close(&copy);
    kit_dir(copy.dir);
    copy.s = kit_store(copy.dir, STORE_WRITE, (uint64_t)1 << 20);
}

/* The status of the next row set; it is applied if that is STORE_OK. */
static enum store_status apply_next(void)
{
    struct store_txn *t = begun();
    enum store_status status = store_rows_apply(t, buf_view(&row_sets[row_sets_applied].rows));
    if (status != STORE_OK) {
        store_abort(t);
        return status;
    }
    status = store_commit(t);
    row_sets_applied += status == STORE_OK;
    return status;
}

static void long_urls(unsigned batch)
{
    char url[800];
    kit_batch_begin(&kit);
    for (unsigned i = 0; i < 20; i++) {
        int n = snprintf(url, sizeof(url), "https://a.com/%u/%u/", batch, i);
        memset(url + n, 'x', sizeof(url) - (size_t)n - 1);
        url[sizeof(url) - 1] = '\0';
        struct store_change c = kit_create_change(1, url, "a.com");
        ck_status(kit_status(&kit, &c), STORE_OK);
    }
    kit_batch_end(&kit);
}

START_TEST(a_full_map_stops_before_a_row_set_and_a_larger_one_continues)
{
    enum store_status status = STORE_OK;
    small_copy();
    for (unsigned i = 0; i < 80; i++) {
        random_act();
        long_urls(i);
    }
    while (status == STORE_OK && row_sets_applied < row_set_count)
        status = apply_next();
    ck_status(status, STORE_FULL);
    ck_assert_uint_gt(row_sets_applied, 20);
    uint64_t version = store_version(copy.s);
    for (int i = 0; i < 3; i++)
        ck_status(apply_next(), STORE_FULL);
    ck_assert_uint_eq(store_version(copy.s), version);
    kit_check_clean(copy.s);
    copy_reopen(MAP_BYTES);
    copy_expect_equal();
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("store_rows_refused");
    TCase *tc = tcase_create("refused");
    tcase_add_checked_fixture(tc, copy_begin, copy_end);
    tcase_set_timeout(tc, 120);
    tcase_add_test(tc, a_truncated_row_set_is_refused_and_nothing_is_written);
    tcase_add_test(tc, a_flipped_bit_is_found_and_nothing_is_written);
    tcase_add_loop_test(tc, a_forged_row_set_is_refused_and_nothing_is_written, 0,
                        sizeof(forgeries) / sizeof(*forgeries));
    tcase_add_loop_test(tc, random_forgeries_do_no_harm, 0, 2);
    tcase_add_test(tc, a_row_set_of_another_layout_is_refused);
    tcase_add_test(tc, changes_and_row_sets_do_not_mix);
    tcase_add_test(tc, nothing_is_changed_after_the_row_set_was_taken);
    tcase_add_test(tc, a_full_map_stops_before_a_row_set_and_a_larger_one_continues);
    suite_add_tcase(suite, tc);
    return kit_run(suite);
}
