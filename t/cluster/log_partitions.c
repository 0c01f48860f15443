/* The partitions of the log in PostgreSQL: made ahead of the entries, and dropped behind them. */
#include "t/cluster/log_node.h"
#include "t/kit/suite.h"
#include "t/kit/wait.h"

#include <stdio.h>

enum { PARTITION = 65536 };

static struct postgres *server;
static struct log_node a, b;

static void setup(void)
{
    server = postgres_new();
    log_make(server);
    a = log_node_at(1, server);
    b = log_node_at(2, server);
}

static void teardown(void)
{
    log_node_free(&a);
    log_node_free(&b);
    postgres_free(server);
}

struct numbers {
    uint64_t first, count;
};

static bool count(void *arg, const struct cluster_log_entry *e)
{
    struct numbers *n = arg;
    if (n->count++ == 0)
        n->first = e->sequence;
    return true;
}

static void expect_partitions(const char *want)
{
    log_expect_sql(
        server,
        "SELECT coalesce(string_agg(substring(inhrelid::regclass::text FROM '[0-9]+'), ' '"
        " ORDER BY length(inhrelid::regclass::text), inhrelid::regclass::text), '')"
        " FROM pg_inherits WHERE inhparent = 'assay_log'::regclass",
        want);
}

static void set_head(uint64_t sequence)
{
    free(postgres_query(server, "UPDATE assay_cluster SET head = %llu",
                        (unsigned long long)sequence));
}

START_TEST(partitions_are_made_half_a_partition_ahead)
{
    expect_partitions("");
    log_must_lead(&a);
    expect_partitions("0");
    set_head(PARTITION / 2 - 2);
    ck_assert_int_eq(log_renew(&a, CLUSTER_LOG_LEASE_MS), CLUSTER_LOG_OK);
    expect_partitions("0");
    set_head(PARTITION / 2 - 1);
    ck_assert_int_eq(log_renew(&a, CLUSTER_LOG_LEASE_MS), CLUSTER_LOG_OK);
    expect_partitions("0 1");
    set_head(PARTITION - 2);
    ck_assert_int_eq(log_renew(&a, CLUSTER_LOG_LEASE_MS), CLUSTER_LOG_OK);
    for (int i = 0; i < 4; i++)
        log_must_append(&a, "over the boundary");
    log_expect_sql(server, "SELECT count(*) FROM assay_log_0", "1");
    log_expect_sql(server, "SELECT count(*) FROM assay_log_1", "3");
}
END_TEST

START_TEST(another_leader_continues_the_partitions)
{
    log_must_lead(&a);
    set_head(10 * PARTITION + PARTITION / 2);
    ck_assert_int_eq(log_renew(&a, 0), CLUSTER_LOG_OK);
    log_must_lead(&b);
    log_must_append(&b, "of another leader");
    log_must_lead(&b);
    log_expect_sql(server, "SELECT count(*) FROM assay_log_10", "1");
    log_expect_sql(server, "SELECT (to_regclass('assay_log_11') IS NOT NULL)::text", "true");
}
END_TEST

/* As pg_dump does for hours. */
START_TEST(a_partition_does_not_wait_for_readers)
{
    struct log_node reader = log_node_at(3, server);
    log_must_lead(&a);
    set_head(PARTITION);
    pid_t pid = fork();
    if (pid == 0) {
        free(postgres_query(server, "BEGIN; LOCK TABLE assay_log IN ACCESS SHARE MODE;"
                                    "SELECT pg_sleep(60)"));
        _exit(0);
    }
    while (true) {
        char *held = postgres_query(server, "SELECT count(*) FROM pg_stat_activity"
                                            " WHERE wait_event = 'PgSleep'");
        bool holds = !strcmp(held, "1");
        free(held);
        if (holds)
            break;
    }
    ck_assert_int_eq(log_renew(&a, CLUSTER_LOG_LEASE_MS), CLUSTER_LOG_OK);
    log_must_append(&a, "meanwhile");
    /* trimming gives way */
    const int64_t before = now_ms();
    ck_assert_int_eq(reader.engine->trim(reader.log, PARTITION, INT64_MAX), CLUSTER_LOG_AWAY);
    ck_assert_int_lt(now_ms() - before, A_LITTLE_MS);
    log_expect_why(&reader, "lock timeout");
    log_must_append(&a, "and after it");
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    log_node_free(&reader);
}
END_TEST

START_TEST(trimming_drops_whole_partitions_before_a_sequence)
{
    struct numbers got = {0};
    uint8_t chain[STORE_CHAIN_BYTES];
    log_must_lead(&a);
    for (uint64_t i = 0; i < 4; i++) {
        set_head(i * PARTITION + PARTITION - 2);
        ck_assert_int_eq(log_renew(&a, CLUSTER_LOG_LEASE_MS), CLUSTER_LOG_OK);
        log_must_append(&a, "the last of its partition");
        log_must_append(&a, "the first of the next");
    }
    ck_assert_int_eq(b.engine->trim(b.log, PARTITION - 1, INT64_MAX), CLUSTER_LOG_OK);
    expect_partitions("0 1 2 3 4");
    ck_assert_int_eq(b.engine->trim(b.log, 3 * PARTITION - 1, INT64_MAX), CLUSTER_LOG_OK);
    expect_partitions("2 3 4");
    ck_assert_int_eq(b.engine->chain(b.log, 2 * PARTITION - 1, chain), CLUSTER_LOG_NONE);
    ck_assert_int_eq(b.engine->chain(b.log, 2 * PARTITION, chain), CLUSTER_LOG_OK);
    ck_assert_int_eq(b.engine->read(b.log, 0, count, &got), CLUSTER_LOG_OK);
    ck_assert_uint_eq(got.count, 5);
    ck_assert_uint_eq(got.first, 2 * PARTITION);
    ck_assert_int_eq(log_renew(&a, CLUSTER_LOG_LEASE_MS), CLUSTER_LOG_OK);
    log_must_append(&a, "goes on");
    expect_partitions("2 3 4");
}
END_TEST

int main(void)
{
    if (postgres_missing()) {
        puts(postgres_missing());
        return SUITE_SKIPPED;
    }
    suite_processes(2);
    Suite *suite = suite_create("log_partitions");
    TCase *tcase = tcase_create("log_partitions");
    suite_add_tcase(suite, tcase);
    tcase_set_timeout(tcase, 90);
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, partitions_are_made_half_a_partition_ahead);
    tcase_add_test(tcase, another_leader_continues_the_partitions);
    tcase_add_test(tcase, a_partition_does_not_wait_for_readers);
    tcase_add_test(tcase, trimming_drops_whole_partitions_before_a_sequence);
    return suite_run(suite);
}
