/*
 * Slots of hosts: each host has two, for all auditors of a server, and in a cluster for all nodes.
 * A page waits for one before it connects.
 */
#include "core/shm/host_slots.h"
#include "t/kit/audit_loopback.h"
#include "t/kit/suite.h"
#include "core/shm/scoreboard.h"

#include <check.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- slots of one server ---- */

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

int main(void)
{
    suite_processes(3);
    Suite *s = suite_create("audit_slots");
    TCase *t = tcase_create("slots");
    tcase_set_timeout(t, 60);
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
    suite_add_tcase(s, t);
    return suite_run(s);
}
