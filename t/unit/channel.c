/* The message channel between processes: frames, full sockets and lost peers. */
#include "core/ipc/channel.h"
#include "t/kit/suite.h"

#include <check.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

static struct channel a, b;

static void setup(void)
{
    int fds[2];
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
    channel_init(&a, fds[0]);
    channel_init(&b, fds[1]);
}

static void teardown(void)
{
    channel_close(&a);
    channel_close(&b);
}

START_TEST(frames_arrive_whole_and_in_order)
{
    struct frame f;
    channel_put(&a, FRAME_HELLO, 1, 2, (struct str){0});
    channel_put(&a, FRAME_CHANGE, 3, 4, STR("payload"));
    ck_assert_int_eq(channel_flush(&a), 0);
    ck_assert_int_eq(channel_read(&b), 1);
    ck_assert_int_eq(channel_next(&b, &f), 1);
    ck_assert(f.head.type == FRAME_HELLO && f.head.a == 1 && f.head.b == 2 && f.payload.n == 0);
    ck_assert_int_eq(channel_next(&b, &f), 1);
    ck_assert(f.head.type == FRAME_CHANGE && str_eq(f.payload, STR("payload")));
    ck_assert_int_eq(channel_next(&b, &f), 0);
}
END_TEST

START_TEST(a_partial_frame_is_not_delivered)
{
    struct channel whole = {.fd = -1};
    struct frame f;
    channel_put(&whole, FRAME_EVENT, 5, 6, STR("abc"));
    for (size_t i = 0; i < whole.out.n; i++) {
        ck_assert_int_eq(channel_next(&b, &f), 0);
        ck_assert_int_eq(write(a.fd, whole.out.p + i, 1), 1);
        ck_assert_int_eq(channel_read(&b), 1);
    }
    ck_assert_int_eq(channel_next(&b, &f), 1);
    ck_assert(str_eq(f.payload, STR("abc")));
    channel_close(&whole);
}
END_TEST

START_TEST(a_full_socket_keeps_the_rest_until_read)
{
    char block[5000];
    struct frame f;
    size_t sent = 500, got = 0;
    memset(block, 'x', sizeof(block));
    for (size_t i = 0; i < sent; i++)
        channel_put(&a, FRAME_CHANGE, i, 0, (struct str){block, sizeof(block)});
    ck_assert_int_eq(channel_flush(&a), 1);
    ck_assert_uint_gt(channel_pending(&a), 0);
    while (got < sent) {
        ck_assert_int_ge(channel_flush(&a), 0);
        ck_assert_int_ge(channel_read(&b), 0);
        while (channel_next(&b, &f) == 1) {
            ck_assert_uint_eq(f.head.a, got++);
            ck_assert_uint_eq(f.payload.n, sizeof(block));
        }
    }
    ck_assert_uint_eq(channel_pending(&a), 0);
}
END_TEST

static const struct frame_head wrong[] = {
    {FRAME_MAX_PAYLOAD + 1, FRAME_CHANGE, 0, 0}, {0, 0, 0, 0}, {0, FRAME_TYPES, 0, 0}};

START_TEST(a_malformed_frame_is_reported)
{
    struct frame f;
    ck_assert_int_eq(write(a.fd, &wrong[_i], sizeof(wrong[_i])), (int)sizeof(wrong[_i]));
    ck_assert_int_eq(channel_read(&b), 1);
    ck_assert_int_eq(channel_next(&b, &f), -1);
}
END_TEST

START_TEST(a_closed_peer_is_reported_after_its_frames)
{
    struct frame f;
    channel_put(&a, FRAME_HELLO, 9, 0, (struct str){0});
    ck_assert_int_eq(channel_flush(&a), 0);
    channel_close(&a);
    int got = channel_read(&b);
    ck_assert_int_eq(channel_next(&b, &f), 1);
    ck_assert_uint_eq(f.head.a, 9);
    if (got >= 0)
        ck_assert_int_eq(channel_read(&b), -1);
    channel_put(&b, FRAME_HELLO, 0, 0, (struct str){0});
    ck_assert_int_eq(channel_flush(&b), -1);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("channel");
    TCase *t = tcase_create("channel");
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, frames_arrive_whole_and_in_order);
    tcase_add_test(t, a_partial_frame_is_not_delivered);
    tcase_add_test(t, a_full_socket_keeps_the_rest_until_read);
    tcase_add_loop_test(t, a_malformed_frame_is_reported, 0, sizeof(wrong) / sizeof(wrong[0]));
    tcase_add_test(t, a_closed_peer_is_reported_after_its_frames);
    suite_add_tcase(s, t);
    return suite_run(s);
}
