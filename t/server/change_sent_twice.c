/*
 * A sender whose connection breaks reconnects with the same channel and repeats its unanswered
 * changes. When both connections are in one batch of the writer, each change is still applied once.
 * In a cluster a change may be sent twice and find no leader the second time.
 */
#include "t/kit/harness.h"

#include "core/ipc/channel.h"
#include "store/change.h"
#include "store/store.h"

#include <poll.h>
#include <pthread.h>
#include <sys/socket.h>
#include <unistd.h>

#define TIMES 300
#define CHANGES 5

static struct server *server;

static void make(void)
{
    server = server_new(&(struct server_options){.workers = 1});
}

static void start(void)
{
    make();
    server_start(server);
}

static void end(void)
{
    server_free(server);
}

static void stop(void)
{
    server_stop(server);
    end();
}

static struct channel connect_as(uint64_t id)
{
    struct channel c;
    char *path = text("%s/writer.sock", server->run);
    int fd = channel_connect(path);
    ck_assert_msg(fd >= 0, "%s", path);
    free(path);
    channel_init(&c, fd);
    channel_put(&c, FRAME_HELLO, id, 0, (struct str){0});
    return c;
}

static void put_changes(struct channel *c, unsigned round)
{
    for (uint64_t sequence = 1; sequence <= CHANGES; sequence++) {
        char url[64];
        struct buf wire = {0};
        snprintf(url, sizeof(url), "http://twice.example/%u/%u", round, (unsigned)sequence);
        struct store_change change = {.kind = CHANGE_REPORT_CREATE,
                                      .workspace = 1,
                                      .url = str_of(url),
                                      .name = STR("twice.example"),
                                      .code = 202};
        change_encode(&change, &wire);
        channel_put(c, FRAME_CHANGE, sequence, 0, buf_view(&wire));
        buf_free(&wire);
    }
}

/* until the last change is answered */
static void await_answers(struct channel *c)
{
    struct frame f;
    uint64_t last = 0;
    while (last < CHANGES) {
        struct pollfd ready = {c->fd, POLLIN, 0};
        ck_assert_int_eq(poll(&ready, 1, 10000), 1);
        ck_assert_int_ge(channel_read(c), 0);
        while (channel_next(c, &f) == 1)
            if (f.head.type == FRAME_ANSWER) {
                struct store_answer answer;
                ck_assert_uint_eq(f.payload.n, sizeof(answer));
                memcpy(&answer, f.payload.p, sizeof(answer));
                ck_assert_uint_eq(answer.status, STORE_OK);
                ck_assert_uint_ne(answer.id, 0);
                last = f.head.a;
            }
    }
}

START_TEST(a_change_sent_twice_is_applied_once)
{
    for (unsigned round = 1; round <= TIMES; round++) {
        uint64_t id = 0x7777000000000001u + 2 * round;
        struct channel first = connect_as(id), second;
        put_changes(&first, round);
        ck_assert_int_eq(channel_flush(&first), 0);
        channel_close(&first);
        if (round % 16 == 0)
            poll(NULL, 0, 20); /* the writer has finished it */
        second = connect_as(id);
        put_changes(&second, round);
        ck_assert_int_eq(channel_flush(&second), 0);
        await_answers(&second);
        channel_close(&second);
    }
    struct response *r = http_get(server, "/api/v1/projects/twice.example");
    ck_assert_int_eq(r->status, 200);
    char *expected = text("\"reports_count\":%d,", TIMES * CHANGES);
    ck_assert_msg(strstr(r->body, expected) != NULL, "%s expected: %s", expected, r->body);
    free(expected);
    response_free(r);
}
END_TEST

/* ---- a command, and a writer that ends ---- */

/* Columns: how many writers end before one answers, what the command says. */
static const struct {
    unsigned ended;
    const char *says;
} outcomes[] = {{0, "no node of the cluster leads, or its log does not answer"},
                {1, "it is unknown whether the change is done"}};

static struct channel accept_one(int listening)
{
    struct channel c;
    struct pollfd ready = {listening, POLLIN, 0};
    ck_assert_int_eq(poll(&ready, 1, 10000), 1);
    channel_init(&c, accept4(listening, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC));
    return c;
}

/* The number of the change. */
static uint64_t await_change(struct channel *c)
{
    struct frame f;
    for (;;) {
        struct pollfd ready = {c->fd, POLLIN, 0};
        ck_assert_int_eq(poll(&ready, 1, 10000), 1);
        ck_assert_int_ge(channel_read(c), 0);
        while (channel_next(c, &f) == 1)
            if (f.head.type == FRAME_CHANGE)
                return f.head.a;
    }
}

struct writers {
    int listening;
    unsigned ended;
};

/* The last one answers that no node leads. */
static void *be_writers(void *arg)
{
    const struct writers *w = arg;
    const struct store_answer away = {.status = STORE_AWAY};
    for (unsigned i = 0; i <= w->ended; i++) {
        struct channel c = accept_one(w->listening);
        uint64_t sequence = await_change(&c);
        if (i == w->ended)
            channel_put(&c, FRAME_ANSWER, sequence, 0,
                        (struct str){(const char *)&away, sizeof(away)});
        ck_assert_int_eq(channel_flush(&c), 0);
        channel_close(&c);
    }
    return NULL;
}

START_TEST(a_command_says_that_the_outcome_of_a_change_sent_twice_is_unknown)
{
    pthread_t thread;
    assay_ok(server, "workspace", "create", "before", NULL); /* makes the store */
    char *path = text("%s/writer.sock", server->run);
    unlink(path);
    struct writers writers = {channel_listen(path), outcomes[_i].ended};
    ck_assert_int_ge(writers.listening, 0);
    ck_assert_int_eq(pthread_create(&thread, NULL, be_writers, &writers), 0);
    struct run run = assay(server, "workspace", "create", "acme", NULL);
    pthread_join(thread, NULL);
    close(writers.listening);
    ck_assert_int_eq(run.status, 1);
    ck_assert_msg(strstr(run.err, outcomes[_i].says) != NULL, "%s", run.err);
    unlink(path);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("change_sent_twice");
    TCase *t = harness_case(s, "channel");
    tcase_add_checked_fixture(t, start, stop);
    tcase_add_test(t, a_change_sent_twice_is_applied_once);
    t = harness_case(s, "command");
    tcase_add_checked_fixture(t, make, end);
    tcase_add_loop_test(t, a_command_says_that_the_outcome_of_a_change_sent_twice_is_unknown, 0,
                        sizeof(outcomes) / sizeof(*outcomes));
    return harness_main(s);
}
