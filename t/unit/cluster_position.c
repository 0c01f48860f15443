/*
 * Does a store fit the log? By an engine that has the entries of a list. And the chain: equal only
 * after the same entries.
 */
#include "config.h"

#include "t/kit/suite.h"

#include "core/cluster/position.h"

#include <stdlib.h>

enum { ENTRIES = 5 };

static const struct str rows_of[ENTRIES + 1] = {{NULL, 0},    STR("one"),  STR("two"),
                                                STR("three"), STR("four"), STR("five")};

static struct {
    struct cluster_log log;
    uint8_t chains[ENTRIES + 1][STORE_CHAIN_BYTES];
    uint64_t first, last; /* entries that it has */
    enum cluster_log_status status;
} played;

static char why[POSITION_WHY];

static enum cluster_log_status chain_of(struct cluster_log *l, uint64_t sequence,
                                        uint8_t out[STORE_CHAIN_BYTES])
{
    (void)l;
    if (played.status != CLUSTER_LOG_OK)
        return played.status;
    if (sequence < played.first || sequence > played.last)
        return CLUSTER_LOG_NONE;
    memcpy(out, played.chains[sequence], STORE_CHAIN_BYTES);
    return CLUSTER_LOG_OK;
}

static const struct cluster_log_engine engine = {.chain = chain_of};

static struct cluster_log_entry entry(uint64_t sequence)
{
    struct cluster_log_entry e = {.sequence = sequence,
                                  .epoch = 7,
                                  .format = store_rows_formats.newest,
                                  .rows = rows_of[sequence]};
    memcpy(e.chain, played.chains[sequence], sizeof(e.chain));
    return e;
}

/* A log of all entries; it begins with empty stores. */
static void setup(void)
{
    memset(&played, 0, sizeof(played));
    played.log.engine = &engine;
    played.first = 1;
    played.last = ENTRIES;
    for (uint64_t i = 1; i <= ENTRIES; i++)
        ck_assert(chain_next(played.chains[i - 1], i, 7, store_rows_formats.newest, rows_of[i],
                             played.chains[i]));
}

static struct cluster_log_head head(void)
{
    struct cluster_log_head h = {
        .log = {1, 2, 3}, .epoch = 7, .sequence = played.last, .format = 1};
    memcpy(h.chain, played.chains[played.last], sizeof(h.chain));
    return h;
}

static struct log_place at(uint64_t sequence)
{
    struct log_place p = {.position = {.log = {1, 2, 3}, .sequence = sequence}, .known = true};
    memcpy(p.position.chain, played.chains[sequence], STORE_CHAIN_BYTES);
    return p;
}

static void expect_fits(struct log_place p)
{
    const struct cluster_log_head h = head();
    ck_assert_int_eq(position_compare(&played.log, &p, &h, why), CLUSTER_LOG_OK);
    ck_assert_str_eq(why, "");
}

static void expect_refused(struct log_place p, const char *reason)
{
    const struct cluster_log_head h = head();
    ck_assert_int_eq(position_compare(&played.log, &p, &h, why), CLUSTER_LOG_OK);
    ck_assert_msg(strstr(why, reason) != NULL, "\"%s\" is not in \"%s\"", reason, why);
}

START_TEST(a_store_fits_wherever_it_stopped)
{
    for (uint64_t i = 0; i <= ENTRIES; i++)
        expect_fits(at(i));
}
END_TEST

START_TEST(an_empty_store_gets_the_position_before_the_first_entry)
{
    struct log_place p = {.empty = true};
    const struct cluster_log_head h = head();
    ck_assert_int_eq(position_compare(&played.log, &p, &h, why), CLUSTER_LOG_OK);
    ck_assert_str_eq(why, "");
    ck_assert_mem_eq(p.position.log, h.log, sizeof(h.log));
    ck_assert_uint_eq(p.position.sequence, 0);
    const struct cluster_log_entry first = entry(1);
    ck_assert(position_continues(&p.position, &first, why));
}
END_TEST

START_TEST(records_without_a_position_are_refused)
{
    expect_refused((struct log_place){0}, "data_dir has records that are not of this log");
}
END_TEST

START_TEST(another_log_is_refused)
{
    struct log_place p = at(2);
    p.position.log[0] ^= 1;
    expect_refused(p, "another log than this store follows");
}
END_TEST

START_TEST(a_log_that_lost_its_last_entries_is_refused)
{
    played.last = 3;
    expect_refused(at(4), "this store has entry 4, and the log ends before it");
}
END_TEST

/* A standby without entry 4 was promoted, and the log went on without it. */
START_TEST(a_log_that_went_on_differently_is_refused)
{
    struct log_place p = at(4);
    p.position.chain[0] ^= 1;
    expect_refused(p, "entry 4 of the log is not the one of this store");
    played.last = 4;
    expect_refused(p, "entry 4, the end of the log, is not the one of this store");
}
END_TEST

START_TEST(a_trimmed_log_is_refused)
{
    played.first = 3;
    expect_refused(at(2), "the log has no entry 2");
    expect_fits(at(3));
}
END_TEST

START_TEST(a_log_that_begins_with_records_refuses_an_empty_store)
{
    struct log_place p = {.empty = true};
    struct cluster_log_head h = head();
    h.sequence = 0;
    memset(h.chain, 9, sizeof(h.chain));
    ck_assert_int_eq(position_compare(&played.log, &p, &h, why), CLUSTER_LOG_OK);
    ck_assert_ptr_nonnull(strstr(why, "the log begins with the store of another node"));
}
END_TEST

/* It might apply the entries before the last one: it does not begin. */
START_TEST(a_log_in_another_format_is_refused_wherever_the_store_stopped)
{
    struct cluster_log_head h = head();
    h.format = 2;
    for (uint64_t i = 0; i <= ENTRIES; i++) {
        struct log_place p = at(i);
        ck_assert_int_eq(position_compare(&played.log, &p, &h, why), CLUSTER_LOG_OK);
        ck_assert_ptr_nonnull(strstr(why,
                                     "the log is written in format 2, and Assay " PACKAGE_VERSION
                                     " reads format 1: upgrade this node"));
    }
}
END_TEST

START_TEST(an_error_of_the_log_is_no_verdict)
{
    struct log_place p = at(2);
    const struct cluster_log_head h = head();
    played.status = CLUSTER_LOG_AWAY;
    ck_assert_int_eq(position_compare(&played.log, &p, &h, why), CLUSTER_LOG_AWAY);
}
END_TEST

/* ---- the next entry ---- */

START_TEST(each_entry_continues_the_one_before)
{
    for (uint64_t i = 1; i <= ENTRIES; i++) {
        const struct log_place before = at(i - 1);
        const struct cluster_log_entry e = entry(i);
        ck_assert(position_continues(&before.position, &e, why));
        ck_assert_str_eq(why, "");
    }
}
END_TEST

static void expect_no_continuation(const struct cluster_log_entry *e, const char *reason)
{
    const struct log_place before = at(2);
    ck_assert(!position_continues(&before.position, e, why));
    ck_assert_msg(strstr(why, reason) != NULL, "\"%s\" is not in \"%s\"", reason, why);
}

START_TEST(a_gap_is_refused)
{
    const struct cluster_log_entry e = entry(4);
    expect_no_continuation(&e, "the next entry of the log is 4");
}
END_TEST

START_TEST(a_log_without_entries_is_refused)
{
    expect_no_continuation(NULL, "the log has no entry after 2");
}
END_TEST

START_TEST(an_altered_entry_is_refused)
{
    struct cluster_log_entry e = entry(3);
    e.rows = STR("thRee");
    expect_no_continuation(&e, "entry 3 of the log does not continue");
    e = entry(3);
    e.epoch++;
    expect_no_continuation(&e, "entry 3 of the log does not continue");
    e = entry(3);
    e.chain[STORE_CHAIN_BYTES - 1] ^= 1;
    expect_no_continuation(&e, "entry 3 of the log does not continue");
}
END_TEST

START_TEST(an_entry_of_another_format_is_refused)
{
    struct cluster_log_entry e = entry(3);
    e.format = 2;
    expect_no_continuation(&e, "entry 3 of the log has format 2, and Assay " PACKAGE_VERSION
                               " reads format 1: upgrade this node to the version of the others");
    e.format = 0;
    expect_no_continuation(&e, "entry 3 of the log has format 0");
}
END_TEST

/* Bytes that move from one member of an entry to its neighbour change the hash. */
START_TEST(the_chain_depends_on_each_member)
{
    static const struct {
        uint64_t sequence, epoch;
        uint32_t format;
        struct str rows;
    } entries[] = {
        {1, 1, 1, STR("a")}, {2, 1, 1, STR("a")},  {1, 2, 1, STR("a")},  {1, 1, 2, STR("a")},
        {1, 1, 1, STR("b")}, {1, 1, 1, STR("aa")}, {1, 1, 1, {NULL, 0}},
    };
    const uint8_t zeros[STORE_CHAIN_BYTES] = {0};
    uint8_t chains[sizeof(entries) / sizeof(*entries)][STORE_CHAIN_BYTES];
    for (size_t i = 0; i < sizeof(entries) / sizeof(*entries); i++) {
        ck_assert(chain_next(zeros, entries[i].sequence, entries[i].epoch, entries[i].format,
                             entries[i].rows, chains[i]));
        for (size_t j = 0; j < i; j++)
            ck_assert_mem_ne(chains[i], chains[j], STORE_CHAIN_BYTES);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("cluster_position");
    TCase *tcase = tcase_create("a log");
    tcase_add_checked_fixture(tcase, setup, NULL);
    suite_add_tcase(suite, tcase);
    tcase_add_test(tcase, a_store_fits_wherever_it_stopped);
    tcase_add_test(tcase, an_empty_store_gets_the_position_before_the_first_entry);
    tcase_add_test(tcase, records_without_a_position_are_refused);
    tcase_add_test(tcase, another_log_is_refused);
    tcase_add_test(tcase, a_log_that_lost_its_last_entries_is_refused);
    tcase_add_test(tcase, a_log_that_went_on_differently_is_refused);
    tcase_add_test(tcase, a_trimmed_log_is_refused);
    tcase_add_test(tcase, a_log_that_begins_with_records_refuses_an_empty_store);
    tcase_add_test(tcase, a_log_in_another_format_is_refused_wherever_the_store_stopped);
    tcase_add_test(tcase, an_error_of_the_log_is_no_verdict);
    tcase_add_test(tcase, each_entry_continues_the_one_before);
    tcase_add_test(tcase, a_gap_is_refused);
    tcase_add_test(tcase, a_log_without_entries_is_refused);
    tcase_add_test(tcase, an_altered_entry_is_refused);
    tcase_add_test(tcase, an_entry_of_another_format_is_refused);
    tcase_add_test(tcase, the_chain_depends_on_each_member);
    return suite_run(suite);
}
