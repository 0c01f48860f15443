/*
 * The log of a cluster in PostgreSQL with a standby: what is acknowledged is on both, and a store
 * that has more than the promoted server applies nothing.
 */
#include "t/cluster/log_node.h"
#include "t/kit/suite.h"
#include "t/kit/supervisor.h"
#include "t/kit/wait.h"

#include <stdatomic.h>
#include <stdio.h>
#include <sys/mman.h>

static struct postgres *primary, *standby;
static struct log_node a, b; /* of whichever server accepts writes */

static void start(enum postgres_sync sync)
{
    primary = postgres_new();
    log_make(primary);
    standby = postgres_follow(primary, sync);
    a = log_node(1, postgres_conninfo(primary->port, standby->port));
    b = log_node(2, postgres_conninfo(primary->port, standby->port));
}

static void stop(void)
{
    log_node_free(&a);
    log_node_free(&b);
    postgres_free(standby);
    postgres_free(primary);
}

static bool waits_for_standby(void *arg)
{
    char *count = postgres_query(arg, "SELECT count(*) FROM pg_stat_activity"
                                      " WHERE wait_event = 'SyncRep'");
    bool waits = strcmp(count, "0") != 0;
    free(count);
    return waits;
}

static void expect_entries_of(const struct postgres *server, const char *want)
{
    char *count = postgres_query(server, "SELECT count(*) FROM assay_log");
    ck_assert_str_eq(count, want);
    free(count);
}

/* ---- a synchronous standby that is away ---- */

START_TEST(an_append_waits_for_the_standby)
{
    start(POSTGRES_SYNCHRONOUS);
    log_must_lead(&a);
    log_must_append(&a, "on both");
    expect_entries_of(standby, "1");
    const struct cluster_log_entry e = log_entry(&a, STR("on the primary alone"));
    postgres_pause(standby);
    const int64_t before = now_ms();
    ck_assert_int_eq(log_append(&a, &e), CLUSTER_LOG_UNKNOWN);
    ck_assert_int_ge(now_ms() - before, CLUSTER_LOG_CALL_MS - 10);
    ck_assert_int_lt(now_ms() - before, CLUSTER_LOG_CALL_MS + A_LITTLE_MS);
    ck_assert_int_ne(log_renew(&a, CLUSTER_LOG_LEASE_MS), CLUSTER_LOG_OK);
    expect_entries_of(primary, "1"); /* nobody sees what the standby does not have */
    postgres_resume(standby);
    log_settle(&a, &e);
    ck_assert_uint_eq(log_check(primary), 2);
    expect_entries_of(standby, "2");
    stop();
}
END_TEST

/* ---- the wait for the standby ends early ---- */

#define WAITING "pid) FROM pg_stat_activity WHERE wait_event = 'SyncRep'"

static void cancel(void)
{
    free(postgres_query(primary, "SELECT pg_cancel_backend(" WAITING));
}

static void terminate(void)
{
    free(postgres_query(primary, "SELECT pg_terminate_backend(" WAITING));
}

static void shut_down(void)
{
    postgres_stop(primary, POSTGRES_FAST);
}

static void kill_it(void)
{
    postgres_kill(primary);
}

static const struct {
    void (*end_wait)(void);
    bool restart;
    const char *setting; /* of the role */
} ends[] = {
    {cancel, false, "client_min_messages = error"},
    {cancel, false, "synchronous_commit = off"},
    {terminate, false, "client_min_messages = error"},
    {shut_down, true, "synchronous_commit = off"},
    {kill_it, true, "synchronous_commit = off"},
};

static pid_t end_the_wait(int i)
{
    pid_t pid = fork();
    if (pid == 0) {
        ck_assert(wait_until(waits_for_standby, primary, WITHIN_MS));
        ends[i].end_wait();
        _exit(0);
    }
    return pid;
}

START_TEST(an_entry_that_the_standby_does_not_have_is_not_acknowledged)
{
    start(POSTGRES_SYNCHRONOUS);
    free(postgres_query(primary, "ALTER ROLE assay SET %s", ends[_i].setting));
    log_must_lead(&a);
    log_must_append(&a, "on both");
    const struct cluster_log_entry e = log_entry(&a, STR("on the primary alone"));
    postgres_kill(standby);
    pid_t pid = end_the_wait(_i);
    ck_assert_int_eq(log_append(&a, &e), CLUSTER_LOG_UNKNOWN);
    log_expect_why(&a, _i < 2 ? "canceling wait for synchronous replication" : "");
    ck_assert_int_eq(waitpid(pid, NULL, 0), pid);
    if (ends[_i].restart)
        postgres_start(primary);
    /* the entry is visible on the primary, and its renewal waits as well */
    pid = end_the_wait(0);
    ck_assert_int_eq(log_renew(&a, CLUSTER_LOG_LEASE_MS), CLUSTER_LOG_UNKNOWN);
    ck_assert_int_eq(waitpid(pid, NULL, 0), pid);
    postgres_start(standby);
    log_settle(&a, &e);
    ck_assert_uint_eq(log_check(primary), 2);
    expect_entries_of(standby, "2");
    stop();
}
END_TEST

/* Of a trigger: any warning may be that one. */
START_TEST(a_commit_with_a_warning_is_no_acknowledgement)
{
    start(POSTGRES_SYNCHRONOUS);
    log_must_lead(&a);
    free(postgres_query(primary, "CREATE FUNCTION warn() RETURNS trigger LANGUAGE plpgsql AS"
                                 " $$BEGIN RAISE WARNING 'of a trigger'; RETURN NULL; END$$;"
                                 "CREATE TRIGGER warn AFTER INSERT ON assay_log"
                                 " FOR EACH STATEMENT EXECUTE FUNCTION warn()"));
    const struct cluster_log_entry e = log_entry(&a, STR("warned of"));
    ck_assert_int_eq(log_append(&a, &e), CLUSTER_LOG_UNKNOWN);
    log_expect_why(&a, "of a trigger");
    log_settle(&a, &e);
    ck_assert_uint_eq(log_check(primary), 1);
    stop();
}
END_TEST

/* ---- promotion ---- */

struct progress {
    _Atomic uint64_t acknowledged;
    struct store_position positions[100000];
};

static struct progress *shared_progress(void)
{
    struct progress *p =
        mmap(NULL, sizeof(*p), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ck_assert_ptr_ne(p, MAP_FAILED);
    return p;
}

static pid_t append_in_child(struct progress *p)
{
    pid_t pid = fork();
    if (pid != 0)
        return pid;
    log_must_lead(&a);
    for (;;) {
        const struct cluster_log_entry e = log_entry(&a, STR("under load"));
        if (log_append(&a, &e) != CLUSTER_LOG_OK)
            _exit(0);
        memcpy(p->positions[e.sequence].chain, e.chain, sizeof(e.chain));
        p->acknowledged = e.sequence;
    }
}

static bool has_many(void *arg)
{
    return ((struct progress *)arg)->acknowledged >= 200;
}

static void expect_position(struct log_node *n, const struct store_position *p)
{
    uint8_t chain[STORE_CHAIN_BYTES];
    ck_assert_int_eq(n->engine->chain(n->log, p->sequence, chain), CLUSTER_LOG_OK);
    ck_assert_mem_eq(chain, p->chain, sizeof(chain));
}

START_TEST(each_acknowledged_entry_is_on_the_promoted_standby)
{
    start(POSTGRES_SYNCHRONOUS);
    struct progress *p = shared_progress();
    pid_t pid = append_in_child(p);
    ck_assert(wait_until(has_many, p, WITHIN_MS));
    postgres_kill(primary);
    ck_assert_int_eq(waitpid(pid, NULL, 0), pid);
    postgres_promote(standby);
    free(postgres_query(standby, "UPDATE assay_cluster SET lease_until = 'epoch'"));
    log_must_lead(&b); /* found among both */
    ck_assert_uint_ge(b.head.sequence, p->acknowledged);
    ck_assert_uint_le(b.head.sequence, p->acknowledged + 1);
    for (uint64_t i = 1; i <= p->acknowledged; i += 1 + p->acknowledged / 50) {
        p->positions[i].sequence = i;
        expect_position(&b, &p->positions[i]);
    }
    log_must_append(&b, "of the new leader");
    ck_assert_uint_eq(log_check(standby), b.head.sequence);
    munmap(p, sizeof(*p));
    stop();
}
END_TEST

/* The connection is open while the standby is promoted. */
START_TEST(a_connection_follows_to_the_promoted_standby)
{
    start(POSTGRES_SYNCHRONOUS);
    log_must_lead(&a);
    log_must_append(&a, "on both");
    postgres_kill(primary);
    postgres_promote(standby);
    const struct cluster_log_entry e = log_entry(&a, STR("on the promoted one"));
    ck_assert_int_ne(log_append(&a, &e), CLUSTER_LOG_LED);
    log_settle(&a, &e);
    ck_assert_uint_eq(log_check(standby), 2);
    stop();
}
END_TEST

/* A primary that lives on, cut off from its standby, is of no use to an old leader. */
START_TEST(a_primary_without_its_standby_acknowledges_nothing)
{
    start(POSTGRES_SYNCHRONOUS);
    struct log_node old = log_node_at(3, primary);
    log_must_lead(&old);
    log_must_append(&old, "on both");
    const struct cluster_log_entry e = log_entry(&old, STR("of the old leader"));
    postgres_promote(standby);
    ck_assert_int_eq(log_append(&old, &e), CLUSTER_LOG_UNKNOWN);
    struct log_node other = log_node_at(4, standby);
    free(postgres_query(standby, "UPDATE assay_cluster SET lease_until = 'epoch'"));
    log_must_lead(&other);
    log_must_append(&other, "of the new leader");
    ck_assert_uint_eq(log_check(standby), 2);
    log_node_free(&other);
    log_node_free(&old);
    stop();
}
END_TEST

/* ---- an asynchronous standby without the last entries ---- */

static bool has_entry(void *arg)
{
    char *count =
        postgres_query(standby, "SELECT count(*) FROM assay_log WHERE seq = %d", *(int *)arg);
    bool has = !strcmp(count, "1");
    free(count);
    return has;
}

static void promote_without_last_entries(void)
{
    int third = 3;
    struct cluster_log_head head;
    log_must_lead(&a);
    for (int i = 0; i < 3; i++)
        log_must_append(&a, "on both");
    ck_assert(wait_until(has_entry, &third, WITHIN_MS));
    postgres_kill(standby);
    log_must_append(&a, "on the primary alone");
    log_must_append(&a, "on the primary alone");
    postgres_kill(primary);
    postgres_start(standby);
    postgres_promote(standby);
    free(postgres_query(standby, "UPDATE assay_cluster SET lease_until = 'epoch'"));
    ck_assert_int_eq(a.engine->position(a.log, NULL, &head), CLUSTER_LOG_AWAY); /* once */
}

static void expect_refusal(struct log_node *n, const struct log_place *place, const char *part)
{
    char why[POSITION_WHY];
    struct log_place p = *place;
    struct cluster_log_head head;
    ck_assert_int_eq(n->engine->position(n->log, NULL, &head), CLUSTER_LOG_OK);
    ck_assert_int_eq(position_compare(n->log, &p, &head, why), CLUSTER_LOG_OK);
    ck_assert_msg(*part ? strstr(why, part) != NULL : *why == '\0', "%s", why);
}

static struct log_place place_of(const struct log_node *n)
{
    struct log_place p = {.known = true, .position = {.sequence = n->head.sequence}};
    memcpy(p.position.log, n->head.log, sizeof(p.position.log));
    memcpy(p.position.chain, n->head.chain, sizeof(p.position.chain));
    return p;
}

START_TEST(a_store_with_lost_entries_fits_no_more)
{
    start(POSTGRES_ASYNCHRONOUS);
    promote_without_last_entries();
    const struct log_place place = place_of(&a);
    expect_refusal(&a, &place, "this store has entry 5, and the log ends before it");
    log_must_lead(&b);
    const struct log_place other = place_of(&b);
    expect_refusal(&b, &other, "");
    log_must_append(&b, "of the new leader");
    log_must_append(&b, "of the new leader");
    expect_refusal(&a, &place, "entry 5, the end of the log, is not the one of this store");
    log_must_append(&b, "of the new leader");
    expect_refusal(&a, &place, "entry 5 of the log is not the one of this store");
    expect_refusal(&b, &other, "");
    stop();
}
END_TEST

/* The lead was lost too, and so the new leader has the same epoch: the chain is the fence. */
START_TEST(the_leader_of_lost_entries_appends_nothing)
{
    start(POSTGRES_ASYNCHRONOUS);
    postgres_kill(standby);
    log_must_lead(&a);
    log_must_append(&a, "on the primary alone");
    postgres_kill(primary);
    postgres_start(standby);
    postgres_promote(standby);
    log_must_lead(&b);
    ck_assert_uint_eq(a.epoch, b.epoch);
    log_must_append(&b, "of the new leader");
    const struct cluster_log_entry e = log_entry(&a, STR("of the old leader"));
    enum cluster_log_status status = log_append(&a, &e);
    ck_assert(status == CLUSTER_LOG_UNKNOWN || status == CLUSTER_LOG_AWAY);
    ck_assert_int_eq(log_append(&a, &e), CLUSTER_LOG_LED);
    ck_assert_int_eq(log_renew(&a, CLUSTER_LOG_LEASE_MS), CLUSTER_LOG_LED);
    ck_assert_uint_eq(log_check(standby), 1);
    stop();
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_test(tcase, an_append_waits_for_the_standby);
    tcase_add_loop_test(tcase, an_entry_that_the_standby_does_not_have_is_not_acknowledged, 0,
                        sizeof(ends) / sizeof(*ends));
    tcase_add_test(tcase, a_commit_with_a_warning_is_no_acknowledgement);
    tcase_add_test(tcase, each_acknowledged_entry_is_on_the_promoted_standby);
    tcase_add_test(tcase, a_connection_follows_to_the_promoted_standby);
    tcase_add_test(tcase, a_primary_without_its_standby_acknowledges_nothing);
    tcase_add_test(tcase, a_store_with_lost_entries_fits_no_more);
    tcase_add_test(tcase, the_leader_of_lost_entries_appends_nothing);
}

int main(void)
{
    if (postgres_missing()) {
        puts(postgres_missing());
        return SUITE_SKIPPED;
    }
    suite_processes(3);
    Suite *suite = suite_create("log_standby");
    TCase *tcase = tcase_create("log_standby");
    suite_add_tcase(suite, tcase);
    tcase_set_timeout(tcase, 90);
    add_tests(tcase);
    return suite_run(suite);
}
