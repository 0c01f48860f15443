/*
 * Under any load of one workspace, another workspace's report of a fast host is graded within three
 * times its time alone. Deleted reports are not fetched and leave nothing, whichever process is
 * killed. t/bench/fairness runs this test with ASSAY_FAIRNESS_TURNS and ASSAY_FAIRNESS_AUDITORS.
 */
#include "t/kit/starve.h"

#include <poll.h>
#include <signal.h>

enum { CONCURRENCY = 16, SHARE = 12, ROUNDS_MAX = 1000, PAGE_MS = 200, RATIO_MAX = 3 };

static struct origin *origin, *others;
static struct tar *tar;
static struct server *server;
static struct server internal;

static unsigned setting(const char *name, unsigned otherwise)
{
    const char *value = getenv(name);
    return value && *value ? (unsigned)strtoul(value, NULL, 10) : otherwise;
}

static void setup(void)
{
    origin = origin_usual();
    others = origin_usual(); /* the attacker's, so that it does not slow down ours */
    origin_delay(origin, "/good", PAGE_MS);
    tar = tar_start();
    server = server_new(&(struct server_options){
        .auditors = setting("ASSAY_FAIRNESS_AUDITORS", 1),
        .audit = text("timeout: 60s, concurrency: %d, ports: [80, 443, %u, %u, %u]", CONCURRENCY,
                      origin_port(origin), origin_port(others), tar_port(tar))});
    server_start_with(server, "internal_listen: 127.0.0.1:0");
    internal = server_internal(server);
}

static void teardown(void)
{
    server_free(server);
    tar_stop(tar);
    origin_stop(origin);
    origin_stop(others);
}

/* ---- duration ---- */

struct times {
    double median, least, most;
};

static int by_value(const void *a, const void *b)
{
    const double *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

/* New reports of the quick page, one after another. Every second request waits for the grade. */
static struct times graded(unsigned rounds)
{
    static double ms[ROUNDS_MAX];
    char *body = form("url", origin_url(origin, "/good"), NULL);
    ck_assert_uint_le(rounds, ROUNDS_MAX);
    for (unsigned i = 0; i < rounds; i++) {
        int64_t began = now_ms();
        struct response *r = http(server, .method = "POST", .path = "/api/v1/reports", .body = body,
                                  .headers = {i % 2 ? "Prefer: wait=30" : "Prefer: respond-async"},
                                  .timeout_ms = 40000);
        if (r->status == 202)
            r = report_wait(server, int_at(r, "data.id"));
        expect_str(r, "data.status", "done");
        ms[i] = (double)(now_ms() - began);
        response_free(r);
    }
    qsort(ms, rounds, sizeof(*ms), by_value);
    return (struct times){ms[rounds / 2], ms[0], ms[rounds - 1]};
}

/* ---- the state without work ---- */

static bool is_idle(void *arg)
{
    (void)arg;
    return metric(&internal, "assay_audit_jobs_queued") == 0 &&
           metric(&internal, "assay_audit_pages_running") == 0 && tar_open(tar) == 0;
}

static void expect_idle(void)
{
    ck_assert_msg(
        wait_until(is_idle, NULL, 20000), "%ld jobs, %ld pages and %u connections are left\n%s",
        metric(&internal, "assay_audit_jobs_queued"),
        metric(&internal, "assay_audit_pages_running"), tar_open(tar), server_log(server));
}

static bool is_full(void *arg)
{
    (void)arg;
    return tar_open(tar) == SHARE;
}

/* A leaked slot would be missing here. */
static void expect_all_slots(void)
{
    for (unsigned i = 0; i < 2 * CONCURRENCY; i++)
        report_queued(server, tar_url(tar, 50000 + i));
    ck_assert_msg(wait_until(is_full, NULL, 20000), "%u connections, not %d\n%s", tar_open(tar),
                  SHARE, server_log(server));
}

/* ---- the tests ---- */

START_TEST(another_workspace_takes_at_most_three_times_its_time_alone)
{
    unsigned rounds = setting("ASSAY_FAIRNESS_TURNS", 6);
    graded(1);
    struct times alone = graded(rounds);
    struct attacker *a = attack_start(server, (enum attack)_i, tar, origin_url(others, "/good"));
    struct times attacked = graded(rounds);
    long running = metric(&internal, "assay_audit_pages_running"),
         most = CONCURRENCY * setting("ASSAY_FAIRNESS_AUDITORS", 1);
    attack_stop(a);
    ck_assert_msg(running <= most, "the auditors grade %ld pages", running);
    double ratio = attacked.median / alone.median;
    fprintf(stderr,
            "%s | alone %.0f ms (%.0f-%.0f), attacked %.0f ms (%.0f-%.0f) | %.2f | <= %d | %s\n",
            attack_names[_i], alone.median, alone.least, alone.most, attacked.median,
            attacked.least, attacked.most, ratio, RATIO_MAX, ratio <= RATIO_MAX ? "met" : "missed");
    ck_assert_msg(ratio <= RATIO_MAX, "%s: %.0f ms, alone %.0f ms", attack_names[_i],
                  attacked.median, alone.median);
    attack_forgiven(server);
    expect_idle();
}
END_TEST

START_TEST(jobs_of_a_deleted_report_project_or_workspace_stop_at_once)
{
    char *key[2], *name[] = {"first", "second"};
    for (size_t i = 0; i < 2; i++) {
        assay_ok(server, "workspace", "create", name[i], NULL);
        key[i] = key_new(server, name[i], NULL);
    }
    static const struct call posts = {
        .method = "POST", .path = "/api/v1/reports", .headers = {"Prefer: respond-async"}};
    for (unsigned i = 0; i < 6; i++) {
        struct call call = posts;
        call.key = key[i / 4];
        call.body = form("url", tar_url(tar, i / 2), NULL);
        expect_status(http_call(server, &call), 202);
    }
    for (int64_t until = now_ms() + 5000; tar_open(tar) < 6 && now_ms() < until;)
        poll(NULL, 0, 10);
    ck_assert_uint_eq(tar_open(tar), 6);
    int64_t began = now_ms();
    expect_status(http(server, .method = "DELETE", .path = text("/api/v1/projects/%s", tar_host(0)),
                       .key = key[0]),
                  200);
    struct response *left = http(server, .path = "/api/v1/reports", .key = key[0]);
    expect_int(left, "meta.total", 2);
    for (int i = 0; i < 2; i++)
        expect_status(http(server, .method = "DELETE",
                           .path = report_path(int_at(left, text("data.%d.id", i))), .key = key[0]),
                      200);
    assay_ok(server, "workspace", "delete", "second", NULL);
    expect_idle();
    ck_assert_int_lt(now_ms() - began, 15000); /* pages have 60 s */
}
END_TEST

START_TEST(queued_jobs_of_a_deleted_project_are_not_fetched)
{
    for (int i = 0; i < 200; i++)
        report_queued(server, origin_url(origin, text("/good?%d", i)));
    ck_assert(origin_asked(origin, "/good"));
    expect_status(http_delete(server, "/api/v1/projects/127.0.0.1"), 200);
    unsigned before = origin_hits(origin, "/good");
    expect_idle();
    ck_assert_uint_le(origin_hits(origin, "/good"), before + 2); /* a host has two running jobs */
}
END_TEST

static void kill_by_name(const char *title)
{
    pid_t pid = server_process(server, title);
    if (pid == 0)
        return;
    kill(pid, SIGKILL);
    ck_assert(server_replaces(server, title, pid, 10000));
}

static const enum attack killed_under[] = {ATTACK_PAIRS, ATTACK_HELD, ATTACK_PROJECTS};

START_TEST(a_killed_process_loses_no_job_and_leaves_none)
{
    struct attacker *a = attack_start(server, killed_under[_i], tar, origin_url(others, "/good"));
    for (int i = 0; i < 4; i++) {
        kill_by_name(i % 2 ? "assayd: writer" : "assayd: auditor 0");
        for (int64_t until = now_ms() + 500; now_ms() < until;)
            poll(NULL, 0, 10);
    }
    attack_stop(a);
    attack_forgiven(server);
    expect_idle();
    expect_all_slots();
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("fairness");
    TCase *tcase = harness_case(suite, "a server under attack");
    tcase_set_timeout(tcase, 120 + setting("ASSAY_FAIRNESS_TURNS", 0));
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_loop_test(tcase, another_workspace_takes_at_most_three_times_its_time_alone, 0,
                        ATTACKS);
    if (!getenv("ASSAY_FAIRNESS_TURNS")) {
        tcase_add_test(tcase, jobs_of_a_deleted_report_project_or_workspace_stop_at_once);
        tcase_add_test(tcase, queued_jobs_of_a_deleted_project_are_not_fetched);
        tcase_add_loop_test(tcase, a_killed_process_loses_no_job_and_leaves_none, 0,
                            COUNT(killed_under));
    }
    return harness_main(suite);
}
