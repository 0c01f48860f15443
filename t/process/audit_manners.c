/* How grading treats hosts: user agent, pauses, deadlines, and withdrawn pages. */
#include "core/shm/host_slots.h"
#include "t/kit/audit_loopback.h"
#include "t/kit/suite.h"
#include "core/shm/scoreboard.h"

#include <check.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>

/* ---- user agent ---- */

static char user_agents[8][256];
static unsigned user_agents_count;

static void answer_noting_agent(struct origin_answer *a, const char *path)
{
    const char *at = strstr(origin_request(a), "User-Agent: ");
    if (at != NULL && user_agents_count < 8)
        snprintf(user_agents[user_agents_count++], 256, "%.*s", (int)strcspn(at, "\r"), at);
    if (strcmp(path, "/") == 0)
        good_page(a);
    else
        not_found(a);
}

START_TEST(every_request_names_the_agent_and_its_url)
{
    open_with_timeout(answer_noting_agent, 5000);
    conf.base_url = (char *)(uintptr_t) "https://reports.example.org";
    conf.audit_concurrency = 1;
    grade_path("/");
    ck_assert_uint_eq(got.failed, 0);
    close_all();
    ck_assert_uint_eq(user_agents_count, 4);
    for (unsigned i = 0; i < 4; i++) {
        ck_assert_ptr_nonnull(strstr(user_agents[i], "Assay/"));
        ck_assert_ptr_nonnull(strstr(user_agents[i], "+https://reports.example.org)"));
    }
}
END_TEST

/* ---- Retry-After ---- */

static _Atomic unsigned requested_page;

/* the answer to the first request for a page; the second request gets the page */
static const char *const first_answers[][2] = {
    {"/page-429", "429 Slow down\r\nRetry-After: 1"},
    {"/page-date", "503 Out\r\nRetry-After: Wed, 21 Oct 2015 07:28:00 GMT"},
    {"/page-hour", "503 Out\r\nRetry-After: 3600"},
    {"/page-plain", "503 Out\r\nX-None: 0"},
    {"/page-500", "500 Broken\r\nRetry-After: 0"},
    {"/page-soon", "503 Out\r\nRetry-After: soon"},
    {"/page-less", "503 Out\r\nRetry-After: -5"},
    {"/page-much", "503 Out\r\nRetry-After: 99999999999999999999"},
    {"/page-hex", "503 Out\r\nRetry-After: 0x10"},
};

static void answer_later(struct origin_answer *a, const char *path)
{
    char answer[256];
    for (size_t i = 0; i < sizeof(first_answers) / sizeof(*first_answers); i++) {
        if (strcmp(path, first_answers[i][0]) != 0)
            continue;
        snprintf(answer, sizeof(answer), "HTTP/1.1 %s\r\nContent-Length: 0\r\n\r\n",
                 first_answers[i][1]);
        if (requested_page++ == 0)
            origin_puts(a, answer);
        else
            good_page(a);
        return;
    }
    not_found(a);
}

static void answer_never_now(struct origin_answer *a, const char *path)
{
    requested_page += strcmp(path, "/") == 0;
    origin_puts(a, "HTTP/1.1 503 Out\r\nRetry-After: 0\r\nContent-Length: 0\r\n\r\n");
}

/* path, code, number of requests for the page, minimum duration */
static const struct {
    const char *path, *code;
    unsigned times, least_ms;
} retries[] = {
    {"/page-429", "", 2, 1000},         {"/page-date", "", 2, 0},
    {"/page-hour", "http_error", 1, 0}, {"/page-plain", "http_error", 1, 0},
    {"/page-500", "http_error", 1, 0},  {"/page-soon", "http_error", 1, 0},
    {"/page-less", "http_error", 1, 0}, {"/page-much", "http_error", 1, 0},
    {"/page-hex", "http_error", 1, 0},
};

START_TEST(a_retry_after_header_is_obeyed)
{
    open_with_timeout(answer_later, 8000);
    uint64_t began = clock_mono_ms();
    grade_path(retries[_i].path);
    uint64_t took = clock_mono_ms() - began;
    ck_assert_msg(strcmp(got.code, retries[_i].code) == 0, "%s: %s", retries[_i].path, got.code);
    ck_assert_uint_eq(requested_page, retries[_i].times);
    ck_assert_uint_ge(took, retries[_i].least_ms);
    ck_assert_uint_lt(took, 7000);
    close_all();
}
END_TEST

START_TEST(a_retry_after_header_is_obeyed_once)
{
    open_with_timeout(answer_never_now, 8000);
    grade_path("/");
    ck_assert_str_eq(got.code, "http_error");
    ck_assert_uint_eq(requested_page, 2);
    close_all();
}
END_TEST

/* ---- one deadline ---- */

static void answer_page_then_hang(struct origin_answer *a, const char *path)
{
    if (strcmp(path, "/") == 0)
        good_page(a);
    else
        origin_hold(a);
}

static void answer_slow_hops(struct origin_answer *a, const char *path)
{
    char hop[64];
    poll(NULL, 0, 400);
    snprintf(hop, sizeof(hop), "HTTP/1.1 302 On\r\nLocation: /%d\r\nContent-Length: 0\r\n\r\n",
             atoi(path + 1) + 1);
    origin_puts(a, hop);
}

static void answer_drip(struct origin_answer *a, const char *path)
{
    (void)path;
    origin_puts(a,
                "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nTransfer-Encoding: chunked\r\n\r\n");
    for (unsigned i = 0; i < 2000 && origin_puts(a, "20\r\n<p>drip drip drip drip drip drip\r\n");
         i++)
        poll(NULL, 0, 20);
}

static void answer_head_drip(struct origin_answer *a, const char *path)
{
    (void)path;
    for (unsigned i = 0; i < 2000 && origin_puts(a, i == 0 ? "HTTP/1.1 200 OK\r\n" : "X"); i++)
        poll(NULL, 0, 20);
}

static const struct {
    origin_fn *answer;
    const char *code;
} slow[] = {{answer_page_then_hang, ""},
            {answer_slow_hops, "timeout"},
            {answer_drip, "timeout"},
            {answer_head_drip, "timeout"}};

START_TEST(a_page_its_redirects_and_probes_share_one_deadline)
{
    open_with_timeout(slow[_i].answer, 1000);
    uint64_t began = clock_mono_ms();
    grade_path("/");
    uint64_t took = clock_mono_ms() - began;
    ck_assert_str_eq(got.code, slow[_i].code);
    ck_assert_uint_ge(took, 900);
    ck_assert_uint_lt(took, 1800);
    close_all();
}
END_TEST

/* ---- withdrawn pages ---- */

static void answer_hang(struct origin_answer *a, const char *path)
{
    (void)path;
    origin_hold(a);
}

static bool none_active(void)
{
    return origin_active(origin) == 0;
}

static bool one_active(void)
{
    return origin_active(origin) == 1;
}

START_TEST(a_withdrawn_page_releases_its_host_at_once_and_ends_within_a_second)
{
    struct host_slots *p = shared_slots();
    int mine;
    open_with_timeout(answer_hang, 20000);
    audit_share_host_slots(audit, p);
    uint64_t began = clock_mono_ms();
    audit_add(audit, 1, str_of(origin_url(origin, "/")), keep, &mine);
    ck_assert(go_on_until(one_active, 5000));
    audit_withdraw(audit, &mine);
    ck_assert(host_slots_take(p, "127.0.0.1", 1) && host_slots_take(p, "127.0.0.1", 1));
    ck_assert(go_on_until(none_active, 5000));
    ck_assert(go_on_until(is_over, 5000));
    ck_assert_uint_ge(clock_mono_ms() - began, 1000);
    ck_assert_uint_lt(clock_mono_ms() - began, 5000);
    ck_assert_uint_eq(got.withdrawn, 1);
    ck_assert_uint_eq(got.failed, 0);
    ck_assert_uint_eq(audit_pending(audit), 0);
    close_all();
}
END_TEST

START_TEST(a_page_withdrawn_while_others_of_its_host_are_graded_never_begins)
{
    int ids[3];
    open_with_timeout(answer_hang, 20000);
    for (int i = 0; i < 3; i++)
        audit_add(audit, (uint64_t)i, str_of(origin_url(origin, "/")), keep, &ids[i]);
    ck_assert_int_eq(audit_wait(audit, NULL, 0, 10), 0);
    audit_withdraw(audit, &ids[2]);
    ck_assert(go_on_until(is_over, 500));
    ck_assert_uint_eq(got.withdrawn, 1);
    ck_assert_uint_eq(audit_pending(audit), 2);
    close_all();
}
END_TEST

static void answer_page_and_hang(struct origin_answer *a, const char *path)
{
    if (strcmp(path, "/") == 0)
        good_page(a);
    else
        origin_hold(a);
}

static bool probes_active(void)
{
    return origin_active(origin) == 2;
}

START_TEST(a_page_withdrawn_while_its_probes_run_is_not_graded)
{
    int mine;
    open_with_timeout(answer_page_and_hang, 20000);
    audit_add(audit, 1, str_of(origin_url(origin, "/")), keep, &mine);
    ck_assert(go_on_until(probes_active, 5000));
    audit_withdraw(audit, &mine);
    ck_assert(go_on_until(none_active, 5000));
    ck_assert(go_on_until(is_over, 5000));
    ck_assert_uint_eq(got.calls, 1);
    ck_assert_uint_eq(got.withdrawn, 1);
    close_all();
}
END_TEST

int main(void)
{
    suite_processes(3);
    Suite *s = suite_create("audit_manners");
    TCase *t = tcase_create("manners");
    tcase_set_timeout(t, 60);
    tcase_add_test(t, every_request_names_the_agent_and_its_url);
    tcase_add_loop_test(t, a_retry_after_header_is_obeyed, 0, sizeof(retries) / sizeof(*retries));
    tcase_add_test(t, a_retry_after_header_is_obeyed_once);
    tcase_add_loop_test(t, a_page_its_redirects_and_probes_share_one_deadline, 0,
                        sizeof(slow) / sizeof(*slow));
    tcase_add_test(t, a_withdrawn_page_releases_its_host_at_once_and_ends_within_a_second);
    tcase_add_test(t, a_page_withdrawn_while_others_of_its_host_are_graded_never_begins);
    tcase_add_test(t, a_page_withdrawn_while_its_probes_run_is_not_graded);
    suite_add_tcase(s, t);
    return suite_run(s);
}
