/*
 * What every route of the widget has: the limiter's headers, CORS, its credential, refusal of
 * hostile bodies, length limits, and a budget for each session. The routes themselves are in
 * t/server/widget.c and t/server/widget_leads_events.c.
 */
#include "t/kit/widget.h"

static char *token;

static void setup(void)
{
    server = server_shared(&(struct server_options){.workers = 1});
    widget_make(SHOP);
    token = assay_ok(server, "token", "create", "--workspace", "main", NULL);
    expect_status(http(server, .method = "POST", .path = "/v1/wp/coupons/sync", .key = token,
                       .headers = {JSON},
                       .body = text("{\"agent_id\":\"%s\",\"site_url\":\"https://"
                                    "shop.example\",\"plugin_version\":\"1\","
                                    "\"coupons\":[{\"code\":\"TEN\",\"discount\":\"10%%\"}]}",
                                    agent)),
                  200);
}

static void teardown(void)
{
    server_shared_stop(server);
}

static struct response *ask(const char *jwt, const char *method, const char *path, const char *body,
                            const char *type)
{
    return http(server, .method = method, .path = text("/api/v1/widget/%s", path), .key = jwt,
                .headers = {FROM_SHOP, body ? type : NULL}, .body = body);
}

/*
 * Columns: a valid visitor request; its status; the limit in its headers (built-in); whether it has
 * a body.
 */
static const struct route {
    const char *method, *path, *body;
    int status;
    const char *limit;
} routes[] = {
    {"POST", "messages", "{\"message\":\"hello\"}", 200, "300"},
    {"POST", "messages/stream", "{\"message\":\"hello\"}", 200, "300"},
    {"GET", "conversation/messages", NULL, 200, "300"},
    {"POST", "conversation/read", "{}", 200, "300"},
    {"POST", "conversation/clear", "{}", 200, "300"},
    {"POST", "conversation/close", "{}", 200, "300"},
    {"POST", "request-human", "{}", 200, "300"},
    {"DELETE", "me", NULL, 200, "300"},
    {"POST", "events", "{\"event\":\"opened\"}", 202, "300"},
    {"POST", "leads", "{\"email\":\"a@b.example\"}", 201, "30"},
    {"POST", "typing", "{\"typing_status\":\"on\"}", 200, "600"},
    {"POST", "satisfaction", "{\"rating\":5}", 200, "60"},
    {"POST", "coupon/apply", "{\"code\":\"TEN\"}", 200, "120"},
};

static void expect_limit(const struct response *r, const char *limit)
{
    expect(r, header_times(r, "X-RateLimit-Limit") == 1 &&
                  !strcmp(header(r, "X-RateLimit-Limit"), limit));
    expect(r, header_times(r, "X-RateLimit-Remaining") == 1 &&
                  atoi(header(r, "X-RateLimit-Remaining")) < atoi(limit));
    expect(r, header_times(r, "X-RateLimit-Reset") == 1 && header(r, "Retry-After") == NULL);
}

static void expect_cors(const struct response *r)
{
    expect(r, header_times(r, "Access-Control-Allow-Origin") == 1 &&
                  !strcmp(header(r, "Access-Control-Allow-Origin"), SHOP));
    expect(r,
           strstr(header(r, "Access-Control-Expose-Headers"), "Retry-After") && header(r, "Vary"));
    expect(r, header(r, "Access-Control-Allow-Credentials") == NULL &&
                  header(r, "Set-Cookie") == NULL);
}

START_TEST(a_good_response_has_limit_and_cors_headers_and_is_not_cached)
{
    const struct route *row = &routes[_i];
    struct visitor v = visitor_new();
    struct response *r = ask(v.jwt, row->method, row->path, row->body, JSON);
    /* the lead existed, in another round of the loop */
    expect(r, r->status == row->status || (r->status == 200 && row->status == 201));
    expect_limit(r, row->limit);
    expect_cors(r);
    expect(r, !strcmp(header(r, "Cache-Control"), "no-store") &&
                  !strcmp(header(r, "X-Content-Type-Options"), "nosniff"));
    expect(r, header(r, "X-Request-Id") != NULL);
    bool events = strstr(row->path, "/stream") != NULL;
    expect(r,
           !strcmp(header(r, "Content-Type"), events ? "text/event-stream" : "application/json"));
    expect(r, events || (at(r, "data") != NULL && has_exactly(r, "", "data")));
}
END_TEST

/* ---- credentials ---- */

START_TEST(no_other_credential_is_accepted)
{
    const struct route *row = &routes[_i];
    struct visitor v = visitor_new();
    const char *const others[] = {
        "",         operators,      server->key,        token,
        "asy_key_", v.conversation, text("%s.", v.jwt), text(" %s x", v.jwt)};
    for (size_t i = 0; i < COUNT(others); i++) {
        struct response *r = ask(others[i], row->method, row->path, row->body, JSON);
        expect_error(r, 401, "unauthorized");
        expect_limit(r, row->limit);
        expect_cors(r);
    }
    struct response *basic =
        http(server, .method = row->method, .path = text("/api/v1/widget/%s", row->path), .key = "",
             .headers = {FROM_SHOP, text("Authorization: Basic %s", v.jwt)});
    expect_error(basic, 401, "unauthorized");
    /* none of that charged or ended anything of the visitor's */
    struct response *r = ask(v.jwt, row->method, row->path, row->body, JSON);
    expect(r, r->status / 100 == 2);
    if (!strcmp(row->limit, "300") || !strcmp(row->limit, "30"))
        expect(r, atoi(header(r, "X-RateLimit-Remaining")) == atoi(row->limit) - 1);
}
END_TEST

/* ---- bodies ---- */

static const struct {
    const char *body, *type;
    int status;
} hostile[] = {
    {"{", JSON, 400},
    {"[]", JSON, 400},
    {"7", JSON, 400},
    {"{\"a\":1,}", JSON, 400},
    {"{\"a\":1}x", JSON, 400},
    {"{'a':1}", JSON, 400},
    {"{\"a\":NaN}", JSON, 400},
    {"{\"a\":01}", JSON, 400},
    {"{\"a\":1,\"a\":2}", JSON, 400},
    {"{\"a\":1,\"\\u0061\":2}", JSON, 400},
    {"{\"a\":\"\xff\"}", JSON, 400},
    {"{\"a\":\"\xed\xa0\x80\"}", JSON, 400},
    {"{\"a\":\"\\ud800\"}", JSON, 400},
    {"{\"a\":\"\\u0000\"}", JSON, 400},
    {"{\"a\":\"\n\"}", JSON, 400},
    {"{\"a\":18446744073709551616}", JSON, 400},
    {"{\"a\":1e999}", JSON, 400},
    {"{\"a\":[[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]]}", JSON, 400},
    {"a=%zz", "Content-Type: application/x-www-form-urlencoded", 400},
    {"a=%00", "Content-Type: application/x-www-form-urlencoded", 400},
    {"a=%ff", "Content-Type: application/x-www-form-urlencoded", 400},
    {"{}", "Content-Type: text/plain", 415},
    {"{}", "Content-Type: application/json-patch+json", 415},
    {"{}", "Content-Type: multipart/form-data; boundary=x", 415},
};

START_TEST(every_route_with_a_body_refuses_a_hostile_one)
{
    const struct route *row = &routes[_i];
    struct visitor v = visitor_new();
    if (row->body == NULL)
        return;
    for (size_t i = 0; i < COUNT(hostile); i++) {
        struct response *r = ask(v.jwt, row->method, row->path, hostile[i].body, hostile[i].type);
        expect_error(r, hostile[i].status,
                     hostile[i].status == 400 ? "bad_request" : "unsupported_media_type");
        expect(r, (header(r, "Accept-Post") != NULL) == (hostile[i].status == 415));
        expect_limit(r, row->limit);
        expect_cors(r);
    }
    char *large = malloc(65538);
    memset(large, ' ', 65537);
    memcpy(large, "{}", 2);
    large[65537] = '\0';
    struct response *r = ask(v.jwt, row->method, row->path, large, JSON);
    expect_error(r, 413, "payload_too_large");
    expect_limit(r, row->limit);
    expect_cors(r);
    free(large);
}
END_TEST

/*
 * Columns: path; the body before and after the repeated letter; the maximum; the member in the
 * error.
 */
static const struct {
    const char *path, *before, *behind;
    int most;
    const char *field;
} lengths[] = {
    {"messages", "{\"message\":\"", "\"}", 4000, "message"},
    {"messages", "{\"message\":\"m\",\"client_message_id\":\"", "\"}", 64, "client_message_id"},
    {"messages", "{\"message\":\"m\",\"page_url\":\"", "\"}", 2048, "page_url"},
    {"messages", "{\"message\":\"m\",\"page_context\":\"", "\"}", 8190, "page_context"},
    {"messages/stream", "{\"message\":\"", "\"}", 4000, "message"},
    {"events", "{\"event\":\"", "\"}", 64, "event"},
    {"events", "{\"events\":[{\"kind\":\"", "\"}]}", 64, "events"},
    {"events", "{\"event\":\"e\",\"metadata\":\"", "\"}", 4094, "metadata"},
    {"events", "{\"events\":[{\"kind\":\"e\",\"payload\":\"", "\"}]}", 4094, "events"},
    {"leads", "{\"email\":\"a@", ".example\"}", 244, "email"},
    {"leads", "{\"email\":\"a@b.example\",\"name\":\"", "\"}", 200, "name"},
    {"leads", "{\"email\":\"a@b.example\",\"phone\":\"", "\"}", 64, "phone"},
    {"satisfaction", "{\"rating\":1,\"comment\":\"", "\"}", 2000, "comment"},
};

START_TEST(the_longest_value_is_accepted_and_a_longer_one_named)
{
    struct visitor v = visitor_new();
    char letters[8193];
    for (int more = 0; more < 2; more++) {
        int n = lengths[_i].most + more;
        memset(letters, 'x', (size_t)n);
        letters[n] = '\0';
        struct response *r =
            ask(v.jwt, "POST", lengths[_i].path,
                text("%s%s%s", lengths[_i].before, letters, lengths[_i].behind), JSON);
        if (more == 0) {
            expect(r, r->status / 100 == 2);
            continue;
        }
        expect_error(r, 422, "validation_failed");
        expect(r, at(r, text("error.errors.%s", lengths[_i].field)) != NULL);
    }
}
END_TEST

/* ---- budgets ---- */

static int left(const struct response *r)
{
    return atoi(header(r, "X-RateLimit-Remaining"));
}

START_TEST(each_session_has_its_own_budget_of_each_limiter)
{
    for (int tries = 0; tries < 2; tries++) { /* again, if a window ended during the test */
        struct visitor v = visitor_new(), w = visitor_new();
        struct response *first = NULL, *r = NULL;
        for (int i = 0; i < 20; i++) {
            r = ask(v.jwt, "GET", "conversation/messages", NULL, NULL);
            first = first == NULL ? r : first;
        }
        struct response *lead =
            ask(v.jwt, "POST", "leads", "{\"email\":\"budget@b.example\"}", JSON);
        struct response *other = ask(w.jwt, "GET", "conversation/messages", NULL, NULL);
        struct response *others =
            ask(w.jwt, "POST", "leads", "{\"email\":\"budget@b.example\"}", JSON);
        if (strcmp(header(first, "X-RateLimit-Reset"), header(others, "X-RateLimit-Reset")) != 0)
            continue;
        ck_assert_int_eq(left(first), 299);
        ck_assert_int_eq(left(r), 280);
        ck_assert_int_eq(left(lead), 29);
        ck_assert_int_eq(left(other), 299);
        ck_assert_int_eq(left(others), 29);
        return;
    }
    ck_abort_msg("two windows ended");
}
END_TEST

/*
 * Agents from one address: each published agent has a budget, and all other ids share one, however
 * many are invented.
 */
START_TEST(each_agent_has_an_init_budget_and_unknown_agents_share_one)
{
    const char *const ids[] = {
        assay_ok(server, "agent", "create", "--workspace", "main", "--name", "A", "--origin", SHOP,
                 NULL),
        assay_ok(server, "agent", "create", "--workspace", "main", "--name", "B", "--origin", SHOP,
                 NULL),
        assay_ok(server, "agent", "create", "--workspace", "main", "--name", "C", "--origin", SHOP,
                 "--unpublished", NULL),
        "01ARZ3NDEKTSV4RRFFQ69G5FAV",
        "01ARZ3NDEKTSV4RRFFQ69G5FAW",
        "x",
    };
    for (int tries = 0; tries < 2; tries++) { /* again, if a window ended during the test */
        struct response *r[2 * COUNT(ids)];
        for (size_t i = 0; i < COUNT(r); i++) {
            r[i] = http(server, .method = "POST", .path = "/api/v1/widget/init", .key = "",
                        .headers = {JSON, FROM_SHOP},
                        .body = text("{\"agent_id\":\"%s\"}", ids[i / 2]));
            expect_status(r[i], i < 4 ? 200 : 404);
            expect_limit(r[i], "1000");
        }
        if (strcmp(header(r[0], "X-RateLimit-Reset"),
                   header(r[COUNT(r) - 1], "X-RateLimit-Reset")) != 0)
            continue;
        for (size_t i = 0; i < 4; i += 2) /* up to four requests each in this window */
            ck_assert(left(r[i]) >= 997 && left(r[i + 1]) == left(r[i]) - 1);
        for (size_t i = 5; i < COUNT(r); i++)
            ck_assert_int_eq(left(r[i]), left(r[i - 1]) - 1);
        return;
    }
    ck_abort_msg("two windows ended");
}
END_TEST

START_TEST(preflights_are_not_charged)
{
    struct visitor v = visitor_new();
    for (int tries = 0; tries < 2; tries++) { /* again, if a window ended during the test */
        struct response *before = ask(v.jwt, "POST", "typing", NULL, NULL);
        for (int i = 0; i < 30; i++)
            expect_status(http(server, .method = "OPTIONS", .path = "/api/v1/widget/typing",
                               .key = "",
                               .headers = {FROM_SHOP, "Access-Control-Request-Method: POST"}),
                          204);
        struct response *after = ask(v.jwt, "POST", "typing", NULL, NULL);
        if (strcmp(header(before, "X-RateLimit-Reset"), header(after, "X-RateLimit-Reset")) != 0)
            continue;
        ck_assert_int_eq(left(before) - left(after), 1);
        return;
    }
    ck_abort_msg("two windows ended");
}
END_TEST

/* ---- operators ---- */

static struct response *reply(const struct visitor *v, const char *key, const char *body)
{
    return http(server, .method = "POST",
                .path = text("/api/v1/conversations/%s/messages", v->conversation),
                .key = operators, .headers = {JSON, text("Idempotency-Key: %s", key)},
                .body = body);
}

START_TEST(an_operator_message_is_stored_once_per_key)
{
    struct visitor v = visitor_new(), w = visitor_new();
    struct response *first = reply(&v, "k", "{\"message\":\"one\"}"),
                    *again = reply(&v, "k", "{\"message\":\"one\"}");
    expect_status(first, 201);
    expect(first, header(first, "Idempotent-Replayed") == NULL);
    expect(again, again->status == 201 && header(again, "Idempotent-Replayed") &&
                      !strcmp(again->body, first->body));
    expect_error(reply(&v, "k", "{\"message\":\"two\"}"), 422, "idempotency_key_reused");
    expect_error(reply(&v, text("%0256d", 1), "{\"message\":\"two\"}"), 400, "bad_request");
    struct response *other = reply(&w, "k", "{\"message\":\"two\"}"); /* another path */
    expect(other, other->status == 201 && header(other, "Idempotent-Replayed") == NULL);
    struct response *list = ask(v.jwt, "GET", "conversation/messages", NULL, NULL);
    expect(list, len_at(list, "data.messages") == 1);
}
END_TEST

/* ---- polling ---- */

/* CPU time of the worker, ms */
static long spent_ms(void)
{
    unsigned long user, system;
    FILE *stat = fopen(text("/proc/%d/stat", (int)server_process(server, "assayd: worker 0")), "r");
    ck_assert_ptr_nonnull(stat);
    ck_assert_int_eq(fscanf(stat,
                            "%*d (%*[^)]) %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu",
                            &user, &system),
                     2);
    fclose(stat);
    return (long)((user + system) * 1000 / (unsigned long)sysconf(_SC_CLK_TCK));
}

static long polls(const struct visitor *v)
{
    enum { POLLS = 180 };
    static const char path[] = "/api/v1/widget/conversation/messages?limit=100";
    struct client *client = client_new(server);
    struct response *r = http_kept(client, .path = path, .key = v->jwt, .headers = {FROM_SHOP});
    char *tag = text("If-None-Match: %s", header(r, "ETag"));
    long before = spent_ms();
    for (int i = 0; i < POLLS; i++) {
        r = http_kept(client, .path = path, .key = v->jwt, .headers = {FROM_SHOP, tag});
        expect(r, r->status == 304 && r->body_size == 0);
        response_free(r);
    }
    client_free(client);
    return spent_ms() - before;
}

START_TEST(a_304_costs_the_same_for_any_conversation)
{
    struct visitor quiet = visitor_new(), loud = visitor_new();
    static char message[3999 * 6 + 1];
    for (int i = 0; i < 3999; i++)
        memcpy(message + 6 * i, "\\u0001", 6);
    expect_status(http(server, .method = "POST",
                       .path = text("/api/v1/conversations/%s/claim", loud.conversation),
                       .key = operators),
                  200);
    for (int i = 0; i < 100; i++) {
        struct response *r =
            ask(loud.jwt, "POST", "messages", text("{\"message\":\"%s\"}", message), JSON);
        expect_status(r, 200);
        response_free(r);
    }
    struct response *page = ask(loud.jwt, "GET", "conversation/messages?limit=100", NULL, NULL);
    expect(page, page->body_size > 2000000);
    long without = polls(&quiet), with = polls(&loud);
    /* reading all these messages would take a worker over a millisecond per request */
    ck_assert_msg(with <= without + 60, "%ld ms with, %ld ms without messages", with, without);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("widget_routes");
    TCase *tc = harness_case(suite, "routes");
    tcase_add_unchecked_fixture(tc, setup, teardown);
    tcase_add_loop_test(tc, a_good_response_has_limit_and_cors_headers_and_is_not_cached, 0,
                        (int)COUNT(routes));
    tcase_add_loop_test(tc, no_other_credential_is_accepted, 0, (int)COUNT(routes));
    tcase_add_loop_test(tc, every_route_with_a_body_refuses_a_hostile_one, 0, (int)COUNT(routes));
    tcase_add_loop_test(tc, the_longest_value_is_accepted_and_a_longer_one_named, 0,
                        (int)COUNT(lengths));
    tcase_add_test(tc, each_session_has_its_own_budget_of_each_limiter);
    tcase_add_test(tc, each_agent_has_an_init_budget_and_unknown_agents_share_one);
    tcase_add_test(tc, preflights_are_not_charged);
    tcase_add_test(tc, an_operator_message_is_stored_once_per_key);
    tcase_add_test(tc, a_304_costs_the_same_for_any_conversation);
    return harness_main(suite);
}
