/*
 * The event stream of a conversation: its events on any worker, no gaps, slow readers, heartbeats,
 * and its end.
 */
#include "t/kit/event_stream.h"

#include <poll.h>
#include <signal.h>
#include <sys/socket.h>

static void begin(const char *yaml)
{
    server = server_new(&(struct server_options){.yaml = yaml});
    server_start(server);
    widget_make("*");
}

static void setup(void)
{
    begin(NULL);
}

static void teardown(void)
{
    server_free(server);
}

/* ---- events ---- */

START_TEST(an_operator_message_reaches_every_stream_within_200_ms)
{
    struct visitor v = visitor_new(), other = visitor_new();
    struct event_stream *readers[6], *other_visitor = stream_of(&other, NULL);
    for (size_t i = 0; i < COUNT(readers); i++) { /* on both workers */
        readers[i] = stream_of(&v, NULL);
        expect_event(readers[i], ": here", 2000);
    }
    for (int k = 0; k < 5; k++) {
        char *body = text("{\"message\":\"answer %d\"}", k),
             *want = text("\"content\":\"answer %d\"", k);
        expect_status(operate_on(&v, "messages", body), 201);
        int64_t sent = now_ms();
        for (size_t i = 0; i < COUNT(readers); i++)
            expect_event(readers[i], want, 1000);
        ck_assert_msg(now_ms() - sent <= 200, "after %lld ms", (long long)(now_ms() - sent));
    }
    for (size_t i = 0; i < COUNT(readers); i++)
        ck_assert_uint_eq(stream_times(readers[i], "event: message"), 5);
    expect_event(other_visitor, ": here", 2000);
    ck_assert_ptr_null(strstr(other_visitor->seen, "answer"));
}
END_TEST

START_TEST(the_response_head_describes_the_stream)
{
    struct visitor v = visitor_new();
    struct event_stream *reader = stream_of(&v, NULL);
    expect_event(reader, ": here", 2000);
    static const char *const lines[] = {
        "HTTP/1.1 200 OK\r\n", "content-type: text/event-stream\r\n", "cache-control: no-store\r\n",
        "X-RateLimit-Limit: 300\r\n", "x-request-id: "};
    for (size_t i = 0; i < COUNT(lines); i++)
        ck_assert_msg(strcasestr(reader->seen, lines[i]) != NULL, "%s\n%s", lines[i], reader->seen);
}
END_TEST

START_TEST(a_stream_is_charged_once)
{
    struct visitor v = visitor_new();
    struct response *before =
        http(server, .path = "/api/v1/widget/conversation/messages", .key = v.jwt);
    struct event_stream *reader = stream_of(&v, NULL);
    expect_event(reader, ": here", 2000);
    for (int i = 0; i < 5; i++) {
        expect_status(operate_on(&v, "messages", text("{\"message\":\"m%d.\"}", i)), 201);
        expect_event(reader, text("\"m%d.\"", i), 1000);
    }
    struct response *after =
        http(server, .path = "/api/v1/widget/conversation/messages", .key = v.jwt);
    /* otherwise a window ended during the test */
    if (!strcmp(header(before, "X-RateLimit-Reset"), header(after, "X-RateLimit-Reset")))
        ck_assert_int_eq(atoi(header(before, "X-RateLimit-Remaining")) -
                             atoi(header(after, "X-RateLimit-Remaining")),
                         2);
}
END_TEST

START_TEST(a_stream_reports_claims_typing_and_the_close)
{
    struct visitor v = visitor_new();
    struct event_stream *reader = stream_of(&v, NULL);
    expect_event(reader, ": here", 2000);
    operate_on(&v, "claim", NULL);
    expect_event(reader, "event: claimed\n", 1000);
    operate_on(&v, "typing", NULL);
    expect_event(reader, "event: typing\ndata: {\"typing\":true}\n\n", 1000);
    operate_on(&v, "typing", "{\"typing_status\":\"off\"}");
    expect_event(reader, "data: {\"typing\":false}\n\n", 1000);
    operate_on(&v, "release", NULL);
    expect_event(reader, "event: released\n", 1000);
    post(&v, "messages", "{\"message\":\"hello\"}");
    expect_event(reader, "\"role\":\"assistant\"", 1000);
    post(&v, "conversation/close", NULL);
    expect_event(reader, "event: closed\n", 1000);
}
END_TEST

START_TEST(a_resumed_stream_misses_and_repeats_nothing)
{
    struct visitor v = visitor_new();
    struct response *first = post(&v, "messages", "{\"message\":\"m0\"}");
    for (int i = 1; i < 60; i++) /* more than one part */
        expect_status(operate_on(&v, "messages", text("{\"message\":\"m%d.\"}", i)), 201);
    struct event_stream *reader = stream_of(&v, str_at(first, "data.answer_id"));
    expect_event(reader, "\"m59.\"", 3000);
    ck_assert_uint_eq(stream_times(reader, "event: message"), 59);
    ck_assert_ptr_null(strstr(reader->seen, "\"m0\""));
    const char *at = reader->seen;
    for (int i = 1; i < 60; i++) {
        char *want = text("\"content\":\"m%d.\"", i);
        const char *found = strstr(at, want);
        ck_assert_msg(found != NULL, "%s is out of order", want);
        at = found;
    }
    struct event_stream *wrong = stream_of(&v, "x");
    expect_event(wrong, "bad_request", 2000);
}
END_TEST

START_TEST(a_last_id_past_the_end_hides_nothing)
{
    struct visitor v = visitor_new(), other = visitor_new();
    expect_status(post(&v, "messages", "{\"message\":\"old\"}"), 200);
    for (size_t i = 0; i < 2; i++) {
        struct response *foreign = post(&other, "messages", "{\"message\":\"foreign\"}");
        struct event_stream *reader = stream_of(&v, i == 0 ? "7ZZZZZZZZZZZZZZZZZZZZZZZZZ"
                                                           : str_at(foreign, "data.answer_id"));
        expect_event(reader, ": here", 2000);
        expect_status(operate_on(&v, "messages", text("{\"message\":\"new %zu\"}", i)), 201);
        expect_event(reader, text("\"new %zu\"", i), 2000);
        ck_assert_uint_eq(stream_times(reader, "event: message"), 1);
        ck_assert_ptr_null(strstr(reader->seen, "foreign"));
    }
}
END_TEST

START_TEST(a_slow_reader_misses_nothing_and_blocks_nobody)
{
    struct visitor v = visitor_new();
    struct event_stream *slow = stream_of(&v, NULL), *quick = stream_of(&v, NULL);
    char *big = malloc(4001);
    memset(big, 'x', 4000);
    big[4000] = '\0';
    expect_event(slow, ": here", 2000);
    expect_event(quick, ": here", 2000);
    for (int i = 0; i < 300; i++) { /* over a megabyte: far more than socket buffers hold */
        struct response *r = operate_on(&v, "messages", text("{\"message\":\"%s\"}", big));
        expect_status(r, 201);
        response_free(r);
        stream_read(quick, 0);
    }
    operate_on(&v, "messages", "{\"message\":\"last\"}");
    expect_event(quick, "\"last\"", 3000);
    expect_event(slow, "\"last\"", 5000);
    ck_assert_uint_eq(stream_times(slow, "event: message"), 301);
    ck_assert_uint_eq(stream_times(quick, "event: message"), 301);
}
END_TEST

/* ---- the end of a stream ---- */

START_TEST(a_stream_ends_with_its_agent)
{
    struct visitor v = visitor_new();
    struct event_stream *reader = stream_of(&v, NULL);
    expect_event(reader, ": here", 2000);
    if (_i == 0)
        assay_ok(server, "agent", "update", agent, "--unpublished", NULL);
    else if (_i == 1)
        assay_ok(server, "agent", "delete", agent, NULL);
    else if (_i == 2)
        assay_ok(server, "workspace", "delete", "main", NULL);
    else
        http(server, .method = "DELETE", .path = "/api/v1/widget/me", .key = v.jwt);
    ck_assert_msg(stream_ends(reader, 1000), "%s", reader->seen);
}
END_TEST

START_TEST(a_stream_ends_with_its_origin)
{
    assay_ok(server, "agent", "update", agent, "--origin", "https://one.example", "--origin",
             "https://two.example", NULL);
    struct response *r = http(server, .method = "POST", .path = "/api/v1/widget/init", .key = "",
                              .headers = {JSON, "Origin: https://one.example"},
                              .body = text("{\"agent_id\":\"%s\"}", agent));
    struct visitor v = visitor_of(r);
    struct event_stream *ones[4], *two = stream_from(&v, "https://two.example");
    expect_event(two, ": here", 2000);
    for (size_t i = 0; i < COUNT(ones); i++) { /* on both workers */
        ones[i] = stream_from(&v, "https://one.example");
        expect_event(ones[i], ": here", 2000);
    }
    assay_ok(server, "agent", "update", agent, "--origin", "https://two.example", NULL);
    int64_t deadline = now_ms() + 1000;
    for (size_t i = 0; i < COUNT(ones); i++)
        ck_assert_msg(stream_ends(ones[i], (int)(deadline - now_ms())), "%s", ones[i]->seen);
    expect_status(operate_on(&v, "messages", "{\"message\":\"still\"}"), 201);
    expect_event(two, "\"still\"", 1000);
    ck_assert(!two->closed);
}
END_TEST

/* A leaked secret: its line is removed from the file. */
START_TEST(a_stream_ends_with_its_signing_secret)
{
    struct visitor before = visitor_new();
    struct event_stream *readers[4];
    for (size_t i = 0; i < COUNT(readers); i++) { /* on both workers */
        readers[i] = stream_of(&before, NULL);
        expect_event(readers[i], ": here", 2000);
    }
    assay_ok(server, "secret", "rotate", NULL);
    for (size_t i = 0; i < COUNT(readers); i++) /* a rotation ends no stream */
        ck_assert(!stream_arrives(readers[i], "\r\n0\r\n\r\n", 300));
    struct visitor after;
    do
        after = visitor_new();
    while (!strncmp(after.jwt, before.jwt, (size_t)(strchr(after.jwt, '.') - after.jwt)));
    struct event_stream *other = stream_of(&after, NULL);
    expect_event(other, ": here", 2000);
    char *path = text("%s/secrets", server->data), *beside = text("%s.other", path);
    ck_assert_int_eq(
        system(text("grep '^#' %s >%s && tail -n 1 %s >>%s && chmod 600 %s && mv %s %s", path,
                    beside, path, beside, beside, beside, path)),
        0);
    int64_t deadline = now_ms() + 1000;
    for (size_t i = 0; i < COUNT(readers); i++)
        ck_assert_msg(stream_ends(readers[i], (int)(deadline - now_ms())), "%s", readers[i]->seen);
    expect_status(operate_on(&after, "messages", "{\"message\":\"still\"}"), 201);
    expect_event(other, "\"still\"", 1000);
    ck_assert(!other->closed);
}
END_TEST

START_TEST(a_stream_ends_with_its_token)
{
    server_free(server);
    begin("jwt: { ttl: 2s }\n");
    struct visitor v = visitor_new();
    int64_t opened = now_ms();
    struct event_stream *reader = stream_of(&v, NULL);
    expect_event(reader, ": here", 2000);
    ck_assert_msg(stream_ends(reader, 5000), "%s", reader->seen);
    /* claims have a resolution of a second */
    ck_assert_msg(now_ms() - opened >= 900, "after %lld ms", (long long)(now_ms() - opened));
    ck_assert_ptr_null(strstr(reader->seen, "event:"));
}
END_TEST

START_TEST(an_idle_stream_sends_a_heartbeat_every_15_seconds)
{
    struct visitor v = visitor_new();
    struct event_stream *reader = stream_of(&v, NULL);
    expect_event(reader, ": here", 2000);
    int64_t begun = now_ms();
    expect_event(reader, "\r\n:\n\n", 17000);
    ck_assert_msg(now_ms() - begun >= 14000, "after %lld ms", (long long)(now_ms() - begun));
}
END_TEST

/*
 * A client reconnects as asked, and gets a stream that stays. A connection queued at another
 * draining worker is served by it and asked to reconnect once more, but never twice: ${others} of
 * them may be.
 */
static struct event_stream *reconnect(const struct visitor *v, const char *last, int others)
{
    for (;;) {
        struct event_stream *reader = stream_of(v, last);
        int64_t deadline = now_ms() + 5000;
        while (strstr(reader->seen, ": here") == NULL &&
               strstr(reader->seen, "event: reconnect\n") == NULL && now_ms() < deadline)
            stream_read(reader, (int)(deadline - now_ms()));
        if (strstr(reader->seen, ": here") != NULL)
            return reader;
        expect_event(reader, "event: reconnect\n", 0);
        ck_assert_msg(others-- > 0, "asked to reconnect twice:\n%s", reader->seen);
    }
}

START_TEST(a_draining_worker_asks_streams_to_reconnect)
{
    struct visitor v = visitor_new();
    struct event_stream *reader = stream_of(&v, NULL);
    expect_event(reader, ": here", 2000);
    struct response *last = post(&v, "messages", "{\"message\":\"before\"}");
    expect_status(last, 200);
    expect_event(reader, "\"assistant\"", 1000);
    server_signal(server, SIGHUP);
    expect_event(reader, "event: reconnect\n", 5000);
    ck_assert(stream_ends(reader, 1000));
    struct event_stream *again = reconnect(&v, str_at(last, "data.message_id"), 1);
    expect_event(again, "\"assistant\"", 5000);
    ck_assert_ptr_null(strstr(again->seen, "\"before\""));
}
END_TEST

/* old workers: exited or draining */
static bool drains(void *unused)
{
    struct json_object *rows = assay_list(server, "stats", NULL), *process = NULL, *phase = NULL,
                       *generation = NULL;
    size_t draining = 0;
    (void)unused;
    for (size_t i = 0; i < json_object_array_length(rows); i++) {
        struct json_object *row = json_object_array_get_idx(rows, i);
        ck_assert(json_object_object_get_ex(row, "process", &process) &&
                  json_object_object_get_ex(row, "phase", &phase) &&
                  json_object_object_get_ex(row, "generation", &generation));
        bool at_it = !strcmp(json_object_get_string(phase), "draining");
        if (!strcmp(json_object_get_string(process), "worker") &&
            json_object_get_int(generation) == 0 && !at_it)
            return false;
        draining += at_it;
    }
    return draining > 0;
}

START_TEST(a_stream_opened_during_a_drain_is_asked_to_reconnect)
{
    struct visitor v = visitor_new();
    struct response *last = post(&v, "messages", "{\"message\":\"before\"}");
    struct raw *begun[4]; /* a drain waits for started requests */
    for (size_t i = 0; i < COUNT(begun); i++) {
        begun[i] = raw_open(server);
        /* so that an old worker has it */
        raw_text(begun[i], "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n");
        expect_status(raw_response(begun[i], false, 5000), 200);
        raw_text(begun[i], "GET /api/v1/widget/conversation/stream HTTP/1.1\r\n");
    }
    server_signal(server, SIGHUP);
    ck_assert(wait_until(drains, NULL, 5000));
    for (size_t i = 0; i < COUNT(begun); i++) {
        raw_text(begun[i], "Host: x\r\nAuthorization: Bearer %s\r\nLast-Event-ID: %s\r\n\r\n",
                 v.jwt, str_at(last, "data.message_id"));
        struct response *r = raw_response(begun[i], false, 5000);
        expect(r, r->status == 200 && !strcmp(r->body, "event: reconnect\ndata: {}\n\n"));
        ck_assert(raw_closed(begun[i], 1000));
    }
    struct event_stream *again = reconnect(&v, str_at(last, "data.message_id"), 0);
    expect_event(again, "\"assistant\"", 1000);
}
END_TEST

START_TEST(a_writer_crash_loses_no_event)
{
    struct visitor v = visitor_new();
    struct event_stream *reader = stream_of(&v, NULL);
    expect_event(reader, ": here", 2000);
    for (int i = 0; i < 3; i++) {
        kill(server_process(server, "assayd: writer"), SIGKILL);
        expect_status(operate_on(&v, "messages", text("{\"message\":\"after death %d\"}", i)), 201);
        expect_event(reader, text("after death %d", i), 5000);
    }
    ck_assert_uint_eq(stream_times(reader, "event: message"), 3);
}
END_TEST

START_TEST(a_bad_token_opens_no_stream)
{
    struct visitor v = {.jwt = "a.b.c"};
    struct event_stream *reader = stream_of(&v, NULL);
    expect_event(reader, "HTTP/1.1 401", 2000);
    expect_event(reader, "unauthorized", 2000);
}
END_TEST

START_TEST(the_stream_of_a_closed_client_is_released)
{
    struct visitor v = visitor_new();
    for (int i = 0; i < 50; i++) {
        struct event_stream *reader = stream_of(&v, NULL);
        expect_event(reader, ": here", 2000);
        if (i % 2)
            operate_on(&v, "messages", "{\"message\":\"x\"}");
        close(reader->fd);
        free(reader->seen);
    }
    expect_status(operate_on(&v, "messages", "{\"message\":\"still here\"}"), 201);
    server_stop(server);
}
END_TEST

/* over all workers, from the scoreboard */
static bool streams_are(void *arg)
{
    struct json_object *processes = assay_list(server, "stats", NULL);
    int64_t sum = 0;
    for (size_t i = 0; i < json_object_array_length(processes); i++)
        sum += json_object_get_int64(
            json_object_object_get(json_object_array_get_idx(processes, i), "streams"));
    json_object_put(processes);
    return sum == *(const int64_t *)arg;
}

START_TEST(open_streams_are_counted)
{
    struct visitor v = visitor_new();
    struct event_stream *readers[3];
    for (int64_t i = 0, open = 1; i < 3; i++, open++) {
        readers[i] = stream_of(&v, NULL);
        expect_event(readers[i], ": here", 2000);
        ck_assert_msg(wait_until(streams_are, &open, 3000), "not %d streams", (int)open);
    }
    for (int i = 0; i < 3; i++)
        close(readers[i]->fd);
    /* the server notices a closed client at the next send */
    for (int64_t none = 0, tries = 0; !streams_are(&none); tries++) {
        ck_assert_int_lt(tries, 50);
        operate_on(&v, "messages", "{\"message\":\"x\"}");
    }
    server_stop(server);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("widget_stream");
    TCase *tc = harness_case(suite, "stream");
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, an_operator_message_reaches_every_stream_within_200_ms);
    tcase_add_test(tc, the_response_head_describes_the_stream);
    tcase_add_test(tc, a_stream_is_charged_once);
    tcase_add_test(tc, a_stream_reports_claims_typing_and_the_close);
    tcase_add_test(tc, a_resumed_stream_misses_and_repeats_nothing);
    tcase_add_test(tc, a_last_id_past_the_end_hides_nothing);
    tcase_add_test(tc, a_slow_reader_misses_nothing_and_blocks_nobody);
    tcase_add_loop_test(tc, a_stream_ends_with_its_agent, 0, 4);
    tcase_add_test(tc, a_stream_ends_with_its_origin);
    tcase_add_test(tc, a_stream_ends_with_its_signing_secret);
    tcase_add_test(tc, a_stream_ends_with_its_token);
    tcase_add_test(tc, a_draining_worker_asks_streams_to_reconnect);
    tcase_add_test(tc, a_stream_opened_during_a_drain_is_asked_to_reconnect);
    tcase_add_test(tc, a_writer_crash_loses_no_event);
    tcase_add_test(tc, a_bad_token_opens_no_stream);
    tcase_add_test(tc, the_stream_of_a_closed_client_is_released);
    tcase_add_test(tc, open_streams_are_counted);
    TCase *quiet = harness_case(suite, "a quiet stream");
    tcase_add_checked_fixture(quiet, setup, teardown);
    tcase_add_test(quiet, an_idle_stream_sends_a_heartbeat_every_15_seconds);
    return harness_main_at_once(suite);
}
