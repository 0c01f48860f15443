/*
 * Bulk sync over HTTP: a shop's plugin against a real server. What is refused is in
 * sync_refused.c, large bodies and long syncs are in sync_large.c.
 */
#include "t/kit/sync.h"

#include <time.h>

/* ---- each route ---- */

START_TEST(a_handshake_reports_the_stored_state)
{
    struct response *r =
        http(server, .method = "POST", .path = text("%shandshake", prefixes[_i]), .key = token,
             .headers = {"Content-Type: application/json"},
             .body = "{\"site_url\":\"https://"
                     "shop.example\",\"plugin_version\":\"1.0\",\"woocommerce_active\":true}");
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
    char *items = text("[%s,{\"wp_id\":9,\"name\":\"No price\"},%s,7,{\"name\":\"nobody\"}]",
                       product(142, "Mug", ""), product(143, "Cup", ""));
    struct response *r =
        http(server, .method = "POST", .path = text("%sproducts/sync", prefixes[_i]), .key = token,
             .headers = {"Content-Type: application/json; charset=utf-8"},
             .body = envelope(agent_new(), "", "products", items));
    expect_status(r, 200);
    ck_assert(has_exactly(r, "data",
                          "queued skipped_unchanged skipped_stale deleted failed sync_id results"));
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

START_TEST(both_prefixes_are_equivalent)
{
    char *of = agent_new(), *body = envelope(of, "", "posts", text("[%s]", a_post(1, "One", "")));
    expect_int(post("posts/sync", body), "data.queued", 1);
    struct response *r =
        http(server, .method = "POST", .path = "/api/v1/wp/posts/sync", .key = token,
             .headers = {"Content-Type: application/json"}, .body = body);
    expect_int(r, "data.skipped_unchanged", 1);
}
END_TEST

/* Columns: the member that changes, the values sent in order, the results. */
START_TEST(hashes_and_dates_decide_which_items_are_stored)
{
    static const struct {
        const char *more, *name, *status;
    } steps[] = {
        {",\"content_hash\":\"a\"", "Mug", "queued"},
        {",\"content_hash\":\"a\"", "Other", "skipped_unchanged"},
        {",\"content_hash\":\"b\",\"modified_at\":\"2026-05-07T13:00:00Z\"", "Mug", "queued"},
        {",\"content_hash\":\"c\",\"modified_at\":\"2026-05-07T12:59:59Z\"", "Mug",
         "skipped_stale"},
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
        ck_assert_msg(!strcmp(str_at(r, "data.results.0.status"), steps[i].status), "step %zu\n%s",
                      i, response_text(r));
    }
}
END_TEST

START_TEST(one_item_is_changed_and_deleted)
{
    char *of = agent_new();
    expect_int(post("products/changed",
                    envelope(of, ",\"action\":\"upsert\"", "products", product(1, "Mug", ""))),
               "data.queued", 1);
    ck_assert_int_eq(counted(of, "products"), 1);
    expect_int(post("products/changed",
                    envelope(of, "", "products", "[{\"wp_id\":1,\"action\":\"delete\"}]")),
               "data.deleted", 1);
    ck_assert_int_eq(counted(of, "products"), 0);
    struct response *r =
        sync_one(of, "", product(1, "Mug", ",\"modified_at\":\"2020-01-01T00:00:00Z\""));
    expect_str(r, "data.results.0.status", "skipped_stale");
    expect_error(post("products/changed", envelope(of, "", "products", product(1, "Mug", ""))), 422,
                 "validation_failed");
    expect_error(post("products/changed",
                      envelope(of, ",\"action\":\"burn\"", "products", product(1, "Mug", ""))),
                 422, "validation_failed");
    expect_error(
        post("posts/changed", envelope(of, ",\"action\":\"upsert\"", "posts",
                                       text("[%s,%s]", a_post(1, "a", ""), a_post(2, "b", "")))),
        422, "validation_failed");
    expect_int(post("posts/changed", envelope(of, ",\"action\":\"upsert\"", "posts",
                                              text("[%s]", a_post(1, "a", "")))),
               "data.queued", 1);
}
END_TEST

START_TEST(a_full_sync_deletes_unsent_items)
{
    char *of = agent_new();
    for (unsigned i = 1; i <= 3; i++)
        sync_one(of, ",\"sync_id\":\"one\"", product(i, "Mug", ""));
    struct response *r = sync_one(of, ",\"sync_id\":\"two\"", product(2, "Mug", ""));
    expect_str(r, "data.sync_id", "two");
    ck_assert_int_eq(counted(of, "products"), 3);
    r = post("products/sync",
             envelope(of, ",\"sync_id\":\"two\",\"complete\":true", "products", "[]"));
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

START_TEST(coupons_are_normalized_and_replaced_as_a_set)
{
    char *of = agent_new();
    struct response *r =
        post("coupons/sync",
             envelope(of, ",\"timezone\":\"Europe/Berlin\"", "coupons",
                      "[{\"code\":\"SAVE10\",\"discount\":\"10%\",\"expires_at\":\"2027-05-07\"},{"
                      "\"code\":\"FIVE\",\"discount\":\"5\"},"
                      "{\"code\":\"woo\",\"discount_type\":\"fixed_product\",\"amount\":\"2.00\","
                      "\"product_ids\":[1,2],\"usage_limit\":null},"
                      "{\"code\":\"bad\",\"discount\":\"a lot\"},{\"discount\":\"5\"}]"));
    expect_status(r, 200);
    expect_int(r, "data.queued", 3);
    expect_int(r, "data.failed", 2);
    expect_str(r, "data.results.3.code", "bad");
    ck_assert_int_eq(counted(of, "coupons"), 3);
    r = post("coupons/sync",
             envelope(of, "", "coupons", "[{\"code\":\"five\",\"discount\":\"5\"}]"));
    expect_int(r, "data.deleted", 2);
    ck_assert_int_eq(counted(of, "coupons"), 1);
    expect_error(
        post("coupons/sync",
             envelope(of, "", "coupons",
                      "[{\"code\":\"A\",\"discount\":\"5\"},{\"code\":\"a\",\"discount\":\"5\"}]")),
        422, "validation_failed");
    ck_assert_int_eq(counted(of, "coupons"), 1);
}
END_TEST

START_TEST(the_status_etag_changes_with_its_body)
{
    char *of = agent_new(), *path = text("/v1/wp/status?agent_id=%s", of);
    const char *tag = header(http(server, .path = path, .key = token), "etag");
    ck_assert_ptr_nonnull(tag);
    expect_status(
        http(server, .path = path, .key = token, .headers = {text("If-None-Match: %s", tag)}), 304);
    sync_one(of, "", product(1, "Mug", ""));
    expect_status(
        http(server, .path = path, .key = token, .headers = {text("If-None-Match: %s", tag)}), 200);
}
END_TEST

START_TEST(a_batch_with_an_idempotency_key_runs_once)
{
    char *of = agent_new(),
         *body = envelope(of, "", "products", text("[%s,{\"wp_id\":2}]", product(1, "Mug", "")));
    struct response *first = NULL, *r = NULL;
    for (int i = 0; i < 2; i++) {
        r = http(server, .method = "POST", .path = "/v1/wp/products/sync", .key = token,
                 .headers = {"Content-Type: application/json", text("Idempotency-Key: %s", of)},
                 .body = body);
        expect_status(r, 200);
        first = i == 0 ? r : first;
    }
    ck_assert_str_eq(header(r, "idempotent-replayed"), "true");
    ck_assert_str_eq(r->body, first->body);
    r = http(server, .method = "POST", .path = "/v1/wp/products/sync", .key = token,
             .headers = {"Content-Type: application/json", text("Idempotency-Key: %s", of)},
             .body = envelope(of, "", "products", text("[%s]", product(3, "Mug", ""))));
    expect_error(r, 422, "idempotency_key_reused");
    ck_assert_int_eq(counted(of, "products"), 1);
}
END_TEST

/* ---- credentials ---- */

static const char *const paths[] = {"handshake",     "posts/sync",       "posts/changed",
                                    "products/sync", "products/changed", "coupons/sync",
                                    "status"};

static struct response *ask(const char *prefix, const char *path, const char *key)
{
    bool get = !strcmp(path, "status");
    return http(server, .method = get ? "GET" : "POST", .path = text("%s%s", prefix, path),
                .key = key, .headers = {"Content-Type: application/json"},
                .body = get ? NULL : "{}");
}

START_TEST(every_route_needs_a_workspace_token)
{
    const char *path = paths[_i / 2], *prefix = prefixes[_i % 2];
    struct response *none = ask(prefix, path, ""), *key = ask(prefix, path, server->key),
                    *typo = ask(prefix, path, "asy_wp_0000000000000000000000000000000000AA");
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
    expect_error(
        http(server, .path = text("/v1/wp/status?agent_id=%s", foreign_agent), .key = token), 404,
        "agent_not_found");
    expect_error(post_as(foreign_token, "products/sync", envelope(agent, "", "products", "[]")),
                 404, "agent_not_found");
    struct response *all = http(server, .path = "/v1/wp/status", .key = foreign_token);
    expect_int(all, "data.products.count", 0);
    ck_assert_uint_eq(len_at(all, "data.collections"), 0);
}
END_TEST

START_TEST(an_unknown_method_or_path_is_reported)
{
    expect_error(http(server, .path = "/v1/wp/posts/sync", .key = token), 405,
                 "method_not_allowed");
    struct response *r = http(server, .path = "/v1/wp/nothing", .key = token);
    expect_error(r, 404, "not_found");
    ck_assert_ptr_nonnull(header(r, "x-ratelimit-limit"));
}
END_TEST

START_TEST(a_form_is_refused)
{
    struct response *r =
        http(server, .method = "POST", .path = "/v1/wp/products/sync", .key = token,
             .headers = {"Content-Type: application/x-www-form-urlencoded"}, .body = "agent_id=1");
    expect_error(r, 415, "unsupported_media_type");
    ck_assert_str_eq(header(r, "accept-post"), "application/json");
}
END_TEST

/* ---- signatures ---- */

static struct response *signed_post(const char *key, const char *header, const char *body)
{
    return http(server, .method = "POST", .path = "/v1/wp/products/sync", .key = key,
                .headers = {"Content-Type: application/json", header}, .body = body);
}

START_TEST(a_sent_signature_is_verified_and_a_token_can_require_one)
{
    long now = (long)time(NULL);
    char *of = agent_new(),
         *body = envelope(of, "", "products", text("[%s]", product(1, "Mug", "")));
    expect_error(post_as(signing, "products/sync", body), 401, "signature_missing");
    expect_error(http(server, .path = "/v1/wp/status", .key = signing), 401, "signature_missing");
    const char *keys[] = {token, signing};
    for (size_t i = 0; i < COUNT(keys); i++) {
        const char *key = keys[i];
        char *good = signature(key, now, body, strlen(body)),
             *wrong = signature("another", now, body, strlen(body));
        expect_error(signed_post(key, wrong, body), 401, "signature_mismatch");
        expect_error(signed_post(key, good, text("%s ", body)), 401, "signature_mismatch");
        expect_error(signed_post(key, signature(key, now - 301, body, strlen(body)), body), 401,
                     "signature_mismatch");
        expect_error(signed_post(key, signature(key, now + 310, body, strlen(body)), body), 401,
                     "signature_mismatch");
        expect_error(signed_post(key, "X-Signature: v1=00", body), 401, "signature_mismatch");
        expect_error(signed_post(key, text("X-Signature: t=%ld,v1=", now), body), 401,
                     "signature_mismatch");
        ck_assert_int_eq(counted(of, "products"), (int64_t)i);
        expect_status(signed_post(key, signature(key, now - 290, body, strlen(body)), body), 200);
        expect_status(signed_post(key, good, body), 200);
        if (i == 0)
            ck_assert_int_eq(counted(of, "products"), 1);
    }
    expect_status(http(server, .path = "/v1/wp/status", .key = signing,
                       .headers = {signature(signing, now, "", 0)}),
                  200);
}
END_TEST

/* ---- the limit ---- */

START_TEST(all_sync_paths_share_60_requests_a_minute)
{
    server_configure(server, "");
    server_stop(server);
    server_start(server);
    char *of = agent_new(),
         *fresh = assay_ok(server, "token", "create", "--workspace", "main", NULL);
    struct response *r = NULL;
    /*
     * Sixty and one more. When a minute ends between, the request that shows it is the first of the
     * new minute.
     */
    int64_t reset = 0;
    for (int i = 0; i <= 60; i++) {
        r = i % 3 == 0   ? http(server, .path = text("%sstatus", prefixes[i % 2]), .key = fresh)
            : i % 3 == 1 ? http(server, .path = text("%snothing", prefixes[i % 2]), .key = fresh)
                         : post_as(fresh, "products/sync", envelope(of, "", "products", "[]"));
        int64_t ends = atoll(header(r, "x-ratelimit-reset"));
        if (ends != reset)
            i = 0;
        reset = ends;
        if (i % 3 != 1 && i < 60)
            ck_assert_int_ne(r->status, 429);
    }
    expect_error(r, 429, "rate_limited");
    ck_assert_str_eq(header(r, "x-ratelimit-limit"), "60");
    ck_assert_str_eq(header(r, "x-ratelimit-remaining"), "0");
    ck_assert_int_ge(atoi(header(r, "retry-after")), 1);
    /* another token has its own budget */
    expect_status(http(server, .path = "/v1/wp/status", .key = token), 200);
}
END_TEST

START_TEST(the_store_is_valid_after_all_tests)
{
    assay_ok(server, "check", NULL);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("sync");
    TCase *c = harness_case(s, "routes");
    tcase_add_unchecked_fixture(c, sync_setup, sync_teardown);
    tcase_add_loop_test(c, a_handshake_reports_the_stored_state, 0, COUNT(prefixes));
    tcase_add_loop_test(c, each_item_of_a_batch_has_its_own_result, 0, COUNT(prefixes));
    tcase_add_test(c, both_prefixes_are_equivalent);
    tcase_add_test(c, hashes_and_dates_decide_which_items_are_stored);
    tcase_add_test(c, one_item_is_changed_and_deleted);
    tcase_add_test(c, a_full_sync_deletes_unsent_items);
    tcase_add_test(c, coupons_are_normalized_and_replaced_as_a_set);
    tcase_add_test(c, the_status_etag_changes_with_its_body);
    tcase_add_test(c, a_batch_with_an_idempotency_key_runs_once);
    tcase_add_loop_test(c, every_route_needs_a_workspace_token, 0, 2 * COUNT(paths));
    tcase_add_test(c, another_workspaces_agent_is_not_found);
    tcase_add_test(c, an_unknown_method_or_path_is_reported);
    tcase_add_test(c, a_form_is_refused);
    tcase_add_test(c, a_sent_signature_is_verified_and_a_token_can_require_one);
    tcase_add_test(c, the_store_is_valid_after_all_tests);
    c = harness_case(s, "limit");
    tcase_add_checked_fixture(c, sync_setup, sync_teardown);
    tcase_add_test(c, all_sync_paths_share_60_requests_a_minute);
    return harness_main(s);
}
