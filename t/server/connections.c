/* More connections than max_connections: which are closed, which wait, and which are counted. */
#include "t/kit/connections.h"

#include <dirent.h>
#include <linux/capability.h>
#include <limits.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>

/*
 * Far less than the 10 s and more until an attacker times out, on a busy machine.
 * t/client/slowhttptest is stricter.
 */
#define ANSWERED_MS 3000

/* so that the connections are ordered by the server's clock */
static void request_later(struct raw *raw)
{
    for (int64_t since = now_ms(); now_ms() < since + 3;)
        poll(NULL, 0, 1);
    ask(raw);
}

static bool enough_evicted(void *arg)
{
    return metric(arg, "assay_connections_evicted_total") >= 60;
}

/* ---- slow and idle clients ---- */

/* What an attacker's connection sends before it stops, and how often. It never reads. */
#define LARGE "GET /api/v1/openapi.json HTTP/1.1\r\n" HOST "\r\n"
static const struct {
    const char *name, *sent;
    int times;
} attacks[] = {
    {"nothing", "", 1},
    {"half a head", "GET /healthz HTTP/1.1\r\nHo", 1},
    {"half a body",
     "POST /api/v1/reports HTTP/1.1\r\n" HOST
     "Content-Type: application/x-www-form-urlencoded\r\nContent-Length: 500\r\n\r\nurl=",
     1},
    {"a whole request", HEALTHZ, 1},
    {"many requests for much", LARGE, 60},
};

START_TEST(a_normal_client_connects_among_many_slow_or_idle_ones)
{
    enum { MOST = 40, ATTACKERS = 100 };
    struct raw *raws[ATTACKERS];
    server_start_with(server, text("max_connections: %d\ninternal_listen: 127.0.0.1:0", MOST));
    struct server internal = server_internal(server);
    for (int i = 0; i < ATTACKERS; i++) {
        raws[i] = raw_from("127.0.0.2");
        for (int k = 0; k < attacks[_i].times; k++)
            raw_text(raws[i], "%s", attacks[_i].sent);
    }
    for (int i = 0; i < 20; i++) {
        int64_t since = now_ms();
        expect_status(http(server, .path = "/healthz", .timeout_ms = 5000), 200);
        ck_assert_msg(now_ms() - since < ANSWERED_MS, "%s: answered after %lld ms",
                      attacks[_i].name, (long long)(now_ms() - since));
    }
    ck_assert_int_eq(ATTACKERS - MOST,
                     60); /* the connections behind the client are accepted later */
    ck_assert_msg(wait_until(enough_evicted, &internal, 5000), "%ld were evicted",
                  metric(&internal, "assay_connections_evicted_total"));
    close_all(raws, ATTACKERS);
    server_stop(server);
}
END_TEST

/* ---- descriptors ---- */

/*
 * The server with a hard limit of descriptors, which not even root can raise. It execs, so it stays
 * the harness' child.
 */
static void limit_descriptors(unsigned hard)
{
    char real[PATH_MAX];
    ck_assert_ptr_nonnull(realpath(assayd_path(), real));
    char *wrapper = text("%s/limited", server->dir);
    FILE *file = fopen(wrapper, "w");
    ck_assert(file &&
              fprintf(file, "#!/bin/sh\nulimit -n %u || exit 9\nexec %s \"$@\"\n", hard, real) >
                  0 &&
              fclose(file) == 0);
    ck_assert(chmod(wrapper, 0700) == 0 && setenv("ASSAYD", wrapper, 1) == 0);
    prctl(PR_CAPBSET_DROP, CAP_SYS_RESOURCE); /* refused when no descriptor is left */
    struct rlimit own;
    ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &own), 0);
    own.rlim_cur = own.rlim_max;
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &own), 0);
}

/* by another client, which must be served throughout */
static void expect_served(const char *when)
{
    int64_t since = now_ms();
    struct raw *raw = raw_from("127.0.0.3");
    raw_text(raw, HEALTHZ);
    struct response *r = raw_response(raw, false, 5000);
    ck_assert_msg(r->status == 200 && now_ms() - since < ANSWERED_MS,
                  "%s: status %d after %lld ms\n%s", when, r->status, (long long)(now_ms() - since),
                  server_log(server));
    raw_close(raw);
}

START_TEST(fewer_descriptors_than_max_connections_still_serve_clients)
{
    enum { SILENT = 3000, HARD = 300 };
    static struct raw *raws[SILENT];
    limit_descriptors(HARD);
    server_start_with(server, "internal_listen: 127.0.0.1:0");
    struct server internal = server_internal(server);
    long most = metric(&internal, "assay_connections_max");
    ck_assert_msg(most >= 16 && most <= 2 * HARD, "%ld", most);
    ck_assert_msg(
        strstr(server_log(server), text("max_connections is lowered from 10000 to %ld", most)),
        "%s", server_log(server));
    ck_assert_msg(strstr(server_log(server), "set LimitNOFILE= of the service"), "%s",
                  server_log(server));
    for (int i = 0; i < SILENT; i++) {
        raws[i] = raw_from("127.0.0.2");
        if (i % 100 == 99)
            expect_served(text("among %d silent ones", i + 1));
    }
    for (int i = 0; i < 20; i++)
        expect_served("among all");
    ck_assert_msg(metric(&internal, "assay_connections_evicted_total") > 0,
                  "no connection was evicted");
    close_all(raws, SILENT);
    server_stop(server);
}
END_TEST

static size_t descriptors_of(pid_t pid)
{
    size_t count = 0;
    DIR *dir = opendir(text("/proc/%d/fd", (int)pid));
    ck_assert_ptr_nonnull(dir);
    while (readdir(dir) != NULL)
        count++;
    closedir(dir);
    return count - 2;
}

START_TEST(descriptor_exhaustion_evicts_a_connection)
{
    enum { SILENT = 400, ROOM = 60 };
    static struct raw *raws[SILENT];
    server->options.workers = 1;
    server_start_with(server, "internal_listen: 127.0.0.1:0");
    struct server internal = server_internal(server);
    pid_t worker = server_process(server, "assayd: worker 0");
    struct rlimit limit = {descriptors_of(worker) + ROOM, descriptors_of(worker) + ROOM};
    ck_assert_int_eq(prlimit(worker, RLIMIT_NOFILE, &limit, NULL), 0);
    for (int i = 0; i < SILENT; i++) {
        raws[i] = raw_from("127.0.0.2");
        if (i % 50 == 49)
            expect_served(text("among %d silent ones", i + 1));
    }
    ck_assert_msg(metric(&internal, "assay_connections_evicted_total") >= SILENT - 2 * ROOM,
                  "%ld were evicted", metric(&internal, "assay_connections_evicted_total"));
    close_all(raws, SILENT);
    server_stop(server);
}
END_TEST

START_TEST(a_limit_without_any_connection_is_refused_at_startup)
{
    limit_descriptors(128);
    struct run run = run_program(assayd_path(), "-c", server->conf, NULL);
    ck_assert_msg(run.status == 2 &&
                      strstr(run.err, "RLIMIT_NOFILE: a process may open 128 descriptors"),
                  "%d: %s", run.status, run.err);
}
END_TEST

/* ---- eviction and waiting ---- */

START_TEST(the_longest_idle_connection_is_evicted)
{
    enum { MOST = 6 };
    struct raw *raws[MOST], *new_client;
    server->options.workers = 1;
    server_start_with(server, text("max_connections: %d", MOST));
    for (int i = 0; i < MOST; i++)
        request_later(raws[i] = raw_open(server));
    request_later(raws[0]); /* the second one is the longest idle */
    new_client = raw_open(server);
    ask(new_client);
    ck_assert_msg(raw_closed(raws[1], 2000), "it is still open");
    ck_assert_uint_eq(still_open(raws, MOST), MOST - 1);
    ask(raws[0]);
    raw_close(new_client);
    close_all(raws, MOST);
    server_stop(server);
}
END_TEST

START_TEST(the_address_with_most_connections_is_evicted_first)
{
    enum { MOST = 32 };
    struct raw *client, *raws[MOST * 2];
    server->options.workers = 1;
    server_start_with(server, text("max_connections: %d", MOST));
    ask(client = raw_open(server)); /* idle for longer than every other connection */
    for (size_t i = 0; i < COUNT(raws); i++)
        ask(raws[i] = raw_from("127.0.0.2"));
    ask(client);
    raw_close(client);
    close_all(raws, COUNT(raws));
    server_stop(server);
}
END_TEST

/*
 * Two new connections from different addresses have not sent a request when a third arrives at the
 * limit: it waits until one of them is 50 ms old. Rounds that took the machine longer prove
 * nothing.
 */
START_TEST(a_new_connection_is_not_evicted_before_its_request)
{
    enum { MOST = 2, QUICK_MS = 35, ROUNDS = 300 };
    struct raw *raws[MOST], *third;
    int quick = 0;
    server->options.workers = 1;
    server_start_with(server, text("max_connections: %d", MOST));
    for (int n = 0; n < ROUNDS && quick < 5; n++) {
        int64_t since = now_ms();
        for (int i = 0; i < MOST; i++)
            raws[i] = raw_from(text("127.0.1.%d", 2 + i));
        raw_text(third = raw_from("127.0.1.9"), HEALTHZ);
        poll(NULL, 0, 15); /* the server has read it */
        for (int i = 0; i < MOST; i++)
            raw_text(raws[i], HEALTHZ);
        bool in_time = now_ms() - since < QUICK_MS;
        for (int i = 0; i < MOST && in_time; i++)
            expect_status(raw_response(raws[i], false, 5000), 200);
        quick += in_time;
        expect_status(raw_response(third, false, 5000), 200);
        raw_close(third);
        close_all(raws, MOST);
    }
    ck_assert_int_ge(quick, 5);
    server_stop(server);
}
END_TEST

enum { HELD = 4 };

/* As many requests as max_connections, held until their pages arrive. */
static struct server start_held(struct raw *held[HELD], char path[HELD][32])
{
    server->options.workers = 1;
    server->options.audit = "concurrency: 16";
    server_start_with(server, text("max_connections: %d\ninternal_listen: 127.0.0.1:0", HELD));
    struct server internal = server_internal(server);
    for (int i = 0; i < HELD; i++) {
        snprintf(path[i], sizeof(path[i]), "/held-%d", i);
        origin_held(origin, path[i]);
    }
    /* two pages per host at once: the others are queued, and their requests are held */
    for (int i = 0; i < HELD; i++) {
        char *body = form("url", origin_url(origin, path[i]), NULL);
        held[i] = raw_open(server);
        raw_text(held[i],
                 "POST /api/v1/reports HTTP/1.1\r\n" HOST
                 "Content-Type: application/x-www-form-urlencoded\r\n"
                 "Authorization: Bearer %s\r\nPrefer: wait=25\r\nContent-Length: %zu\r\n\r\n%s",
                 server->key, strlen(body), body);
    }
    int64_t deadline = now_ms() + 10000;
    while (metric(&internal, "assay_http_requests_waiting") < HELD && now_ms() < deadline)
        ;
    ck_assert_int_eq(metric(&internal, "assay_http_requests_waiting"), HELD);
    return internal;
}

START_TEST(a_running_request_is_never_evicted_and_new_connections_wait)
{
    struct raw *held[HELD], *new_client;
    char path[HELD][32];
    struct server internal = start_held(held, path);
    new_client = raw_open(server);
    raw_text(new_client, HEALTHZ);
    /* operators can connect */
    expect_status(http(&internal, .path = "/healthz", .timeout_ms = 2000), 200);
    struct response *early = raw_response(new_client, false, 500);
    ck_assert_msg(early->status == 0, "it was accepted");
    for (int i = 0; i < HELD; i++)
        origin_release(origin, path[i]);
    for (int i = 0; i < HELD; i++)
        expect_status(raw_response(held[i], false, 20000), 201);
    expect_status(raw_response(new_client, false, 5000), 200);
    raw_close(new_client);
    close_all(held, HELD);
    server_stop(server);
}
END_TEST

/*
 * the internal listener's queue does not keep the worker busy either, when no connection can be
 * evicted
 */
START_TEST(a_worker_with_waiting_connections_uses_no_cpu)
{
    enum { EXTRA = 16, MORE = 4 };
    struct raw *held[HELD], *extra[EXTRA], *waiting[MORE];
    char path[HELD][32];
    struct server internal = start_held(held, path);
    ck_assert_int_eq(sscanf(internal.url, "http://127.0.0.1:%hu", &internal.port), 1);
    for (int i = 0; i < EXTRA; i++)
        extra[i] = raw_open(&internal);
    poll(NULL, 0, 500); /* all are accepted */
    for (int i = 0; i < MORE; i++)
        raw_text(waiting[i] = raw_open(&internal), HEALTHZ);
    ck_assert_int_eq(raw_response(waiting[0], false, 200)->status, 0);
    pid_t worker = server_process(server, "assayd: worker 0");
    double before = process_seconds(worker);
    poll(NULL, 0, 1500);
    double used = process_seconds(worker) - before;
    ck_assert_msg(used < 0.5, "it used %g s of CPU", used);
    raw_close(extra[0]);
    expect_status(raw_response(waiting[0], false, 5000), 200);
    for (int i = 0; i < HELD; i++)
        origin_release(origin, path[i]);
    for (int i = 0; i < HELD; i++)
        expect_status(raw_response(held[i], false, 20000), 201);
    close_all(extra + 1, EXTRA - 1);
    close_all(waiting, MORE);
    close_all(held, HELD);
    server_stop(server);
}
END_TEST

static bool some_are_refused(void *arg)
{
    return metric(arg, "assay_connections_refused_total") >= 20;
}

/*
 * When many connections of one address wait, a new connection of another address gets the next
 * slot. When too many wait, some are answered 503.
 */
START_TEST(the_waiting_address_with_fewest_connections_goes_first)
{
    enum { MANY = 100 };
    struct raw *held[HELD], *many[MANY], *other;
    char path[HELD][32];
    struct server internal = start_held(held, path);
    for (int i = 0; i < MANY; i++)
        raw_text(many[i] = raw_from("127.0.0.2"), HEALTHZ);
    ck_assert_msg(wait_until(some_are_refused, &internal, 5000), "all wait");
    raw_text(other = raw_from("127.0.0.3"), HEALTHZ);
    ck_assert_int_eq(raw_response(other, false, 300)->status, 0);
    for (int i = 0; i < HELD; i++)
        origin_release(origin, path[i]);
    expect_status(raw_response(held[0], false, 20000), 201);
    expect_status(raw_response(other, false, 5000), 200);
    size_t waited = 0, refused = 0;
    for (int i = 0; i < MANY; i++) {
        int status = raw_response(many[i], false, 10000)->status;
        waited += status == 200;
        refused += status == 503;
    }
    ck_assert_msg(waited >= 64 - HELD && refused >= 20 && waited + refused == MANY,
                  "%zu waited, %zu were refused", waited, refused);
    raw_close(other);
    close_all(many, MANY);
    close_all(held, HELD);
    server_stop(server);
}
END_TEST

static bool not_over(void *arg)
{
    return metric(arg, "assay_connections") <= 16 + 1 /* the requesting connection */;
}

START_TEST(max_connections_holds_over_all_workers)
{
    struct raw *raws[90];
    server->options.workers = 3;
    server_start_with(server, "max_connections: 16\ninternal_listen: 127.0.0.1:0");
    struct server internal = server_internal(server);
    for (size_t i = 0; i < COUNT(raws); i++)
        ask(raws[i] = raw_open(server));
    ck_assert_msg(wait_until(not_over, &internal, 5000), "%ld",
                  metric(&internal, "assay_connections"));
    ck_assert_int_eq((long)still_open(raws, COUNT(raws)), 16);
    ck_assert_int_eq(metric(&internal, "assay_connections_evicted_total"), (long)COUNT(raws) - 16);
    close_all(raws, COUNT(raws));
    server_stop(server);
}
END_TEST

START_TEST(internal_listen_keeps_its_reserved_connections)
{
    enum { EXTRA = 16, MOST = 2 };
    struct raw *extra[EXTRA], *served, *raws[MOST];
    server->options.workers = 1;
    server_start_with(server, text("max_connections: %d\ninternal_listen: 127.0.0.1:0", MOST));
    struct server internal = server_internal(server);
    ck_assert_int_eq(sscanf(internal.url, "http://127.0.0.1:%hu", &internal.port), 1);
    for (int i = 0; i < EXTRA; i++)
        ask(extra[i] = raw_open(&internal));
    ask(served = raw_open(&internal)); /* above the reserved ones it counts for max_connections */
    poll(NULL, 0, 500);
    for (int i = 0; i < MOST; i++)
        ask(raws[i] = raw_open(server));
    ck_assert_msg(raw_closed(served, 2000), "it was not evicted");
    ck_assert_uint_eq(still_open(extra, EXTRA), EXTRA);
    raw_close(served);
    close_all(extra, EXTRA);
    poll(NULL, 0, 500);
    for (int i = 0; i < EXTRA; i++)
        ask(extra[i] = raw_open(&internal));
    ck_assert_uint_eq(still_open(raws, MOST), MOST);
    close_all(extra, EXTRA);
    close_all(raws, MOST);
    server_stop(server);
}
END_TEST

int main(void)
{
    suite_processes(3);
    Suite *suite = suite_create("connections");
    TCase *tcase = harness_case(suite, "a server each");
    tcase_add_checked_fixture(tcase, connections_setup, connections_teardown);
    tcase_add_loop_test(tcase, a_normal_client_connects_among_many_slow_or_idle_ones, 0,
                        COUNT(attacks));
    tcase_add_test(tcase, fewer_descriptors_than_max_connections_still_serve_clients);
    tcase_add_test(tcase, descriptor_exhaustion_evicts_a_connection);
    tcase_add_test(tcase, a_limit_without_any_connection_is_refused_at_startup);
    tcase_add_test(tcase, the_longest_idle_connection_is_evicted);
    tcase_add_test(tcase, the_address_with_most_connections_is_evicted_first);
    tcase_add_test(tcase, a_new_connection_is_not_evicted_before_its_request);
    tcase_add_test(tcase, a_running_request_is_never_evicted_and_new_connections_wait);
    tcase_add_test(tcase, a_worker_with_waiting_connections_uses_no_cpu);
    tcase_add_test(tcase, the_waiting_address_with_fewest_connections_goes_first);
    tcase_add_test(tcase, max_connections_holds_over_all_workers);
    tcase_add_test(tcase, internal_listen_keeps_its_reserved_connections);
    return harness_main(suite);
}
