/* Pagination: the envelope of a list and the Link header. */
#include "core/http/pagination.h"
#include "t/kit/suite.h"

#include <check.h>

#define BASE "https://api.example.com"
#define HERE BASE "/api/v1/reports"

static struct buf envelope, link_header;

static void clean(void)
{
    buf_free(&envelope);
    buf_free(&link_header);
}

static const struct {
    const char *query;
    uint64_t page;
    unsigned per_page;
    uint64_t total;
    size_t count;
    const char *envelope, *link;
} cases[] = {
    {"", 1, 10, 0, 0,
     "\"links\":{\"first\":\"" HERE "?page=1\",\"last\":\"" HERE
     "?page=1\",\"prev\":null,\"next\":null},"
     "\"meta\":{\"current_page\":1,\"from\":null,\"last_page\":1,\"path\":\"" HERE
     "\",\"per_page\":10,\"to\":null,\"total\":0}",
     "<" HERE "?page=1>; rel=\"first\", <" HERE "?page=1>; rel=\"last\""},
    {"per_page=10", 1, 10, 1, 1,
     "\"links\":{\"first\":\"" HERE "?per_page=10&page=1\",\"last\":\"" HERE
     "?per_page=10&page=1\",\"prev\":null,\"next\":null},"
     "\"meta\":{\"current_page\":1,\"from\":1,\"last_page\":1,\"path\":\"" HERE
     "\",\"per_page\":10,\"to\":1,\"total\":1}",
     "<" HERE "?per_page=10&page=1>; rel=\"first\", <" HERE "?per_page=10&page=1>; rel=\"last\""},
    /* the page is replaced in place, everything else keeps its order */
    {"sort=asc&page=2&search=a%26b", 2, 10, 21, 10,
     "\"links\":{\"first\":\"" HERE "?sort=asc&page=1&search=a%26b\",\"last\":\"" HERE
     "?sort=asc&page=3&search=a%26b\",\"prev\":\"" HERE
     "?sort=asc&page=1&search=a%26b\",\"next\":\"" HERE "?sort=asc&page=3&search=a%26b\"},"
     "\"meta\":{\"current_page\":2,\"from\":11,\"last_page\":3,\"path\":\"" HERE
     "\",\"per_page\":10,\"to\":20,\"total\":21}",
     "<" HERE "?sort=asc&page=1&search=a%26b>; rel=\"first\", <" HERE
     "?sort=asc&page=3&search=a%26b>; rel=\"last\", <" HERE
     "?sort=asc&page=1&search=a%26b>; rel=\"prev\", <" HERE
     "?sort=asc&page=3&search=a%26b>; rel=\"next\""},
    /* exactly full pages add no page */
    {"%70a%67e=2", 2, 25, 50, 25,
     "\"links\":{\"first\":\"" HERE "?page=1\",\"last\":\"" HERE "?page=2\",\"prev\":\"" HERE
     "?page=1\",\"next\":null},"
     "\"meta\":{\"current_page\":2,\"from\":26,\"last_page\":2,\"path\":\"" HERE
     "\",\"per_page\":25,\"to\":50,\"total\":50}",
     "<" HERE "?page=1>; rel=\"first\", <" HERE "?page=2>; rel=\"last\", <" HERE
     "?page=1>; rel=\"prev\""},
    /* past the end */
    {"page=2147483647", PAGINATION_PAGE_MAX, 100, 101, 0,
     "\"links\":{\"first\":\"" HERE "?page=1\",\"last\":\"" HERE "?page=2\",\"prev\":\"" HERE
     "?page=2\",\"next\":null},"
     "\"meta\":{\"current_page\":2147483647,\"from\":null,\"last_page\":2,\"path\":\"" HERE
     "\",\"per_page\":100,\"to\":null,\"total\":101}",
     "<" HERE "?page=1>; rel=\"first\", <" HERE "?page=2>; rel=\"last\", <" HERE
     "?page=2>; rel=\"prev\""},
    /* links encode what a client should have encoded, so that neither JSON nor the header breaks */
    {"&&a=\"<>\\\xc3\xa9&b&c=&d=%22", 1, 10, 5, 5,
     "\"links\":{\"first\":\"" HERE "?a=%22%3C%3E%5C%C3%A9&b&c=&d=%22&page=1\",\"last\":\"" HERE
     "?a=%22%3C%3E%5C%C3%A9&b&c=&d=%22&page=1\",\"prev\":null,\"next\":null},"
     "\"meta\":{\"current_page\":1,\"from\":1,\"last_page\":1,\"path\":\"" HERE
     "\",\"per_page\":10,\"to\":5,\"total\":5}",
     "<" HERE "?a=%22%3C%3E%5C%C3%A9&b&c=&d=%22&page=1>; rel=\"first\", <" HERE
     "?a=%22%3C%3E%5C%C3%A9&b&c=&d=%22&page=1>; rel=\"last\""},
    /* per_page and my_page are not page */
    {"per_page=10&my_page=7&page=1&pagex=3", 1, 10, 11, 10,
     "\"links\":{\"first\":\"" HERE "?per_page=10&my_page=7&page=1&pagex=3\",\"last\":\"" HERE
     "?per_page=10&my_page=7&page=2&pagex=3\",\"prev\":null,\"next\":\"" HERE
     "?per_page=10&my_page=7&page=2&pagex=3\"},"
     "\"meta\":{\"current_page\":1,\"from\":1,\"last_page\":2,\"path\":\"" HERE
     "\",\"per_page\":10,\"to\":10,\"total\":11}",
     "<" HERE "?per_page=10&my_page=7&page=1&pagex=3>; rel=\"first\", <" HERE
     "?per_page=10&my_page=7&page=2&pagex=3>; rel=\"last\", <" HERE
     "?per_page=10&my_page=7&page=2&pagex=3>; rel=\"next\""},
};

START_TEST(the_envelope_and_the_header_have_the_same_links)
{
    struct pagination p = {
        STR(BASE),          STR("/api/v1/reports"), str_of(cases[_i].query), cases[_i].page,
        cases[_i].per_page, cases[_i].total,        cases[_i].count,         STR("")};
    pagination_render(&p, &envelope, &link_header);
    ck_assert_msg(str_eq(buf_view(&envelope), str_of(cases[_i].envelope)), "%.*s", (int)envelope.n,
                  envelope.p);
    ck_assert_msg(str_eq(buf_view(&link_header), str_of(cases[_i].link)), "%.*s",
                  (int)link_header.n, link_header.p);
}
END_TEST

START_TEST(unknown_names_are_last_in_meta)
{
    struct pagination p = {.base_url = STR(BASE),
                           .path = STR("/x"),
                           .page = 1,
                           .per_page = 10,
                           .ignored = STR("[\"reslt\"]")};
    pagination_render(&p, &envelope, &link_header);
    const char *end = ",\"total\":0,\"ignored\":[\"reslt\"]}";
    ck_assert_msg(envelope.n > strlen(end) &&
                      !memcmp(envelope.p + envelope.n - strlen(end), end, strlen(end)),
                  "%.*s", (int)envelope.n, envelope.p);
}
END_TEST

START_TEST(a_header_too_long_for_proxies_is_omitted)
{
    struct buf query = {0};
    for (int i = 0; i < 400; ++i)
        buf_adds(&query, "&x=1234567");
    struct pagination p = {STR(BASE), STR("/api/v1/reports"), buf_view(&query), 1, 10, 100, 10,
                           STR("")};
    pagination_render(&p, &envelope, &link_header);
    ck_assert_uint_eq(link_header.n, 0);
    ck_assert(buf_ok(&link_header));
    ck_assert_uint_gt(envelope.n, 3 * query.n);
    buf_free(&query);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("pagination");
    TCase *tc = tcase_create("pagination");
    suite_add_tcase(suite, tc);
    tcase_add_checked_fixture(tc, NULL, clean);
    tcase_add_loop_test(tc, the_envelope_and_the_header_have_the_same_links, 0,
                        sizeof(cases) / sizeof(cases[0]));
    tcase_add_test(tc, unknown_names_are_last_in_meta);
    tcase_add_test(tc, a_header_too_long_for_proxies_is_omitted);
    return suite_run(suite);
}
