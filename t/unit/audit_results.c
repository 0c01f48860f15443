/* The results of an audit: their JSON, the failed checks, the score, and its class. */
#include "t/kit/audit.h"
#include "t/kit/suite.h"
#include "core/audit/results_internal.h"

#include <check.h>
#include <json-c/json.h>
#include <locale.h>

#define COUNT(array) ((int)(sizeof(array) / sizeof((array)[0])))
static const struct conf conf = {
    .reports_weight_high = 10, .reports_weight_medium = 5, .reports_weight_low = 1};

#define URL "https://example.com/"
#define D(n) "<!DOCTYPE html><title>t</title><body>" n
#define T60 "123456789 123456789 123456789 123456789 123456789 1234567890"

START_TEST(results_are_json_with_a_member_per_check_and_a_score)
{
    struct facts f;
    struct audit_findings findings = {0};
    struct buf json = {0};
    unsigned won = 0, all = 0, passed = 0;
    audit_kit_facts(&f, URL, "X-Robots-Tag: noindex \"\\\x01",
                    "<title>\"\\\x02 <\xC3\xA4></title><img src='a\"\\'>");
    ck_assert(results_make(&f, &conf, &findings, &json));
    buf_add(&json, "", 1);
    struct json_object *parsed = json_tokener_parse(json.p);
    ck_assert_ptr_nonnull(parsed);
    ck_assert_int_eq(json_object_object_length(parsed), (int)checks_count);
    for (size_t i = 0; i < checks_count; i++) {
        static const unsigned weights[] = {10, 5, 1};
        struct json_object *check, *outcome, *details;
        ck_assert(json_object_object_get_ex(parsed, checks[i].id, &check));
        ck_assert_int_eq(json_object_object_length(check), 6);
        ck_assert(json_object_object_get_ex(check, "details", &details) &&
                  json_object_is_type(details, json_type_array));
        ck_assert(json_object_object_get_ex(check, "passed", &outcome));
        if (outcome == NULL)
            continue;
        all += weights[checks[i].importance];
        won += json_object_get_boolean(outcome) ? weights[checks[i].importance] : 0;
        passed += (unsigned)json_object_get_boolean(outcome);
    }
    ck_assert_int_eq(findings.score, (int)(100.0 * won / all + 0.5));
    ck_assert_uint_eq(findings.issues.passed, passed);
    json_object_put(parsed);
    buf_free(&json);
    facts_free(&f);
}
END_TEST

START_TEST(failed_checks_are_listed_in_the_order_of_the_results)
{
    struct facts f;
    struct audit_findings findings = {0};
    struct buf json = {0}, expected = {0};
    audit_kit_facts(&f, URL, "", D("<h1>t</h1><img src=a>"));
    ck_assert(results_make(&f, &conf, &findings, &json));
    for (size_t c = 0; c < checks_count; c++) {
        struct verdict v = {.arena = &f.arena};
        checks[c].run(&f, &v);
        if (v.outcome == OUTCOME_FAIL)
            buf_printf(&expected, "%s%s", expected.n == 0 ? "" : " ", checks[c].id);
    }
    ck_assert_uint_gt(expected.n, 0);
    ck_assert(str_eq(findings.failed, buf_view(&expected)));
    ck_assert_uint_eq(findings.facts.http_status, 200);
    ck_assert(str_eq(findings.facts.protocol, STR("HTTP/2")));
    ck_assert(str_eq(findings.facts.final_url, f.response.url));
    buf_free(&expected);
    buf_free(&json);
    facts_free(&f);
}
END_TEST

START_TEST(the_ids_of_all_checks_fit_a_grading)
{
    size_t bytes = 0;
    for (size_t c = 0; c < checks_count; c++) {
        ck_assert_ptr_null(strchr(checks[c].id, ' '));
        bytes += strlen(checks[c].id) + 1;
    }
    ck_assert_uint_le(bytes, STORE_FAILED_MAX);
}
END_TEST

START_TEST(the_configuration_sets_the_weight_of_a_check)
{
    static const struct conf high_only = {.reports_weight_high = 3},
                             low_only = {.reports_weight_low = 7}, nothing = {.reports_good = 80};
    static const struct {
        const struct conf *conf;
        enum check_importance counted;
    } weighings[] = {{&high_only, IMPORTANCE_HIGH}, {&low_only, IMPORTANCE_LOW}};
    struct facts f;
    struct audit_findings findings = {0};
    struct buf json = {0};
    audit_kit_facts(&f, URL, "", D("<h1>t</h1><img src=a>"));
    for (int i = 0; i < COUNT(weighings); i++) {
        unsigned passed = 0, all = 0;
        for (size_t c = 0; c < checks_count; c++) {
            struct verdict v = {.arena = &f.arena};
            checks[c].run(&f, &v);
            bool counts =
                checks[c].importance == weighings[i].counted && v.outcome != OUTCOME_NOT_APPLICABLE;
            all += counts;
            passed += counts && v.outcome == OUTCOME_PASS;
        }
        ck_assert(results_make(&f, weighings[i].conf, &findings, &json));
        ck_assert_int_eq(findings.score, (int)(100.0 * passed / all + 0.5));
    }
    ck_assert(results_make(&f, &nothing, &findings, &json));
    ck_assert_int_eq(findings.score, 0);
    buf_free(&json);
    facts_free(&f);
}
END_TEST

START_TEST(long_details_are_cut_first)
{
    struct facts f;
    struct audit_findings findings = {0};
    struct buf html = {0}, json = {0};
    for (unsigned i = 0; i < 100; i++)
        buf_printf(
            &html,
            "<h1>%0250u</h1><img src='http://%0250u'><meta property='og:%0100u' content='%0200u'>",
            i, i, i, i);
    buf_add(&html, "", 1);
    audit_kit_facts(&f, URL, "", html.p);
    ck_assert(results_make(&f, &conf, &findings, &json));
    ck_assert_uint_le(json.n, RESULTS_MAX_BYTES);
    ck_assert_uint_gt(json.n, RESULTS_MAX_BYTES / 8);
    buf_add(&json, "", 1);
    struct json_object *parsed = json_tokener_parse(json.p), *check, *details;
    ck_assert(json_object_object_get_ex(parsed, "headings", &check) &&
              json_object_object_get_ex(check, "details", &details));
    ck_assert_uint_gt(json_object_array_length(details), 5);
    ck_assert_uint_le(json_object_array_length(details), 50);
    json_object_put(parsed);
    buf_free(&html);
    buf_free(&json);
    facts_free(&f);
}
END_TEST

START_TEST(a_score_is_classified_by_the_thresholds)
{
    struct conf c = {.reports_good = 80, .reports_decent = 50};
    static const int results[][2] = {{100, 1}, {80, 1}, {79, 2}, {50, 2}, {49, 3}, {0, 3}, {-1, 0}};
    for (int i = 0; i < COUNT(results); i++)
        ck_assert_int_eq(audit_result(results[i][0], &c), results[i][1]);
}
END_TEST

int main(void)
{
    setlocale(LC_CTYPE, "C.UTF-8"); /* like audit_new */
    Suite *s = suite_create("audit_results");
    TCase *t = tcase_create("checks");
    tcase_add_test(t, results_are_json_with_a_member_per_check_and_a_score);
    tcase_add_test(t, failed_checks_are_listed_in_the_order_of_the_results);
    tcase_add_test(t, the_ids_of_all_checks_fit_a_grading);
    tcase_add_test(t, the_configuration_sets_the_weight_of_a_check);
    tcase_add_test(t, long_details_are_cut_first);
    tcase_add_test(t, a_score_is_classified_by_the_thresholds);
    suite_add_tcase(s, t);
    return suite_run(s);
}
