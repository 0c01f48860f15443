/*
 * The log of a cluster in PostgreSQL behind a network that loses connections and packets, with
 * leaders that race, and with servers that stop, refuse or are not what they should be.
 */
#include "t/cluster/log_node.h"
#include "t/kit/fault_proxy.h"
#include "t/kit/suite.h"
#include "t/kit/supervisor.h"
#include "t/kit/wait.h"

#include <stdio.h>
#include <sys/mman.h>

static struct postgres *server;
static struct fault_proxy *proxy;
static struct log_node a; /* by the proxy */

static void setup(void)
{
    server = postgres_new();
    proxy = fault_proxy_new(server->port);
    log_make(server);
    a = log_node(1, postgres_conninfo(fault_proxy_port(proxy), 0));
}

static void teardown(void)
{
    log_node_free(&a);
    fault_proxy_free(proxy);
    postgres_free(server);
}

static void sql(const char *statement)
{
    free(postgres_query(server, "%s", statement));
}

/* ---- an append whose outcome is unknown ---- */

static const struct str marked = STR("an entry that the proxy knows");

static const struct {
    enum fault_when when;
    bool pends; /* another session holds the row of assay_cluster meanwhile */
} cuts[] = {{CUT_BEFORE, false}, {CUT_BEHIND, false}, {CUT_ANSWER, false}, {CUT_BEHIND, true}};

/* In a process of its own. */
static pid_t hold_row(int seconds)
{
    pid_t pid = fork();
    if (pid == 0) {
        free(postgres_query(
            server, "BEGIN; SELECT FROM assay_cluster FOR UPDATE; SELECT pg_sleep(%d)", seconds));
        _exit(0);
    }
    char *held = NULL;
    while (held == NULL) {
        held = postgres_query(server, "SELECT 'yes' FROM pg_locks l JOIN pg_stat_activity a"
                                      " USING (pid) WHERE l.relation = 'assay_cluster'::regclass"
                                      " AND a.wait_event = 'PgSleep'");
    }
    free(held);
    return pid;
}

START_TEST(a_lost_append_is_in_the_log_once)
{
    log_must_lead(&a);
    log_must_append(&a, "before");
    const struct cluster_log_entry e = log_entry(&a, marked);
    pid_t holder = cuts[_i].pends ? hold_row(1) : 0;
    fault_proxy_cut_at(proxy, marked.p, marked.n, cuts[_i].when);
    ck_assert_int_eq(log_append(&a, &e), CLUSTER_LOG_UNKNOWN);
    ck_assert_uint_eq(fault_proxy_cuts(proxy), 1);
    log_settle(&a, &e);
    log_must_append(&a, "after");
    ck_assert_uint_eq(log_check(server), 3);
    if (holder != 0)
        ck_assert_int_eq(waitpid(holder, NULL, 0), holder);
}
END_TEST

START_TEST(an_append_that_is_cut_anywhere_is_in_the_log_once)
{
    char rows[3000];
    memset(rows, 'r', sizeof(rows));
    log_must_lead(&a);
    for (size_t at = 1; at < 3600; at += 257) {
        enum fault_side side = at % 2 ? TO_SERVER : TO_CLIENT;
        const struct cluster_log_entry e = log_entry(&a, (struct str){rows, sizeof(rows)});
        fault_proxy_cut_after(proxy, side, side == TO_SERVER ? at : 1 + at % 60);
        enum cluster_log_status status = log_append(&a, &e);
        ck_assert_int_ne(status, CLUSTER_LOG_LED);
        fault_proxy_pass(proxy);
        if (status != CLUSTER_LOG_OK)
            log_settle(&a, &e);
        ck_assert_uint_eq(log_check(server), e.sequence);
    }
}
END_TEST

/* ---- two leaders ---- */

enum { RACERS = 2, RACE_MS = 4000, MOST = 60000 };

struct race {
    size_t count[RACERS];
    struct store_position acknowledged[RACERS][MOST];
};

/* Both have the same id, and so each takes the lead from the other at once. */
static void take_part(struct race *race, int i)
{
    struct log_node n = log_node_at(1, server);
    const int64_t until = now_ms() + RACE_MS;
    char rows[64];
    for (unsigned turn = 0; now_ms() < until; turn++) {
        enum cluster_log_status status = log_lead(&n, CLUSTER_LOG_LEASE_MS);
        while (status == CLUSTER_LOG_OK && race->count[i] < MOST && now_ms() < until) {
            snprintf(rows, sizeof(rows), "racer %d turn %u", i, turn);
            const struct cluster_log_entry e = log_entry(&n, (struct str){rows, strlen(rows)});
            status = log_append(&n, &e);
            if (status != CLUSTER_LOG_OK)
                break;
            struct store_position *p = &race->acknowledged[i][race->count[i]++];
            p->sequence = e.sequence;
            memcpy(p->chain, e.chain, sizeof(e.chain));
            if (turn % 3 == 0)
                usleep(1000);
        }
    }
    log_node_free(&n);
}

static void expect_in_log(const struct store_position *p, uint8_t *seen)
{
    ck_assert_msg(!seen[p->sequence], "two have entry %llu", (unsigned long long)p->sequence);
    seen[p->sequence] = 1;
    char chain[2 * STORE_CHAIN_BYTES + 1];
    for (size_t i = 0; i < STORE_CHAIN_BYTES; i++)
        snprintf(chain + 2 * i, 3, "%02x", p->chain[i]);
    if (p->sequence % 16 != 0) /* log_check has compared the chain of them all */
        return;
    char *got =
        postgres_query(server, "SELECT encode(chain, 'hex') FROM assay_log WHERE seq = %llu",
                       (unsigned long long)p->sequence);
    ck_assert_ptr_nonnull(got);
    ck_assert_str_eq(got, chain);
    free(got);
}

START_TEST(leaders_that_race_append_each_entry_once)
{
    struct race *race =
        mmap(NULL, sizeof(*race), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    static uint8_t seen[RACERS * MOST];
    for (int i = 0; i < RACERS; i++)
        if (fork() == 0) {
            take_part(race, i);
            _exit(0);
        }
    for (int i = 0; i < RACERS; i++)
        ck_assert_int_gt(wait(NULL), 0);
    size_t entries = log_check(server);
    ck_assert_uint_eq(entries, race->count[0] + race->count[1]);
    for (int i = 0; i < RACERS; i++) {
        ck_assert_uint_gt(race->count[i], 20);
        for (size_t k = 0; k < race->count[i]; k++)
            expect_in_log(&race->acknowledged[i][k], seen);
    }
    char *epoch = postgres_query(server, "SELECT epoch FROM assay_cluster");
    ck_assert_int_gt(atoi(epoch), 20);
    free(epoch);
    munmap(race, sizeof(*race));
}
END_TEST

/* ---- deadlines ---- */

static bool keep(void *arg, const struct cluster_log_entry *e)
{
    (void)arg;
    (void)e;
    return true;
}

static void ignore_node(void *arg, const struct cluster_log_node *n)
{
    (void)arg;
    (void)n;
}

static void ignore_warning(void *arg, const char *sentence)
{
    (void)arg;
    (void)sentence;
}

static enum cluster_log_status call_lead(void)
{
    return log_lead(&a, CLUSTER_LOG_LEASE_MS);
}

static enum cluster_log_status call_append(void)
{
    static char rows[12 << 20];
    const struct cluster_log_entry e = log_entry(&a, (struct str){rows, sizeof(rows)});
    return log_append(&a, &e);
}

static enum cluster_log_status call_read(void)
{
    return a.engine->read(a.log, 0, keep, NULL);
}

static enum cluster_log_status call_position(void)
{
    const struct cluster_log_node node = {.id = {1}};
    struct cluster_log_head head;
    return a.engine->position(a.log, &node, &head);
}

static enum cluster_log_status call_chain(void)
{
    uint8_t chain[STORE_CHAIN_BYTES];
    return a.engine->chain(a.log, 1, chain);
}

static enum cluster_log_status call_trim(void)
{
    return a.engine->trim(a.log, 1, INT64_MAX);
}

static enum cluster_log_status call_make(void)
{
    return log_made(&a, 2, true);
}

static enum cluster_log_status call_nodes(void)
{
    return a.engine->nodes(a.log, ignore_node, NULL);
}

static enum cluster_log_status call_warnings(void)
{
    return a.engine->warnings(a.log, ignore_warning, NULL);
}

static enum cluster_log_status (*const calls[])(void) = {
    call_lead, call_append, call_read,  call_position, call_chain,
    call_trim, call_make,   call_nodes, call_warnings,
};

static void expect_away(enum cluster_log_status (*call)(void))
{
    const int64_t before = now_ms();
    enum cluster_log_status status = call();
    ck_assert_int_lt(now_ms() - before, CLUSTER_LOG_CALL_MS + A_LITTLE_MS);
    ck_assert_msg(status == CLUSTER_LOG_AWAY || status == CLUSTER_LOG_UNKNOWN, "status %d", status);
    ck_assert_str_ne(a.engine->why(a.log), "");
}

START_TEST(each_call_ends_in_time_when_packets_are_lost)
{
    log_must_lead(&a);
    fault_proxy_drop(proxy);
    expect_away(calls[_i]);
    expect_away(calls[_i]); /* and while it connects */
    fault_proxy_pass(proxy);
    ck_assert_int_eq(call_position(), CLUSTER_LOG_OK);
}
END_TEST

START_TEST(a_server_that_answers_slowly_is_no_failure)
{
    fault_proxy_delay(proxy, TO_CLIENT, 150);
    log_must_lead(&a);
    log_must_append(&a, "slowly");
    ck_assert_int_eq(call_position(), CLUSTER_LOG_OK);
}
END_TEST

/* A host that is gone without a word comes first in the list. */
START_TEST(the_next_host_is_tried_when_one_hangs)
{
    struct log_node n = log_node(2, postgres_conninfo(fault_proxy_port(proxy), server->port));
    log_must_lead(&a);
    ck_assert_int_eq(log_renew(&a, 0), CLUSTER_LOG_OK);
    fault_proxy_drop(proxy);
    const int64_t before = now_ms();
    log_must_lead(&n);
    ck_assert_int_lt(now_ms() - before, 6 * A_LITTLE_MS);
    log_must_append(&n, "by the second host");
    log_node_free(&n);
}
END_TEST

/* ---- a backend that stops ---- */

static bool one_session_is_left(void *arg)
{
    char *count = postgres_query(arg, "SELECT count(*) FROM pg_stat_activity"
                                      " WHERE application_name = 'assay node1'");
    bool one = !strcmp(count, "1");
    free(count);
    return one;
}

/* It has the statement, and executes it when another backend has appended the entry. */
START_TEST(a_stopped_backend_appends_nothing_twice)
{
    log_must_lead(&a);
    log_must_append(&a, "before");
    const struct cluster_log_entry e = log_entry(&a, marked);
    pid_t pid = postgres_pause_backend(server, "assay node1");
    const int64_t began = now_ms();
    ck_assert_int_eq(log_append(&a, &e), CLUSTER_LOG_UNKNOWN);
    ck_assert_int_ge(now_ms() - began, CLUSTER_LOG_CALL_MS - 10);
    ck_assert_int_lt(now_ms() - began, CLUSTER_LOG_CALL_MS + A_LITTLE_MS);
    log_settle(&a, &e);
    log_must_append(&a, "after");
    kill(pid, SIGCONT);
    ck_assert(wait_until(one_session_is_left, server, WITHIN_MS));
    ck_assert_uint_eq(log_check(server), 3);
    log_must_append(&a, "goes on");
}
END_TEST

/* It resumes when another node leads. */
START_TEST(a_stopped_backend_appends_nothing_under_another_leader)
{
    struct log_node b = log_node_at(2, server);
    log_must_lead(&a);
    log_must_append(&a, "before");
    const struct cluster_log_entry e = log_entry(&a, marked);
    pid_t pid = postgres_pause_backend(server, "assay node1");
    ck_assert_int_eq(log_append(&a, &e), CLUSTER_LOG_UNKNOWN);
    sql("UPDATE assay_cluster SET lease_until = 'epoch'");
    log_must_lead(&b);
    kill(pid, SIGCONT);
    ck_assert_int_eq(log_renew(&a, CLUSTER_LOG_LEASE_MS), CLUSTER_LOG_LED);
    ck_assert(wait_until(one_session_is_left, server, WITHIN_MS));
    ck_assert_uint_eq(log_check(server), 1);
    log_must_append(&b, "of the new leader");
    ck_assert_uint_eq(log_check(server), 2);
    log_node_free(&b);
}
END_TEST

/* How the wait of an append for the row ends, and what it then says. */
static const struct {
    const char *sql;
    enum cluster_log_status status;
    const char *why;
} waits[] = {
    {"SELECT", CLUSTER_LOG_AWAY, "lock timeout"},
    {"SELECT pg_cancel_backend(pid)", CLUSTER_LOG_AWAY, "user request"},
    {"SELECT pg_terminate_backend(pid)", CLUSTER_LOG_UNKNOWN, "administrator command"},
};

static bool has_ended_wait(void *arg)
{
    char *pid = postgres_query(server, "%s FROM pg_stat_activity WHERE wait_event_type = 'Lock'",
                               (const char *)arg);
    bool ended = pid != NULL;
    free(pid);
    return ended;
}

/* As behind a commit that waits for its standby. */
START_TEST(an_append_behind_a_lock_appended_nothing)
{
    log_must_lead(&a);
    const struct cluster_log_entry e = log_entry(&a, marked);
    pid_t holder = hold_row(60), other = fork();
    if (other == 0)
        _exit(_i > 0 && !wait_until(has_ended_wait, (void *)waits[_i].sql, WITHIN_MS));
    ck_assert_int_eq(log_append(&a, &e), waits[_i].status);
    log_expect_why(&a, waits[_i].why);
    sql("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE wait_event = 'PgSleep'");
    ck_assert_int_eq(waitpid(holder, NULL, 0), holder);
    ck_assert_int_eq(waitpid(other, NULL, 0), other);
    ck_assert_uint_eq(log_check(server), 0);
    log_settle(&a, &e);
    ck_assert_uint_eq(log_check(server), 1);
}
END_TEST

/* ---- what is wrong is said ---- */

static void deny(void)
{
    sql("ALTER TABLE assay_cluster OWNER TO postgres");
}

static void admit_all(const char *method)
{
    char *path = text("%s/data/pg_hba.conf", server->supervisor->dir);
    FILE *file = fopen(path, "w");
    ck_assert_ptr_nonnull(file);
    fprintf(file, "local all all trust\nhost all all 127.0.0.1/32 %s\n", method);
    ck_assert_int_eq(fclose(file), 0);
    free(path);
    postgres_set(server, "log_checkpoints", "off"); /* loads the file */
}

static void need_password(void)
{
    sql("ALTER ROLE assay PASSWORD 'right'");
    admit_all("scram-sha-256");
}

static void need_none(void)
{
    admit_all("trust");
}

static void drop_tables(void)
{
    sql("DROP TABLE assay_cluster, assay_log, assay_node");
}

static void read_only(void)
{
    postgres_set(server, "default_transaction_read_only", "on");
}

static void change_nothing(void)
{
}

static const struct {
    void (*prepare)(void);
    const char *more; /* in the connection string */
    enum cluster_log_status status;
    const char *why;
} mistakes[] = {
    {need_password, "password=wrong", CLUSTER_LOG_AWAY,
     "password authentication failed for user \"assay\""},
    {need_none, "dbname=nowhere", CLUSTER_LOG_AWAY, "database \"nowhere\" does not exist"},
    {need_none, "user=nobody", CLUSTER_LOG_AWAY, "role \"nobody\" does not exist"},
    {change_nothing, "port=1", CLUSTER_LOG_AWAY, "Connection refused"},
    {change_nothing, "sslmode=require", CLUSTER_LOG_AWAY, "server does not support SSL"},
    {change_nothing, "pasword=x", CLUSTER_LOG_AWAY, "invalid connection option \"pasword\""},
    {drop_tables, "", CLUSTER_LOG_NONE, "relation \"assay_cluster\" does not exist"},
    {read_only, "", CLUSTER_LOG_AWAY, "session is read-only"},
    {read_only, "target_session_attrs=any", CLUSTER_LOG_AWAY, "read-only transaction"},
    {deny, "", CLUSTER_LOG_REFUSED, "permission denied for table assay_cluster"},
};

START_TEST(a_mistake_is_named)
{
    mistakes[_i].prepare();
    char *source = postgres_conninfo(server->port, 0);
    struct log_node n = log_node(2, text("%s %s", source, mistakes[_i].more));
    for (int i = 0; i < 2; i++) {
        enum cluster_log_status status = log_lead(&n, CLUSTER_LOG_LEASE_MS);
        log_expect_why(&n, mistakes[_i].why);
        ck_assert_int_eq(status, mistakes[_i].status);
        ck_assert_ptr_null(strchr(n.engine->why(n.log), '\n'));
    }
    log_node_free(&n);
    free(source);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_loop_test(tcase, each_call_ends_in_time_when_packets_are_lost, 0,
                        sizeof(calls) / sizeof(*calls));
    tcase_add_loop_test(tcase, a_lost_append_is_in_the_log_once, 0, sizeof(cuts) / sizeof(*cuts));
    tcase_add_test(tcase, an_append_that_is_cut_anywhere_is_in_the_log_once);
    tcase_add_test(tcase, leaders_that_race_append_each_entry_once);
    tcase_add_test(tcase, a_server_that_answers_slowly_is_no_failure);
    tcase_add_test(tcase, the_next_host_is_tried_when_one_hangs);
    tcase_add_test(tcase, a_stopped_backend_appends_nothing_twice);
    tcase_add_test(tcase, a_stopped_backend_appends_nothing_under_another_leader);
    tcase_add_loop_test(tcase, an_append_behind_a_lock_appended_nothing, 0,
                        sizeof(waits) / sizeof(*waits));
    tcase_add_loop_test(tcase, a_mistake_is_named, 0, sizeof(mistakes) / sizeof(*mistakes));
}

int main(void)
{
    if (postgres_missing()) {
        puts(postgres_missing());
        return SUITE_SKIPPED;
    }
    suite_processes(3);
    Suite *suite = suite_create("log_lost");
    TCase *tcase = tcase_create("log_lost");
    suite_add_tcase(suite, tcase);
    tcase_set_timeout(tcase, 90);
    tcase_add_checked_fixture(tcase, setup, teardown);
    add_tests(tcase);
    return suite_run(suite);
}
