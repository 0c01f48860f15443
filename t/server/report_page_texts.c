/*
 * The languages of report pages, and their links behind a path prefix. Each text on a page, but
 * those of strangers, is one of core/web/texts in the language of the page.
 */
#include "t/kit/report_pages.h"

#include <ctype.h>
#include <fnmatch.h>
#include <strings.h>

enum { TEXTS_MAX = 1024, TEXT_BYTES = 1024 };

/* The texts of a language as patterns: a value of the page is "*". */
struct patterns {
    char *at[TEXTS_MAX];
    size_t count;
};

/* ---- patterns ---- */

static char *pattern_of(const char *value)
{
    char *out = calloc(2, strlen(value) + 1), *to = out;
    ck_assert_ptr_nonnull(out);
    while (*value != '\0') {
        if (strncmp(value, "{{", 2) == 0) {
            *to++ = '*';
            value = strstr(value, "}}") + 2;
            continue;
        }
        if (strchr("*?[\\", *value) != NULL)
            *to++ = '\\';
        *to++ = *value++;
    }
    return out;
}

static void add_line(struct patterns *to, char *line, char text_of[TEXT_BYTES])
{
    line[strcspn(line, "\n")] = '\0';
    if (isspace((unsigned char)*line)) {
        strncat(text_of, " ", TEXT_BYTES - strlen(text_of) - 1);
        strncat(text_of, line + strspn(line, " \t"), TEXT_BYTES - strlen(text_of) - 1);
        return;
    }
    if (*text_of != '\0')
        to->at[to->count++] = pattern_of(text_of);
    const char *equals = *line == '#' ? NULL : strstr(line, " = ");
    snprintf(text_of, TEXT_BYTES, "%s", equals == NULL ? "" : equals + 3);
}

static void read_patterns(const char *language, struct patterns *to)
{
    char line[TEXT_BYTES], text_of[TEXT_BYTES] = "";
    FILE *file = fopen(text(SRCDIR "/core/web/texts/%s.txt", language), "r");
    ck_assert_ptr_nonnull(file);
    to->count = 0;
    while (fgets(line, sizeof(line), file) != NULL) {
        ck_assert_uint_lt(to->count, TEXTS_MAX);
        add_line(to, line, text_of);
    }
    add_line(to, text("#"), text_of);
    fclose(file);
    ck_assert_uint_gt(to->count, 100);
}

static bool is_one(const struct patterns *p, const char *words)
{
    for (size_t i = 0; i < p->count; i++)
        if (strcmp(p->at[i], "*") != 0 && fnmatch(p->at[i], words, 0) == 0)
            return true;
    return false;
}

/* Numbers with a unit, times, names of protocols and programs, the status of an error. */
static bool is_neutral(const char *words)
{
    static const char *const patterns[] = {"Assay*", "HTTP/*", "JSON", "20*-*-* *:* UTC*", "(404)"};
    static const char *const units[] = {"", " ms", " B", " kB", " MB"};
    for (size_t i = 0; i < COUNT(patterns); i++)
        if (fnmatch(patterns[i], words, 0) == 0)
            return true;
    const char *rest = words + strspn(words, "0123456789");
    for (size_t i = 0; i < COUNT(units); i++)
        if (strcmp(rest, units[i]) == 0)
            return true;
    return false;
}

static bool is_known(const struct patterns *p, const char *words)
{
    return is_neutral(words) || is_one(p, words);
}

/* One text, or two with a space between. */
static bool is_text(const struct patterns *p, const char *words)
{
    if (is_known(p, words))
        return true;
    for (const char *space = strchr(words, ' '); space != NULL; space = strchr(space + 1, ' '))
        if (is_known(p, space + 1) && is_known(p, text("%.*s", (int)(space - words), words)))
            return true;
    return false;
}

/* ---- pages ---- */

static char *trimmed(const char *words)
{
    words += strspn(words, " \n");
    size_t n = strlen(words);
    while (n > 0 && strchr(" \n", words[n - 1]) != NULL)
        n--;
    return text("%.*s", (int)n, words);
}

/* A sentence that the auditor wrote: English pages show it, with its numbers. */
static bool is_of_auditor(const xmlNode *node, const char *language)
{
    const char *class = tree_attribute(node->parent, "class"),
               *outer = tree_attribute(node->parent->parent, "class");
    bool finding = class != NULL && strcmp(class, "wrong") == 0,
         notice = outer != NULL && strcmp(outer, "notice bad") == 0;
    return strcmp(language, "en") == 0 && (finding || notice);
}

static bool is_foreign(const xmlNode *node)
{
    return tree_inside(node, "code") || tree_inside(node, "bdi") || tree_inside(node, "nav");
}

static void expect_only(const struct response *r, const struct patterns *own, const char *language)
{
    static const char *const shown[] = {"aria-label", "alt", "title", "placeholder"};
    xmlNode *root = tree_of(r);
    for (xmlNode *node = root; node != NULL; node = tree_next(node, root)) {
        for (size_t i = 0; node->type == XML_ELEMENT_NODE && i < COUNT(shown); i++) {
            const char *label = tree_attribute(node, shown[i]);
            ck_assert_msg(label == NULL || is_text(own, label), "%s=%s is not in %s.txt", shown[i],
                          label, language);
        }
        if (node->type != XML_TEXT_NODE || is_foreign(node) || is_of_auditor(node, language))
            continue;
        ck_assert_msg(is_text(own, trimmed((char *)node->content)), "\"%s\" is not in %s.txt",
                      node->content, language);
    }
    ck_assert_str_eq(tree_attribute(root, "lang"), language);
    expect_header(r, "Content-Language", language);
}

static const char *const codes[] = {"en", "de"};

static void expect_languages(const char *path, int status)
{
    const char *mark = strchr(path, '?') == NULL ? "?" : "&";
    for (size_t i = 0; i < COUNT(codes); i++) {
        struct patterns own;
        read_patterns(codes[i], &own);
        struct response *asked = ask(text("%s%slang=%s", path, mark, codes[i]), NULL,
                                     text("Accept-Language: %s", codes[1 - i])),
                        *accepted = ask(path, NULL, text("Accept-Language: %s-AT", codes[i]));
        expect_status(asked, status);
        expect_status(accepted, status);
        expect_only(asked, &own, codes[i]);
        expect_only(accepted, &own, codes[i]);
    }
}

START_TEST(a_graded_page_is_in_one_language)
{
    expect_languages(page_path(report_new(server, origin_url(origin, "/bad")), ""), 200);
    expect_languages(page_path(report_new(server, origin_url(origin, "/decent")), ""), 200);
    expect_languages(page_path(good, ""), 200);
}
END_TEST

START_TEST(history_and_comparison_are_in_one_language)
{
    int64_t id = report_of("/history", TITLED ">");
    origin_page(origin, "/history", 200, "", TITLED "alt=Pot><h1>Another</h1>");
    regrade(id);
    expect_languages(page_path(id, ""), 200);
    expect_languages(page_path(id, "?against=1"), 200);
}
END_TEST

START_TEST(pages_that_wait_or_failed_are_in_one_language)
{
    origin_held(origin, "/waits");
    int64_t id = report_queued(server, origin_url(origin, "/waits"));
    expect_languages(page_path(id, ""), 200);
    origin_page(origin, "/broken", 500, "", "down");
    origin_release(origin, "/waits");
    expect_languages(page_path(report_new(server, origin_url(origin, "/broken")), ""), 200);
    id = report_of("/later", TITLED ">");
    origin_page(origin, "/later", 404, "", "gone");
    regrade(id);
    expect_languages(page_path(id, ""), 200);
}
END_TEST

START_TEST(forms_and_errors_are_in_one_language)
{
    int64_t id = report_of("/locked", TITLED ">");
    change(id, "privacy=2&password=long-enough");
    expect_languages(page_path(id, ""), 200);
    expect_languages("/reports/0", 404);
}
END_TEST

START_TEST(english_and_german_pages_differ)
{
    struct response *english = page(good, "?lang=en"), *german = page(good, "?lang=de");
    xmlNode *other = tree_with(tree_of(german), "hreflang", "en");
    expect(german, other != NULL && tree_inside(other, "nav"));
    ck_assert_str_eq(tree_attribute(other, "href"), page_path(good, "?lang=en"));
    ck_assert_str_eq(page(good, "?lang=%64%65")->body, german->body);
    ck_assert_ptr_null(strstr(german->body, ">Facts<"));
    ck_assert_ptr_null(strstr(english->body, ">Daten<"));
    ck_assert_str_eq(ask(page_path(good, ""), NULL, "Accept-Language: fr")->body,
                     page(good, "")->body);
}
END_TEST

/* ---- a path prefix ---- */

#define PREFIX "/tools/assay"

static void expect_prefix(const struct response *r)
{
    static const char *const addresses[] = {"href", "src", "action"};
    xmlNode *root = tree_of(r);
    size_t seen = 0;
    for (xmlNode *node = root; node != NULL; node = tree_next(node, root))
        for (size_t i = 0; node->type == XML_ELEMENT_NODE && i < COUNT(addresses); i++) {
            const char *address = tree_attribute(node, addresses[i]);
            if (address == NULL || *address != '/')
                continue;
            seen++;
            ck_assert_msg(strncmp(address, PREFIX "/", strlen(PREFIX "/")) == 0, "%s=%s",
                          addresses[i], address);
        }
    expect(r, seen >= 3);
}

START_TEST(every_link_has_the_prefix_of_base_url)
{
    struct server *with = server_shared(&(struct server_options){
        .origin = origin,
        .yaml = "base_url: https://example.org" PREFIX "\nreports:\n  indexable: true\n"});
    int64_t id = report_new(with, origin_url(origin, "/good"));
    expect_status(http(with, .method = "PUT", .path = report_path(id), .body = "update=1",
                       .headers = {"Prefer: wait=15"}),
                  200);
    static const char *const rests[] = {"", "?lang=de", "?against=1"};
    for (size_t i = 0; i < COUNT(rests); i++) {
        struct response *r =
            http(with, .path = page_path(id, rests[i]), .key = "", .headers = {BROWSER});
        expect_status(r, 200);
        expect_prefix(r);
        ck_assert_str_eq(tree_attribute(tree_with(tree_of(r), "rel", "canonical"), "href"),
                         text("https://example.org" PREFIX "/reports/%lld", (long long)id));
        expect(r, header(r, "X-Robots-Tag") == NULL);
    }
    expect_prefix(http(with, .path = "/reports/0", .key = "", .headers = {BROWSER}));
    expect_status(http(with, .method = "PUT", .path = report_path(id),
                       .body = "privacy=2&password=long-enough"),
                  200);
    struct response *form = http(with, .path = page_path(id, ""), .key = "", .headers = {BROWSER});
    expect_prefix(form);
    expect_header(form, "X-Robots-Tag", "noindex");
    server_shared_stop(with);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("report_page_texts");
    TCase *tcase = harness_case(suite, "report_page_texts");
    tcase_add_unchecked_fixture(tcase, report_pages_setup, report_pages_teardown);
    tcase_add_test(tcase, a_graded_page_is_in_one_language);
    tcase_add_test(tcase, history_and_comparison_are_in_one_language);
    tcase_add_test(tcase, pages_that_wait_or_failed_are_in_one_language);
    tcase_add_test(tcase, forms_and_errors_are_in_one_language);
    tcase_add_test(tcase, english_and_german_pages_differ);
    tcase_add_test(tcase, every_link_has_the_prefix_of_base_url);
    return harness_main(suite);
}
