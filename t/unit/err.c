/* The table of errors: codes, statuses and texts. */
#include "core/http/err.h"
#include "t/kit/suite.h"

#include <check.h>

START_TEST(every_error_has_a_complete_row)
{
    const struct err_row *row = err_row((enum err)_i);
    ck_assert_int_ge(row->status, 400);
    ck_assert_int_le(row->status, 599);
    ck_assert_ptr_nonnull(row->reason);
    ck_assert_ptr_nonnull(row->code);
    ck_assert_uint_eq(strspn(row->code, "abcdefghijklmnopqrstuvwxyz_"), strlen(row->code));
    ck_assert_ptr_nonnull(row->message);
    for (int i = 0; i < _i; ++i)
        ck_assert_str_ne(err_row((enum err)i)->code, row->code);
}
END_TEST

START_TEST(every_store_status_has_an_error)
{
    enum err err = err_of_store((enum store_status)_i);
    ck_assert_int_lt(err, ERRS);
    /* a malformed request is refused before the store is called, so the store never returns this */
    ck_assert_int_ne(err, ERR_BAD_REQUEST);
}
END_TEST

static const struct {
    int status;
    enum err err;
} statuses[] = {
    {400, ERR_BAD_REQUEST},
    {413, ERR_PAYLOAD_TOO_LARGE},
    {417, ERR_EXPECTATION_FAILED},
    {422, ERR_VALIDATION_FAILED},
    {502, ERR_INTERNAL},
    {200, ERR_INTERNAL},
    {0, ERR_INTERNAL},
};

START_TEST(every_library_status_has_a_row)
{
    ck_assert_int_eq(err_of_status(statuses[_i].status), statuses[_i].err);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("err");
    TCase *tc = tcase_create("err");
    suite_add_tcase(suite, tc);
    tcase_add_loop_test(tc, every_error_has_a_complete_row, 0, ERRS);
    tcase_add_loop_test(tc, every_store_status_has_an_error, 0, STORE_STATUSES);
    tcase_add_loop_test(tc, every_library_status_has_a_row, 0,
                        sizeof(statuses) / sizeof(statuses[0]));
    return suite_run(suite);
}
