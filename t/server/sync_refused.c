/* What bulk sync refuses: a wrong envelope with its batch, and a wrong item alone. */
#include "t/kit/sync.h"

/* ---- a wrong envelope: nothing is applied ---- */

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
    {"{\"agent_id\":\"01ARZ3NDEKTSV4RRFFQ69G5FAV\",\"site_url\":\"ftp://"
     "x\",\"plugin_version\":\"1\",\"products\":[]}",
     422, "validation_failed"},
    {"{\"agent_id\":\"01ARZ3NDEKTSV4RRFFQ69G5FAV\",\"site_url\":\"https://"
     "x.example\",\"plugin_version\":\"1\",\"products\":{}}",
     422, "validation_failed"},
    {"{\"agent_id\":\"01ARZ3NDEKTSV4RRFFQ69G5FAV\",\"site_url\":\"https://"
     "x.example\",\"plugin_version\":\"1\",\"products\":[]}",
     404, "agent_not_found"},
    {"{\"agent_id\":\"me\",\"site_url\":\"https://"
     "x.example\",\"plugin_version\":\"1\",\"products\":[]}",
     404, "agent_not_found"},
};

START_TEST(a_wrong_body_is_refused)
{
    expect_error(post("products/sync", wrong_bodies[_i].body), wrong_bodies[_i].status,
                 wrong_bodies[_i].code);
}
END_TEST

/* Another thread reads a large body than a small one (0). */
START_TEST(malformed_json_is_reported_with_line_and_column)
{
    char *head = text("{\"agent_id\":\"%s\",\n%s", agent, _i == 0 ? "" : padded("", 400000));
    struct response *r = post("products/sync", text("%s\n  \"products\":[1,2}", head));
    expect_error(r, 400, "bad_request");
    ck_assert_str_eq(str_at(r, "error.message"), "The JSON is malformed at line 3, column 18: "
                                                 "expected a comma or the closing ] of the array.");
}
END_TEST

START_TEST(an_item_named_twice_is_refused_with_its_batch)
{
    char *of = agent_new();
    expect_error(
        post("products/sync", envelope(of, "", "products",
                                       text("[%s,%s]", product(1, "a", ""), product(1, "b", "")))),
        422, "validation_failed");
    ck_assert_int_eq(counted(of, "products"), 0);
}
END_TEST

START_TEST(a_hundred_items_are_accepted_and_one_more_is_refused)
{
    char *of = agent_new();
    expect_error(post("products/sync", envelope(of, "", "products", many(101))), 422,
                 "validation_failed");
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
    expect_error(post("products/sync", envelope(agent, "", "products", deep(1000))), 400,
                 "bad_request");
}
END_TEST

/* ---- wrong items ---- */

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
    {"{\"wp_id\":1,\"name\":\"a\",\"permalink\":\"https://"
     "x.example\",\"price\":\"1\",\"currency\":\"euro\"}",
     "currency"},
    {"{\"wp_id\":1,\"name\":\"a\",\"permalink\":\"https://"
     "x.example\",\"price\":\"1\",\"currency\":\"EUR\",\"stock_status\":\"some\"}",
     "stock_status"},
    {"{\"wp_id\":1,\"name\":\"a\",\"permalink\":\"https://"
     "x.example\",\"price\":\"1\",\"currency\":\"EUR\",\"stock_status\":\"instock\"}",
     "on_sale"},
    {"{\"wp_id\":1,\"name\":\"a\",\"categories\":[7]}", "categories"},
};

START_TEST(a_wrong_item_fails_alone_with_its_reason)
{
    struct response *r =
        post("products/sync",
             envelope(agent, "", "products",
                      text("[%s,%s]", wrong_products[_i].item, product(77, "Mug", ""))));
    expect_status(r, 200);
    expect_str(r, "data.results.0.status", "failed");
    expect(r, strstr(str_at(r, "data.results.0.error.message"), wrong_products[_i].says) != NULL);
    expect(r, strcmp(str_at(r, "data.results.1.status"), "failed") != 0);
}
END_TEST

/* Columns: route, name of the items, item, reported fields, message. */
static const struct {
    const char *path, *items, *item, *fields, *message;
} many_mistakes[] = {
    {"products/sync", "products",
     "{\"wp_id\":1,\"name\":7,\"permalink\":\"ftp://"
     "x\",\"price\":12.5,\"currency\":\"euro\",\"categories\":[7,8],\"sku\":null}",
     "categories name permalink price currency stock_status on_sale",
     "categories must be an array of strings, or of objects with a name (and 6 more: see errors)"},
    {"products/sync", "products",
     "{\"modified_at\":7,\"name\":\"\",\"permalink\":\"https://"
     "a.example\",\"price\":\"1\",\"currency\":\"EUR\",\"stock_status\":\"some\"}",
     "wp_id modified_at name stock_status on_sale",
     "wp_id is required: a whole number from 1 (and 4 more: see errors)"},
    {"posts/sync", "posts",
     "{\"wp_id\":1,\"post_type\":\"post\",\"permalink\":\"https://a.example\",\"title\":\"a\"}",
     "content_html", "content_html is required"},
    {"posts/sync", "posts", "{\"wp_id\":1,\"title\":\"<b>a</b>\",\"excerpt\":7}",
     "post_type permalink excerpt content_html", "post_type is required (and 3 more: see errors)"},
    {"posts/changed", "posts", "{\"wp_id\":1,\"action\":\"upsert\"}",
     "title post_type permalink content_html", "title is required (and 3 more: see errors)"},
    {"posts/changed", "posts", "{\"action\":\"delete\"}", "wp_id",
     "wp_id is required: a whole number from 1"},
    {"products/sync", "products", "7", "wp_id", "wp_id is required: a whole number from 1"},
    {"coupons/sync", "coupons",
     "{\"discount_type\":\"some\",\"usage_limit\":-1,\"product_ids\":7,\"expires_at\":\"soon\"}",
     "code discount_type usage_limit expires_at product_ids",
     "code is required: 1 to 256 bytes (and 4 more: see errors)"},
    {"coupons/sync", "coupons", "{\"code\":\"a\",\"discount\":7}", "discount",
     "discount must be a string"},
};

START_TEST(all_errors_of_an_item_are_reported_by_field)
{
    const char *path = many_mistakes[_i].path;
    char *of = agent_new();
    for (int times = 0; times < 2; times++) { /* a repeat gets the same answer */
        struct response *r =
            http(server, .method = "POST", .path = text("/v1/wp/%s", path), .key = token,
                 .headers = {"Content-Type: application/json", text("Idempotency-Key: %s", of)},
                 .body = envelope(of, "", many_mistakes[_i].items,
                                  text("[%s]", many_mistakes[_i].item)));
        expect_status(r, 200);
        expect_str(r, "data.results.0.error.code", "validation_failed");
        expect_str(r, "data.results.0.error.message", many_mistakes[_i].message);
        expect(r, has_exactly(r, "data.results.0.error.errors", many_mistakes[_i].fields));
    }
    ck_assert_int_eq(counted(of, many_mistakes[_i].items), 0);
}
END_TEST

START_TEST(item_and_envelope_errors_have_the_same_wording)
{
    struct response *r = post(
        "products/sync", envelope(agent_new(), "", "products", "[{\"wp_id\":1,\"name\":\"a\"}]"));
    expect_str(r, "data.results.0.error.errors.price.0", "is required");
    ck_assert_uint_eq(len_at(r, "data.results.0.error.errors.price"), 1);
}
END_TEST

START_TEST(the_store_is_valid_after_all_refusals)
{
    assay_ok(server, "check", NULL);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("sync_refused");
    TCase *c = harness_case(s, "routes");
    tcase_add_unchecked_fixture(c, sync_setup, sync_teardown);
    tcase_add_loop_test(c, a_wrong_envelope_is_refused_whole, 0, COUNT(wrong_envelopes));
    tcase_add_loop_test(c, a_wrong_body_is_refused, 0, COUNT(wrong_bodies));
    tcase_add_loop_test(c, malformed_json_is_reported_with_line_and_column, 0, 2);
    tcase_add_test(c, an_item_named_twice_is_refused_with_its_batch);
    tcase_add_test(c, a_hundred_items_are_accepted_and_one_more_is_refused);
    tcase_add_test(c, json_a_thousand_levels_deep_is_refused);
    tcase_add_loop_test(c, a_wrong_item_fails_alone_with_its_reason, 0, COUNT(wrong_products));
    tcase_add_loop_test(c, all_errors_of_an_item_are_reported_by_field, 0, COUNT(many_mistakes));
    tcase_add_test(c, item_and_envelope_errors_have_the_same_wording);
    tcase_add_test(c, the_store_is_valid_after_all_refusals);
    return harness_main(s);
}
