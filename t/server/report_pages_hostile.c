/*
 * Pages of reports about hostile pages (t/kit/report_corpus.h): what strangers wrote is text, in
 * full, in a direction of its own, and nothing of it is an element, an attribute or a script.
 */
#include "t/kit/page_tree.h"
#include "t/kit/report_corpus.h"

#include <ctype.h>
#include <strings.h>

enum { LANGUAGES = 2 };
static const char *const languages[LANGUAGES] = {"en", "de"};

static struct origin *origin;
static struct server *server;
static int64_t *ids; /* of the reports of the corpus */

static void setup(void)
{
    origin = origin_start();
    corpus_serve(origin);
    server = server_shared(&(struct server_options){.origin = origin});
    ids = calloc(corpus_count, sizeof(*ids));
    for (size_t i = 0; i < corpus_count; i++)
        ids[i] = report_queued(server, corpus_url(origin, i));
    for (size_t i = 0; i < corpus_count; i++)
        expect_str(report_wait(server, ids[i]), "data.status", "done");
}

static void teardown(void)
{
    free(ids);
    server_shared_stop(server);
    origin_stop(origin);
}

/* Case ${i} is a page of the corpus in a language. */
static xmlNode *page_of(int i, struct response **response)
{
    struct response *r = http(server, .key = "",
                              .path = text("/reports/%lld?lang=%s", (long long)ids[i / LANGUAGES],
                                           languages[i % LANGUAGES]));
    expect_status(r, 200);
    *response = r;
    return tree_of(r);
}

/* ---- elements and attributes ---- */

static bool is_known(const char *name)
{
    static const char *const names[] = {
        "html",    "head",    "meta", "title",  "link", "script",  "body", "a",  "header", "nav",
        "main",    "div",     "svg",  "circle", "text", "p",       "h1",   "h2", "h3",     "bdi",
        "span",    "strong",  "time", "button", "rect", "section", "ul",   "ol", "li",     "code",
        "details", "summary", "dl",   "dt",     "dd",   "footer",  "path", "g"};
    for (size_t i = 0; i < COUNT(names); i++)
        if (strcmp(names[i], name) == 0)
            return true;
    return false;
}

/* The address as browsers read it: without white space and control characters, in lower case. */
static char *as_read(const char *address)
{
    char *out = malloc(strlen(address) + 1), *to = out;
    ck_assert_ptr_nonnull(out);
    for (; *address != '\0'; address++)
        if ((unsigned char)*address > ' ')
            *to++ = (char)tolower((unsigned char)*address);
    *to = '\0';
    return out;
}

static void expect_address(const xmlNode *node, const char *address)
{
    char *read = as_read(address);
    bool icon = strncmp(read, "data:image/svg+xml,", 19) == 0 && tree_is(node, "link");
    ck_assert_msg(icon || read[0] == '/' || read[0] == '#' || strncmp(read, "http://", 7) == 0,
                  "<%s> has the address %s", node->name, address);
    free(read);
}

static void expect_attributes(xmlNode *node)
{
    static const char *const addresses[] = {"href", "src", "action", "formaction", "xlink:href"};
    for (const xmlAttr *a = node->properties; a != NULL; a = a->next) {
        const char *name = (const char *)a->name;
        ck_assert_msg(strncasecmp(name, "on", 2) != 0 && strcmp(name, "style") != 0 &&
                          strcmp(name, "srcdoc") != 0 && strcmp(name, "http-equiv") != 0,
                      "<%s> has the attribute %s", node->name, name);
        for (size_t i = 0; i < COUNT(addresses); i++)
            if (strcmp(addresses[i], name) == 0)
                expect_address(node, tree_attribute(node, name));
    }
}

START_TEST(a_page_has_its_own_elements_and_no_others)
{
    struct response *r;
    xmlNode *root = page_of(_i, &r);
    for (xmlNode *node = root; node != NULL; node = tree_next(node, root)) {
        expect(r, node->type == XML_ELEMENT_NODE || node->type == XML_TEXT_NODE);
        if (node->type != XML_ELEMENT_NODE)
            continue;
        ck_assert_msg(is_known((const char *)node->name), "<%s>\n%s", node->name, r->body);
        expect_attributes(node);
    }
    xmlNode *script = tree_find(root, "script");
    ck_assert_uint_eq(tree_count(root, "script"), 1);
    ck_assert_ptr_null(script->children);
    ck_assert_str_eq(tree_attribute(script, "type"), "module");
    ck_assert_int_eq(strncmp(tree_attribute(script, "src"), "/assets/", 8), 0);
}
END_TEST

/* ---- texts ---- */

/* Texts of strangers stand in a bdi, and in the title, which has no elements. */
START_TEST(what_a_stranger_wrote_has_a_direction_of_its_own)
{
    struct response *r;
    xmlNode *root = page_of(_i, &r);
    size_t seen = 0;
    for (xmlNode *node = root; node != NULL; node = tree_next(node, root)) {
        if (node->type != XML_TEXT_NODE || strcasestr((char *)node->content, CORPUS_MARK) == NULL)
            continue;
        seen++;
        ck_assert_msg(tree_inside(node, "bdi") || tree_inside(node, "title"),
                      "not in a bdi: %s\n%s", node->content, r->body);
    }
    ck_assert_uint_ge(seen, 2);
}
END_TEST

/* Words that a check puts before a text of a stranger, and the German ones. */
static const char *const words[][2] = {{"Another title: ", "Ein weiterer Titel: "},
                                       {"Invalid JSON-LD: ", "Ungültiges JSON-LD: "}};

/* ${detail} as case ${i} shows it. */
static const char *shown_in(int i, const char *detail)
{
    for (size_t k = 0; i % LANGUAGES == 1 && k < COUNT(words); k++)
        if (strncmp(detail, words[k][0], strlen(words[k][0])) == 0)
            return text("%s%s", words[k][1], detail + strlen(words[k][0]));
    return detail;
}

/*
 * The texts of a check that failed, as the API has them, are the texts of elements; details that
 * no stranger wrote, such as "3 characters", are only so on English pages.
 */
static void expect_texts(int i, xmlNode *root, struct json_object *check)
{
    struct json_object *details = json_object_object_get(check, "details"),
                       *value = json_object_object_get(check, "value");
    for (size_t k = 0; k < json_object_array_length(details); k++) {
        const char *detail = json_object_get_string(json_object_array_get_idx(details, k));
        if (i % LANGUAGES == 0 || strcasestr(detail, CORPUS_MARK) != NULL)
            ck_assert_msg(tree_has_text(root, "bdi", shown_in(i, detail)),
                          "the page has no text %s", shown_in(i, detail));
    }
    if (json_object_is_type(value, json_type_string) &&
        (i % LANGUAGES == 0 || strcmp(json_object_get_string(value), "none") != 0))
        ck_assert_msg(tree_has_text(root, "bdi", json_object_get_string(value)),
                      "the page has no text %s", json_object_get_string(value));
}

START_TEST(what_a_stranger_wrote_is_there_in_full)
{
    struct response *r, *report = http_get(server, report_path(ids[_i / LANGUAGES]));
    xmlNode *root = page_of(_i, &r);
    size_t failed = 0;
    json_object_object_foreach(at(report, "data.results"), id, check)
    {
        struct json_object *passed = json_object_object_get(check, "passed");
        if (id == NULL || passed == NULL || json_object_get_boolean(passed))
            continue;
        failed++;
        expect_texts(_i, root, check);
    }
    ck_assert_uint_eq(tree_count(root, "ol"), 1);
    ck_assert_uint_ge(failed, 3);
    ck_assert_str_eq(tree_text(tree_find(root, "h1")), str_at(report, "data.url"));
}
END_TEST

/* Its checks repeat each text of the corpus, so the other tests see it. */
START_TEST(the_texts_of_the_corpus_reach_the_page)
{
    const struct corpus_page *page = &corpus[_i / LANGUAGES];
    struct response *r;
    xmlNode *root = page_of(_i, &r);
    const char *shown = page->shown != NULL ? page->shown : page->text;
    if (page->text == NULL) {
        expect(r, strstr(r->body, CORPUS_MARK) != NULL);
        return;
    }
    ck_assert_msg(tree_has_text(root, "bdi", shown_in(_i, text("Another title: %s", shown))),
                  "%s\n%s", shown, r->body);
    ck_assert_msg(tree_has_text(root, "bdi", text("h1: %s", shown)), "%s\n%s", shown, r->body);
}
END_TEST

/* ---- bytes ---- */

static bool is_utf8(const struct response *r)
{
    const unsigned char *p = (const unsigned char *)r->body, *end = p + r->body_size;
    while (p < end) {
        int length = (int)(end - p), c = xmlGetUTF8Char(p, &length);
        if (c < 0 || (c < ' ' && c != '\n') || c == 0x7F)
            return false;
        p += length;
    }
    return true;
}

START_TEST(a_page_is_utf8_without_control_characters)
{
    struct response *r;
    page_of(_i, &r);
    expect(r, is_utf8(r));
    expect(r, r->body_size < 512 * 1024);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("report_pages_hostile");
    TCase *tcase = harness_case(suite, "report_pages_hostile");
    size_t cases = corpus_count * LANGUAGES;
    tcase_add_unchecked_fixture(tcase, setup, teardown);
    tcase_add_loop_test(tcase, a_page_has_its_own_elements_and_no_others, 0, cases);
    tcase_add_loop_test(tcase, what_a_stranger_wrote_has_a_direction_of_its_own, 0, cases);
    tcase_add_loop_test(tcase, what_a_stranger_wrote_is_there_in_full, 0, cases);
    tcase_add_loop_test(tcase, the_texts_of_the_corpus_reach_the_page, 0, cases);
    tcase_add_loop_test(tcase, a_page_is_utf8_without_control_characters, 0, cases);
    return harness_main(suite);
}
