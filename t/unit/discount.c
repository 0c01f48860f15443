/* Discounts of coupons: the table in t/unit/carts, and bounds that hold for every cart. */
#include "core/api/discount_internal.h"
#include "t/kit/suite.h"

#include <check.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#define NOW INT64_C(1777986000000)
#define CASES_MAX 200

static char cases[CASES_MAX][512];
static int case_count;

static const char *const refusals[DISCOUNT_REFUSALS] = {
    [DISCOUNT_APPLIES] = "",
    [DISCOUNT_EXPIRED] = "expired",
    [DISCOUNT_USED_UP] = "used_up",
    [DISCOUNT_BELOW_MINIMUM] = "below_minimum",
    [DISCOUNT_ABOVE_MAXIMUM] = "above_maximum",
    [DISCOUNT_OTHER_PRODUCTS] = "other_goods",
    [DISCOUNT_EXCLUDED] = "excluded",
    [DISCOUNT_ON_SALE] = "on_sale",
};

static void read_cases(void)
{
    FILE *f = fopen(SRCDIR "/t/unit/carts", "r");
    while (f != NULL && case_count < CASES_MAX &&
           fgets(cases[case_count], sizeof(cases[0]), f) != NULL) {
        cases[case_count][strcspn(cases[case_count], "\n")] = '\0';
        case_count += cases[case_count][0] != '#';
    }
    if (f != NULL)
        fclose(f);
}

/* "12.5" in MONEY_SCALE */
static int64_t money(const char *text)
{
    int64_t v = strtoll(text, NULL, 10) * MONEY_SCALE;
    const char *point = strchr(text, '.');
    int64_t scale = MONEY_SCALE / 10;
    for (point = point == NULL ? "" : point + 1; *point >= '0' && *point <= '9';
         point++, scale /= 10)
        v += (*point - '0') * scale;
    return v;
}

struct lists {
    uint64_t products[8], excluded[8];
};

static struct str id_list(char *text, uint64_t *room)
{
    size_t n = 0;
    char *save;
    for (char *id = strtok_r(text, ",", &save); id != NULL && n < 8;
         id = strtok_r(NULL, ",", &save))
        /* little-endian, as on every supported machine */
        room[n++] = strtoull(id, NULL, 10);
    return (struct str){(const char *)room, n * sizeof(*room)};
}

static void read_option(char *field, struct store_coupon *c, struct lists *lists)
{
    char *value = strchr(field, '=');
    value = value == NULL ? field + strlen(field) : value + 1;
    if (strncmp(field, "min=", 4) == 0)
        c->minimum = money(value);
    else if (strncmp(field, "max=", 4) == 0)
        c->maximum = money(value);
    else if (strncmp(field, "only=", 5) == 0)
        c->products = id_list(value, lists->products);
    else if (strncmp(field, "not=", 4) == 0)
        c->excluded = id_list(value, lists->excluded);
    else if (strncmp(field, "used=", 5) == 0)
        ck_assert_int_eq(sscanf(value, "%" SCNu64 "/%" SCNu64, &c->usage_count, &c->usage_limit),
                         2);
    else if (strcmp(field, "nosale") == 0)
        c->exclude_sale_items = true;
    else if (strcmp(field, "ended") == 0)
        c->expires_at = NOW;
    else
        ck_abort_msg("what is \"%s\"?", field);
}

static void read_coupon(char *text, struct store_coupon *c, struct lists *lists)
{
    char *save, *type = strtok_r(text, " ", &save), *amount = strtok_r(NULL, " ", &save);
    *c = (struct store_coupon){
        .minimum = MONEY_NONE, .maximum = MONEY_NONE, .usage_limit = UINT64_MAX};
    ck_assert_ptr_nonnull(amount);
    c->amount = money(amount);
    c->type = strcmp(type, "percent") == 0      ? COUPON_PERCENT
              : strcmp(type, "fixed_cart") == 0 ? COUPON_FIXED_CART
                                                : COUPON_FIXED_PRODUCT;
    for (char *field = strtok_r(NULL, " ", &save); field != NULL;
         field = strtok_r(NULL, " ", &save))
        read_option(field, c, lists);
}

static void read_cart(char *text, struct cart *cart)
{
    char *save;
    cart->count = 0;
    for (char *field = strtok_r(text, " ", &save); field != NULL && strcmp(field, "-") != 0;
         field = strtok_r(NULL, " ", &save)) {
        struct cart_item *item = &cart->items[cart->count++];
        char *price = strchr(field, '@');
        ck_assert_ptr_nonnull(price);
        ck_assert_int_eq(sscanf(field, "%" SCNu64 "x%" SCNu64, &item->wp_id, &item->quantity), 2);
        item->price = money(price + 1);
        item->on_sale = field[strlen(field) - 1] == 's';
    }
}

static void write_totals(const struct discount_totals *t, size_t count, char *to, size_t size)
{
    size_t n = (size_t)snprintf(to, size, "%" PRId64 " %" PRId64 " ", t->discount, t->price);
    for (size_t i = 0; i < count; i++)
        n += (size_t)snprintf(to + n, size - n, "%s%" PRId64, i == 0 ? "" : ",", t->each[i]);
    snprintf(to + n, size - n, "%s", count == 0 ? "-" : "");
}

START_TEST(every_cart_in_the_table_has_its_totals)
{
    static struct cart cart;
    struct store_coupon coupon;
    struct lists lists;
    struct discount_totals totals;
    char line[512], got[256], *parts[4], *at = line;
    memcpy(line, cases[_i], sizeof(line));
    for (int i = 0; i < 4; i++) {
        parts[i] = at;
        at = strstr(at, " : ");
        ck_assert(i == 3 || at != NULL);
        if (i < 3) {
            *at = '\0';
            at += 3;
        }
    }
    read_coupon(parts[0], &coupon, &lists);
    cart.exponent = (unsigned)strtoul(parts[1], NULL, 10);
    read_cart(parts[2], &cart);
    enum discount_refusal why = discount_apply(&coupon, &cart, NOW, &totals);
    snprintf(got, sizeof(got), "%s", refusals[why]);
    if (why == DISCOUNT_APPLIES)
        write_totals(&totals, cart.count, got, sizeof(got));
    ck_assert_msg(strcmp(got, parts[3]) == 0, "%s\ngives %s", cases[_i], got);
}
END_TEST

static uint64_t chance(uint64_t *seed, uint64_t of)
{
    *seed = *seed * 6364136223846793005ULL + 1442695040888963407ULL;
    return (*seed >> 33) % of;
}

START_TEST(no_line_is_negative_and_the_lines_add_up)
{
    static struct cart cart;
    uint64_t seed = 42;
    for (unsigned round = 0; round < 20000; round++) {
        struct discount_totals t;
        struct store_coupon c = {.type = (enum coupon_type)chance(&seed, 3),
                                 .minimum = MONEY_NONE,
                                 .maximum = MONEY_NONE,
                                 .usage_limit = UINT64_MAX};
        c.amount = (int64_t)chance(&seed, c.type == COUPON_PERCENT ? 1000001 : 3000000);
        cart.count = 1 + chance(&seed, 6);
        cart.exponent = (unsigned)chance(&seed, 4);
        for (size_t i = 0; i < cart.count; i++)
            cart.items[i] = (struct cart_item){i + 1, 1 + chance(&seed, 12),
                                               (int64_t)chance(&seed, 500000), false};
        ck_assert_int_eq(discount_apply(&c, &cart, NOW, &t), DISCOUNT_APPLIES);
        int64_t sum = 0;
        for (size_t i = 0; i < cart.count; i++) {
            ck_assert_int_ge(t.each[i], 0);
            sum += t.each[i];
        }
        ck_assert_int_eq(sum, t.discount);
        ck_assert_int_eq(t.subtotal, t.discount + t.price);
        ck_assert_int_ge(t.price, 0);
        ck_assert_int_eq(t.subtotal, cart_subtotal(&cart));
        /*
         * the whole amount, or everything there is; the remainder is distributed once, one unit per
         * line
         */
        if (c.type == COUPON_FIXED_CART) {
            struct cart one = {
                .items = {{1, 1, c.amount, false}}, .count = 1, .exponent = cart.exponent};
            int64_t amount = cart_subtotal(&one), all = amount < t.subtotal ? amount : t.subtotal,
                    pieces = 0;
            for (size_t i = 0; i < cart.count; i++)
                pieces += (int64_t)cart.items[i].quantity;
            ck_assert_int_le(t.discount, all);
            ck_assert_int_gt(t.discount, all - pieces);
        }
    }
}
END_TEST

START_TEST(a_cart_that_overflows_has_no_subtotal)
{
    struct cart cart = {
        .items = {{1, 1000000, INT64_C(9999999999999999), false}}, .count = 1, .exponent = 2};
    ck_assert_int_eq(cart_subtotal(&cart), -1);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("discount");
    TCase *tcase = tcase_create("carts");
    read_cases();
    if (case_count < 40)
        return 1;
    tcase_add_loop_test(tcase, every_cart_in_the_table_has_its_totals, 0, case_count);
    tcase_add_test(tcase, no_line_is_negative_and_the_lines_add_up);
    tcase_add_test(tcase, a_cart_that_overflows_has_no_subtotal);
    suite_add_tcase(suite, tcase);
    return suite_run(suite);
}
