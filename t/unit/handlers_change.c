/* Handlers that change records, with test doubles for the pipeline, the store and the writer. */
#include "config.h"
#include "t/kit/api_doubles.h"
#include "t/kit/suite.h"

#include "core/api/api_internal.h"

#include <check.h>
#include <endian.h>

static const char *const id_41[] = {"41", ""};

static void closed(void)
{
    played.reports_count = 0;
}

static const char *const no_ids[] = {"42",
                                     "0",
                                     "-1",
                                     "41x",
                                     " 41",
                                     "0x29",
                                     "",
                                     "4.1",
                                     "9223372036854775808",
                                     "18446744073709551657",
                                     "999999999999999999999999999999"};

START_TEST(an_unknown_report_id_is_404)
{
    const char *const args[] = {no_ids[_i], ""};
    static const char *const methods[] = {"GET", "PUT", "DELETE"};
    played_report(41, REPORT_PENDING, NULL);
    played.answer.status = STORE_NOT_FOUND;
    for (int i = 0; i < 3; ++i) {
        played_send(methods[i], "/api/v1/reports/{id}", args, "", NULL);
        ck_assert_int_eq(played.status, 404);
    }
}
END_TEST

/* ---- create ---- */

START_TEST(a_created_report_is_held_until_graded)
{
    played_report(41, REPORT_PENDING, NULL);
    played.answer.id = 41;
    played.on_await = played_graded;
    played_send("POST", "/api/v1/reports", NULL, "url=https://EXAMPLE.com", NULL);
    ck_assert_int_eq(played.status, 201);
    ck_assert_uint_eq(played.awaits, 1);
    ck_assert_uint_eq(played.awaited, 41);
    ck_assert_uint_eq(played.await_ms, 10000);
    ck_assert_str_eq(played_header("location"), "https://api.example.com/api/v1/reports/41");
    ck_assert_ptr_null(played_header("preference-applied"));
    ck_assert_ptr_null(played_header("idempotent-replayed"));
    played_body_has("\"status\":\"done\"");
    played_body_has(",\"status\":201}");
    ck_assert_uint_eq(played.change.kind, CHANGE_REPORT_CREATE);
    ck_assert_uint_eq(played.change.workspace, 7);
    ck_assert_uint_eq(played.change.privacy, 0);
    ck_assert_uint_eq(played.change.code, 201);
    ck_assert_uint_eq(played.change.limit, 10000);
    ck_assert(str_eq(played.change.url, STR("https://example.com/")));
    ck_assert(str_eq(played.change.name, STR("example.com")));
    ck_assert_uint_eq(played.change.hash.n, 0);
    ck_assert_uint_eq(played.change.idem_key.n, 0);
}
END_TEST

START_TEST(a_pending_report_is_answered_when_the_wait_ends)
{
    played_report(41, REPORT_PENDING, NULL);
    played.answer.id = 41;
    played_send("POST", "/api/v1/reports", NULL, "url=https://EXAMPLE.com", NULL);
    ck_assert_uint_eq(played.awaits, 1);
    played_body_is("{\"data\":" RECORD_PENDING(LINK) ",\"status\":201}");
}
END_TEST

START_TEST(a_report_already_graded_is_not_held)
{
    played_graded();
    played.answer.id = 41;
    played_send("POST", "/api/v1/reports", NULL, "url=https://EXAMPLE.com", NULL);
    ck_assert_uint_eq(played.awaits, 0);
    ck_assert_int_eq(played.status, 201);
}
END_TEST

START_TEST(a_report_deleted_while_held_is_410)
{
    played_report(41, REPORT_PENDING, NULL);
    played.answer.id = 41;
    played.on_await = closed;
    played_send("POST", "/api/v1/reports", NULL, "url=https://EXAMPLE.com", NULL);
    ck_assert_int_eq(played.status, 410);
}
END_TEST

static const struct {
    const char *prefer;
    int status;
    unsigned awaits, await_ms;
    const char *applied;
} prefer_cases[] = {
    {"respond-async", 202, 0, 0, "respond-async"},
    {"respond-async, wait=5", 202, 0, 0, "respond-async"},
    {"wait=0", 201, 0, 0, "wait=0"},
    {"wait=5", 201, 1, 5000, "wait=5"},
    {"wait=30", 201, 1, 30000, "wait=30"},
    {"wait=31", 201, 1, 10000, NULL},
    {"return=minimal", 201, 1, 10000, NULL},
};

START_TEST(the_caller_sets_the_wait)
{
    const char *const headers[] = {"prefer", prefer_cases[_i].prefer, NULL};
    played_report(41, REPORT_PENDING, NULL);
    played.answer.id = 41;
    played_send("POST", "/api/v1/reports", NULL, "url=https://EXAMPLE.com", headers);
    ck_assert_int_eq(played.status, prefer_cases[_i].status);
    ck_assert_uint_eq(played.change.code, (unsigned)prefer_cases[_i].status);
    ck_assert_uint_eq(played.awaits, prefer_cases[_i].awaits);
    ck_assert_uint_eq(played.await_ms, prefer_cases[_i].await_ms);
    ck_assert_pstr_eq(played_header("preference-applied"), prefer_cases[_i].applied);
    ck_assert_ptr_nonnull(played_header("location"));
    played_body_has(prefer_cases[_i].status == 202 ? ",\"status\":202}" : ",\"status\":201}");
}
END_TEST

#define LONG_255                                                                                   \
    "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa" \
    "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"                                                          \
    "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa" \
    "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"

static const struct {
    const char *form, *errors;
} create_refusals[] = {
    {"",
     "\"errors\":{\"url\":[\"is required: send the address of the page, http:// or https://\"]}"},
    {"privacy=1", "\"errors\":{\"url\":[\"is required"},
    {"url=", "\"errors\":{\"url\":[\"must not be empty\"]}"},
    {"url=ftp://example.com", "\"errors\":{\"url\":[\"must be http or https\"]}"},
    {"url=https://EXAMPLE.com&privacy=3", "\"errors\":{\"privacy\":[\"must be one of 0, 1, 2\"]}"},
    {"url=https://EXAMPLE.com&privacy=", "\"errors\":{\"privacy\":["},
    {"url=https://EXAMPLE.com&privacy=2",
     "\"errors\":{\"password\":[\"is required with privacy 2\"]}"},
    {"url=https://EXAMPLE.com&privacy=2&password=",
     "\"errors\":{\"password\":[\"is required with privacy 2\"]}"},
    {"url=https://EXAMPLE.com&privacy=2&password=a" LONG_255,
     "\"errors\":{\"password\":[\"must be at most 255 bytes long\"]}"},
    {"privacy=2", "\"errors\":{\"url\":[\"is required: send the address of the page, http:// or "
                  "https://\"],\"password\":[\"is required with privacy 2\"]}"},
    {"url=https://EXAMPLE.com&url=https://EXAMPLE.com",
     "\"errors\":{\"url\":[\"must be sent only once\"]}"},
};

START_TEST(a_wrong_form_creates_nothing)
{
    played_send("POST", "/api/v1/reports", NULL, create_refusals[_i].form, NULL);
    ck_assert_int_eq(played.status, 422);
    ck_assert_uint_eq(played.changes, 0);
    ck_assert_uint_eq(played.hashes, 0);
    played_body_has(create_refusals[_i].errors);
}
END_TEST

START_TEST(password_is_hashed_with_privacy_2_only)
{
    played_graded();
    played.answer.id = 41;
    played_send("POST", "/api/v1/reports", NULL,
                "url=https://EXAMPLE.com&privacy=2&password=" LONG_255, NULL);
    ck_assert_int_eq(played.status, 201);
    ck_assert(str_eq(played.change.hash, STR("hash of " LONG_255)));
    ck_assert_uint_eq(played.change.privacy, 2);
    for (int i = 0; i < 2; ++i) {
        static const char *const ignored[] = {
            "url=https://EXAMPLE.com&privacy=1&password=" LONG_255 LONG_255,
            "url=https://EXAMPLE.com&password="};
        played_send("POST", "/api/v1/reports", NULL, ignored[i], NULL);
        ck_assert_int_eq(played.status, 201);
        ck_assert_uint_eq(played.change.hash.n, 0);
    }
    ck_assert_uint_eq(played.hashes, 1);
}
END_TEST

START_TEST(a_full_hashing_queue_is_503)
{
    played.hash_queue_full = true;
    played_send("POST", "/api/v1/reports", NULL, "url=https://EXAMPLE.com&privacy=2&password=x",
                NULL);
    ck_assert_int_eq(played.status, 503);
    played_send("PUT", "/api/v1/reports/{id}", id_41, "privacy=2&password=x", NULL);
    ck_assert_int_eq(played.status, 503);
    ck_assert_uint_eq(played.changes, 0);
}
END_TEST

START_TEST(the_writer_receives_idempotency_digests)
{
    static const char *const headers[] = {"idempotency-key", "abc", NULL};
    uint8_t first[32];
    played_graded();
    played.answer.id = 41;
    played_send("POST", "/api/v1/reports", NULL, "url=https://EXAMPLE.com", headers);
    ck_assert_uint_eq(played.change.idem_key.n, 32);
    ck_assert_uint_eq(played.change.idem_body.n, 32);
    memcpy(first, played.change.idem_body.p, 32);
    played_send("POST", "/api/v1/reports", NULL, "url=https://EXAMPLE.com&privacy=1", headers);
    ck_assert_mem_ne(played.change.idem_body.p, first, 32);
}
END_TEST

START_TEST(an_unprintable_idempotency_key_is_400)
{
    static const char *const values[] = {"", "a\tb", "\xc3\xa9", LONG_255 "x"};
    for (int i = 0; i < 4; ++i) {
        const char *const headers[] = {"idempotency-key", values[i], NULL};
        played_send("POST", "/api/v1/reports", NULL, "url=https://EXAMPLE.com", headers);
        ck_assert_int_eq(played.status, 400);
    }
    ck_assert_uint_eq(played.changes, 0);
}
END_TEST

START_TEST(a_replay_without_wait_has_the_first_status_at_once)
{
    static const char *const headers[] = {"prefer", "respond-async", NULL};
    played_report(41, REPORT_PENDING, NULL);
    played.answer = (struct store_answer){.id = 41, .replayed = 1, .code = 201};
    played_send("POST", "/api/v1/reports", NULL, "url=https://EXAMPLE.com", headers);
    ck_assert_int_eq(played.status, 201);
    ck_assert_uint_eq(played.awaits, 0);
}
END_TEST

START_TEST(a_replay_has_the_first_status_and_waits)
{
    played_report(41, REPORT_PENDING, NULL);
    played.answer = (struct store_answer){.id = 41, .replayed = 1, .code = 201};
    played.on_await = played_graded;
    played_send("POST", "/api/v1/reports", NULL, "url=https://EXAMPLE.com", NULL);
    ck_assert_int_eq(played.status, 201);
    ck_assert_str_eq(played_header("idempotent-replayed"), "true");
    ck_assert_uint_eq(played.awaits, 1);
    played_body_has("\"status\":\"done\"");
    played.reports_count = 0;
    played_report(41, REPORT_PENDING, NULL);
    played.answer.code = 202;
    played_send("POST", "/api/v1/reports", NULL, "url=https://EXAMPLE.com", NULL);
    ck_assert_int_eq(played.status, 202);
    ck_assert_uint_eq(played.awaits, 1);
    closed();
    played_send("POST", "/api/v1/reports", NULL, "url=https://EXAMPLE.com", NULL);
    ck_assert_int_eq(played.status, 410);
}
END_TEST

static const struct {
    enum store_status status;
    int create, update, remove; /* HTTP */
} refusals[] = {
    {STORE_NOT_FOUND, 404, 404, 404},     {STORE_PRECONDITION, 412, 412, 412},
    {STORE_KEY_REUSED, 422, 422, 422},    {STORE_NO_PASSWORD, 422, 422, 422},
    {STORE_NOT_PROTECTED, 422, 422, 422}, {STORE_QUEUE_FULL, 503, 503, 503},
    {STORE_FULL, 507, 507, 507},          {STORE_IO, 503, 503, 503},
    {STORE_CORRUPT, 500, 500, 500},       {STORE_INVALID, 500, 500, 500},
};

START_TEST(a_refusal_by_the_writer_is_reported)
{
    played.answer.status = refusals[_i].status;
    played_send("POST", "/api/v1/reports", NULL, "url=https://EXAMPLE.com", NULL);
    ck_assert_int_eq(played.status, refusals[_i].create);
    played_send("PUT", "/api/v1/reports/{id}", id_41, "update=1", NULL);
    ck_assert_int_eq(played.status, refusals[_i].update);
    played_send("DELETE", "/api/v1/reports/{id}", id_41, "", NULL);
    ck_assert_int_eq(played.status, refusals[_i].remove);
}
END_TEST

/* ---- update ---- */

static const struct {
    const char *form;
    uint32_t fields, privacy;
    const char *hash;
} update_cases[] = {
    {"", 0, 0, ""},
    {"update=0", 0, 0, ""},
    {"unknown=1", 0, 0, ""},
    {"privacy=1", CHANGE_HAS_PRIVACY, 1, ""},
    {"privacy=0&update=1", CHANGE_HAS_PRIVACY | CHANGE_REGENERATE, 0, ""},
    {"privacy=2", CHANGE_HAS_PRIVACY, 2, ""},
    {"privacy=2&password=x", CHANGE_HAS_PRIVACY | CHANGE_HAS_PASSWORD, 2, "hash of x"},
    {"password=x", CHANGE_HAS_PASSWORD, 0, "hash of x"},
    {"update=1", CHANGE_REGENERATE, 0, ""},
};

START_TEST(an_update_forwards_its_fields_and_answers_at_once)
{
    played_report(41, REPORT_PENDING, NULL);
    played.answer.id = 41;
    played_send("PUT", "/api/v1/reports/{id}", id_41, update_cases[_i].form, NULL);
    ck_assert_int_eq(played.status, 200);
    ck_assert_uint_eq(played.changes, 1);
    ck_assert_uint_eq(played.change.kind, CHANGE_REPORT_UPDATE);
    ck_assert_uint_eq(played.change.id, 41);
    ck_assert_uint_eq(played.change.fields, update_cases[_i].fields);
    ck_assert_uint_eq(played.change.privacy, update_cases[_i].privacy);
    ck_assert(str_eq(played.change.hash, str_of(update_cases[_i].hash)));
    ck_assert_uint_eq(played.awaits, 0);
    played_body_is("{\"data\":" RECORD_PENDING(LINK) ",\"status\":200}");
}
END_TEST

static const struct {
    const char *form, *message;
} update_refusals[] = {
    {"password=", "password\":[\"must not be empty"},
    {"password=" LONG_255 "x", "password\":[\"must be at most 255 bytes long"},
    {"privacy=2&password=", "password\":[\"must not be empty"},
    {"privacy=1&password=x", "\"password\":[\"is accepted only if privacy is 2"},
    {"privacy=0&password=x", "\"password\":[\"is accepted only if privacy is 2"},
    {"update=2", "update\":[\"must be one of 0, 1"},
    {"update=yes&privacy=9",
     "update\":[\"must be one of 0, 1\"],\"privacy\":[\"must be one of 0, 1, 2"},
};

START_TEST(a_wrong_update_changes_nothing)
{
    played_send("PUT", "/api/v1/reports/{id}", id_41, update_refusals[_i].form, NULL);
    ck_assert_int_eq(played.status, 422);
    ck_assert_uint_eq(played.changes, 0);
    ck_assert_uint_eq(played.hashes, 0);
    played_body_has(update_refusals[_i].message);
}
END_TEST

START_TEST(an_update_waits_for_a_grade_only_on_request)
{
    static const char *const wait[] = {"prefer", "wait=7", NULL};
    static const char *const async[] = {"prefer", "respond-async", NULL};
    played_report(41, REPORT_PENDING, NULL);
    played_send("PUT", "/api/v1/reports/{id}", id_41, "update=1", wait);
    ck_assert_uint_eq(played.awaits, 1);
    ck_assert_uint_eq(played.await_ms, 7000);
    ck_assert_str_eq(played_header("preference-applied"), "wait=7");
    played_send("PUT", "/api/v1/reports/{id}", id_41, "privacy=1", wait);
    ck_assert_ptr_null(played_header("preference-applied"));
    played_send("PUT", "/api/v1/reports/{id}", id_41, "update=1", async);
    ck_assert_ptr_null(played_header("preference-applied"));
    ck_assert_int_eq(played.status, 200);
    ck_assert_uint_eq(played.awaits, 1);
}
END_TEST

static uint64_t matched(size_t i)
{
    uint64_t version;
    memcpy(&version, played.change.match.p + i * sizeof(version), sizeof(version));
    return le64toh(version);
}

START_TEST(the_writer_receives_if_match_versions)
{
    static const char *const some[] = {"if-match",
                                       "\"5-" PACKAGE_VERSION "\", W/\"6-" PACKAGE_VERSION "\"",
                                       "if-match", "\"7-" PACKAGE_VERSION "-gz\"", NULL};
    static const char *const any[] = {"if-match", "\"5-" PACKAGE_VERSION "\"", "if-match", "*",
                                      NULL};
    static const char *const foreign[] = {"if-match", "\"something\"", NULL};
    played_report(41, REPORT_PENDING, NULL);
    static const char *const methods[] = {"PUT", "DELETE"};
    for (int i = 0; i < 2; ++i) {
        played_send(methods[i], "/api/v1/reports/{id}", id_41, "", some);
        ck_assert_uint_eq(played.change.match.n, 16);
        ck_assert_uint_eq(matched(0), 5);
        ck_assert_uint_eq(matched(1), 7);
        played_send(methods[i], "/api/v1/reports/{id}", id_41, "", any);
        ck_assert_uint_eq(played.change.match.n, 0);
        played_send(methods[i], "/api/v1/reports/{id}", id_41, "", foreign);
        ck_assert_uint_eq(played.change.match.n, 8);
        ck_assert_uint_eq(matched(0), UINT64_MAX);
        played_send(methods[i], "/api/v1/reports/{id}", id_41, "", NULL);
        ck_assert_uint_eq(played.change.match.n, 0);
    }
}
END_TEST

START_TEST(a_deletion_answers_with_the_report_id)
{
    played_send("DELETE", "/api/v1/reports/{id}", id_41, "", NULL);
    ck_assert_int_eq(played.status, 200);
    ck_assert_uint_eq(played.change.kind, CHANGE_REPORT_DELETE);
    ck_assert_uint_eq(played.change.id, 41);
    played_body_is("{\"id\":41,\"object\":\"report\",\"deleted\":true,\"status\":200}");
}
END_TEST

#define LOOP(tc, test, cases) tcase_add_loop_test(tc, test, 0, sizeof(cases) / sizeof((cases)[0]))

int main(void)
{
    Suite *suite = suite_create("handlers_change");
    TCase *tc = tcase_create("handlers_change");
    suite_add_tcase(suite, tc);
    tcase_add_checked_fixture(tc, played_begin, played_end);
    LOOP(tc, an_unknown_report_id_is_404, no_ids);
    tcase_add_test(tc, a_created_report_is_held_until_graded);
    tcase_add_test(tc, a_pending_report_is_answered_when_the_wait_ends);
    tcase_add_test(tc, a_report_already_graded_is_not_held);
    tcase_add_test(tc, a_report_deleted_while_held_is_410);
    LOOP(tc, the_caller_sets_the_wait, prefer_cases);
    LOOP(tc, a_wrong_form_creates_nothing, create_refusals);
    tcase_add_test(tc, password_is_hashed_with_privacy_2_only);
    tcase_add_test(tc, a_full_hashing_queue_is_503);
    tcase_add_test(tc, the_writer_receives_idempotency_digests);
    tcase_add_test(tc, an_unprintable_idempotency_key_is_400);
    tcase_add_test(tc, a_replay_without_wait_has_the_first_status_at_once);
    tcase_add_test(tc, a_replay_has_the_first_status_and_waits);
    LOOP(tc, a_refusal_by_the_writer_is_reported, refusals);
    LOOP(tc, an_update_forwards_its_fields_and_answers_at_once, update_cases);
    LOOP(tc, a_wrong_update_changes_nothing, update_refusals);
    tcase_add_test(tc, an_update_waits_for_a_grade_only_on_request);
    tcase_add_test(tc, the_writer_receives_if_match_versions);
    tcase_add_test(tc, a_deletion_answers_with_the_report_id);
    return suite_run(suite);
}
