/* Results and the in-memory tail are stored in parts that fit a page; readers get them whole. */
#include "t/kit/store.h"

#include "store/engine/cursor.h"
#include "store/engine/snapshot.h"
#include "store/records/result.h"

#define PIECE 4080

static struct kit k;
static uint64_t w;

static void setup(void)
{
    kit_open(&k);
    w = kit_workspace(&k, "acme");
}

static void teardown(void)
{
    kit_close(&k);
    kit_segment_rows = kit_ngram_block_shift = kit_log_entries = 0;
}

static char json[64 << 10];

/* Incompressible bytes, different for each seed. */
static struct str results(uint64_t seed, size_t n)
{
    uint64_t x = seed * 0x9e3779b97f4a7c15 + 1;
    for (size_t i = 0; i < n; i++) {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        json[i] = i == 0 ? '{' : (char)(x >> 32);
    }
    return (struct str){json, n};
}

static void grade(uint64_t id, uint32_t attempt, uint64_t seed, size_t n)
{
    struct store_change c = kit_done_change(id, attempt, (int)(seed % 101));
    c.results = results(seed, n);
    ck_status(kit_status(&k, &c), STORE_OK);
}

static void again(uint64_t id)
{
    ck_status(kit_status(&k, &(struct store_change){.kind = CHANGE_REPORT_UPDATE,
                                                    .workspace = w,
                                                    .id = id,
                                                    .fields = CHANGE_REGENERATE}),
              STORE_OK);
}

static void expect_results(struct str got, uint64_t seed, size_t n)
{
    ck_assert_uint_eq(got.n, n);
    ck_assert(memcmp(got.p, results(seed, n).p, n) == 0);
}

static void expect(uint64_t id, uint64_t seed, size_t n)
{
    struct store_report r;
    ck_status(kit_report(k.s, w, id, &r), STORE_OK);
    expect_results(r.results, seed, n);
}

static size_t rows(enum db db)
{
    MDB_txn *txn;
    MDB_stat stat;
    store_read_end(k.s);
    ck_status(store_snapshot(k.s, &txn), STORE_OK);
    ck_assert_int_eq(mdb_stat(txn, k.s->dbi[db], &stat), 0);
    store_read_end(k.s);
    return stat.ms_entries;
}

/* ---- results ---- */

/* Columns: bytes, number of parts. */
static const struct {
    size_t n, pieces;
} sizes[] = {
    {2, 1},    {2037, 1}, {2038, 1}, {2039, 1}, {2040, 1}, {4079, 1},  {4080, 1},
    {4081, 2}, {4096, 2}, {8158, 2}, {8159, 3}, {8160, 3}, {12240, 4}, {30000, 8},
};
#define SIZES (sizeof(sizes) / sizeof(*sizes))

START_TEST(results_of_any_size_read_back_and_are_deleted_whole)
{
    size_t n = sizes[_i].n;
    uint64_t id = kit_create(&k, w, "https://a.com/", "a.com"),
             beside = kit_create(&k, w, "https://a.com/2", "a.com");
    grade(id, 1, 1, n);
    grade(beside, 1, 2, 5000);
    ck_assert_uint_eq(rows(DB_RESULT), sizes[_i].pieces + 2);
    for (int i = 0; i < 2; i++) { /* and twice within a snapshot */
        expect(id, 1, n);
        expect(beside, 2, 5000);
    }
    kit_check_clean(k.s);
    kit_reopen(&k);
    expect(id, 1, n);
    store_read_end(k.s);
    ck_status(
        kit_status(&k,
                   &(struct store_change){.kind = CHANGE_REPORT_DELETE, .workspace = w, .id = id}),
        STORE_OK);
    ck_assert_uint_eq(rows(DB_RESULT), 2);
    expect(beside, 2, 5000);
    kit_check_clean(k.s);
}
END_TEST

/* ---- compressed results ---- */

static struct str findings(size_t entries)
{
    size_t n = 0;
    for (size_t i = 0; i < entries; i++)
        n += (size_t)snprintf(json + n, sizeof(json) - n,
                              "%c\"title\":{\"category\":\"seo\",\"importance\":\"high\","
                              "\"passed\":false,\"value\":%zu,\"details\":[\"%zx\"]}",
                              i == 0 ? '{' : ',', i, (i + 1) * 0x9e3779b97f4a7c15);
    json[n++] = '}';
    return (struct str){json, n};
}

static MDB_val first_row(MDB_txn **txn, uint64_t id)
{
    struct key key;
    MDB_val v;
    ck_status(store_snapshot(k.s, txn), STORE_OK);
    key_id(&key, SPACE_RESULT, id);
    ck_status(store_get(k.s, *txn, SPACE_RESULT, &key, &v), STORE_OK);
    return v;
}

START_TEST(similar_results_are_compressed_and_read_back)
{
    size_t entries = _i == 0 ? 30 : 500; /* contiguous; in several parts */
    uint64_t id = kit_create(&k, w, "https://a.com/", "a.com");
    struct store_change c = kit_done_change(id, 1, 50);
    struct store_report r;
    MDB_txn *txn;
    c.results = findings(entries);
    ck_status(kit_status(&k, &c), STORE_OK);
    for (int i = 0; i < 2; i++) {
        ck_status(kit_report(k.s, w, id, &r), STORE_OK);
        ck_assert(str_eq(r.results, findings(entries)));
        store_read_end(k.s);
        kit_reopen(&k);
    }
    size_t bytes = first_row(&txn, id).mv_size;
    ck_assert_uint_lt(_i == 0 ? bytes : rows(DB_RESULT) * PIECE, findings(entries).n / 2);
    ck_assert(_i == 0 || rows(DB_RESULT) > 1);
    store_read_end(k.s);
    kit_check_clean(k.s);
}
END_TEST

/*
 * Results packed with another dictionary cannot be read: a change of it changes the layout.
 *
 * Cause of the bug: the dictionary changed and layout 4 stayed, so after an upgrade all graded
 * reports were answered with 500.
 */
START_TEST(the_compression_dictionary_belongs_to_the_layout)
{
    uint64_t sum = 0xcbf29ce484222325;
    for (size_t i = 0; i < result_dictionary.n; i++)
        sum = (sum ^ (uint8_t)result_dictionary.p[i]) * 0x100000001b3;
    ck_assert_uint_eq(STORE_LAYOUT, 9);
    ck_assert_uint_eq(result_dictionary.n, 12226);
    ck_assert_uint_eq(sum, 0x90b51562bd11dbc3);
}
END_TEST

START_TEST(findings_that_are_not_an_object_or_too_long_are_refused)
{
    static char spaces[STORE_RESULTS_MAX + 1];
    uint64_t id = kit_create(&k, w, "https://a.com/", "a.com");
    struct store_change c = kit_done_change(id, 1, 50);
    memset(spaces, ' ', sizeof(spaces));
    spaces[0] = '{';
    const struct str bad[] = {
        STR("\1zq"), STR("\2\x28\xb5\x2f\xfd"), STR("\0{}"), STR("[]"), {spaces, sizeof(spaces)}};
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
        c.results = bad[i];
        ck_status(kit_status(&k, &c), STORE_INVALID);
    }
    c.results = (struct str){spaces, STORE_RESULTS_MAX};
    ck_status(kit_status(&k, &c), STORE_OK);
    struct store_report r;
    ck_status(kit_report(k.s, w, id, &r), STORE_OK);
    ck_assert(str_eq(r.results, c.results));
}
END_TEST

/* Each flipped byte gives another result or an error, and nothing else. */
START_TEST(damaged_compressed_results_are_reported)
{
    uint64_t id = kit_create(&k, w, "https://a.com/", "a.com");
    struct store_change c = kit_done_change(id, 1, 50);
    struct str was = c.results = findings(20);
    struct key key;
    MDB_txn *txn;
    char packed[PIECE];
    unsigned reported = 0;
    ck_status(kit_status(&k, &c), STORE_OK);
    MDB_val v = first_row(&txn, id);
    size_t n = v.mv_size;
    memcpy(packed, v.mv_data, n);
    store_read_end(k.s);
    key_id(&key, SPACE_RESULT, id);
    for (size_t i = 1; i <= n; i++) {
        struct store_txn *t;
        struct store_report r;
        ck_status(store_begin(k.s, &t), STORE_OK);
        if (i < n)
            packed[i] ^= 0x55;
        txn_put(t, SPACE_RESULT, &key, packed, i < n ? n : n / 2);
        ck_status(store_commit(t), STORE_OK);
        if (i < n)
            packed[i] ^= 0x55;
        enum store_status status = kit_report(k.s, w, id, &r);
        ck_assert(status == STORE_CORRUPT || (status == STORE_OK && str_eq(r.results, was)));
        reported += status == STORE_CORRUPT;
        store_read_end(k.s);
    }
    ck_assert_uint_gt(reported, n - 8);
}
END_TEST

START_TEST(regrading_leaves_no_old_result)
{
    size_t n = sizes[_i].n;
    uint64_t id = kit_create(&k, w, "https://a.com/", "a.com");
    uint32_t attempt = 1;
    grade(id, attempt++, 0, n);
    for (size_t i = 0; i < SIZES; i++) {
        again(id);
        expect(id, i == 0 ? 0 : i, i == 0 ? n : sizes[i - 1].n); /* until it is graded */
        grade(id, attempt++, i + 1, sizes[i].n);
        expect(id, i + 1, sizes[i].n);
        ck_assert_uint_eq(rows(DB_RESULT), sizes[i].pieces);
    }
    again(id);
    grade(id, attempt, 99, n);
    expect(id, 99, n);
    ck_assert_uint_eq(rows(DB_RESULT), sizes[_i].pieces);
    kit_check_clean(k.s);
}
END_TEST

START_TEST(a_list_with_results_has_complete_results)
{
    for (size_t i = 0; i < SIZES; i++)
        grade(kit_create(&k, w, "https://a.com/", "a.com"), 1, i, sizes[i].n);
    struct kit_list l = kit_reports(
        k.s,
        &(struct store_list_query){
            .workspace = w, .page = 1, .per_page = 50, .ascending = true, .with_results = true});
    ck_assert_uint_eq(l.count, SIZES);
    for (size_t i = 0; i < SIZES; i++)
        expect_results(l.reports[i].results, i, sizes[i].n);
    expect(1, 0, sizes[0].n);
    for (size_t i = 0; i < SIZES; i++) /* and they stay while others are read */
        expect_results(l.reports[i].results, i, sizes[i].n);
    store_read_end(k.s);
}
END_TEST

START_TEST(deleting_a_project_deletes_every_result_part)
{
    for (size_t i = 0; i < SIZES; i++)
        grade(kit_create(&k, w, "https://a.com/", "a.com"), 1, i, sizes[i].n);
    ck_status(
        kit_status(&k,
                   &(struct store_change){.kind = CHANGE_PROJECT_DELETE, .workspace = w, .id = 1}),
        STORE_OK);
    kit_purge(&k, 3);
    ck_assert_uint_eq(rows(DB_RESULT), 0);
    kit_check_clean(k.s);
}
END_TEST

START_TEST(the_check_finds_orphan_result_parts)
{
    struct store_txn *t;
    struct key key;
    uint64_t id = kit_create(&k, w, "https://a.com/", "a.com");
    struct str one = results(3, 2);
    grade(id, 1, 4, 9000);
    ck_status(store_begin(k.s, &t), STORE_OK);
    key_id(&key, SPACE_RESULT, id);
    txn_put(t, SPACE_RESULT, &key, one.p, one.n);
    ck_status(store_commit(t), STORE_OK);
    ck_assert_uint_gt(kit_problems(k.s), 0);
    ck_assert_msg(strstr(kit_problem, "without the one before it") != NULL, "%s", kit_problem);
}
END_TEST

/* ---- the in-memory tail ---- */

#define LONG 500
#define LONG_BYTES 2000
#define LONGEST_BYTES 8192

static char url[LONGEST_BYTES + 1];

static const char *url_of(unsigned i, size_t n)
{
    memset(url, 'x', n);
    url[n] = '\0';
    int head = snprintf(url, sizeof(url), "https://a.com/%05u/", i);
    url[head] = 'y';
    return url;
}

static void create(struct store_txn *t, unsigned i, size_t n)
{
    struct store_answer a;
    struct store_change c = kit_create_change(w, url_of(i, n), i % 2 ? "a.com" : "b.com");
    store_apply(t, &c, k.now, &a);
    ck_status(a.status, STORE_OK);
}

static void expect_lists(uint64_t count)
{
    struct store_list_query q = {
        .workspace = w, .sort = REPORT_BY_URL, .ascending = true, .page = 1, .per_page = 1000};
    struct kit_list l = kit_reports(k.s, &q);
    ck_assert_uint_eq(l.total, count);
    ck_assert_uint_eq(l.count, count);
    for (unsigned i = 0; i < count; i++)
        ck_assert(
            str_eq(l.reports[i].url, str_of(url_of(i, i == LONG ? LONGEST_BYTES : LONG_BYTES))));
    q.search = STR("/00123/yx");
    ck_assert_uint_eq(kit_reports(k.s, &q).total, 1);
    q.search = STR("XXXXXXXX");
    ck_assert_uint_eq(kit_reports(k.s, &q).total, count);
    store_read_end(k.s);
    kit_check_clean(k.s);
}

/* How many records the tail has, and how many of them exceed a page. */
static size_t log_records(size_t *longer)
{
    MDB_txn *txn;
    struct cursor walk = {0};
    size_t count = 0;
    *longer = 0;
    store_read_end(k.s);
    ck_status(store_snapshot(k.s, &txn), STORE_OK);
    enum store_status status = cursor_begin(k.s, txn, &walk, SPACE_LOG);
    for (; status == STORE_OK; status = cursor_next(&walk), count++)
        *longer += walk.v.mv_size > PIECE;
    cursor_end(&walk);
    store_read_end(k.s);
    return count;
}

START_TEST(a_tail_of_long_urls_is_split_by_page_and_listed_whole)
{
    struct store_txn *t;
    size_t longer;
    kit_segment_rows = 200;
    kit_ngram_block_shift = 6;
    kit_log_entries = 20;
    kit_reopen(&k);
    ck_status(store_begin(k.s, &t), STORE_OK);
    for (unsigned i = 0; i < LONG; i++)
        create(t, i, LONG_BYTES);
    create(t, LONG, LONGEST_BYTES);
    ck_status(store_commit(t), STORE_OK);
    ck_assert_uint_ge(log_records(&longer), LONG / 2);
    ck_assert_uint_eq(longer, 1); /* of that URL */
    expect_lists(LONG + 1);
    kit_reopen(&k);
    expect_lists(LONG + 1);
    kit_purge(&k, 100);
    ck_assert_uint_eq(log_records(&longer), 0);
    expect_lists(LONG + 1);
}
END_TEST

START_TEST(the_longest_url_has_a_record_by_itself)
{
    struct store_txn *t;
    size_t longer;
    ck_status(store_begin(k.s, &t), STORE_OK);
    for (unsigned i = 0; i < 9; i++)
        create(t, i, i == (unsigned)_i * 4 ? LONGEST_BYTES : 30);
    ck_status(store_commit(t), STORE_OK);
    ck_assert_uint_eq(log_records(&longer), _i == 1 ? 3 : 2);
    ck_assert_uint_eq(longer, 1);
    ck_assert_uint_eq(kit_reports(k.s, &(struct store_list_query){.workspace = w,
                                                                  .search = STR("/a.com/"),
                                                                  .page = 1,
                                                                  .per_page = 50})
                          .total,
                      9);
    kit_check_clean(k.s);
}
END_TEST

/* URLs of every length around the one at which two of them, with a head, fill a record. */
START_TEST(records_filled_to_the_byte_are_complete)
{
    enum { FROM = 1990, TO = 2040 };
    uint64_t count = 0;
    size_t longer;
    for (size_t n = FROM; n < TO; n++, count += 2) {
        struct store_txn *t;
        ck_status(store_begin(k.s, &t), STORE_OK);
        create(t, (unsigned)count, n);
        create(t, (unsigned)count + 1, n);
        ck_status(store_commit(t), STORE_OK);
    }
    size_t records = log_records(&longer);
    ck_assert_uint_eq(longer, 0);
    ck_assert_uint_gt(records, TO - FROM);       /* some were two */
    ck_assert_uint_lt(records, 2 * (TO - FROM)); /* and some one */
    ck_assert_uint_eq(kit_reports(k.s, &(struct store_list_query){.workspace = w,
                                                                  .search = STR("/yx"),
                                                                  .page = 1,
                                                                  .per_page = 50})
                          .total,
                      count);
    kit_check_clean(k.s);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("store_pieces");
    TCase *tc = tcase_create("results");
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_set_timeout(tc, 60);
    tcase_add_loop_test(tc, similar_results_are_compressed_and_read_back, 0, 2);
    tcase_add_test(tc, the_compression_dictionary_belongs_to_the_layout);
    tcase_add_test(tc, findings_that_are_not_an_object_or_too_long_are_refused);
    tcase_add_test(tc, damaged_compressed_results_are_reported);
    tcase_add_loop_test(tc, results_of_any_size_read_back_and_are_deleted_whole, 0, (int)SIZES);
    tcase_add_loop_test(tc, regrading_leaves_no_old_result, 0, (int)SIZES);
    tcase_add_test(tc, a_list_with_results_has_complete_results);
    tcase_add_test(tc, deleting_a_project_deletes_every_result_part);
    tcase_add_test(tc, the_check_finds_orphan_result_parts);
    tcase_add_test(tc, a_tail_of_long_urls_is_split_by_page_and_listed_whole);
    tcase_add_loop_test(tc, the_longest_url_has_a_record_by_itself, 0, 3);
    tcase_add_test(tc, records_filled_to_the_byte_are_complete);
    suite_add_tcase(suite, tc);
    return kit_run(suite);
}
