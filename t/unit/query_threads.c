/* Query threads: order, refusals and stops. The queries of these tests wait at a gate. */
#include "t/kit/store.h"
#include "t/kit/suite.h"

#include "core/conn/connection.h"
#include "core/http/http.h"
#include "core/http/handler.h"
#include "core/async/query_threads.h"

#include <pthread.h>
#include <string.h>
#include <unistd.h>

static char dir[64];
static struct loop loop;
static struct http http = {.loop = &loop};
static struct conf conf;
static struct conn conn;
static int refused;

void reply_retry(struct request *r, const char *message)
{
    (void)r;
    ck_assert_ptr_nonnull(message);
    refused++;
}

void reply_error(struct request *r, enum err err, const char *format, ...)
{
    (void)r, (void)err, (void)format;
    ck_abort_msg("no query is refused without Retry-After");
}

/* ---- queries that record their runs and ends ---- */

struct test_query {
    struct query query;
    struct request request;
    char name;
    bool holds;     /* it waits for the gate to open */
    unsigned stops; /* that many of its runs stop, as for a map resize */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static bool gate_open;
static char runs[64], ends[64];
static atomic_uint running;

static void no_workspace(void *arg, enum store_status status, const struct store_workspace *found)
{
    (void)arg, (void)found;
    kit_assert(status == STORE_NOT_FOUND);
}

static bool run(struct query *query, struct store *s)
{
    struct test_query *q = (struct test_query *)query;
    kit_assert(store_snapshot_version(s) == 0);
    atomic_fetch_add(&running, 1);
    while (q->holds && !query_must_stop(query)) {
        pthread_mutex_lock(&lock);
        bool go_on = gate_open;
        pthread_mutex_unlock(&lock);
        if (go_on)
            break;
        usleep(1000);
    }
    atomic_fetch_sub(&running, 1);
    if (query_must_stop(query))
        return false;
    store_workspace_get(s, 1, no_workspace, NULL);
    kit_assert(store_snapshot_version(s) > 0);
    pthread_mutex_lock(&lock);
    runs[strlen(runs)] = q->name;
    pthread_mutex_unlock(&lock);
    return q->stops == 0 || q->stops-- == 0;
}

/* Capital letters: the query did not finish. */
static void over(struct query *query, struct waiter *w)
{
    struct request *r = request_of(w);
    struct test_query *q = (struct test_query *)query;
    if (q->name != '\0')
        ends[strlen(ends)] = (char)(query->done ? q->name : q->name - 'a' + 'A');
    if (r != NULL)
        ck_assert_ptr_eq(r, &q->request);
}

static void ask(struct test_query *q, char name, uint64_t workspace, bool search, bool holds)
{
    *q = (struct test_query){
        .query = {.workspace = workspace, .search = search, .run = run, .over = over},
        .request = {.http = &http, .store = loop.store, .wait = {.conn = &conn}},
        .name = name,
        .holds = holds};
    request_query(&q->request, &q->query);
}

static void open_gate(void)
{
    pthread_mutex_lock(&lock);
    gate_open = true;
    pthread_mutex_unlock(&lock);
}

static void run_loop_until(size_t count)
{
    for (int turns = 0; strlen(ends) < count; turns++) {
        ck_assert_int_lt(turns, 1000);
        h2o_evloop_run(loop.ctx.loop, 10);
    }
}

static void await_running(unsigned count)
{
    for (int tries = 0; atomic_load(&running) != count; tries++) {
        ck_assert_int_lt(tries, 5000);
        usleep(1000);
    }
}

static void setup(void)
{
    kit_dir(dir);
    struct store *s = kit_store(dir, STORE_WRITE, MAP_BYTES);
    store_close(s);
    loop.store = kit_store(dir, STORE_READ, MAP_BYTES);
    loop.conf = &conf;
    loop.ctx.loop = h2o_evloop_create();
}

static void begin(unsigned threads)
{
    conf.query_threads = threads;
    http.queries = queries_new(&loop);
    ck_assert_ptr_nonnull(http.queries);
}

static void teardown(void)
{
    queries_free(http.queries);
    store_close(loop.store);
    kit_remove(dir);
}

START_TEST(workspaces_take_turns)
{
    struct test_query q[7];
    begin(1);
    ask(&q[0], 'a', 1, false, true);
    await_running(1);
    for (unsigned i = 1; i < 5; i++)
        ask(&q[i], (char)('a' + i), 1, false, false);
    ask(&q[5], 'x', 2, false, false);
    ask(&q[6], 'y', 3, false, false);
    open_gate();
    run_loop_until(7);
    ck_assert_str_eq(runs, "abxycde");
    ck_assert_str_eq(ends, "abxycde");
}
END_TEST

START_TEST(lists_and_searches_take_turns_in_one_thread)
{
    struct test_query q[5];
    begin(1);
    ask(&q[0], 'a', 1, true, true);
    await_running(1);
    ask(&q[1], 's', 1, true, false);
    ask(&q[2], 't', 2, true, false);
    ask(&q[3], 'l', 1, false, false);
    ask(&q[4], 'm', 1, false, false);
    open_gate();
    run_loop_until(5);
    ck_assert_str_eq(runs, "alsmt");
}
END_TEST

START_TEST(a_list_does_not_wait_for_searches)
{
    struct test_query q[4];
    begin(2);
    ask(&q[0], 'a', 1, true, true);
    await_running(1);
    ask(&q[1], 'b', 1, true, true);
    ask(&q[2], 'l', 1, false, false);
    ask(&q[3], 'm', 2, false, false);
    run_loop_until(2);
    ck_assert_str_eq(runs, "lm");
    ck_assert_uint_eq(atomic_load(&running),
                      1); /* the second search waits, although a thread is idle */
    open_gate();
    run_loop_until(4);
    ck_assert_str_eq(ends, "lmab");
}
END_TEST

START_TEST(the_queue_is_bounded_per_workspace_and_in_total)
{
    enum { WORKSPACES = QUERIES_QUEUED_MAX / QUERIES_PER_WORKSPACE_MAX };
    static struct test_query q[QUERIES_QUEUED_MAX + WORKSPACES + 1], held;
    size_t n = 0;
    begin(1);
    ask(&held, 'z', 1, false, true);
    await_running(1);
    loop.now_ms = clock_mono_ms();
    for (uint64_t workspace = 1; workspace <= WORKSPACES; workspace++) {
        for (int i = 0; i < QUERIES_PER_WORKSPACE_MAX; i++)
            ask(&q[n++], '\0', workspace, false, false);
        ck_assert_int_eq(refused, (int)workspace - 1);
        ask(&q[n++], '\0', workspace, false, false);
        ck_assert_int_eq(refused, (int)workspace);
    }
    ask(&q[n++], '\0', WORKSPACES + 1, false, false);
    ck_assert_int_eq(refused, WORKSPACES + 1);
}
END_TEST

/* Its connection is closed, or its client hung up and the connection is not closed yet. */
START_TEST(a_query_of_a_closed_client_is_stopped)
{
    struct test_query q[3];
    struct conn left = {.hung_up = true};
    begin(1);
    ask(&q[0], 'a', 1, false, true);
    await_running(1);
    ask(&q[1], 'b', 1, false, false);
    ask(&q[2], 'c', 1, false, false);
    for (int i = 0; i < 2; i++)
        if (_i == 0)
            q[i].query.job.pending.waiter = NULL;
        else
            q[i].request.wait.conn = &left;
    loop.now_ms = clock_mono_ms();
    queries_tick(http.queries);
    run_loop_until(3);
    ck_assert_str_eq(runs, "c");
    ck_assert_str_eq(ends, "ABc");
}
END_TEST

START_TEST(a_stopped_query_runs_again_in_a_new_snapshot)
{
    struct test_query q[2];
    begin(1);
    ask(&q[0], 'a', 1, false, true);
    await_running(1);
    ask(&q[1], 'b', 1, false, false);
    q[0].stops = 2;
    open_gate();
    run_loop_until(2);
    ck_assert_str_eq(runs, "aaab");
    ck_assert_str_eq(ends, "ab");
}
END_TEST

START_TEST(worker_shutdown_ends_running_and_queued_queries)
{
    struct test_query q[2];
    begin(2);
    ask(&q[0], 'a', 1, true, true);
    await_running(1);
    ask(&q[1], 'b', 1, true, false);
    queries_free(http.queries);
    http.queries = NULL;
    ck_assert_uint_eq(strlen(ends), 2);
    ck_assert(strchr(ends, 'A') != NULL && strchr(ends, 'B') != NULL);
    ck_assert_ptr_null(q[0].request.wait.pending);
    ck_assert_ptr_null(q[1].request.wait.pending);
}
END_TEST

START_TEST(without_threads_a_query_runs_at_once)
{
    struct test_query q;
    begin(0);
    ask(&q, 'a', 1, true, false);
    ck_assert_str_eq(ends, "a");
}
END_TEST

static bool is_stuck(void)
{
    queries_tick(http.queries);
    return queries_stuck(http.queries);
}

START_TEST(a_query_that_overruns_its_deadline_stops_the_heartbeat)
{
    struct test_query q;
    begin(1);
    ask(&q, 'a', 1, true, true);
    await_running(1);
    loop.now_ms = clock_mono_ms();
    ck_assert(!is_stuck());
    loop.now_ms += QUERY_RUN_MS + 9000;
    ck_assert(!is_stuck());
    loop.now_ms += 2000;
    ck_assert(is_stuck());
    open_gate();
    run_loop_until(1);
    loop.now_ms += QUERY_RUN_MS + 12000; /* a later tick */
    ck_assert(!is_stuck());
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("query_threads");
    TCase *tc = tcase_create("query");
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_set_timeout(tc, 60);
    tcase_add_test(tc, workspaces_take_turns);
    tcase_add_test(tc, lists_and_searches_take_turns_in_one_thread);
    tcase_add_test(tc, a_list_does_not_wait_for_searches);
    tcase_add_test(tc, the_queue_is_bounded_per_workspace_and_in_total);
    tcase_add_loop_test(tc, a_query_of_a_closed_client_is_stopped, 0, 2);
    tcase_add_test(tc, a_stopped_query_runs_again_in_a_new_snapshot);
    tcase_add_test(tc, worker_shutdown_ends_running_and_queued_queries);
    tcase_add_test(tc, without_threads_a_query_runs_at_once);
    tcase_add_test(tc, a_query_that_overruns_its_deadline_stops_the_heartbeat);
    suite_add_tcase(suite, tc);
    return suite_run(suite);
}
