/*
 * How long a worker waits for a decision of Redis, and what it sends of those that it gave up. The
 * test is the Redis and the event loop. t/cluster/limits.c has a Redis.
 */
#include "core/limits/primary.h"
#include "t/kit/suite.h"

#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

enum { TIMEOUT_MS = 20, LONG_MS = 60, TRIES = 2000, MANY = 20000 };

#define HEX16 "0123456789abcdef"
#define ANSWER "*4\r\n:1\r\n:1800000000123\r\n:3\r\n:1800000060\r\n"

static char dir[32], redis_path[48], address[64], key_path[48];
static struct conf conf;
static struct score score;
static struct process process = {.score = &score};
static struct loop loop;
static struct primary *primary;
static int listening, redis; /* redis: the connection, as Redis has it */
static struct {
    unsigned admitted, away;
} ended;

static const struct ratelimit_window window = {
    .seconds = 60, .limit = 10, .key = "a", .key_size = 1};

/* ---- Redis ---- */

static void listen_as_redis(void)
{
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    snprintf(at.sun_path, sizeof(at.sun_path), "%s", redis_path);
    listening = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0);
    ck_assert_int_eq(bind(listening, (struct sockaddr *)&at, sizeof(at)), 0);
    ck_assert_int_eq(listen(listening, 1), 0);
}

static void redis_says(const char *reply)
{
    ck_assert_int_eq(write(redis, reply, strlen(reply)), (ssize_t)strlen(reply));
}

/* How many decisions it was sent since the last call; ${end}: the connection was closed. */
static unsigned redis_reads(bool *end)
{
    static char text[8 << 20]; /* more than MANY commands */
    size_t n = 0;
    ssize_t got;
    while ((got = recv(redis, text + n, sizeof(text) - 1 - n, MSG_DONTWAIT)) > 0)
        n += (size_t)got;
    *end = got == 0;
    text[n] = '\0';
    unsigned count = 0;
    for (const char *at = text; (at = strstr(at, "EVALSHA")) != NULL; at++)
        count++;
    return count;
}

static unsigned redis_read(void)
{
    bool end;
    unsigned count = redis_reads(&end);
    ck_assert(!end);
    return count;
}

/* ---- a worker ---- */

static void end_turn(void)
{
    loop_read_clock(&loop);
    primary_tick(primary);
    primary_flush(primary);
}

static void turn(void)
{
    ck_assert_int_eq(h2o_evloop_run(loop.ctx.loop, primary_wake_ms(primary, 5)), 0);
    end_turn();
}

static void reply_to_handshake(void)
{
    char fingerprint[128];
    while ((redis = accept(listening, NULL, NULL)) < 0)
        turn();
    snprintf(fingerprint, sizeof(fingerprint), "$%zu\r\n%s\r\n",
             strlen(primary_keys(primary)->fingerprint), primary_keys(primary)->fingerprint);
    redis_says("*1\r\n$6\r\nmaster\r\n$27\r\nmaxmemory_policy:noeviction\r\n$-1\r\n");
    redis_says(fingerprint);
    redis_says("$40\r\n0123456789012345678901234567890123456789\r\n");
    while (atomic_load(&score.redis_away_ms) != 0)
        turn();
    redis_read();
}

static void setup(void)
{
    strcpy(dir, "/tmp/assay-primary-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(dir));
    snprintf(redis_path, sizeof(redis_path), "%s/redis", dir);
    snprintf(address, sizeof(address), "unix:%s", redis_path);
    snprintf(key_path, sizeof(key_path), "%s/key", dir);
    int fd = open(key_path, O_WRONLY | O_CREAT, 0600);
    ck_assert_int_eq(write(fd, HEX16 HEX16 HEX16 HEX16, 64), 64);
    close(fd);
    conf = (struct conf){.redis_address = address,
                         .redis_key_file = key_path,
                         .redis_prefix = "assay",
                         .redis_user = "",
                         .redis_password_file = "",
                         .redis_sentinel_password_file = "",
                         .redis_timeout_ms = TIMEOUT_MS};
    loop = (struct loop){.process = &process, .conf = &conf, .now_ms = clock_mono_ms()};
    loop.ctx.loop = h2o_evloop_create();
    listen_as_redis();
    memset(&ended, 0, sizeof(ended));
    primary = primary_new(&loop);
    ck_assert_ptr_nonnull(primary);
    reply_to_handshake();
}

static void teardown(void)
{
    primary_free(primary);
    h2o_evloop_destroy(loop.ctx.loop);
    close(redis);
    close(listening);
    unlink(redis_path);
    unlink(key_path);
    rmdir(dir);
}

static void on_end(void *arg, const struct decision_answer *answer)
{
    (void)arg;
    if (answer == NULL)
        ended.away++;
    else
        ended.admitted += answer->granted;
}

static bool ask(void)
{
    return primary_decide(primary, "api", &window, 1, 1, on_end, NULL);
}

static void turns_until_ended(void)
{
    for (unsigned i = 0; ended.admitted + ended.away == 0; i++) {
        ck_assert_uint_lt(i, TRIES);
        turn();
    }
}

/* ---- tests ---- */

START_TEST(a_long_turn_after_the_question_takes_no_time_of_the_decision)
{
    ck_assert(ask());
    poll(NULL, 0, LONG_MS);
    end_turn();
    ck_assert_uint_eq(ended.away, 0);
    ck_assert_uint_eq(redis_read(), 1);
    redis_says(ANSWER);
    turns_until_ended();
    ck_assert_uint_eq(ended.admitted, 1);
    ck_assert_uint_eq(atomic_load(&score.redis_away_ms), 0);
}
END_TEST

START_TEST(an_answer_that_came_during_a_long_turn_is_read)
{
    ck_assert(ask());
    end_turn();
    ck_assert_uint_eq(redis_read(), 1);
    redis_says(ANSWER);
    poll(NULL, 0, LONG_MS);
    end_turn();
    ck_assert_uint_eq(ended.away, 0);
    turns_until_ended();
    ck_assert_uint_eq(ended.admitted, 1);
}
END_TEST

START_TEST(a_late_answer_is_dropped_and_until_then_nothing_is_sent)
{
    ck_assert(ask());
    end_turn();
    const uint64_t began_ms = clock_mono_ms();
    turns_until_ended();
    ck_assert_uint_eq(ended.away, 1);
    ck_assert_uint_ge(clock_mono_ms() - began_ms, TIMEOUT_MS);
    ck_assert_uint_ne(atomic_load(&score.redis_away_ms), 0);
    ck_assert(!ask());
    redis_says(ANSWER);
    while (atomic_load(&score.redis_away_ms) != 0)
        turn();
    ck_assert_uint_eq(ended.admitted, 0);
    ck_assert_uint_eq(redis_read(), 1);
    ck_assert(ask());
    turn();
    ck_assert_uint_eq(redis_read(), 1);
}
END_TEST

START_TEST(what_the_socket_did_not_take_in_time_is_never_sent)
{
    bool end = false;
    for (unsigned i = 0; i < MANY; i++)
        ck_assert(ask());
    end_turn();
    turns_until_ended();
    ck_assert_uint_eq(ended.away, MANY);
    ck_assert(!ask());
    unsigned sent = redis_reads(&end);
    ck_assert(end);
    ck_assert_uint_gt(sent, 0);
    ck_assert_uint_lt(sent, MANY);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("redis_primary");
    TCase *tcase = tcase_create("redis_primary");
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_set_timeout(tcase, 30);
    tcase_add_test(tcase, a_long_turn_after_the_question_takes_no_time_of_the_decision);
    tcase_add_test(tcase, an_answer_that_came_during_a_long_turn_is_read);
    tcase_add_test(tcase, a_late_answer_is_dropped_and_until_then_nothing_is_sent);
    tcase_add_test(tcase, what_the_socket_did_not_take_in_time_is_never_sent);
    suite_add_tcase(suite, tcase);
    return suite_run(suite);
}
