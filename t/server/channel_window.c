/*
 * A sender that sends more than the window of the channel allows is disconnected. What it sent
 * before is done.
 */
#include "t/kit/harness.h"
#include "t/kit/supervisor.h"

#include "core/ipc/channel.h"
#include "store/store.h"

#include <poll.h>
#include <signal.h>

enum { SOON_MS = 10000 };

static struct server *server;
static struct channel channel;
static uint64_t answered; /* the last change that was answered */

static void start(void)
{
    server = server_new(&(struct server_options){.workers = 1});
    server_start(server);
    int fd = channel_connect(text("%s/writer.sock", server->run));
    ck_assert_int_ge(fd, 0);
    channel_init(&channel, fd);
    channel_put(&channel, FRAME_HELLO, 0x7777000000000001u, 0, (struct str){0});
    answered = 0;
}

static void stop(void)
{
    channel_close(&channel);
    server_stop(server);
    server_free(server);
}

/* A change that is none, which is answered like one. */
static void put(uint64_t sequence, uint64_t confirmed)
{
    channel_put(&channel, FRAME_CHANGE, sequence, confirmed, (struct str){0});
}

/* False: the writer has ended the connection. */
static bool read_answers(void)
{
    struct frame f;
    struct pollfd ready = {channel.fd, POLLIN, 0};
    if (channel_flush(&channel) < 0)
        return false;
    poll(&ready, 1, 20);
    int got = channel_read(&channel);
    while (channel_next(&channel, &f) == 1)
        if (f.head.type == FRAME_ANSWER)
            answered = f.head.a;
    return got >= 0;
}

static bool await_answer(uint64_t sequence)
{
    const int64_t deadline = now_ms() + SOON_MS;
    while (answered < sequence && read_answers())
        ck_assert_int_lt(now_ms(), deadline);
    return answered == sequence;
}

static void expect_refused(uint64_t last)
{
    const int64_t deadline = now_ms() + SOON_MS;
    while (read_answers())
        ck_assert_int_lt(now_ms(), deadline);
    ck_assert_uint_le(answered, last);
    ck_assert(server_says(server, "disconnected a command: it sent an invalid frame", 0, SOON_MS));
}

START_TEST(a_sender_may_use_the_whole_window)
{
    for (uint64_t i = 1; i <= CHANNEL_WINDOW; i++)
        put(i, 0);
    ck_assert(await_answer(CHANNEL_WINDOW));
    for (uint64_t i = 1; i <= CHANNEL_WINDOW; i++)
        put(CHANNEL_WINDOW + i, CHANNEL_WINDOW);
    ck_assert(await_answer(2 * (uint64_t)CHANNEL_WINDOW));
}
END_TEST

START_TEST(a_sender_that_confirms_no_answers_is_disconnected)
{
    for (uint64_t i = 1; i <= CHANNEL_WINDOW; i++)
        put(i, 0);
    ck_assert(await_answer(CHANNEL_WINDOW));
    put(CHANNEL_WINDOW + 1, 0);
    expect_refused(CHANNEL_WINDOW);
}
END_TEST

/* The writer reads all of it at once. */
START_TEST(a_sender_that_confirms_what_was_not_answered_is_disconnected)
{
    const pid_t writer = server_process(server, "assayd: writer");
    process_stop(writer);
    for (uint64_t i = 1; i <= 4 * (uint64_t)CHANNEL_WINDOW; i++)
        put(i, i - 1);
    ck_assert_int_eq(channel_flush(&channel), 1);
    kill(writer, SIGCONT);
    expect_refused(CHANNEL_WINDOW);
}
END_TEST

START_TEST(a_sender_that_confirms_its_own_change_is_disconnected)
{
    put(1, 1);
    expect_refused(0);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("channel_window");
    TCase *t = harness_case(s, "channel_window");
    tcase_add_checked_fixture(t, start, stop);
    tcase_add_test(t, a_sender_may_use_the_whole_window);
    tcase_add_test(t, a_sender_that_confirms_no_answers_is_disconnected);
    tcase_add_test(t, a_sender_that_confirms_what_was_not_answered_is_disconnected);
    tcase_add_test(t, a_sender_that_confirms_its_own_change_is_disconnected);
    return harness_main(s);
}
