/* Which node differs, from the hashes that nodes have registered. */
#include "t/kit/suite.h"

#include "core/cluster/verification.h"

#include <stdlib.h>
#include <string.h>

enum { AT = 70, NODES = 5, LEADER = 0, GONE = CLUSTER_LOG_LEASE_MS };

/*
 * Columns: the hash of each node, '-': none yet, '.': no node, capital: away; what each is to do,
 * 'e': it is equal, 'd': it differs, 'o': it waits. Node 0 leads.
 */
static const struct {
    const char *hashes, *verdicts;
} cases[] = {
    {"aaa", "eee"},   {"aab", "eed"},   {"baa", "dee"},     {"ab", "ed"},     {"a-", "oo"},
    {"aa-", "eeo"},   {"ab-", "ooo"},   {"abc", "edd"},     {"-ab", "ooo"},   {"a", "e"},
    {"aabb", "eedd"}, {"bbaa", "eedd"}, {"aaabb", "eeedd"}, {"aa--", "oooo"}, {"aaBB", "ee  "},
    {"abBB", "ed  "}, {"---", "ooo"},
};

static struct cluster_log_node node(int i, char hash)
{
    bool away = hash >= 'A' && hash <= 'Z';
    struct cluster_log_node n = {.id = {(uint8_t)(i + 1)},
                                 .seen_ms = away ? GONE : 10,
                                 .hash_sequence = hash == '-' ? AT - 1 : AT,
                                 .hash = {(uint8_t)hash}};
    return n;
}

static void expect_verdicts(struct verification *v, const char *hashes, const char *verdicts)
{
    for (int i = 0; hashes[i] != '\0'; i++) {
        const struct cluster_log_node n = node(i, hashes[i]);
        verification_add(v, &n);
    }
    for (int i = 0; hashes[i] != '\0'; i++) {
        enum verdict verdict = verification_judge(v, node(i, hashes[i]).id);
        if (verdicts[i] != ' ')
            ck_assert_msg(verdict == (verdicts[i] == 'e'   ? VERDICT_EQUAL
                                      : verdicts[i] == 'd' ? VERDICT_DIFFERS
                                                           : VERDICT_OPEN),
                          "%s: node %d: %d", hashes, i, verdict);
    }
}

START_TEST(the_majority_decides_and_else_the_leader)
{
    struct verification v = {.sequence = AT, .leader = {LEADER + 1}};
    expect_verdicts(&v, cases[_i].hashes, cases[_i].verdicts);
}
END_TEST

/* As cases, when nodes without a hash had time enough. */
static const struct {
    const char *hashes, *verdicts;
} late_cases[] = {
    {"aa-", "eeo"}, {"ab-", "edo"},   {"a--", "eoo"},     {"-ab", "ooo"},
    {"-aa", "oee"}, {"-aab", "oeed"}, {"ab---", "edooo"}, {"---", "ooo"},
};

START_TEST(nodes_that_do_not_answer_in_time_do_not_hold_the_verdict)
{
    struct verification v = {.sequence = AT, .leader = {LEADER + 1}, .late = true};
    expect_verdicts(&v, late_cases[_i].hashes, late_cases[_i].verdicts);
}
END_TEST

START_TEST(others_may_take_some_times_as_long_as_this_node)
{
    ck_assert_uint_ge(verification_wait_ms(0), 2 * CLUSTER_LOG_LEASE_MS);
    ck_assert_uint_ge(verification_wait_ms(600000), 1800000);
}
END_TEST

/* Column: by a verification, or for another reason. */
START_TEST(a_node_that_was_stopped_has_no_vote)
{
    struct verification v = {.sequence = AT, .leader = {1}};
    struct cluster_log_node stopped = node(2, 'b');
    const struct cluster_log_node a = node(0, 'a'), b = node(1, 'b');
    if (_i == 0)
        stopped.differs_at = AT - 10;
    else
        strcpy(stopped.stopped, "trimmed");
    verification_add(&v, &a);
    verification_add(&v, &b);
    verification_add(&v, &stopped);
    ck_assert_int_eq(verification_judge(&v, a.id), VERDICT_EQUAL);
    ck_assert_int_eq(verification_judge(&v, b.id), VERDICT_DIFFERS);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("cluster_verification");
    TCase *tcase = tcase_create("verification");
    suite_add_tcase(suite, tcase);
    tcase_add_loop_test(tcase, the_majority_decides_and_else_the_leader, 0,
                        sizeof(cases) / sizeof(*cases));
    tcase_add_loop_test(tcase, nodes_that_do_not_answer_in_time_do_not_hold_the_verdict, 0,
                        sizeof(late_cases) / sizeof(*late_cases));
    tcase_add_test(tcase, others_may_take_some_times_as_long_as_this_node);
    tcase_add_loop_test(tcase, a_node_that_was_stopped_has_no_vote, 0, 2);
    return suite_run(suite);
}
