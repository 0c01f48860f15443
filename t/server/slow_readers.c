/*
 * Clients that do not read: a worker buffers a bounded part of their answers, for each and in
 * total, and other clients are not affected.
 */
#include "t/kit/harness.h"

#include <arpa/inet.h>
#include <poll.h>
#include <sys/socket.h>

#define JSON "Content-Type: application/json"

enum {
    MESSAGES = 100,
    SLOW = 150,
    ANSWERS = 4 /* each response far exceeds the socket buffers between */
};

static struct server *server;
static char *operators, *agent;
static const char *jwt, *conversation, *secret;

static struct response *send_message(int number, const char *message, const char *context)
{
    return http(
        server, .method = "POST", .path = "/api/v1/widget/messages", .key = jwt, .headers = {JSON},
        .body = text("{\"message\":\"%d %s\",\"page_context\":\"%s\"}", number, message, context));
}

/* A conversation whose page of a hundred messages has the maximum size: over 3 MB. */
static void fill(void)
{
    static char message[4000 * 6 + 1], context[8000];
    operators = key_new(server, "main", "conversations:read", "conversations:write", NULL);
    agent = assay_ok(server, "agent", "create", "--workspace", "main", "--name", "Shop", "--origin",
                     "*", NULL);
    struct response *r = http(server, .method = "POST", .path = "/api/v1/widget/init", .key = "",
                              .headers = {JSON}, .body = text("{\"agent_id\":\"%s\"}", agent));
    expect_status(r, 200);
    jwt = str_at(r, "data.jwt");
    secret = str_at(r, "data.anonymous_id");
    conversation = str_at(r, "data.conversation_id");
    expect_status(http(server, .method = "POST",
                       .path = text("/api/v1/conversations/%s/claim", conversation),
                       .key = operators),
                  200);
    for (int i = 0; i < 3990; i++)
        memcpy(message + 6 * i, "\\u0001", 6);
    memset(context, 'x', sizeof(context) - 1);
    for (int i = 0; i < MESSAGES; i++) {
        r = send_message(i, message, context);
        expect_status(r, 200);
        response_free(r);
    }
}

/* under AddressSanitizer a server keeps freed memory for long */
static void return_freed_memory(void)
{
    const char *given = getenv("ASAN_OPTIONS");
    ck_assert_int_eq(setenv("ASAN_OPTIONS",
                            text("%s:quarantine_size_mb=1:thread_local_quarantine_size_kb=64",
                                 given ? given : ""),
                            1),
                     0);
}

static void setup(void)
{
    return_freed_memory();
    server = server_shared(&(struct server_options){.workers = 1});
    fill();
}

static void setup_small(void)
{
    ck_assert_int_eq(setenv("ASSAYD", "./t/kit/small_assayd", 1), 0);
    return_freed_memory();
    server = server_shared(
        &(struct server_options){.workers = 1, .yaml = "internal_listen: 127.0.0.1:0"});
    fill();
}

static void teardown(void)
{
    server_shared_stop(server);
}

/* private memory of the worker, KiB */
static long own_memory(void)
{
    char line[256];
    long kib = -1;
    FILE *status =
        fopen(text("/proc/%d/status", (int)server_process(server, "assayd: worker 0")), "r");
    ck_assert_ptr_nonnull(status);
    while (kib < 0 && fgets(line, sizeof(line), status) != NULL)
        sscanf(line, "RssAnon: %ld kB", &kib);
    fclose(status);
    ck_assert_int_ge(kib, 0);
    return kib;
}

static const char *page_of_operators(void)
{
    return text("/api/v1/conversations/%s?limit=100", conversation);
}

/* A client that sends that many requests and reads nothing. */
static struct raw *ask(const char *path, const char *key, int times)
{
    struct raw *raw = raw_open(server);
    setsockopt(raw->fd, SOL_SOCKET, SO_RCVBUF, &(int){65536}, sizeof(int));
    while (times-- > 0)
        raw_get(raw, key, path);
    return raw;
}

static bool is_answered(const struct raw *raw)
{
    return poll(&(struct pollfd){.fd = raw->fd, .events = POLLIN}, 1, 5000) > 0;
}

/* and then it reads */
static void begin_to_read(struct raw *raw)
{
    setsockopt(raw->fd, SOL_SOCKET, SO_RCVBUF, &(int){1 << 20}, sizeof(int));
}

START_TEST(a_client_that_does_not_read_holds_one_chunk)
{
    struct raw *slow[SLOW];
    const char *path = page_of_operators();
    struct response *whole = http(server, .path = path, .key = operators);
    expect(whole, whole->status == 200 && whole->body_size > 3000000 &&
                      len_at(whole, "data.messages") == MESSAGES);
    long before = own_memory();
    for (size_t i = 0; i < COUNT(slow); i++)
        slow[i] = ask(path, operators, ANSWERS);
    for (size_t i = 0; i < COUNT(slow); i++)
        ck_assert(is_answered(slow[i]));
    int64_t since = now_ms();
    for (int i = 0; i < 20; i++)
        expect_status(http_get(server, "/api/v1/reports"), 200);
    ck_assert_int_lt(now_ms() - since, 2000);
    long more = own_memory() - before;
    ck_assert_msg(more < SLOW * 160, "%d readers keep %ld KiB, %ld each", SLOW, more, more / SLOW);
    begin_to_read(slow[0]);
    /* and a late reader gets all of it */
    struct response *late = raw_response(slow[0], false, 10000);
    expect(late, late->status == 200 && late->body_size == whole->body_size &&
                     !memcmp(late->body, whole->body, whole->body_size));
    for (size_t i = 0; i < COUNT(slow); i++)
        raw_close(slow[i]);
}
END_TEST

START_TEST(a_client_that_does_not_read_a_stream_holds_a_part)
{
    enum { STREAMS = 100 };
    struct raw *slow[STREAMS];
    static char message[3999 * 6 + 1];
    for (int i = 0; i < 3999; i++)
        memcpy(message + 6 * i, "\\u0001", 6);
    for (int i = 0; i < 150; i++) { /* more than the socket buffers between hold */
        struct response *r =
            http(server, .method = "POST",
                 .path = text("/api/v1/conversations/%s/messages", conversation), .key = operators,
                 .headers = {JSON}, .body = text("{\"message\":\"%s\"}", message));
        expect_status(r, 201);
        response_free(r);
    }
    long before = own_memory();
    for (size_t i = 0; i < STREAMS; i++) {
        slow[i] = raw_open(server);
        setsockopt(slow[i]->fd, SOL_SOCKET, SO_RCVBUF, &(int){65536}, sizeof(int));
        raw_text(slow[i],
                 "GET /api/v1/widget/conversation/stream HTTP/1.1\r\nHost: x\r\nAuthorization: "
                 "Bearer %s\r\nLast-Event-ID: %026d\r\n\r\n",
                 jwt, 0);
    }
    for (size_t i = 0; i < STREAMS; i++)
        ck_assert(is_answered(slow[i]));
    expect_status(http_get(server, "/healthz"), 200); /* behind them */
    long more = own_memory() - before;
    ck_assert_msg(more < STREAMS * 160, "%d streams keep %ld KiB, %ld each", STREAMS, more,
                  more / STREAMS);
    for (size_t i = 0; i < STREAMS; i++)
        raw_close(slow[i]);
}
END_TEST

START_TEST(a_large_page_is_equal_for_every_client)
{
    const char *path = "/api/v1/widget/conversation/messages?limit=100";
    struct response *page = http(server, .path = path, .key = jwt),
                    *head = http(server, .method = "HEAD", .path = path, .key = jwt);
    expect(page, page->status == 200 && len_at(page, "data.messages") == MESSAGES &&
                     !bool_at(page, "data.has_more"));
    expect(page, bool_at(page, "data.is_claimed") && !bool_at(page, "data.operator_typing"));
    expect(page, header(page, "X-RateLimit-Limit") &&
                     !strcmp(header(page, "Content-Type"), "application/json"));
    expect(page, (size_t)atol(header(page, "Content-Length")) == page->body_size &&
                     header(page, "Transfer-Encoding") == NULL);
    expect(head, head->status == 200 && head->body_size == 0 &&
                     !strcmp(header(head, "Content-Length"), header(page, "Content-Length")) &&
                     !strcmp(header(head, "ETag"), header(page, "ETag")));
    expect_status(http(server, .path = path, .key = jwt,
                       .headers = {text("If-None-Match: %s", header(page, "ETag"))}),
                  304);
    for (int i = 0; i < MESSAGES; i++)
        expect(page, atoi(str_at(page, text("data.messages.%d.content", i))) == i);
    struct response *newest =
        http(server, .path = "/api/v1/widget/conversation/messages?limit=30", .key = jwt);
    expect(newest, len_at(newest, "data.messages") == 30 && bool_at(newest, "data.has_more"));
    expect_str(newest, "data.messages.0.id", str_at(page, "data.messages.70.id"));
    expect_str(newest, "data.messages.29.id", str_at(page, "data.messages.99.id"));
    struct response *init =
        http(server, .method = "POST", .path = "/api/v1/widget/init", .key = "", .headers = {JSON},
             .body = text("{\"agent_id\":\"%s\",\"anon_id\":\"%s\"}", agent, secret));
    expect(init, init->status == 200 && len_at(init, "data.messages") == 30 &&
                     bool_at(init, "data.has_more"));
    expect(init, !bool_at(init, "data.lead_captured") && header(init, "X-RateLimit-Limit") &&
                     !strcmp(header(init, "Cache-Control"), "no-store"));
    expect_str(init, "data.messages.29.id", str_at(page, "data.messages.99.id"));
    expect_str(init, "data.conversation_id", conversation);
    struct response *zipped =
        http(server, .path = path, .key = jwt, .headers = {"Accept-Encoding: gzip"});
    expect(zipped, zipped->status == 200 && zipped->body_size == page->body_size);
}
END_TEST

START_TEST(erasing_a_record_during_its_response_ends_the_response)
{
    struct raw *slow = ask("/api/v1/widget/conversation/messages?limit=100", jwt, ANSWERS);
    ck_assert(is_answered(slow));
    expect_status(http(server, .method = "DELETE", .path = "/api/v1/widget/me", .key = jwt), 200);
    unsigned whole = 0;
    begin_to_read(slow);
    while (raw_response(slow, false, 5000)->status == 200)
        whole++;
    ck_assert_uint_lt(whole, ANSWERS);
    ck_assert(raw_closed(slow, 5000));
    expect_status(http_get(server, "/healthz"), 200);
    raw_close(slow);
}
END_TEST

/*
 * Whether a process still holds the server's end of each connection: an orphaned socket has inode
 * 0. Sets ${held}; returns how many are closed.
 */
static size_t given_up(struct raw *const *raws, size_t count, bool *held)
{
    char line[512];
    size_t n = 0;
    FILE *table = fopen("/proc/net/tcp", "r");
    ck_assert_ptr_nonnull(table);
    memset(held, 0, count * sizeof(*held));
    while (fgets(line, sizeof(line), table)) {
        unsigned local, remote;
        unsigned long inode;
        if (sscanf(line, " %*d: %*8x:%x %*8x:%x %*x %*x:%*x %*x:%*x %*x %*u %*d %lu", &local,
                   &remote, &inode) != 3 ||
            local != server->port || inode == 0)
            continue;
        for (size_t i = 0; i < count; i++) {
            struct sockaddr_in mine = {0};
            socklen_t size = sizeof(mine);
            ck_assert_int_eq(getsockname(raws[i]->fd, (struct sockaddr *)&mine, &size), 0);
            held[i] = held[i] || remote == ntohs(mine.sin_port);
        }
    }
    fclose(table);
    for (size_t i = 0; i < count; i++)
        n += !held[i];
    return n;
}

static struct raw *slow_ones[SLOW];
static bool held[SLOW];

/* each holds 64 or 128 KiB, so 4 MiB are those of at most 64 clients */
static bool enough_are_ended(void *arg)
{
    (void)arg;
    return given_up(slow_ones, SLOW, held) >= SLOW - 64;
}

START_TEST(the_longest_stalled_clients_are_disconnected_over_the_total_bound)
{
    const char *path = page_of_operators();
    struct server internal = server_internal(server);
    for (size_t i = 0; i < SLOW; i++) {
        slow_ones[i] = ask(path, operators, ANSWERS);
        if (i % 10 == 0)
            ck_assert(is_answered(slow_ones[i]));
        if (i % 30 == 0) { /* other clients read meanwhile */
            struct response *r = http(server, .path = path, .key = operators);
            expect(r, r->status == 200 && r->body_size > 3000000);
            response_free(r);
        }
    }
    ck_assert_msg(wait_until(enough_are_ended, NULL, 4000), "only %zu are ended",
                  given_up(slow_ones, SLOW, held));
    ck_assert_uint_lt(given_up(slow_ones, SLOW, held), SLOW - 16);
    size_t early = 0, late = 0;
    for (size_t i = 0; i < SLOW / 2; i++) {
        early += !held[i];
        late += !held[SLOW / 2 + i];
    }
    ck_assert_msg(early > SLOW / 3 && early > late && held[SLOW - 1],
                  "%zu of the first half are ended, %zu of the second", early, late);
    long cut = metric(&internal, "assay_connections_cut_off_total{what=\"answer\"}");
    ck_assert_msg(cut >= (long)(early + late) && cut < SLOW, "%ld are counted, %zu are ended", cut,
                  early + late);
    ck_assert_int_eq(metric(&internal, "assay_connections_cut_off_total{what=\"upload\"}"), 0);
    for (size_t i = 0; i < SLOW; i++)
        raw_close(slow_ones[i]);
}
END_TEST

START_TEST(a_list_ends_early_at_1_MiB)
{
    struct response *r = NULL;
    char *fields = malloc(8100);
    memset(fields, 'x', 8099);
    fields[8099] = '\0';
    for (int v = 0; v < 8;
         v++) { /* each visitor sends the maximum under each of twenty addresses */
        r = http(server, .method = "POST", .path = "/api/v1/widget/init", .key = "",
                 .headers = {JSON}, .body = text("{\"agent_id\":\"%s\"}", agent));
        const char *visitor = str_at(r, "data.jwt");
        for (int i = 0; i < 20; i++) {
            r = http(server, .method = "POST", .path = "/api/v1/widget/leads", .key = visitor,
                     .headers = {JSON},
                     .body = text("{\"email\":\"lead%02d@example.com\",\"fields\":{\"x\":\"%s\"}}",
                                  i, fields));
            expect_status(r, v == 0 ? 201 : 200);
            response_free(r);
        }
    }
    size_t seen = 0;
    const char *after = NULL;
    for (int pages = 0; seen < 20 && pages < 5; pages++) {
        r = http(server,
                 .path = text("/api/v1/leads?per_page=25%s%s", after ? "&after=" : "",
                              after ? after : ""),
                 .key = operators);
        expect(r, r->status == 200 && r->body_size <= 1 << 20 && len_at(r, "data") > 0);
        for (size_t i = 0; i < len_at(r, "data"); i++, seen++)
            expect_str(r, text("data.%zu.email", i), text("lead%02d@example.com", 19 - (int)seen));
        expect(r, bool_at(r, "meta.has_more") == (seen < 20));
        if (seen < 20)
            after = str_at(r, "meta.next_after");
        expect(r, pages > 0 || (seen > 10 && seen < 20));
    }
    ck_assert_uint_eq(seen, 20);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("slow_readers");
    TCase *usual = harness_case(suite, "a server as it is"),
          *small = harness_case(suite, "a server whose bound is 4 MiB");
    tcase_add_unchecked_fixture(usual, setup, teardown);
    tcase_add_test(usual, a_client_that_does_not_read_holds_one_chunk);
    tcase_add_test(usual, a_large_page_is_equal_for_every_client);
    tcase_add_test(usual, a_list_ends_early_at_1_MiB);
    tcase_add_test(usual, a_client_that_does_not_read_a_stream_holds_a_part);
    tcase_add_test(usual, erasing_a_record_during_its_response_ends_the_response);
    tcase_add_unchecked_fixture(small, setup_small, teardown);
    tcase_add_test(small, the_longest_stalled_clients_are_disconnected_over_the_total_bound);
    return harness_main(suite);
}
