/*
 * What operators do with conversations beside answering: close and reopen them, tell their name, take
 * notes that no visitor sees, and search. api.md §6.
 */
#include "widget_kit.h"

#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

static void setup(void)
{
    server = server_shared(&(struct server_options){.workers = 2});
    widget_make(SHOP);
}

static void teardown(void)
{
    server_shared_stop(server);
}

/* ${key}'s request about the conversation of ${v}. */
static struct response *do_as(const char *key, const struct visitor *v, const char *what, const char *body)
{
    return http(server, .method = "POST", .path = text("/api/v1/conversations/%s/%s", v->conversation, what),
                .key = key, .headers = {body ? JSON : NULL}, .body = body);
}

static struct response *operator(const struct visitor *v, const char *what, const char *body)
{
    return do_as(operators, v, what, body);
}

static struct response *thread(const struct visitor *v)
{
    return operate("GET", text("conversations/%s?limit=100", v->conversation), NULL);
}

static struct response *seen_by(const struct visitor *v)
{
    return as(v, "GET", "conversation/messages?limit=100", NULL);
}

/* The text of a visitor's event stream since it began, once ${what} has come. */
struct listener {
    struct raw *raw;
    char seen[1 << 16];
    size_t n;
};

static struct listener *listen_to(const struct visitor *v)
{
    struct listener *l = calloc(1, sizeof(*l));
    l->raw = raw_open(server);
    raw_text(l->raw,
             "GET /api/v1/widget/conversation/stream HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\n"
             "Origin: " SHOP "\r\nAccept: text/event-stream\r\n\r\n",
             v->jwt);
    return l;
}

static void expect_heard(struct listener *l, const char *what)
{
    for (int64_t until = now_ms() + 5000; strstr(l->seen, what) == NULL && now_ms() < until;) {
        ssize_t n = recv(l->raw->fd, l->seen + l->n, sizeof(l->seen) - 1 - l->n, MSG_DONTWAIT);
        if (n > 0)
            l->n += (size_t)n;
        else
            usleep(2000);
    }
    ck_assert_msg(strstr(l->seen, what) != NULL, "%s did not come:\n%s", what, l->seen);
}

/* ---- close and reopen ---- */

START_TEST(a_closed_conversation_is_released_and_listed_so)
{
    struct visitor v = visitor_new();
    expect_status(post(&v, "messages", "{\"message\":\"hello\"}"), 200);
    expect_status(post(&v, "request-human", NULL), 200);
    expect_status(operator(&v, "claim", "{\"name\":\"Anna\"}"), 200);
    struct response *r = NULL;
    for (int i = 0; i < 2; i++) { /* the second changes nothing */
        struct response *before = thread(&v);
        r = operator(&v, "close", i == 0 ? NULL : "{}");
        expect_str(r, "data.status", "closed");
        expect(r, !bool_at(r, "data.is_claimed") && at(r, "data.claimed_by") == NULL && at(r, "data.claimed_name") == NULL);
        expect(r, !bool_at(r, "data.human_requested") && has(r, "data.closed_at") && int_at(r, "data.closed_by") > 0);
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
        r = operator(&v, "reopen", i == 0 ? "{}" : NULL);
        expect_str(r, "data.status", "open");
        expect(r, at(r, "data.closed_at") == NULL && at(r, "data.closed_by") == NULL);
    }
    r = seen_by(&v);
    expect(r, !bool_at(r, "data.is_closed"));
}
END_TEST

/* Columns: who opens it again, by which request, its status then. */
static const struct {
    bool by_visitor;
    const char *path, *body, *status;
} openers[] = {
    {true, "messages", "{\"message\":\"one more thing\"}", "open"},
    {true, "request-human", NULL, "waiting"},
    {false, "claim", NULL, "claimed"},
    {false, "reopen", NULL, "open"},
};

START_TEST(a_closed_conversation_is_opened_again)
{
    struct visitor v = visitor_new();
    struct listener *l = listen_to(&v);
    expect_heard(l, ": here");
    expect_status(operator(&v, "claim", NULL), 200);
    expect_status(operator(&v, "close", NULL), 200);
    expect_heard(l, "event: closed\n");
    struct response *r = openers[_i].by_visitor ? post(&v, openers[_i].path, openers[_i].body)
                                                : operator(&v, openers[_i].path, openers[_i].body);
    expect_status(r, 200);
    expect_heard(l, "event: reopened\n");
    ck_assert_ptr_null(strstr(l->seen, "event: released")); /* the close says so */
    expect_str(thread(&v), "data.status", openers[_i].status);
    if (!strcmp(openers[_i].path, "messages"))
        expect(r, !bool_at(r, "data.human_takeover")); /* nobody's claim outlives the close */
}
END_TEST

START_TEST(a_visitor_finds_what_an_operator_closed_and_not_what_the_visitor_closed)
{
    struct visitor v = visitor_new();
    expect_status(operator(&v, "messages", "{\"message\":\"Your refund is on its way.\"}"), 201);
    expect_status(operator(&v, "close", NULL), 200);
    struct response *r = init_with(agent, text(",\"anon_id\":\"%s\"", v.secret));
    expect_str(r, "data.conversation_id", v.conversation);
    expect(r, bool_at(r, "data.is_closed") && len_at(r, "data.messages") == 1);
    expect_status(post(&v, "conversation/close", NULL), 200);
    expect(thread(&v), at(thread(&v), "data.closed_by") == NULL);
    r = init_with(agent, text(",\"anon_id\":\"%s\"", v.secret));
    expect(r, strcmp(str_at(r, "data.conversation_id"), v.conversation) != 0 && !bool_at(r, "data.is_closed"));
}
END_TEST

START_TEST(a_change_of_state_survives_the_writers_death)
{
    struct visitor v = visitor_new();
    struct listener *l = listen_to(&v);
    expect_heard(l, ": here");
    static const char *const steps[][3] = {
        {"claim", "claimed", "event: claimed\ndata: {\"operator_name\":\"Anna\"}\n"},
        {"close", "closed", "event: closed\n"},
        {"reopen", "open", "event: reopened\n"},
    };
    for (size_t i = 0; i < COUNT(steps); i++) {
        kill(server_process(server, "assayd: writer"), SIGKILL);
        expect_str(operator(&v, steps[i][0], "{\"name\":\"Anna\"}"), "data.status", steps[i][1]);
        expect_heard(l, steps[i][2]);
    }
    assay_ok(server, "check", NULL);
}
END_TEST

/* ---- the name of a claim ---- */

START_TEST(a_visitor_sees_who_has_the_conversation)
{
    struct visitor v = visitor_new();
    struct listener *streams[4];
    for (size_t i = 0; i < COUNT(streams); i++) { /* on both workers */
        streams[i] = listen_to(&v);
        expect_heard(streams[i], ": here");
    }
    struct response *r = operator(&v, "claim", "{\"name\":\"Anna \\\"<b>\\\"\\n\"}");
    expect_str(r, "data.claimed_name", "Anna \"<b>\"\n");
    for (size_t i = 0; i < COUNT(streams); i++)
        expect_heard(streams[i], "event: claimed\ndata: {\"operator_name\":\"Anna \\\"<b>\\\"\\n\"}\n\n");
    r = seen_by(&v);
    expect(r, bool_at(r, "data.is_claimed"));
    expect_str(r, "data.operator_name", "Anna \"<b>\"\n");
    r = init_with(agent, text(",\"anon_id\":\"%s\"", v.secret));
    expect(r, bool_at(r, "data.is_claimed") && !strcmp(str_at(r, "data.operator_name"), "Anna \"<b>\"\n"));
    expect_str(operator(&v, "claim", NULL), "data.claimed_name", "Anna \"<b>\"\n"); /* it stays */
    r = http(server, .method = "POST", .path = text("/api/v1/conversations/%s/claim", v.conversation), .key = operators,
             .headers = {"Content-Type: application/x-www-form-urlencoded"}, .body = "name=Zo%C3%AB");
    expect_str(r, "data.claimed_name", "Zoë");
    expect_heard(streams[0], "{\"operator_name\":\"Zoë\"}\n");
    char *other = key_new(server, "main", "conversations:write", NULL);
    expect_error(do_as(other, &v, "claim", "{\"name\":\"Eve\"}"), 409, "conflict");
    expect_str(seen_by(&v), "data.operator_name", "Zoë");
    r = operator(&v, "release", NULL);
    expect(r, at(r, "data.claimed_name") == NULL);
    expect_heard(streams[0], "event: released\n");
    r = operator(&v, "claim", NULL); /* and is not that of the claim before */
    expect(r, has(r, "data.claimed_name") && at(r, "data.claimed_name") == NULL);
    expect_heard(streams[0], "event: claimed\ndata: {\"operator_name\":null}\n");
}
END_TEST

START_TEST(a_name_has_1_to_80_characters)
{
    struct visitor v = visitor_new();
    char name[81 * 2 + 1] = "";
    for (int i = 0; i < 80; i++)
        strcat(name, "ä");
    expect_str(operator(&v, "claim", text("{\"name\":\"%s\"}", name)), "data.claimed_name", name);
    const char *const wrong[] = {text("\"%sä\"", name), "\"\"", "7", "[]"};
    for (size_t i = 0; i < COUNT(wrong); i++) {
        struct response *r = operator(&v, "claim", text("{\"name\":%s}", wrong[i]));
        expect_error(r, 422, "validation_failed");
        expect(r, at(r, "error.errors.name") != NULL);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("operators");
    TCase *tc = harness_case(suite, "one server");
    tcase_add_unchecked_fixture(tc, setup, teardown);
    tcase_add_test(tc, a_closed_conversation_is_released_and_listed_so);
    tcase_add_loop_test(tc, a_closed_conversation_is_opened_again, 0, (int)COUNT(openers));
    tcase_add_test(tc, a_visitor_finds_what_an_operator_closed_and_not_what_the_visitor_closed);
    tcase_add_test(tc, a_change_of_state_survives_the_writers_death);
    tcase_add_test(tc, a_visitor_sees_who_has_the_conversation);
    tcase_add_test(tc, a_name_has_1_to_80_characters);
    return harness_main(suite);
}
