/* Leads, events, ratings and typing of visitors, what operators do with them, and their erasure. */
#include "t/kit/widget.h"

#include <strings.h>

static void setup(void)
{
    server = server_shared(&(struct server_options){0});
    widget_make(SHOP);
}

static void teardown(void)
{
    server_shared_stop(server);
}

/* ---- what visitors leave ---- */

START_TEST(a_lead_is_created_once_and_then_updated)
{
    struct visitor v = visitor_new(), w = visitor_new();
    struct response *first = post(&v, "leads",
                                  "{\"email\":\"Ann@Example.COM\",\"name\":\"Ann\",\"phone\":\"1\","
                                  "\"fields\":{\"company\":\"X\"}}");
    expect_status(first, 201);
    struct response *again = post(&w, "leads", "{\"email\":\"ann@example.com\"}");
    expect_status(again, 200);
    expect_str(again, "data.lead_id", str_at(first, "data.lead_id"));
    expect(again,
           strstr(again->body, "Ann\"") == NULL &&
               strstr(again->body, "company") == NULL); /* nothing of the other visitor's data */
    struct response *init = init_with(agent, text(",\"anon_id\":\"%s\"", v.secret));
    expect(init, bool_at(init, "data.lead_captured"));
    struct response *list = operate("GET", "leads?per_page=10", NULL);
    expect_str(list, "data.0.name", "Ann");
    expect_str(list, "data.0.fields.company", "X");
    expect(list, header(list, "X-RateLimit-Limit") == NULL);
    expect(first, !strcmp(header(first, "X-RateLimit-Limit"), "30"));
}
END_TEST

START_TEST(knowing_an_address_gives_no_access_to_its_lead)
{
    struct visitor ann = visitor_new(), eve = visitor_new();
    expect_status(post(&ann, "leads",
                       "{\"email\":\"ann@safe.example\",\"name\":\"Ann\",\"phone\":\"555\","
                       "\"fields\":{\"vat\":\"7\"}}"),
                  201);
    struct response *r = post(&eve, "leads",
                              "{\"email\":\"ANN@safe.example\",\"name\":\"Eve\",\"phone\":\"666\","
                              "\"fields\":{\"vat\":\"8\"}}");
    expect_status(r, 200);
    expect(r, has_exactly(r, "data", "lead_id conversation_id email lead_captured") &&
                  strstr(r->body, "ann@") == NULL);
    expect_str(r, "data.conversation_id", eve.conversation);
    expect_str(r, "data.email", "ANN@safe.example");
    struct response *list = operate("GET", "leads?per_page=10", NULL);
    expect_str(list, "data.0.email", "ann@safe.example");
    expect_str(list, "data.0.name", "Ann");
    expect_str(list, "data.0.phone", "555");
    expect_str(list, "data.0.fields.vat", "7");
    expect_str(list, "data.0.visitor_id", ann.id);
    expect_str(list, "data.0.conversation_id", ann.conversation);
    /* and the operator sees the author of each */
    expect_str(list, "data.0.others.0.visitor_id", eve.id);
    expect_str(list, "data.0.others.0.phone", "666");
    expect_status(as(&eve, "DELETE", "me", NULL), 200);
    list = operate("GET", "leads?per_page=10", NULL);
    expect_str(list, "data.0.name", "Ann");
    expect(list, len_at(list, "data.0.others") == 0 && strstr(list->body, "Eve") == NULL &&
                     strstr(list->body, eve.id) == NULL);
    expect_status(as(&ann, "DELETE", "me", NULL), 200);
    list = operate("GET", "leads?per_page=10", NULL);
    expect(list, strcasestr(list->body, "ann@safe.example") == NULL);
    assay_ok(server, "check", NULL);
}
END_TEST

START_TEST(events_are_stored_alone_or_as_a_batch)
{
    struct visitor v = visitor_new();
    struct response *r = post(&v, "events",
                              "{\"events\":[{\"kind\":\"page.view\",\"payload\":{\"a\":[1]},\"at\":"
                              "\"2026-05-07T13:00:00+02:00\"},{\"kind\":\"b\"}]}");
    expect_status(r, 202);
    expect_int(r, "data.accepted", 2);
    expect_int(post(&v, "events", "{\"event\":\"open\",\"metadata\":{\"x\":1}}"), "data.accepted",
               1);
    struct response *list = operate("GET", text("events?agent_id=%s", agent), NULL);
    expect_str(list, "data.0.kind", "open");
    expect_int(list, "data.0.payload.x", 1);
    expect_str(list, "data.2.at", "2026-05-07T11:00:00Z");
    expect(r, !strcmp(header(r, "X-RateLimit-Limit"), "300"));
    char *batch = text("{\"events\":[{\"kind\":\"e\"}");
    for (int i = 1; i < 50; i++)
        batch = text("%s,{\"kind\":\"e\"}", batch);
    expect_int(post(&v, "events", text("%s]}", batch)), "data.accepted", 50);
    expect_error(post(&v, "events", text("%s,{\"kind\":\"e\"}]}", batch)), 422,
                 "validation_failed");
}
END_TEST

/* valid RFC 3339 times, and times that only look valid */
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

START_TEST(a_time_has_the_format_of_RFC_3339)
{
    struct visitor v = visitor_new();
    struct response *r =
        post(&v, "events", text("{\"events\":[{\"kind\":\"timed\",\"at\":\"%s\"}]}", times[_i].at));
    if (times[_i].kept == NULL)
        expect_error(r, 422, "validation_failed");
    else {
        expect_status(r, 202);
        expect_str(operate("GET", text("events?agent_id=%s", agent), NULL), "data.0.at",
                   times[_i].kept);
    }
}
END_TEST

START_TEST(the_first_rating_stays)
{
    struct visitor v = visitor_new();
    struct response *r = post(&v, "satisfaction", "{\"rating\":\"positive\"}");
    expect_int(r, "data.rating", 5);
    expect_int(post(&v, "satisfaction", "{\"rating\":1,\"comment\":\"changed my mind\"}"),
               "data.rating", 5);
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

START_TEST(typing_shows_on_the_other_side_without_a_write)
{
    struct visitor v = visitor_new();
    struct response *r = NULL;
    bool quiet = false;
    /* the writer sometimes has commits of its own */
    for (int round = 0; round < 5 && !quiet; round++) {
        long before = commits();
        for (int i = 0; i < 20; i++)
            r = post(&v, "typing", i % 2 ? NULL : "{\"typing_status\":\"on\"}");
        quiet = commits() == before;
    }
    ck_assert(quiet);
    expect(r, bool_at(r, "data.typing") && has(r, "data.expires_at") &&
                  !strcmp(header(r, "X-RateLimit-Limit"), "600"));
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

START_TEST(an_operator_claims_answers_and_releases)
{
    struct visitor v = visitor_new();
    char *path = text("conversations/%s", v.conversation);
    expect_status(post(&v, "request-human", NULL), 200);
    struct response *r = operate("GET", "conversations?status=waiting", NULL);
    expect_str(r, "data.0.id", v.conversation);
    expect_str(operate("POST", text("%s/claim", path), NULL), "data.status", "claimed");
    expect_status(operate("POST", text("%s/claim", path), NULL), 200);
    char *other = key_new(server, "main", "conversations:write", NULL);
    expect_error(
        http(server, .method = "POST", .path = text("/api/v1/%s/claim", path), .key = other), 409,
        "conflict");
    r = post(&v, "messages", "{\"message\":\"anybody?\"}");
    expect(r, bool_at(r, "data.human_takeover") && has(r, "data.content") &&
                  at(r, "data.content") == NULL && at(r, "data.answer_id") == NULL);
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

START_TEST(lists_continue_after_their_last_id)
{
    for (int i = 0; i < 12; i++)
        visitor_new();
    struct response *page = operate("GET", "conversations?per_page=10", NULL);
    expect(page, len_at(page, "data") == 10 && bool_at(page, "meta.has_more"));
    expect_str(page, "meta.next_after", str_at(page, "data.9.id"));
    struct response *next = operate(
        "GET", text("conversations?per_page=10&after=%s", str_at(page, "meta.next_after")), NULL);
    expect(next, len_at(next, "data") >= 2 &&
                     strcmp(str_at(next, "data.0.id"), str_at(page, "data.9.id")) < 0);
    expect_status(http(server, .path = "/api/v1/conversations?per_page=10", .key = operators,
                       .headers = {text("If-None-Match: %s", header(page, "ETag"))}),
                  304);
    static const char *const wrong[] = {"per_page=5", "status=old", "after=x",
                                        "agent_id=x", "since=x",    "until=2026"};
    for (size_t i = 0; i < COUNT(wrong); i++)
        expect_error(operate("GET", text("conversations?%s", wrong[i]), NULL), 422,
                     "validation_failed");
    expect(page,
           len_at(operate("GET", "conversations?until=2026-01-01T00:00:00Z", NULL), "data") == 0);
    expect(page,
           len_at(operate("GET", "conversations?since=2026-01-01T00:00:00Z&per_page=10", NULL),
                  "data") == 10);
}
END_TEST

static const struct {
    const char *method, *path, *scope; /* the path's %s: a conversation */
} operated[] = {
    {"GET", "conversations", "conversations:read"},
    {"GET", "conversations/%s", "conversations:read"},
    {"POST", "conversations/%s/messages", "conversations:write"},
    {"POST", "conversations/%s/notes", "conversations:write"},
    {"POST", "conversations/%s/claim", "conversations:write"},
    {"POST", "conversations/%s/release", "conversations:write"},
    {"POST", "conversations/%s/close", "conversations:write"},
    {"POST", "conversations/%s/reopen", "conversations:write"},
    {"POST", "conversations/%s/typing", "conversations:write"},
    {"GET", "leads", "conversations:read"},
    {"GET", "events", "conversations:read"},
    {"GET", "ratings", "conversations:read"},
};

START_TEST(operators_need_their_scope_and_see_only_their_workspace)
{
    struct visitor v = visitor_new();
    post(&v, "leads", "{\"email\":\"iso@example.com\"}");
    post(&v, "events", "{\"event\":\"iso\"}");
    post(&v, "satisfaction", "{\"rating\":3}");
    bool about_one = strstr(operated[_i].path, "%s") != NULL,
         writes = operated[_i].method[0] == 'P';
    char *path = text("/api/v1/%s", operated[_i].path);
    if (about_one)
        path =
            text("/api/v1/conversations/%s%s", v.conversation, strstr(operated[_i].path, "%s") + 2);
    const char *body = writes ? "{\"message\":\"x\",\"note\":\"x\"}" : NULL;
    expect_error(http(server, .method = operated[_i].method, .path = path, .key = "", .body = body,
                      .headers = {JSON}),
                 401, "unauthorized");
    expect_error(http(server, .method = operated[_i].method, .path = path, .key = server->key,
                      .body = body, .headers = {JSON}),
                 403, "insufficient_scope");
    char *half =
        key_new(server, "main", writes ? "conversations:read" : "conversations:write", NULL);
    expect_error(http(server, .method = operated[_i].method, .path = path, .key = half,
                      .body = body, .headers = {JSON}),
                 403, "insufficient_scope");
    char *name = text("other-%d", _i);
    assay_ok(server, "workspace", "create", name, NULL);
    char *foreign = key_new(server, name, "conversations:read", "conversations:write", NULL);
    struct response *r = http(server, .method = operated[_i].method, .path = path, .key = foreign,
                              .body = body, .headers = {JSON});
    if (about_one)
        expect_error(r, 404, "not_found");
    else
        expect(r, r->status == 200 && len_at(r, "data") == 0);
    if (!about_one) {
        r = http(server, .path = text("%s?agent_id=%s", path, agent), .key = foreign);
        expect(r, r->status == 200 && len_at(r, "data") == 0);
    }
    if (about_one)
        expect_error(
            http(server, .method = operated[_i].method,
                 .path = text("/api/v1/conversations/x%s", strstr(operated[_i].path, "%s") + 2),
                 .key = operators, .body = body, .headers = {JSON}),
            404, "not_found");
}
END_TEST

/* ---- erasure ---- */

START_TEST(an_erased_visitor_is_deleted_everywhere)
{
    struct visitor v = visitor_new();
    post(&v, "messages", "{\"message\":\"forget me, walrus\"}");
    expect_status(
        operate("POST", text("conversations/%s/notes", v.conversation), "{\"note\":\"walrus\"}"),
        201);
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
        expect(list, strcasestr(list->body, "walrus") == NULL && strstr(list->body, v.id) == NULL &&
                         strstr(list->body, v.conversation) == NULL);
    }
    expect_error(operate("GET", text("conversations/%s", v.conversation), NULL), 404, "not_found");
    expect_error(
        operate("POST", text("conversations/%s/messages", v.conversation), "{\"message\":\"x\"}"),
        404, "not_found");
    expect_error(
        operate("POST", text("conversations/%s/notes", v.conversation), "{\"note\":\"x\"}"), 404,
        "not_found");
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
    for (int i = 0; i < 2; i++) { /* again, if a window ended during the test */
        struct response *bad = http(server, .path = "/api/v1/widget/conversation/messages",
                                    .key = "a.b.c", .headers = {FROM_SHOP});
        struct response *gone = as(&v, "GET", "conversation/messages", NULL);
        expect_error(bad, 401, "unauthorized");
        expect_error(gone, 401, "unauthorized");
        if (strcmp(header(bad, "X-RateLimit-Reset"), header(gone, "X-RateLimit-Reset")) != 0)
            continue;
        ck_assert_int_eq(atoi(header(gone, "X-RateLimit-Remaining")),
                         atoi(header(bad, "X-RateLimit-Remaining")) - 1);
        return;
    }
}
END_TEST

static bool nothing_stored(void *own)
{
    struct response *events = http(own, .path = "/api/v1/events", .key = operators),
                    *leads = http(own, .path = "/api/v1/leads", .key = operators);
    return len_at(events, "data") == 0 && len_at(leads, "data") == 1;
}

START_TEST(expired_data_is_deleted_when_configured)
{
    struct server *own = server_new(&(struct server_options){0});
    server_start(own);
    operators = key_new(own, "main", "conversations:read", NULL);
    char *id = assay_ok(own, "agent", "create", "--workspace", "main", "--name", "R", "--origin",
                        "*", NULL);
    struct response *r = http(own, .method = "POST", .path = "/api/v1/widget/init", .key = "",
                              .headers = {JSON}, .body = text("{\"agent_id\":\"%s\"}", id));
    const char *jwt = str_at(r, "data.jwt");
    http(own, .method = "POST", .path = "/api/v1/widget/events", .key = jwt, .headers = {JSON},
         .body = "{\"event\":\"old\"}");
    http(own, .method = "POST", .path = "/api/v1/widget/leads", .key = jwt, .headers = {JSON},
         .body = "{\"email\":\"a@b.example\"}");
    ck_assert(!nothing_stored(own));
    server_stop(own);
    server_configure(own, "retention: { events: 1ms }\n");
    server_start(own);
    ck_assert(wait_until(nothing_stored, own, 5000));
    expect(r, len_at(http(own, .path = "/api/v1/conversations", .key = operators), "data") == 1);
    assay_ok(own, "check", NULL);
    server_free(own);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("widget_leads_events");
    TCase *tc = harness_case(suite, "one server");
    tcase_add_unchecked_fixture(tc, setup, teardown);
    tcase_add_test(tc, a_lead_is_created_once_and_then_updated);
    tcase_add_test(tc, knowing_an_address_gives_no_access_to_its_lead);
    tcase_add_test(tc, events_are_stored_alone_or_as_a_batch);
    tcase_add_loop_test(tc, a_time_has_the_format_of_RFC_3339, 0, (int)COUNT(times));
    tcase_add_test(tc, the_first_rating_stays);
    tcase_add_test(tc, typing_shows_on_the_other_side_without_a_write);
    tcase_add_test(tc, an_operator_claims_answers_and_releases);
    tcase_add_test(tc, lists_continue_after_their_last_id);
    tcase_add_loop_test(tc, operators_need_their_scope_and_see_only_their_workspace, 0,
                        (int)COUNT(operated));
    tcase_add_test(tc, an_erased_visitor_is_deleted_everywhere);
    tcase_add_test(tc, the_token_of_an_erased_visitor_is_charged_to_its_address);
    tcase_add_test(tc, expired_data_is_deleted_when_configured);
    return harness_main(suite);
}
