/* Idempotency keys of reports: a repeated create returns the first record. */
#include "t/kit/store_fixtures.h"

static char idem_key[32], idem_body[32];

static struct store_change idem_change(char key, char body)
{
    struct store_change c = kit_create_change(w, "https://a.com/", "a.com");
    memset(idem_key, key, sizeof(idem_key));
    memset(idem_body, body, sizeof(idem_body));
    c.idem_key = (struct str){idem_key, 32};
    c.idem_body = (struct str){idem_body, 32};
    return c;
}

START_TEST(a_repeat_answers_the_first_record_and_code)
{
    struct store_change c = idem_change(1, 1);
    c.code = 202;
    struct store_answer first = kit_apply(&k, &c);
    ck_status(first.status, STORE_OK);
    ck_assert_uint_eq(first.replayed, 0);
    kit_done(&k, first.id, 1, 70);
    c.code = 201;
    struct store_answer again = kit_apply(&k, &c);
    ck_status(again.status, STORE_OK);
    ck_assert_uint_eq(again.replayed, 1);
    ck_assert_uint_eq(again.id, first.id);
    ck_assert_uint_eq(again.code, 202);
    ck_assert_uint_eq(again.version, 2);
    struct store_usage u;
    ck_status(store_usage(k.s, &u), STORE_OK);
    ck_assert_uint_eq(u.reports, 1);
}
END_TEST

START_TEST(another_body_is_refused_and_another_key_makes_another_report)
{
    struct store_change c = idem_change(1, 1);
    uint64_t first = kit_apply(&k, &c).id;
    c = idem_change(1, 2);
    ck_status(kit_status(&k, &c), STORE_KEY_REUSED);
    c = idem_change(2, 1);
    struct store_answer a = kit_apply(&k, &c);
    ck_status(a.status, STORE_OK);
    ck_assert_uint_ne(a.id, first);
}
END_TEST

START_TEST(a_repeat_of_a_deleted_report_is_not_found)
{
    struct store_change c = idem_change(1, 1);
    uint64_t id = kit_apply(&k, &c).id;
    change((struct store_change){.kind = CHANGE_REPORT_DELETE, .workspace = w, .id = id});
    struct store_answer a = kit_apply(&k, &c);
    ck_status(a.status, STORE_NOT_FOUND);
    ck_assert_uint_eq(a.replayed, 1);
    ck_assert_uint_eq(a.id, id);
}
END_TEST

START_TEST(an_idempotency_row_lives_24_hours_and_is_then_overwritten_or_purged)
{
    struct store_change c = idem_change(1, 1);
    uint64_t id = kit_apply(&k, &c).id;
    k.now = NOW + 24 * HOUR - 1;
    ck_assert_uint_eq(kit_apply(&k, &c).replayed, 1);
    ck_status(change((struct store_change){.kind = CHANGE_PURGE, .limit = 9}).status,
              STORE_NOT_FOUND);
    k.now = NOW + 24 * HOUR;
    struct store_answer a = kit_apply(&k, &c);
    ck_status(a.status, STORE_OK);
    ck_assert_uint_eq(a.replayed, 0);
    ck_assert_uint_ne(a.id, id);
    kit_check_clean(k.s);
    k.now += 24 * HOUR;
    a = change((struct store_change){.kind = CHANGE_PURGE, .limit = 9});
    ck_status(a.status, STORE_OK);
    ck_assert_uint_eq(a.id, 1);
    ck_status(change((struct store_change){.kind = CHANGE_PURGE, .limit = 9}).status,
              STORE_NOT_FOUND);
    kit_check_clean(k.s);
}
END_TEST

START_TEST(a_refused_create_stores_no_idempotency_row)
{
    struct store_change c = idem_change(1, 1);
    c.privacy = 2;
    ck_status(kit_status(&k, &c), STORE_NO_PASSWORD);
    c.privacy = 0;
    struct store_answer a = kit_apply(&k, &c);
    ck_status(a.status, STORE_OK);
    ck_assert_uint_eq(a.replayed, 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("store_idempotency");
    TCase *tc = tcase_create("idempotency");
    tcase_add_checked_fixture(tc, workspace_setup, store_teardown);
    tcase_add_test(tc, a_repeat_answers_the_first_record_and_code);
    tcase_add_test(tc, another_body_is_refused_and_another_key_makes_another_report);
    tcase_add_test(tc, a_repeat_of_a_deleted_report_is_not_found);
    tcase_add_test(tc, an_idempotency_row_lives_24_hours_and_is_then_overwritten_or_purged);
    tcase_add_test(tc, a_refused_create_stores_no_idempotency_row);
    suite_add_tcase(suite, tc);
    return kit_run(suite);
}
