/*
 * The pipeline's limiter when the limits change during a request, between the prefetch of the table
 * (limit_expect) and the charge. A prefetch for other limits is ignored. A real table and real
 * limiter statistics, with a route table of one row.
 */
#include "core/http/http.h"
#include "core/conn/connection.h"
#include "core/shm/limiter_stats.h"
#include "core/process/process.h"
#include "core/worker/worker.h"
#include "core/http/limit.h"
#include "core/http/route.h"
#include "t/kit/suite.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define NOW 1800000000 /* a multiple of 3600 */
#define LIMIT 10

const struct route routes[] = {
    {.method = "POST", .path = "/typing", .limiter = LIMITER_WIDGET_TYPING}};
const size_t routes_count = 1;

/* what limit.c takes from the pipeline for other requests */
const struct route *route_find(struct str method, struct str path, bool internal,
                               struct str args[PATH_ARGS_MAX], const struct route **other)
{
    (void)method, (void)path, (void)internal, (void)args, (void)other;
    ck_abort_msg("the route is known");
}

struct str route_path(const h2o_req_t *req, struct str *query)
{
    (void)req, (void)query;
    ck_abort_msg("the route is known");
}

void *request_alloc(struct request *r, size_t size)
{
    (void)r, (void)size;
    ck_abort_msg("there are no headers");
}

static char dir[64], limits_path[96], board_path[96];
static struct limiters limits;
static struct process process;
static struct conf conf;
static struct loop loop;
static struct http http = {.loop = &loop};
static struct request request;

static struct limiter_window *typing_window(void)
{
    return &limits.rows[LIMITER_WIDGET_TYPING].windows[0];
}

static void make_request(void)
{
    static struct conn conn;
    static h2o_req_t h2o;
    h2o.input.method = (h2o_iovec_t){H2O_STRLIT("POST")};
    request.http = &http;
    request.wait.conn = &conn;
    request.h2o = &h2o;
    request.route = &routes[0];
    request.now_ms = (int64_t)NOW * 1000;
    ck_assert(ip_parse("192.0.2.1", &request.client_ip));
}

static void begin(void)
{
    enum ratelimit_made made;
    strcpy(dir, "/tmp/assay-limit-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(dir));
    snprintf(board_path, sizeof(board_path), "%s/limiters", dir);
    ck_assert_int_eq(ratelimit_path(dir, limits_path, sizeof(limits_path)), 0);
    limiters_defaults(&limits);
    *typing_window() = (struct limiter_window){.limit = LIMIT, .seconds = 60, .by = BY_IP};
    ck_assert_int_eq(ratelimit_open(dir, 1, &made, &process.ratelimit), 0);
    process.limiters = limiter_stats_create(board_path, &limits);
    ck_assert_ptr_nonnull(process.limiters);
    conf.limits = &limits;
    loop.process = &process;
    loop.conf = &conf;
    http.limiter = request_limiter_new(&loop);
    ck_assert_ptr_nonnull(http.limiter);
    make_request();
}

static void end(void)
{
    request_limiter_free(http.limiter);
    limiter_stats_close(process.limiters);
    ratelimit_close(process.ratelimit);
    unlink(board_path);
    unlink(limits_path);
    rmdir(dir);
}

/* ---- changes by a reload ---- */

static void change_nothing(void)
{
}

static void lower_it(void)
{
    typing_window()->limit = 4;
}

static void lengthen_it(void)
{
    typing_window()->seconds = 3600;
}

static void lift_it(void)
{
    typing_window()->limit = 0;
}

static void add_a_window(void)
{
    struct limiter_row *row = &limits.rows[LIMITER_WIDGET_TYPING];
    row->windows[1] = (struct limiter_window){.limit = 3, .seconds = 3600, .by = BY_IP};
    row->windows_count = 2;
}

static void key_it_by_agent(void)
{
    *typing_window() = (struct limiter_window){.limit = 7, .seconds = 60, .by = BY_IP_AGENT};
}

static void name_the_route_elsewhere(void)
{
    struct limiter_row *row = &limits.rows[limits.count++];
    *row = (struct limiter_row){.name = "own", .windows_count = 1, .routes_count = 1};
    row->windows[0] = (struct limiter_window){.limit = 5, .seconds = 3600, .by = BY_IP};
    strcpy(row->routes[0], "POST /typing");
}

static void override_its_address(void)
{
    struct limiter_override *o = &limits.overrides[limits.overrides_count++];
    struct limiter_caller caller = {.ip = &request.client_ip};
    *o = (struct limiter_override){.limiter = LIMITER_WIDGET_TYPING, .limit = 6};
    ck_assert(limiter_key_make(BY_IP, limits.ipv6_prefix, &caller, &o->key));
    limiters_sort(&limits);
}

/*
 * Columns: the configuration that the master publishes between, the reported limit (0: none), the
 * window's length.
 */
static const struct {
    const char *what;
    void (*change)(void);
    uint32_t limit, seconds;
} changes[] = {
    {"nothing", change_nothing, LIMIT, 60},
    {"a lower limit", lower_it, 4, 60},
    {"a longer window", lengthen_it, LIMIT, 3600},
    {"no limit", lift_it, 0, 0},
    {"a second window", add_a_window, 3, 3600},
    {"another kind of key", key_it_by_agent, 7, 60},
    {"another limiter", name_the_route_elsewhere, 5, 3600},
    {"another limit for this address", override_its_address, 6, 60},
};

START_TEST(a_request_is_charged_by_the_limits_in_force)
{
    struct ratelimit_state *state = &request.limit.state;
    limit_prefetch(&request);
    ck_assert_uint_ne(request.limit.prefetched.hash, 0);
    changes[_i].change();
    limiter_stats_publish(process.limiters, &limits);
    ck_assert_int_eq(limit_charge(&request, NULL), LIMIT_ADMITTED);
    ck_assert_msg(request.limit.applies == (changes[_i].limit > 0), "%s: limit headers present: %d",
                  changes[_i].what, request.limit.applies);
    if (!request.limit.applies)
        return;
    ck_assert_msg(state->limit == changes[_i].limit && state->remaining == changes[_i].limit - 1,
                  "%s: %u of %u remain, not of %u", changes[_i].what, state->remaining,
                  state->limit, changes[_i].limit);
    ck_assert_msg(state->reset == NOW + changes[_i].seconds, "%s: the window ends in %lld s",
                  changes[_i].what, (long long)state->reset - NOW);
}
END_TEST

/* the key of the limits in force was charged: nothing of the old one is used */
START_TEST(an_expectation_from_other_limits_is_not_charged)
{
    struct ratelimit_state state;
    limit_prefetch(&request);
    struct ratelimit_window expected = request.limit.prefetched;
    lengthen_it();
    limiter_stats_publish(process.limiters, &limits);
    ck_assert_int_eq(limit_charge(&request, NULL), LIMIT_ADMITTED);
    ck_assert_int_eq(ratelimit_peek(process.ratelimit, &expected, 1, NOW, &state), 0);
    ck_assert_uint_eq(state.remaining, LIMIT);
}
END_TEST

START_TEST(an_expectation_is_charged_when_the_limits_are_unchanged)
{
    struct ratelimit_state state;
    limit_prefetch(&request);
    struct ratelimit_window expected = request.limit.prefetched;
    ck_assert_int_eq(limit_charge(&request, NULL), LIMIT_ADMITTED);
    ck_assert_int_eq(ratelimit_peek(process.ratelimit, &expected, 1, NOW, &state), 0);
    ck_assert_uint_eq(state.remaining, LIMIT - 1);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("limit");
    TCase *tcase = tcase_create("limit");
    tcase_add_checked_fixture(tcase, begin, end);
    tcase_add_loop_test(tcase, a_request_is_charged_by_the_limits_in_force, 0,
                        sizeof(changes) / sizeof(changes[0]));
    tcase_add_test(tcase, an_expectation_from_other_limits_is_not_charged);
    tcase_add_test(tcase, an_expectation_is_charged_when_the_limits_are_unchanged);
    suite_add_tcase(suite, tcase);
    return suite_run(suite);
}
