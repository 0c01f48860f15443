/* How grading treats hosts: user agent, number of connections, pauses, and when it stops. */
#include "core/shm/host_slots.h"
#include "t/kit/audit_loopback.h"
#include "t/kit/suite.h"
#include "core/shm/scoreboard.h"

#include <check.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

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

/* ---- per-host slots ---- */

static struct host_slots *shared_slots(void)
{
    struct host_slots *p =
        mmap(NULL, sizeof(*p), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ck_assert_ptr_ne(p, MAP_FAILED);
    host_slots_init(p);
    return p;
}

START_TEST(each_host_has_two_slots)
{
    struct host_slots *p = shared_slots();
    ck_assert(host_slots_take(p, "example.com", 11));
    ck_assert(host_slots_take(p, "example.com", 12));
    ck_assert(!host_slots_take(p, "example.com", 11));
    ck_assert(host_slots_take(p, "example.org", 11));
    host_slots_release(p, "example.com", 12);
    ck_assert(host_slots_take(p, "example.com", 13));
    host_slots_release(p, "example.com", 99); /* a process without a slot releases none */
    ck_assert(!host_slots_take(p, "example.com", 11));
    host_slots_release_all(p, 11);
    ck_assert(host_slots_take(p, "example.com", 12));
    ck_assert(host_slots_take(p, "example.org", 12));
    ck_assert(host_slots_take(p, "example.org", 12));
    host_slots_release_all(p, 0);
    ck_assert(!host_slots_take(p, "example.org", 12));
}
END_TEST

#define TAKERS 4
#define ROUNDS 20000

/*
 * Each process counts itself while it holds a slot. A count above two means that a slot was given
 * twice.
 */
START_TEST(two_slots_are_never_three_when_holders_die)
{
    struct host_slots *p = shared_slots();
    _Atomic int *state =
        mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pid_t takers[TAKERS];
    ck_assert_ptr_ne(state, MAP_FAILED);
    for (int i = 0; i < TAKERS; i++) {
        takers[i] = fork();
        if (takers[i] == 0) {
            for (int round = 0; round < ROUNDS; round++) {
                if (!host_slots_take(p, "example.com", getpid()))
                    continue;
                if (atomic_fetch_add(&state[0], 1) >= HOST_SLOTS_PER_HOST)
                    state[1] = 1;
                atomic_fetch_sub(&state[0], 1);
                host_slots_release(p, "example.com", getpid());
            }
            while (!host_slots_take(p, "example.com", getpid()))
                ;
            raise(SIGKILL); /* while it holds a slot */
        }
        ck_assert_int_gt(takers[i], 0);
    }
    for (int i = 0; i < TAKERS; i++) {
        pid_t died = waitpid(-1, NULL, 0);
        ck_assert_int_gt(died, 0);
        host_slots_release_all(p, died);
    }
    ck_assert_int_eq(state[1], 0);
    ck_assert(host_slots_take(p, "example.com", 1));
    ck_assert(host_slots_take(p, "example.com", 1));
    ck_assert(!host_slots_take(p, "example.com", 1));
}
END_TEST

START_TEST(the_master_frees_slots_of_a_dead_auditor)
{
    char path[] = "/tmp/assay-places-XXXXXX";
    int fd = mkstemp(path);
    ck_assert_int_ge(fd, 0);
    close(fd);
    struct scoreboard *sb = scoreboard_create(path);
    ck_assert_ptr_nonnull(sb);
    struct score *slot = scoreboard_claim(sb, ROLE_AUDITOR, 0, 0, 1);
    score_set(sb->auditor_pid[slot - sb->auditor_slot], 4711);
    ck_assert(host_slots_take(&sb->host_slots, "example.com", 4711));
    ck_assert(host_slots_take(&sb->host_slots, "example.com", 4712));
    scoreboard_release(sb, slot);
    ck_assert(host_slots_take(&sb->host_slots, "example.com", 4713));
    ck_assert(!host_slots_take(&sb->host_slots, "example.com", 4713));
    scoreboard_close(sb);
    unlink(path);
}
END_TEST

static void answer_good(struct origin_answer *a, const char *path)
{
    if (strcmp(path, "/") == 0)
        good_page(a);
    else
        not_found(a);
}

START_TEST(a_page_waits_for_a_slot_of_another_auditor)
{
    struct host_slots *p = shared_slots();
    open_with_timeout(answer_good, 20000);
    audit_share_host_slots(audit, p);
    ck_assert(host_slots_take(p, "127.0.0.1", 1) && host_slots_take(p, "127.0.0.1", 1));
    audit_add(audit, 1, str_of(origin_url(origin, "/")), keep, NULL);
    for (int i = 0; i < 20; i++)
        ck_assert_int_eq(audit_wait(audit, NULL, 0, 10), 0);
    ck_assert_uint_eq(origin_count(origin), 0);
    host_slots_release(p, "127.0.0.1", 1);
    run();
    ck_assert_uint_eq(got.failed, 0);
    ck_assert_uint_eq(origin_most_active(origin), 1);
    /* and releases its slot */
    ck_assert(host_slots_take(p, "127.0.0.1", 1));
    close_all();
}
END_TEST

START_TEST(a_page_waits_for_a_slot_with_a_deadline)
{
    struct host_slots *p = shared_slots();
    open_with_timeout(answer_good, 500);
    audit_share_host_slots(audit, p);
    ck_assert(host_slots_take(p, "127.0.0.1", 1) && host_slots_take(p, "127.0.0.1", 1));
    uint64_t began = clock_mono_ms();
    grade_path("/");
    ck_assert_str_eq(got.code, "timeout");
    ck_assert_uint_lt(clock_mono_ms() - began, 1500);
    ck_assert_uint_eq(origin_count(origin), 0);
    close_all();
}
END_TEST

static void answer_hop_to_other_name(struct origin_answer *a, const char *path)
{
    char hop[128];
    if (strcmp(path, "/hop") == 0) {
        snprintf(hop, sizeof(hop),
                 "HTTP/1.1 302 On\r\nLocation: http://127.0.0.2:%u/\r\nContent-Length: 0\r\n\r\n",
                 origin_port(origin));
        origin_puts(a, hop);
    } else if (strcmp(path, "/") == 0) {
        good_page(a);
    } else {
        not_found(a);
    }
}

START_TEST(a_redirect_takes_a_slot_of_its_target)
{
    struct host_slots *p = shared_slots();
    open_with_timeout(answer_hop_to_other_name, 500);
    audit_share_host_slots(audit, p);
    ck_assert(host_slots_take(p, "127.0.0.2", 1) && host_slots_take(p, "127.0.0.2", 1));
    grade_path("/hop");
    ck_assert_str_eq(got.code, "timeout");
    ck_assert_uint_eq(origin_count(origin), 1);
    /* its first host has no slot of it */
    ck_assert(host_slots_take(p, "127.0.0.1", 1) && host_slots_take(p, "127.0.0.1", 1));
    close_all();
}
END_TEST

static void answer_hop_to_address(struct origin_answer *a, const char *path)
{
    char hop[128];
    snprintf(hop, sizeof(hop),
             "HTTP/1.1 302 On\r\nLocation: http://127.0.0.1:%u/\r\nContent-Length: 0\r\n\r\n",
             origin_port(origin));
    if (strcmp(path, "/hop") == 0)
        origin_puts(a, hop);
    else
        answer_good(a, path);
}

static void add_at(const char *host, const char *path)
{
    char url[128];
    snprintf(url, sizeof(url), "http://%s:%u%s", host, origin_port(origin), path);
    audit_add(audit, 1, str_of(url), keep, NULL);
}

START_TEST(redirects_to_a_host_leave_a_slot_for_its_pages)
{
    struct host_slots *p = shared_slots();
    open_with_timeout(answer_hop_to_address, 3000);
    audit_share_host_slots(audit, p);
    ck_assert(host_slots_take_redirected(p, "127.0.0.1",
                                         4711)); /* another auditor's page, redirected there */
    ck_assert(!host_slots_take_redirected(p, "127.0.0.1", 4711));
    add_at("localhost", "/hop");
    for (int i = 0; i < 30; i++)
        ck_assert_int_eq(audit_wait(audit, NULL, 0, 10), 0);
    ck_assert_uint_eq(origin_count(origin), 1);
    add_at("127.0.0.1", "/");
    while (got.calls == 0)
        ck_assert_int_eq(audit_wait(audit, NULL, 0, 10), 0);
    ck_assert_uint_eq(got.failed, 0);
    host_slots_release(p, "127.0.0.1", 4711);
    run();
    ck_assert_uint_eq(got.calls, 2);
    ck_assert_uint_eq(got.failed, 0);
    close_all();
}
END_TEST

/* ---- slots of a cluster ---- */

static bool is_over(void)
{
    return got.calls > 0;
}

/* False: not within ${ms}. */
static bool go_on_until(bool (*holds)(void), uint64_t ms)
{
    uint64_t until = clock_mono_ms() + ms;
    while (!holds() && clock_mono_ms() < until)
        ck_assert_int_eq(audit_wait(audit, NULL, 0, 10), 0);
    return holds();
}

static struct {
    uint64_t numbers[64]; /* of all questions */
    char host[64];        /* of the last one */
    bool redirected;
    unsigned asked, answered, taken, freed;
} cluster;

static void note_question(void *arg, uint64_t number, bool redirected, const char *host)
{
    (void)arg;
    ck_assert_uint_lt(cluster.asked, 64);
    cluster.numbers[cluster.asked++] = number;
    cluster.redirected = redirected;
    snprintf(cluster.host, sizeof(cluster.host), "%s", host);
}

static void note_freed(void *arg, struct str host)
{
    (void)arg;
    ck_assert(str_eq(host, str_of(cluster.host)));
    cluster.freed++;
}

static const struct audit_slot_asker asker = {note_question, note_freed, NULL};

static void answer_question(bool taken)
{
    uint64_t number = cluster.numbers[cluster.answered++];
    cluster.taken += taken;
    audit_host_slot_answered(audit, number, taken, str_of(cluster.host));
}

static bool is_asked(void)
{
    return cluster.answered < cluster.asked;
}

static void open_in_cluster(origin_fn *answer)
{
    open_with_timeout(answer, 5000);
    audit_ask_for_host_slots(audit, &asker);
}

START_TEST(each_connection_waits_for_a_slot_of_the_cluster)
{
    open_in_cluster(answer_good);
    audit_add(audit, 1, str_of(origin_url(origin, "/")), keep, NULL);
    while (got.calls == 0) {
        ck_assert(go_on_until(is_asked, 5000));
        ck_assert_str_eq(cluster.host, "127.0.0.1");
        ck_assert(!cluster.redirected);
        ck_assert_uint_le(origin_count(origin), cluster.taken);
        answer_question(true);
        while (!is_asked() && got.calls == 0)
            ck_assert_int_eq(audit_wait(audit, NULL, 0, 10), 0);
    }
    ck_assert_uint_eq(got.failed, 0);
    ck_assert_uint_eq(origin_count(origin), cluster.taken);
    ck_assert_uint_eq(cluster.freed, cluster.taken);
    close_all();
}
END_TEST

START_TEST(a_page_asks_again_when_the_cluster_has_no_slot)
{
    open_in_cluster(answer_good);
    audit_add(audit, 1, str_of(origin_url(origin, "/")), keep, NULL);
    for (unsigned i = 0; i < 3; i++) {
        ck_assert(go_on_until(is_asked, 5000));
        answer_question(false);
        ck_assert_int_eq(audit_wait(audit, NULL, 0, 0), 0);
        ck_assert(!is_asked()); /* not at once */
    }
    ck_assert_uint_eq(origin_count(origin), 0);
    ck_assert(go_on_until(is_asked, 5000));
    ck_assert_uint_eq(cluster.asked, 4);
    close_all();
    ck_assert_uint_eq(cluster.freed, 0);
}
END_TEST

START_TEST(the_time_of_a_page_does_not_run_while_the_cluster_does_not_answer)
{
    open_with_timeout(answer_good, 300);
    audit_ask_for_host_slots(audit, &asker);
    audit_add(audit, 1, str_of(origin_url(origin, "/")), keep, NULL);
    ck_assert(go_on_until(is_asked, 5000));
    ck_assert(!go_on_until(is_over, 1000));
    answer_question(false); /* then it waits for the host, with its deadline */
    ck_assert(go_on_until(is_asked, 5000));
    ck_assert(!go_on_until(is_over, 1000));
    for (answer_question(true); got.calls == 0;) {
        if (is_asked())
            answer_question(true);
        ck_assert_int_eq(audit_wait(audit, NULL, 0, 10), 0);
    }
    ck_assert_str_eq(got.code, "");
    close_all();
}
END_TEST

START_TEST(a_page_that_gets_no_slot_of_the_cluster_times_out)
{
    open_with_timeout(answer_good, 300);
    audit_ask_for_host_slots(audit, &asker);
    audit_add(audit, 1, str_of(origin_url(origin, "/")), keep, NULL);
    while (got.calls == 0) {
        if (is_asked())
            answer_question(false);
        ck_assert_int_eq(audit_wait(audit, NULL, 0, 10), 0);
    }
    ck_assert_str_eq(got.code, "timeout");
    ck_assert_uint_eq(origin_count(origin), 0);
    close_all();
}
END_TEST

START_TEST(a_slot_that_comes_too_late_is_given_back)
{
    int mine;
    open_in_cluster(answer_good);
    audit_add(audit, 1, str_of(origin_url(origin, "/")), keep, &mine);
    ck_assert(go_on_until(is_asked, 5000));
    audit_withdraw(audit, &mine);
    answer_question(true);
    ck_assert_uint_eq(cluster.freed, 1);
    ck_assert(go_on_until(is_over, 5000));
    ck_assert_uint_eq(origin_count(origin), 0);
    close_all();
    ck_assert_uint_eq(cluster.freed, 1);
}
END_TEST

START_TEST(a_redirected_page_asks_for_its_target_as_redirected)
{
    open_in_cluster(answer_hop_to_other_name);
    audit_add(audit, 1, str_of(origin_url(origin, "/hop")), keep, NULL);
    ck_assert(go_on_until(is_asked, 5000));
    ck_assert_str_eq(cluster.host, "127.0.0.1");
    ck_assert(!cluster.redirected);
    answer_question(true);
    ck_assert(go_on_until(is_asked, 5000));
    ck_assert_str_eq(cluster.host, "127.0.0.2");
    ck_assert(cluster.redirected);
    ck_assert_uint_eq(cluster.freed, 1);
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
    tcase_add_test(t, each_host_has_two_slots);
    tcase_add_test(t, two_slots_are_never_three_when_holders_die);
    tcase_add_test(t, the_master_frees_slots_of_a_dead_auditor);
    tcase_add_test(t, a_page_waits_for_a_slot_of_another_auditor);
    tcase_add_test(t, a_page_waits_for_a_slot_with_a_deadline);
    tcase_add_test(t, a_redirect_takes_a_slot_of_its_target);
    tcase_add_test(t, redirects_to_a_host_leave_a_slot_for_its_pages);
    tcase_add_test(t, each_connection_waits_for_a_slot_of_the_cluster);
    tcase_add_test(t, a_page_asks_again_when_the_cluster_has_no_slot);
    tcase_add_test(t, the_time_of_a_page_does_not_run_while_the_cluster_does_not_answer);
    tcase_add_test(t, a_page_that_gets_no_slot_of_the_cluster_times_out);
    tcase_add_test(t, a_slot_that_comes_too_late_is_given_back);
    tcase_add_test(t, a_redirected_page_asks_for_its_target_as_redirected);
    tcase_add_test(t, a_withdrawn_page_releases_its_host_at_once_and_ends_within_a_second);
    tcase_add_test(t, a_page_withdrawn_while_others_of_its_host_are_graded_never_begins);
    tcase_add_test(t, a_page_withdrawn_while_its_probes_run_is_not_graded);
    suite_add_tcase(s, t);
    return suite_run(s);
}
