/* The log of a cluster in PostgreSQL: each call of its engine, on one server. */
#include "t/cluster/log_node.h"
#include "t/kit/suite.h"
#include "t/kit/supervisor.h"
#include "t/kit/wait.h"

#include <stdio.h>
#include <sys/eventfd.h>

enum { ENTRY = 12 << 20 };

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

static void sql(const char *statement)
{
    free(postgres_query(server, "%s", statement));
}

/* ---- making ---- */

START_TEST(a_new_log_is_empty_and_nobody_leads)
{
    const struct cluster_log_head head = log_position(&a);
    const uint8_t zeros[STORE_CHAIN_BYTES] = {0};
    ck_assert_int_eq(head.log[0], 1);
    ck_assert_uint_eq(head.epoch, 0);
    ck_assert_uint_eq(head.sequence, 0);
    ck_assert_uint_eq(head.format, 0);
    ck_assert_int_le(head.lease_ms, 0);
    ck_assert_mem_eq(head.leader, zeros, NODE_BYTES);
    ck_assert_mem_eq(head.chain, zeros, STORE_CHAIN_BYTES);
    ck_assert_str_eq(head.leader_name, "");
}
END_TEST

START_TEST(a_second_log_is_refused)
{
    log_must_lead(&a);
    log_must_append(&a, "one");
    ck_assert_int_eq(log_made(&b, 2, false), CLUSTER_LOG_REFUSED);
    log_expect_why(&b, "the database has a log of Assay already");
    ck_assert_uint_eq(log_check(server), 1);
    ck_assert_uint_eq(log_position(&b).sequence, 1); /* the refused connection goes on */
}
END_TEST

/* The prepared statements of connections that are open go on with the new tables. */
START_TEST(a_replaced_log_is_used_by_open_connections)
{
    struct cluster_log_node node = {.id = {1}};
    struct cluster_log_head head;
    log_must_lead(&a);
    log_must_append(&a, "one");
    ck_assert_int_eq(a.engine->position(a.log, &node, &head), CLUSTER_LOG_OK);
    sql("UPDATE assay_cluster SET lease_until = 'epoch'");
    ck_assert_int_eq(log_made(&b, 2, true), CLUSTER_LOG_OK);
    ck_assert_int_eq(a.engine->position(a.log, &node, &head), CLUSTER_LOG_OK);
    ck_assert_int_eq(head.log[0], 2);
    ck_assert_uint_eq(head.sequence, 0);
    log_must_lead(&a);
    log_must_append(&a, "uno");
    ck_assert_uint_eq(log_check(server), 1);
}
END_TEST

/* Epoch and sequence of the new log are those that the leader of the old one goes on with. */
START_TEST(the_leader_of_a_replaced_log_appends_nothing)
{
    log_must_lead(&a);
    log_must_append(&a, "one");
    ck_assert_int_eq(log_made(&b, 2, true), CLUSTER_LOG_OK);
    log_must_lead(&b);
    ck_assert_uint_eq(a.epoch, b.epoch);
    log_must_append(&b, "uno");
    const struct cluster_log_entry e = log_entry(&a, STR("two"));
    ck_assert_int_eq(log_append(&a, &e), CLUSTER_LOG_LED);
    ck_assert_int_eq(log_renew(&a, CLUSTER_LOG_LEASE_MS), CLUSTER_LOG_LED);
    ck_assert_uint_eq(log_check(server), 1);
}
END_TEST

START_TEST(a_failed_replacement_keeps_the_log)
{
    log_must_lead(&a);
    log_must_append(&a, "one");
    /* the new log fails when its last table is made */
    sql("CREATE FUNCTION refuse() RETURNS event_trigger LANGUAGE plpgsql AS $$BEGIN"
        " IF current_query() LIKE '%CREATE TABLE assay_node%' THEN RAISE 'no more tables';"
        " END IF; END$$");
    sql("CREATE EVENT TRIGGER refuse ON ddl_command_end WHEN TAG IN ('CREATE TABLE')"
        " EXECUTE FUNCTION refuse()");
    ck_assert_int_eq(log_made(&b, 2, true), CLUSTER_LOG_REFUSED);
    log_expect_why(&b, "no more tables");
    ck_assert_uint_eq(log_position(&b).sequence, 1);
    log_must_append(&a, "two");
    ck_assert_uint_eq(log_check(server), 2);
}
END_TEST

/* ---- leading ---- */

START_TEST(one_node_leads_until_its_lease_ends)
{
    const int64_t until = now_ms() + 1500;
    ck_assert_int_eq(log_lead(&a, 1500), CLUSTER_LOG_OK);
    ck_assert_uint_eq(a.epoch, 1);
    ck_assert_int_gt(a.head.lease_ms, 0);
    ck_assert_int_le(a.head.lease_ms, 1500);
    ck_assert_int_eq(log_lead(&b, CLUSTER_LOG_LEASE_MS), CLUSTER_LOG_LED);
    while (log_lead(&b, CLUSTER_LOG_LEASE_MS) == CLUSTER_LOG_LED)
        ck_assert_int_lt(now_ms(), until + WITHIN_MS);
    ck_assert_int_ge(now_ms(), until);
    ck_assert_uint_eq(b.epoch, 2);
    ck_assert_int_eq(log_renew(&a, CLUSTER_LOG_LEASE_MS), CLUSTER_LOG_LED);
    ck_assert_int_eq(log_renew(&b, CLUSTER_LOG_LEASE_MS), CLUSTER_LOG_OK);
}
END_TEST

START_TEST(a_node_that_starts_again_leads_at_once_by_a_new_epoch)
{
    log_must_lead(&a);
    const struct cluster_log_entry e = log_entry(&a, STR("of the first epoch"));
    struct log_node again = log_node_at(1, server);
    log_must_lead(&again);
    ck_assert_uint_eq(again.epoch, 2);
    ck_assert_int_eq(log_append(&a, &e), CLUSTER_LOG_LED);
    ck_assert_int_eq(log_renew(&a, CLUSTER_LOG_LEASE_MS), CLUSTER_LOG_LED);
    ck_assert_uint_eq(log_check(server), 0);
    log_node_free(&again);
}
END_TEST

START_TEST(a_lead_that_is_given_up_is_free)
{
    log_must_lead(&a);
    ck_assert_int_eq(log_renew(&a, 0), CLUSTER_LOG_OK);
    ck_assert_int_le(log_position(&b).lease_ms, 0);
    log_must_lead(&b);
}
END_TEST

START_TEST(renewals_and_appends_extend_the_lease)
{
    ck_assert_int_eq(log_lead(&a, 3000), CLUSTER_LOG_OK);
    log_must_append(&a, "one");
    ck_assert_int_gt(log_position(&b).lease_ms, 4000);
    ck_assert_int_eq(log_renew(&a, 3000), CLUSTER_LOG_OK);
    ck_assert_int_le(log_position(&b).lease_ms, 3000);
    ck_assert_int_eq(log_renew(&a, CLUSTER_LOG_LEASE_MS), CLUSTER_LOG_OK);
    ck_assert_int_gt(log_position(&b).lease_ms, 4000);
}
END_TEST

/* The clock of the server was set back by a day, or far more. */
static const char *const far_leases[] = {"now() + interval '1 day'", "'294275-01-01'", "'infinity'",
                                         "'-infinity'", "'4713-01-01 BC'"};

START_TEST(a_lease_that_cannot_be_is_over)
{
    log_must_lead(&a);
    free(postgres_query(server, "UPDATE assay_cluster SET lease_until = %s", far_leases[_i]));
    ck_assert_int_le(log_position(&b).lease_ms, 0);
    log_must_lead(&b);
    ck_assert_int_eq(log_renew(&a, CLUSTER_LOG_LEASE_MS), CLUSTER_LOG_LED);
}
END_TEST

/* ---- appending and reading ---- */

struct entries {
    struct cluster_log_entry all[1024];
    size_t count, stop;
};

static bool add(void *arg, const struct cluster_log_entry *e)
{
    struct entries *entries = arg;
    ck_assert_uint_lt(entries->count, sizeof(entries->all) / sizeof(*entries->all));
    entries->all[entries->count++] = *e;
    return entries->count != entries->stop;
}

static enum cluster_log_status read_after(struct log_node *n, uint64_t after, struct entries *out)
{
    out->count = 0;
    return n->engine->read(n->log, after, add, out);
}

static bool expect_same(void *arg, const struct cluster_log_entry *e)
{
    const struct cluster_log_entry *want = arg;
    ck_assert_uint_eq(e->sequence, want->sequence);
    ck_assert_uint_eq(e->epoch, want->epoch);
    ck_assert_uint_eq(e->format, want->format);
    ck_assert_uint_eq(e->rows.n, want->rows.n);
    ck_assert(memcmp(e->rows.p, want->rows.p, e->rows.n) == 0);
    ck_assert_mem_eq(e->chain, want->chain, STORE_CHAIN_BYTES);
    return true;
}

static const size_t sizes[] = {0, 1, 1900, 1 << 20, ENTRY};

START_TEST(an_entry_is_read_as_it_was_appended)
{
    char *rows = malloc(ENTRY);
    ck_assert_ptr_nonnull(rows);
    for (size_t i = 0; i < ENTRY; i++)
        rows[i] = (char)(i * 7 + i / 251);
    log_must_lead(&a);
    struct cluster_log_entry e = log_entry(&a, (struct str){rows, sizes[_i]});
    ck_assert_int_eq(log_append(&a, &e), CLUSTER_LOG_OK);
    const struct cluster_log_head head = log_position(&b);
    ck_assert_uint_eq(head.sequence, 1);
    ck_assert_int_eq(head.at_ms, e.at_ms);
    ck_assert_uint_eq(head.format, e.format);
    ck_assert_mem_eq(head.chain, e.chain, STORE_CHAIN_BYTES);
    ck_assert_int_eq(b.engine->read(b.log, 0, expect_same, &e), CLUSTER_LOG_OK);
    ck_assert_int_eq(b.engine->read(b.log, 1, expect_same, &e), CLUSTER_LOG_NONE);
    uint8_t chain[STORE_CHAIN_BYTES];
    ck_assert_int_eq(b.engine->chain(b.log, 1, chain), CLUSTER_LOG_OK);
    ck_assert_mem_eq(chain, e.chain, STORE_CHAIN_BYTES);
    ck_assert_int_eq(b.engine->chain(b.log, 2, chain), CLUSTER_LOG_NONE);
    free(rows);
}
END_TEST

START_TEST(an_append_needs_epoch_sequence_and_chain)
{
    log_must_lead(&a);
    log_must_append(&a, "one");
    for (int i = 0; i < 4; i++) {
        struct cluster_log_entry e = log_entry(&a, STR("two"));
        e.epoch += i == 0;
        e.sequence += i == 1;
        e.sequence -= i == 2;
        e.before[0] ^= i == 3;
        ck_assert_int_eq(log_append(&a, &e), CLUSTER_LOG_LED);
        ck_assert_uint_eq(log_check(server), 1);
    }
    log_must_append(&a, "two");
    ck_assert_uint_eq(log_check(server), 2);
}
END_TEST

START_TEST(a_read_is_bounded_by_bytes_and_in_order)
{
    static struct entries got;
    char *rows = calloc(1, 1 << 20);
    log_must_lead(&a);
    for (int i = 0; i < 10; i++) {
        const struct cluster_log_entry e = log_entry(&a, (struct str){rows, 1 << 20});
        ck_assert_int_eq(log_append(&a, &e), CLUSTER_LOG_OK);
    }
    ck_assert_int_eq(read_after(&b, 3, &got), CLUSTER_LOG_OK);
    ck_assert_uint_eq(got.count, CLUSTER_LOG_READ_BYTES >> 20);
    for (size_t i = 0; i < got.count; i++)
        ck_assert_uint_eq(got.all[i].sequence, 4 + i);
    got.stop = 2;
    ck_assert_int_eq(read_after(&b, 3, &got), CLUSTER_LOG_OK);
    ck_assert_uint_eq(got.count, 2);
    free(rows);
}
END_TEST

START_TEST(a_read_is_bounded_by_entries)
{
    static struct entries got;
    sql("UPDATE assay_cluster SET head = 1000");
    log_must_lead(&a); /* makes the partition */
    sql("INSERT INTO assay_log SELECT n, 1, 1, 0, 'x', 'x' FROM generate_series(1, 1000) n");
    ck_assert_int_eq(read_after(&b, 10, &got), CLUSTER_LOG_OK);
    ck_assert_uint_eq(got.count, 256);
    ck_assert_uint_eq(got.all[0].sequence, 11);
    ck_assert_uint_eq(got.all[255].sequence, 266);
}
END_TEST

/* ---- waiting ---- */

static int wake;

static int64_t waited_ms(struct log_node *n, unsigned ms)
{
    const int64_t before = now_ms();
    n->engine->wait(n->log, wake, ms);
    return now_ms() - before;
}

static void listen_to(struct log_node *n)
{
    wake = eventfd(0, EFD_CLOEXEC);
    ck_assert_uint_eq(log_position(n).sequence, 0);
    ck_assert_int_lt(waited_ms(n, 5000), 2000); /* it begins to listen, and returns to look */
    ck_assert_uint_eq(log_position(n).sequence, 0);
    ck_assert_int_ge(waited_ms(n, 200), 200);
}

START_TEST(a_wait_ends_with_an_entry_or_a_wake)
{
    log_must_lead(&a);
    listen_to(&b);
    log_must_append(&a, "one");
    ck_assert_int_lt(waited_ms(&b, 5000), 2000);
    ck_assert_int_ge(waited_ms(&b, 200), 200);
    const uint64_t one = 1;
    ck_assert_int_eq(write(wake, &one, sizeof(one)), sizeof(one));
    ck_assert_int_lt(waited_ms(&b, 5000), 2000);
}
END_TEST

/* The notification comes with the answer to another statement, which may not know the entry. */
START_TEST(a_notification_is_not_lost_in_another_call)
{
    log_must_lead(&a);
    listen_to(&b);
    log_must_append(&a, "one");
    log_position(&b);
    ck_assert_int_lt(waited_ms(&b, 5000), 2000);
    ck_assert_int_ge(waited_ms(&b, 200), 200);
}
END_TEST

START_TEST(a_wait_without_a_server_lasts)
{
    listen_to(&b);
    postgres_stop(server, POSTGRES_FAST);
    ck_assert_int_lt(waited_ms(&b, 5000), 2000); /* the end of the connection */
    while (waited_ms(&b, 200) < 200)
        ck_assert_int_ge(--_i, -3);
    struct cluster_log_head head;
    ck_assert_int_eq(b.engine->position(b.log, NULL, &head), CLUSTER_LOG_AWAY);
    log_expect_why(&b, "Connection refused");
    ck_assert_int_ge(waited_ms(&b, 200), 200);
}
END_TEST

/* ---- for operators ---- */

static void add_node(void *arg, const struct cluster_log_node *node)
{
    struct cluster_log_node **next = arg;
    *(*next)++ = *node;
}

START_TEST(nodes_are_listed_as_they_were_last_noted)
{
    struct cluster_log_node nodes[4], *end = nodes;
    struct cluster_log_head head;
    for (int i = 0; i < 3; i++) {
        struct cluster_log_node node = {.id = {(uint8_t)(1 + i % 2)},
                                        .address = "[::1]:7000",
                                        .version = "1.2.3",
                                        .format = 3,
                                        .sequence = (uint64_t)i,
                                        .free_bytes = 1ull << 40};
        snprintf(node.name, sizeof(node.name), "%s", i % 2 ? "a node" : "nœud \"b\"");
        ck_assert_int_eq(a.engine->position(a.log, &node, &head), CLUSTER_LOG_OK);
    }
    ck_assert_int_eq(b.engine->nodes(b.log, add_node, &end), CLUSTER_LOG_OK);
    ck_assert_int_eq(end - nodes, 2);
    ck_assert_str_eq(nodes[0].name, "a node");
    ck_assert_str_eq(nodes[1].name, "nœud \"b\"");
    ck_assert_str_eq(nodes[1].address, "[::1]:7000");
    ck_assert_int_eq(nodes[1].id[0], 1);
    ck_assert_str_eq(nodes[1].version, "1.2.3");
    ck_assert_uint_eq(nodes[1].format, 3);
    ck_assert_uint_eq(nodes[1].sequence, 2);
    ck_assert_uint_eq(nodes[1].free_bytes, 1ull << 40);
    ck_assert_int_ge(nodes[1].seen_ms, 0);
    ck_assert_int_lt(nodes[1].seen_ms, WITHIN_MS);
    log_must_lead(&a);
    ck_assert_str_eq(log_position(&b).leader_name, "nœud \"b\"");
    ck_assert_str_eq(log_position(&b).leader_address, "[::1]:7000");
}
END_TEST

static void add_warning(void *arg, const char *sentence)
{
    char **all = arg, *before = *all;
    *all = text("%s%s\n", before, sentence);
    free(before);
}

START_TEST(a_server_that_may_lose_entries_is_warned_of)
{
    char *all = strdup("");
    postgres_set(server, "fsync", "off");
    ck_assert_int_eq(a.engine->warnings(a.log, add_warning, &all), CLUSTER_LOG_OK);
    ck_assert_ptr_nonnull(strstr(all, "synchronous_standby_names is empty"));
    ck_assert_ptr_nonnull(strstr(all, "fsync is off"));
    ck_assert_ptr_null(strstr(all, "full_page_writes"));
    free(all);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_test(tcase, a_new_log_is_empty_and_nobody_leads);
    tcase_add_test(tcase, a_second_log_is_refused);
    tcase_add_test(tcase, a_replaced_log_is_used_by_open_connections);
    tcase_add_test(tcase, the_leader_of_a_replaced_log_appends_nothing);
    tcase_add_test(tcase, a_failed_replacement_keeps_the_log);
    tcase_add_test(tcase, one_node_leads_until_its_lease_ends);
    tcase_add_test(tcase, a_node_that_starts_again_leads_at_once_by_a_new_epoch);
    tcase_add_test(tcase, a_lead_that_is_given_up_is_free);
    tcase_add_test(tcase, renewals_and_appends_extend_the_lease);
    tcase_add_loop_test(tcase, a_lease_that_cannot_be_is_over, 0,
                        sizeof(far_leases) / sizeof(*far_leases));
    tcase_add_loop_test(tcase, an_entry_is_read_as_it_was_appended, 0,
                        sizeof(sizes) / sizeof(*sizes));
    tcase_add_test(tcase, an_append_needs_epoch_sequence_and_chain);
    tcase_add_test(tcase, a_read_is_bounded_by_bytes_and_in_order);
    tcase_add_test(tcase, a_read_is_bounded_by_entries);
    tcase_add_test(tcase, a_wait_ends_with_an_entry_or_a_wake);
    tcase_add_test(tcase, a_notification_is_not_lost_in_another_call);
    tcase_add_test(tcase, a_wait_without_a_server_lasts);
    tcase_add_test(tcase, nodes_are_listed_as_they_were_last_noted);
    tcase_add_test(tcase, a_server_that_may_lose_entries_is_warned_of);
}

int main(void)
{
    if (postgres_missing()) {
        puts(postgres_missing());
        return SUITE_SKIPPED;
    }
    suite_processes(3);
    Suite *suite = suite_create("log");
    TCase *tcase = tcase_create("log");
    suite_add_tcase(suite, tcase);
    tcase_set_timeout(tcase, 90);
    tcase_add_checked_fixture(tcase, setup, teardown);
    add_tests(tcase);
    return suite_run(suite);
}
