/*
 * What operators do with conversations besides answering: close and reopen them, show their name,
 * and write notes that no visitor sees. Search is in conversation_search.c.
 */
#include "t/kit/event_stream.h"

#include <signal.h>

enum { EVENT_MS = 5000 };

static void setup(void)
{
    server = server_shared(&(struct server_options){.workers = 2});
    widget_make(SHOP);
}

static void teardown(void)
{
    server_shared_stop(server);
}

/* A request with ${key} about the conversation of ${v}. */
static struct response *do_as(const char *key, const struct visitor *v, const char *what,
                              const char *body)
{
    return http(server, .method = "POST",
                .path = text("/api/v1/conversations/%s/%s", v->conversation, what), .key = key,
                .headers = {body ? JSON : NULL}, .body = body);
}

static struct response *thread(const struct visitor *v)
{
    return operate("GET", text("conversations/%s?limit=100", v->conversation), NULL);
}

static struct response *seen_by(const struct visitor *v)
{
    return as(v, "GET", "conversation/messages?limit=100", NULL);
}

/* ---- close and reopen ---- */

START_TEST(a_closed_conversation_is_released_and_listed_as_closed)
{
    struct visitor v = visitor_new();
    expect_status(post(&v, "messages", "{\"message\":\"hello\"}"), 200);
    expect_status(post(&v, "request-human", NULL), 200);
    expect_status(operate_on(&v, "claim", "{\"name\":\"Anna\"}"), 200);
    struct response *r = NULL;
    for (int i = 0; i < 2; i++) { /* the second close changes nothing */
        struct response *before = thread(&v);
        r = operate_on(&v, "close", i == 0 ? NULL : "{}");
        expect_str(r, "data.status", "closed");
        expect(r, !bool_at(r, "data.is_claimed") && at(r, "data.claimed_by") == NULL &&
                      at(r, "data.claimed_name") == NULL);
        expect(r, !bool_at(r, "data.human_requested") && has(r, "data.closed_at") &&
                      int_at(r, "data.closed_by") > 0);
        struct response *after = thread(&v);
        expect(after, (strcmp(header(before, "ETag"), header(after, "ETag")) == 0) == (i == 1));
    }
    r = operate("GET", "conversations?status=closed&per_page=100", NULL);
    expect(r, strstr(r->body, v.conversation) != NULL);
    r = operate("GET", "conversations?status=claimed&per_page=100", NULL);
    expect(r, strstr(r->body, v.conversation) == NULL);
    r = seen_by(&v);
    expect(r, bool_at(r, "data.is_closed") && !bool_at(r, "data.is_claimed"));
    for (int i = 0; i < 2; i++) {
        r = operate_on(&v, "reopen", i == 0 ? "{}" : NULL);
        expect_str(r, "data.status", "open");
        expect(r, at(r, "data.closed_at") == NULL && at(r, "data.closed_by") == NULL);
    }
    r = seen_by(&v);
    expect(r, !bool_at(r, "data.is_closed"));
}
END_TEST

/* Columns: who reopens it, by which request, and the status. */
static const struct {
    bool by_visitor;
    const char *path, *body, *status;
} openers[] = {
    {true, "messages", "{\"message\":\"one more thing\"}", "open"},
    {true, "request-human", NULL, "waiting"},
    {false, "claim", NULL, "claimed"},
    {false, "reopen", NULL, "open"},
};

START_TEST(a_closed_conversation_is_reopened)
{
    struct visitor v = visitor_new();
    struct event_stream *l = stream_from(&v, SHOP);
    expect_event(l, ": here", EVENT_MS);
    expect_status(operate_on(&v, "claim", NULL), 200);
    expect_status(operate_on(&v, "close", NULL), 200);
    expect_event(l, "event: closed\n", EVENT_MS);
    struct response *r = openers[_i].by_visitor
                             ? post(&v, openers[_i].path, openers[_i].body)
                             : operate_on(&v, openers[_i].path, openers[_i].body);
    expect_status(r, 200);
    expect_event(l, "event: reopened\n", EVENT_MS);
    ck_assert_ptr_null(
        strstr(l->seen, "event: released")); /* the response of the close contains it */
    expect_str(thread(&v), "data.status", openers[_i].status);
    if (!strcmp(openers[_i].path, "messages"))
        expect(r, !bool_at(r, "data.human_takeover")); /* a close ends every claim */
}
END_TEST

START_TEST(a_visitor_continues_only_a_conversation_an_operator_closed)
{
    struct visitor v = visitor_new();
    expect_status(operate_on(&v, "messages", "{\"message\":\"Your refund is on its way.\"}"), 201);
    expect_status(operate_on(&v, "close", NULL), 200);
    struct response *r = init_with(agent, text(",\"anon_id\":\"%s\"", v.secret));
    expect_str(r, "data.conversation_id", v.conversation);
    expect(r, bool_at(r, "data.is_closed") && len_at(r, "data.messages") == 1);
    expect_status(post(&v, "conversation/close", NULL), 200);
    expect(thread(&v), at(thread(&v), "data.closed_by") == NULL);
    r = init_with(agent, text(",\"anon_id\":\"%s\"", v.secret));
    expect(r, strcmp(str_at(r, "data.conversation_id"), v.conversation) != 0 &&
                  !bool_at(r, "data.is_closed"));
}
END_TEST

START_TEST(a_state_change_survives_a_writer_crash)
{
    struct visitor v = visitor_new();
    struct event_stream *l = stream_from(&v, SHOP);
    expect_event(l, ": here", EVENT_MS);
    static const char *const steps[][3] = {
        {"claim", "claimed", "event: claimed\ndata: {\"operator_name\":\"Anna\"}\n"},
        {"close", "closed", "event: closed\n"},
        {"reopen", "open", "event: reopened\n"},
    };
    for (size_t i = 0; i < COUNT(steps); i++) {
        kill(server_process(server, "assayd: writer"), SIGKILL);
        expect_str(operate_on(&v, steps[i][0], "{\"name\":\"Anna\"}"), "data.status", steps[i][1]);
        expect_event(l, steps[i][2], EVENT_MS);
    }
    assay_ok(server, "check", NULL);
}
END_TEST

/* ---- the operator's name in a claim ---- */

START_TEST(a_visitor_sees_the_operators_name)
{
    struct visitor v = visitor_new();
    struct event_stream *streams[4];
    for (size_t i = 0; i < COUNT(streams); i++) { /* on both workers */
        streams[i] = stream_from(&v, SHOP);
        expect_event(streams[i], ": here", EVENT_MS);
    }
    struct response *r = operate_on(&v, "claim", "{\"name\":\"Anna \\\"<b>\\\"\\n\"}");
    expect_str(r, "data.claimed_name", "Anna \"<b>\"\n");
    for (size_t i = 0; i < COUNT(streams); i++)
        expect_event(streams[i],
                     "event: claimed\ndata: {\"operator_name\":\"Anna \\\"<b>\\\"\\n\"}\n\n",
                     EVENT_MS);
    r = seen_by(&v);
    expect(r, bool_at(r, "data.is_claimed"));
    expect_str(r, "data.operator_name", "Anna \"<b>\"\n");
    r = init_with(agent, text(",\"anon_id\":\"%s\"", v.secret));
    expect(r, bool_at(r, "data.is_claimed") &&
                  !strcmp(str_at(r, "data.operator_name"), "Anna \"<b>\"\n"));
    expect_str(operate_on(&v, "claim", NULL), "data.claimed_name", "Anna \"<b>\"\n"); /* it stays */
    r = http(server, .method = "POST",
             .path = text("/api/v1/conversations/%s/claim", v.conversation), .key = operators,
             .headers = {"Content-Type: application/x-www-form-urlencoded"},
             .body = "name=Zo%C3%AB");
    expect_str(r, "data.claimed_name", "Zoë");
    expect_event(streams[0], "{\"operator_name\":\"Zoë\"}\n", EVENT_MS);
    char *other = key_new(server, "main", "conversations:write", NULL);
    expect_error(do_as(other, &v, "claim", "{\"name\":\"Eve\"}"), 409, "conflict");
    expect_str(seen_by(&v), "data.operator_name", "Zoë");
    r = operate_on(&v, "release", NULL);
    expect(r, at(r, "data.claimed_name") == NULL);
    expect_event(streams[0], "event: released\n", EVENT_MS);
    r = operate_on(&v, "claim", NULL); /* and differs from the previous claim's */
    expect(r, has(r, "data.claimed_name") && at(r, "data.claimed_name") == NULL);
    expect_event(streams[0], "event: claimed\ndata: {\"operator_name\":null}\n", EVENT_MS);
}
END_TEST

START_TEST(a_name_has_1_to_80_characters)
{
    struct visitor v = visitor_new();
    char name[81 * 2 + 1] = "";
    for (int i = 0; i < 80; i++)
        strcat(name, "ä");
    expect_str(operate_on(&v, "claim", text("{\"name\":\"%s\"}", name)), "data.claimed_name", name);
    const char *const wrong[] = {text("\"%sä\"", name), "\"\"", "7", "[]"};
    for (size_t i = 0; i < COUNT(wrong); i++) {
        struct response *r = operate_on(&v, "claim", text("{\"name\":%s}", wrong[i]));
        expect_error(r, 422, "validation_failed");
        expect(r, at(r, "error.errors.name") != NULL);
    }
}
END_TEST

/* ---- notes ---- */

/* The body of init, without the values that differ between visitors. */
static char *started_again(const struct visitor *v)
{
    struct response *r = init_with(agent, text(",\"anon_id\":\"%s\"", v->secret));
    expect_status(r, 200);
    char *from = strstr(r->body, ",\"agent\":");
    expect(r, from != NULL);
    return strdup(from);
}

START_TEST(a_note_is_visible_to_operators_only)
{
    struct visitor v = visitor_new();
    struct event_stream *l = stream_from(&v, SHOP);
    expect_event(l, ": here", EVENT_MS);
    /* 32 messages: init shows 30 of them and reports that there are more */
    for (int i = 0; i < 16; i++)
        expect_status(post(&v, "messages", text("{\"message\":\"m%d\"}", i)), 200);
    expect_event(l, "\"m15\"", EVENT_MS);
    struct response *before = seen_by(&v);
    char *begun = started_again(&v);
    struct response *old = thread(&v), *r = NULL;
    for (int i = 0; i < 3; i++)
        r = operate_on(&v, "notes", text("{\"note\":\"a heron %d\",\"name\":\"Otto\"}", i));
    expect_status(r, 201);
    expect(r, has_exactly(r, "data", "id role content author_id author_name created_at"));
    expect_str(r, "data.role", "note");
    expect_str(r, "data.author_name", "Otto");
    const char *id = str_at(r, "data.id");

    struct response *after = seen_by(&v);
    ck_assert_str_eq(before->body, after->body);
    ck_assert_str_eq(header(before, "ETag"), header(after, "ETag"));
    ck_assert_str_eq(begun, started_again(&v));
    static const char *const paths[] = {"conversation/messages?limit=1&before=%s",
                                        "conversation/messages?limit=100&after=%s"};
    for (size_t i = 0; i < COUNT(paths); i++) { /* an invented id gives the same answer */
        struct response *page = as(&v, "GET", text(paths[i], id), NULL);
        expect_status(page, 200);
        expect(page, strstr(page->body, "heron") == NULL &&
                         len_at(page, "data.messages") == (i == 0 ? 1 : 0));
        expect(page, bool_at(page, "data.has_more") == (i == 0));
    }
    expect_status(operate_on(&v, "messages", "{\"message\":\"and now\"}"), 201);
    expect_event(l, "\"and now\"", EVENT_MS);
    ck_assert_ptr_null(strstr(l->seen, "heron"));
    struct event_stream *again = stream_from(&v, SHOP);
    expect_event(again, ": here", EVENT_MS);
    expect_status(post(&v, "messages/stream", "{\"message\":\"last\"}"), 200);
    expect_event(again, "\"last\"", EVENT_MS);
    ck_assert(strstr(l->seen, "note") == NULL && strstr(again->seen, "note") == NULL);

    expect(old, strcmp(header(old, "ETag"), header(thread(&v), "ETag")) != 0);
    expect(old, int_at(old, "data.messages_count") == 32);
    expect(after, int_at(thread(&v), "data.messages_count") == 35);
}
END_TEST

START_TEST(a_note_changes_the_etag_of_the_thread)
{
    struct visitor v = visitor_new();
    for (int i = 0; i < 3; i++) {
        struct response *before = thread(&v);
        char *tag = text("If-None-Match: %s", header(before, "ETag"));
        char *path = text("/api/v1/conversations/%s?limit=100", v.conversation);
        expect_status(http(server, .path = path, .key = operators, .headers = {tag}), 304);
        expect_status(operate_on(&v, "notes", "{\"note\":\"n\"}"), 201);
        struct response *after = http(server, .path = path, .key = operators, .headers = {tag});
        expect_status(after, 200);
        expect(after, len_at(after, "data.messages") == (size_t)i + 1);
    }
}
END_TEST

/* Notes and messages alternate, each once, in pages of any size. */
START_TEST(a_thread_has_notes_among_its_messages)
{
    struct visitor v = visitor_new();
    char *contents[9];
    for (int i = 0; i < 9; i++) {
        bool note = i % 3 != 1;
        contents[i] = text("%s %d", note ? "note" : "operator", i);
        expect_status(operate_on(&v, note ? "notes" : "messages",
                                 text("{\"%s\":\"%s\"}", note ? "note" : "message", contents[i])),
                      201);
    }
    for (int limit = 1; limit <= 10; limit++) {
        char *cursor = text("after=%026d", 0);
        for (int seen = 0; seen < 9;) {
            struct response *r = operate(
                "GET", text("conversations/%s?limit=%d&%s", v.conversation, limit, cursor), NULL);
            int count = (int)len_at(r, "data.messages");
            expect(r, count == (limit < 9 - seen ? limit : 9 - seen) &&
                          bool_at(r, "data.has_more") == (seen + count < 9));
            for (int i = 0; i < count; i++, seen++) {
                expect_str(r, text("data.messages.%d.content", i), contents[seen]);
                expect(r, !strncmp(str_at(r, text("data.messages.%d.role", i)), contents[seen], 4));
            }
            cursor = text("after=%s", str_at(r, text("data.messages.%d.id", count - 1)));
        }
        cursor = "";
        for (int left = 9; left > 0;) {
            struct response *r = operate(
                "GET", text("conversations/%s?limit=%d%s", v.conversation, limit, cursor), NULL);
            int count = (int)len_at(r, "data.messages");
            expect(r, count == (limit < left ? limit : left) &&
                          bool_at(r, "data.has_more") == (count < left));
            left -= count;
            expect_str(r, "data.messages.0.content", contents[left]);
            cursor = text("&before=%s", str_at(r, "data.messages.0.id"));
        }
    }
}
END_TEST

/* A page over 64 KiB is a chunked response. */
START_TEST(a_large_thread_has_its_notes)
{
    struct visitor v = visitor_new();
    char *large = malloc(4001);
    memset(large, 'n', 4000);
    large[4000] = '\0';
    for (int i = 0; i < 24; i++)
        expect_status(operate_on(&v, i % 2 ? "notes" : "messages",
                                 text("{\"%s\":\"%s\"}", i % 2 ? "note" : "message", large)),
                      201);
    struct response *r = thread(&v);
    expect(r, r->body_size > 96000 && len_at(r, "data.messages") == 24 &&
                  !bool_at(r, "data.has_more"));
    for (int i = 0; i < 24; i++)
        expect_str(r, text("data.messages.%d.role", i), i % 2 ? "note" : "operator");
}
END_TEST

START_TEST(a_note_is_stored_once_under_its_key_across_a_writer_crash)
{
    struct visitor v = visitor_new();
    for (int i = 0; i < 3; i++) {
        char *path = text("/api/v1/conversations/%s/notes", v.conversation),
             *key = text("Idempotency-Key: k%d", i);
        char *body = text("{\"note\":\"n%d\"}", i);
        kill(server_process(server, "assayd: writer"), SIGKILL);
        struct response *first = http(server, .method = "POST", .path = path, .key = operators,
                                      .headers = {JSON, key}, .body = body);
        struct response *again = http(server, .method = "POST", .path = path, .key = operators,
                                      .headers = {JSON, key}, .body = body);
        expect(first, first->status == 201 && header(first, "Idempotent-Replayed") == NULL);
        expect(again, again->status == 201 && header(again, "Idempotent-Replayed") &&
                          !strcmp(again->body, first->body));
        expect_error(http(server, .method = "POST", .path = path, .key = operators,
                          .headers = {JSON, key}, .body = "{\"note\":\"x\"}"),
                     422, "idempotency_key_reused");
    }
    struct response *r = thread(&v);
    expect(r, len_at(r, "data.messages") == 3);
    assay_ok(server, "check", NULL);
}
END_TEST

START_TEST(a_bad_note_is_refused_and_names_the_field)
{
    static const char *const bad[][2] = {
        {"{}", "note"},
        {"{\"note\":\"\"}", "note"},
        {"{\"note\":7}", "note"},
        {"{\"note\":\"x\",\"name\":\"\"}", "name"},
        {"{\"note\":\"x\",\"name\":[]}", "name"},
    };
    struct visitor v = visitor_new();
    for (size_t i = 0; i < COUNT(bad); i++) {
        struct response *r = operate_on(&v, "notes", bad[i][0]);
        expect_error(r, 422, "validation_failed");
        expect(r, at(r, text("error.errors.%s", bad[i][1])) != NULL);
    }
    char *long_text = malloc(4002);
    memset(long_text, 'x', 4001);
    long_text[4001] = '\0';
    expect_error(operate_on(&v, "notes", text("{\"note\":\"%s\"}", long_text)), 422,
                 "validation_failed");
    expect_status(operate_on(&v, "notes", text("{\"note\":\"%s\"}", long_text + 1)), 201);
    expect_error(do_as(v.jwt, &v, "notes", "{\"note\":\"x\"}"), 401, "unauthorized");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("operators");
    TCase *tc = harness_case(suite, "one server");
    tcase_add_unchecked_fixture(tc, setup, teardown);
    tcase_add_test(tc, a_closed_conversation_is_released_and_listed_as_closed);
    tcase_add_loop_test(tc, a_closed_conversation_is_reopened, 0, (int)COUNT(openers));
    tcase_add_test(tc, a_visitor_continues_only_a_conversation_an_operator_closed);
    tcase_add_test(tc, a_state_change_survives_a_writer_crash);
    tcase_add_test(tc, a_visitor_sees_the_operators_name);
    tcase_add_test(tc, a_name_has_1_to_80_characters);
    tcase_add_test(tc, a_note_is_visible_to_operators_only);
    tcase_add_test(tc, a_note_changes_the_etag_of_the_thread);
    tcase_add_test(tc, a_thread_has_notes_among_its_messages);
    tcase_add_test(tc, a_large_thread_has_its_notes);
    tcase_add_test(tc, a_note_is_stored_once_under_its_key_across_a_writer_crash);
    tcase_add_test(tc, a_bad_note_is_refused_and_names_the_field);
    return harness_main(suite);
}
