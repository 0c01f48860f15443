/*
 * The widget over HTTP: how a conversation starts, which messages are accepted, and which are
 * refused.
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

/* ---- init ---- */

START_TEST(init_opens_a_conversation_and_a_secret_continues_it)
{
    struct response *r =
        init_with(agent, ",\"page_url\":\"https://shop.example/"
                         "p\",\"locale\":\"de\",\"page_title\":\"P\",\"referrer\":\"https://r\"");
    struct visitor v = visitor_of(r);
    expect_int(r, "data.expires_in", 3600);
    expect_str(r, "data.agent.id", agent);
    expect(r, has_exactly(r, "data.agent",
                          "id name is_published theme starter_prompts lead_form_fields "
                          "language_default require_lead_before_chat"));
    expect(r, len_at(r, "data.messages") == 0 && !bool_at(r, "data.lead_captured") &&
                  has(r, "data.expires_at"));
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

START_TEST(an_unknown_secret_makes_a_new_visitor)
{
    struct visitor v = visitor_of(
                       init_with(agent, ",\"anon_id\":\"anon_0000000000000000000000000000\"")),
                   w = visitor_new();
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
    {"agent_id=01ARZ3NDEKTSV4RRFFQ69G5FAV", "application/x-www-form-urlencoded", 404,
     "agent_not_found"},
    {"agent_id=x", "text/plain", 415, "unsupported_media_type"},
    {"{}", "application/jsonx", 415, "unsupported_media_type"},
};

START_TEST(a_refused_init_has_limit_and_cors_headers)
{
    struct response *r = http(server, .method = "POST", .path = "/api/v1/widget/init", .key = "",
                              .headers = {text("Content-Type: %s", bad_inits[_i].type), FROM_SHOP},
                              .body = bad_inits[_i].body);
    expect_error(r, bad_inits[_i].status, bad_inits[_i].code);
    expect(r, header(r, "X-RateLimit-Limit") && header(r, "X-RateLimit-Remaining") &&
                  header(r, "X-RateLimit-Reset"));
    expect(r, header(r, "Access-Control-Allow-Origin") &&
                  !strcmp(header(r, "Access-Control-Allow-Origin"), SHOP));
}
END_TEST

START_TEST(init_accepts_a_flat_form)
{
    struct response *r = http(
        server, .method = "POST", .path = "/api/v1/widget/init", .key = "", .headers = {FROM_SHOP},
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
    struct response *r = http(server, .method = "POST", .path = "/api/v1/widget/init", .key = "",
                              .headers = {JSON, FROM_SHOP}, .body = body);
    expect_error(r, 413, "payload_too_large");
    expect(r, header(r, "Access-Control-Allow-Origin") != NULL &&
                  header(r, "X-RateLimit-Limit") != NULL);
}
END_TEST

/* ---- messages ---- */

START_TEST(a_message_is_answered_and_stored)
{
    struct visitor v = visitor_new();
    struct response *r = post(&v, "messages",
                              "{\"message\":\"Wo ist <b>meine</b> Bestellung? "
                              "\\u00e4\",\"client_message_id\":\"c-1\",\"page_url\":\"https://"
                              "shop.example/x\",\"page_context\":{\"t\":1}}");
    expect_status(r, 200);
    expect(r, has_exactly(r, "data",
                          "message_id answer_id conversation_id client_message_id content "
                          "citations low_confidence human_takeover"));
    expect_str(r, "data.conversation_id", v.conversation);
    expect_str(r, "data.client_message_id", "c-1");
    expect(r, bool_at(r, "data.low_confidence") && !bool_at(r, "data.human_takeover") &&
                  len_at(r, "data.citations") == 0);
    expect(r, strlen(str_at(r, "data.content")) > 0);
    struct response *list = as(&v, "GET", "conversation/messages", NULL);
    expect(list, len_at(list, "data.messages") == 2 && !bool_at(list, "data.has_more") &&
                     !bool_at(list, "data.is_claimed"));
    expect_str(list, "data.messages.0.content", "Wo ist <b>meine</b> Bestellung? ä");
    expect_str(list, "data.messages.0.id", str_at(r, "data.message_id"));
    expect_str(list, "data.messages.1.id", str_at(r, "data.answer_id"));
    expect_str(list, "data.messages.1.role", "assistant");
    expect_int(list, "data.messages.0.page_context.t", 1);
}
END_TEST

START_TEST(an_answer_can_be_a_stream_of_events)
{
    struct visitor v = visitor_new();
    struct response *plain =
        post(&v, "messages", "{\"message\":\"one\",\"client_message_id\":\"c-1\"}");
    struct response *r =
        post(&v, "messages/stream", "{\"message\":\"one\",\"client_message_id\":\"c-1\"}");
    expect_status(r, 200);
    expect(r, !strcmp(header(r, "Content-Type"), "text/event-stream") &&
                  header(r, "X-RateLimit-Limit") && header(r, "Access-Control-Allow-Origin"));
    char *words = text("%s", ""), *at = r->body, *done = strstr(r->body, "event: done\ndata: ");
    expect(r, !strncmp(r->body, "event: start\ndata: {\"message_id\":\"", 34) && done != NULL &&
                  strstr(r->body, "event: citations\ndata: []\n\n") != NULL);
    while ((at = strstr(at, "event: token\ndata: ")) != NULL) {
        at += strlen("event: token\ndata: ");
        struct json_object *token = json_tokener_parse(text("%.*s", (int)strcspn(at, "\n"), at)),
                           *piece = NULL;
        expect(r, json_object_object_get_ex(token, "text", &piece));
        words = text("%s%s", words, json_object_get_string(piece));
    }
    ck_assert_str_eq(words, str_at(plain, "data.content"));
    done += strlen("event: done\ndata: ");
    ck_assert_msg(strstr(plain->body, text("%.*s", (int)strcspn(done, "\n"), done)) != NULL,
                  "%s\n%s", done, plain->body); /* the same answer */
    expect_error(post(&v, "messages/stream", "{}"), 422, "validation_failed");
    operate("POST", text("conversations/%s/claim", v.conversation), NULL);
    r = post(&v, "messages/stream", "{\"message\":\"two\"}");
    expect(r, r->status == 200 && strstr(r->body, "event: token") == NULL &&
                  strstr(r->body, "event: done") && strstr(r->body, "\"human_takeover\":true"));
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

START_TEST(an_agent_can_require_a_lead_before_a_chat)
{
    char *own = assay_ok(server, "agent", "create", "--workspace", "main", "--name", "L",
                         "--origin", SHOP, "--require-lead", NULL);
    struct response *init = init_with(own, "");
    struct visitor v = visitor_of(init);
    const char *method = before_lead[_i].method, *path = before_lead[_i].path,
               *body = before_lead[_i].body;
    expect(init, bool_at(init, "data.agent.require_lead_before_chat") &&
                     !bool_at(init, "data.lead_captured"));
    struct response *r = as(&v, method, path, body);
    if (!before_lead[_i].chats) {
        expect(r, r->status == 200 || r->status == 202);
        return;
    }
    expect_error(r, 403, "lead_required");
    expect(r, header(r, "X-RateLimit-Limit") && header(r, "Access-Control-Allow-Origin"));
    struct response *list = as(&v, "GET", "conversation/messages", NULL);
    expect(list, len_at(list, "data.messages") == 0);
    expect_str(operate("GET", text("conversations/%s", v.conversation), NULL), "data.status",
               "open");
    expect_status(post(&v, "leads", "{\"email\":\"nobody\"}"), 422); /* none yet */
    expect_error(as(&v, method, path, body), 403, "lead_required");
    expect_status(post(&v, "leads", text("{\"email\":\"l%d@example.com\"}", _i)), 201);
    for (int i = 0; i < 4; i++) { /* on any worker */
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
    {"messages", "{\"message\":\"x\",\"client_message_id\":\"\"}", 422, "validation_failed",
     "client_message_id"},
    {"messages", "{\"message\":\"x\"", 400, "bad_request", NULL},
    {"messages", "{\"message\":NaN}", 400, "bad_request", NULL},
    {"events", "{}", 422, "validation_failed", "events"},
    {"events", "{\"events\":[]}", 422, "validation_failed", "events"},
    {"events", "{\"events\":{}}", 422, "validation_failed", "events"},
    {"events", "{\"events\":[1]}", 422, "validation_failed", "events"},
    {"events", "{\"events\":[{\"kind\":\"Upper\"}]}", 422, "validation_failed", "events"},
    {"events", "{\"events\":[{\"kind\":\"ok\"},{}]}", 422, "validation_failed", "events"},
    {"events", "{\"events\":[{\"kind\":\"ok\",\"at\":\"yesterday\"}]}", 422, "validation_failed",
     "events"},
    {"events", "{\"event\":\"sp ace\"}", 422, "validation_failed", "event"},
    {"events", "{\"event\":\"a\",\"events\":[{\"kind\":\"b\"}]}", 422, "validation_failed",
     "events"},
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
    {"coupon/apply",
     "{\"code\":\"X\",\"cart\":{\"currency\":\"USD\",\"items\":[{\"wp_id\":1,\"quantity\":1,"
     "\"price\":1.5}]}}",
     422, "validation_failed", "cart"},
    {"coupon/apply", "{\"code\":\"X\"}", 400, "invalid_coupon", NULL},
    {"coupon/apply",
     "{\"code\":\"X\",\"cart\":{\"currency\":\"USD\",\"items\":[{\"wp_id\":1,\"quantity\":1,"
     "\"price\":\"1.50\"}]}}",
     400, "invalid_coupon", NULL},
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
    expect_error(post(&v, "messages", text("{\"message\":\"%sx\"}", longest)), 422,
                 "validation_failed");
    struct response *r = as(&v, "GET", "conversation/messages", NULL);
    expect(r, len_at(r, "data.messages") == 2);
}
END_TEST

START_TEST(repeats_get_the_first_answer_and_store_nothing)
{
    struct visitor v = visitor_new();
    struct response *first =
        post(&v, "messages", "{\"message\":\"one\",\"client_message_id\":\"c-1\"}");
    struct response *again =
        post(&v, "messages", "{\"message\":\"other\",\"client_message_id\":\"c-1\"}");
    ck_assert_str_eq(first->body, again->body);
    const char *key = "Idempotency-Key: k-1";
    struct response *a =
        http(server, .method = "POST", .path = "/api/v1/widget/messages", .key = v.jwt,
             .headers = {JSON, FROM_SHOP, key}, .body = "{\"message\":\"two\"}");
    struct response *b =
        http(server, .method = "POST", .path = "/api/v1/widget/messages", .key = v.jwt,
             .headers = {JSON, FROM_SHOP, key}, .body = "{\"message\":\"two\"}");
    ck_assert_str_eq(a->body, b->body);
    expect(a, header(a, "Idempotent-Replayed") == NULL);
    expect(b,
           header(b, "Idempotent-Replayed") && !strcmp(header(b, "Idempotent-Replayed"), "true"));
    expect_error(http(server, .method = "POST", .path = "/api/v1/widget/messages", .key = v.jwt,
                      .headers = {JSON, FROM_SHOP, key}, .body = "{\"message\":\"three\"}"),
                 422, "idempotency_key_reused");
    struct visitor w = visitor_new();
    struct response *other =
        http(server, .method = "POST", .path = "/api/v1/widget/messages", .key = w.jwt,
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

static struct response *under_key(const struct visitor *v, const char *path, const char *key,
                                  const char *body)
{
    return http(server, .method = "POST", .path = text("/api/v1/widget/%s", path), .key = v->jwt,
                .headers = {JSON, FROM_SHOP, text("Idempotency-Key: %s", key)}, .body = body);
}

START_TEST(an_idempotency_key_is_valid_for_one_body_of_one_visitor)
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
    expect(others, others->status == idempotent[_i].status &&
                       header(others, "Idempotent-Replayed") == NULL);
    expect_error(under_key(&v, path, text("%0256d", 1), idempotent[_i].body), 400, "bad_request");
    /* a refused message is not stored */
    expect_error(under_key(&v, path, "once", "{}"), 422, "validation_failed");
    expect_status(under_key(&v, path, "once", idempotent[_i].body), 200);
    struct response *list = as(&v, "GET", "conversation/messages", NULL);
    expect(list, len_at(list, "data.messages") == (_i == 2 ? 0 : 4));
}
END_TEST

START_TEST(pages_of_messages_follow_cursors_and_are_304_when_unchanged)
{
    struct visitor v = visitor_new();
    for (int i = 0; i < 3; i++)
        expect_status(post(&v, "messages", text("{\"message\":\"m%d\"}", i)), 200);
    struct response *all = as(&v, "GET", "conversation/messages", NULL);
    expect(all, len_at(all, "data.messages") == 6 && !bool_at(all, "data.has_more"));
    struct response *last = as(&v, "GET", "conversation/messages?limit=2", NULL);
    expect(last, len_at(last, "data.messages") == 2 && bool_at(last, "data.has_more"));
    expect_str(last, "data.messages.1.id", str_at(all, "data.messages.5.id"));
    struct response *before = as(
        &v, "GET",
        text("conversation/messages?limit=2&before=%s", str_at(last, "data.messages.0.id")), NULL);
    expect_str(before, "data.messages.1.id", str_at(all, "data.messages.3.id"));
    struct response *after =
        as(&v, "GET",
           text("conversation/messages?limit=4&after=%s", str_at(all, "data.messages.0.id")), NULL);
    expect(after, len_at(after, "data.messages") == 4 && bool_at(after, "data.has_more"));
    expect_str(after, "data.messages.0.id", str_at(all, "data.messages.1.id"));
    struct response *first =
        as(&v, "GET", "conversation/messages?limit=4&after=00000000000000000000000000", NULL);
    expect(first, len_at(first, "data.messages") == 4 && bool_at(first, "data.has_more"));
    expect_str(first, "data.messages.0.id", str_at(all, "data.messages.0.id"));
    static const char *const wrong[] = {"limit=0",      "limit=101",
                                        "limit=x",      "after=x",
                                        "before=01ARZ", "before=00000000000000000000000000"};
    for (size_t i = 0; i < COUNT(wrong); i++)
        expect_error(as(&v, "GET", text("conversation/messages?%s", wrong[i]), NULL), 422,
                     "validation_failed");
    char *none_match = text("If-None-Match: %s", header(all, "ETag"));
    struct response *same = http(server, .path = "/api/v1/widget/conversation/messages",
                                 .key = v.jwt, .headers = {FROM_SHOP, none_match});
    expect_status(same, 304);
    expect(same, same->body_size == 0 && header(same, "X-RateLimit-Remaining") &&
                     header(same, "Access-Control-Allow-Origin"));
    struct visitor w = visitor_new(); /* another conversation's ETag always differs */
    for (int i = 0; i < 3; i++)
        post(&w, "messages", text("{\"message\":\"m%d\"}", i));
    expect_status(http(server, .path = "/api/v1/widget/conversation/messages", .key = w.jwt,
                       .headers = {FROM_SHOP, none_match}),
                  200);
    expect_status(
        operate("POST", text("conversations/%s/messages", v.conversation), "{\"message\":\"hi\"}"),
        201);
    expect_status(http(server, .path = "/api/v1/widget/conversation/messages", .key = v.jwt,
                       .headers = {FROM_SHOP, none_match}),
                  200);
}
END_TEST

START_TEST(marks_are_idempotent)
{
    struct visitor v = visitor_new();
    post(&v, "messages", "{\"message\":\"x\"}");
    for (int i = 0; i < 2; i++) {
        struct response *r = post(&v, "request-human", NULL);
        expect_status(r, 200);
        expect_str(r, "data.status", "waiting"); /* the closed panel is open again */
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

int main(void)
{
    Suite *suite = suite_create("widget");
    TCase *tc = harness_case(suite, "one server");
    tcase_add_unchecked_fixture(tc, setup, teardown);
    tcase_add_test(tc, init_opens_a_conversation_and_a_secret_continues_it);
    tcase_add_test(tc, an_unknown_secret_makes_a_new_visitor);
    tcase_add_test(tc, init_finds_the_last_thirty_messages);
    tcase_add_loop_test(tc, a_refused_init_has_limit_and_cors_headers, 0, (int)COUNT(bad_inits));
    tcase_add_test(tc, init_accepts_a_flat_form);
    tcase_add_test(tc, a_body_over_64_KiB_is_too_large);
    tcase_add_test(tc, a_message_is_answered_and_stored);
    tcase_add_test(tc, an_answer_can_be_a_stream_of_events);
    tcase_add_loop_test(tc, an_agent_can_require_a_lead_before_a_chat, 0, (int)COUNT(before_lead));
    tcase_add_loop_test(tc, a_bad_body_is_refused_and_names_the_field, 0, (int)COUNT(bad_bodies));
    tcase_add_test(tc, a_text_is_measured_in_characters);
    tcase_add_test(tc, repeats_get_the_first_answer_and_store_nothing);
    tcase_add_loop_test(tc, an_idempotency_key_is_valid_for_one_body_of_one_visitor, 0,
                        (int)COUNT(idempotent));
    tcase_add_test(tc, pages_of_messages_follow_cursors_and_are_304_when_unchanged);
    tcase_add_test(tc, marks_are_idempotent);
    return harness_main(suite);
}
