/*
 * Formats of row sets, in a version that knows the formats 2 and 3: it writes and applies both, and
 * refuses the ones beside them. Both have the encoding of format 1.
 */
#include "t/kit/store_copy.h"

enum { FORMAT_AT = 4 }; /* in a row set: store/rows.h */

static struct buf taken;

static void begin(void)
{
    copy_begin();
    copy_apply(SIZE_MAX);
    taken = (struct buf){0};
}

static void end(void)
{
    buf_free(&taken);
    copy_end();
}

/* A create in the first store, committed if its row set was taken. */
static enum store_status take(uint32_t format)
{
    struct store_txn *t;
    struct store_answer answer;
    const struct store_change c = {.kind = CHANGE_WORKSPACE_CREATE, .name = STR("other")};
    store_read_end(kit.s);
    store_rows_collect(kit.s, true);
    ck_status(store_begin(kit.s, &t), STORE_OK);
    store_apply(t, &c, 1, &answer);
    ck_status(answer.status, STORE_OK);
    enum store_status status = store_rows_take(t, format, &taken);
    if (status == STORE_OK)
        ck_status(store_commit(t), STORE_OK);
    else
        store_abort(t);
    return status;
}

static enum store_status apply(void)
{
    struct store_txn *t;
    store_read_end(copy.s);
    ck_status(store_begin(copy.s, &t), STORE_OK);
    enum store_status status = store_rows_apply(t, buf_view(&taken));
    if (status == STORE_OK)
        ck_status(store_commit(t), STORE_OK);
    else
        store_abort(t);
    return status;
}

START_TEST(a_row_set_is_written_in_the_format_that_is_asked_for_and_applied)
{
    uint16_t format;
    ck_status(take((uint32_t)_i), STORE_OK);
    memcpy(&format, taken.p + FORMAT_AT, sizeof(format));
    ck_assert_uint_eq(format, (unsigned)_i);
    ck_status(apply(), STORE_OK);
    copy_expect_equal();
}
END_TEST

static const uint16_t others[] = {0, 1, 4, UINT16_MAX};

START_TEST(another_format_is_neither_written_nor_applied)
{
    ck_status(take(others[_i]), STORE_INVALID);
    ck_assert_uint_eq(taken.n, 0);
    ck_status(take(3), STORE_OK);
    memcpy(taken.p + FORMAT_AT, &others[_i], sizeof(others[_i]));
    ck_status(apply(), STORE_OTHER_FORMAT);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("store_rows_formats");
    TCase *tcase = tcase_create("formats 2 and 3");
    tcase_add_checked_fixture(tcase, begin, end);
    tcase_set_timeout(tcase, 60);
    suite_add_tcase(suite, tcase);
    tcase_add_loop_test(tcase, a_row_set_is_written_in_the_format_that_is_asked_for_and_applied, 2,
                        4);
    tcase_add_loop_test(tcase, another_format_is_neither_written_nor_applied, 0,
                        sizeof(others) / sizeof(*others));
    return kit_run(suite);
}
