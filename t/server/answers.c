/*
 * Answers to visitors from synced content: citations, coupons that are applied, and pending
 * coupons.
 */
#include "t/kit/harness.h"

#define JSON "Content-Type: application/json"
#define ENVELOPE                                                                                   \
    "\"site_url\":\"https://shop.example\",\"plugin_version\":\"1.0\",\"timezone\":\"Europe/"      \
    "Berlin\""

static struct server *server;
static char *agent, *other_agent, *token, *foreign_token;

static bool is_indexed(void *arg)
{
    struct response *r = http(server, .method = "GET", .path = "/v1/wp/status", .key = token);
    (void)arg;
    expect_status(r, 200);
    return bool_at(r, "data.indexed");
}

/* Until the chat answers from the document. */
static struct response *sync_to(const char *of, const char *path, const char *members)
{
    struct response *r =
        http(server, .method = "POST", .path = text("/v1/wp/%s", path), .key = token,
             .headers = {JSON}, .body = text("{\"agent_id\":\"%s\"," ENVELOPE ",%s}", of, members));
    ck_assert(wait_until(is_indexed, NULL, 10000));
    return r;
}

static void post_sync(unsigned wp_id, const char *title, const char *html)
{
    struct response *r = sync_to(agent, "posts/sync",
                                 text("\"posts\":[{\"wp_id\":%u,\"post_type\":\"page\","
                                      "\"permalink\":\"https://shop.example/%u\","
                                      "\"title\":\"%s\",\"content_html\":\"%s\"}]",
                                      wp_id, wp_id, title, html));
    expect_status(r, 200);
    expect_int(r, "data.queued", 1);
}

static void setup(void)
{
    server = server_shared(
        &(struct server_options){.yaml = "limits: { limiters: { bulk-sync: { windows: [ { limit: "
                                         "10000, seconds: 60, key: token } ] } } }\n"});
    agent = assay_ok(server, "agent", "create", "--workspace", "main", "--name", "Shop", "--origin",
                     "*", NULL);
    other_agent = assay_ok(server, "agent", "create", "--workspace", "main", "--name", "Other",
                           "--origin", "*", NULL);
    token = assay_ok(server, "token", "create", "--workspace", "main", NULL);
    assay_ok(server, "workspace", "create", "foreign", NULL);
    foreign_token = assay_ok(server, "token", "create", "--workspace", "foreign", NULL);
}

static void teardown(void)
{
    server_shared_stop(server);
}

struct visitor {
    const char *jwt, *conversation;
};

static struct visitor visitor_of(const char *of)
{
    struct response *r = http(server, .method = "POST", .path = "/api/v1/widget/init", .key = "",
                              .headers = {JSON}, .body = text("{\"agent_id\":\"%s\"}", of));
    expect_status(r, 200);
    return (struct visitor){str_at(r, "data.jwt"), str_at(r, "data.conversation_id")};
}

static struct response *say(const struct visitor *v, const char *path, const char *body)
{
    return http(server, .method = "POST", .path = text("/api/v1/widget/%s", path), .key = v->jwt,
                .headers = {JSON}, .body = body);
}

static struct response *ask(const struct visitor *v, const char *question)
{
    struct response *r = say(v, "messages", text("{\"message\":\"%s\"}", question));
    expect_status(r, 200);
    return r;
}

/* ---- answers ---- */

START_TEST(a_question_is_answered_by_the_matching_passage_with_a_citation)
{
    struct visitor v = visitor_of(agent), other_visitor = visitor_of(other_agent);
    post_sync(1, "Imprint", "<p>Shop Ltd., 1 Main Street.</p>");
    post_sync(2, "Returns &amp; refunds",
              "<h1>Returns</h1><p>We ship worldwide.</p><script>alert(1)</script><p>Send the "
              "parcel back within 30 days &mdash; "
              "<b>free</b> of charge.</p>");
    struct response *r = ask(&v, "How many days do I have to send a parcel back?");
    expect(r, !bool_at(r, "data.low_confidence"));
    expect(r, strstr(str_at(r, "data.content"),
                     "Send the parcel back within 30 days — free of charge.") != NULL);
    expect(r, strchr(str_at(r, "data.content"), '<') == NULL &&
                  strstr(str_at(r, "data.content"), "alert") == NULL);
    expect(r, len_at(r, "data.citations") == 1);
    expect_str(r, "data.citations.0.type", "post");
    expect_int(r, "data.citations.0.wp_id", 2);
    expect_str(r, "data.citations.0.title", "Returns & refunds");
    expect_str(r, "data.citations.0.url", "https://shop.example/2");
    expect(r, !has(r, "data.citations.0.image_url"));
    struct response *none = ask(&other_visitor, "How many days do I have to send a parcel back?");
    expect(none, bool_at(none, "data.low_confidence") && len_at(none, "data.citations") == 0);
}
END_TEST

START_TEST(an_unanswerable_question_says_so)
{
    static const char *const questions[] = {"Do you sell submarines?", "the of and", "?", "x",
                                            "Ship the xylophone to Zanzibar by zeppelin"};
    struct visitor v = visitor_of(agent);
    post_sync(3, "Delivery", "<p>We ship to Norway in five days.</p>");
    for (size_t i = 0; i < COUNT(questions); i++) {
        struct response *r = ask(&v, questions[i]);
        expect(r, bool_at(r, "data.low_confidence") && len_at(r, "data.citations") == 0);
        expect(r, strlen(str_at(r, "data.content")) > 0);
    }
}
END_TEST

START_TEST(an_answer_follows_each_sync)
{
    struct visitor v = visitor_of(agent);
    post_sync(4, "Opening hours", "<p>The showroom opens at nine.</p>");
    struct response *r = ask(&v, "When does the showroom open? opens");
    expect(r, strstr(str_at(r, "data.content"), "nine") != NULL);
    post_sync(4, "Opening hours", "<p>The showroom opens at noon.</p>");
    r = ask(&v, "When does the showroom open? opens");
    expect(r, strstr(str_at(r, "data.content"), "noon") != NULL);
    expect_status(
        sync_to(agent, "posts/changed", "\"posts\":[{\"wp_id\":4,\"action\":\"delete\"}]"), 200);
    r = ask(&v, "When does the showroom open? opens");
    expect(r, bool_at(r, "data.low_confidence"));
}
END_TEST

static void product_sync(void)
{
    struct response *r = sync_to(agent, "products/sync",
                                 "\"products\":[{\"wp_id\":9,\"sku\":\"TB-30\",\"name\":\"Trail "
                                 "backpack\",\"permalink\":\"https://shop.example/tb\","
                                 "\"short_description\":\"<p>Waterproof, 30 "
                                 "litres.</p>\",\"price\":\"79.90\",\"currency\":\"EUR\","
                                 "\"stock_status\":\"instock\",\"on_sale\":true,\"categories\":["
                                 "\"Bags\"],\"attributes\":[]}]");
    expect_status(r, 200);
}

START_TEST(a_product_answer_has_its_price)
{
    struct visitor v = visitor_of(agent);
    product_sync();
    struct response *r = ask(&v, "Is the TRAIL backpack waterproof?");
    expect_str(r, "data.content", "Trail backpack, 79.90 EUR, in stock: Waterproof, 30 litres.");
    expect_str(r, "data.citations.0.type", "product");
    r = ask(&v, "TB-30");
    expect_int(r, "data.citations.0.wp_id", 9);
    r = say(&v, "messages/stream", "{\"message\":\"trail backpack\"}");
    expect_status(r, 200);
    expect(r, strstr(r->body, "event: citations") != NULL &&
                  strstr(r->body, "https://shop.example/tb") != NULL);
}
END_TEST

/* Columns: members of the product after name and permalink; the start of the answer. */
static const struct {
    const char *members, *says;
} offers[] = {
    {"\"price\":\"18.00\",\"stock_status\":\"outofstock\",\"on_sale\":false",
     "Kenya Nyeri, 18.00 EUR, out of stock: Blackcurrant."},
    {"\"price\":\"18.00\",\"stock_status\":\"onbackorder\",\"on_sale\":false,\"regular_price\":"
     "\"20\"",
     "Kenya Nyeri, 18.00 EUR, available on backorder: Blackcurrant."},
    {"\"price\":\"15.00\",\"stock_status\":\"instock\",\"on_sale\":true,\"regular_price\":\"18."
     "00\",\"sale_price\":\"15.00\"",
     "Kenya Nyeri, 15.00 EUR (regular price 18.00 EUR), in stock: Blackcurrant."},
    {"\"price\":\"18.00\",\"stock_status\":\"instock\",\"on_sale\":true,\"sale_price\":\"15.00\"",
     "Kenya Nyeri, 15.00 EUR (regular price 18.00 EUR), in stock: Blackcurrant."},
    {"\"price\":\"18.00\",\"stock_status\":\"instock\",\"on_sale\":true",
     "Kenya Nyeri, 18.00 EUR, in stock: Blackcurrant."},
};

START_TEST(a_product_answer_has_its_availability_and_sale)
{
    struct visitor v = visitor_of(agent);
    struct response *r = sync_to(
        agent, "products/sync",
        text("\"products\":[{\"wp_id\":21,\"name\":\"Kenya "
             "Nyeri\",\"permalink\":\"https://shop.example/k\","
             "\"image_url\":\"https://shop.example/k.jpg\",\"short_description\":\"Blackcurrant.\","
             "\"currency\":\"EUR\",\"categories\":[],\"attributes\":[],%s}]",
             offers[_i].members));
    expect_status(r, 200);
    expect_int(r, "data.queued", 1);
    r = ask(&v, "Is the Kenya in stock?");
    expect_str(r, "data.content", offers[_i].says);
    expect_str(r, "data.citations.0.image_url", "https://shop.example/k.jpg");
}
END_TEST

START_TEST(small_talk_gets_replies_in_the_agents_language)
{
    char *german = assay_ok(server, "agent", "create", "--workspace", "main", "--name", "Laden",
                            "--origin", "*", "--language", "de-AT", NULL);
    struct visitor v = visitor_of(agent), w = visitor_of(german);
    struct response *r = ask(&v, "Hello!");
    expect_str(r, "data.content", "Hello! What would you like to know?");
    expect(r, !bool_at(r, "data.low_confidence") && len_at(r, "data.citations") == 0);
    expect_str(ask(&v, "Muchas gracias"), "data.content", "¡De nada!");
    expect_str(ask(&w, "hi"), "data.content", "Guten Tag! Was möchten Sie wissen?");
    expect(r, bool_at(ask(&w, "Verkaufen Sie U-Boote?"), "data.low_confidence"));
    expect(r, strstr(str_at(ask(&w, "U-Boote"), "data.content"), "nichts gefunden") != NULL);
    post_sync(23, "Delivery", "<p>Shipping costs five euros.</p>");
    r = ask(&v, "Hello, what does shipping cost?");
    expect(r, strstr(str_at(r, "data.content"), "five euros") != NULL);
}
END_TEST

START_TEST(hostile_questions_are_answered_normally)
{
    struct visitor v = visitor_of(agent);
    char *many = text("%s", ""), *repeated = malloc(4001);
    ck_assert_ptr_nonnull(repeated);
    for (int i = 0; strlen(many) < 3900; i++)
        many = text("%sw%d ", many, i);
    memset(repeated, 'a', 4000);
    repeated[4000] = '\0';
    const char *const questions[] = {
        many,          repeated,         "\\u0001\\u0002",           "%s%n",
        "' OR 1=1 --", "\\ud83d\\ude00", "<script>alert(1)</script>"};
    for (size_t i = 0; i < COUNT(questions); i++)
        ask(&v, questions[i]);
}
END_TEST

/* ---- coupons ---- */

static void coupons_sync(void)
{
    struct response *r =
        sync_to(agent, "coupons/sync",
                "\"coupons\":[{\"code\":\"Spring10\",\"discount\":\"10%\"},"
                "{\"code\":\"five\",\"discount_type\":\"fixed_cart\",\"amount\":\"5\",\"minimum_"
                "amount\":\"20\"},"
                "{\"code\":\"nosale\",\"discount_type\":\"percent\",\"amount\":\"50\",\"exclude_"
                "sale_items\":true},"
                "{\"code\":\"gone\",\"discount\":\"10%\",\"expires_at\":\"2020-01-01\"},"
                "{\"code\":\"late\",\"discount\":\"10%\",\"expires_at\":\"2999-06-30T12:00:00\"},"
                "{\"code\":\"used\",\"discount_type\":\"percent\",\"amount\":\"10\",\"usage_"
                "limit\":2,\"usage_count\":2}]");
    expect_status(r, 200);
    expect_int(r, "data.failed", 0);
}

static struct response *apply(const struct visitor *v, const char *code, const char *items)
{
    return say(v, "coupon/apply",
               items == NULL
                   ? text("{\"code\":\"%s\"}", code)
                   : text("{\"code\":\"%s\",\"cart\":{\"currency\":\"EUR\",\"items\":[%s]}}", code,
                          items));
}

START_TEST(a_coupon_discounts_a_cart_as_the_shop_does)
{
    struct visitor v = visitor_of(agent);
    coupons_sync();
    struct response *r = apply(&v, " sPRING10 ",
                               "{\"wp_id\":1,\"quantity\":1,\"price\":\"19.99\"},{\"wp_id\":2,"
                               "\"quantity\":3,\"price\":\"1.85\"}");
    expect_status(r, 200);
    expect(r, bool_at(r, "data.applied") && !bool_at(r, "data.pending"));
    expect_str(r, "data.code", "Spring10");
    expect_str(r, "data.discount_type", "percent");
    expect_str(r, "data.amount", "10");
    expect_str(r, "data.totals.currency_code", "EUR");
    expect_int(r, "data.totals.currency_minor_unit", 2);
    expect_str(r, "data.totals.total_discount", "255");
    expect_str(r, "data.totals.total_price", "2299");
    r = apply(&v, "late", NULL);
    expect_status(r, 200);
    expect_str(r, "data.expires_at", "2999-06-30T10:00:00Z"); /* noon in Berlin, in summer */
}
END_TEST

/* Columns: code, items of the cart or NULL, message of the refusal. */
static const struct {
    const char *code, *items, *says;
} refusals[] = {
    {"unknown", NULL, "is unknown"},
    {"gone", NULL, "expired"},
    {"used", NULL, "usage limit"},
    {"gone", "{\"wp_id\":1,\"quantity\":1,\"price\":\"19.99\"}", "expired"},
    {"five", "{\"wp_id\":1,\"quantity\":1,\"price\":\"19.99\"}", "minimum"},
    {"nosale", "{\"wp_id\":1,\"quantity\":1,\"price\":\"19.99\",\"on_sale\":true}",
     "not valid for these products"},
    {"nosale", "{\"wp_id\":9,\"quantity\":1,\"price\":\"79.90\"}",
     "not valid for these products"}, /* the shop reported that it is on sale */
};

START_TEST(an_unusable_coupon_says_why)
{
    struct visitor v = visitor_of(agent), other_visitor = visitor_of(other_agent);
    coupons_sync();
    product_sync();
    struct response *r = apply(&v, refusals[_i].code, refusals[_i].items);
    expect_status(r, 400);
    expect_str(r, "error.code", "invalid_coupon");
    expect(r, strstr(str_at(r, "error.message"), refusals[_i].says) != NULL);
    r = apply(&other_visitor, "Spring10", NULL);
    expect_status(r, 400);
    expect(r, strstr(str_at(r, "error.message"), "is unknown") != NULL);
}
END_TEST

static struct response *pending(const char *with, const char *prefix, const char *conversation)
{
    return http(server,
                .path = text("%s/v1/wp/coupons/pending?conversation_id=%s", prefix, conversation),
                .key = with);
}

START_TEST(the_shop_receives_a_pending_coupon)
{
    struct visitor v = visitor_of(agent), w = visitor_of(agent);
    coupons_sync();
    struct response *r = apply(&v, "FIVE", NULL);
    expect_status(r, 200);
    expect(r, !bool_at(r, "data.applied") && bool_at(r, "data.pending") &&
                  has(r, "data.pending_until"));
    expect_str(r, "data.code", "five");
    expect_status(apply(&v, "spring10", NULL), 200);
    expect_status(apply(&v, "five", NULL), 200);
    expect_status(apply(&v, "five", "{\"wp_id\":1,\"quantity\":1,\"price\":\"30\"}"), 200);
    for (int alias = 0; alias < 2; alias++) {
        r = pending(token, alias ? "/api" : "", v.conversation);
        expect_status(r, 200);
        expect_str(r, "data.conversation_id", v.conversation);
        expect(r, len_at(r, "data.coupons") == 2);
        expect_str(r, "data.coupons.0.code", "Spring10");
        expect_str(r, "data.coupons.1.code", "five");
        expect_str(r, "data.coupons.1.discount_type", "fixed_cart");
        expect_str(r, "data.coupons.1.amount", "5");
    }
    r = pending(token, "", w.conversation);
    expect_status(r, 200);
    expect(r, len_at(r, "data.coupons") == 0);
    expect_status(pending(foreign_token, "", v.conversation), 404);
    expect_status(pending(token, "", "nonsense"), 404);
    expect_status(http(server, .path = "/v1/wp/coupons/pending", .key = token), 422);
    expect_status(sync_to(agent, "coupons/sync",
                          "\"coupons\":[{\"code\":\"Spring10\",\"discount\":\"10%\"}]"),
                  200);
    r = pending(token, "", v.conversation);
    expect(r, len_at(r, "data.coupons") == 1);
    expect_status(http(server, .method = "DELETE", .path = "/api/v1/widget/me", .key = v.jwt), 200);
    expect_status(pending(token, "", v.conversation), 404);
}
END_TEST

START_TEST(the_index_is_correct_while_the_server_runs)
{
    struct run run = assay(server, "check", NULL);
    ck_assert_msg(run.status == 0, "%s%s", run.out, run.err);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("answers");
    TCase *tcase = harness_case(suite, "answers");
    tcase_add_unchecked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, a_question_is_answered_by_the_matching_passage_with_a_citation);
    tcase_add_test(tcase, an_unanswerable_question_says_so);
    tcase_add_test(tcase, an_answer_follows_each_sync);
    tcase_add_test(tcase, a_product_answer_has_its_price);
    tcase_add_loop_test(tcase, a_product_answer_has_its_availability_and_sale, 0, COUNT(offers));
    tcase_add_test(tcase, small_talk_gets_replies_in_the_agents_language);
    tcase_add_test(tcase, hostile_questions_are_answered_normally);
    tcase_add_test(tcase, a_coupon_discounts_a_cart_as_the_shop_does);
    tcase_add_loop_test(tcase, an_unusable_coupon_says_why, 0, COUNT(refusals));
    tcase_add_test(tcase, the_shop_receives_a_pending_coupon);
    tcase_add_test(tcase, the_index_is_correct_while_the_server_runs);
    return harness_main(suite);
}
