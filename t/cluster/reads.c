/*
 * Reads in a cluster: who has changed something on one node reads it on each other one; a node that
 * is behind says so.
 */
#include "t/kit/nodes.h"
#include "t/kit/widget.h"

#include <poll.h>
#include <signal.h>

enum { PROCESSES = 2, LATE_MS = 300, SAYS_MS = 15000, LAG_MS = 5000, RECOVER_MS = 15000 };

static struct nodes *nodes;
static unsigned leader, other; /* a node that follows */

static void begin(const char *cluster)
{
    nodes = nodes_new(&(struct nodes_options){.proxies = true, .cluster = cluster});
    leader = nodes_await_leader(nodes, NODES_AWAY);
    other = (leader + 1) % nodes->count;
    server = nodes->node[leader].server;
}

static void setup(void)
{
    begin(NULL);
}

static void setup_patient(void)
{
    begin(", wait: 20s");
}

static void setup_impatient(void)
{
    begin(", wait: 300ms, max_lag: 5s");
}

static void teardown(void)
{
    nodes_free(nodes);
}

static struct server *at_leader(void)
{
    return nodes->node[leader].server;
}

static struct server *at_other(void)
{
    return nodes->node[other].server;
}

/* The other node reads the log later than it is written. */
static void hold_back(void)
{
    fault_proxy_delay(nodes->node[other].proxy, TO_CLIENT, LATE_MS);
}

static struct response *create(const char *name)
{
    return http(at_leader(), .method = "POST", .path = "/api/v1/reports",
                .headers = {"Prefer: respond-async"},
                .body = form("url", text("http://127.0.0.9/%s", name), NULL));
}

static char *created(const char *name)
{
    struct response *r = create(name);
    expect_status(r, 202);
    return report_path(int_at(r, "data.id"));
}

static const char *position_of(const struct response *r)
{
    expect(r, header_times(r, "X-Assay-Position") == 1);
    return header(r, "X-Assay-Position");
}

static struct response *get_at(const struct server *s, const char *path, const char *position)
{
    return http(s, .path = path, .headers = {text("X-Assay-Position: %s", position)});
}

/* The number of its entry. */
static uint64_t entry_of(const char *position)
{
    unsigned long long log, entry;
    char end;
    ck_assert_msg(sscanf(position, "%16llx-%llu%c", &log, &entry, &end) == 2 && position[16] == '-',
                  "%s", position);
    return entry;
}

/* A position of the same log, so many entries further. */
static const char *further(const char *position, uint64_t entries)
{
    return text("%.16s-%llu", position, (unsigned long long)(entry_of(position) + entries));
}

/* ---- the position of answers ---- */

START_TEST(every_answer_of_the_api_has_its_position)
{
    uint64_t last = entry_of(position_of(create("0")));
    for (unsigned i = 1; i < 10; i++) {
        struct response *r = create(text("%u", i));
        ck_assert_uint_gt(entry_of(position_of(r)), last);
        last = entry_of(position_of(r));
        struct server *s = nodes->node[i % nodes->count].server;
        char *path = report_path(int_at(r, "data.id"));
        r = get_at(s, path, position_of(r));
        expect_status(r, 200);
        expect(r, entry_of(position_of(r)) >= last);
    }
    position_of(http_get(at_other(), "/api/v1/reports/999"));
    position_of(http(at_other(), .path = "/api/v1/reports", .key = ""));
    struct response *page = http(at_other(), .path = "/reports/1", .key = "");
    expect_status(page, 200);
    expect(page, header(page, "X-Assay-Position") == NULL);
}
END_TEST

START_TEST(pages_of_a_site_may_read_the_position_and_send_it)
{
    struct response *r =
        http(at_other(), .method = "OPTIONS", .path = "/api/v1/widget/init", .key = "",
             .headers = {FROM_SHOP, "Access-Control-Request-Method: POST"});
    expect_status(r, 204);
    expect(r, strstr(header(r, "Access-Control-Allow-Headers"), "X-Assay-Position") != NULL);
    r = http(at_other(), .method = "POST", .path = "/api/v1/widget/init", .key = "",
             .headers = {FROM_SHOP, JSON}, .body = "{}");
    expect_status(r, 422);
    expect(r, strstr(header(r, "Access-Control-Expose-Headers"), "X-Assay-Position") != NULL);
    position_of(r);
}
END_TEST

/* ---- the position of requests ---- */

START_TEST(a_request_with_a_position_sees_the_change)
{
    char *path = created("one");
    nodes_catch_up(nodes);
    hold_back();
    for (int i = 0; i < 3; i++) {
        int64_t privacy = 1 - i % 2;
        struct response *r = http_put(at_leader(), path, text("privacy=%lld", (long long)privacy));
        expect_status(r, 200);
        expect_int(http_get(at_other(), path), "data.privacy", 1 - privacy);
        expect_int(get_at(at_other(), path, position_of(r)), "data.privacy", privacy);
    }
}
END_TEST

/* With its token alone: it has the position of its creation. */
START_TEST(a_visitors_token_works_on_every_node_at_once)
{
    widget_make("*");
    nodes_catch_up(nodes);
    hold_back();
    for (int i = 0; i < 3; i++) {
        struct visitor v = visitor_new();
        int64_t since = now_ms();
        struct response *r = http(at_other(), .path = "/api/v1/widget/conversation/messages",
                                  .key = v.jwt, .headers = {FROM_SHOP});
        expect_status(r, 200);
        ck_assert_int_lt(now_ms() - since, 20 * LATE_MS); /* cluster.wait is longer */
    }
}
END_TEST

START_TEST(a_position_that_the_log_does_not_have_is_refused)
{
    const char *position = position_of(create("one"));
    struct server *nodes_asked[] = {at_leader(), at_other()};
    const char *const malformed[] = {"1",
                                     "x",
                                     "-1",
                                     "0000000000000000-1",
                                     text("%.16s", position),
                                     text("%.16s-", position),
                                     text("%.16s--1", position),
                                     text("%.16s-01", position),
                                     text("%.16s-1x", position),
                                     text("%.16s-99999999999999999999", position)};
    for (size_t i = 0; i < COUNT(nodes_asked); i++) {
        struct server *s = nodes_asked[i];
        for (size_t k = 0; k < COUNT(malformed); k++)
            expect_error(get_at(s, "/api/v1/reports", malformed[k]), 400, "bad_request");
        expect_error(get_at(s, "/api/v1/reports", "0123456789abcdef-1"), 400, "bad_request");
        expect_error(http(s, .path = "/api/v1/reports",
                          .headers = {text("X-Assay-Position: %s", position),
                                      text("X-Assay-Position: %s", position)}),
                     400, "bad_request");
        int64_t since = now_ms();
        expect_error(get_at(s, "/api/v1/reports", further(position, 1000)), 400, "bad_request");
        ck_assert_int_lt(now_ms() - since, 5000);
        expect_status(get_at(s, "/api/v1/reports", position), 200);
    }
}
END_TEST

/* The request waits, and the worker serves others. */
START_TEST(a_request_waits_until_the_node_can_read_the_log)
{
    char *path = created("one");
    nodes_catch_up(nodes);
    fault_proxy_drop(nodes->node[other].proxy);
    struct response *put = http_put(at_leader(), path, "privacy=1");
    expect_status(put, 200);
    struct raw *raw = raw_open(at_other());
    raw_text(raw,
             "GET %s HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\n"
             "X-Assay-Position: %s\r\n\r\n",
             path, nodes->key, position_of(put));
    struct pollfd p = {raw->fd, POLLIN, 0};
    for (int i = 0; i < 20; i++)
        expect_int(http_get(at_other(), path), "data.privacy", 0);
    ck_assert_int_eq(poll(&p, 1, 100), 0);
    fault_proxy_pass(nodes->node[other].proxy);
    struct response *r = raw_response(raw, false, 19000);
    expect_status(r, 200);
    expect_int(r, "data.privacy", 1);
}
END_TEST

static void expect_later(const struct response *r)
{
    expect_error(r, 503, "unavailable");
    expect(r, header_number(r, "Retry-After") >= 1);
}

START_TEST(a_request_that_waits_too_long_gets_503)
{
    char *path = created("one");
    nodes_catch_up(nodes);
    fault_proxy_drop(nodes->node[other].proxy);
    struct response *put = http_put(at_leader(), path, "privacy=1");
    int64_t since = now_ms();
    expect_later(get_at(at_other(), path, position_of(put)));
    ck_assert_int_ge(now_ms() - since, 290);
    ck_assert_int_lt(now_ms() - since, 5000);
    expect_status(http_get(at_other(), path), 200);
}
END_TEST

/* ---- before something is unknown ---- */

START_TEST(a_new_record_and_a_new_key_are_known_on_every_node_at_once)
{
    widget_make("*");
    nodes_catch_up(nodes);
    hold_back();
    for (int i = 0; i < 3; i++) {
        expect_status(http_get(at_other(), created(text("%d", i))), 200);
        char *key = key_new(at_leader(), "main", NULL);
        expect_status(http(at_other(), .path = "/api/v1/reports", .key = key), 200);
        char *page = report_path(int_at(create(text("page-%d", i)), "data.id"));
        expect_status(http(at_other(), .path = page + strlen("/api/v1"), .key = ""), 200);
    }
    /* and what is not in the log stays unknown */
    expect_error(http_get(at_other(), "/api/v1/reports/999"), 404, "not_found");
    expect_error(http_put(at_other(), "/api/v1/reports/999", "privacy=1"), 404, "not_found");
}
END_TEST

/* All that wait share a confirmation; t/unit/log_waits proves it. */
START_TEST(a_flood_of_unknown_records_is_answered_soon)
{
    enum { FLOOD = 300 };
    struct raw *raws[FLOOD];
    nodes_catch_up(nodes);
    int64_t since = now_ms();
    for (int i = 0; i < FLOOD; i++) {
        raws[i] = raw_open(at_other());
        raw_get(raws[i], nodes->key, text("/api/v1/reports/%d", 1000 + i));
    }
    for (int i = 0; i < FLOOD; i++) {
        expect_error(raw_response(raws[i], false, 10000), 404, "not_found");
        raw_close(raws[i]);
    }
    int64_t took = now_ms() - since;
    fprintf(stderr, "%d unknown records in %lld ms\n", FLOOD, (long long)took);
    ck_assert_int_lt(took, 5000);
}
END_TEST

/* ---- a node that cannot read the log ---- */

START_TEST(a_revoked_key_is_refused_on_all_nodes)
{
    char *key = key_new(at_leader(), "main", NULL);
    nodes_catch_up(nodes);
    for (unsigned i = 0; i < nodes->count; i++)
        expect_status(http(nodes->node[i].server, .path = "/api/v1/reports", .key = key), 200);
    struct json_object *keys = assay_list(at_leader(), "key", "list", NULL);
    size_t last = json_object_array_length(keys) - 1;
    assay_ok(at_leader(), "key", "revoke", record_text(json_object_array_get_idx(keys, last), "id"),
             NULL);
    nodes_catch_up(nodes);
    unsigned refused = 0;
    for (unsigned i = 0; i < nodes->count; i++)
        refused +=
            http(nodes->node[i].server, .path = "/api/v1/reports", .key = key)->status == 401;
    ck_assert_uint_eq(refused, nodes->count);
}
END_TEST

static bool is_stale(void *arg)
{
    (void)arg;
    return http_get(at_other(), "/api/v1/reports")->status == 503;
}

static bool is_current(void *arg)
{
    (void)arg;
    return http_get(at_other(), "/api/v1/reports")->status == 200;
}

static bool is_ready(void *arg)
{
    (void)arg;
    return http(at_other(), .path = "/readyz", .key = "")->status == 200;
}

static struct raw *stream_of(const struct visitor *v)
{
    struct raw *raw = raw_open(at_other());
    raw_text(raw,
             "GET /api/v1/widget/conversation/stream HTTP/1.1\r\nHost: x\r\n"
             "Authorization: Bearer %s\r\nAccept: text/event-stream\r\n\r\n",
             v->jwt);
    return raw;
}

/* Its last chunk came; the connection may stay. */
static void expect_ended(struct raw *stream)
{
    static const char end[] = "\r\n0\r\n\r\n";
    for (int64_t deadline = now_ms() + SAYS_MS; now_ms() < deadline && !raw_closed(stream, 50);)
        if (stream->in_size >= strlen(end) &&
            memcmp(stream->in + stream->in_size - strlen(end), end, strlen(end)) == 0)
            return;
    ck_assert_msg(stream->closed, "the stream goes on:\n%.*s", (int)stream->in_size, stream->in);
}

START_TEST(a_node_that_cannot_read_the_log_refuses_credentials_after_a_while)
{
    widget_make("*");
    struct visitor v = visitor_new();
    char *path = created("one"), *secret = created("two");
    expect_status(http_put(at_leader(), secret, "privacy=2&password=grinder"), 200);
    nodes_catch_up(nodes);
    struct raw *stream = stream_of(&v);
    ck_assert(!raw_closed(stream, 300));
    fault_proxy_drop(nodes->node[other].proxy);
    int64_t since = now_ms();
    expect_status(http_get(at_other(), path), 200); /* reads go on */
    ck_assert(wait_until(is_stale, NULL, 4 * LAG_MS));
    ck_assert_int_ge(now_ms() - since, LAG_MS - 2500);
    expect_later(http_get(at_other(), path));
    expect_later(http(at_other(), .path = "/api/v1/widget/conversation/messages", .key = v.jwt));
    expect_later(http(at_other(), .path = secret + strlen("/api/v1"), .key = "",
                      .headers = {"Accept: application/json"}));
    expect_ended(stream);
    expect_status(http(at_other(), .path = path + strlen("/api/v1"), .key = ""), 200);
    expect_status(http(at_other(), .path = "/healthz", .key = ""), 200);
    struct response *ready = http(at_other(), .path = "/readyz", .key = "");
    expect_error(ready, 503, "unavailable");
    expect(ready, strstr(ready->body, "behind the cluster's log") != NULL);
    expect_status(http(at_leader(), .path = "/readyz", .key = ""), 200);
    fault_proxy_pass(nodes->node[other].proxy);
    ck_assert(wait_until(is_current, NULL, RECOVER_MS));
    expect_status(http(at_other(), .path = "/readyz", .key = ""), 200);
}
END_TEST

START_TEST(stale_reads_can_be_allowed_by_a_reload)
{
    fault_proxy_drop(nodes->node[other].proxy);
    ck_assert(wait_until(is_stale, NULL, 4 * LAG_MS));
    nodes->options.cluster = ", wait: 300ms, max_lag: 5s, stale_reads: true";
    node_configure(nodes, other);
    server_signal(at_other(), SIGHUP);
    /* workers of the old configuration answer for a while */
    ck_assert(wait_until(is_current, NULL, RECOVER_MS));
    ck_assert(wait_until(is_ready, NULL, RECOVER_MS));
}
END_TEST

/* ---- what operators see ---- */

/* The page of the report is still graded: entries follow. ${arg}: the internal listener. */
static bool shows_every_entry(void *arg)
{
    long entries = (long)nodes_entries(nodes);
    return metric(arg, "assay_cluster_position") == entries &&
           metric(arg, "assay_cluster_head") == entries &&
           metric(arg, "assay_cluster_lag_entries") == 0;
}

/* The same of the leader, in a line of `assay stats`. */
static bool stats_show_every_entry(void *arg)
{
    long entries = (long)nodes_entries(nodes);
    char *line = text("cluster: leads, epoch 1, has %ld of %ld entries", entries, entries);
    (void)arg;
    return strstr(assay_ok(at_leader(), "stats", NULL), line) != NULL;
}

START_TEST(metrics_and_the_command_stats_show_the_position)
{
    nodes->options.yaml = "internal_listen: 127.0.0.1:0";
    node_stop(nodes, other);
    node_configure(nodes, other);
    node_start(nodes, other);
    struct server internal = server_internal(at_other());
    create("one");
    nodes_catch_up(nodes);
    ck_assert(wait_until(is_current, NULL, RECOVER_MS));
    ck_assert(wait_until(shows_every_entry, &internal, RECOVER_MS));
    ck_assert_int_eq(metric(&internal, "assay_cluster_state{state=\"follows\"}"), 1);
    ck_assert_int_eq(metric(&internal, "assay_cluster_state{state=\"leads\"}"), 0);
    ck_assert_int_ge(metric(&internal, "assay_cluster_epoch"), 1);
    ck_assert_int_le(metric(&internal, "assay_cluster_lag_seconds"), 5);
    ck_assert_int_eq(metric(&internal, "assay_cluster_clock_offset_seconds"), 0);
    ck_assert_int_eq(metric(&internal, "assay_cluster_appends_total"), 0);
    ck_assert(wait_until(stats_show_every_entry, NULL, RECOVER_MS));
}
END_TEST

int main(void)
{
    if (postgres_missing()) {
        puts(postgres_missing());
        return SUITE_SKIPPED;
    }
    suite_processes(PROCESSES);
    Suite *suite = suite_create("cluster_reads");
    TCase *usual = harness_case(suite, "reads"), *patient = harness_case(suite, "patient"),
          *impatient = harness_case(suite, "impatient");
    tcase_add_checked_fixture(usual, setup, teardown);
    tcase_add_checked_fixture(patient, setup_patient, teardown);
    tcase_add_checked_fixture(impatient, setup_impatient, teardown);
    tcase_set_timeout(usual, 120);
    tcase_set_timeout(patient, 120);
    tcase_set_timeout(impatient, 120);
    tcase_add_test(usual, every_answer_of_the_api_has_its_position);
    tcase_add_test(usual, pages_of_a_site_may_read_the_position_and_send_it);
    tcase_add_test(patient, a_request_with_a_position_sees_the_change);
    tcase_add_test(patient, a_visitors_token_works_on_every_node_at_once);
    tcase_add_test(usual, a_position_that_the_log_does_not_have_is_refused);
    tcase_add_test(patient, a_new_record_and_a_new_key_are_known_on_every_node_at_once);
    tcase_add_test(usual, a_flood_of_unknown_records_is_answered_soon);
    tcase_add_test(usual, a_revoked_key_is_refused_on_all_nodes);
    tcase_add_test(usual, metrics_and_the_command_stats_show_the_position);
    tcase_add_test(patient, a_request_waits_until_the_node_can_read_the_log);
    tcase_add_test(impatient, a_request_that_waits_too_long_gets_503);
    tcase_add_test(impatient, a_node_that_cannot_read_the_log_refuses_credentials_after_a_while);
    tcase_add_test(impatient, stale_reads_can_be_allowed_by_a_reload);
    return harness_main(suite);
}
