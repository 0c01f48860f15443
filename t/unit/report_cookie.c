/* The cookie that opens a report with a password: what it is valid for, and every change of it. */
#include "core/web/report_cookie.h"
#include "core/auth/password.h"
#include "t/kit/suite.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define NOW INT64_C(1800000000000)
#define HOUR INT64_C(3600000)
#define DAY (24 * HOUR)

static char dir[64], path[128], why[SECRETS_PATH + 256];
static struct signing_keys *keys;
static char hash[PASSWORD_HASH_SIZE], other_hash[PASSWORD_HASH_SIZE];
static struct store_report report;
static char value[REPORT_COOKIE_SIZE];
static size_t size;

static void begin(void)
{
    strcpy(dir, "/tmp/assay-cookie-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(dir));
    snprintf(path, sizeof(path), "%s/secrets", dir);
    ck_assert_int_eq(signing_keys_make(path, NOW - 2 * DAY, why, sizeof(why)), 0);
    keys = signing_keys_open(path, why, sizeof(why));
    ck_assert_msg(keys != NULL, "%s", why);
    ck_assert(password_hash(STR("secret"), hash) && password_hash(STR("secret"), other_hash));
    report = (struct store_report){
        .id = 7, .privacy = PRIVACY_PASSWORD, .password_hash = str_of(hash), .version = 3};
    size = report_cookie_make(keys, &report, NOW, value);
    ck_assert_uint_gt(size, 64);
    ck_assert_uint_eq(size, strlen(value));
}

static void end(void)
{
    signing_keys_free(keys);
    unlink(path);
    rmdir(dir);
}

static bool is_valid(struct str text, int64_t now_ms)
{
    return report_cookie_valid(keys, &report, now_ms, text);
}

static bool made_is_valid(void)
{
    return is_valid((struct str){value, size}, NOW);
}

START_TEST(it_is_valid_for_twelve_hours)
{
    struct str text = {value, size};
    ck_assert(is_valid(text, NOW));
    ck_assert(is_valid(text, NOW - HOUR));
    ck_assert(is_valid(text, NOW + 12 * HOUR - 1000));
    ck_assert(!is_valid(text, NOW + 12 * HOUR));
    ck_assert(!is_valid(text, NOW + 12 * HOUR + DAY));
}
END_TEST

START_TEST(it_opens_its_report_alone)
{
    static const uint64_t ids[] = {0, 1, 6, 8, 70, 77, 7 + (UINT64_C(1) << 32), UINT64_MAX};
    for (size_t i = 0; i < sizeof(ids) / sizeof(ids[0]); i++) {
        report.id = ids[i];
        ck_assert_msg(!made_is_valid(), "%llu", (unsigned long long)ids[i]);
    }
}
END_TEST

START_TEST(it_ends_with_the_password)
{
    report.password_hash = str_of(other_hash); /* the same password, set again */
    ck_assert(!made_is_valid());
    report.password_hash = (struct str){hash, strlen(hash) - 1};
    ck_assert(!made_is_valid());
    report.password_hash = (struct str){"", 0};
    ck_assert(!made_is_valid());
}
END_TEST

START_TEST(it_ends_with_the_privacy)
{
    report.privacy = _i == 0 ? PRIVACY_PUBLIC : PRIVACY_PRIVATE;
    ck_assert(!made_is_valid());
    ck_assert_uint_eq(report_cookie_make(keys, &report, NOW, value), 0);
}
END_TEST

START_TEST(it_does_not_end_with_other_changes)
{
    report.version++;
    report.status = REPORT_PENDING;
    report.score = 12;
    ck_assert(made_is_valid());
}
END_TEST

START_TEST(any_changed_bit_is_detected)
{
    for (size_t i = 0; i < size; i++)
        for (unsigned bit = 0; bit < 8; bit++) {
            value[i] = (char)(value[i] ^ (1 << bit));
            ck_assert_msg(!made_is_valid(), "bit %u of byte %zu", bit, i);
            value[i] = (char)(value[i] ^ (1 << bit));
        }
    ck_assert(made_is_valid());
}
END_TEST

START_TEST(any_truncated_or_extended_value_is_detected)
{
    static const char *const tails[] = {"0", ".", ".0", " ", "\n", "a"};
    for (size_t n = 0; n < size; n++) {
        ck_assert_msg(!is_valid((struct str){value, n}, NOW), "%zu bytes", n);
        ck_assert_msg(!is_valid((struct str){value + size - n, n}, NOW), "the last %zu", n);
    }
    for (size_t i = 0; i < sizeof(tails) / sizeof(tails[0]); i++) {
        strcpy(value + size, tails[i]);
        ck_assert_msg(!is_valid(str_of(value), NOW), "%s", tails[i]);
    }
    ck_assert(!is_valid((struct str){NULL, 0}, NOW));
}
END_TEST

/* The expiry is signed, and has one spelling. */
START_TEST(another_expiry_is_detected)
{
    static const char *const expiries[] = {
        "1800043201", "1800043199", "01800043200", "1800043200 ",          "+1800043200",
        "-1",         "",           "99999999999", "18446744073709551615", "1800043200.1800043200"};
    char text[256], kid[SECRET_KID + 1];
    snprintf(kid, sizeof(kid), "%.*s", SECRET_KID, value);
    for (size_t i = 0; i < sizeof(expiries) / sizeof(expiries[0]); i++) {
        snprintf(text, sizeof(text), "%s.%s%s", kid, expiries[i], strrchr(value, '.'));
        ck_assert_msg(!is_valid(str_of(text), NOW), "%s", text);
    }
    snprintf(text, sizeof(text), "%s.1800043200%s", kid, strrchr(value, '.'));
    ck_assert_msg(is_valid(str_of(text), NOW), "%s", text);
}
END_TEST

/* Keys that `assay secret rotate` keeps are accepted for as long as cookies live. */
START_TEST(a_rotated_key_keeps_it_valid)
{
    char next[REPORT_COOKIE_SIZE];
    ck_assert_int_eq(signing_keys_rotate(path, NOW + 1000, DAY, why, sizeof(why)), 0);
    signing_keys_reload(keys);
    ck_assert(made_is_valid());
    ck_assert(is_valid((struct str){value, size}, NOW + 12 * HOUR - 1000));
    ck_assert_uint_eq(report_cookie_make(keys, &report, NOW + HOUR, next), size);
    ck_assert(strncmp(next, value, SECRET_KID) != 0);
    ck_assert(is_valid(str_of(next), NOW + HOUR));
    memcpy(next, value, SECRET_KID); /* signed with the one, naming the other */
    ck_assert(!is_valid(str_of(next), NOW + HOUR));
}
END_TEST

START_TEST(a_key_of_another_server_is_refused)
{
    char elsewhere[128];
    snprintf(elsewhere, sizeof(elsewhere), "%s/other", dir);
    ck_assert_int_eq(signing_keys_make(elsewhere, NOW, why, sizeof(why)), 0);
    struct signing_keys *others = signing_keys_open(elsewhere, why, sizeof(why));
    ck_assert_ptr_nonnull(others);
    ck_assert(!report_cookie_valid(others, &report, NOW, (struct str){value, size}));
    memcpy(value, signing_keys_signing(others, NOW)->kid, SECRET_KID);
    ck_assert(!report_cookie_valid(others, &report, NOW, (struct str){value, size}));
    signing_keys_free(others);
    unlink(elsewhere);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("report_cookie");
    TCase *tcase = tcase_create("report_cookie");
    tcase_add_checked_fixture(tcase, begin, end);
    tcase_add_test(tcase, it_is_valid_for_twelve_hours);
    tcase_add_test(tcase, it_opens_its_report_alone);
    tcase_add_test(tcase, it_ends_with_the_password);
    tcase_add_loop_test(tcase, it_ends_with_the_privacy, 0, 2);
    tcase_add_test(tcase, it_does_not_end_with_other_changes);
    tcase_add_test(tcase, any_changed_bit_is_detected);
    tcase_add_test(tcase, any_truncated_or_extended_value_is_detected);
    tcase_add_test(tcase, another_expiry_is_detected);
    tcase_add_test(tcase, a_rotated_key_keeps_it_valid);
    tcase_add_test(tcase, a_key_of_another_server_is_refused);
    suite_add_tcase(suite, tcase);
    return suite_run(suite);
}
