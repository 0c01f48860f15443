/*
 * Every route of bulk sync, under both prefixes: its answer to a good request and to every kind of
 * bad request. Each answer carries the limiter's headers; a bad request changes nothing.
 */
#include "t/kit/sync.h"

#define MOST ((size_t)64 << 10)

static char *revoked, *conversation;

static void setup(void)
{
    server =
        server_shared(&(struct server_options){.yaml = SYNC_MANY "sync: { max_bytes: 64KiB }\n"});
    sync_make();
    revoked = assay_ok(server, "token", "create", "--workspace", "main", "--name", "gone", NULL);
    assay_ok(
        server, "token", "revoke",
        record_text(record_find(assay_list(server, "token", "list", NULL), "name", "gone"), "id"),
        NULL);
    struct response *r = http(server, .method = "POST", .path = "/api/v1/widget/init", .key = "",
                              .headers = {"Content-Type: application/json"},
                              .body = text("{\"agent_id\":\"%s\"}", agent));
    expect_status(r, 200);
    conversation = text("%s", str_at(r, "data.conversation_id"));
}

static void teardown(void)
{
    server_shared_stop(server);
}

/* ---- the routes ---- */

#define POST_ITEM                                                                                  \
    "{\"wp_id\":1,\"post_type\":\"post\",\"permalink\":\"https://shop.example/"                    \
    "1\",\"title\":\"T\",\"content_html\":\"<p>t</p>\"}"
#define PRODUCT_ITEM                                                                               \
    "{\"wp_id\":1,\"name\":\"Mug\",\"permalink\":\"https://shop.example/"                          \
    "p\",\"price\":\"1\",\"currency\":\"EUR\",\"stock_status\":\"instock\",\"on_sale\":false}"

/* Columns: path; the items of an agent (NULL: none); an item; other members of the body. */
static const struct route_row {
    const char *path, *items, *item, *more;
    bool get;
} rows[] = {
    {"handshake", NULL, NULL, "", false},
    {"posts/sync", "posts", POST_ITEM, "", false},
    {"posts/changed", "posts", POST_ITEM, ",\"action\":\"upsert\"", false},
    {"products/sync", "products", PRODUCT_ITEM, "", false},
    {"products/changed", "products", PRODUCT_ITEM, ",\"action\":\"upsert\"", false},
    {"coupons/sync", "coupons", "{\"code\":\"TEN\",\"discount\":\"10%\"}", "", false},
    {"status", NULL, NULL, "", true},
    {"coupons/pending", NULL, NULL, "", true},
};

static const struct route_row *row_of(int i)
{
    return &rows[(size_t)i % COUNT(rows)];
}

static const char *prefix_of(int i)
{
    return prefixes[(size_t)i / COUNT(rows)];
}

static char *body_with(const struct route_row *row, const char *of, const char *items)
{
    if (row->items == NULL)
        return text("{\"site_url\":\"https://shop.example\",\"plugin_version\":\"1\"}");
    return text("{\"agent_id\":\"%s\",\"site_url\":\"https://"
                "shop.example\",\"plugin_version\":\"1\"%s,\"%s\":%s}",
                of, row->more, row->items, items);
}

static char *good_body(const struct route_row *row)
{
    return row->get ? NULL
                    : body_with(row, agent, text("[%s]", row->item == NULL ? "" : row->item));
}

static char *path_for(int i, const char *of)
{
    const struct route_row *row = row_of(i);
    if (!strcmp(row->path, "coupons/pending"))
        return text("%s%s?conversation_id=%s", prefix_of(i), row->path, conversation);
    return row->get ? text("%s%s?agent_id=%s", prefix_of(i), row->path, of)
                    : text("%s%s", prefix_of(i), row->path);
}

/* What every answer of the surface has. */
static struct response *limited(struct response *r)
{
    expect(r, header_times(r, "x-ratelimit-limit") == 1 &&
                  header_times(r, "x-ratelimit-remaining") == 1 &&
                  header_times(r, "x-ratelimit-reset") == 1);
    expect(r, atoll(header(r, "x-ratelimit-reset")) % 60 == 0);
    expect(r, (header(r, "retry-after") != NULL) == (r->status == 429));
    expect(r, header(r, "x-request-id") != NULL);
    return r;
}

static struct response *send(int i, const char *key, const char *header, const char *body)
{
    return limited(http(
        server, .method = row_of(i)->get ? "GET" : "POST", .path = path_for(i, agent), .key = key,
        .headers = {body == NULL ? "X-Nothing: 1" : "Content-Type: application/json",
                    header == NULL ? "X-Nothing: 2" : header},
        .body = body));
}

#define EACH_ROUTE ((int)(COUNT(rows) * COUNT(prefixes)))

START_TEST(each_route_answers_a_valid_request)
{
    struct response *r = send(_i, token, NULL, good_body(row_of(_i)));
    expect_status(r, 200);
    expect(r, at(r, "data") != NULL);
    ck_assert_str_eq(header(r, "cache-control"), "no-store");
    expect(r, strncmp(header(r, "content-type"), "application/json", 16) == 0);
    if (row_of(_i)->items != NULL) {
        expect(r, has_exactly(
                      r, "data",
                      "queued skipped_unchanged skipped_stale deleted failed sync_id results"));
        expect(r, int_at(r, "data.queued") + int_at(r, "data.skipped_unchanged") == 1);
    }
}
END_TEST

START_TEST(each_route_needs_a_valid_workspace_token)
{
    const char *const keys[] = {"", server->key, revoked,
                                "asy_wp_0000000000000000000000000000000000AA",
                                "eyJhbGciOiJIUzI1NiJ9.e30.x"};
    for (size_t k = 0; k < COUNT(keys); k++) {
        struct response *r = send(_i, keys[k], NULL, good_body(row_of(_i)));
        expect_error(r, 401, "unauthorized");
        ck_assert_str_eq(header(r, "www-authenticate"),
                         k == 0 ? "Bearer realm=\"assay\""
                                : "Bearer realm=\"assay\", error=\"invalid_token\"");
    }
}
END_TEST

START_TEST(each_route_verifies_signatures)
{
    const char *body = good_body(row_of(_i));
    expect_error(send(_i, signing, NULL, body), 401, "signature_missing");
    expect_error(
        send(_i, signing,
             "X-Signature: t=1,v1=0000000000000000000000000000000000000000000000000000000000000000",
             body),
        401, "signature_mismatch");
    expect_error(send(_i, token, "X-Signature: nonsense", body), 401, "signature_mismatch");
}
END_TEST

START_TEST(each_route_is_confined_to_its_workspace)
{
    const struct route_row *row = row_of(_i);
    if (row->path[0] ==
        'h') { /* without an agent id in the path: it answers for its own workspace */
        struct response *r = send(_i, foreign_token, NULL, good_body(row));
        expect_status(r, 200);
        expect_str(r, "data.workspace.name", "other");
        expect(r, len_at(r, "data.agents") == 1);
        expect_str(r, "data.agents.0.id", foreign_agent);
        return;
    }
    const char *code = !strcmp(row->path, "coupons/pending") ? "not_found" : "agent_not_found";
    expect_error(send(_i, foreign_token, NULL, good_body(row)), 404, code);
    if (row->items == NULL)
        return;
    static const char *const unknown[] = {"01ARZ3NDEKTSV4RRFFQ69G5FAV", "nobody", "../../x"};
    for (size_t k = 0; k < COUNT(unknown); k++)
        expect_error(send(_i, token, NULL, body_with(row, unknown[k], text("[%s]", row->item))),
                     404, code);
    expect_error(send(_i, token, NULL, body_with(row, foreign_agent, text("[%s]", row->item))), 404,
                 code);
}
END_TEST

START_TEST(each_route_has_one_method_and_no_subpath)
{
    const struct route_row *row = row_of(_i);
    struct response *r =
        limited(http(server, .method = row->get ? "POST" : "GET", .path = path_for(_i, agent),
                     .key = token, .body = row->get ? "" : NULL));
    expect_error(r, 405, "method_not_allowed");
    expect(r, strstr(header(r, "allow"), row->get ? "GET" : "POST") != NULL);
    expect_error(
        limited(http(server, .method = "DELETE", .path = path_for(_i, agent), .key = token)), 405,
        "method_not_allowed");
    expect_error(
        limited(http(server, .path = text("%s%s/more", prefix_of(_i), row->path), .key = token)),
        404, "not_found");
    r = http(server, .method = "OPTIONS", .path = path_for(_i, agent), .key = token);
    expect_status(r, 204);
    ck_assert_ptr_null(header(r, "x-ratelimit-limit"));
    /* no CORS headers */
    ck_assert_ptr_null(header(r, "access-control-allow-origin"));
    expect_error(send(_i, token, "Accept: text/html", good_body(row)), 406, "not_acceptable");
}
END_TEST

/* ---- bodies ---- */

static char *times(const char *what, size_t count)
{
    size_t n = strlen(what);
    char *all = malloc(n * count + 1);
    for (size_t i = 0; i < count; i++)
        memcpy(all + i * n, what, n);
    all[n * count] = '\0';
    return all;
}

static char *items_of(const struct route_row *row, unsigned count)
{
    char *all = text("[");
    for (unsigned i = 0; i < count; i++)
        all = text("%s%s%s", all, i == 0 ? "" : ",",
                   row->items[0] == 'c' ? text("{\"code\":\"C%u\",\"discount\":\"5\"}", i)
                                        : text("{\"wp_id\":%u}", i + 1));
    return text("%s]", all);
}

static int64_t kept(void)
{
    struct response *r =
        http(server, .path = text("/v1/wp/status?agent_id=%s", agent), .key = token);
    return int_at(r, "data.posts.count") * 10000 + int_at(r, "data.products.count") * 100 +
           int_at(r, "data.coupons.count");
}

START_TEST(each_route_refuses_a_wrong_body_whole)
{
    const struct route_row *row = row_of(_i);
    if (row->get)
        return;
    int64_t before = kept();
    const char *good = good_body(row);
    const char *const malformed[] = {
        "{",
        "[]",
        "\"a\"",
        "{\"site_url\":NaN}",
        "{'site_url':1}",
        "{\"site_url\":\"\xff\"}",
        "{\"site_url\":\"\\ud800\"}",
        "{\"a\":1,\"a\":2}",
        text("%s%s", good, "x"),
        text("{\"site_url\":%s%s}", times("[", 1000), times("]", 1000)),
        text("{\"site_url\":%s1%s}", times("{\"a\":", 1000), times("}", 1000))};
    for (size_t k = 0; k < COUNT(malformed); k++)
        expect_error(send(_i, token, NULL, malformed[k]), 400, "bad_request");
    static const char *const invalid[] = {"{}", "{\"site_url\":1}",
                                          "{\"agent_id\":[],\"site_url\":{}}"};
    for (size_t k = 0; k < COUNT(invalid); k++) {
        struct response *r = send(_i, token, NULL, invalid[k]);
        expect_error(r, 422, "validation_failed");
        expect(r, has(r, "error.errors.site_url"));
    }
    expect_error(limited(http(server, .method = "POST", .path = path_for(_i, agent), .key = token,
                              .headers = {"Content-Type: application/x-www-form-urlencoded"},
                              .body = "a=1")),
                 415, "unsupported_media_type");
    expect_error(send(_i, token, "Content-Encoding: br", good), 415, "unsupported_media_type");
    expect_error(send(_i, token, "Content-Encoding: gzip", good), 400, "bad_request");
    if (row->items != NULL) {
        /* the body must be an object; in a batch, a malformed item fails alone */
        bool single = strstr(row->path, "changed") != NULL;
        const char *const items[] = {
            "7", "null", "\"a\"", "true", single ? "[]" : "{}", single ? "[7,8]" : "{\"wp_id\":1}"};
        for (size_t k = 0; k < COUNT(items); k++)
            expect_error(send(_i, token, NULL, body_with(row, agent, items[k])), 422,
                         "validation_failed");
        expect_error(send(_i, token, NULL, body_with(row, agent, items_of(row, 101))), 422,
                     "validation_failed");
        expect_error(
            send(_i, token, NULL, body_with(row, agent, text("[%s,%s]", row->item, row->item))),
            422, "validation_failed");
    }
    ck_assert_int_eq(kept(), before);
}
END_TEST

static struct response *send_bytes(int i, const char *coding, const char *body, size_t size)
{
    return limited(
        http(server, .method = "POST", .path = path_for(i, agent), .key = token,
             .headers = {"Content-Type: application/json", text("Content-Encoding: %s", coding)},
             .body = body, .body_size = size));
}

START_TEST(each_route_has_a_byte_limit)
{
    const char *good = good_body(row_of(_i));
    size_t size;
    if (row_of(_i)->get)
        return;
    expect_error(send_bytes(_i, "identity", padded(good, MOST + 1), MOST + 1), 413,
                 "payload_too_large");
    expect_status(send_bytes(_i, "identity", padded(good, MOST), MOST), 200);
    char *over = gzip(padded(good, MOST + 1), MOST + 1, &size);
    expect_error(send_bytes(_i, "gzip", over, size), 413, "payload_too_large");
    char *at_most = gzip(padded(good, MOST), MOST, &size);
    expect_status(send_bytes(_i, "gzip", at_most, size), 200);
    char *bomb = gzip(calloc(1, 32 << 20), 32 << 20, &size);
    expect_error(send_bytes(_i, "gzip", bomb, size), 413, "payload_too_large");
}
END_TEST

/* ---- idempotency keys ---- */

START_TEST(each_changing_route_runs_once_per_key)
{
    const struct route_row *row = row_of(_i);
    if (row->items == NULL)
        return;
    char *key = text("Idempotency-Key: %s-%d", row->path, _i);
    struct response *first = send(_i, token, key, good_body(row)),
                    *again = send(_i, token, key, good_body(row));
    expect_status(first, 200);
    expect_status(again, 200);
    ck_assert_str_eq(first->body, again->body);
    ck_assert_ptr_null(header(first, "idempotent-replayed"));
    ck_assert_str_eq(header(again, "idempotent-replayed"), "true");
    expect_error(send(_i, token, key, body_with(row, agent, items_of(row, 1))), 422,
                 "idempotency_key_reused");
}
END_TEST

/* ---- the limit ---- */

/* A limit of three, so that another prefix has already used it on each route. */
START_TEST(all_routes_share_one_budget)
{
    struct server *own = server_new(
        &(struct server_options){.yaml = "limits: { limiters: { bulk-sync: { windows: [ { limit: "
                                         "3, seconds: 3600, key: token } ] } } }\n"});
    server_start(own);
    server = own;
    agent = assay_ok(own, "agent", "create", "--workspace", "main", "--name", "Shop", NULL);
    token = assay_ok(own, "token", "create", "--workspace", "main", NULL);
    struct response *r = NULL;
    for (int i = 0; i < 3; i++) { /* known or unknown, right or wrong, with either prefix */
        const char *const spent[] = {"/v1/wp/status", "/api/v1/wp/nothing/there",
                                     "/v1/wp/handshake"};
        r = http(own, .path = spent[i], .key = token);
        ck_assert_int_eq(atoi(header(r, "x-ratelimit-remaining")), 2 - i);
    }
    for (int i = 0; i < EACH_ROUTE; i++) {
        r = send(i, token, NULL, good_body(row_of(i)));
        expect_error(r, 429, "rate_limited");
        expect(r, has_exactly(r, "error", "code message"));
        ck_assert_str_eq(header(r, "x-ratelimit-remaining"), "0");
        ck_assert_int_ge(atoi(header(r, "retry-after")), 1);
    }
    expect_error(limited(http(own, .path = "/api/v1/wp/nothing", .key = token)), 429,
                 "rate_limited");
    r = http(own, .path = text("/v1/wp/status?agent_id=%s", agent),
             .key = assay_ok(own, "token", "create", "--workspace", "main", NULL));
    expect_status(r, 200); /* another token has its own budget; and nothing was stored */
    expect_int(r, "data.products.count", 0);
    server_free(own);
}
END_TEST

START_TEST(the_store_is_valid_after_all_tests)
{
    assay_ok(server, "check", NULL);
}
END_TEST

static Suite *suite(void)
{
    Suite *s = suite_create("sync_routes");
    TCase *c = harness_case(s, "routes");
    tcase_add_unchecked_fixture(c, setup, teardown);
    tcase_add_loop_test(c, each_route_answers_a_valid_request, 0, EACH_ROUTE);
    tcase_add_loop_test(c, each_route_needs_a_valid_workspace_token, 0, EACH_ROUTE);
    tcase_add_loop_test(c, each_route_verifies_signatures, 0, EACH_ROUTE);
    tcase_add_loop_test(c, each_route_is_confined_to_its_workspace, 0, EACH_ROUTE);
    tcase_add_loop_test(c, each_route_has_one_method_and_no_subpath, 0, EACH_ROUTE);
    tcase_add_loop_test(c, each_route_refuses_a_wrong_body_whole, 0, EACH_ROUTE);
    tcase_add_loop_test(c, each_route_has_a_byte_limit, 0, EACH_ROUTE);
    tcase_add_loop_test(c, each_changing_route_runs_once_per_key, 0, EACH_ROUTE);
    tcase_add_test(c, the_store_is_valid_after_all_tests);
    c = harness_case(s, "limit");
    tcase_add_test(c, all_routes_share_one_budget);
    return s;
}

int main(void)
{
    return harness_main(suite());
}
