/* How operators search conversations: texts of messages and notes, visitors, pages of matches. */
#include "t/kit/widget.h"

static void setup(void)
{
    server = server_shared(&(struct server_options){.workers = 2});
    widget_make(SHOP);
}

static void teardown(void)
{
    server_shared_stop(server);
}

/* ---- search ---- */

static struct response *search(const char *query)
{
    return operate("GET", text("conversations?per_page=100&%s", query), NULL);
}

static bool finds(const struct response *r, const struct visitor *v)
{
    expect_status(r, 200);
    return strstr(r->body, v->conversation) != NULL;
}

/* Columns: the visitor's text as JSON; the search; whether it matches. */
static const struct {
    const char *message, *search;
    bool found;
} texts[] = {
    {"Where is the Narwhal?", "NARWHAL", true},
    {"un caf\u00e9 cr\u00e8me", "Cafe%20Cr%C3%A8me", true},
    {"caf\u00e9 au lait", "CAF%C3%89%20AU", true},
    {"a\\nbetween\\tlines", "nbetween", false}, /* a JSON escape is not a letter */
    {"a\\nbehind a line", "a%0Abehind", true},
    {"say \\\"pomegranate\\\" twice", "%22pomegranate%22", true},
    {"C:\\\\quince", "%5Cquince", true},
    {"a\\u0001control\\u2028mango", "%E2%80%A8mango", true},
    {"a smile \\ud83c\\udf89 of the fig", "%F0%9F%8E%89%20of%20the%20fig", true},
    {"content", "citations", false}, /* and a member name is not text */
    {"https://papaya.example/a/b", "papaya.example/a", true},
};

START_TEST(a_search_finds_text_as_written)
{
    struct visitor v = visitor_new();
    expect_status(post(&v, "messages", text("{\"message\":\"%s\"}", texts[_i].message)), 200);
    struct response *r = search(text("search=%s", texts[_i].search));
    expect(r, finds(r, &v) == texts[_i].found);
    expect(r, has_exactly(r, "meta", "has_more next_after stopped_early") &&
                  !bool_at(r, "meta.stopped_early"));
    expect(r, header(r, "X-Request-Id") && header(r, "ETag"));
}
END_TEST

START_TEST(operators_search_answers_notes_and_visitors)
{
    struct visitor v = visitor_new(), w = visitor_new();
    expect_status(operate_on(&v, "messages", "{\"message\":\"your tapir is ready\"}"), 201);
    expect_status(operate_on(&v, "notes", "{\"note\":\"capybara\",\"name\":\"Ottokar\"}"), 201);
    expect_status(post(&w, "leads", "{\"email\":\"okapi@example.com\",\"name\":\"Zo\u00eb O.\"}"),
                  201);
    static const struct {
        const char *query;
        bool v, w;
    } queries[] = {
        {"search=TAPIR", true, false},
        {"search=tapir&search_by=text", true, false},
        {"search=capybara", true, false},
        {"search=ottokar", true, false},
        {"search=okapi", false, false},
        {"search=OKAPI@ex&search_by=visitor", false, true},
        {"search=zoe%20o&search_by=visitor", false, true},
        {"search=tapir&search_by=visitor", false, false},
        {"search=tapir&status=closed", false, false},
        {"search=tapir&status=open", true, false},
        {"search=tapir&until=2026-01-01T00:00:00Z", false, false},
        {"search=", true, true},
    };
    for (size_t i = 0; i < COUNT(queries); i++) {
        struct response *r = search(queries[i].query);
        expect(r, finds(r, &v) == queries[i].v && finds(r, &w) == queries[i].w);
    }
    struct response *r = search(text("search=%s&search_by=visitor", w.id));
    expect(r, len_at(r, "data") == 1 && finds(r, &w));
    r = search(text("search=tapir&agent_id=%s", agent));
    expect(r, finds(r, &v));
    r = http(server, .path = "/api/v1/conversations?per_page=100&search=tapir", .key = operators,
             .headers = {text("If-None-Match: %s", header(search("search=tapir"), "ETag"))});
    expect_status(r, 304);

    assay_ok(server, "workspace", "create", "foreign", NULL);
    char *foreign = key_new(server, "foreign", "conversations:read", NULL);
    const char *const others[] = {"search=tapir", "search=okapi&search_by=visitor",
                                  text("search=%s&search_by=visitor", w.id),
                                  text("search=tapir&agent_id=%s", agent)};
    for (size_t i = 0; i < COUNT(others); i++) {
        r = http(server, .path = text("/api/v1/conversations?%s", others[i]), .key = foreign);
        expect(r, r->status == 200 && len_at(r, "data") == 0 && !bool_at(r, "meta.has_more"));
    }
    expect_status(as(&v, "DELETE", "me", NULL), 200);
    expect(r, len_at(search("search=tapir"), "data") == 0 &&
                  len_at(search("search=capybara"), "data") == 0);
}
END_TEST

START_TEST(a_search_continues_after_its_last_id)
{
    struct visitor v[12];
    for (size_t i = 0; i < COUNT(v); i++) {
        v[i] = visitor_new();
        expect_status(operate_on(&v[i], "messages", "{\"message\":\"a pelican\"}"), 201);
    }
    struct response *page = operate("GET", "conversations?per_page=10&search=pelican", NULL);
    expect(page, len_at(page, "data") == 10 && bool_at(page, "meta.has_more"));
    expect_str(page, "meta.next_after", str_at(page, "data.9.id"));
    for (int i = 0; i < 10; i++)
        expect_str(page, text("data.%d.id", i), v[11 - i].conversation);
    page = operate(
        "GET",
        text("conversations?per_page=10&search=pelican&after=%s", str_at(page, "meta.next_after")),
        NULL);
    expect(page, len_at(page, "data") == 2 && !bool_at(page, "meta.has_more") &&
                     at(page, "meta.next_after") == NULL);
    expect_str(page, "data.1.id", v[0].conversation);
}
END_TEST

START_TEST(a_bad_search_is_refused_and_names_the_parameter)
{
    char letters[200 * 6 + 1] = "";
    for (int i = 0; i < 200; i++)
        strcat(letters, "%C3%9F"); /* case folding makes two letters of it */
    expect_status(search(text("search=%s", letters)), 200);
    struct response *r = search(text("search=%sx", letters));
    expect_error(r, 422, "validation_failed");
    expect(r, at(r, "error.errors.search") != NULL);
    r = search("search=x&search_by=mood");
    expect_error(r, 422, "validation_failed");
    expect(r, at(r, "error.errors.search_by") != NULL);
    expect_error(search("search=%00"), 400, "bad_request");
    expect_error(search("search=%FF"), 400, "bad_request");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("conversation_search");
    TCase *tc = harness_case(suite, "one server");
    tcase_add_unchecked_fixture(tc, setup, teardown);
    tcase_add_loop_test(tc, a_search_finds_text_as_written, 0, (int)COUNT(texts));
    tcase_add_test(tc, operators_search_answers_notes_and_visitors);
    tcase_add_test(tc, a_search_continues_after_its_last_id);
    tcase_add_test(tc, a_bad_search_is_refused_and_names_the_parameter);
    return harness_main(suite);
}
