/*
 * The copy of a store over a channel: the joiner takes a whole one alone. A thread is the source,
 * or plays one that fails.
 */
#include "t/kit/store.h"
#include "t/kit/suite.h"

#include "core/cluster/store_copy.h"

#include <check.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

static struct kit kit;
static struct channel source, joiner;
static char dir[64], to[128], why[STORE_COPY_WHY], sent_why[STORE_COPY_WHY];
static int fd;
static uint64_t stop_at; /* bytes, at the joiner */

static void setup(void)
{
    int fds[2];
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
    channel_init(&source, fds[0]);
    channel_init(&joiner, fds[1]);
    kit_open(&kit);
    kit_dir(dir);
    snprintf(to, sizeof(to), "%s/data.mdb", dir);
    fd = open(to, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    ck_assert_int_ge(fd, 0);
    stop_at = UINT64_MAX;
}

static void teardown(void)
{
    close(fd);
    channel_close(&source);
    channel_close(&joiner);
    kit_close(&kit);
    kit_remove(dir);
}

static bool goes_on(void *arg, uint64_t done, uint64_t total)
{
    (void)arg;
    (void)total;
    return done < stop_at;
}

static bool always(void *arg, uint64_t done, uint64_t total)
{
    (void)arg;
    (void)done;
    (void)total;
    return true;
}

static bool receive(void)
{
    return store_copy_receive(&joiner, fd, goes_on, NULL, why);
}

static pthread_t start(void *(*work)(void *))
{
    pthread_t thread;
    ck_assert_int_eq(pthread_create(&thread, NULL, work, NULL), 0);
    return thread;
}

/* As the writer does before it hands the channel to the thread. */
static void await_request(void)
{
    struct frame f;
    struct pollfd ready = {source.fd, POLLIN, 0};
    while (channel_next(&source, &f) != 1) {
        ck_assert_int_eq(poll(&ready, 1, 5000), 1);
        ck_assert_int_ge(channel_read(&source), 0);
    }
    ck_assert_int_eq(f.head.type, FRAME_COPY);
}

static void *send_store(void *arg)
{
    (void)arg;
    await_request();
    return store_copy_send(&source, kit.s, always, NULL, sent_why) ? &kit : NULL;
}

static off_t size_received(void)
{
    struct stat st;
    ck_assert_int_eq(stat(to, &st), 0);
    return st.st_size;
}

static void fill(void)
{
    uint64_t workspace = kit_workspace(&kit, "main");
    for (int i = 0; i < 300; i++)
        kit_create(&kit, workspace, "http://a.example/", "a.example");
}

START_TEST(a_whole_store_arrives)
{
    struct kit copy = {0};
    void *sent;
    fill();
    pthread_t thread = start(send_store);
    ck_assert_msg(receive(), "%s", why);
    pthread_join(thread, &sent);
    ck_assert_msg(sent != NULL, "%s", sent_why);
    const struct store_options options = {.dir = dir, .mode = STORE_READ};
    ck_assert_int_eq(store_open(&options, &copy.s, why, sizeof(why)), STORE_OK);
    kit_check_clean(copy.s);
    store_close(copy.s);
}
END_TEST

START_TEST(a_joiner_that_stops_ends_the_source)
{
    void *sent;
    const int small = 4096; /* the copy does not arrive at once */
    stop_at = 1;
    fill();
    ck_assert_int_eq(setsockopt(source.fd, SOL_SOCKET, SO_SNDBUF, &small, sizeof(small)), 0);
    pthread_t thread = start(send_store);
    ck_assert(!receive());
    ck_assert_str_eq(why, "");
    channel_close(&joiner);
    pthread_join(thread, &sent);
    ck_assert_ptr_null(sent);
    ck_assert_msg(strstr(sent_why, "the connection was lost"), "%s", sent_why);
}
END_TEST

/* ---- sources that fail ---- */

static void piece(uint64_t offset, const char *bytes)
{
    channel_put(&source, FRAME_PIECE, offset, 0, str_of(bytes));
}

static void copied(uint64_t bytes, uint64_t refused, struct str payload)
{
    channel_put(&source, FRAME_COPIED, bytes, refused, payload);
}

static void lose_piece(void)
{
    piece(0, "one");
    piece(6, "three");
}

static void end_early(void)
{
    piece(0, "one");
    copied(9, 0, STR("0123456789abcdef"));
}

static void alter(void)
{
    piece(0, "one");
    copied(3, 0, STR("0123456789abcdef"));
}

static void cut(void)
{
    piece(0, "one");
    ck_assert_int_eq(channel_flush(&source), 0);
    shutdown(source.fd, SHUT_RDWR);
}

static void refuse(void)
{
    copied(0, 1, STR("the reason"));
}

static void confuse(void)
{
    channel_put(&source, FRAME_ANSWER, 1, 2, STR("x"));
}

static const struct {
    void (*play)(void);
    const char *why;
} failures[] = {
    {lose_piece, "a piece of the copy is missing at byte 3"},
    {end_early, "the copy differs"},
    {alter, "the copy differs"},
    {cut, "the connection was lost"},
    {refuse, "the reason"},
    {confuse, "invalid frame"},
};

START_TEST(a_copy_that_is_not_whole_is_refused)
{
    failures[_i].play();
    channel_flush(&source);
    ck_assert(!receive());
    ck_assert_msg(strstr(why, failures[_i].why), "%s", why);
}
END_TEST

START_TEST(a_file_that_cannot_be_written_ends_the_joiner)
{
    ck_assert_int_eq(dup2(open("/dev/full", O_WRONLY | O_CLOEXEC), fd), fd);
    piece(0, "one");
    channel_flush(&source);
    ck_assert(!receive());
    ck_assert_msg(strstr(why, "cannot be written: No space left"), "%s", why);
    ck_assert_int_eq(size_received(), 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("store_copy");
    TCase *tcase = tcase_create("copies");
    tcase_add_checked_fixture(tcase, setup, teardown);
    suite_add_tcase(suite, tcase);
    tcase_add_test(tcase, a_whole_store_arrives);
    tcase_add_test(tcase, a_joiner_that_stops_ends_the_source);
    tcase_add_loop_test(tcase, a_copy_that_is_not_whole_is_refused, 0,
                        sizeof(failures) / sizeof(*failures));
    tcase_add_test(tcase, a_file_that_cannot_be_written_ends_the_joiner);
    return suite_run(suite);
}
