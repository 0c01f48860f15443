/* Messages between two masters, and the descriptors that one requests from the other. */
#include "core/master/upgrade_channel.h"
#include "t/kit/suite.h"

#include <check.h>
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* more than fit into a message, and a number at which one too few or too many would show */
static const size_t counts[] = {1, 250, 251, 700};
enum { MOST = 700 };

static int pair[2], fds[MOST];

static void begin(void)
{
    ck_assert_int_eq(upgrade_channel_pair(pair), 0);
}

static void end(void)
{
    close(pair[0]);
    close(pair[1]);
}

/* each is the end of its own pipe, which identifies it */
static ino_t inode_of(int fd)
{
    struct stat st;
    return fstat(fd, &st) == 0 ? st.st_ino : 0;
}

/* the new master's side, in its own process: its exit */
static int ask(size_t count, const ino_t *inodes)
{
    int *got;
    size_t n;
    close(pair[0]);
    if (upgrade_channel_receive_fds(pair[1], &got, &n) != 0)
        return errno == EPIPE ? 2 : 3;
    if (n != count)
        return 4;
    for (size_t i = 0; i < n; i++)
        if (inode_of(got[i]) != inodes[i])
            return 5;
    return upgrade_channel_send(pair[1], MESSAGE_PREPARED, NULL, 0) ? 0 : 6;
}

static int receive(struct upgrade_message *received)
{
    int message;
    while ((message = upgrade_channel_receive(pair[0], received)) == 0)
        poll(&(struct pollfd){pair[0], POLLIN, 0}, 1, 1000);
    return message;
}

static int status_of(pid_t pid)
{
    int status;
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

START_TEST(descriptors_arrive_in_order_with_their_sender)
{
    static ino_t inodes[MOST];
    struct upgrade_message received;
    int message;
    for (size_t i = 0; i < counts[_i]; i++) {
        int ends[2];
        ck_assert_int_eq(pipe(ends), 0);
        close(ends[0]);
        fds[i] = ends[1];
        inodes[i] = inode_of(fds[i]);
    }
    pid_t pid = fork();
    if (pid == 0) {
        for (size_t i = 0; i < counts[_i]; i++)
            close(fds[i]);
        _exit(ask(counts[_i], inodes));
    }
    while ((message = receive(&received)) == MESSAGE_FDS_WANTED) {
        ck_assert_int_eq(received.from, pid);
        ck_assert(upgrade_channel_send_fds(pair[0], fds, counts[_i], &received));
    }
    ck_assert_int_eq(message, MESSAGE_PREPARED);
    ck_assert_int_eq(status_of(pid), 0);
    for (size_t i = 0; i < counts[_i]; i++)
        close(fds[i]);
}
END_TEST

START_TEST(sent_descriptors_survive_their_sender_until_read)
{
    int *got;
    size_t n;
    int before = dup(0);
    close(before);
    upgrade_channel_preload_fds(pair[0], (int[]){0, 1, 2}, 3);
    if (_i == 1)
        upgrade_channel_revoke_fds(pair[1]);
    close(pair[0]);
    if (_i == 0) {
        ck_assert_int_eq(upgrade_channel_receive_fds(pair[1], &got, &n), 0);
        ck_assert_uint_eq(n, 3);
        ck_assert_int_eq(inode_of(got[2]), inode_of(2));
        for (size_t i = 0; i < n; i++)
            close(got[i]);
        free(got);
    } else {
        ck_assert_int_eq(upgrade_channel_receive_fds(pair[1], &got, &n), -1);
        ck_assert_int_eq(errno, EPIPE);
        int after = dup(0);
        ck_assert_int_eq(after, pair[0] < before ? pair[0] : before);
        close(after);
    }
    pair[0] = -1;
}
END_TEST

START_TEST(closing_the_channel_ends_a_request)
{
    struct upgrade_message received;
    pid_t pid = fork();
    if (pid == 0)
        _exit(ask(1, NULL));
    if (_i == 0) /* it may or may not have asked */
        ck_assert_int_eq(receive(&received), MESSAGE_FDS_WANTED);
    close(pair[0]);
    pair[0] = -1;
    ck_assert_int_eq(status_of(pid), 2);
}
END_TEST

static const pid_t wrong[] = {-1, 3, 100000};

START_TEST(a_missing_descriptor_cannot_be_requested)
{
    struct upgrade_message received = {.numbers = {wrong[_i]}, .count = 1};
    errno = 0;
    ck_assert(!upgrade_channel_send_fds(pair[0], (int[]){0, 1, 2}, 3, &received));
    ck_assert_int_eq(errno, EPROTO);
}
END_TEST

START_TEST(unexpected_descriptors_are_refused)
{
    struct upgrade_message received = {.numbers = {0}, .count = 1};
    int before = dup(0);
    ck_assert(upgrade_channel_send_fds(pair[1], (int[]){0}, 1, &received));
    close(before);
    ck_assert_int_eq(upgrade_channel_receive(pair[0], &received), MESSAGE_FDS);
    int after = dup(0);
    ck_assert_int_eq(after, before);
    close(after);
}
END_TEST

START_TEST(a_message_carries_numbers)
{
    struct upgrade_message received;
    pid_t numbers[SCOREBOARD_SLOTS];
    for (size_t i = 0; i < SCOREBOARD_SLOTS; i++)
        numbers[i] = (pid_t)i + 1000;
    ck_assert(upgrade_channel_send(pair[0], MESSAGE_TAKE, numbers, SCOREBOARD_SLOTS));
    ck_assert_int_eq(upgrade_channel_receive(pair[1], &received), MESSAGE_TAKE);
    ck_assert(received.count == SCOREBOARD_SLOTS &&
              received.numbers[SCOREBOARD_SLOTS - 1] == numbers[SCOREBOARD_SLOTS - 1]);
    ck_assert_int_eq(upgrade_channel_receive(pair[1], &received), 0);
    close(pair[0]);
    pair[0] = -1;
    ck_assert_int_eq(upgrade_channel_receive(pair[1], &received), -1);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("upgrade_channel");
    TCase *tcase = tcase_create("a pair of sockets");
    tcase_add_checked_fixture(tcase, begin, end);
    tcase_set_timeout(tcase, 60);
    tcase_add_loop_test(tcase, descriptors_arrive_in_order_with_their_sender, 0,
                        sizeof(counts) / sizeof(counts[0]));
    tcase_add_loop_test(tcase, sent_descriptors_survive_their_sender_until_read, 0, 2);
    tcase_add_loop_test(tcase, closing_the_channel_ends_a_request, 0, 2);
    tcase_add_loop_test(tcase, a_missing_descriptor_cannot_be_requested, 0,
                        sizeof(wrong) / sizeof(wrong[0]));
    tcase_add_test(tcase, unexpected_descriptors_are_refused);
    tcase_add_test(tcase, a_message_carries_numbers);
    suite_add_tcase(suite, tcase);
    return suite_run(suite);
}
