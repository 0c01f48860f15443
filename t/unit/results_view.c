/* The results of a grading, JSON by core/audit, as what a page shows. */
#include "core/web/report_view.h"
#include "core/web/texts.h"
#include "t/kit/suite.h"

#include <stdlib.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static void *allocated[16]; /* freed after each test */
static size_t allocations;

static void *alloc(void *of, size_t size)
{
    (void)of;
    ck_assert_uint_lt(allocations, COUNT(allocated));
    void *p = malloc(size);
    ck_assert_ptr_nonnull(p);
    return allocated[allocations++] = p;
}

static void free_all(void)
{
    while (allocations > 0)
        free(allocated[--allocations]);
}

static const struct view_memory memory = {alloc, NULL};

static struct report_view view_of_results(const char *results, enum language language)
{
    const struct store_report report = {.id = 1,
                                        .url = STR("https://example.com/"),
                                        .status = REPORT_DONE,
                                        .result = RESULT_BAD,
                                        .results = str_of(results)};
    const struct report_source source = {.report = &report, .language = language};
    struct report_view view = {0};
    report_view_make(&view, &source, &memory);
    return view;
}

static bool is(struct html html, const char *want)
{
    return str_eq((struct str){html.p, html.n}, str_of(want));
}

#define MEMBERS "\"passed\":false,\"value\":\"a \\\"b\\\\\",\"message\":\"c\""

/* As core/audit writes a check, and as other versions of Assay could. */
static const char *const failed_checks[] = {
    "{\"title\":{\"category\":\"seo\",\"importance\":\"high\"," MEMBERS
    ",\"details\":[\"<d>\",\"e\\\"\"]}}",
    "{\"title\":{\"details\":[\"<d>\",\"e\\\"\"]," MEMBERS
    ",\"importance\":\"high\",\"category\":\"seo\"}}",
    "{\"title\":{\"new\":{\"category\":[1,\"}\"]},\"category\":\"seo\",\"importance\":"
    "\"high\"," MEMBERS ",\"details\":[\"<d>\",\"e\\\"\"],\"newer\":\"]}\"}}",
};

START_TEST(a_failed_check_is_shown_whatever_the_order_of_its_members)
{
    struct str seo = text_find(LANGUAGE_EN, "category", STR("seo"), NULL);
    struct report_view view = view_of_results(failed_checks[_i], LANGUAGE_EN);
    ck_assert_uint_eq(view.findings.n, 1);
    ck_assert_uint_eq(view.passed_count + view.skipped_count, 0);
    ck_assert_uint_eq(view.categories.n, 1);
    ck_assert_uint_eq(view.categories.at[0].applied, 1);
    ck_assert(str_eq(view.categories.at[0].name, seo));
    const struct finding_view *f = &view.findings.at[0];
    ck_assert(is(f->name, "Title") && str_eq(f->category, seo));
    ck_assert(f->high && !f->medium && !f->low);
    ck_assert(is(f->found, "a &quot;b\\") && is(f->wrong, "c"));
    ck_assert_uint_eq(f->elements.n, 2);
    ck_assert(is(f->elements.at[0], "&lt;d&gt;") && is(f->elements.at[1], "e&quot;"));
    ck_assert_uint_eq(f->more_count, 0);
}
END_TEST

#define CHECK(id, category, importance, passed, value)                                             \
    "\"" id "\":{\"category\":\"" category "\",\"importance\":\"" importance                       \
    "\",\"passed\":" passed ",\"value\":" value ",\"message\":null,\"details\":[]}"

#define FAVICON CHECK("favicon", "misc", "low", "false", "7")
#define HSTS CHECK("hsts", "security", "medium", "true", "null")
#define TITLE CHECK("title", "seo", "high", "null", "\"x\"")
#define UNKNOWN CHECK("unknown", "other", "medium", "false", "null")
#define CSP CHECK("csp", "security", "high", "false", "\"y\"")

START_TEST(checks_are_sorted_by_outcome_and_importance)
{
    struct report_view view =
        view_of_results("{" FAVICON "," HSTS "," TITLE "," UNKNOWN "," CSP "}", LANGUAGE_DE);
    ck_assert_uint_eq(view.findings.n, 3);
    ck_assert(view.findings.at[0].high && is(view.findings.at[0].found, "y"));
    ck_assert(view.findings.at[1].medium && is(view.findings.at[1].name, "unknown"));
    ck_assert_uint_eq(view.findings.at[1].found.n + view.findings.at[1].wrong.n +
                          view.findings.at[1].category.n,
                      0);
    ck_assert(view.findings.at[2].low && is(view.findings.at[2].found, "7"));
    ck_assert_uint_eq(view.passed_count, 1);
    ck_assert_uint_eq(view.skipped_count, 1);
    ck_assert_uint_eq(view.categories.n, 2);
    ck_assert_uint_eq(view.categories.at[0].percent, 50);
    ck_assert_uint_eq(view.categories.at[1].percent, 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("results_view");
    TCase *tcase = tcase_create("results_view");
    tcase_add_checked_fixture(tcase, NULL, free_all);
    tcase_add_loop_test(tcase, a_failed_check_is_shown_whatever_the_order_of_its_members, 0,
                        COUNT(failed_checks));
    tcase_add_test(tcase, checks_are_sorted_by_outcome_and_importance);
    suite_add_tcase(suite, tcase);
    return suite_run(suite);
}
