/* HUP and USR1: a new configuration under load, refused configurations, and new log files. */
#include "t/kit/load.h"
#include "t/kit/origin_server.h"

#include <signal.h>

struct generation {
    pid_t old[32];
    size_t old_count;
    unsigned workers;
};

/* No current worker is an old one. */
static bool is_succeeded(void *arg)
{
    struct generation *g = arg;
    pid_t pids[64];
    unsigned fresh = 0;
    size_t count = server_children(server, pids, COUNT(pids));
    for (size_t i = 0; i < count && i < COUNT(pids); i++) {
        bool old = false;
        for (size_t k = 0; k < g->old_count; k++)
            old |= g->old[k] == pids[i];
        fresh += !old && !strncmp(process_title(pids[i]), "assayd: worker ", 15);
    }
    return fresh >= g->workers;
}

static bool has_settled(void *arg)
{
    return server_children(server, NULL, 0) == 2 + *(unsigned *)arg;
}

static bool links_begin_with(void *arg)
{
    struct response *r = http_get(server, "/api/v1/reports");
    bool same = !strncmp(str_at(r, "meta.path"), arg, strlen(arg));
    response_free(r);
    return same;
}

static struct load loads[] = {{.fresh = true},
                              {.fresh = false},
                              {.fresh = true, .writes = true},
                              {.fresh = false, .writes = true}};

/* Every kind of load has got more answers (or has failed). */
static bool has_worked(void *arg)
{
    const unsigned *from = arg;
    bool all = true;
    for (size_t i = 0; i < COUNT(loads); i++)
        all = all && (loads[i].failure || loads[i].done >= from[i] + 20);
    return all;
}

START_TEST(five_reloads_under_load_lose_no_request)
{
    unsigned workers = 2;
    server_start(server);
    load_start(server, loads, COUNT(loads));
    for (int reload = 0; reload < 5; reload++) {
        struct generation g = {.old_count = server_children(server, g.old, COUNT(g.old)),
                               .workers = workers};
        char *base = text("http://reload-%d.test", reload);
        g.old_count = g.old_count < COUNT(g.old) ? g.old_count : COUNT(g.old);
        server->options.workers = g.workers = workers = reload % 2 ? 2 : 3;
        server_configure(server, text("base_url: %s", base));
        server_signal(server, SIGHUP);
        ck_assert_msg(wait_until(is_succeeded, &g, 15000), "reload %d: no new workers\n%s", reload,
                      server_log(server));
        ck_assert_msg(wait_until(links_begin_with, base, 10000), "reload %d: old configuration\n%s",
                      reload, server_log(server));
        unsigned from[COUNT(loads)];
        for (size_t i = 0; i < COUNT(loads); i++)
            from[i] = loads[i].done;
        ck_assert_msg(wait_until(has_worked, from, 10000), "reload %d: the load has stopped\n%s",
                      reload, server_log(server));
    }
    load_end(loads, COUNT(loads), 100);
    unsigned writes = 0;
    for (size_t i = 0; i < COUNT(loads); i++)
        writes += loads[i].writes ? loads[i].done : 0;
    expect_int(http_get(server, "/api/v1/reports"), "meta.total", writes);
    ck_assert_msg(wait_until(has_settled, &workers, 10000), "%zu children are left",
                  server_children(server, NULL, 0));
    server_stop(server);
}
END_TEST

START_TEST(a_burst_of_reloads_ends_with_the_last_configuration)
{
    unsigned workers = 2;
    server_start(server);
    for (int i = 0; i < 10; i++) {
        server_configure(server, text("base_url: http://burst-%d.test", i));
        server_signal(server, SIGHUP);
        expect_status(http_get(server, "/api/v1/reports"), 200);
    }
    ck_assert_msg(wait_until(links_begin_with, "http://burst-9.test", 15000), "%s",
                  server_log(server));
    ck_assert_msg(wait_until(has_settled, &workers, 10000), "%zu children are left",
                  server_children(server, NULL, 0));
    server_stop(server);
}
END_TEST

START_TEST(a_held_post_of_an_old_generation_is_answered_as_pending)
{
    server_start(server);
    struct raw *raw = held_post(server, origin, "/held-reload");
    server_configure(server, "base_url: http://reloaded.test");
    server_signal(server, SIGHUP);
    struct response *r = raw_response(raw, false, 10000);
    origin_release(origin, "/held-reload");
    expect_status(r, 201);
    expect_str(r, "data.status", "pending");
    expect_str(report_wait(server, int_at(r, "data.id")), "data.status", "done");
    server_stop(server);
}
END_TEST

static const struct {
    const char *yaml, *says;
} refusals[] = {
    {"store: { map_size: 1GiB }", "store.map_size"},
    {"internal_listen: 127.0.0.1:1", "internal_listen"},
    {"colour: blue", "colour"},
    {"reports: { wait: soon }", "reports.wait"},
    {"reports: { wait: 1s", "assay.yaml"},
};

START_TEST(a_refused_reload_says_why_and_changes_nothing)
{
    server_start(server);
    pid_t before[8], after[8];
    ck_assert_uint_eq(server_children(server, before, COUNT(before)), 4);
    server_configure(server, refusals[_i].yaml);
    size_t from = strlen(server_log(server));
    server_signal(server, SIGHUP);
    ck_assert_msg(server_says(server, refusals[_i].says, from, 5000), "%s is not in the log\n%s",
                  refusals[_i].says, server_log(server));
    ck_assert_uint_eq(server_children(server, after, COUNT(after)), 4);
    ck_assert(!memcmp(before, after, 4 * sizeof(*before)));
    expect_status(http_get(server, "/api/v1/reports"), 200);
    server_configure(server, "base_url: http://after.test");
    server_signal(server, SIGHUP);
    ck_assert_msg(wait_until(links_begin_with, "http://after.test", 10000), "%s",
                  server_log(server));
    server_stop(server);
}
END_TEST

static bool one_is(void *result)
{
    struct response *r = http_get(server, text("/api/v1/reports?result=%s", (const char *)result));
    return int_at(r, "meta.total") == 1;
}

START_TEST(new_bounds_reclassify_existing_reports)
{
    server_start(server);
    int64_t id = report_new(server, origin_url(origin, "/good"));
    char *path = text("/api/v1/reports/%lld", (long long)id);
    int64_t score = int_at(http_get(server, path), "data.score");
    ck_assert_int_ge(score, 1);
    ck_assert_int_le(score, 99);
    server_configure(server, text("reports: { good: %lld, decent: %lld }", (long long)score + 1,
                                  (long long)score + 1));
    server_signal(server, SIGHUP);
    ck_assert_msg(wait_until(one_is, "bad", 10000), "%s", server_log(server));
    ck_assert_str_eq(str_at(http_get(server, path), "data.result"), "bad");
    server_configure(server, text("reports: { good: %lld, decent: 1 }", (long long)score));
    server_signal(server, SIGHUP);
    ck_assert_msg(wait_until(one_is, "good", 10000), "%s", server_log(server));
    ck_assert_str_eq(str_at(http_get(server, path), "data.result"), "good");
    server_stop(server);
}
END_TEST

static bool logs_request(void *arg)
{
    expect_status(http(server, .path = "/healthz?logged", .headers = {"X-Request-Id: find-me"}),
                  200);
    struct run run = run_program("/bin/grep", "-c", "find-me", arg, NULL);
    return run.status == 0;
}

START_TEST(usr1_reopens_the_access_log)
{
    char *log = text("%s/access.log", server->dir), *moved = text("%s/access.log.1", server->dir);
    server_configure(server, text("log: { access: %s }", log));
    server_start(server);
    ck_assert_msg(wait_until(logs_request, log, 5000), "the access log is empty");
    ck_assert_int_eq(rename(log, moved), 0);
    server_signal(server, SIGUSR1);
    ck_assert_msg(wait_until(logs_request, log, 5000), "the new access log is empty");
    struct run run = run_program("/bin/grep", "-m1", "find-me", log, NULL);
    struct json_object *line = json_tokener_parse(run.out), *value;
    ck_assert_msg(json_object_is_type(line, json_type_object), "not JSON: %s", run.out);
    ck_assert_msg(json_object_object_get_ex(line, "status", &value) &&
                      json_object_get_int(value) == 200,
                  "%s", run.out);
    ck_assert_msg(!strstr(run.out, server->key), "%s", run.out);
    json_object_put(line);
    server_stop(server);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("reloads");
    TCase *tcase = harness_case(suite, "a server each");
    tcase_add_checked_fixture(tcase, own_setup, own_teardown);
    tcase_add_test(tcase, five_reloads_under_load_lose_no_request);
    tcase_add_test(tcase, a_burst_of_reloads_ends_with_the_last_configuration);
    tcase_add_test(tcase, a_held_post_of_an_old_generation_is_answered_as_pending);
    tcase_add_test(tcase, new_bounds_reclassify_existing_reports);
    tcase_add_loop_test(tcase, a_refused_reload_says_why_and_changes_nothing, 0, COUNT(refusals));
    tcase_add_test(tcase, usr1_reopens_the_access_log);
    return harness_main(suite);
}
