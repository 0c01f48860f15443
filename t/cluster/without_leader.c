/*
 * What a change is answered while no node leads. The log answers, and a trigger in the database
 * lets no node begin to lead.
 */
#include "t/kit/supervisor.h"
#include "t/kit/three_nodes.h"

#include <poll.h>
#include <signal.h>

enum { DEFERRED_MS = 2000, LEASE_MS = 10000, CONFIRM_MS = 2000 };

static const char let_none_lead[] =
    "CREATE FUNCTION no_lead() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN"
    " IF NEW.epoch > OLD.epoch THEN RETURN NULL; END IF; RETURN NEW; END$$;"
    "CREATE TRIGGER no_lead BEFORE UPDATE ON assay_cluster"
    " FOR EACH ROW EXECUTE FUNCTION no_lead()";

static bool is_led(void *arg)
{
    return nodes_leader(arg) != NODES_AWAY;
}

static void let_lead(void)
{
    free(postgres_query(nodes->log, "DROP TRIGGER no_lead ON assay_cluster"));
    ck_assert(wait_until(is_led, nodes, LEAD_MS));
}

static void expect_refusal(const struct response *r, const char *words)
{
    expect_error(r, 503, "service_unavailable|unavailable");
    expect_str(r, "error.message", words);
}

static bool is_without_leader(void *arg)
{
    return !is_led(arg);
}

struct follower {
    struct server internal;
    int64_t since_ms; /* nobody leads */
};

/* It reads the head every two seconds at least, and has done so in this one. */
static bool knows_that_none_leads(void *arg)
{
    const struct follower *f = arg;
    return now_ms() - f->since_ms > CONFIRM_MS + 500 &&
           metric(&f->internal, "assay_cluster_confirm_age_seconds") == 0;
}

/* The leader stops and gives up its lease. Reads go on. */
START_TEST(a_change_without_a_leader_is_refused_and_does_not_happen)
{
    struct follower followers[] = {{.internal = server_internal(follower_server(0))},
                                   {.internal = server_internal(follower_server(1))}};
    created("before");
    nodes_catch_up(nodes);
    free(postgres_query(nodes->log, let_none_lead));
    node_stop(nodes, leader);
    ck_assert(wait_until(is_without_leader, nodes, LEASE_MS));
    followers[0].since_ms = followers[1].since_ms = now_ms();
    for (unsigned i = 0; i < 2; i++) {
        ck_assert(wait_until(knows_that_none_leads, &followers[i], LEASE_MS));
        int64_t since = now_ms();
        struct response *r = http(follower_server(i), .method = "POST", .path = "/api/v1/reports",
                                  .headers = {"Prefer: respond-async"},
                                  .body = form("url", text("http://127.0.0.9/refused%u", i), NULL));
        expect_refusal(r, "No node of the cluster leads at the moment. Nothing was changed.");
        expect(r, header_number(r, "Retry-After") > 0);
        ck_assert_int_ge(now_ms() - since, DEFERRED_MS - 100);
        expect_status(http_get(follower_server(i), "/api/v1/reports"), 200);
    }
    let_lead();
    nodes->asked[NODES_WRITE] = follower(0);
    created("after");
    node_start(nodes, leader);
    nodes_expect_reports(nodes, 2);
    nodes_expect_equal(nodes);
}
END_TEST

/* The leader got the change, and dies before it answers. */
START_TEST(a_change_that_a_dead_leader_had_may_still_happen)
{
    warm_up(follower(0));
    process_stop(node_writer(nodes, leader));
    struct raw *raw = raw_open(follower_server(0));
    raw_post(raw, nodes->key, "Prefer: respond-async\r\n",
             form("url", "http://127.0.0.9/flight", NULL));
    ck_assert_int_eq(raw_response(raw, false, 200)->status, 0);
    free(postgres_query(nodes->log, let_none_lead));
    node_kill(nodes, leader);
    expect_refusal(raw_response(raw, false, LEASE_MS + SAYS_MS),
                   "The change was not confirmed in time and may still happen. Read the record "
                   "before sending it again, or send it again with the Idempotency-Key of before.");
    let_lead();
    nodes->asked[NODES_WRITE] = follower(0);
    created("after");
    node_start(nodes, leader);
    nodes_catch_up(nodes);
    int64_t total = total_on(0);
    ck_assert(total == WARM_UPS + 1 || total == WARM_UPS + 2);
    nodes_expect_reports(nodes, total);
    nodes_expect_equal(nodes);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_test(tcase, a_change_without_a_leader_is_refused_and_does_not_happen);
    tcase_add_test(tcase, a_change_that_a_dead_leader_had_may_still_happen);
}

int main(void)
{
    three_nodes_options.yaml = "internal_listen: 127.0.0.1:0\n";
    return three_nodes_main("without_leader", add_tests);
}
