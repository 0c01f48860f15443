/* Limits for operators: assay limits, /metrics and the log. */
#include "t/kit/harness.h"

#include <signal.h>

#define WINDOW(limit) "windows: [ { limit: " limit ", seconds: 2678400, key: api_key } ]"

static struct server *server;
static struct server internal; /* the same server at its internal listener */

static void setup(void)
{
    server = server_new(&(struct server_options){0});
}

static void teardown(void)
{
    server_discard(server);
}

static char *with_api(const char *api)
{
    return text("internal_listen: 127.0.0.1:0\nlimits: { limiters: { api: { %s } } }", api);
}

static void start_with(const char *api)
{
    server_start_with(server, with_api(api));
    internal = server_internal(server);
}

static void ask(int times, const char *key)
{
    for (int i = 0; i < times; i++)
        response_free(http(server, .path = "/api/v1/reports", .key = key));
}

static void expect_record(struct json_object *list, size_t i, const char *const *members)
{
    struct json_object *record = json_object_array_get_idx(list, i);
    ck_assert_msg(record != NULL, "no record %zu in %s", i, json_object_to_json_string(list));
    for (; *members != NULL; members += 2)
        ck_assert_msg(!strcmp(record_text(record, members[0]), members[1]), "%s is not %s in %s",
                      members[0], members[1], json_object_to_json_string(record));
}
#define expect_members(list, i, ...)                                                               \
    expect_record((list), (i), (const char *const[]){__VA_ARGS__, NULL})

/* ---- assay limits ---- */

START_TEST(list_shows_limiters_in_force_and_their_counts)
{
    start_with(WINDOW("2"));
    ask(5, NULL);
    struct json_object *list = assay_list(server, "limits", "list", NULL);
    /* nine built-in limiters, two of which have two windows */
    ck_assert_uint_eq(json_object_array_length(list), 11);
    expect_members(list, 0, "limiter", "widget-init", "limit", "1000", "seconds", "60", "key",
                   "ip+agent", "mode", "on");
    expect_members(list, 1, "limiter", "widget-init", "limit", "30000", "seconds", "3600", "key",
                   "ip");
    expect_members(list, 8, "limiter", "api", "limit", "2", "key", "api_key", "mode", "on",
                   "admitted", "2", "refused", "3", "dry_run_refused", "0");
    expect_members(list, 9, "limiter", "report-password", "limit", "30", "seconds", "60", "key",
                   "report", "mode", "on");
    expect_members(list, 10, "limiter", "report-password", "limit", "10", "key", "ip");
    server_configure(server, with_api("dry_run: true, " WINDOW("3")));
    list = assay_list(server, "limits", "list", NULL);
    expect_members(list, 8, "limit", "2", "mode",
                   "on"); /* not before the server has read the file */
    server_stop(server);
    list = assay_list(server, "limits", "list", NULL);
    expect_members(list, 8, "limit", "3", "mode", "dry_run", "admitted", "2", "refused", "3");
}
END_TEST

START_TEST(show_and_reset_work_with_and_without_a_server)
{
    start_with(WINDOW("3"));
    ask(5, NULL);
    ask(1, "");
    expect_members(assay_list(server, "limits", "show", "api", "1", NULL), 0, "limiter", "api",
                   "key", "1", "used", "3", "limit", "3", "remaining", "0");
    expect_members(assay_list(server, "limits", "show", "api", "127.0.0.1", NULL), 0, "key",
                   "127.0.0.1", "used", "1", "remaining", "2");
    expect_members(assay_list(server, "limits", "show", "api", "::ffff:127.0.0.1", NULL), 0, "key",
                   "127.0.0.1", "used", "1");
    struct json_object *both =
        assay_list(server, "limits", "show", "widget-init", "127.0.0.1", NULL);
    ck_assert_uint_eq(json_object_array_length(both), 1);
    expect_members(both, 0, "seconds", "3600", "used", "0", "limit", "30000");
    expect_status(http_get(server, "/api/v1/reports"), 429);
    assay_ok(server, "limits", "reset", "api", "1", NULL);
    expect_status(http_get(server, "/api/v1/reports"), 200);
    expect_members(assay_list(server, "limits", "show", "api", "1", NULL), 0, "used", "1");
    expect_members(assay_list(server, "limits", "show", "api", "127.0.0.1", NULL), 0, "used", "1");
    server_stop(server);
    expect_members(assay_list(server, "limits", "show", "api", "1", NULL), 0, "used", "1");
    assay_ok(server, "limits", "reset", "api", "1", NULL);
    expect_members(assay_list(server, "limits", "show", "api", "1", NULL), 0, "used", "0",
                   "remaining", "3");
}
END_TEST

START_TEST(top_shows_keys_near_a_limit_first)
{
    start_with(WINDOW("10"));
    char *second = key_new(server, "main", NULL), *third = key_new(server, "main", NULL);
    ask(6, NULL);
    ask(12, second);
    ask(4, third);
    struct json_object *list = assay_list(server, "limits", "top", NULL);
    ck_assert_uint_eq(json_object_array_length(list),
                      2); /* the third key has used less than half */
    expect_members(list, 0, "limiter", "api", "key", "2", "used", "10", "limit", "10", "seconds",
                   "2678400");
    expect_members(list, 1, "limiter", "api", "key", "1", "used", "6", "limit", "10");
    ck_assert_uint_eq(json_object_array_length(assay_list(server, "limits", "top", "1", NULL)), 1);
    server_stop(server);
}
END_TEST

static bool first_is_the_key(void *key)
{
    return !strcmp(
        record_text(json_object_array_get_idx(assay_list(server, "limits", "top", NULL), 0), "key"),
        key);
}

START_TEST(top_uses_the_limits_in_force)
{
    start_with(WINDOW("10"));
    char *second = key_new(server, "main", NULL);
    ask(6, NULL);
    ask(10, second);
    ck_assert(first_is_the_key("2"));
    server_configure(server, with_api("overrides: [ { key: 2, limit: 100 } ], " WINDOW("10")));
    server_signal(server, SIGHUP);
    ck_assert(wait_until(first_is_the_key, "1", 10000));
    ask(5, second);
    expect_members(assay_list(server, "limits", "top", NULL), 1, "key", "2", "used", "15", "limit",
                   "100");
    server_stop(server);
}
END_TEST

static const struct {
    const char *words[4];
    int status;
    const char *says;
} wrong[] = {
    {{"limits", "show", "api", "x"}, 1, "\"x\" is not a key of api, which counts by api_key"},
    {{"limits", "show", "apis", "1"}, 1, "there is no limiter \"apis\""},
    {{"limits", "reset", "widget-init", "1"}, 1, "which counts by ip+agent and ip"},
    {{"limits", "top", "0"}, 2, "is not a number"},
    {{"limits", "top", "x"}, 2, "is not a number"},
    {{"limits", "show", "api"}, 2, "usage: assay limits show LIMITER KEY"},
    {{"limits"}, 2, "limits needs one of: list, top, show, reset"},
};

START_TEST(a_wrong_call_names_its_error)
{
    start_with(WINDOW("10"));
    const char *const *w = wrong[_i].words;
    struct run run = assay(server, w[0], w[1], w[2], w[3], NULL);
    ck_assert_msg(run.status == wrong[_i].status && strstr(run.err, wrong[_i].says), "%d: %s",
                  run.status, run.err);
    server_stop(server);
}
END_TEST

START_TEST(nothing_is_counted_before_the_first_start)
{
    struct run run = assay(server, "limits", "top", NULL);
    ck_assert_msg(run.status == 1 && strstr(run.err, "there are no counts in run_dir"), "%d: %s",
                  run.status, run.err);
}
END_TEST

/* ---- /metrics ---- */

static bool is_in_dry_run(void *arg)
{
    (void)arg;
    return http_get(server, "/api/v1/reports")->status == 200;
}

START_TEST(metrics_survive_worker_crashes_and_reloads)
{
    start_with(WINDOW("4"));
    ask(10, NULL);
    ck_assert_int_eq(metric(&internal, "assay_limiter_admitted_total{limiter=\"api\"}"), 4);
    ck_assert_int_eq(metric(&internal, "assay_limiter_refused_total{limiter=\"api\"}"), 6);
    ck_assert_int_eq(metric(&internal, "assay_limiter_refused_total{limiter=\"bulk-sync\"}"), 0);
    pid_t worker = server_process(server, "assayd: worker 0");
    kill(worker, SIGKILL);
    ck_assert(server_replaces(server, "assayd: worker 0", worker, 10000));
    server_configure(server, with_api("dry_run: true, " WINDOW("4")));
    server_signal(server, SIGHUP);
    ck_assert(wait_until(is_in_dry_run, NULL, 10000));
    long refused = metric(&internal, "assay_limiter_refused_total{limiter=\"api\"}"),
         would = metric(&internal, "assay_limiter_dry_run_refused_total{limiter=\"api\"}");
    ck_assert_int_ge(refused, 6);
    ck_assert_int_ge(would, 1);
    ck_assert_int_eq(metric(&internal, "assay_limiter_admitted_total{limiter=\"api\"}"), 4);
    ck_assert_int_ge(metric(&internal, "assay_limiter_slots"), 1048576);
    ck_assert_int_eq(metric(&internal, "assay_limiter_evicted_alive_total{limiter=\"api\"}"), 0);
    /* a sample of so large a table can miss it */
    ck_assert_int_ge(metric(&internal, "assay_limiter_slots_used{limiter=\"api\"}"), 0);
    kill(server->pid, SIGKILL);
    server_wait(server, 5000);
}
END_TEST

/* a request without a credential on a limited surface, charged to this address */
static void request_from(struct client *client, const char *address)
{
    struct response *r = http_kept(client, .path = "/v1/wp/none", .key = "",
                                   .headers = {text("X-Forwarded-For: %s", address)});
    expect_status(r, 404);
    response_free(r);
}

START_TEST(a_flooded_small_table_reports_its_keys_and_evictions)
{
    enum { FLOOD = 3000 };
    static const char used[] = "assay_limiter_slots_used{limiter=\"bulk-sync\"}",
                      evicted[] = "assay_limiter_evicted_alive_total{limiter=\"bulk-sync\"}";
    server_configure(server,
                     "internal_listen: 127.0.0.1:0\ntrusted_proxies: [127.0.0.0/8]\nlimits: { "
                     "slots: 1024, limiters: { "
                     "bulk-sync: { windows: [ { limit: 3, seconds: 2678400, key: token } ] } } }");
    server_start(server);
    internal = server_internal(server);
    struct client *client = client_new(server);
    ck_assert_int_eq(metric(&internal, used), 0);
    for (int i = 0; i < 3; i++)
        request_from(client, "192.0.2.1");
    ck_assert_int_eq(metric(&internal, used), 1);
    ck_assert_int_eq(metric(&internal, evicted), 0);
    for (int i = 0; i < FLOOD; i++)
        request_from(client, text("10.0.%d.%d", i / 250, i % 250 + 1));
    long slots = metric(&internal, "assay_limiter_slots"), held = metric(&internal, used);
    ck_assert_msg(held > slots / 2 && held <= slots && slots < FLOOD, "%ld of %ld", held, slots);
    /* every caller has or had a slot */
    ck_assert_int_eq(metric(&internal, evicted), FLOOD + 1 - held);
    ck_assert_int_eq(metric(&internal, "assay_limiter_slots_used{limiter=\"api\"}"), 0);
    /* a key that was at its limit before the flood still has its slot */
    expect_status(http_kept(client, .path = "/v1/wp/none", .key = "",
                            .headers = {"X-Forwarded-For: 192.0.2.1"}),
                  429);
    client_free(client);
    server_stop(server);
}
END_TEST

START_TEST(metrics_are_text_for_prometheus_and_not_public)
{
    start_with(WINDOW("4"));
    struct response *r = http(&internal, .path = "/metrics", .key = "",
                              .headers = {"Accept: text/plain;version=0.0.4"});
    expect_status(r, 200);
    expect(r, !strcmp(header(r, "Content-Type"), "text/plain; version=0.0.4; charset=utf-8"));
    expect(r, strstr(r->body, "# HELP assay_limiter_refused_total ") &&
                  strstr(r->body, "# TYPE assay_limiter_refused_total counter\n"));
    expect(r, r->body_size > 0 && r->body[r->body_size - 1] == '\n');
    for (char *at = r->body; *at != '\0'; at = strchr(at, '\n') + 1) {
        char name[128], value[32];
        bool comment = *at == '#', sample = sscanf(at, "%127s %31[0-9]", name, value) == 2;
        expect(r, comment || (sample && !strncmp(name, "assay_", 6)));
    }
    expect_error(http(server, .path = "/metrics", .key = ""), 404, "not_found");
    expect_error(http(&internal, .path = "/api/v1/reports"), 404, "not_found");
    expect_error(http(&internal, .method = "POST", .path = "/metrics", .key = "", .body = ""), 405,
                 "method_not_allowed");
    server_stop(server);
}
END_TEST

/* ---- the log ---- */

static size_t times(const char *in, const char *words)
{
    size_t count = 0;
    for (const char *at = strstr(in, words); at != NULL; at = strstr(at + 1, words))
        count++;
    return count;
}

START_TEST(refusals_do_not_fill_the_log)
{
    start_with(WINDOW("1"));
    ask(100, NULL);
    /* five in each of two intervals */
    ck_assert_uint_le(times(server_log(server), "limiter api refuses 1: over 1 in 2678400 s"), 10);
    ck_assert_uint_ge(times(server_log(server), "limiter api refuses 1"), 1);
    ck_assert(server_says(server, " further refusals were not logged individually", 0, 25000));
    server_stop(server);
}
END_TEST

int main(void)
{
    suite_processes(3);
    Suite *suite = suite_create("limits_operators");
    TCase *tcase = harness_case(suite, "a server each");
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, list_shows_limiters_in_force_and_their_counts);
    tcase_add_test(tcase, show_and_reset_work_with_and_without_a_server);
    tcase_add_test(tcase, top_shows_keys_near_a_limit_first);
    tcase_add_test(tcase, top_uses_the_limits_in_force);
    tcase_add_loop_test(tcase, a_wrong_call_names_its_error, 0, COUNT(wrong));
    tcase_add_test(tcase, nothing_is_counted_before_the_first_start);
    tcase_add_test(tcase, metrics_survive_worker_crashes_and_reloads);
    tcase_add_test(tcase, a_flooded_small_table_reports_its_keys_and_evictions);
    tcase_add_test(tcase, metrics_are_text_for_prometheus_and_not_public);
    tcase_add_test(tcase, refusals_do_not_fill_the_log);
    return harness_main(suite);
}
