/*
 * A follower sleeps with changes that it has relayed, and the leader dies meanwhile, or forgets
 * the sender.
 * ASSAY_SLEEP_SECONDS sets how long it sleeps: by default longer than the lease; 75 s are longer
 * than each limit of time, among them that after which a leader forgets a sender.
 */
#include "t/kit/changes.h"
#include "t/kit/supervisor.h"
#include "t/kit/three_nodes.h"

#include <poll.h>
#include <signal.h>

enum { SECONDS = 14, ANSWER_S = 30, EXECUTED = 4, UNREAD = 4, FLIGHTS = EXECUTED + UNREAD };
enum { LATE_MS = 600000 };

static int64_t times_stored(unsigned node, unsigned flight)
{
    struct response *r = http_get(nodes->node[node].server,
                                  text("/api/v1/reports?search=127.0.0.9/flight%u.", flight));
    expect_status(r, 200);
    int64_t total = int_at(r, "meta.total");
    response_free(r);
    return total;
}

static struct raw *flight_begin(unsigned node, unsigned flight)
{
    struct raw *raw = raw_open(nodes->node[node].server);
    raw_post(raw, nodes->key, "Prefer: respond-async\r\n",
             form("url", text("http://127.0.0.9/flight%u.", flight), NULL));
    return raw;
}

static bool is_executed(void *arg)
{
    (void)arg;
    return times_stored(leader, 0) == 1;
}

static bool are_executed(void *arg)
{
    (void)arg;
    for (unsigned i = 0; i < EXECUTED; i++)
        if (times_stored(leader, i) != 1)
            return false;
    return true;
}

/*
 * The leader has executed some of them, and its answers are on their way. The others are in the
 * sockets of the writer of the follower.
 */
static void take_off(unsigned from, struct raw **raws)
{
    warm_up(from);
    fault_proxy_delay(nodes->node[leader].relay, TO_CLIENT, LATE_MS);
    for (unsigned i = 0; i < EXECUTED; i++)
        raws[i] = flight_begin(from, i);
    ck_assert(wait_until(are_executed, NULL, SAYS_MS));
    process_stop(node_writer(nodes, from));
    for (unsigned i = EXECUTED; i < FLIGHTS; i++)
        raws[i] = flight_begin(from, i);
    ck_assert_int_eq(raw_response(raws[FLIGHTS - 1], false, 200)->status, 0);
    node_pause(nodes, from);
}

/* Changes go on on other nodes. */
static void let_sleep(int64_t until_ms)
{
    for (int i = 0; now_ms() < until_ms; i++) {
        created(text("meanwhile%d", i));
        poll(NULL, 0, 200);
    }
}

struct move {
    unsigned node;
    uint64_t from;
};

static bool has_moved(void *arg)
{
    const struct move *m = arg;
    return node_position(nodes, m->node) > m->from;
}

/*
 * The writer first: it learns who leads and ends relays, before the workers wake, whose connections
 * to it have ended.
 */
static void wake_up(unsigned from)
{
    struct move move = {from, node_position(nodes, from)};
    kill(node_writer(nodes, from), SIGCONT);
    ck_assert(wait_until(has_moved, &move, SAYS_MS));
    node_resume(nodes, from);
}

/* An answer after which the client need not ask again is right on each node. */
static void expect_landed(unsigned flight, struct raw *raw, bool within_time)
{
    struct response *r = raw_response(raw, false, ANSWER_S * 1000);
    int64_t stored = times_stored(0, flight);
    fprintf(stderr, "flight %u: %d, stored %lld times\n", flight, r->status, (long long)stored);
    expect(r, r->status == 202 || (!within_time && (r->status == 503 || r->status == 0)));
    expect(r, r->status != 503 || strstr(r->body, "may still happen") != NULL);
    for (unsigned i = 0; i < nodes->count; i++)
        ck_assert_int_eq(times_stored(i, flight), stored);
    ck_assert_int_le(stored, 1);
    ck_assert(stored == 1 || (r->status != 202 && flight >= EXECUTED));
}

START_TEST(a_follower_that_sleeps_longer_than_limits_of_time_repeats_and_loses_nothing)
{
    const unsigned from = follower(0), died = leader;
    const unsigned seconds = changes_setting("ASSAY_SLEEP_SECONDS", SECONDS);
    struct raw *raws[FLIGHTS];
    take_off(from, raws);
    const int64_t until_ms = now_ms() + 1000 * (int64_t)seconds;
    node_kill(nodes, died);
    nodes->asked[NODES_WRITE] = follower(1);
    nodes_await_leader(nodes, (int)died);
    let_sleep(until_ms);
    wake_up(from);
    int64_t last = created("awake");
    struct response *read = http_get(nodes->node[from].server, report_path(last));
    expect(read, read->status == 200 || read->status == 503); /* never without what others have */
    node_start(nodes, died);
    nodes_catch_up(nodes);
    for (unsigned i = 0; i < FLIGHTS; i++)
        expect_landed(i, raws[i], seconds < ANSWER_S);
    nodes_catch_up(nodes);
    nodes_expect_equal(nodes);
}
END_TEST

/* ---- a sender that is forgotten ---- */

enum { FORGOTTEN_S = 63 }; /* SENDER_EXPIRY_MS, and a few turns of the writer */

/*
 * The writer dies with a change whose answer is on its way, and no other starts for so long: its
 * master sleeps. The sender repeats the change into the listening socket.
 */
static struct raw *leave_waiting(unsigned from)
{
    const pid_t writer = node_writer(nodes, from);
    warm_up(from);
    fault_proxy_delay(nodes->node[leader].relay, TO_CLIENT, LATE_MS);
    struct raw *raw = flight_begin(from, 0);
    ck_assert(wait_until(is_executed, NULL, SAYS_MS));
    process_stop(nodes->node[from].server->pid);
    kill(writer, SIGKILL);
    return raw;
}

START_TEST(a_change_that_waits_until_its_sender_is_forgotten_happens_once)
{
    const unsigned from = follower(0);
    struct raw *raw = leave_waiting(from);
    const int64_t until_ms = now_ms() + 1000 * FORGOTTEN_S;
    struct response *r = raw_response(raw, false, (ANSWER_S + 5) * 1000);
    expect_status(r, 503);
    expect(r, strstr(r->body, "may still happen") != NULL);
    let_sleep(until_ms);
    fault_proxy_pass(nodes->node[leader].relay);
    kill(nodes->node[from].server->pid, SIGCONT);
    raw_close(raw);
    nodes_catch_up(nodes);
    warm_up(from);
    nodes_catch_up(nodes);
    for (unsigned i = 0; i < nodes->count; i++)
        ck_assert_int_eq(times_stored(i, 0), 1);
    nodes_expect_equal(nodes);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_set_timeout(tcase, 180 + 2 * changes_setting("ASSAY_SLEEP_SECONDS", SECONDS));
    tcase_add_test(tcase,
                   a_follower_that_sleeps_longer_than_limits_of_time_repeats_and_loses_nothing);
    tcase_add_test(tcase, a_change_that_waits_until_its_sender_is_forgotten_happens_once);
}

int main(void)
{
    three_nodes_options = (struct nodes_options){.relay_proxies = true, .cluster = ", max_lag: 5s"};
    return three_nodes_main("asleep", add_tests);
}
