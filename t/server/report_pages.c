/* GET /reports/{id}: what the page of a report shows. */
#include "config.h"

#include "t/kit/report_pages.h"

/* ---- what it shows ---- */

/* The lists of a page are those of the JSON, in its order. */
static size_t expect_names(const struct response *r, struct json_object *results, int passed,
                           const char *list)
{
    xmlNode *node = tree_with(tree_of(r), "class", list);
    size_t count = 0;
    json_object_object_foreach(results, id, check)
    {
        struct json_object *has = json_object_object_get(check, "passed");
        if (id == NULL || (has == NULL ? -1 : json_object_get_boolean(has)) != passed)
            continue;
        count++;
        expect(r, node != NULL);
    }
    if (node != NULL)
        ck_assert_uint_eq(tree_count(node, "li"), count);
    return count;
}

START_TEST(a_graded_page_shows_its_grade_and_all_checks)
{
    int64_t id = report_new(server, origin_url(origin, "/bad"));
    struct response *json = http_get(server, report_path(id)), *r = page(id, "");
    struct json_object *results = at(json, "data.results");
    xmlNode *root = tree_of(r);
    size_t passed = expect_names(r, results, 1, "names passed"),
           skipped = expect_names(r, results, -1, "names skipped"),
           failed = (size_t)json_object_object_length(results) - passed - skipped;
    ck_assert_uint_gt(passed, 5);
    ck_assert_uint_gt(skipped, 3);
    ck_assert_uint_eq(tree_count(tree_with(root, "class", "findings"), "h3"), failed);
    expect_text(r, "h1", origin_url(origin, "/bad"));
    expect(r, tree_with(root, "aria-label",
                        text("Score: %d of 100", (int)int_at(json, "data.score"))) != NULL);
    expect(r, tree_with(root, "class", "verdict bad") != NULL);
    expect_text(r, "strong", "Bad");
    expect_words(r, text("To mend: %d high, %d medium, %d low importance",
                         (int)int_at(json, "data.issues.high"),
                         (int)int_at(json, "data.issues.medium"),
                         (int)int_at(json, "data.issues.low")));
    ck_assert_uint_eq(tree_count(tree_with(root, "class", "bars"), "li"), 4);
}
END_TEST

START_TEST(a_finding_says_what_is_wrong_why_and_how_to_mend_it)
{
    int64_t id = report_new(server, origin_url(origin, "/bad"));
    struct response *json = http_get(server, report_path(id)), *r = page(id, "");
    const char *message = str_at(json, "data.results.image_alt.message");
    expect_text(r, "h3", "Alternative texts of images");
    expect_text(r, "p", message);
    expect_text(r, "dt", "Why it matters");
    expect_text(r, "dt", "How to mend it");
    expect_words(r, "Screen readers read the alternative text to people who cannot see the image.");
    expect_words(r, "Add an alt attribute to each <img>");
    expect_text(r, "bdi", "<img src=\"/pot.png\">");
    expect_text(r, "span", "High");
}
END_TEST

/* Findings come in the order of their importance. */
START_TEST(what_matters_most_comes_first)
{
    struct response *r = page(report_new(server, origin_url(origin, "/bad")), "");
    xmlNode *root = tree_of(r), *list = tree_with(root, "class", "findings");
    static const char *const levels[] = {"tag high", "tag medium", "tag low"};
    size_t level = 0, seen = 0;
    for (xmlNode *node = list; node != NULL; node = tree_next(node, list)) {
        const char *class = tree_is(node, "span") ? tree_attribute(node, "class") : NULL;
        for (size_t i = 0; class != NULL && i < COUNT(levels); i++)
            if (strcmp(class, levels[i]) == 0) {
                ck_assert_uint_ge(i, level);
                level = i;
                seen++;
            }
    }
    ck_assert_uint_eq(seen, tree_count(list, "h3"));
    ck_assert_uint_gt(level, 0);
}
END_TEST

START_TEST(elements_beyond_five_are_folded)
{
    int64_t id =
        report_of("/images", "<!doctype html><title>Images</title><img src=/1><img src=/2>"
                             "<img src=/3><img src=/4><img src=/5><img src=/6><img src=/7>");
    struct response *r = page(id, "");
    xmlNode *root = tree_of(r), *folded = tree_find(root, "details");
    expect(r, folded != NULL);
    expect_text(r, "summary", "Show 2 more");
    expect(r, !tree_has_text(folded, "bdi", "<img src=\"/5\">"));
    expect(r, tree_has_text(folded, "bdi", "<img src=\"/6\">"));
    expect(r, tree_has_text(folded, "bdi", "<img src=\"/7\">"));
}
END_TEST

START_TEST(facts_and_the_final_address_are_there)
{
    origin_page(origin, "/moved", 301, "Location: /good\r\n", "");
    int64_t id = report_new(server, origin_url(origin, "/moved"));
    struct response *json = http_get(server, report_path(id)), *r = page(id, "");
    expect_text(r, "bdi", origin_url(origin, "/good"));
    expect_words(r, "Final address:");
    expect_text(r, "dd", "200");
    expect_text(r, "dd", "HTTP/1.1");
    expect_text(r, "dd", text("Assay %s", PACKAGE_VERSION));
    xmlNode *time = tree_with(tree_of(r), "datetime", str_at(json, "data.generated_at"));
    expect(r, time != NULL && strstr(tree_text(time), " UTC") != NULL);
    ck_assert_ptr_null(strstr(page(good, "")->body, "Final address:"));
}
END_TEST

/* ---- history and comparison ---- */

START_TEST(history_shows_every_grading_and_compares_two)
{
    int64_t id = report_of("/changing", TITLED ">");
    ck_assert_ptr_null(strstr(page(id, "")->body, "<table"));
    origin_page(origin, "/changing", 200, "", TITLED "alt=Pot><h1>Another</h1>");
    regrade(id);
    struct response *r = page(id, "");
    xmlNode *body = tree_find(tree_of(r), "tbody"),
            *chart = tree_with(tree_of(r), "class", "chart");
    ck_assert_uint_eq(tree_count(body, "tr"), 2);
    ck_assert_uint_eq(tree_count(chart, "circle"), 2);
    ck_assert_str_eq(tree_attribute(tree_find(body, "a"), "href"),
                     page_path(id, "?against=1#comparison"));
    r = page(id, "?against=1");
    xmlNode *section = tree_with(tree_of(r), "id", "comparison");
    expect(r, section != NULL);
    expect(r, tree_has_text(tree_with(section, "class", "names passed"), "li",
                            "Alternative texts of images"));
    ck_assert_str_eq(tree_text(tree_find(tree_with(section, "class", "names failed"), "li")),
                     "Headings");
    expect(r, tree_has_text(tree_with(section, "class", "names still"), "li", "Meta description"));
    expect(r, !tree_has_text(tree_with(section, "class", "names still"), "li", "Headings"));
    ck_assert_str_eq(tree_attribute(tree_find(section, "a"), "href"), page_path(id, ""));
    expect_words(r, "compared");
}
END_TEST

START_TEST(links_keep_the_language_and_the_comparison)
{
    int64_t id = report_of("/twice", TITLED ">");
    regrade(id);
    struct response *r = page(id, "?lang=de");
    ck_assert_str_eq(tree_attribute(tree_find(tree_find(tree_of(r), "tbody"), "a"), "href"),
                     page_path(id, "?lang=de&against=1#comparison"));
    r = page(id, "?lang=de&against=1");
    ck_assert_str_eq(
        tree_attribute(tree_find(tree_with(tree_of(r), "id", "comparison"), "a"), "href"),
        page_path(id, "?lang=de"));
    ck_assert_str_eq(tree_attribute(tree_with(tree_of(r), "rel", "alternate"), "href"),
                     page_path(id, "?lang=en&against=1"));
}
END_TEST

/* ---- pages that wait or failed ---- */

START_TEST(a_page_that_waits_says_so_and_loads_itself_again)
{
    origin_held(origin, "/waits");
    int64_t id = report_queued(server, origin_url(origin, "/waits"));
    struct response *r = page(id, "");
    xmlNode *refresh = tree_with(tree_of(r), "http-equiv", "refresh");
    expect(r, refresh != NULL && tree_inside(refresh, "noscript"));
    ck_assert_str_eq(tree_attribute(refresh, "content"), "5");
    expect_words(r, "This page is being graded.");
    expect(r, tree_with(tree_of(r), "data-pending", NULL) != NULL);
    expect(r, strstr(r->body, "of 100") == NULL);
    origin_release(origin, "/waits");
    report_wait(server, id);
    r = page(id, "");
    expect(r, tree_with(tree_of(r), "http-equiv", "refresh") == NULL);
    expect(r, tree_with(tree_of(r), "data-pending", NULL) == NULL);
    expect(r, tree_with(tree_of(r), "class", "chart") == NULL);
    expect_words(r, "of 100");
}
END_TEST

START_TEST(a_page_that_failed_says_why_and_what_to_do)
{
    origin_page(origin, "/broken", 500, "", "down");
    int64_t id = report_new(server, origin_url(origin, "/broken"));
    struct response *json = http_get(server, report_path(id)), *r = page(id, "");
    expect_words(r, "The page could not be graded: ");
    expect_text(r, "p", str_at(json, "data.error.message"));
    ck_assert_uint_eq(tree_count(tree_with(tree_of(r), "class", "notice bad"), "p"), 2);
    expect(r, strstr(r->body, "of 100") == NULL);
    expect_error(ask(page_path(id, "/badge.svg"), PROGRAM, NULL), 404, "not_found");
}
END_TEST

START_TEST(a_page_that_failed_later_shows_its_earlier_grade)
{
    int64_t id = report_of("/later", TITLED ">");
    origin_page(origin, "/later", 500, "", "down");
    regrade(id);
    struct response *r = page(id, "");
    expect_words(r, "The page could not be graded: ");
    expect_words(r, "Below is the last grading that succeeded.");
    expect_words(r, "of 100");
    expect_text(r, "h3", "Alternative texts of images");
}
END_TEST

/* ---- addresses ---- */

START_TEST(assets_have_their_digest_in_the_address)
{
    xmlNode *root = tree_of(page(good, ""));
    const char *style = tree_attribute(tree_with(root, "rel", "stylesheet"), "href"),
               *script = tree_attribute(tree_find(root, "script"), "src");
    struct response *r = ask(style, NULL, NULL);
    expect_status(r, 200);
    expect_header(r, "Content-Type", "text/css; charset=utf-8");
    expect_header(r, "Cache-Control", "public, max-age=31536000, immutable");
    r = ask(script, NULL, NULL);
    expect_status(r, 200);
    expect_header(r, "Content-Type", "text/javascript; charset=utf-8");
    expect_header(r, "Cache-Control", "public, max-age=31536000, immutable");
    static const char *const wrong[] = {"/assets/0000000000000000/page.js",
                                        "/assets/0000000000000000/assay.css", "/assets/x/page.js",
                                        "/assets/page.js"};
    for (size_t i = 0; i < COUNT(wrong); i++) {
        r = ask(wrong[i], NULL, NULL);
        expect_status(r, 404);
        expect_header(r, "Cache-Control", "no-store");
    }
}
END_TEST

START_TEST(a_public_page_has_tags_for_links_to_it)
{
    struct response *r = page(good, "");
    xmlNode *root = tree_of(r);
    int score = (int)int_at(http_get(server, report_path(good)), "data.score");
    char *link = text("%s/reports/%lld", server->url, (long long)good),
         *name = origin_url(origin, "/good") + strlen("http://");
    const struct {
        const char *property, *content;
    } tags[] = {{"og:type", "website"},
                {"og:site_name", "Assay"},
                {"og:url", link},
                {"og:title", text("%d of 100: %s", score, name)}};
    for (size_t i = 0; i < COUNT(tags); i++) {
        xmlNode *tag = tree_with(root, "property", tags[i].property);
        expect(r, tag != NULL);
        ck_assert_str_eq(tree_attribute(tag, "content"), tags[i].content);
    }
    xmlNode *description = tree_with(root, "property", "og:description");
    ck_assert_str_eq(tree_attribute(description, "content"),
                     tree_attribute(tree_with(root, "name", "description"), "content"));
    expect(r, strstr(tree_attribute(description, "content"), text("scores %d of 100", score)));
    ck_assert_str_eq(tree_attribute(tree_with(root, "rel", "canonical"), "href"), link);
    ck_assert_str_eq(tree_text(tree_find(root, "title")), tags[3].content);
    ck_assert_str_eq(str_at(http_get(server, report_path(good)), "data.link"), link);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("report_pages");
    TCase *tcase = harness_case(suite, "report_pages");
    tcase_add_unchecked_fixture(tcase, report_pages_setup, report_pages_teardown);
    tcase_add_test(tcase, a_graded_page_shows_its_grade_and_all_checks);
    tcase_add_test(tcase, a_finding_says_what_is_wrong_why_and_how_to_mend_it);
    tcase_add_test(tcase, what_matters_most_comes_first);
    tcase_add_test(tcase, elements_beyond_five_are_folded);
    tcase_add_test(tcase, facts_and_the_final_address_are_there);
    tcase_add_test(tcase, history_shows_every_grading_and_compares_two);
    tcase_add_test(tcase, links_keep_the_language_and_the_comparison);
    tcase_add_test(tcase, a_page_that_waits_says_so_and_loads_itself_again);
    tcase_add_test(tcase, a_page_that_failed_says_why_and_what_to_do);
    tcase_add_test(tcase, a_page_that_failed_later_shows_its_earlier_grade);
    tcase_add_test(tcase, assets_have_their_digest_in_the_address);
    tcase_add_test(tcase, a_public_page_has_tags_for_links_to_it);
    return harness_main(suite);
}
