/* Reading Cookie headers, and the text of Set-Cookie. */
#include "core/web/cookies.h"
#include "t/kit/suite.h"

#include <check.h>
#include <stdio.h>

#define COUNT(array) ((int)(sizeof(array) / sizeof((array)[0])))

/* Columns: header, the value of the cookie "a" (NULL: none). */
static const struct {
    const char *header, *value;
} headers[] = {
    {"a=1", "1"},
    {"a=", ""},
    {"a=1; b=2", "1"},
    {"b=2; a=1", "1"},
    {"b=2;a=1", "1"},
    {"b=2 ;\t a = 1 ", "1"},
    {"a=1; a=2", "1"},
    {"a=x=y", "x=y"},
    {"a=\"1\"", "1"},
    {"a=\"\"", ""},
    {";;; a=1;", "1"},
    {"aa=1; ba=2; a=3", "3"},
    {"b=\"x; a=1", "1"}, /* quotes do not hide a semicolon */
    {"a=one two; a=2", "2"},
    {"a=\"; a=2", "2"},
    {"a=1,2", NULL},
    {"a=1\\2", NULL},
    {"a=\x01", NULL},
    {"a=\x7f", NULL},
    {"a=\xc3\xa4", NULL},
    {"a=\"1", NULL},
    {"", NULL},
    {"a", NULL},
    {"=1", NULL},
    {"A=1", NULL},
    {"ab=1", NULL},
    {"b=a=1", NULL},
    {"$a=1", NULL},
    {";", NULL},
    {"   ", NULL},
};

START_TEST(the_first_well_formed_cookie_of_the_name_is_read)
{
    struct str value = {NULL, 0}, rest = str_of(headers[_i].header);
    bool found = cookie_next(&rest, STR("a"), &value);
    ck_assert_msg(found == (headers[_i].value != NULL), "%s", headers[_i].header);
    ck_assert_msg(!found || str_eq(value, str_of(headers[_i].value)), "%s gives %.*s",
                  headers[_i].header, (int)value.n, value.p);
}
END_TEST

START_TEST(a_value_that_is_too_long_is_skipped)
{
    static char header[COOKIE_VALUE_MAX + 64];
    struct str value;
    int n = sprintf(header, "a=");
    memset(header + n, 'x', COOKIE_VALUE_MAX);
    ck_assert(cookie_next(&(struct str){header, strlen(header)}, STR("a"), &value));
    ck_assert_uint_eq(value.n, COOKIE_VALUE_MAX);
    strcat(header, "x; a=2");
    ck_assert(cookie_next(&(struct str){header, strlen(header)}, STR("a"), &value));
    ck_assert(str_eq(value, STR("2")));
}
END_TEST

/* Every header of a size that the server reads, and no byte behind it. */
START_TEST(a_header_of_any_length_is_read_to_its_end_only)
{
    static const char unit[] = "a;=\"\\ ,b\t\xff";
    enum { SIZE = 1 << 15 };
    char *header = malloc(SIZE);
    struct str value;
    ck_assert_ptr_nonnull(header);
    for (size_t i = 0; i < SIZE; i++)
        header[i] = unit[i * 7 % (sizeof(unit) - 1)];
    ck_assert(!cookie_next(&(struct str){header, SIZE}, STR("name"), &value));
    memset(header, ';', SIZE);
    memcpy(header + SIZE - 3, "a=1", 3);
    ck_assert(cookie_next(&(struct str){header, SIZE}, STR("a"), &value));
    ck_assert(!cookie_next(&(struct str){header, SIZE - 2}, STR("a"), &value));
    free(header);
    for (size_t n = 0; n <= 8; n++) {
        char *exact = malloc(n + 1); /* the sanitizer sees a read behind ${n} */
        ck_assert_ptr_nonnull(exact);
        memcpy(exact, "b=2; a=1", n);
        ck_assert_int_eq(cookie_next(&(struct str){exact, n}, STR("a"), &value), n >= 7);
        free(exact);
    }
}
END_TEST

START_TEST(all_cookies_of_the_name_are_read)
{
    struct str rest = STR("a=1; b=2; a=\x01; a=3;a=4"), value;
    const char *const values[] = {"1", "3", "4"};
    for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
        ck_assert(cookie_next(&rest, STR("a"), &value));
        ck_assert(str_eq(value, str_of(values[i])));
    }
    ck_assert(!cookie_next(&rest, STR("a"), &value));
}
END_TEST

START_TEST(a_cookie_is_set_with_its_attributes)
{
    struct buf text = {0};
    cookie_text(&(struct cookie){.name = STR("a"),
                                 .value = STR("1.2"),
                                 .path = STR("/x/reports/7"),
                                 .max_age_s = 43200,
                                 .secure = _i == 1},
                &text);
    buf_add(&text, "", 1);
    ck_assert_str_eq(text.p, _i == 1 ? "a=1.2; Path=/x/reports/7; Max-Age=43200; HttpOnly; "
                                       "SameSite=Lax; Secure"
                                     : "a=1.2; Path=/x/reports/7; Max-Age=43200; HttpOnly; "
                                       "SameSite=Lax");
    buf_free(&text);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("cookies");
    TCase *tcase = tcase_create("cookies");
    tcase_add_loop_test(tcase, the_first_well_formed_cookie_of_the_name_is_read, 0, COUNT(headers));
    tcase_add_test(tcase, a_value_that_is_too_long_is_skipped);
    tcase_add_test(tcase, a_header_of_any_length_is_read_to_its_end_only);
    tcase_add_test(tcase, all_cookies_of_the_name_are_read);
    tcase_add_loop_test(tcase, a_cookie_is_set_with_its_attributes, 0, 2);
    suite_add_tcase(suite, tcase);
    return suite_run(suite);
}
