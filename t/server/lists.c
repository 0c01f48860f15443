/* GET /api/v1/reports: every sort, filter, search and page, compared with a model of the list. */
#include "t/kit/harness.h"

#include <strings.h>

enum { REPORTS_MAX = 64 };

/* The whole list by id as the server shows it. Every other expected list derives from it. */
struct row {
    int64_t id, score;                                          /* -1: null */
    const char *url, *project, *status, *result, *generated_at; /* "": null */
};

static struct origin *origin;
static struct server *server;

static const char *const seeds[] = {
    "http://alpha.test/",          "http://alpha.test/pricing",   "http://beta.test/100%25",
    "http://beta.test/a_b",        "http://beta.test/axb",        "http://Gamma.test/UPPER",
    "http://gamma.test/upper/two", "http://www.alpha.test/z?q=1", "http://delta.test/%C3%A9t%C3%A9",
    "https://delta.test/",         "http://xn--bcher-kva.test/",  "http://alpha.test/pricing",
    "http://gamma.test/Стол",      "http://beta.test/日本/😀?q=ß", "http://beta.test/cafe\xCC\x81",
};

static void setup(void)
{
    static const char *const pages[] = {"/good", "/decent", "/bad"};
    origin = origin_usual();
    server = server_shared(&(struct server_options){.origin = origin});
    for (size_t i = 0; i < COUNT(seeds); i++)
        report_queued(server, seeds[i]);
    for (int i = 0; i < 15; i++)
        report_queued(server, origin_url(origin, text("%s?n=%d", pages[i % 3], (i * 7) % 15)));
    struct response *r = http_get(server, "/api/v1/reports?per_page=100");
    for (size_t i = 0; i < len_at(r, "data"); i++)
        report_wait(server, int_at(r, text("data.%zu.id", i)));
}

static void teardown(void)
{
    server_shared_stop(server);
    origin_stop(origin);
}

static const char *text_or_none(const struct response *r, const char *path)
{
    return at(r, path) ? str_at(r, path) : "";
}

static struct row row_at(const struct response *r, size_t i)
{
    return (struct row){
        .id = int_at(r, text("data.%zu.id", i)),
        .score = at(r, text("data.%zu.score", i)) ? int_at(r, text("data.%zu.score", i)) : -1,
        .url = str_at(r, text("data.%zu.url", i)),
        .project = str_at(r, text("data.%zu.project", i)),
        .status = str_at(r, text("data.%zu.status", i)),
        .result = text_or_none(r, text("data.%zu.result", i)),
        .generated_at = text_or_none(r, text("data.%zu.generated_at", i)),
    };
}

static size_t all_rows(struct row *rows)
{
    struct response *r = http_get(server, "/api/v1/reports?per_page=100&sort_by=id&sort=asc");
    expect_status(r, 200);
    size_t count = len_at(r, "data");
    expect(r, count >= COUNT(seeds) + 15 && count <= REPORTS_MAX);
    for (size_t i = 0; i < count; i++)
        rows[i] = row_at(r, i);
    return count;
}

/* ---- the model ---- */

static int by_id(const struct row *a, const struct row *b)
{
    return (a->id > b->id) - (a->id < b->id);
}

static int by_score(const struct row *a, const struct row *b)
{
    return a->score != b->score ? (a->score > b->score) - (a->score < b->score) : by_id(a, b);
}

static int by_url(const struct row *a, const struct row *b)
{
    int order = strcmp(a->url, b->url);
    return order ? order : by_id(a, b);
}

/* Shown in seconds and stored in milliseconds: equal dates do not fix an order. */
static int by_generated_at(const struct row *a, const struct row *b)
{
    return strcmp(a->generated_at, b->generated_at);
}

typedef int row_order(const struct row *a, const struct row *b);
static const struct {
    const char *sort_by;
    row_order *order;
    bool exact;
} sorts[] = {{"id", by_id, true},
             {"generated_at", by_generated_at, false},
             {"url", by_url, true},
             {"score", by_score, true}};

static const struct {
    const char *query; /* what is appended */
    const char *search, *project, *result, *status;
} filters[] = {
    {"", "", "", "", ""},
    {"&search=alpha", "alpha", "", "", ""},
    {"&search=ALPHA&search_by=url", "alpha", "", "", ""},
    {"&search=a", "a", "", "", ""},
    {"&search=al", "al", "", "", ""},
    {"&search=%25", "%", "", "", ""},
    {"&search=100%25", "100%", "", "", ""},
    {"&search=_", "_", "", "", ""},
    {"&search=a_b", "a_b", "", "", ""},
    {"&search=upper", "upper", "", "", ""},
    {"&search=%25C3%25A9", "%C3%A9", "", "", ""},
    {"&search=http%3A%2F%2F", "http://", "", "", ""},
    {"&search=.test%2Fpricing", ".test/pricing", "", "", ""},
    {"&search=testzzz", "testzzz", "", "", ""},
    {"&search=estestest", "estestest", "", "", ""},
    {"&search=", "", "", "", ""},
    {"&search=%2A", "*", "", "", ""},
    {"&search=%5C", "\\", "", "", ""},
    /* éTÉ: non-ASCII is percent-encoded in URLs, here in both cases */
    {"&search=%C3%A9T%C3%89", "%C3%A9t%C3%A9", "", "", ""},
    {"&search=%D1%81%D1%82%D0%9E%D0%9B", "%D0%A1%D1%82%D0%BE%D0%BB", "", "", ""}, /* стОЛ */
    {"&search=%D1%89", "%D1%89", "", "", ""},
    {"&search=%E6%9C%AC%2F%F0%9F%98%80%3FQ", "%E6%9C%AC/%F0%9F%98%80?q", "", "", ""}, /* 本/😀?Q */
    {"&search=%3D%C3%9F", "=%C3%9F", "", "", ""},
    {"&search=fE%CC%81", "fe%CC%81", "", "", ""},
    {"&search=f%C3%A9", "f%C3%A9", "", "", ""},
    {"&project=gamma.test&search=%D0%BE%D0%BB", "%D0%BE%D0%BB", "gamma.test", "", ""},
    {"&project=alpha.test", "", "alpha.test", "", ""},
    {"&project=127.0.0.1", "", "127.0.0.1", "", ""},
    {"&project=nowhere.test", "", "nowhere.test", "", ""},
    {"&project=999999", "", "999999", "", ""},
    {"&result=good", "", "", "good", ""},
    {"&result=decent", "", "", "decent", ""},
    {"&result=bad", "", "", "bad", ""},
    {"&result=bad&project=127.0.0.1", "", "127.0.0.1", "bad", ""},
    {"&result=good&search=n%3D1", "n=1", "", "good", ""},
    {"&result=good&project=alpha.test", "", "alpha.test", "good", ""},
    {"&project=alpha.test&search=PRIC", "pric", "alpha.test", "", ""},
    {"&project=127.0.0.1&search=bad&result=bad", "bad", "127.0.0.1", "bad", ""},
    {"&status=done", "", "", "", "done"},
    {"&status=failed", "", "", "", "failed"},
    {"&status=pending", "", "", "", "pending"},
    {"&status=failed&project=alpha.test", "", "alpha.test", "", "failed"},
    {"&status=done&search=n%3D1&result=bad", "n=1", "", "bad", "done"},
    {"&status=failed&result=good", "", "", "good", "failed"},
    {"&nonsense=1&sorted=no", "", "", "", ""},
};

static bool fits(const struct row *row, size_t filter)
{
    return (!*filters[filter].search || strcasestr(row->url, filters[filter].search)) &&
           (!*filters[filter].project || !strcmp(row->project, filters[filter].project)) &&
           (!*filters[filter].result || !strcmp(row->result, filters[filter].result)) &&
           (!*filters[filter].status || !strcmp(row->status, filters[filter].status));
}

static row_order *sorting;
static int sorting_sign;

static int compare_rows(const void *a, const void *b)
{
    return sorting_sign * sorting(a, b);
}

/* The whole list of that filter and order, page by page. */
static void expect_list(const struct row *rows, size_t count, size_t sort, bool ascending,
                        size_t filter)
{
    struct row want[REPORTS_MAX];
    size_t total = 0, seen = 0;
    for (size_t i = 0; i < count; i++)
        if (fits(&rows[i], filter))
            want[total++] = rows[i];
    sorting = sorts[sort].order;
    sorting_sign = ascending ? 1 : -1;
    qsort(want, total, sizeof(*want), compare_rows);

    struct row last = {0};
    for (size_t page = 1; page == 1 || seen < total; page++) {
        char *path = text("/api/v1/reports?per_page=10&page=%zu&sort_by=%s&sort=%s%s", page,
                          sorts[sort].sort_by, ascending ? "asc" : "desc", filters[filter].query);
        struct response *r = http_get(server, path);
        expect_status(r, 200);
        expect_int(r, "meta.total", total);
        size_t shown = len_at(r, "data"), left = total - seen;
        ck_assert_msg(shown == (left < 10 ? left : 10), "%zu of %zu\n%s", shown, total,
                      response_text(r));
        for (size_t i = 0; i < shown; i++, seen++) {
            struct row row = row_at(r, i);
            expect(r, fits(&row, filter));
            if (sorts[sort].exact)
                ck_assert_msg(row.id == want[seen].id, "at %zu: id %lld, not %lld\n%s", seen,
                              (long long)row.id, (long long)want[seen].id, response_text(r));
            else if (seen > 0)
                ck_assert_msg(sorting_sign * sorting(&last, &row) <= 0, "at %zu: out of order\n%s",
                              seen, response_text(r));
            last = row;
        }
    }
}

START_TEST(every_sort_and_filter_gives_the_expected_list)
{
    struct row rows[REPORTS_MAX];
    size_t count = all_rows(rows);
    for (size_t sort = 0; sort < COUNT(sorts); sort++)
        for (int ascending = 0; ascending < 2; ascending++)
            expect_list(rows, count, sort, ascending, (size_t)_i);
}
END_TEST

START_TEST(a_report_in_grading_is_pending_in_lists)
{
    const char *page = "/api/v1/reports?status=pending",
               *done = "/api/v1/reports?status=done&search=graded-again";
    origin_page(origin, "/graded-again", 200, "", "<title>x</title>");
    int64_t id = report_new(server, origin_url(origin, "/graded-again"));
    expect_int(http_get(server, page), "meta.total", 0);
    origin_hold(origin, "/graded-again");
    expect_status(http_put(server, report_path(id), "update=1"), 200);
    struct response *r = http_get(server, page);
    expect_int(r, "meta.total", 1);
    expect_int(r, "data.0.id", id);
    expect_int(http_get(server, done), "meta.total", 0);
    origin_release(origin, "/graded-again");
    report_wait(server, id);
    expect_int(http_get(server, page), "meta.total", 0);
    expect_int(http_get(server, done), "meta.total", 1);
    expect_status(http_delete(server, report_path(id)), 200);
}
END_TEST

START_TEST(a_list_filters_by_project_id_and_name)
{
    struct response *project = http_get(server, "/api/v1/projects/alpha.test");
    expect_status(project, 200);
    struct response *a = http_get(server, "/api/v1/reports?project=alpha.test");
    struct response *b = http_get(
        server, text("/api/v1/reports?project=%lld", (long long)int_at(project, "data.id")));
    expect_status(b, 200);
    expect(a, len_at(a, "data") > 0);
    ck_assert_msg(json_object_equal(at(a, "data"), at(b, "data")), "%s%s", response_text(a),
                  response_text(b));
}
END_TEST

START_TEST(a_list_without_parameters_has_the_ten_newest)
{
    struct response *a = http_get(server, "/api/v1/reports");
    struct response *b =
        http_get(server, "/api/v1/reports?sort_by=id&sort=desc&per_page=10&page=1&search_by=url");
    expect_status(a, 200);
    expect(a, len_at(a, "data") == 10);
    expect_int(a, "meta.per_page", 10);
    ck_assert_msg(json_object_equal(at(a, "data"), at(b, "data")), "%s%s", response_text(a),
                  response_text(b));
}
END_TEST

START_TEST(items_are_the_record_without_results)
{
    struct response *r = http_get(server, "/api/v1/reports");
    expect(r, has_exactly(r, "data.0",
                          "id url project status score result privacy password link issues error "
                          "generated_at created_at updated_at"));
    struct response *one = http_get(server, report_path(int_at(r, "data.0.id")));
    json_object_object_del(at(one, "data"), "results");
    ck_assert_msg(json_object_equal(at(one, "data"), at(r, "data.0")), "%s%s", response_text(one),
                  response_text(r));
}
END_TEST

START_TEST(include_results_adds_them_to_every_item)
{
    struct response *r = http_get(server, "/api/v1/reports?include=results&per_page=25");
    expect_status(r, 200);
    for (size_t i = 0; i < len_at(r, "data"); i++) {
        struct response *one = http_get(server, report_path(int_at(r, text("data.%zu.id", i))));
        ck_assert_msg(json_object_equal(at(one, "data"), at(r, text("data.%zu", i))), "%s%s",
                      response_text(one), response_text(r));
    }
}
END_TEST

START_TEST(a_list_too_large_with_results_requests_a_smaller_page)
{
    char page[ORIGIN_BODY], *end = page;
    struct server *s = server_new(&(struct server_options){.origin = origin});
    end += sprintf(end, "<title>x</title><body>");
    for (int i = 0; i < 50; i++)
        end += sprintf(end, "<img src=/%d%0160d><font face=%0160d></font>", i, i, i);
    origin_page(origin, "/wide", 200, "", page);
    server_start(s);
    struct response *r =
        http_post(s, "/api/v1/reports", form("url", origin_url(origin, "/wide"), NULL));
    expect_str(r, "data.status", "done");
    size_t each = r->body_size;
    ck_assert_msg(each > 12000 && each < 36000, "a report of %zu bytes", each);
    int64_t last = 0;
    for (int i = 0; i < 99; i++)
        last = report_queued(s, origin_url(origin, "/wide"));
    report_wait(s, last);
    for (int i = 0; i < 99; i++)
        report_wait(s, last - i);
    expect_status(http_get(s, "/api/v1/reports?per_page=100"), 200);
    expect_status(http_get(s, "/api/v1/reports?per_page=10&include=results"), 200);
    r = http_get(s, "/api/v1/reports?per_page=100&include=results");
    expect_error(r, 422, "validation_failed");
    expect(r, r->body_size < 1024 && len_at(r, "error.errors.per_page") > 0);
    server_free(s);
}
END_TEST

/* ---- query threads and the loop ---- */

static const char *const query_threads[] = {"query_threads: 2", "query_threads: 1",
                                            "query_threads: 0"};

/* An answer from a thread resumes the connection at once, not at the next event or tick. */
START_TEST(a_search_does_not_block_its_connection)
{
    enum { LISTS = 24, TICK_MS = 250 };
    struct server *s = server_new(&(struct server_options){.workers = 1, .origin = origin});
    server_configure(s, query_threads[_i]);
    server_start(s);
    for (size_t i = 0; i < COUNT(seeds); i++)
        report_queued(s, seeds[i]);
    struct client *client = client_new(s);
    int64_t began = now_ms();
    for (int i = 0; i < LISTS; i++) {
        struct response *r =
            http_kept(client, .path = text("/api/v1/reports?search=%c&sort_by=url", 'a' + i));
        expect_status(r, 200);
    }
    int64_t took = now_ms() - began;
    ck_assert_msg(took < LISTS / 4 * TICK_MS, "%d lists on a connection took %lld ms", LISTS,
                  (long long)took);
    client_free(client);
    server_free(s);
}
END_TEST

/* ---- pages ---- */

START_TEST(the_envelope_has_laravels_shape)
{
    struct response *r = http_get(server, "/api/v1/reports?per_page=10&page=2");
    int64_t total = int_at(r, "meta.total"), pages = (total + 9) / 10;
    expect(r, has_exactly(r, "", "data links meta status"));
    expect(r, has_exactly(r, "links", "first last prev next"));
    expect(r, has_exactly(r, "meta", "current_page from last_page path per_page to total"));
    expect_int(r, "status", 200);
    expect_int(r, "meta.current_page", 2);
    expect_int(r, "meta.from", 11);
    expect_int(r, "meta.to", total < 20 ? total : 20);
    expect_int(r, "meta.last_page", pages);
    expect_int(r, "meta.per_page", 10);
    expect_str(r, "meta.path", text("%s/api/v1/reports", server->url));
    expect(r,
           strstr(str_at(r, "links.first"), "page=1") && strstr(str_at(r, "links.prev"), "page=1"));
    expect(r, strstr(str_at(r, "links.last"), text("page=%lld", (long long)pages)));
}
END_TEST

/* The Link header repeats the links of the body. */
static void expect_link_header(const struct response *r)
{
    static const char *const rels[] = {"first", "last", "prev", "next"};
    const char *link = header(r, "Link");
    expect(r, link != NULL);
    for (size_t i = 0; i < COUNT(rels); i++) {
        struct json_object *url = at(r, text("links.%s", rels[i]));
        char *rel = text("rel=\"%s\"", rels[i]);
        expect(r, (url != NULL) == (strstr(link, rel) != NULL));
        if (url)
            expect(r, strstr(link, text("<%s>; %s", json_object_get_string(url), rel)));
    }
}

static const char *const walks[] = {"/api/v1/reports?per_page=10",
                                    "/api/v1/reports?sort_by=url&sort=asc&search=alpha&per_page=10",
                                    "/api/v1/reports?search=%25",
                                    "/api/v1/reports?search=a%26b%3Dc%23%22",
                                    "/api/v1/reports?sort_by=score&include=results",
                                    "/api/v1/projects?sort=asc",
                                    "/api/v1/reports?search=%C3%A9"};

START_TEST(links_lead_through_the_whole_list_and_keep_the_query)
{
    const char *path = walks[_i];
    int64_t seen = 0, total = -1, last_id = 0;
    for (int64_t page = 1; path; page++) {
        struct response *r = http_get(server, path);
        expect_status(r, 200);
        expect_link_header(r);
        expect_int(r, "meta.current_page", page);
        expect(r, !strncmp(str_at(r, "links.first"), server->url, strlen(server->url)));
        total = int_at(r, "meta.total");
        seen += (int64_t)len_at(r, "data");
        if (len_at(r, "data")) {
            expect(r, int_at(r, "data.0.id") != last_id);
            last_id = int_at(r, "data.0.id");
        }
        expect(r, (page == 1) == !at(r, "links.prev"));
        path = at(r, "links.next") ? str_at(r, "links.next") + strlen(server->url) : NULL;
        if (path && strstr(walks[_i], "search="))
            expect(r, strstr(path, "search="));
        expect(r, page < 20);
    }
    ck_assert_int_eq(seen, total);
}
END_TEST

START_TEST(a_page_past_the_end_is_empty_with_null_bounds)
{
    static const char *const paths[] = {"/api/v1/reports?page=1000", "/api/v1/projects?page=1000",
                                        "/api/v1/reports?search=nothing-at-all",
                                        "/api/v1/reports?page=2000000000&per_page=100"};
    for (size_t i = 0; i < COUNT(paths); i++) {
        struct response *r = http_get(server, paths[i]);
        expect_status(r, 200);
        expect(r, len_at(r, "data") == 0);
        expect(r, has(r, "meta.from") && !at(r, "meta.from") && has(r, "meta.to") &&
                      !at(r, "meta.to"));
        expect(r, at(r, "links.next") == NULL);
        expect(r, int_at(r, "meta.last_page") >= 1);
    }
}
END_TEST

static const int page_sizes[] = {10, 25, 50, 100};

START_TEST(every_documented_page_size_is_accepted)
{
    struct response *r = http_get(server, text("/api/v1/reports?per_page=%d", page_sizes[_i]));
    expect_status(r, 200);
    int64_t total = int_at(r, "meta.total");
    expect_int(r, "meta.per_page", page_sizes[_i]);
    expect(r, (int64_t)len_at(r, "data") == (total < page_sizes[_i] ? total : page_sizes[_i]));
}
END_TEST

static const struct {
    const char *query, *field;
} unlisted[] = {
    {"per_page=11", "per_page"},
    {"per_page=0", "per_page"},
    {"per_page=-10", "per_page"},
    {"per_page=ten", "per_page"},
    {"per_page=10.0", "per_page"},
    {"per_page=010", "per_page"},
    {"per_page=1e1", "per_page"},
    {"per_page=99999999999999999999", "per_page"},
    {"sort=up", "sort"},
    {"sort=ASC", "sort"},
    {"sort_by=privacy", "sort_by"},
    {"sort_by=ID", "sort_by"},
    {"search_by=project", "search_by"},
    {"search_by=id", "search_by"},
    {"result=great", "result"},
    {"result=Good", "result"},
    {"page=0", "page"},
    {"page=-1", "page"},
    {"page=x", "page"},
    {"page=1.5", "page"},
    {"page=%201", "page"},
    {"page=18446744073709551617", "page"},
};

START_TEST(an_undocumented_value_is_422_and_names_its_field)
{
    struct response *r = http_get(server, text("/api/v1/reports?%s", unlisted[_i].query));
    expect_error(r, 422, "validation_failed");
    expect(r, len_at(r, text("error.errors.%s", unlisted[_i].field)) > 0);
    json_object_object_foreach(at(r, "error.errors"), field, messages) expect(
        r, !strcmp(field, unlisted[_i].field) && json_object_is_type(messages, json_type_array));
}
END_TEST

START_TEST(all_wrong_values_are_named_together)
{
    struct response *r = http_get(server, "/api/v1/reports?per_page=3&sort=up&result=great");
    expect_error(r, 422, "validation_failed");
    expect(r, len_at(r, "error.errors.per_page") && len_at(r, "error.errors.sort") &&
                  len_at(r, "error.errors.result"));
}
END_TEST

START_TEST(urls_that_differ_after_1000_characters_sort_and_search_right)
{
    struct server *s = server_new(&(struct server_options){.origin = origin});
    static const char tails[] = "cadbe";
    char filler[1501];
    memset(filler, 'p', sizeof(filler) - 1);
    filler[sizeof(filler) - 1] = '\0';
    server_start(s);
    for (size_t i = 0; i < sizeof(tails) - 1; i++)
        report_queued(s, text("http://long.test/%s%c", filler, tails[i]));
    for (int ascending = 0; ascending < 2; ascending++) {
        struct response *r =
            http_get(s, text("/api/v1/reports?sort_by=url&sort=%s", ascending ? "asc" : "desc"));
        expect_status(r, 200);
        for (size_t i = 0; i < sizeof(tails) - 1; i++) {
            const char *url = str_at(r, text("data.%zu.url", i));
            expect(r, url[strlen(url) - 1] == (ascending ? "abcde"[i] : "edcba"[i]));
        }
    }
    struct response *r = http_get(s, "/api/v1/reports?search=pppppa");
    expect_int(r, "meta.total", 1);
    r = http_get(s, text("/api/v1/reports?search=%sb", filler));
    expect_int(r, "meta.total", 1);
    server_free(s);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("lists");
    TCase *tcase = harness_case(suite, "one server");
    tcase_add_unchecked_fixture(tcase, setup, teardown);
    tcase_add_loop_test(tcase, every_sort_and_filter_gives_the_expected_list, 0, COUNT(filters));
    tcase_add_test(tcase, a_list_filters_by_project_id_and_name);
    tcase_add_test(tcase, a_report_in_grading_is_pending_in_lists);
    tcase_add_test(tcase, a_list_without_parameters_has_the_ten_newest);
    tcase_add_test(tcase, items_are_the_record_without_results);
    tcase_add_test(tcase, include_results_adds_them_to_every_item);
    tcase_add_test(tcase, a_list_too_large_with_results_requests_a_smaller_page);
    tcase_add_loop_test(tcase, a_search_does_not_block_its_connection, 0, COUNT(query_threads));
    tcase_add_test(tcase, the_envelope_has_laravels_shape);
    tcase_add_loop_test(tcase, links_lead_through_the_whole_list_and_keep_the_query, 0,
                        COUNT(walks));
    tcase_add_test(tcase, a_page_past_the_end_is_empty_with_null_bounds);
    tcase_add_loop_test(tcase, every_documented_page_size_is_accepted, 0, COUNT(page_sizes));
    tcase_add_loop_test(tcase, an_undocumented_value_is_422_and_names_its_field, 0,
                        COUNT(unlisted));
    tcase_add_test(tcase, all_wrong_values_are_named_together);
    tcase_add_test(tcase, urls_that_differ_after_1000_characters_sort_and_search_right);
    return harness_main(suite);
}
