/* Bulk sync over HTTP: a shop's plugin against a real server. */
#include "harness.h"

#include <openssl/hmac.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <time.h>
#include <zlib.h>

#define MANY "limits: { limiters: { bulk-sync: { windows: [ { limit: 100000, seconds: 60, key: token } ] } } }\n"

static struct server *server;
static char *token, *signing, *agent, *foreign_agent, *foreign_token;

static void setup(void)
{
    server = server_new(&(struct server_options){.yaml = MANY});
    server_start(server);
    assay_ok(server, "workspace", "create", "other", NULL);
    token = assay_ok(server, "token", "create", "--workspace", "main", "--name", "shop", NULL);
    signing = assay_ok(server, "token", "create", "--workspace", "main", "--require-signature", NULL);
    foreign_token = assay_ok(server, "token", "create", "--workspace", "other", NULL);
    agent = assay_ok(server, "agent", "create", "--workspace", "main", "--name", "Shop", NULL);
    foreign_agent = assay_ok(server, "agent", "create", "--workspace", "other", "--name", "Theirs", NULL);
}

static void teardown(void)
{
    server_free(server);
}

/* an agent of the test's own, so that tests do not see each other's items */
static char *agent_new(void)
{
    return assay_ok(server, "agent", "create", "--workspace", "main", "--name", "Shop", NULL);
}

static const char *const prefixes[] = {"/v1/wp/", "/api/v1/wp/"};

static struct response *post_as(const char *key, const char *path, const char *body)
{
    return http(server, .method = "POST", .path = text("/v1/wp/%s", path), .key = key, .headers = {"Content-Type: application/json"}, .body = body);
}

static struct response *post(const char *path, const char *body)
{
    return post_as(token, path, body);
}

static char *envelope(const char *of, const char *more, const char *items_name, const char *items)
{
    return text("{\"agent_id\":\"%s\",\"site_url\":\"https://www.shop.example/\",\"plugin_version\":\"1.0\"%s,\"%s\":%s}", of, more, items_name, items);
}

static char *product(unsigned id, const char *name, const char *more)
{
    return text("{\"wp_id\":%u,\"name\":\"%s\",\"permalink\":\"https://shop.example/p/%u\",\"price\":\"12.50\",\"currency\":\"EUR\","
                "\"stock_status\":\"instock\",\"on_sale\":false,\"categories\":[\"Cups\"],\"attributes\":[]%s}",
                id, name, id, more);
}

static char *a_post(unsigned id, const char *title, const char *more)
{
    return text("{\"wp_id\":%u,\"post_type\":\"post\",\"permalink\":\"https://shop.example/%u\",\"title\":\"%s\",\"content_html\":\"<p>text</p>\"%s}",
                id, id, title, more);
}

static struct response *sync_one(const char *of, const char *more, const char *item)
{
    return post("products/sync", envelope(of, more, "products", text("[%s]", item)));
}

static int64_t counted(const char *of, const char *kind)
{
    struct response *r = http(server, .path = text("/v1/wp/status?agent_id=%s", of), .key = token);
    expect_status(r, 200);
    return int_at(r, text("data.%s.count", kind));
}

/* ---- each route ---- */

START_TEST(a_handshake_tells_what_there_is)
{
    struct response *r = http(server, .method = "POST", .path = text("%shandshake", prefixes[_i]), .key = token,
                              .headers = {"Content-Type: application/json"},
                              .body = "{\"site_url\":\"https://shop.example\",\"plugin_version\":\"1.0\",\"woocommerce_active\":true}");
    expect_status(r, 200);
    ck_assert(has_exactly(r, "data", "workspace agents token limits"));
    expect_str(r, "data.workspace.name", "main");
    expect_str(r, "data.token.name", "shop");
    expect_str(r, "data.token.abilities.0", "wp:sync");
    expect_int(r, "data.limits.batch_items", 100);
    expect_int(r, "data.limits.batch_bytes", 5242880);
    for (size_t i = 0; i < len_at(r, "data.agents"); i++)
        expect(r, strcmp(str_at(r, text("data.agents.%zu.id", i)), foreign_agent) != 0);
    ck_assert_str_eq(header(r, "cache-control"), "no-store");
    ck_assert_str_eq(header(r, "x-ratelimit-limit"), "100000");
}
END_TEST

START_TEST(each_item_of_a_batch_has_its_own_result)
{
    char *items = text("[%s,{\"wp_id\":9,\"name\":\"No price\"},%s,7,{\"name\":\"nobody\"}]", product(142, "Mug", ""), product(143, "Cup", ""));
    struct response *r = http(server, .method = "POST", .path = text("%sproducts/sync", prefixes[_i]), .key = token,
                              .headers = {"Content-Type: application/json; charset=utf-8"}, .body = envelope(agent_new(), "", "products", items));
    expect_status(r, 200);
    ck_assert(has_exactly(r, "data", "queued skipped_unchanged skipped_stale deleted failed sync_id results"));
    expect_int(r, "data.queued", 2);
    expect_int(r, "data.failed", 3);
    expect_int(r, "data.results.0.wp_id", 142);
    expect_str(r, "data.results.0.status", "queued");
    expect_str(r, "data.results.1.status", "failed");
    expect_str(r, "data.results.1.error.code", "validation_failed");
    expect_str(r, "data.results.2.status", "queued");
    expect(r, has(r, "data.results.3.wp_id") && at(r, "data.results.3.wp_id") == NULL);
    expect(r, has(r, "data.sync_id") && at(r, "data.sync_id") == NULL);
}
END_TEST

START_TEST(both_prefixes_are_one)
{
    char *of = agent_new(), *body = envelope(of, "", "posts", text("[%s]", a_post(1, "One", "")));
    expect_int(post("posts/sync", body), "data.queued", 1);
    struct response *r = http(server, .method = "POST", .path = "/api/v1/wp/posts/sync", .key = token, .headers = {"Content-Type: application/json"}, .body = body);
    expect_int(r, "data.skipped_unchanged", 1);
}
END_TEST

/* Columns: the member that changes, its values as sent one after the other, the results. */
START_TEST(hashes_and_dates_decide_what_is_taken)
{
    static const struct {
        const char *more, *name, *status;
    } steps[] = {
        {",\"content_hash\":\"a\"", "Mug", "queued"},
        {",\"content_hash\":\"a\"", "Other", "skipped_unchanged"},
        {",\"content_hash\":\"b\",\"modified_at\":\"2026-05-07T13:00:00Z\"", "Mug", "queued"},
        {",\"content_hash\":\"c\",\"modified_at\":\"2026-05-07T12:59:59Z\"", "Mug", "skipped_stale"},
        {",\"content_hash\":\"c\",\"modified_at\":\"2026-05-07T15:00:00+01:00\"", "Mug", "queued"},
        {"", "Mug", "queued"},
        {"", "Mug", "skipped_unchanged"},
        {"", "Cup", "queued"},
        {",\"modified_at\":\"yesterday\"", "Cup", "failed"},
    };
    char *of = agent_new();
    for (size_t i = 0; i < COUNT(steps); i++) {
        struct response *r = sync_one(of, "", product(1, steps[i].name, steps[i].more));
        expect_status(r, 200);
        ck_assert_msg(!strcmp(str_at(r, "data.results.0.status"), steps[i].status), "step %zu\n%s", i, response_text(r));
    }
}
END_TEST

START_TEST(one_item_is_changed_and_deleted)
{
    char *of = agent_new();
    expect_int(post("products/changed", envelope(of, ",\"action\":\"upsert\"", "products", product(1, "Mug", ""))), "data.queued", 1);
    ck_assert_int_eq(counted(of, "products"), 1);
    expect_int(post("products/changed", envelope(of, "", "products", "[{\"wp_id\":1,\"action\":\"delete\"}]")), "data.deleted", 1);
    ck_assert_int_eq(counted(of, "products"), 0);
    struct response *r = sync_one(of, "", product(1, "Mug", ",\"modified_at\":\"2020-01-01T00:00:00Z\""));
    expect_str(r, "data.results.0.status", "skipped_stale");
    expect_error(post("products/changed", envelope(of, "", "products", product(1, "Mug", ""))), 422, "validation_failed");
    expect_error(post("products/changed", envelope(of, ",\"action\":\"burn\"", "products", product(1, "Mug", ""))), 422, "validation_failed");
    expect_error(post("posts/changed", envelope(of, ",\"action\":\"upsert\"", "posts", text("[%s,%s]", a_post(1, "a", ""), a_post(2, "b", "")))), 422, "validation_failed");
    expect_int(post("posts/changed", envelope(of, ",\"action\":\"upsert\"", "posts", text("[%s]", a_post(1, "a", "")))), "data.queued", 1);
}
END_TEST

START_TEST(a_full_sync_deletes_what_it_did_not_bring)
{
    char *of = agent_new();
    for (unsigned i = 1; i <= 3; i++)
        sync_one(of, ",\"sync_id\":\"one\"", product(i, "Mug", ""));
    struct response *r = sync_one(of, ",\"sync_id\":\"two\"", product(2, "Mug", ""));
    expect_str(r, "data.sync_id", "two");
    ck_assert_int_eq(counted(of, "products"), 3);
    r = post("products/sync", envelope(of, ",\"sync_id\":\"two\",\"complete\":true", "products", "[]"));
    expect_status(r, 200);
    expect_int(r, "data.deleted", 2);
    ck_assert_int_eq(counted(of, "products"), 1);
    r = http(server, .path = text("/api/v1/wp/status?agent_id=%s", of), .key = token);
    expect_str(r, "data.products.last_complete.sync_id", "two");
    expect_str(r, "data.collections.0.site", "shop.example");
    expect_error(sync_one(of, ",\"sync_id\":\"one\"", product(1, "Mug", "")), 409, "conflict");
    ck_assert_int_eq(counted(of, "products"), 1);
}
END_TEST

START_TEST(coupons_are_brought_to_one_form_and_replaced_as_a_whole)
{
    char *of = agent_new();
    struct response *r = post("coupons/sync", envelope(of, ",\"timezone\":\"Europe/Berlin\"", "coupons",
                                                       "[{\"code\":\"SAVE10\",\"discount\":\"10%\",\"expires_at\":\"2027-05-07\"},{\"code\":\"FIVE\",\"discount\":\"5\"},"
                                                       "{\"code\":\"woo\",\"discount_type\":\"fixed_product\",\"amount\":\"2.00\",\"product_ids\":[1,2],\"usage_limit\":null},"
                                                       "{\"code\":\"bad\",\"discount\":\"a lot\"},{\"discount\":\"5\"}]"));
    expect_status(r, 200);
    expect_int(r, "data.queued", 3);
    expect_int(r, "data.failed", 2);
    expect_str(r, "data.results.3.code", "bad");
    ck_assert_int_eq(counted(of, "coupons"), 3);
    r = post("coupons/sync", envelope(of, "", "coupons", "[{\"code\":\"five\",\"discount\":\"5\"}]"));
    expect_int(r, "data.deleted", 2);
    ck_assert_int_eq(counted(of, "coupons"), 1);
    expect_error(post("coupons/sync", envelope(of, "", "coupons", "[{\"code\":\"A\",\"discount\":\"5\"},{\"code\":\"a\",\"discount\":\"5\"}]")), 422, "validation_failed");
    ck_assert_int_eq(counted(of, "coupons"), 1);
}
END_TEST

START_TEST(status_has_a_tag_that_changes_with_what_it_says)
{
    char *of = agent_new(), *path = text("/v1/wp/status?agent_id=%s", of);
    const char *tag = header(http(server, .path = path, .key = token), "etag");
    ck_assert_ptr_nonnull(tag);
    expect_status(http(server, .path = path, .key = token, .headers = {text("If-None-Match: %s", tag)}), 304);
    sync_one(of, "", product(1, "Mug", ""));
    expect_status(http(server, .path = path, .key = token, .headers = {text("If-None-Match: %s", tag)}), 200);
}
END_TEST

START_TEST(a_batch_under_an_idempotency_key_is_done_once)
{
    char *of = agent_new(), *body = envelope(of, "", "products", text("[%s,{\"wp_id\":2}]", product(1, "Mug", "")));
    struct response *first = NULL, *r = NULL;
    for (int i = 0; i < 2; i++) {
        r = http(server, .method = "POST", .path = "/v1/wp/products/sync", .key = token, .headers = {"Content-Type: application/json", text("Idempotency-Key: %s", of)}, .body = body);
        expect_status(r, 200);
        first = i == 0 ? r : first;
    }
    ck_assert_str_eq(header(r, "idempotent-replayed"), "true");
    ck_assert_str_eq(r->body, first->body);
    r = http(server, .method = "POST", .path = "/v1/wp/products/sync", .key = token, .headers = {"Content-Type: application/json", text("Idempotency-Key: %s", of)},
             .body = envelope(of, "", "products", text("[%s]", product(3, "Mug", ""))));
    expect_error(r, 422, "idempotency_key_reused");
    ck_assert_int_eq(counted(of, "products"), 1);
}
END_TEST

/* ---- what is wrong with an envelope: nothing of it is applied ---- */

static const struct {
    const char *agent, *more, *field;
} wrong_envelopes[] = {
    {NULL, ",\"complete\":true", "sync_id"},
    {NULL, ",\"complete\":\"yes\",\"sync_id\":\"a\"", "complete"},
    {NULL, ",\"timezone\":\"Mars/Base\"", "timezone"},
    {NULL, ",\"timezone\":\"../../etc/passwd\"", "timezone"},
    {NULL, ",\"sync_id\":7", "sync_id"},
    {NULL, ",\"sync_id\":\"\"", "sync_id"},
    {"", "", "agent_id"},
};

START_TEST(a_wrong_envelope_is_refused_whole)
{
    char *of = agent_new();
    const char *named = wrong_envelopes[_i].agent == NULL ? of : wrong_envelopes[_i].agent;
    struct response *r = sync_one(named, wrong_envelopes[_i].more, product(1, "Mug", ""));
    expect_error(r, 422, "validation_failed");
    expect(r, has(r, text("error.errors.%s", wrong_envelopes[_i].field)));
    ck_assert_int_eq(counted(of, "products"), 0);
}
END_TEST

/* Columns: the body, the status. */
static const struct {
    const char *body;
    int status;
    const char *code;
} wrong_bodies[] = {
    {"", 422, "validation_failed"},
    {"[]", 400, "bad_request"},
    {"{\"agent_id\":", 400, "bad_request"},
    {"{\"agent_id\":\"a\",\"agent_id\":\"b\"}", 400, "bad_request"},
    {"{}", 422, "validation_failed"},
    {"{\"agent_id\":\"01ARZ3NDEKTSV4RRFFQ69G5FAV\",\"site_url\":\"ftp://x\",\"plugin_version\":\"1\",\"products\":[]}", 422, "validation_failed"},
    {"{\"agent_id\":\"01ARZ3NDEKTSV4RRFFQ69G5FAV\",\"site_url\":\"https://x.example\",\"plugin_version\":\"1\",\"products\":{}}", 422, "validation_failed"},
    {"{\"agent_id\":\"01ARZ3NDEKTSV4RRFFQ69G5FAV\",\"site_url\":\"https://x.example\",\"plugin_version\":\"1\",\"products\":[]}", 404, "agent_not_found"},
    {"{\"agent_id\":\"me\",\"site_url\":\"https://x.example\",\"plugin_version\":\"1\",\"products\":[]}", 404, "agent_not_found"},
};

START_TEST(a_wrong_body_is_refused)
{
    expect_error(post("products/sync", wrong_bodies[_i].body), wrong_bodies[_i].status, wrong_bodies[_i].code);
}
END_TEST

START_TEST(an_item_named_twice_is_refused_with_its_batch)
{
    char *of = agent_new();
    expect_error(post("products/sync", envelope(of, "", "products", text("[%s,%s]", product(1, "a", ""), product(1, "b", "")))), 422, "validation_failed");
    ck_assert_int_eq(counted(of, "products"), 0);
}
END_TEST

static char *many(unsigned count)
{
    char *items = text("[%s", product(1, "Mug", ""));
    for (unsigned i = 2; i <= count; i++)
        items = text("%s,%s", items, product(i, "Mug", ""));
    return text("%s]", items);
}

START_TEST(a_hundred_items_are_taken_and_one_more_is_not)
{
    char *of = agent_new();
    expect_error(post("products/sync", envelope(of, "", "products", many(101))), 422, "validation_failed");
    ck_assert_int_eq(counted(of, "products"), 0);
    expect_int(post("products/sync", envelope(of, "", "products", many(100))), "data.queued", 100);
    ck_assert_int_eq(counted(of, "products"), 100);
}
END_TEST

static char *deep(unsigned levels)
{
    char *all = malloc(2 * levels + 1);
    memset(all, '[', levels);
    memset(all + levels, ']', levels);
    all[2 * levels] = '\0';
    return all;
}

START_TEST(json_a_thousand_levels_deep_is_refused)
{
    expect_error(post("products/sync", envelope(agent, "", "products", deep(1000))), 400, "bad_request");
}
END_TEST

/* ---- credentials ---- */

static const char *const paths[] = {"handshake", "posts/sync", "posts/changed", "products/sync", "products/changed", "coupons/sync", "status"};

static struct response *ask(const char *prefix, const char *path, const char *key)
{
    bool get = !strcmp(path, "status");
    return http(server, .method = get ? "GET" : "POST", .path = text("%s%s", prefix, path), .key = key, .headers = {"Content-Type: application/json"}, .body = get ? NULL : "{}");
}

START_TEST(every_route_wants_a_workspace_token)
{
    const char *path = paths[_i / 2], *prefix = prefixes[_i % 2];
    struct response *none = ask(prefix, path, ""), *key = ask(prefix, path, server->key), *typo = ask(prefix, path, "asy_wp_0000000000000000000000000000000000AA");
    expect_error(none, 401, "unauthorized");
    expect_error(key, 401, "unauthorized");
    expect_error(typo, 401, "unauthorized");
    ck_assert_ptr_nonnull(header(none, "x-ratelimit-limit"));
    ck_assert_ptr_nonnull(strstr(header(none, "www-authenticate"), "Bearer"));
    expect(ask(prefix, path, token), ask(prefix, path, token)->status != 401);
}
END_TEST

START_TEST(another_workspaces_agent_is_not_found)
{
    expect_error(sync_one(foreign_agent, "", product(1, "Mug", "")), 404, "agent_not_found");
    expect_error(http(server, .path = text("/v1/wp/status?agent_id=%s", foreign_agent), .key = token), 404, "agent_not_found");
    expect_error(post_as(foreign_token, "products/sync", envelope(agent, "", "products", "[]")), 404, "agent_not_found");
    struct response *all = http(server, .path = "/v1/wp/status", .key = foreign_token);
    expect_int(all, "data.products.count", 0);
    ck_assert_uint_eq(len_at(all, "data.collections"), 0);
}
END_TEST

START_TEST(a_method_or_path_that_is_not_there_is_told)
{
    expect_error(http(server, .path = "/v1/wp/posts/sync", .key = token), 405, "method_not_allowed");
    struct response *r = http(server, .path = "/v1/wp/nothing", .key = token);
    expect_error(r, 404, "not_found");
    ck_assert_ptr_nonnull(header(r, "x-ratelimit-limit"));
}
END_TEST

START_TEST(a_form_is_not_taken)
{
    struct response *r = http(server, .method = "POST", .path = "/v1/wp/products/sync", .key = token, .headers = {"Content-Type: application/x-www-form-urlencoded"}, .body = "agent_id=1");
    expect_error(r, 415, "unsupported_media_type");
    ck_assert_str_eq(header(r, "accept-post"), "application/json");
}
END_TEST

/* ---- signatures ---- */

static char *signature(const char *key, long t, const char *body, size_t size)
{
    unsigned char mac[32];
    unsigned n = sizeof(mac);
    char *head = text("%ld.", t), *all = malloc(strlen(head) + size), *hex = malloc(65);
    memcpy(all, head, strlen(head));
    memcpy(all + strlen(head), body, size);
    HMAC(EVP_sha256(), key, (int)strlen(key), (const unsigned char *)all, strlen(head) + size, mac, &n);
    for (size_t i = 0; i < n; i++)
        sprintf(hex + 2 * i, "%02x", mac[i]);
    return text("X-Signature: t=%ld,v1=%s", t, hex);
}

static struct response *signed_post(const char *key, const char *header, const char *body)
{
    return http(server, .method = "POST", .path = "/v1/wp/products/sync", .key = key, .headers = {"Content-Type: application/json", header}, .body = body);
}

START_TEST(a_signature_is_judged_whenever_sent_and_wanted_where_the_token_says_so)
{
    long now = (long)time(NULL);
    char *of = agent_new(), *body = envelope(of, "", "products", text("[%s]", product(1, "Mug", "")));
    expect_error(post_as(signing, "products/sync", body), 401, "signature_missing");
    expect_error(http(server, .path = "/v1/wp/status", .key = signing), 401, "signature_missing");
    const char *keys[] = {token, signing};
    for (size_t i = 0; i < COUNT(keys); i++) {
        const char *key = keys[i];
        char *good = signature(key, now, body, strlen(body)), *wrong = signature("another", now, body, strlen(body));
        expect_error(signed_post(key, wrong, body), 401, "signature_mismatch");
        expect_error(signed_post(key, good, text("%s ", body)), 401, "signature_mismatch");
        expect_error(signed_post(key, signature(key, now - 301, body, strlen(body)), body), 401, "signature_mismatch");
        expect_error(signed_post(key, signature(key, now + 310, body, strlen(body)), body), 401, "signature_mismatch");
        expect_error(signed_post(key, "X-Signature: v1=00", body), 401, "signature_mismatch");
        expect_error(signed_post(key, text("X-Signature: t=%ld,v1=", now), body), 401, "signature_mismatch");
        ck_assert_int_eq(counted(of, "products"), (int64_t)i);
        expect_status(signed_post(key, signature(key, now - 290, body, strlen(body)), body), 200);
        expect_status(signed_post(key, good, body), 200);
        if (i == 0)
            ck_assert_int_eq(counted(of, "products"), 1);
    }
    expect_status(http(server, .path = "/v1/wp/status", .key = signing, .headers = {signature(signing, now, "", 0)}), 200);
}
END_TEST

/* ---- sizes and compression ---- */

static char *gzip(const char *body, size_t size, size_t *out_size)
{
    z_stream z = {0};
    ck_assert_int_eq(deflateInit2(&z, 9, Z_DEFLATED, 16 + MAX_WBITS, 9, Z_DEFAULT_STRATEGY), Z_OK);
    size_t room = deflateBound(&z, size);
    char *out = malloc(room);
    z.next_in = (Bytef *)(uintptr_t)body;
    z.avail_in = (uInt)size;
    z.next_out = (Bytef *)out;
    z.avail_out = (uInt)room;
    ck_assert_int_eq(deflate(&z, Z_FINISH), Z_STREAM_END);
    *out_size = room - z.avail_out;
    deflateEnd(&z);
    return out;
}

static struct response *post_bytes(const char *coding, const char *body, size_t size)
{
    return http(server, .method = "POST", .path = "/v1/wp/products/sync", .key = token, .headers = {"Content-Type: application/json", text("Content-Encoding: %s", coding)}, .body = body, .body_size = size);
}

/* A body of exactly so many bytes. */
static char *body_of(const char *of, size_t size)
{
    char *body = envelope(of, "", "products", text("[%s]", product(1, "Mug", "")));
    char *all = malloc(size + 1);
    memset(all, ' ', size);
    memcpy(all, body, strlen(body));
    all[size] = '\0';
    return all;
}

START_TEST(a_compressed_body_is_taken_and_a_bomb_is_not)
{
    char *of = agent_new(), *body = envelope(of, "", "products", many(50));
    size_t size, little_size, most = 5 << 20;
    char *packed = gzip(body, strlen(body), &size);
    expect_int(post_bytes("gzip", packed, size), "data.queued", 50);
    expect_int(post_bytes("GZIP", packed, size), "data.skipped_unchanged", 50);
    expect_error(post_bytes("gzip", packed, size - 1), 400, "bad_request");
    expect_error(post_bytes("gzip", packed, size / 2), 400, "bad_request");
    expect_error(post_bytes("gzip", body, strlen(body)), 400, "bad_request");
    char *nothing = envelope(of, "", "products", "[]"), *little = gzip(nothing, strlen(nothing), &little_size);
    ck_assert_uint_le(little_size, 256); /* read on the loop: all others here are read off it */
    expect_status(post_bytes("gzip", little, little_size), 200);
    expect_error(post_bytes("gzip", little, little_size / 2), 400, "bad_request");
    expect_error(post_bytes("br", packed, size), 415, "unsupported_media_type");
    char *bomb = calloc(1, 64 << 20);
    packed = gzip(bomb, 64 << 20, &size);
    expect_error(post_bytes("gzip", packed, size), 413, "payload_too_large");
    char *at_most = body_of(agent_new(), most), *over = body_of(of, most + 1);
    packed = gzip(at_most, most, &size);
    expect_status(post_bytes("gzip", packed, size), 200);
    packed = gzip(over, most + 1, &size);
    expect_error(post_bytes("gzip", packed, size), 413, "payload_too_large");
}
END_TEST

START_TEST(five_mebibytes_are_taken_and_a_byte_more_is_not)
{
    char *of = agent_new();
    size_t most = 5 << 20;
    struct response *r = http(server, .method = "POST", .path = "/v1/wp/products/sync", .key = token, .headers = {"Content-Type: application/json"}, .body = body_of(of, most + 1), .body_size = most + 1);
    expect_error(r, 413, "payload_too_large");
    ck_assert_int_eq(counted(of, "products"), 0);
    r = http(server, .method = "POST", .path = "/v1/wp/products/sync", .key = token, .headers = {"Content-Type: application/json"}, .body = body_of(of, most), .body_size = most);
    expect_int(r, "data.queued", 1);
}
END_TEST

static struct response *post_signed(const char *key, bool packed, const char *signed_by, const char *body, size_t size)
{
    size_t out_size = size;
    const char *out = packed ? gzip(body, size, &out_size) : body;
    return http(server, .method = "POST", .path = "/v1/wp/posts/sync", .key = key,
                .headers = {"Content-Type: application/json", text("Content-Encoding: %s", packed ? "gzip" : "identity"),
                            signed_by == NULL ? "X-Nothing: 1" : signature(signed_by, (long)time(NULL), out, out_size)},
                .body = out, .body_size = out_size);
}

/* A post of many words, none like another, so that it stays large when it is packed. */
static char *large_post(const char *of, const char *more, const char *behind, size_t *size)
{
    char *all = malloc(2 << 20);
    uint32_t seed = 7;
    size_t n = (size_t)sprintf(all, "{\"agent_id\":\"%s\",\"site_url\":\"https://shop.example\",\"plugin_version\":\"1\"%s,\"posts\":[{\"wp_id\":1,\"post_type\":\"post\",\"permalink\":\"https://shop.example/1\",\"title\":\"T\",\"content_html\":\"<p>", of, more);
    for (; n < 1 << 20; n += 2, seed = seed * 1664525 + 1013904223)
        all[n] = (char)('a' + (seed >> 24) % 26), all[n + 1] = (seed >> 16) % 5 == 0 ? ' ' : 'e';
    n += (size_t)sprintf(all + n, "</p>\"}]}%s", behind);
    *size = n;
    return all;
}

/* What is large is read in another thread; nothing may be judged otherwise for that. */
START_TEST(a_large_body_is_judged_as_any)
{
    bool packed = _i == 1;
    size_t size;
    char *of = agent_new(), *good = large_post(of, "", "", &size);
    expect_error(post_signed(signing, packed, NULL, good, size), 401, "signature_missing");
    expect_error(post_signed(signing, packed, token, good, size), 401, "signature_mismatch");
    expect_error(post_signed(token, packed, signing, good, size), 401, "signature_mismatch");
    ck_assert_int_eq(counted(of, "posts"), 0);
    expect_int(post_signed(signing, packed, signing, good, size), "data.queued", 1);
    expect_int(post_signed(token, packed, NULL, good, size), "data.skipped_unchanged", 1);
    static const struct {
        const char *more, *behind;
        int status;
        const char *code;
    } wrong[] = {
        {"", "}", 400, "bad_request"},
        {",\"a\":NaN", "", 400, "bad_request"},
        {",\"agent_id\":\"twice\"", "", 400, "bad_request"},
        {",\"a\":[[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]]", "", 400, "bad_request"},
        {",\"timezone\":\"Mars/Base\"", "", 422, "validation_failed"},
        {",\"timezone\":7", "", 422, "validation_failed"},
    };
    for (size_t i = 0; i < COUNT(wrong); i++) {
        char *body = large_post(of, wrong[i].more, wrong[i].behind, &size);
        expect_error(post_signed(token, packed, NULL, body, size), wrong[i].status, wrong[i].code);
    }
    if (packed) {
        char *cut = gzip(good, size, &size);
        expect_error(post_bytes("gzip", cut, size / 2), 400, "bad_request");
    }
}
END_TEST

START_TEST(a_client_that_leaves_while_its_batch_is_read_harms_nobody)
{
    char *of = agent_new();
    size_t size;
    char *body = large_post(of, "", "", &size);
    for (int i = 0; i < 30; i++) {
        struct raw *raw = raw_open(server);
        raw_text(raw, "POST /v1/wp/posts/sync HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\nContent-Length: %zu\r\n\r\n", token, size);
        raw_send(raw, body, size);
        usleep((useconds_t)(i * 300));
        raw_close(raw);
        expect_int(sync_one(of, "", product((unsigned)i + 1, "Mug", "")), "data.queued", 1);
    }
    expect_status(post_signed(token, false, NULL, body, size), 200);
    ck_assert_int_eq(counted(of, "posts"), 1);
}
END_TEST

/* Columns: sync.max_bytes as it is written, and in bytes. */
static const struct {
    const char *written;
    size_t most;
} limits[] = {{"64KiB", 64 << 10}, {"7340033", 7340033}};

START_TEST(the_limit_of_bytes_is_the_configurations)
{
    size_t size, most = limits[_i].most;
    server_configure(server, text("%ssync: { max_bytes: %s }\n", MANY, limits[_i].written));
    server_stop(server);
    server_start(server);
    struct response *r = http(server, .method = "POST", .path = "/v1/wp/handshake", .headers = {"Content-Type: application/json"}, .key = token,
                              .body = "{\"site_url\":\"https://shop.example\",\"plugin_version\":\"1.0\"}");
    expect_int(r, "data.limits.batch_bytes", most);
    for (int packed = 0; packed < 2; packed++) {
        char *of = agent_new(), *at_most = body_of(of, most), *over = body_of(of, most + 1);
        if (packed)
            over = gzip(over, most + 1, &size);
        expect_error(post_bytes(packed ? "gzip" : "identity", over, packed ? size : most + 1), 413, "payload_too_large");
        ck_assert_int_eq(counted(of, "products"), 0);
        if (packed)
            at_most = gzip(at_most, most, &size);
        expect_int(post_bytes(packed ? "gzip" : "identity", at_most, packed ? size : most), "data.queued", 1);
    }
}
END_TEST

START_TEST(a_body_that_ends_early_changes_nothing)
{
    char *of = agent_new(), *body = envelope(of, "", "products", text("[%s]", product(1, "Mug", "")));
    struct raw *raw = raw_open(server);
    raw_text(raw, "POST /v1/wp/products/sync HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\nContent-Length: %zu\r\n\r\n%s",
             token, strlen(body) + 1, body);
    raw_close(raw);
    ck_assert_int_eq(counted(of, "products"), 0);
}
END_TEST

/* A post with much HTML: five mebibytes of it, more than fits one look of the loop. */
START_TEST(a_batch_of_five_mebibytes_of_html_is_taken)
{
    char *of = agent_new(), *html = malloc(50001), *items = text("[");
    for (size_t i = 0; i < 50000; i += 10)
        memcpy(html + i, i % 20 == 0 ? "<p>word up" : "and on</p>", 10);
    html[50000] = '\0';
    for (unsigned i = 1; i <= 100; i++)
        items = text("%s%s{\"wp_id\":%u,\"post_type\":\"post\",\"permalink\":\"https://shop.example/%u\",\"title\":\"T\",\"content_html\":\"%s\"}", items, i == 1 ? "" : ",", i, i, html);
    expect_int(post("posts/sync", envelope(of, "", "posts", text("%s]", items))), "data.queued", 100);
}
END_TEST

/* ---- items that are not as they should be ---- */

static const struct {
    const char *item, *says;
} wrong_products[] = {
    {"{\"wp_id\":0}", "wp_id"},
    {"{\"wp_id\":\"1\"}", "wp_id"},
    {"{\"wp_id\":1.5}", "wp_id"},
    {"{\"wp_id\":1,\"name\":\"\"}", "name"},
    {"{\"wp_id\":1,\"name\":\"<b></b>\"}", "name"},
    {"{\"wp_id\":1,\"name\":\"a\",\"permalink\":\"javascript:alert(1)\"}", "permalink"},
    {"{\"wp_id\":1,\"name\":\"a\",\"permalink\":\"https://x.example/\\\"onload=\"}", "permalink"},
    {"{\"wp_id\":1,\"name\":\"a\",\"permalink\":\"https://x.example\",\"price\":12.5}", "price"},
    {"{\"wp_id\":1,\"name\":\"a\",\"permalink\":\"https://x.example\",\"price\":\"1e3\"}", "price"},
    {"{\"wp_id\":1,\"name\":\"a\",\"permalink\":\"https://x.example\",\"price\":\"-1\"}", "price"},
    {"{\"wp_id\":1,\"name\":\"a\",\"permalink\":\"https://x.example\",\"price\":\"1\",\"currency\":\"euro\"}", "currency"},
    {"{\"wp_id\":1,\"name\":\"a\",\"permalink\":\"https://x.example\",\"price\":\"1\",\"currency\":\"EUR\",\"stock_status\":\"some\"}", "stock_status"},
    {"{\"wp_id\":1,\"name\":\"a\",\"permalink\":\"https://x.example\",\"price\":\"1\",\"currency\":\"EUR\",\"stock_status\":\"instock\"}", "on_sale"},
    {"{\"wp_id\":1,\"name\":\"a\",\"categories\":[7]}", "categories"},
};

START_TEST(a_wrong_item_fails_alone_and_says_why)
{
    struct response *r = post("products/sync", envelope(agent, "", "products", text("[%s,%s]", wrong_products[_i].item, product(77, "Mug", ""))));
    expect_status(r, 200);
    expect_str(r, "data.results.0.status", "failed");
    expect(r, strstr(str_at(r, "data.results.0.error.message"), wrong_products[_i].says) != NULL);
    expect(r, strcmp(str_at(r, "data.results.1.status"), "failed") != 0);
}
END_TEST

/* ---- a sync that is cut off ---- */

#define BATCHES 12
#define OF_BATCH 50

/* The batch of that number, sent until it is answered: a server that is gone or starting again is asked once more. */
static struct response *send_batch(const char *of, unsigned number, bool last, const char *price)
{
    char *items = text("[");
    for (unsigned i = 0; i < OF_BATCH; i++)
        items = text("%s%s%s", items, i == 0 ? "" : ",", product(number * OF_BATCH + i + 1, price, ""));
    char *body = envelope(of, last ? ",\"sync_id\":\"cut\",\"complete\":true" : ",\"sync_id\":\"cut\"", "products", text("%s]", items));
    struct response *r = NULL;
    for (int tries = 0; tries < 200; tries++) {
        r = http(server, .method = "POST", .path = "/v1/wp/products/sync", .key = token, .headers = {"Content-Type: application/json"}, .body = body, .may_fail = true);
        if (r->status == 200)
            return r;
        ck_assert_msg(r->status == 0 || r->status == 503, "%s", response_text(r));
        usleep(50000);
    }
    ck_abort_msg("no answer: %s", response_text(r));
    return NULL;
}

START_TEST(a_sync_whose_server_is_killed_ends_right)
{
    static const char *const victims[] = {"assayd: writer", "assayd: worker 0", "assayd: worker 1"};
    char *of = agent_new();
    sync_one(of, "", product(100000, "Gone", ""));
    for (unsigned i = 0; i < BATCHES; i++) {
        pid_t victim = server_process(server, victims[i % COUNT(victims)]);
        pid_t killer = victim == 0 || i % 2 == 1 ? 0 : fork();
        if (killer == 0 && victim != 0 && i % 2 == 0) {
            usleep((useconds_t)(rand() % 20000));
            kill(victim, SIGKILL);
            _exit(0);
        }
        struct response *r = send_batch(of, i, i == BATCHES - 1, "Mug");
        expect(r, int_at(r, "data.queued") + int_at(r, "data.skipped_unchanged") == OF_BATCH);
        expect_int(r, "data.failed", 0);
        if (killer > 0)
            waitpid(killer, NULL, 0);
    }
    ck_assert_int_eq(counted(of, "products"), BATCHES * OF_BATCH);
    for (unsigned i = 0; i < BATCHES; i++)
        expect_int(send_batch(of, i, i == BATCHES - 1, "Mug"), "data.skipped_unchanged", OF_BATCH);
    assay_ok(server, "check", NULL);
}
END_TEST

/* ---- others, meanwhile ---- */

#define SENDERS 4
#define LARGE_BATCHES 3
#define LARGE_TEXT 50000

/* A hundred posts of texts in which hardly a word stands twice. */
static char *large_batch(const char *of, unsigned number)
{
    static char all[5 << 20];
    uint32_t seed = number * 7919 + 1;
    size_t n = (size_t)sprintf(all, "{\"agent_id\":\"%s\",\"site_url\":\"https://shop%u.example\",\"plugin_version\":\"1\",\"posts\":[", of, number);
    for (unsigned i = 1; i <= 100; i++) {
        n += (size_t)sprintf(all + n, "%s{\"wp_id\":%u,\"post_type\":\"post\",\"permalink\":\"https://shop.example/%u\",\"title\":\"T\",\"content_html\":\"", i == 1 ? "" : ",", i, i);
        for (size_t end = n + LARGE_TEXT; n < end; n += 3) {
            seed = seed * 1664525 + 1013904223;
            uint32_t c = 0x4e00 + (seed >> 8) % 20000;
            all[n] = (char)(0xe0 | c >> 12), all[n + 1] = (char)(0x80 | (c >> 6 & 0x3f)), all[n + 2] = (char)(0x80 | (c & 0x3f));
        }
        n += (size_t)sprintf(all + n, "\"}");
    }
    sprintf(all + n, "]}");
    return all;
}

static void send_large(const char *of, unsigned sender)
{
    for (unsigned i = 0; i < LARGE_BATCHES; i++) {
        struct response *r = http(server, .method = "POST", .path = "/v1/wp/posts/sync", .key = token, .headers = {"Content-Type: application/json"}, .body = large_batch(of, sender * LARGE_BATCHES + i), .timeout_ms = 60000);
        if (r->status != 200 || int_at(r, "data.queued") != 100)
            _exit(1);
    }
    _exit(0);
}

static int by_size(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

struct waits {
    int64_t ms[4096];
    size_t count;
    int64_t median, ninth; /* of ten */
};

static void wait_once(struct waits *w, const char *of, unsigned id)
{
    int64_t before = now_ms();
    expect_int(sync_one(of, "", product(id, "Mug", "")), "data.queued", 1);
    if (w->count < COUNT(w->ms))
        w->ms[w->count++] = now_ms() - before;
}

static void waits_end(struct waits *w)
{
    qsort(w->ms, w->count, sizeof(*w->ms), by_size);
    w->median = w->ms[w->count / 2];
    w->ninth = w->ms[w->count * 9 / 10];
}

/* Held against what the machine takes at the same time for as many that wait for nobody; each of the large ones is half a second of work. */
START_TEST(others_do_not_wait_for_large_batches)
{
    static struct waits alone, beside;
    int left = SENDERS, status;
    unsigned id = 1;
    char *of = agent_new();
    for (; id <= 40; id++)
        wait_once(&alone, of, id);
    waits_end(&alone);
    for (unsigned i = 0; i < SENDERS; i++)
        if (fork() == 0)
            send_large(of, i);
    for (pid_t pid; left > 0; id++) {
        wait_once(&beside, of, id);
        for (; (pid = waitpid(-1, &status, WNOHANG)) > 0; left--)
            ck_assert_int_eq(status, 0);
    }
    waits_end(&beside);
    fprintf(stderr, "waits alone: median %lld ms, nine of ten below %lld ms; beside large batches: %lld ms, %lld ms, longest %lld ms\n",
            (long long)alone.median, (long long)alone.ninth, (long long)beside.median, (long long)beside.ninth, (long long)beside.ms[beside.count - 1]);
    ck_assert_int_lt(beside.median, 100 + 10 * alone.median);
    ck_assert_int_lt(beside.ninth, 1000 + 10 * alone.ninth);
    assay_ok(server, "check", NULL);
}
END_TEST

/* ---- what waits for the writer ---- */

#define HELD_BODIES 12 /* of five mebibytes in 64 */

static struct raw *waiting[HELD_BODIES + 6];

static bool the_rest_is_refused(void *arg)
{
    (void)arg;
    size_t refused = 0;
    for (size_t i = 0; i < COUNT(waiting); i++)
        refused += poll(&(struct pollfd){.fd = waiting[i]->fd, .events = POLLIN}, 1, 0) != 0;
    return refused == COUNT(waiting) - HELD_BODIES;
}

/* Ninety mebibytes of bodies, of which a worker holds 64: the others are told so at once, and all that it took are done. */
START_TEST(a_worker_holds_so_many_bytes_of_bodies_and_no_more)
{
    size_t size = 5 << 20, taken = 0;
    server->options.workers = 1;
    server_configure(server, MANY);
    server_stop(server);
    server_start(server);
    char *body = body_of(agent_new(), size);
    pid_t writer = server_process(server, "assayd: writer");
    ck_assert_int_eq(kill(writer, SIGSTOP), 0);
    for (size_t i = 0; i < COUNT(waiting); i++) {
        waiting[i] = raw_open(server);
        raw_text(waiting[i], "POST /v1/wp/products/sync HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\nContent-Length: %zu\r\n\r\n", token, size);
        raw_send(waiting[i], body, size);
    }
    bool refused = wait_until(the_rest_is_refused, NULL, 15000);
    ck_assert_int_eq(kill(writer, SIGCONT), 0);
    ck_assert(refused);
    for (size_t i = 0; i < COUNT(waiting); i++) {
        struct response *r = raw_response(waiting[i], false, 10000);
        expect(r, r->status == 200 || r->status == 503);
        taken += r->status == 200;
        raw_close(waiting[i]);
    }
    ck_assert_uint_eq(taken, HELD_BODIES);
    expect_status(post_bytes("identity", body, size), 200);
}
END_TEST

/* ---- the limit ---- */

static bool minute_is_young(void *arg)
{
    (void)arg;
    return time(NULL) % 60 < 30;
}

/* what follows takes a second or two, and must not be cut in two by the window's end */
static void wait_for_a_young_minute(void)
{
    ck_assert(wait_until(minute_is_young, NULL, 40000));
}

START_TEST(sixty_a_minute_over_all_of_its_paths)
{
    server_configure(server, "");
    server_stop(server);
    server_start(server);
    char *of = agent_new(), *fresh = assay_ok(server, "token", "create", "--workspace", "main", NULL);
    struct response *r = NULL;
    /* should a minute end in between all the same, the count begins anew, once */
    for (int tries = 0; tries < 2; tries++) {
        wait_for_a_young_minute();
        int64_t reset = 0;
        bool steady = true;
        for (int i = 0; i < 60 && steady; i++) {
            r = i % 3 == 0   ? http(server, .path = text("%sstatus", prefixes[i % 2]), .key = fresh)
                : i % 3 == 1 ? http(server, .path = text("%snothing", prefixes[i % 2]), .key = fresh)
                             : post_as(fresh, "products/sync", envelope(of, "", "products", "[]"));
            int64_t now = atoll(header(r, "x-ratelimit-reset"));
            steady = reset == 0 || now == reset;
            reset = now;
            if (i % 3 != 1 && steady)
                ck_assert_int_ne(r->status, 429);
        }
        if (steady)
            break;
    }
    r = http(server, .path = "/api/v1/wp/status", .key = fresh);
    expect_error(r, 429, "rate_limited");
    ck_assert_str_eq(header(r, "x-ratelimit-limit"), "60");
    ck_assert_str_eq(header(r, "x-ratelimit-remaining"), "0");
    ck_assert_int_ge(atoi(header(r, "retry-after")), 1);
    expect_status(http(server, .path = "/v1/wp/status", .key = token), 200); /* another token's budget is its own */
}
END_TEST

static void check_store(void)
{
    assay_ok(server, "check", NULL);
}

START_TEST(the_store_is_well_after_all_of_that)
{
    check_store();
}
END_TEST

static Suite *suite(void)
{
    Suite *s = suite_create("sync");
    TCase *c = harness_case(s, "routes");
    tcase_add_unchecked_fixture(c, setup, teardown);
    tcase_add_loop_test(c, a_handshake_tells_what_there_is, 0, COUNT(prefixes));
    tcase_add_loop_test(c, each_item_of_a_batch_has_its_own_result, 0, COUNT(prefixes));
    tcase_add_test(c, both_prefixes_are_one);
    tcase_add_test(c, hashes_and_dates_decide_what_is_taken);
    tcase_add_test(c, one_item_is_changed_and_deleted);
    tcase_add_test(c, a_full_sync_deletes_what_it_did_not_bring);
    tcase_add_test(c, coupons_are_brought_to_one_form_and_replaced_as_a_whole);
    tcase_add_test(c, status_has_a_tag_that_changes_with_what_it_says);
    tcase_add_test(c, a_batch_under_an_idempotency_key_is_done_once);
    tcase_add_loop_test(c, a_wrong_envelope_is_refused_whole, 0, COUNT(wrong_envelopes));
    tcase_add_loop_test(c, a_wrong_body_is_refused, 0, COUNT(wrong_bodies));
    tcase_add_test(c, an_item_named_twice_is_refused_with_its_batch);
    tcase_add_test(c, a_hundred_items_are_taken_and_one_more_is_not);
    tcase_add_test(c, json_a_thousand_levels_deep_is_refused);
    tcase_add_loop_test(c, every_route_wants_a_workspace_token, 0, 2 * COUNT(paths));
    tcase_add_test(c, another_workspaces_agent_is_not_found);
    tcase_add_test(c, a_method_or_path_that_is_not_there_is_told);
    tcase_add_test(c, a_form_is_not_taken);
    tcase_add_test(c, a_signature_is_judged_whenever_sent_and_wanted_where_the_token_says_so);
    tcase_add_test(c, a_compressed_body_is_taken_and_a_bomb_is_not);
    tcase_add_test(c, five_mebibytes_are_taken_and_a_byte_more_is_not);
    tcase_add_test(c, a_body_that_ends_early_changes_nothing);
    tcase_add_loop_test(c, a_large_body_is_judged_as_any, 0, 2);
    tcase_add_test(c, a_client_that_leaves_while_its_batch_is_read_harms_nobody);
    tcase_add_test(c, a_batch_of_five_mebibytes_of_html_is_taken);
    tcase_add_loop_test(c, a_wrong_item_fails_alone_and_says_why, 0, COUNT(wrong_products));
    tcase_add_test(c, the_store_is_well_after_all_of_that);
    c = harness_case(s, "limit");
    tcase_add_checked_fixture(c, setup, teardown);
    tcase_add_loop_test(c, the_limit_of_bytes_is_the_configurations, 0, COUNT(limits));
    tcase_add_test(c, sixty_a_minute_over_all_of_its_paths);
    c = harness_case(s, "cut off");
    tcase_add_checked_fixture(c, setup, teardown);
    tcase_add_test(c, a_worker_holds_so_many_bytes_of_bodies_and_no_more);
    tcase_add_test(c, others_do_not_wait_for_large_batches);
    tcase_add_test(c, a_sync_whose_server_is_killed_ends_right);
    return s;
}

int main(void)
{
    return harness_main(suite());
}
