/*
 * /metrics: responses, durations, the writer, the store, auditors and processes, across crashes of
 * workers and reloads.
 */
#include "t/kit/harness.h"

#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#define ANSWERS(route, status)                                                                     \
    "assay_http_requests_total{method=\"GET\",route=\"" route "\",status=\"" status "\"}"
#define TIMES(route, what)                                                                         \
    "assay_http_request_duration_seconds_" what "{method=\"GET\",route=\"" route "\"}"

static struct origin *origin;
static struct server *server, internal;

static void setup(void)
{
    origin = origin_usual();
    server = server_new(&(struct server_options){.origin = origin, .workers = 2});
    server_configure(server, "internal_listen: 127.0.0.1:0");
    server_start(server);
    internal = server_internal(server);
}

static void teardown(void)
{
    server_discard(server);
    origin_stop(origin);
}

static void ask(int times, const char *path, int status)
{
    for (int i = 0; i < times; i++)
        expect_status(http_get(server, path), status);
}

static bool answered_is(void *arg)
{
    return metric(&internal, ANSWERS("/api/v1/reports", "200")) == *(long *)arg;
}

/*
 * an answer is counted when its connection has finished it, possibly after the client has read it
 */
static void assert_answered(long count)
{
    ck_assert_msg(wait_until(answered_is, &count, 2000), "%ld of %ld",
                  metric(&internal, ANSWERS("/api/v1/reports", "200")), count);
}

START_TEST(responses_are_counted_by_route_and_status)
{
    ask(5, "/api/v1/reports", 200);
    ask(3, "/api/v1/reports/77", 404);
    ask(4, "/api/v1/reports/77/history", 404);
    ask(2, "/nowhere", 404);
    expect_status(http(server, .path = "/api/v1/reports", .key = ""), 401);
    assert_answered(5);
    ck_assert_int_eq(metric(&internal, ANSWERS("/api/v1/reports/{id}", "404")), 3);
    ck_assert_int_eq(metric(&internal, ANSWERS("/api/v1/reports/{id}/history", "404")), 4);
    ck_assert_int_eq(metric(&internal, ANSWERS("/api/v1/reports", "401")), 1);
    ck_assert_int_eq(metric(&internal, ANSWERS("/api/v1/reports", "404")), -1);
    ck_assert_int_eq(
        metric(&internal, "assay_http_requests_total{method=\"\",route=\"\",status=\"404\"}"), 2);
    server_stop(server);
}
END_TEST

static bool generation_is_1(void *arg)
{
    (void)arg;
    return metric(&internal, "assay_generation") == 1;
}

START_TEST(counters_survive_workers_and_reloads)
{
    ask(8, "/api/v1/reports", 200);
    assert_answered(8); /* a killed worker's counts end */
    pid_t worker = server_process(server, "assayd: worker 0");
    kill(worker, SIGKILL);
    ck_assert(server_replaces(server, "assayd: worker 0", worker, 10000));
    ask(8, "/api/v1/reports", 200);
    server_signal(server, SIGHUP);
    ck_assert(wait_until(generation_is_1, NULL, 15000));
    ask(8, "/api/v1/reports", 200);
    assert_answered(24);
    ck_assert_int_eq(metric(&internal, "assay_process_restarts_total"), 1);
    ck_assert_int_ge(metric(&internal, "assay_processes{role=\"worker\"}"), 2);
    kill(server->pid, SIGKILL);
    server_wait(server, 5000);
}
END_TEST

START_TEST(times_are_a_histogram)
{
    long before = 0;
    unsigned buckets = 0;
    ask(20, "/api/v1/reports", 200);
    assert_answered(20);
    struct response *r = http(&internal, .path = "/metrics", .key = "");
    static const char start[] = "\nassay_http_request_duration_seconds_bucket{method=\"GET\",route="
                                "\"/api/v1/reports\",le=\"";
    for (const char *at = r->body; (at = strstr(at, start)) != NULL; at++, buckets++) {
        long count = strtol(strchr(at, '}') + 1, NULL, 10);
        expect(r, count >= before);
        before = count;
    }
    ck_assert_uint_gt(buckets, 10);
    ck_assert_int_eq(before, 20);
    ck_assert_int_eq(metric(&internal, TIMES("/api/v1/reports", "count")), 20);
    const char *sum = strstr(r->body, TIMES("/api/v1/reports", "sum"));
    expect(r, sum != NULL && strtod(strchr(sum, '}') + 1, NULL) > 0 &&
                  strtod(strchr(sum, '}') + 1, NULL) < 20);
    server_stop(server);
}
END_TEST

/* The writer counts a page after it has notified the workers, so an answer can arrive before. */
static bool two_are_counted(void *arg)
{
    (void)arg;
    return metric(&internal, "assay_audit_page_duration_seconds_count") == 2;
}

START_TEST(pages_commits_and_the_store_are_counted)
{
    long commits = metric(&internal, "assay_writer_commit_duration_seconds_count"),
         changes = metric(&internal, "assay_writer_changes_total");
    long used = metric(&internal, "assay_store_used_bytes");
    expect_status(
        http_post(server, "/api/v1/reports", form("url", origin_url(origin, "/good"), NULL)), 201);
    expect_status(http_post(server, "/api/v1/reports",
                            form("url", origin_url(origin, "/there-is-none"), NULL)),
                  201);
    ck_assert(wait_until(two_are_counted, NULL, 5000));
    ck_assert_int_eq(metric(&internal, "assay_audit_pages_total{outcome=\"done\"}"), 1);
    ck_assert_int_eq(metric(&internal, "assay_audit_pages_total{outcome=\"failed\"}"), 1);
    ck_assert_int_ge(metric(&internal, "assay_writer_commit_duration_seconds_count"), commits + 4);
    ck_assert_int_ge(metric(&internal, "assay_writer_changes_total"), changes + 4);
    ck_assert_int_gt(metric(&internal, "assay_store_used_bytes"), used);
    ck_assert_int_gt(metric(&internal, "assay_store_map_bytes"),
                     metric(&internal, "assay_store_used_bytes"));
    /* server/index_files covers some */
    ck_assert_int_eq(metric(&internal, "assay_store_index_bytes"), 0);
    ck_assert_int_ge(metric(&internal, "assay_store_readers"), 2);
    ck_assert_int_eq(metric(&internal, "assay_audit_jobs_queued"), 0);
    server_stop(server);
}
END_TEST

START_TEST(open_connections_and_processes_are_reported)
{
    struct raw *idle[3];
    for (size_t i = 0; i < COUNT(idle); i++) {
        idle[i] = raw_open(server);
        raw_text(idle[i], "GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n");
        ck_assert_int_eq(raw_response(idle[i], false, 5000)->status, 200);
    }
    ck_assert_int_eq(metric(&internal, "assay_connections"), 4); /* and the requesting connection */
    ck_assert_int_eq(metric(&internal, "assay_processes{role=\"worker\"}"), 2);
    ck_assert_int_eq(metric(&internal, "assay_processes{role=\"writer\"}"), 1);
    ck_assert_int_eq(metric(&internal, "assay_processes{role=\"auditor\"}"), 1);
    ck_assert_int_le(metric(&internal, "assay_heartbeat_age_seconds{role=\"worker\"}"), 5);
    ck_assert_int_ge(metric(&internal, "assay_loop_turn_max_seconds{role=\"writer\"}"), 0);
    for (size_t i = 0; i < COUNT(idle); i++)
        raw_close(idle[i]);
    server_stop(server);
}
END_TEST

static const char *const users[] = {"alerts.yml", "grafana.json"};

/* a histogram's name without the suffix of its lines */
static void base_name(char *name)
{
    static const char *const ends[] = {"_bucket", "_sum", "_count"};
    for (size_t i = 0; i < COUNT(ends); i++) {
        size_t n = strlen(name), end = strlen(ends[i]);
        if (n > end && strcmp(name + n - end, ends[i]) == 0)
            name[n - end] = '\0';
    }
}

START_TEST(alerts_and_dashboard_use_existing_metrics)
{
    static char line[1 << 16];
    unsigned found = 0;
    FILE *file = fopen(text(SRCDIR "/packaging/%s", users[_i]), "r");
    ck_assert_ptr_nonnull(file);
    struct response *r = http(&internal, .path = "/metrics", .key = "");
    while (fgets(line, sizeof(line), file) != NULL)
        for (const char *at = line; (at = strstr(at, "assay_")) != NULL; found++) {
            char name[128] = "";
            ck_assert_int_eq(sscanf(at, "%127[a-z_]", name), 1);
            at += strlen(name);
            base_name(name);
            ck_assert_msg(strstr(r->body, text("# TYPE %s ", name)) != NULL, "%s uses %s",
                          users[_i], name);
        }
    fclose(file);
    ck_assert_uint_gt(found, 10);
    server_stop(server);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("metrics");
    TCase *tcase = harness_case(suite, "a server each");
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, responses_are_counted_by_route_and_status);
    tcase_add_test(tcase, counters_survive_workers_and_reloads);
    tcase_add_test(tcase, times_are_a_histogram);
    tcase_add_test(tcase, pages_commits_and_the_store_are_counted);
    tcase_add_test(tcase, open_connections_and_processes_are_reported);
    tcase_add_loop_test(tcase, alerts_and_dashboard_use_existing_metrics, 0, COUNT(users));
    return harness_main(suite);
}
