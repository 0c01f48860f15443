/*
 * The widget over HTTP: each route's answer, each refusal, each credential, other visitors' and other workspaces' ids, CORS and limits.
 * api.md §2, §6.
 */
#include "harness.h"

#include <strings.h>

#define JSON "Content-Type: application/json"
#define SHOP "https://shop.example"
#define FROM_SHOP "Origin: " SHOP

static struct server *server;
static char *agent, *operators;

static void setup(void)
{
    server = server_shared(&(struct server_options){0});
    agent = assay_ok(server, "agent", "create", "--workspace", "main", "--name", "Shop", "--origin", SHOP, NULL);
    operators = key_new(server, "main", "conversations:read", "conversations:write", NULL);
}

static void teardown(void)
{
    server_shared_stop(server);
}

/* ---- a visitor ---- */

struct visitor {
    const char *jwt, *id, *conversation, *secret;
};

static struct response *init_with(const char *of, const char *more)
{
    return http(server, .method = "POST", .path = "/api/v1/widget/init", .key = "", .headers = {JSON, FROM_SHOP},
                .body = text("{\"agent_id\":\"%s\"%s}", of, more));
}

static struct visitor visitor_of(const struct response *r)
{
    expect_status(r, 200);
    return (struct visitor){str_at(r, "data.jwt"), str_at(r, "data.visitor_id"), str_at(r, "data.conversation_id"),
                            str_at(r, "data.anonymous_id")};
}

static struct visitor visitor_new(void)
{
    return visitor_of(init_with(agent, ""));
}

static struct response *as(const struct visitor *v, const char *method, const char *path, const char *body)
{
    return http(server, .method = method, .path = text("/api/v1/widget/%s", path), .key = v->jwt,
                .headers = {FROM_SHOP, body ? JSON : NULL}, .body = body);
}

static struct response *operate(const char *method, const char *path, const char *body)
{
    return http(server, .method = method, .path = text("/api/v1/%s", path), .key = operators, .headers = {body ? JSON : NULL},
                .body = body);
}

static struct response *post(const struct visitor *v, const char *path, const char *body)
{
    return as(v, "POST", path, body);
}

/* ---- init ---- */

START_TEST(init_opens_a_conversation_and_a_secret_goes_on_with_it)
{
    struct response *r =
        init_with(agent, ",\"page_url\":\"https://shop.example/p\",\"locale\":\"de\",\"page_title\":\"P\",\"referrer\":\"https://r\"");
    struct visitor v = visitor_of(r);
    expect_int(r, "data.expires_in", 3600);
    expect_str(r, "data.agent.id", agent);
    expect(r, has_exactly(r, "data.agent",
                          "id name is_published theme starter_prompts lead_form_fields language_default require_lead_before_chat"));
    expect(r, len_at(r, "data.messages") == 0 && !bool_at(r, "data.lead_captured") && has(r, "data.expires_at"));
    expect(r, strlen(v.secret) >= 30);
    expect(r, header(r, "Cache-Control") && !strcmp(header(r, "Cache-Control"), "no-store"));
    expect_status(post(&v, "messages", "{\"message\":\"hello\"}"), 200);
    struct response *again = init_with(agent, text(",\"anon_id\":\"%s\"", v.secret));
    struct visitor same = visitor_of(again);
    ck_assert_str_eq(same.id, v.id);
    ck_assert_str_eq(same.conversation, v.conversation);
    ck_assert_str_eq(same.secret, v.secret);
    expect(again, len_at(again, "data.messages") == 2);
    expect_str(again, "data.messages.0.content", "hello");
    expect_status(post(&same, "messages", "{\"message\":\"again\"}"), 200);
}
END_TEST

START_TEST(an_unknown_secret_is_a_new_visitor_with_a_secret_of_its_own)
{
    struct visitor v = visitor_of(init_with(agent, ",\"anon_id\":\"anon_0000000000000000000000000000\"")), w = visitor_new();
    ck_assert_str_ne(v.secret, "anon_0000000000000000000000000000");
    ck_assert_str_ne(v.id, w.id);
    ck_assert_str_ne(v.secret, w.secret);
}
END_TEST

START_TEST(init_finds_the_last_thirty_messages)
{
    struct visitor v = visitor_new();
    for (int i = 0; i < 17; i++)
        expect_status(post(&v, "messages", text("{\"message\":\"m%d\"}", i)), 200);
    struct response *r = init_with(agent, text(",\"anon_id\":\"%s\"", v.secret));
    expect(r, len_at(r, "data.messages") == 30);
    expect_str(r, "data.messages.28.content", "m16");
    expect_str(r, "data.messages.0.content", "m2");
}
END_TEST

static const struct {
    const char *body, *type;
    int status;
    const char *code;
} bad_inits[] = {
    {"{}", "application/json", 422, "validation_failed"},
    {"", "application/json", 422, "validation_failed"},
    {"{\"agent_id\":\"01ARZ3NDEKTSV4RRFFQ69G5FAV\"}", "application/json", 404, "agent_not_found"},
    {"{\"agent_id\":\"x\"}", "application/json", 404, "agent_not_found"},
    {"{\"agent_id\":7}", "application/json", 422, "validation_failed"},
    {"{\"agent_id\":null}", "application/json", 422, "validation_failed"},
    {"[]", "application/json", 400, "bad_request"},
    {"{\"agent_id\":\"x\",\"agent_id\":\"y\"}", "application/json", 400, "bad_request"},
    {"{\"agent_id\":\"x\"", "application/json", 400, "bad_request"},
    {"{\"agent_id\":\"\\ud800\"}", "application/json", 400, "bad_request"},
    {"{\"agent_id\":\"\xff\"}", "application/json", 400, "bad_request"},
    {"{\"agent_id\":\"a\\u0000\"}", "application/json", 400, "bad_request"},
    {"{\"agent_id\":99999999999999999999}", "application/json", 400, "bad_request"},
    {"{'agent_id':'x'}", "application/json", 400, "bad_request"},
    {"{\"a\":[[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]]}", "application/json", 400, "bad_request"},
    {"agent_id=01ARZ3NDEKTSV4RRFFQ69G5FAV", "application/x-www-form-urlencoded", 404, "agent_not_found"},
    {"agent_id=x", "text/plain", 415, "unsupported_media_type"},
    {"{}", "application/jsonx", 415, "unsupported_media_type"},
};

START_TEST(a_bad_init_is_refused_with_limits_and_cors_all_the_same)
{
    struct response *r = http(server, .method = "POST", .path = "/api/v1/widget/init", .key = "",
                              .headers = {text("Content-Type: %s", bad_inits[_i].type), FROM_SHOP}, .body = bad_inits[_i].body);
    expect_error(r, bad_inits[_i].status, bad_inits[_i].code);
    expect(r, header(r, "X-RateLimit-Limit") && header(r, "X-RateLimit-Remaining") && header(r, "X-RateLimit-Reset"));
    expect(r, header(r, "Access-Control-Allow-Origin") && !strcmp(header(r, "Access-Control-Allow-Origin"), SHOP));
}
END_TEST

START_TEST(init_takes_a_flat_form_too)
{
    struct response *r = http(server, .method = "POST", .path = "/api/v1/widget/init", .key = "", .headers = {FROM_SHOP},
                              .body = text("agent_id=%s&page_url=%s", agent, encode("https://shop.example/ä")));
    visitor_of(r);
}
END_TEST

START_TEST(a_body_over_64_KiB_is_too_large)
{
    char *body = malloc(70000);
    memset(body, ' ', 69999);
    memcpy(body, "{\"agent_id\":\"x\"}", 16);
    body[69999] = '\0';
    struct response *r =
        http(server, .method = "POST", .path = "/api/v1/widget/init", .key = "", .headers = {JSON, FROM_SHOP}, .body = body);
    expect_error(r, 413, "payload_too_large");
    expect(r, header(r, "Access-Control-Allow-Origin") != NULL && header(r, "X-RateLimit-Limit") != NULL);
}
END_TEST

/* ---- CORS ---- */

static const struct {
    const char *path, *method;
} surface[] = {
    {"init", "POST"},
    {"messages", "POST"},
    {"conversation/messages", "GET"},
    {"conversation/read", "POST"},
    {"conversation/clear", "POST"},
    {"conversation/close", "POST"},
    {"request-human", "POST"},
    {"me", "DELETE"},
    {"events", "POST"},
    {"leads", "POST"},
    {"typing", "POST"},
    {"satisfaction", "POST"},
    {"coupon/apply", "POST"},
    {"messages/stream", "POST"},
    {"conversation/stream", "GET"},
    {"nothing/here", "GET"},
};

START_TEST(a_preflight_is_answered_free_of_charge)
{
    struct response *r = http(server, .method = "OPTIONS", .path = text("/api/v1/widget/%s", surface[_i].path), .key = "",
                              .headers = {FROM_SHOP, text("Access-Control-Request-Method: %s", surface[_i].method),
                                          "Access-Control-Request-Headers: authorization,content-type"});
    expect_status(r, 204);
    expect(r, !strcmp(header(r, "Access-Control-Allow-Origin"), SHOP) && header_times(r, "Access-Control-Allow-Origin") == 1);
    expect(r, strstr(header(r, "Access-Control-Allow-Methods"), surface[_i].method) != NULL);
    /* the last two: a script of another origin goes on with a stream, and asks whether there is news (api.md §6) */
    static const char *const names[] = {"Authorization", "Content-Type",  "Accept",       "Idempotency-Key",
                                        "X-Request-Id",  "Last-Event-ID", "If-None-Match"};
    for (size_t i = 0; i < COUNT(names); i++)
        expect(r, strstr(header(r, "Access-Control-Allow-Headers"), names[i]) != NULL);
    expect(r, !strcmp(header(r, "Access-Control-Max-Age"), "7200") && strstr(header(r, "Vary"), "Origin"));
    expect(r, header(r, "X-RateLimit-Limit") == NULL && header(r, "Retry-After") == NULL);
}
END_TEST

START_TEST(refusals_carry_cors_and_limits)
{
    const char *path = text("/api/v1/widget/%s", surface[_i].path);
    struct response *refused[] = {
        http(server, .method = surface[_i].method, .path = path, .key = "", .headers = {FROM_SHOP}),
        http(server, .method = surface[_i].method, .path = path, .key = "no.token.atall", .headers = {FROM_SHOP}),
        http(server, .method = "PUT", .path = path, .key = "", .headers = {FROM_SHOP}, .body = ""),
    };
    for (size_t i = 0; i < COUNT(refused); i++) {
        const struct response *r = refused[i];
        expect(r, r->status >= 400 && r->status < 500);
        expect(r, header(r, "Access-Control-Allow-Origin") && !strcmp(header(r, "Access-Control-Allow-Origin"), SHOP));
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
    static const char *const paths[] = {"/api/v1/reports", "/api/v1/conversations", "/healthz", "/api/v1/openapi.json", "/api/v1/widgetx"};
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

START_TEST(the_origin_is_judged_on_every_call)
{
    char *own = assay_ok(server, "agent", "create", "--workspace", "main", "--name", "O", "--origin", "*", NULL);
    struct visitor v = visitor_of(init_with(own, ""));
    assay_ok(server, "agent", "update", own, "--origin", origins[_i].origins, NULL);
    struct response *both[] = {
        http(server, .method = "POST", .path = "/api/v1/widget/init", .key = "", .headers = {JSON, origins[_i].sent},
             .body = text("{\"agent_id\":\"%s\"}", own)),
        http(server, .path = "/api/v1/widget/conversation/messages", .key = v.jwt, .headers = {origins[_i].sent}),
        http(server, .method = "POST", .path = "/api/v1/widget/typing", .key = v.jwt, .headers = {origins[_i].sent}),
        http(server, .method = "DELETE", .path = "/api/v1/widget/me", .key = v.jwt, .headers = {origins[_i].sent}),
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
    struct response *r = http(server, .method = "POST", .path = "/api/v1/widget/typing", .key = path, .headers = {FROM_SHOP});
    return r->status == 404 && !strcmp(str_at(r, "error.code"), "agent_not_found");
}

static bool unauthorized_at(void *jwt)
{
    return http(server, .method = "POST", .path = "/api/v1/widget/typing", .key = jwt, .headers = {FROM_SHOP})->status == 401;
}

START_TEST(an_agent_that_is_unpublished_stops_within_a_second)
{
    char *own = assay_ok(server, "agent", "create", "--workspace", "main", "--name", "U", "--origin", SHOP, NULL);
    struct visitor v = visitor_of(init_with(own, ""));
    for (int i = 0; i < 4; i++)
        expect_status(post(&v, "typing", NULL), 200);
    assay_ok(server, "agent", "update", own, "--unpublished", NULL);
    ck_assert(wait_until(refused_at, (void *)(uintptr_t)v.jwt, 1000));
    for (int i = 0; i < 4; i++) /* on whichever worker */
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

START_TEST(tokens_that_are_not_ours_are_401)
{
    struct visitor v = visitor_new();
    size_t n = strlen(v.jwt);
    char *cut = text("%s", v.jwt), *changed = text("%s", v.jwt), *again = text("%s%s", v.jwt, v.jwt), *longer = malloc(9001);
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
        struct response *r = http(server, .path = "/api/v1/widget/conversation/messages", .key = tokens[i], .headers = {FROM_SHOP});
        expect_error(r, 401, "unauthorized");
        expect(r, header(r, "X-RateLimit-Limit") && !strcmp(header(r, "X-RateLimit-Limit"), "300"));
    }
    expect_error(http(server, .path = "/api/v1/conversations", .key = v.jwt), 401, "unauthorized");
}
END_TEST

START_TEST(a_token_ends_with_its_life)
{
    struct server *own = server_new(&(struct server_options){.yaml = "jwt: { ttl: 1s }\n"});
    server_start(own);
    char *id = assay_ok(own, "agent", "create", "--workspace", "main", "--name", "T", "--origin", "*", NULL);
    struct response *r =
        http(own, .method = "POST", .path = "/api/v1/widget/init", .key = "", .headers = {JSON}, .body = text("{\"agent_id\":\"%s\"}", id));
    expect_int(r, "data.expires_in", 1);
    /* the leeway for other clocks is thirty seconds; the pure tests of jwt.c hold it to that */
    expect_status(http(own, .path = "/api/v1/widget/conversation/messages", .key = str_at(r, "data.jwt")), 200);
    server_free(own);
}
END_TEST

static struct visitor newest;

/* the header, which names the secret, is another one */
static bool signs_anew(void *before)
{
    newest = visitor_new();
    size_t n = (size_t)(strchr(newest.jwt, '.') - newest.jwt);
    return strncmp(newest.jwt, before, n) != 0;
}

START_TEST(rotating_the_secrets_logs_nobody_out)
{
    struct visitor before = visitor_new();
    assay_ok(server, "secret", "rotate", NULL);
    ck_assert(wait_until(signs_anew, (void *)(uintptr_t)before.jwt, 3000));
    for (int i = 0; i < 6; i++) { /* on whichever worker */
        expect_status(post(&before, "typing", NULL), 200);
        expect_status(post(&newest, "typing", NULL), 200);
    }
}
END_TEST

/* ---- messages ---- */

START_TEST(a_message_is_answered_honestly_and_kept)
{
    struct visitor v = visitor_new();
    struct response *r =
        post(&v, "messages",
             "{\"message\":\"Wo ist <b>meine</b> Bestellung? "
             "\\u00e4\",\"client_message_id\":\"c-1\",\"page_url\":\"https://shop.example/x\",\"page_context\":{\"t\":1}}");
    expect_status(r, 200);
    expect(r, has_exactly(r, "data",
                          "message_id answer_id conversation_id client_message_id content citations low_confidence human_takeover"));
    expect_str(r, "data.conversation_id", v.conversation);
    expect_str(r, "data.client_message_id", "c-1");
    expect(r, bool_at(r, "data.low_confidence") && !bool_at(r, "data.human_takeover") && len_at(r, "data.citations") == 0);
    expect(r, strlen(str_at(r, "data.content")) > 0);
    struct response *list = as(&v, "GET", "conversation/messages", NULL);
    expect(list, len_at(list, "data.messages") == 2 && !bool_at(list, "data.has_more") && !bool_at(list, "data.is_claimed"));
    expect_str(list, "data.messages.0.content", "Wo ist <b>meine</b> Bestellung? ä");
    expect_str(list, "data.messages.0.id", str_at(r, "data.message_id"));
    expect_str(list, "data.messages.1.id", str_at(r, "data.answer_id"));
    expect_str(list, "data.messages.1.role", "assistant");
    expect_int(list, "data.messages.0.page_context.t", 1);
}
END_TEST

START_TEST(an_answer_comes_as_events_too)
{
    struct visitor v = visitor_new();
    struct response *plain = post(&v, "messages", "{\"message\":\"one\",\"client_message_id\":\"c-1\"}");
    struct response *r = post(&v, "messages/stream", "{\"message\":\"one\",\"client_message_id\":\"c-1\"}");
    expect_status(r, 200);
    expect(r, !strcmp(header(r, "Content-Type"), "text/event-stream") && header(r, "X-RateLimit-Limit") &&
                  header(r, "Access-Control-Allow-Origin"));
    char *words = text("%s", ""), *at = r->body, *done = strstr(r->body, "event: done\ndata: ");
    expect(r, !strncmp(r->body, "event: start\ndata: {\"message_id\":\"", 34) && done != NULL &&
                  strstr(r->body, "event: citations\ndata: []\n\n") != NULL);
    while ((at = strstr(at, "event: token\ndata: ")) != NULL) {
        at += strlen("event: token\ndata: ");
        struct json_object *token = json_tokener_parse(text("%.*s", (int)strcspn(at, "\n"), at)), *piece = NULL;
        expect(r, json_object_object_get_ex(token, "text", &piece));
        words = text("%s%s", words, json_object_get_string(piece));
    }
    ck_assert_str_eq(words, str_at(plain, "data.content"));
    done += strlen("event: done\ndata: ");
    ck_assert_msg(strstr(plain->body, text("%.*s", (int)strcspn(done, "\n"), done)) != NULL, "%s\n%s", done,
                  plain->body); /* the same answer */
    expect_error(post(&v, "messages/stream", "{}"), 422, "validation_failed");
    operate("POST", text("conversations/%s/claim", v.conversation), NULL);
    r = post(&v, "messages/stream", "{\"message\":\"two\"}");
    expect(r, r->status == 200 && strstr(r->body, "event: token") == NULL && strstr(r->body, "event: done") &&
                  strstr(r->body, "\"human_takeover\":true"));
}
END_TEST

static const struct {
    const char *method, *path, *body;
    bool chats; /* refused until there is a lead */
} before_lead[] = {
    {"POST", "messages", "{\"message\":\"x\"}", true},
    {"POST", "messages", "{\"message\":\"\"}", true},
    {"POST", "messages/stream", "{\"message\":\"x\"}", true},
    {"POST", "request-human", NULL, true},
    {"GET", "conversation/messages", NULL, false},
    {"POST", "conversation/read", NULL, false},
    {"POST", "conversation/clear", NULL, false},
    {"POST", "conversation/close", NULL, false},
    {"POST", "events", "{\"event\":\"opened\"}", false},
    {"POST", "typing", NULL, false},
    {"POST", "satisfaction", "{\"rating\":5}", false},
    {"DELETE", "me", NULL, false},
};

START_TEST(an_agent_may_want_a_lead_before_it_chats)
{
    char *own = assay_ok(server, "agent", "create", "--workspace", "main", "--name", "L", "--origin", SHOP, "--require-lead", NULL);
    struct response *init = init_with(own, "");
    struct visitor v = visitor_of(init);
    const char *method = before_lead[_i].method, *path = before_lead[_i].path, *body = before_lead[_i].body;
    expect(init, bool_at(init, "data.agent.require_lead_before_chat") && !bool_at(init, "data.lead_captured"));
    struct response *r = as(&v, method, path, body);
    if (!before_lead[_i].chats) {
        expect(r, r->status == 200 || r->status == 202);
        return;
    }
    expect_error(r, 403, "lead_required");
    expect(r, header(r, "X-RateLimit-Limit") && header(r, "Access-Control-Allow-Origin"));
    struct response *list = as(&v, "GET", "conversation/messages", NULL);
    expect(list, len_at(list, "data.messages") == 0);
    expect_str(operate("GET", text("conversations/%s", v.conversation), NULL), "data.status", "open");
    expect_status(post(&v, "leads", "{\"email\":\"nobody\"}"), 422); /* none yet */
    expect_error(as(&v, method, path, body), 403, "lead_required");
    expect_status(post(&v, "leads", text("{\"email\":\"l%d@example.com\"}", _i)), 201);
    for (int i = 0; i < 4; i++) { /* on whichever worker */
        r = as(&v, method, path, body);
        expect(r, r->status == 200 || (body != NULL && strstr(body, "\"\"") && r->status == 422));
    }
    init = init_with(own, text(",\"anon_id\":\"%s\"", v.secret));
    expect(init, bool_at(init, "data.lead_captured"));
    struct visitor other = visitor_of(init_with(own, ""));
    expect_error(as(&other, method, path, body), 403, "lead_required");
    assay_ok(server, "agent", "update", own, "--no-require-lead", NULL);
    expect(init, as(&other, method, path, body)->status != 403);
}
END_TEST

static const struct {
    const char *path, *body;
    int status;
    const char *code, *field;
} bad_bodies[] = {
    {"messages", "{}", 422, "validation_failed", "message"},
    {"messages", NULL, 422, "validation_failed", "message"},
    {"messages", "{\"message\":\"\"}", 422, "validation_failed", "message"},
    {"messages", "{\"message\":5}", 422, "validation_failed", "message"},
    {"messages", "{\"message\":[\"x\"]}", 422, "validation_failed", "message"},
    {"messages", "{\"message\":\"x\",\"client_message_id\":\"\"}", 422, "validation_failed", "client_message_id"},
    {"messages", "{\"message\":\"x\"", 400, "bad_request", NULL},
    {"messages", "{\"message\":NaN}", 400, "bad_request", NULL},
    {"events", "{}", 422, "validation_failed", "events"},
    {"events", "{\"events\":[]}", 422, "validation_failed", "events"},
    {"events", "{\"events\":{}}", 422, "validation_failed", "events"},
    {"events", "{\"events\":[1]}", 422, "validation_failed", "events"},
    {"events", "{\"events\":[{\"kind\":\"Upper\"}]}", 422, "validation_failed", "events"},
    {"events", "{\"events\":[{\"kind\":\"ok\"},{}]}", 422, "validation_failed", "events"},
    {"events", "{\"events\":[{\"kind\":\"ok\",\"at\":\"yesterday\"}]}", 422, "validation_failed", "events"},
    {"events", "{\"event\":\"sp ace\"}", 422, "validation_failed", "event"},
    {"events", "{\"event\":\"a\",\"events\":[{\"kind\":\"b\"}]}", 422, "validation_failed", "events"},
    {"leads", "{}", 422, "validation_failed", "email"},
    {"leads", "{\"email\":\"nobody\"}", 422, "validation_failed", "email"},
    {"leads", "{\"email\":\"a@b@c\"}", 422, "validation_failed", "email"},
    {"leads", "{\"email\":\"a b@c.d\"}", 422, "validation_failed", "email"},
    {"leads", "{\"email\":\"a@b\\r\\nX: y\"}", 422, "validation_failed", "email"},
    {"leads", "{\"email\":\"a@b.c\",\"fields\":[]}", 422, "validation_failed", "fields"},
    {"typing", "{\"typing_status\":\"maybe\"}", 422, "validation_failed", "typing_status"},
    {"satisfaction", "{}", 422, "validation_failed", "rating"},
    {"satisfaction", "{\"rating\":0}", 422, "validation_failed", "rating"},
    {"satisfaction", "{\"rating\":6}", 422, "validation_failed", "rating"},
    {"satisfaction", "{\"rating\":4.5}", 422, "validation_failed", "rating"},
    {"satisfaction", "{\"rating\":\"great\"}", 422, "validation_failed", "rating"},
    {"coupon/apply", "{}", 422, "validation_failed", "code"},
    {"coupon/apply", "{\"code\":\"X\",\"cart\":{}}", 422, "validation_failed", "cart"},
    {"coupon/apply", "{\"code\":\"X\",\"cart\":{\"currency\":\"USD\",\"items\":[{\"wp_id\":1,\"quantity\":1,\"price\":1.5}]}}", 422,
     "validation_failed", "cart"},
    {"coupon/apply", "{\"code\":\"X\"}", 400, "invalid_coupon", NULL},
    {"coupon/apply", "{\"code\":\"X\",\"cart\":{\"currency\":\"USD\",\"items\":[{\"wp_id\":1,\"quantity\":1,\"price\":\"1.50\"}]}}", 400,
     "invalid_coupon", NULL},
};

START_TEST(a_bad_body_is_refused_and_names_the_field)
{
    struct visitor v = visitor_new();
    struct response *r = post(&v, bad_bodies[_i].path, bad_bodies[_i].body);
    expect_error(r, bad_bodies[_i].status, bad_bodies[_i].code);
    if (bad_bodies[_i].field != NULL)
        expect(r, at(r, text("error.errors.%s", bad_bodies[_i].field)) != NULL);
    expect(r, header(r, "X-RateLimit-Limit") != NULL);
}
END_TEST

START_TEST(a_text_is_measured_in_characters)
{
    struct visitor v = visitor_new();
    char *longest = malloc(8001);
    for (int i = 0; i < 4000; i++)
        memcpy(longest + 2 * i, "ä", 2);
    longest[8000] = '\0';
    expect_status(post(&v, "messages", text("{\"message\":\"%s\"}", longest)), 200);
    expect_error(post(&v, "messages", text("{\"message\":\"%sx\"}", longest)), 422, "validation_failed");
    struct response *r = as(&v, "GET", "conversation/messages", NULL);
    expect(r, len_at(r, "data.messages") == 2);
}
END_TEST

START_TEST(repeats_get_the_first_answer_and_nothing_is_kept_twice)
{
    struct visitor v = visitor_new();
    struct response *first = post(&v, "messages", "{\"message\":\"one\",\"client_message_id\":\"c-1\"}");
    struct response *again = post(&v, "messages", "{\"message\":\"other\",\"client_message_id\":\"c-1\"}");
    ck_assert_str_eq(first->body, again->body);
    const char *key = "Idempotency-Key: k-1";
    struct response *a = http(server, .method = "POST", .path = "/api/v1/widget/messages", .key = v.jwt, .headers = {JSON, FROM_SHOP, key},
                              .body = "{\"message\":\"two\"}");
    struct response *b = http(server, .method = "POST", .path = "/api/v1/widget/messages", .key = v.jwt, .headers = {JSON, FROM_SHOP, key},
                              .body = "{\"message\":\"two\"}");
    ck_assert_str_eq(a->body, b->body);
    expect(a, header(a, "Idempotent-Replayed") == NULL);
    expect(b, header(b, "Idempotent-Replayed") && !strcmp(header(b, "Idempotent-Replayed"), "true"));
    expect_error(http(server, .method = "POST", .path = "/api/v1/widget/messages", .key = v.jwt, .headers = {JSON, FROM_SHOP, key},
                      .body = "{\"message\":\"three\"}"),
                 422, "idempotency_key_reused");
    struct visitor w = visitor_new();
    struct response *other = http(server, .method = "POST", .path = "/api/v1/widget/messages", .key = w.jwt,
                                  .headers = {JSON, FROM_SHOP, key}, .body = "{\"message\":\"two\"}");
    expect(other, other->status == 200 && header(other, "Idempotent-Replayed") == NULL);
    struct response *list = as(&v, "GET", "conversation/messages", NULL);
    expect(list, len_at(list, "data.messages") == 4);
}
END_TEST

static const struct {
    const char *path, *body, *other;
    int status;
} idempotent[] = {
    {"messages", "{\"message\":\"two\"}", "{\"message\":\"three\"}", 200},
    {"messages/stream", "{\"message\":\"two\"}", "{\"message\":\"three\"}", 200},
    {"leads", "{\"email\":\"idem@example.com\"}", "{\"email\":\"other@example.com\"}", 201},
};

static struct response *under_key(const struct visitor *v, const char *path, const char *key, const char *body)
{
    return http(server, .method = "POST", .path = text("/api/v1/widget/%s", path), .key = v->jwt,
                .headers = {JSON, FROM_SHOP, text("Idempotency-Key: %s", key)}, .body = body);
}

START_TEST(an_idempotency_key_is_good_for_one_body_of_one_visitor)
{
    struct visitor v = visitor_new(), w = visitor_new();
    const char *path = idempotent[_i].path;
    struct response *first = under_key(&v, path, "key", idempotent[_i].body);
    expect_status(first, idempotent[_i].status);
    expect(first, header(first, "Idempotent-Replayed") == NULL);
    struct response *again = under_key(&v, path, "key", idempotent[_i].body);
    expect_status(again, idempotent[_i].status);
    expect(again, header(again, "Idempotent-Replayed") && !strcmp(again->body, first->body));
    expect_error(under_key(&v, path, "key", idempotent[_i].other), 422, "idempotency_key_reused");
    struct response *others = under_key(&w, path, "key", idempotent[_i].other);
    expect(others, others->status == idempotent[_i].status && header(others, "Idempotent-Replayed") == NULL);
    expect_error(under_key(&v, path, text("%0256d", 1), idempotent[_i].body), 400, "bad_request");
    expect_error(under_key(&v, path, "once", "{}"), 422, "validation_failed"); /* what was refused is not kept */
    expect_status(under_key(&v, path, "once", idempotent[_i].body), 200);
    struct response *list = as(&v, "GET", "conversation/messages", NULL);
    expect(list, len_at(list, "data.messages") == (_i == 2 ? 0 : 4));
}
END_TEST

START_TEST(pages_of_messages_follow_cursors_and_304_without_news)
{
    struct visitor v = visitor_new();
    for (int i = 0; i < 3; i++)
        expect_status(post(&v, "messages", text("{\"message\":\"m%d\"}", i)), 200);
    struct response *all = as(&v, "GET", "conversation/messages", NULL);
    expect(all, len_at(all, "data.messages") == 6 && !bool_at(all, "data.has_more"));
    struct response *last = as(&v, "GET", "conversation/messages?limit=2", NULL);
    expect(last, len_at(last, "data.messages") == 2 && bool_at(last, "data.has_more"));
    expect_str(last, "data.messages.1.id", str_at(all, "data.messages.5.id"));
    struct response *before = as(&v, "GET", text("conversation/messages?limit=2&before=%s", str_at(last, "data.messages.0.id")), NULL);
    expect_str(before, "data.messages.1.id", str_at(all, "data.messages.3.id"));
    struct response *after = as(&v, "GET", text("conversation/messages?limit=4&after=%s", str_at(all, "data.messages.0.id")), NULL);
    expect(after, len_at(after, "data.messages") == 4 && bool_at(after, "data.has_more"));
    expect_str(after, "data.messages.0.id", str_at(all, "data.messages.1.id"));
    static const char *const wrong[] = {"limit=0", "limit=101", "limit=x", "after=x", "before=01ARZ"};
    for (size_t i = 0; i < COUNT(wrong); i++)
        expect_error(as(&v, "GET", text("conversation/messages?%s", wrong[i]), NULL), 422, "validation_failed");
    char *none_match = text("If-None-Match: %s", header(all, "ETag"));
    struct response *same = http(server, .path = "/api/v1/widget/conversation/messages", .key = v.jwt, .headers = {FROM_SHOP, none_match});
    expect_status(same, 304);
    expect(same, same->body_size == 0 && header(same, "X-RateLimit-Remaining") && header(same, "Access-Control-Allow-Origin"));
    struct visitor w = visitor_new(); /* another's tag is never the same */
    for (int i = 0; i < 3; i++)
        post(&w, "messages", text("{\"message\":\"m%d\"}", i));
    expect_status(http(server, .path = "/api/v1/widget/conversation/messages", .key = w.jwt, .headers = {FROM_SHOP, none_match}), 200);
    expect_status(operate("POST", text("conversations/%s/messages", v.conversation), "{\"message\":\"hi\"}"), 201);
    expect_status(http(server, .path = "/api/v1/widget/conversation/messages", .key = v.jwt, .headers = {FROM_SHOP, none_match}), 200);
}
END_TEST

START_TEST(marks_are_idempotent)
{
    struct visitor v = visitor_new();
    post(&v, "messages", "{\"message\":\"x\"}");
    for (int i = 0; i < 2; i++) {
        struct response *r = post(&v, "request-human", NULL);
        expect_status(r, 200);
        expect_str(r, "data.status", i == 0 ? "waiting" : "closed");
        r = post(&v, "conversation/read", "{}");
        expect(r, r->status == 200 && has(r, "data.read_up_to"));
        r = post(&v, "conversation/clear", NULL);
        expect_status(r, 200);
        r = as(&v, "GET", "conversation/messages", NULL);
        expect(r, len_at(r, "data.messages") == 0);
        r = post(&v, "conversation/close", NULL);
        expect_str(r, "data.status", "closed");
    }
    struct response *seen = operate("GET", text("conversations/%s", v.conversation), NULL);
    expect(seen, len_at(seen, "data.messages") == 2);
    expect_str(seen, "data.status", "closed");
    expect_status(post(&v, "messages", "{\"message\":\"y\"}"), 200);
    struct response *open = as(&v, "GET", "conversation/messages", NULL);
    expect(open, len_at(open, "data.messages") == 2);
}
END_TEST

/* ---- what visitors leave ---- */

START_TEST(a_lead_is_new_once_and_then_brought_up_to_date)
{
    struct visitor v = visitor_new(), w = visitor_new();
    struct response *first =
        post(&v, "leads", "{\"email\":\"Ann@Example.COM\",\"name\":\"Ann\",\"phone\":\"1\",\"fields\":{\"company\":\"X\"}}");
    expect_status(first, 201);
    struct response *again = post(&w, "leads", "{\"email\":\"ann@example.com\"}");
    expect_status(again, 200);
    expect_str(again, "data.lead_id", str_at(first, "data.lead_id"));
    expect(again, strstr(again->body, "Ann\"") == NULL && strstr(again->body, "company") == NULL); /* nothing of the other visitor's */
    struct response *init = init_with(agent, text(",\"anon_id\":\"%s\"", v.secret));
    expect(init, bool_at(init, "data.lead_captured"));
    struct response *list = operate("GET", "leads?per_page=10", NULL);
    expect_str(list, "data.0.name", "Ann");
    expect_str(list, "data.0.fields.company", "X");
    expect(list, header(list, "X-RateLimit-Limit") == NULL);
    expect(first, !strcmp(header(first, "X-RateLimit-Limit"), "30"));
}
END_TEST

START_TEST(who_knows_an_address_reads_changes_and_erases_nothing_of_its_lead)
{
    struct visitor ann = visitor_new(), eve = visitor_new();
    expect_status(post(&ann, "leads", "{\"email\":\"ann@safe.example\",\"name\":\"Ann\",\"phone\":\"555\",\"fields\":{\"vat\":\"7\"}}"),
                  201);
    struct response *r =
        post(&eve, "leads", "{\"email\":\"ANN@safe.example\",\"name\":\"Eve\",\"phone\":\"666\",\"fields\":{\"vat\":\"8\"}}");
    expect_status(r, 200);
    expect(r, has_exactly(r, "data", "lead_id conversation_id email lead_captured") && strstr(r->body, "ann@") == NULL);
    expect_str(r, "data.conversation_id", eve.conversation);
    expect_str(r, "data.email", "ANN@safe.example");
    struct response *list = operate("GET", "leads?per_page=10", NULL);
    expect_str(list, "data.0.email", "ann@safe.example");
    expect_str(list, "data.0.name", "Ann");
    expect_str(list, "data.0.phone", "555");
    expect_str(list, "data.0.fields.vat", "7");
    expect_str(list, "data.0.visitor_id", ann.id);
    expect_str(list, "data.0.conversation_id", ann.conversation);
    expect_str(list, "data.0.others.0.visitor_id", eve.id); /* and the operator is told who said what */
    expect_str(list, "data.0.others.0.phone", "666");
    expect_status(as(&eve, "DELETE", "me", NULL), 200);
    list = operate("GET", "leads?per_page=10", NULL);
    expect_str(list, "data.0.name", "Ann");
    expect(list, len_at(list, "data.0.others") == 0 && strstr(list->body, "Eve") == NULL && strstr(list->body, eve.id) == NULL);
    expect_status(as(&ann, "DELETE", "me", NULL), 200);
    list = operate("GET", "leads?per_page=10", NULL);
    expect(list, strcasestr(list->body, "ann@safe.example") == NULL);
    assay_ok(server, "check", NULL);
}
END_TEST

START_TEST(events_are_kept_as_a_batch_or_alone)
{
    struct visitor v = visitor_new();
    struct response *r =
        post(&v, "events",
             "{\"events\":[{\"kind\":\"page.view\",\"payload\":{\"a\":[1]},\"at\":\"2026-05-07T13:00:00+02:00\"},{\"kind\":\"b\"}]}");
    expect_status(r, 202);
    expect_int(r, "data.accepted", 2);
    expect_int(post(&v, "events", "{\"event\":\"open\",\"metadata\":{\"x\":1}}"), "data.accepted", 1);
    struct response *list = operate("GET", text("events?agent_id=%s", agent), NULL);
    expect_str(list, "data.0.kind", "open");
    expect_int(list, "data.0.payload.x", 1);
    expect_str(list, "data.2.at", "2026-05-07T11:00:00Z");
    expect(r, !strcmp(header(r, "X-RateLimit-Limit"), "300"));
    char *batch = text("{\"events\":[{\"kind\":\"e\"}");
    for (int i = 1; i < 50; i++)
        batch = text("%s,{\"kind\":\"e\"}", batch);
    expect_int(post(&v, "events", text("%s]}", batch)), "data.accepted", 50);
    expect_error(post(&v, "events", text("%s,{\"kind\":\"e\"}]}", batch)), 422, "validation_failed");
}
END_TEST

/* as RFC 3339 writes them, and what only looks like it */
static const struct {
    const char *at, *kept; /* NULL: refused */
} times[] = {
    {"2026-05-07T13:00:00Z", "2026-05-07T13:00:00Z"},
    {"2026-05-07t13:00:00z", "2026-05-07T13:00:00Z"},
    {"2026-05-07T13:00:00.123456789Z", "2026-05-07T13:00:00Z"},
    {"2026-05-07T23:30:00-01:30", "2026-05-08T01:00:00Z"},
    {"2024-02-29T00:00:00Z", "2024-02-29T00:00:00Z"},
    {"2016-12-31T23:59:60Z", "2017-01-01T00:00:00Z"},
    {"2026-05-07T13:00:00", NULL},
    {"2026-05-07 13:00:00Z", NULL},
    {"2026-05-07T13:00:00.Z", NULL},
    {"2026-05-07T13:00:00.1e9Z", NULL},
    {"2026-05-07T13:00:00.9e300Z", NULL},
    {"2026-05-07T13:00:00+-5:-3", NULL},
    {"2026-05-07T13:00:00+24:00", NULL},
    {"2026-05-07T13:00:00+01:60", NULL},
    {"2026-05-07T13:00:00Zx", NULL},
    {"2026- 5- 7T 1: 0: 0Z", NULL},
    {"2026-5-7T1:0:0Z", NULL},
    {"2026-02-29T00:00:00Z", NULL},
    {"2026-04-31T00:00:00Z", NULL},
    {"2026-00-01T00:00:00Z", NULL},
    {"2026-13-01T00:00:00Z", NULL},
    {"2026-05-07T24:00:00Z", NULL},
    {"1969-12-31T23:59:59Z", NULL},
    {"1970-01-01T00:30:00+01:00", NULL},
    {"", NULL},
};

START_TEST(a_time_is_what_RFC_3339_says)
{
    struct visitor v = visitor_new();
    struct response *r = post(&v, "events", text("{\"events\":[{\"kind\":\"timed\",\"at\":\"%s\"}]}", times[_i].at));
    if (times[_i].kept == NULL)
        expect_error(r, 422, "validation_failed");
    else {
        expect_status(r, 202);
        expect_str(operate("GET", text("events?agent_id=%s", agent), NULL), "data.0.at", times[_i].kept);
    }
}
END_TEST

START_TEST(the_first_rating_stays)
{
    struct visitor v = visitor_new();
    struct response *r = post(&v, "satisfaction", "{\"rating\":\"positive\"}");
    expect_int(r, "data.rating", 5);
    expect_int(post(&v, "satisfaction", "{\"rating\":1,\"comment\":\"changed my mind\"}"), "data.rating", 5);
    struct response *list = operate("GET", "ratings", NULL);
    expect_str(list, "data.0.comment", "changed my mind");
    expect_int(list, "data.0.rating", 5);
    expect(r, !strcmp(header(r, "X-RateLimit-Limit"), "60"));
}
END_TEST

static long commits(void)
{
    struct json_object *rows = assay_list(server, "stats", NULL);
    for (size_t i = 0; i < json_object_array_length(rows); i++) {
        struct json_object *row = json_object_array_get_idx(rows, i), *role = NULL, *batches = NULL;
        json_object_object_get_ex(row, "process", &role);
        json_object_object_get_ex(row, "batches", &batches);
        if (role && !strcmp(json_object_get_string(role), "writer") && batches)
            return json_object_get_int64(batches);
    }
    ck_abort_msg("no writer in assay stats: %s", json_object_to_json_string(rows));
}

START_TEST(typing_shows_on_the_other_side_and_writes_nothing)
{
    struct visitor v = visitor_new();
    struct response *r = NULL;
    bool quiet = false;
    for (int round = 0; round < 5 && !quiet; round++) { /* the writer has commits of its own, now and then */
        long before = commits();
        for (int i = 0; i < 20; i++)
            r = post(&v, "typing", i % 2 ? NULL : "{\"typing_status\":\"on\"}");
        quiet = commits() == before;
    }
    ck_assert(quiet);
    expect(r, bool_at(r, "data.typing") && has(r, "data.expires_at") && !strcmp(header(r, "X-RateLimit-Limit"), "600"));
    struct response *seen = operate("GET", text("conversations/%s", v.conversation), NULL);
    expect(seen, bool_at(seen, "data.visitor_typing") && !bool_at(seen, "data.operator_typing"));
    expect_status(operate("POST", text("conversations/%s/typing", v.conversation), NULL), 200);
    struct response *mine = as(&v, "GET", "conversation/messages", NULL);
    expect(mine, bool_at(mine, "data.operator_typing"));
    post(&v, "typing", "{\"typing_status\":\"off\"}");
    operate("POST", text("conversations/%s/typing", v.conversation), "{\"typing_status\":\"off\"}");
    seen = operate("GET", text("conversations/%s", v.conversation), NULL);
    expect(seen, !bool_at(seen, "data.visitor_typing") && !bool_at(seen, "data.operator_typing"));
}
END_TEST

/* ---- operators ---- */

START_TEST(an_operator_takes_over_answers_and_gives_back)
{
    struct visitor v = visitor_new();
    char *path = text("conversations/%s", v.conversation);
    expect_status(post(&v, "request-human", NULL), 200);
    struct response *r = operate("GET", "conversations?status=waiting", NULL);
    expect_str(r, "data.0.id", v.conversation);
    expect_str(operate("POST", text("%s/claim", path), NULL), "data.status", "claimed");
    expect_status(operate("POST", text("%s/claim", path), NULL), 200);
    char *other = key_new(server, "main", "conversations:write", NULL);
    expect_error(http(server, .method = "POST", .path = text("/api/v1/%s/claim", path), .key = other), 409, "conflict");
    r = post(&v, "messages", "{\"message\":\"anybody?\"}");
    expect(r,
           bool_at(r, "data.human_takeover") && has(r, "data.content") && at(r, "data.content") == NULL && at(r, "data.answer_id") == NULL);
    r = operate("POST", text("%s/messages", path), "{\"message\":\"Here I am\"}");
    expect_status(r, 201);
    expect_str(r, "data.role", "operator");
    r = as(&v, "GET", "conversation/messages", NULL);
    expect_str(r, "data.messages.1.content", "Here I am");
    expect(r, bool_at(r, "data.is_claimed"));
    expect_str(operate("POST", text("%s/release", path), NULL), "data.status", "open");
    r = post(&v, "messages", "{\"message\":\"and now?\"}");
    expect(r, !bool_at(r, "data.human_takeover"));
}
END_TEST

START_TEST(lists_go_on_behind_their_last_id)
{
    for (int i = 0; i < 12; i++)
        visitor_new();
    struct response *page = operate("GET", "conversations?per_page=10", NULL);
    expect(page, len_at(page, "data") == 10 && bool_at(page, "meta.has_more"));
    expect_str(page, "meta.next_after", str_at(page, "data.9.id"));
    struct response *next = operate("GET", text("conversations?per_page=10&after=%s", str_at(page, "meta.next_after")), NULL);
    expect(next, len_at(next, "data") >= 2 && strcmp(str_at(next, "data.0.id"), str_at(page, "data.9.id")) < 0);
    expect_status(http(server, .path = "/api/v1/conversations?per_page=10", .key = operators,
                       .headers = {text("If-None-Match: %s", header(page, "ETag"))}),
                  304);
    static const char *const wrong[] = {"per_page=5", "status=old", "after=x", "agent_id=x", "since=x", "until=2026"};
    for (size_t i = 0; i < COUNT(wrong); i++)
        expect_error(operate("GET", text("conversations?%s", wrong[i]), NULL), 422, "validation_failed");
    expect(page, len_at(operate("GET", "conversations?until=2026-01-01T00:00:00Z", NULL), "data") == 0);
    expect(page, len_at(operate("GET", "conversations?since=2026-01-01T00:00:00Z&per_page=10", NULL), "data") == 10);
}
END_TEST

static const struct {
    const char *method, *path, *scope; /* the path's %s: a conversation */
} operated[] = {
    {"GET", "conversations", "conversations:read"},
    {"GET", "conversations/%s", "conversations:read"},
    {"POST", "conversations/%s/messages", "conversations:write"},
    {"POST", "conversations/%s/claim", "conversations:write"},
    {"POST", "conversations/%s/release", "conversations:write"},
    {"POST", "conversations/%s/typing", "conversations:write"},
    {"GET", "leads", "conversations:read"},
    {"GET", "events", "conversations:read"},
    {"GET", "ratings", "conversations:read"},
};

START_TEST(operators_need_their_scope_and_see_their_workspace_alone)
{
    struct visitor v = visitor_new();
    post(&v, "leads", "{\"email\":\"iso@example.com\"}");
    post(&v, "events", "{\"event\":\"iso\"}");
    post(&v, "satisfaction", "{\"rating\":3}");
    bool about_one = strstr(operated[_i].path, "%s") != NULL, writes = operated[_i].method[0] == 'P';
    char *path = text("/api/v1/%s", operated[_i].path);
    if (about_one)
        path = text("/api/v1/conversations/%s%s", v.conversation, strstr(operated[_i].path, "%s") + 2);
    const char *body = writes ? "{\"message\":\"x\"}" : NULL;
    expect_error(http(server, .method = operated[_i].method, .path = path, .key = "", .body = body, .headers = {JSON}), 401,
                 "unauthorized");
    expect_error(http(server, .method = operated[_i].method, .path = path, .key = server->key, .body = body, .headers = {JSON}), 403,
                 "insufficient_scope");
    char *half = key_new(server, "main", writes ? "conversations:read" : "conversations:write", NULL);
    expect_error(http(server, .method = operated[_i].method, .path = path, .key = half, .body = body, .headers = {JSON}), 403,
                 "insufficient_scope");
    char *name = text("other-%d", _i);
    assay_ok(server, "workspace", "create", name, NULL);
    char *foreign = key_new(server, name, "conversations:read", "conversations:write", NULL);
    struct response *r = http(server, .method = operated[_i].method, .path = path, .key = foreign, .body = body, .headers = {JSON});
    if (about_one)
        expect_error(r, 404, "not_found");
    else
        expect(r, r->status == 200 && len_at(r, "data") == 0);
    if (!about_one) {
        r = http(server, .path = text("%s?agent_id=%s", path, agent), .key = foreign);
        expect(r, r->status == 200 && len_at(r, "data") == 0);
    }
    if (about_one)
        expect_error(http(server, .method = operated[_i].method,
                          .path = text("/api/v1/conversations/x%s", strstr(operated[_i].path, "%s") + 2), .key = operators, .body = body,
                          .headers = {JSON}),
                     404, "not_found");
}
END_TEST

/* ---- erasure ---- */

START_TEST(an_erased_visitor_is_gone_everywhere)
{
    struct visitor v = visitor_new();
    post(&v, "messages", "{\"message\":\"forget me, walrus\"}");
    post(&v, "leads", "{\"email\":\"walrus@example.com\",\"name\":\"Wally\"}");
    post(&v, "events", "{\"event\":\"walrus\"}");
    post(&v, "satisfaction", "{\"rating\":1,\"comment\":\"walrus\"}");
    struct response *r = as(&v, "DELETE", "me", NULL);
    expect_status(r, 200);
    expect(r, bool_at(r, "data.deleted"));
    for (int i = 0; i < 3; i++)
        expect_status(as(&v, "DELETE", "me", NULL), 200);
    static const char *const lists[] = {"conversations", "leads", "events", "ratings"};
    for (size_t i = 0; i < COUNT(lists); i++) {
        struct response *list = operate("GET", text("%s?per_page=100", lists[i]), NULL);
        expect(list,
               strcasestr(list->body, "walrus") == NULL && strstr(list->body, v.id) == NULL && strstr(list->body, v.conversation) == NULL);
    }
    expect_error(operate("GET", text("conversations/%s", v.conversation), NULL), 404, "not_found");
    expect_error(operate("POST", text("conversations/%s/messages", v.conversation), "{\"message\":\"x\"}"), 404, "not_found");
    for (size_t i = 1; i < COUNT(surface) - 1; i++)
        if (strcmp(surface[i].path, "me") != 0)
            expect_error(as(&v, surface[i].method, surface[i].path, NULL), 401, "unauthorized");
    ck_assert_str_ne(visitor_of(init_with(agent, text(",\"anon_id\":\"%s\"", v.secret))).id, v.id);
    assay_ok(server, "check", NULL);
}
END_TEST

START_TEST(the_token_of_an_erased_visitor_is_charged_to_its_address)
{
    struct visitor v = visitor_new();
    expect_status(as(&v, "DELETE", "me", NULL), 200);
    for (int i = 0; i < 2; i++) { /* again, if a window ended meanwhile */
        struct response *bad = http(server, .path = "/api/v1/widget/conversation/messages", .key = "a.b.c", .headers = {FROM_SHOP});
        struct response *gone = as(&v, "GET", "conversation/messages", NULL);
        expect_error(bad, 401, "unauthorized");
        expect_error(gone, 401, "unauthorized");
        if (strcmp(header(bad, "X-RateLimit-Reset"), header(gone, "X-RateLimit-Reset")) != 0)
            continue;
        ck_assert_int_eq(atoi(header(gone, "X-RateLimit-Remaining")), atoi(header(bad, "X-RateLimit-Remaining")) - 1);
        return;
    }
}
END_TEST

static bool nothing_left(void *own)
{
    struct response *events = http(own, .path = "/api/v1/events", .key = operators),
                    *leads = http(own, .path = "/api/v1/leads", .key = operators);
    return len_at(events, "data") == 0 && len_at(leads, "data") == 1;
}

START_TEST(what_is_too_old_goes_when_the_operator_says_so)
{
    struct server *own = server_new(&(struct server_options){0});
    server_start(own);
    operators = key_new(own, "main", "conversations:read", NULL);
    char *id = assay_ok(own, "agent", "create", "--workspace", "main", "--name", "R", "--origin", "*", NULL);
    struct response *r =
        http(own, .method = "POST", .path = "/api/v1/widget/init", .key = "", .headers = {JSON}, .body = text("{\"agent_id\":\"%s\"}", id));
    const char *jwt = str_at(r, "data.jwt");
    http(own, .method = "POST", .path = "/api/v1/widget/events", .key = jwt, .headers = {JSON}, .body = "{\"event\":\"old\"}");
    http(own, .method = "POST", .path = "/api/v1/widget/leads", .key = jwt, .headers = {JSON}, .body = "{\"email\":\"a@b.example\"}");
    ck_assert(!nothing_left(own));
    server_stop(own);
    server_configure(own, "retention: { events: 1ms }\n");
    server_start(own);
    ck_assert(wait_until(nothing_left, own, 5000));
    expect(r, len_at(http(own, .path = "/api/v1/conversations", .key = operators), "data") == 1);
    assay_ok(own, "check", NULL);
    server_free(own);
}
END_TEST

/* ---- limits ---- */

START_TEST(one_session_never_spends_anothers_budget)
{
    struct visitor v = visitor_new(), w = visitor_new();
    struct response *r = NULL;
    for (int i = 0; i < 32; i++)
        r = post(&v, "leads", "{\"email\":\"limit@example.com\"}");
    if (r->status == 429) { /* else a window ended meanwhile */
        expect_error(r, 429, "rate_limited");
        expect(r, header(r, "Retry-After") && !strcmp(header(r, "X-RateLimit-Remaining"), "0") && header(r, "Access-Control-Allow-Origin"));
        /* going on with the same conversation refills nothing */
        struct visitor same = visitor_of(init_with(agent, text(",\"anon_id\":\"%s\"", v.secret)));
        struct response *again = post(&same, "leads", "{\"email\":\"limit@example.com\"}");
        expect(again, again->status == 429 || strcmp(header(again, "X-RateLimit-Reset"), header(r, "X-RateLimit-Reset")) != 0);
    }
    struct response *other = post(&w, "leads", "{\"email\":\"limit2@example.com\"}");
    expect(other, other->status == 201 && !strcmp(header(other, "X-RateLimit-Remaining"), "29"));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("widget");
    TCase *tc = harness_case(suite, "widget");
    tcase_add_unchecked_fixture(tc, setup, teardown);
    tcase_add_test(tc, init_opens_a_conversation_and_a_secret_goes_on_with_it);
    tcase_add_test(tc, an_unknown_secret_is_a_new_visitor_with_a_secret_of_its_own);
    tcase_add_test(tc, init_finds_the_last_thirty_messages);
    tcase_add_loop_test(tc, a_bad_init_is_refused_with_limits_and_cors_all_the_same, 0, (int)COUNT(bad_inits));
    tcase_add_test(tc, init_takes_a_flat_form_too);
    tcase_add_test(tc, a_body_over_64_KiB_is_too_large);
    tcase_add_loop_test(tc, a_preflight_is_answered_free_of_charge, 0, (int)COUNT(surface));
    tcase_add_loop_test(tc, refusals_carry_cors_and_limits, 0, (int)COUNT(surface));
    tcase_add_test(tc, no_other_surface_has_cors);
    tcase_add_loop_test(tc, the_origin_is_judged_on_every_call, 0, (int)COUNT(origins));
    tcase_add_test(tc, an_agent_that_is_unpublished_stops_within_a_second);
    tcase_add_test(tc, tokens_that_are_not_ours_are_401);
    tcase_add_test(tc, a_token_ends_with_its_life);
    tcase_add_test(tc, rotating_the_secrets_logs_nobody_out);
    tcase_add_test(tc, a_message_is_answered_honestly_and_kept);
    tcase_add_test(tc, an_answer_comes_as_events_too);
    tcase_add_loop_test(tc, an_agent_may_want_a_lead_before_it_chats, 0, (int)COUNT(before_lead));
    tcase_add_loop_test(tc, a_bad_body_is_refused_and_names_the_field, 0, (int)COUNT(bad_bodies));
    tcase_add_test(tc, a_text_is_measured_in_characters);
    tcase_add_test(tc, repeats_get_the_first_answer_and_nothing_is_kept_twice);
    tcase_add_loop_test(tc, an_idempotency_key_is_good_for_one_body_of_one_visitor, 0, (int)COUNT(idempotent));
    tcase_add_test(tc, pages_of_messages_follow_cursors_and_304_without_news);
    tcase_add_test(tc, marks_are_idempotent);
    tcase_add_test(tc, a_lead_is_new_once_and_then_brought_up_to_date);
    tcase_add_test(tc, who_knows_an_address_reads_changes_and_erases_nothing_of_its_lead);
    tcase_add_test(tc, events_are_kept_as_a_batch_or_alone);
    tcase_add_loop_test(tc, a_time_is_what_RFC_3339_says, 0, (int)COUNT(times));
    tcase_add_test(tc, the_first_rating_stays);
    tcase_add_test(tc, typing_shows_on_the_other_side_and_writes_nothing);
    tcase_add_test(tc, an_operator_takes_over_answers_and_gives_back);
    tcase_add_test(tc, lists_go_on_behind_their_last_id);
    tcase_add_loop_test(tc, operators_need_their_scope_and_see_their_workspace_alone, 0, (int)COUNT(operated));
    tcase_add_test(tc, an_erased_visitor_is_gone_everywhere);
    tcase_add_test(tc, the_token_of_an_erased_visitor_is_charged_to_its_address);
    tcase_add_test(tc, what_is_too_old_goes_when_the_operator_says_so);
    tcase_add_test(tc, one_session_never_spends_anothers_budget);
    return harness_main(suite);
}
