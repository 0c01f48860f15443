/*
 * A worker's client of a writer that does not answer: what waiting requests are told, and when. The
 * test sets the time.
 */
#include "core/ipc/channel.h"
#include "core/conn/acceptor.h"
#include "core/loop/writer_client.h"
#include "core/http/admission_queue.h"
#include "core/http/request.h"
#include "core/http/event_stream.h"
#include "t/kit/suite.h"

#include <check.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

/* ---- what stands for the rest of a worker ---- */

static struct {
    unsigned count;
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
    ck_abort_msg("nobody waits for a report");
}

void streams_event(struct worker *w, const struct store_event *e)
{
    (void)w, (void)e;
    ck_abort_msg("this writer says nothing");
}

static int watched; /* connections of requests that wait */

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

/* ---- a writer that only listens ---- */

static char dir[] = "/tmp/assay-link-XXXXXX";
static struct process process;
static struct worker worker;
static struct writer_client *l;
static int listening;

static void setup(void)
{
    ck_assert_ptr_nonnull(mkdtemp(dir));
    snprintf(process.writer_path, sizeof(process.writer_path), "%s/writer.sock", dir);
    listening = channel_listen(process.writer_path);
    ck_assert_int_ge(listening, 0);
    replies.count = 0;
    worker = (struct worker){.process = &process, .now_ms = 1000000};
    worker.ctx.loop = h2o_evloop_create();
    l = worker.writer = writer_client_new(&worker);
    ck_assert(writer_client_connected(l));
}

static void teardown(void)
{
    writer_client_free(l);
    h2o_evloop_destroy(worker.ctx.loop);
    close(listening);
    unlink(process.writer_path);
    rmdir(dir);
}

static void must_not_end(struct request *r, const struct store_answer *answer)
{
    (void)r, (void)answer;
    ck_abort_msg("nobody answered");
}

static void send_create(struct request *r, const char *key)
{
    char hash[32] = "";
    strncpy(hash, key, sizeof(hash) - 1);
    struct store_change change = {.kind = CHANGE_REPORT_CREATE,
                                  .idem_key = {hash, key[0] == '\0' ? 0 : sizeof(hash)}};
    *r = (struct request){.worker = &worker};
    request_change(r, &change, must_not_end);
}

static void tick_after(unsigned ms)
{
    worker.now_ms += ms;
    writer_client_tick(l);
}

/*
 * Columns: Idempotency-Key of a first request, of one a second later, and what the later one is
 * told when its 30 s are over.
 */
static const struct {
    const char *first, *second;
    enum err told;
} cases[] = {
    {"same", "same", ERR_CONFLICT},
    {"one", "another", ERR_UNAVAILABLE},
    {"one", "", ERR_UNAVAILABLE},
    {"", "", ERR_UNAVAILABLE},
};

START_TEST(who_gets_no_answer_is_told_after_30_s)
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
    ck_assert_int_eq(replies.err, cases[_i].told);
    ck_assert_uint_eq(writer_client_waiting(l), 0);
    tick_after(WRITER_ANSWER_MS);
    ck_assert_uint_eq(replies.count, 2);
}
END_TEST

#define MANY (ADMISSIONS_WAITING + 2)

static struct request *went_on; /* the last whose turn came */

static void go_on(struct request *r)
{
    went_on = r;
}

START_TEST(turns_are_taken_in_order_by_few_and_not_waited_for_in_vain)
{
    static struct request requests[MANY];
    static struct conn conns[MANY];
    static struct admission turns[MANY], later;
    for (size_t i = 0; i < MANY; i++) {
        requests[i] = (struct request){.worker = &worker, .conn = &conns[i]};
        ck_assert_uint_eq(replies.count, 0);
        ck_assert_int_eq(admission_take(&turns[i], &requests[i], go_on), i == 0);
    }
    ck_assert_uint_eq(replies.count, 1); /* one too many */
    ck_assert_int_eq(replies.err, ERR_UNAVAILABLE);
    ck_assert_ptr_null(went_on);
    admission_release(&turns[MANY - 1]);
    admission_release(&turns[0]);
    admission_release(&turns[0]);
    ck_assert_ptr_eq(went_on, &requests[1]);
    admission_release(&turns[2]); /* its request is gone */
    conns[4].vanished = true;
    admission_queue_tick(&worker);
    ck_assert_uint_eq(replies.count, 2);
    admission_release(&turns[1]);
    ck_assert_ptr_eq(went_on, &requests[3]);
    worker.now_ms += WRITER_ANSWER_MS - 1;
    ck_assert(!admission_take(&later, &requests[0], go_on));
    admission_queue_tick(&worker);
    ck_assert_uint_eq(replies.count, 2);
    worker.now_ms++;
    admission_queue_tick(&worker);
    ck_assert_uint_eq(replies.count, 2 + ADMISSIONS_WAITING - 4);
    ck_assert_ptr_eq(went_on, &requests[3]); /* none of those */
    admission_release(&turns[3]);
    ck_assert_ptr_eq(went_on, &requests[0]);
    admission_release(&later);
    ck_assert(admission_take(&turns[1], &requests[1], go_on));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("writer_client");
    TCase *tcase = tcase_create("link");
    suite_add_tcase(suite, tcase);
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, turns_are_taken_in_order_by_few_and_not_waited_for_in_vain);
    tcase_add_loop_test(tcase, who_gets_no_answer_is_told_after_30_s, 0,
                        sizeof(cases) / sizeof(cases[0]));
    return suite_run(suite);
}
