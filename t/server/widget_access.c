/*
 * Access to the widget: origins, visitors' tokens and their signing keys, unpublished agents, and a
 * budget for each session.
 */
#include "t/kit/widget.h"

static void setup(void)
{
    server = server_shared(&(struct server_options){0});
    widget_make(SHOP);
}

static void teardown(void)
{
    server_shared_stop(server);
}

/* ---- CORS ---- */

START_TEST(a_preflight_is_answered_free_of_charge)
{
    struct response *r = http(
        server, .method = "OPTIONS", .path = text("/api/v1/widget/%s", surface[_i].path), .key = "",
        .headers = {FROM_SHOP, text("Access-Control-Request-Method: %s", surface[_i].method),
                    "Access-Control-Request-Headers: authorization,content-type"});
    expect_status(r, 204);
    expect(r, !strcmp(header(r, "Access-Control-Allow-Origin"), SHOP) &&
                  header_times(r, "Access-Control-Allow-Origin") == 1);
    expect(r, strstr(header(r, "Access-Control-Allow-Methods"), surface[_i].method) != NULL);
    /* the last two: a script of another origin resumes a stream, and polls */
    static const char *const names[] = {"Authorization",   "Content-Type", "Accept",
                                        "Idempotency-Key", "X-Request-Id", "Last-Event-ID",
                                        "If-None-Match"};
    for (size_t i = 0; i < COUNT(names); i++)
        expect(r, strstr(header(r, "Access-Control-Allow-Headers"), names[i]) != NULL);
    expect(r, !strcmp(header(r, "Access-Control-Max-Age"), "7200") &&
                  strstr(header(r, "Vary"), "Origin"));
    expect(r, header(r, "X-RateLimit-Limit") == NULL && header(r, "Retry-After") == NULL);
}
END_TEST

START_TEST(refusals_have_cors_and_limit_headers)
{
    const char *path = text("/api/v1/widget/%s", surface[_i].path);
    struct response *refused[] = {
        http(server, .method = surface[_i].method, .path = path, .key = "", .headers = {FROM_SHOP}),
        http(server, .method = surface[_i].method, .path = path, .key = "no.token.atall",
             .headers = {FROM_SHOP}),
        http(server, .method = "PUT", .path = path, .key = "", .headers = {FROM_SHOP}, .body = ""),
    };
    for (size_t i = 0; i < COUNT(refused); i++) {
        const struct response *r = refused[i];
        expect(r, r->status >= 400 && r->status < 500);
        expect(r, header(r, "Access-Control-Allow-Origin") &&
                      !strcmp(header(r, "Access-Control-Allow-Origin"), SHOP));
        expect(r, strstr(header(r, "Access-Control-Expose-Headers"), "X-RateLimit-Remaining") &&
                      strstr(header(r, "Access-Control-Expose-Headers"), "Retry-After") &&
                      strstr(header(r, "Access-Control-Expose-Headers"), "ETag"));
        bool known = strcmp(surface[_i].path, "nothing/here") != 0;
        expect(r, !known || (header(r, "X-RateLimit-Limit") && header(r, "X-RateLimit-Reset")));
        if (known && i == 2)
            expect_error(r, 405, "method_not_allowed");
        if (known && i < 2 && strcmp(surface[_i].path, "init") != 0) {
            expect_error(r, 401, "unauthorized");
            expect(r, (strstr(header(r, "WWW-Authenticate"), "invalid_token") != NULL) == (i == 1));
        }
    }
}
END_TEST

START_TEST(no_other_surface_has_cors)
{
    static const char *const paths[] = {"/api/v1/reports", "/api/v1/conversations", "/healthz",
                                        "/api/v1/openapi.json", "/api/v1/widgetx"};
    for (size_t i = 0; i < COUNT(paths); i++) {
        struct response *r = http(server, .path = paths[i], .headers = {FROM_SHOP});
        expect(r, header(r, "Access-Control-Allow-Origin") == NULL);
    }
}
END_TEST

static const struct {
    const char *origins, *sent; /* NULL: none */
    bool allowed;
} origins[] = {
    {SHOP, FROM_SHOP, true},
    {SHOP, "Origin: https://evil.example", false},
    {SHOP, "Origin: null", false},
    {SHOP, "Origin: https://shop.example.evil", false},
    {SHOP, "Origin: http://shop.example", false},
    {SHOP, NULL, false},
    {"", FROM_SHOP, false},
    {"", NULL, false},
    {"*", "Origin: https://any.example", true},
    {"*", NULL, true},
};

START_TEST(the_origin_is_checked_on_every_call)
{
    char *own = assay_ok(server, "agent", "create", "--workspace", "main", "--name", "O",
                         "--origin", "*", NULL);
    struct visitor v = visitor_of(init_with(own, ""));
    assay_ok(server, "agent", "update", own, "--origin", origins[_i].origins, NULL);
    struct response *both[] = {
        http(server, .method = "POST", .path = "/api/v1/widget/init", .key = "",
             .headers = {JSON, origins[_i].sent}, .body = text("{\"agent_id\":\"%s\"}", own)),
        http(server, .path = "/api/v1/widget/conversation/messages", .key = v.jwt,
             .headers = {origins[_i].sent}),
        http(server, .method = "POST", .path = "/api/v1/widget/typing", .key = v.jwt,
             .headers = {origins[_i].sent}),
        http(server, .method = "DELETE", .path = "/api/v1/widget/me", .key = v.jwt,
             .headers = {origins[_i].sent}),
    };
    for (size_t i = 0; i < COUNT(both); i++)
        if (origins[_i].allowed)
            expect_status(both[i], 200);
        else
            expect_error(both[i], 403, "origin_forbidden");
}
END_TEST

/* ---- tokens ---- */

static bool refused_at(void *path)
{
    struct response *r = http(server, .method = "POST", .path = "/api/v1/widget/typing",
                              .key = path, .headers = {FROM_SHOP});
    return r->status == 404 && !strcmp(str_at(r, "error.code"), "agent_not_found");
}

static bool unauthorized_at(void *jwt)
{
    return http(server, .method = "POST", .path = "/api/v1/widget/typing", .key = jwt,
                .headers = {FROM_SHOP})
               ->status == 401;
}

START_TEST(an_unpublished_agent_stops_within_a_second)
{
    char *own = assay_ok(server, "agent", "create", "--workspace", "main", "--name", "U",
                         "--origin", SHOP, NULL);
    struct visitor v = visitor_of(init_with(own, ""));
    for (int i = 0; i < 4; i++)
        expect_status(post(&v, "typing", NULL), 200);
    assay_ok(server, "agent", "update", own, "--unpublished", NULL);
    ck_assert(wait_until(refused_at, (void *)(uintptr_t)v.jwt, 1000));
    for (int i = 0; i < 4; i++) /* on any worker */
        expect_error(post(&v, "typing", NULL), 404, "agent_not_found");
    expect_error(init_with(own, ""), 404, "agent_not_found");
    for (size_t i = 1; i < COUNT(surface) - 1; i++) {
        struct response *r = as(&v, surface[i].method, surface[i].path, NULL);
        expect_error(r, 404, "agent_not_found");
        expect(r, header(r, "X-RateLimit-Limit") && header(r, "Access-Control-Allow-Origin"));
    }
    assay_ok(server, "agent", "update", own, "--published", NULL);
    expect_status(post(&v, "typing", NULL), 200);
    assay_ok(server, "agent", "delete", own, NULL);
    ck_assert(wait_until(unauthorized_at, (void *)(uintptr_t)v.jwt, 1000));
}
END_TEST

START_TEST(foreign_tokens_are_401)
{
    struct visitor v = visitor_new();
    size_t n = strlen(v.jwt);
    char *cut = text("%s", v.jwt), *changed = text("%s", v.jwt),
         *again = text("%s%s", v.jwt, v.jwt), *longer = malloc(9001);
    cut[n - 1] = '\0';
    changed[n / 2] = changed[n / 2] == 'A' ? 'B' : 'A';
    memset(longer, 'a', 9000);
    longer[9000] = '\0';
    longer[10] = longer[20] = '.';
    const char *tokens[] = {
        cut,
        changed,
        again,
        longer,
        "a.b.c",
        "..",
        ".",
        "x",
        operators,
        server->key,
        "eyJhbGciOiJub25lIn0.eyJpc3MiOiJhc3NheSJ9.",
        "eyJhbGciOiJSUzI1NiIsInR5cCI6IkpXVCJ9.eyJpc3MiOiJhc3NheSJ9.c2ln",
    };
    for (size_t i = 0; i < COUNT(tokens); i++) {
        struct response *r = http(server, .path = "/api/v1/widget/conversation/messages",
                                  .key = tokens[i], .headers = {FROM_SHOP});
        expect_error(r, 401, "unauthorized");
        expect(r, header(r, "X-RateLimit-Limit") && !strcmp(header(r, "X-RateLimit-Limit"), "300"));
    }
    expect_error(http(server, .path = "/api/v1/conversations", .key = v.jwt), 401, "unauthorized");
}
END_TEST

START_TEST(an_expired_token_is_refused)
{
    struct server *own = server_new(&(struct server_options){.yaml = "jwt: { ttl: 1s }\n"});
    server_start(own);
    char *id = assay_ok(own, "agent", "create", "--workspace", "main", "--name", "T", "--origin",
                        "*", NULL);
    struct response *r = http(own, .method = "POST", .path = "/api/v1/widget/init", .key = "",
                              .headers = {JSON}, .body = text("{\"agent_id\":\"%s\"}", id));
    expect_int(r, "data.expires_in", 1);
    /* the leeway for other clocks is thirty seconds; t/unit/jwt.c tests it exactly */
    expect_status(
        http(own, .path = "/api/v1/widget/conversation/messages", .key = str_at(r, "data.jwt")),
        200);
    server_free(own);
}
END_TEST

static struct visitor newest;

/* only the header, which names the secret, differs */
static bool signs_with_new_secret(void *before)
{
    newest = visitor_new();
    size_t n = (size_t)(strchr(newest.jwt, '.') - newest.jwt);
    return strncmp(newest.jwt, before, n) != 0;
}

START_TEST(rotating_secrets_logs_nobody_out)
{
    struct visitor before = visitor_new();
    assay_ok(server, "secret", "rotate", NULL);
    ck_assert(wait_until(signs_with_new_secret, (void *)(uintptr_t)before.jwt, 3000));
    for (int i = 0; i < 6; i++) { /* on any worker */
        expect_status(post(&before, "typing", NULL), 200);
        expect_status(post(&newest, "typing", NULL), 200);
    }
}
END_TEST

/* ---- limits ---- */

START_TEST(one_session_never_spends_anothers_budget)
{
    struct visitor v = visitor_new(), w = visitor_new();
    struct response *r = post(&v, "leads", "{\"email\":\"limit@example.com\"}");
    for (int i = 0; i < 64 && r->status != 429; i++) /* two windows, if one ends during the test */
        r = post(&v, "leads", "{\"email\":\"limit@example.com\"}");
    expect_error(r, 429, "rate_limited");
    expect(r, header(r, "Retry-After") && !strcmp(header(r, "X-RateLimit-Remaining"), "0") &&
                  header(r, "Access-Control-Allow-Origin"));
    /* continuing the same conversation refills nothing */
    struct visitor same = visitor_of(init_with(agent, text(",\"anon_id\":\"%s\"", v.secret)));
    struct response *again = post(&same, "leads", "{\"email\":\"limit@example.com\"}");
    expect(again, again->status == 429 || strcmp(header(again, "X-RateLimit-Reset"),
                                                 header(r, "X-RateLimit-Reset")) != 0);
    struct response *other = post(&w, "leads", "{\"email\":\"limit2@example.com\"}");
    expect(other, other->status == 201 && !strcmp(header(other, "X-RateLimit-Remaining"), "29"));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("widget_access");
    TCase *tc = harness_case(suite, "one server");
    tcase_add_unchecked_fixture(tc, setup, teardown);
    tcase_add_loop_test(tc, a_preflight_is_answered_free_of_charge, 0, (int)COUNT(surface));
    tcase_add_loop_test(tc, refusals_have_cors_and_limit_headers, 0, (int)COUNT(surface));
    tcase_add_test(tc, no_other_surface_has_cors);
    tcase_add_loop_test(tc, the_origin_is_checked_on_every_call, 0, (int)COUNT(origins));
    tcase_add_test(tc, an_unpublished_agent_stops_within_a_second);
    tcase_add_test(tc, foreign_tokens_are_401);
    tcase_add_test(tc, an_expired_token_is_refused);
    tcase_add_test(tc, rotating_secrets_logs_nobody_out);
    tcase_add_test(tc, one_session_never_spends_anothers_budget);
    return harness_main(suite);
}
