/*
 * A worker's writer client when the writer does not answer: the answers of waiting requests, and
 * their time. The test sets the clock.
 */
#include "core/ipc/channel.h"
#include "core/conn/connection.h"
#include "core/async/writer_client.h"
#include "core/http/handler.h"
#include "core/http/http.h"
#include "t/kit/suite.h"

#include <check.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

/* ---- the rest of a worker, stubbed ---- */

static struct {
    unsigned count, retries;
    enum err err;
} replies;

void reply_error(struct request *r, enum err err, const char *format, ...)
{
    (void)r;
    (void)format;
    replies.count++;
    replies.err = err;
}

void store_read_end(struct store *s)
{
    (void)s;
}

void store_report_get(struct store *s, uint64_t workspace, uint64_t id, bool with_results,
                      store_report_fn *done, void *arg)
{
    (void)s, (void)workspace, (void)id, (void)with_results, (void)done, (void)arg;
    ck_abort_msg("no request waits for a report");
}

static void on_event(void *arg, const struct store_event *e)
{
    (void)arg, (void)e;
    ck_abort_msg("this writer sends nothing");
}

void reply_retry(struct request *r, const char *message)
{
    (void)r, (void)message;
    replies.retries++;
}

bool queries_send(struct queries *all, struct query *q, struct waiter *w)
{
    (void)all, (void)q, (void)w;
    ck_abort_msg("nothing is queried");
}

void thread_pool_send(struct thread_pool *a, struct pool_job *job, struct waiter *w)
{
    (void)a, (void)job, (void)w;
    ck_abort_msg("no job is sent");
}

void *request_alloc(struct request *r, size_t size)
{
    (void)r, (void)size;
    ck_abort_msg("no response is written");
}

static int watched; /* connections of waiting requests */

void conn_watch(struct conn *c)
{
    (void)c;
    watched++;
}

void conn_unwatch(struct conn *c)
{
    (void)c;
    watched--;
}

/* ---- a writer that only reads ---- */

static char dir[] = "/tmp/assay-link-XXXXXX";
static struct scoreboard scoreboard;
static struct process process = {.scoreboard = &scoreboard};
static struct loop loop;
static struct http http = {.loop = &loop};
static struct writer_client *l;
static int listening;

static void setup(void)
{
    ck_assert_ptr_nonnull(mkdtemp(dir));
    snprintf(process.writer_path, sizeof(process.writer_path), "%s/writer.sock", dir);
    listening = channel_listen(process.writer_path);
    ck_assert_int_ge(listening, 0);
    replies.count = replies.retries = 0;
    loop = (struct loop){.process = &process, .now_ms = 1000000};
    loop.ctx.loop = h2o_evloop_create();
    l = http.writer = writer_client_new(&loop, on_event, NULL);
    ck_assert(writer_client_connected(l));
}

static void teardown(void)
{
    writer_client_free(l);
    h2o_evloop_destroy(loop.ctx.loop);
    close(listening);
    unlink(process.writer_path);
    rmdir(dir);
}

static void must_not_end(struct request *r, const struct store_answer *answer)
{
    (void)r, (void)answer;
    ck_abort_msg("no request was answered");
}

static void send_create(struct request *r, const char *key)
{
    char hash[32] = "";
    strncpy(hash, key, sizeof(hash) - 1);
    struct store_change change = {.kind = CHANGE_REPORT_CREATE,
                                  .idem_key = {hash, key[0] == '\0' ? 0 : sizeof(hash)}};
    *r = (struct request){.http = &http};
    request_change(r, &change, must_not_end);
}

static void tick_after(unsigned ms)
{
    loop.now_ms += ms;
    writer_client_tick(l);
}

/*
 * Columns: Idempotency-Key of a first request, of one a second later, and the answer of the later
 * one after its 30 s.
 */
static const struct {
    const char *first, *second;
    enum err answered;
} cases[] = {
    {"same", "same", ERR_CONFLICT},
    {"one", "another", ERR_UNAVAILABLE},
    {"one", "", ERR_UNAVAILABLE},
    {"", "", ERR_UNAVAILABLE},
};

START_TEST(an_unanswered_request_fails_after_30_seconds)
{
    struct request first, second;
    send_create(&first, cases[_i].first);
    tick_after(1000);
    send_create(&second, cases[_i].second);
    ck_assert_int_eq(watched, 2);
    tick_after(WRITER_ANSWER_MS - 1001);
    ck_assert_uint_eq(replies.count, 0);
    tick_after(1);
    ck_assert_int_eq(watched, 1);
    ck_assert_uint_eq(replies.count, 1);
    ck_assert_int_eq(replies.err, ERR_UNAVAILABLE);
    tick_after(999);
    ck_assert_uint_eq(replies.count, 1);
    tick_after(1);
    ck_assert_uint_eq(replies.count, 2);
    ck_assert_int_eq(replies.err, cases[_i].answered);
    ck_assert_uint_eq(writer_client_waiting(l), 0);
    tick_after(WRITER_ANSWER_MS);
    ck_assert_uint_eq(replies.count, 2);
}
END_TEST

/*
 * The worker answers nobody else meanwhile. Decoding the keys of all pairs of changes takes
 * hundreds of times as long as sending the changes.
 */
START_TEST(many_requests_with_keys_time_out_fast)
{
    enum { REQUESTS = 6000, TIMES = 100 };
    struct request *requests = calloc(REQUESTS, sizeof(*requests));
    ck_assert_ptr_nonnull(requests);
    uint64_t began = clock_thread_us();
    for (unsigned i = 0; i < REQUESTS; i++) {
        char key[16];
        snprintf(key, sizeof(key), "%u", i);
        send_create(&requests[i], key);
    }
    const uint64_t sent = clock_thread_us() - began;
    began = clock_thread_us();
    tick_after(WRITER_ANSWER_MS);
    const uint64_t ended = clock_thread_us() - began;
    ck_assert_uint_eq(replies.count, REQUESTS);
    ck_assert_int_eq(replies.err, ERR_UNAVAILABLE);
    ck_assert_msg(ended < TIMES * sent, "%lu us to send, %lu us to end", (unsigned long)sent,
                  (unsigned long)ended);
    free(requests);
}
END_TEST

/* ---- the window ---- */

static struct channel channel; /* the writer's end */
static uint64_t received;      /* changes on it */

static void accept_client(void)
{
    struct frame f;
    channel_init(&channel, accept(listening, NULL, NULL));
    writer_client_flush(l);
    ck_assert_int_eq(channel_read(&channel), 1);
    ck_assert_int_eq(channel_next(&channel, &f), 1);
    ck_assert_uint_eq(f.head.type, FRAME_HELLO);
}

/* Until nothing more comes. The first of them is ${first}. */
static void receive(uint64_t first)
{
    struct frame f;
    received = 0;
    for (unsigned turns = 0; turns < 3; turns++) {
        writer_client_flush(l);
        h2o_evloop_run(loop.ctx.loop, 0);
        for (channel_read(&channel); channel_next(&channel, &f) == 1; received++, turns = 0) {
            ck_assert_uint_eq(f.head.type, FRAME_CHANGE);
            ck_assert_uint_eq(f.head.a, first + received);
            ck_assert_uint_lt(f.head.b, f.head.a);
            ck_assert_uint_le(f.head.a - f.head.b, CHANNEL_WINDOW);
        }
    }
}

static void answer(uint64_t first, uint64_t last)
{
    const struct store_answer ok = {.status = STORE_OK};
    for (uint64_t i = first; i <= last; i++)
        channel_put(&channel, FRAME_ANSWER, i, 0, (struct str){(const char *)&ok, sizeof(ok)});
    ck_assert_int_eq(channel_flush(&channel), 0);
}

START_TEST(changes_above_the_window_wait_for_answers)
{
    const struct store_change change = {.kind = CHANGE_REPORT_CREATE};
    loop_read_clock(&loop); /* as the answers do */
    accept_client();
    for (unsigned i = 0; i < CHANNEL_WINDOW + 10; i++)
        writer_client_send(l, &change);
    receive(1);
    ck_assert_uint_eq(received, CHANNEL_WINDOW);
    answer(1, 3);
    receive(CHANNEL_WINDOW + 1);
    ck_assert_uint_eq(received, 3);
    channel_close(&channel);
    h2o_evloop_run(loop.ctx.loop, 0);
    ck_assert(!writer_client_connected(l));
    tick_after(1000);
    accept_client();
    receive(4);
    ck_assert_uint_eq(received, CHANNEL_WINDOW);
    channel_close(&channel);
}
END_TEST

/* Nobody answers: memory is bounded, also by changes that were given up. */
START_TEST(changes_above_the_bytes_that_may_wait_are_refused)
{
    static char text[1 << 20];
    struct request request = {.http = &http};
    const struct store_change change = {.kind = CHANGE_REPORT_CREATE,
                                        .text = {text, sizeof(text)}};
    const unsigned most = WRITER_UNANSWERED_BYTES / sizeof(text) + 1;
    accept_client();
    for (unsigned i = 0; i < most; i++)
        writer_client_send(l, &change);
    request_change(&request, &change, must_not_end);
    ck_assert_uint_eq(replies.retries, 1);
    ck_assert_uint_eq(writer_client_waiting(l), 0);
    tick_after(WRITER_ANSWER_MS);
    request_change(&request, &change, must_not_end);
    ck_assert_uint_eq(replies.retries, 2);
    channel_close(&channel);
    h2o_evloop_run(loop.ctx.loop, 0);
    ck_assert(!writer_client_connected(l));
    tick_after(WRITER_ANSWER_MS); /* it forgets them */
    request_change(&request, &change, must_not_end);
    ck_assert_uint_eq(replies.retries, 2);
    ck_assert_uint_eq(writer_client_waiting(l), 1);
}
END_TEST

/* ---- in a cluster ---- */

/* Seconds since the head of the log was confirmed (-1: never); whether a change is sent. */
static const struct {
    int confirmed_s;
    bool sent;
} ages[] = {{-1, true}, {0, true}, {3, true}, {4, false}, {100, false}};

START_TEST(a_change_is_not_sent_while_the_log_is_away)
{
    struct request request;
    const uint64_t age_us = (uint64_t)ages[_i].confirmed_s * 1000000;
    const bool never = ages[_i].confirmed_s < 0;
    cluster_score_publish(
        &scoreboard.cluster,
        &(struct cluster_view){.role = CLUSTER_LEADS,
                               .confirmed_us = never ? 0 : clock_mono_us() - age_us});
    http.log_waits = log_waits_new(&loop);
    send_create(&request, "key");
    ck_assert_uint_eq(replies.retries, !ages[_i].sent);
    ck_assert_uint_eq(writer_client_waiting(l), ages[_i].sent);
    ck_assert_uint_eq(replies.count, 0);
    log_waits_free(http.log_waits);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("writer_client");
    TCase *tcase = tcase_create("writer_client");
    suite_add_tcase(suite, tcase);
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_loop_test(tcase, an_unanswered_request_fails_after_30_seconds, 0,
                        sizeof(cases) / sizeof(cases[0]));
    tcase_add_test(tcase, many_requests_with_keys_time_out_fast);
    tcase_add_test(tcase, changes_above_the_window_wait_for_answers);
    tcase_add_test(tcase, changes_above_the_bytes_that_may_wait_are_refused);
    tcase_add_loop_test(tcase, a_change_is_not_sent_while_the_log_is_away, 0,
                        sizeof(ages) / sizeof(ages[0]));
    return suite_run(suite);
}
