/* Coupons in the store: replaced as a set, found by their code; sums of money. */
#include "t/kit/store_synced.h"
#include "store/engine/cursor.h"
#include "store/engine/snapshot.h"
#include "store/engine/txn.h"

/* ---- coupons ---- */

static void see_coupon(void *arg, enum store_status status, const struct store_coupon *coupon)
{
    struct buf *out = arg;
    if (coupon == NULL) {
        ck_status(status, STORE_NOT_FOUND);
        return;
    }
    buf_printf(out, "%.*s=%d ", (int)coupon->code.n, coupon->code.p,
               (int)(coupon->amount / MONEY_SCALE));
    ck_assert_uint_eq(coupon_product(coupon->products, 0), 1);
}

static const char *coupons_shown(void)
{
    static char text[256];
    struct buf out = {0};
    store_coupon_each(kit.s, &agent, see_coupon, &out);
    store_read_end(kit.s);
    snprintf(text, sizeof(text), "%.*s", (int)out.n, out.p);
    buf_free(&out);
    return text;
}

START_TEST(coupons_are_replaced_as_a_set)
{
    static const char *const first[] = {"SAVE10", " Lower "}, *const second[] = {"save10", "NEW"},
                             *const third[] = {"!NEW"};
    struct store_answer answer = coupons(first, 2, 10 * MONEY_SCALE);
    ck_assert_str_eq(coupons_shown(), "Lower=10 SAVE10=10 ");
    answer = coupons(first, 2, 10 * MONEY_SCALE);
    ck_assert_int_eq(synced_mark(&answer, 1), SYNCED_UNCHANGED);
    answer = coupons(second, 2, 20 * MONEY_SCALE);
    ck_assert_uint_eq(answer.id, 1);
    ck_assert_int_eq(synced_mark(&answer, 0), SYNCED_QUEUED);
    ck_assert_str_eq(coupons_shown(), "NEW=20 save10=20 ");
    answer = coupons(third, 1, 0); /* it failed, so it is unchanged */
    ck_assert_str_eq(coupons_shown(), "NEW=20 ");
    ck_assert_uint_eq(coupons(third, 0, 0).id, 1);
    ck_assert_str_eq(coupons_shown(), "");
}
END_TEST

static void see_found(void *arg, enum store_status status, const struct store_coupon *coupon)
{
    *(bool *)arg = status == STORE_OK && coupon->type == COUPON_PERCENT;
}

START_TEST(a_coupon_is_found_by_its_code_in_any_case)
{
    static const char *const codes[] = {"Save10"};
    bool found;
    coupons(codes, 1, MONEY_SCALE);
    store_coupon_get(kit.s, &agent, STR(" sAVE10 "), see_found, &found);
    ck_assert(found);
    store_coupon_get(kit.s, &agent, STR("save1"), see_found, &found);
    ck_assert(!found);
    store_coupon_get(kit.s, &agent, STR("  "), see_found, &found);
    ck_assert(!found);
    store_read_end(kit.s);
}
END_TEST

/* Columns: money, exponent, minor units. */
static const struct {
    int64_t money;
    unsigned exponent;
    int64_t minor;
} minors[] = {{125000, 2, 1250},  {125049, 2, 1250},   {125050, 2, 1251},
              {125000, 0, 13},    {124999, 0, 12},     {125000, 3, 12500},
              {125005, 3, 12501}, {125001, 4, 125001}, {0, 2, 0}};

START_TEST(money_rounds_half_up_to_minor_units)
{
    ck_assert_int_eq(money_minor_units(minors[_i].money, minors[_i].exponent), minors[_i].minor);
}
END_TEST

static Suite *suite(void)
{
    Suite *s = suite_create("store_coupons");
    TCase *c = tcase_create("synced");
    tcase_add_checked_fixture(c, begin, end);
    tcase_set_timeout(c, 60);
    tcase_add_test(c, coupons_are_replaced_as_a_set);
    tcase_add_test(c, a_coupon_is_found_by_its_code_in_any_case);
    tcase_add_loop_test(c, money_rounds_half_up_to_minor_units, 0,
                        sizeof(minors) / sizeof(minors[0]));
    suite_add_tcase(s, c);
    return s;
}

int main(void)
{
    return kit_run(suite());
}
