/* Lists: every sort, filter and page in the documented order; URLs longer than any key; search. */
#include "t/kit/store_fixtures.h"

static void expect(const struct store_list_query *q, const char *ids)
{
    char got[2048] = "";
    struct kit_list l = kit_reports(k.s, q);
    ck_status(l.status, STORE_OK);
    for (size_t i = 0; i < l.count; i++) {
        size_t n = strlen(got);
        snprintf(got + n, sizeof(got) - n, "%s%llu", i == 0 ? "" : " ",
                 (unsigned long long)l.reports[i].id);
    }
    ck_assert_str_eq(got, ids);
    ck_assert_uint_eq(l.total, l.count);
    store_read_end(k.s);
}

/*
 * Seven reports: 1 and 2 good, 3 decent, 4 bad, 5 failed, 6 pending, 7 good again; dates in the
 * order 3 1 2 4 7.
 */
static void seven(void)
{
    static const char *const urls[] = {"https://b.com/z",     "https://a.com/", "https://a.com/B",
                                       "https://b.com/a?q=1", "http://c.com/",  "https://a.com/",
                                       "https://b.com/z"};
    static const char *const projects[] = {"b.com", "a.com", "a.com", "b.com",
                                           "c.com", "a.com", "b.com"};
    static const struct {
        uint64_t id;
        int score;
    } done[] = {{3, 60}, {1, 90}, {2, 80}, {4, 5}, {7, 90}};
    for (int i = 0; i < 7; i++)
        ck_assert_uint_eq(kit_create(&k, w, urls[i], projects[i]), (uint64_t)i + 1);
    for (size_t i = 0; i < 5; i++) {
        k.now += 1000;
        kit_done(&k, done[i].id, 1, done[i].score);
    }
    struct store_change c = kit_failed_change(5, 1);
    ck_status(kit_status(&k, &c), STORE_OK);
}

/* Columns: sort, ascending, result, project (by number), the ids in order. */
static const struct {
    unsigned sort;
    bool ascending;
    enum report_result result;
    uint64_t project;
    const char *ids;
} lists[] = {
    {REPORT_BY_ID, true, 0, 0, "1 2 3 4 5 6 7"},
    {REPORT_BY_ID, false, 0, 0, "7 6 5 4 3 2 1"},
    {REPORT_BY_SCORE, true, 0, 0, "5 6 4 3 2 1 7"},
    {REPORT_BY_SCORE, false, 0, 0, "7 1 2 3 4 6 5"},
    {REPORT_BY_GENERATED_AT, true, 0, 0, "5 6 3 1 2 4 7"},
    {REPORT_BY_GENERATED_AT, false, 0, 0, "7 4 2 1 3 6 5"},
    {REPORT_BY_URL, true, 0, 0, "5 2 6 3 4 1 7"},
    {REPORT_BY_URL, false, 0, 0, "7 1 4 3 6 2 5"},
    {REPORT_BY_ID, true, RESULT_GOOD, 0, "1 2 7"},
    {REPORT_BY_SCORE, false, RESULT_GOOD, 0, "7 1 2"},
    {REPORT_BY_URL, true, RESULT_GOOD, 0, "2 1 7"},
    {REPORT_BY_GENERATED_AT, true, RESULT_DECENT, 0, "3"},
    {REPORT_BY_ID, true, RESULT_BAD, 0, "4"},
    {REPORT_BY_ID, false, 0, 1, "7 4 1"},
    {REPORT_BY_SCORE, true, 0, 2, "6 3 2"},
    {REPORT_BY_URL, false, 0, 2, "3 6 2"},
    {REPORT_BY_GENERATED_AT, false, 0, 2, "2 3 6"},
    {REPORT_BY_URL, true, RESULT_GOOD, 1, "1 7"},
    {REPORT_BY_SCORE, true, RESULT_BAD, 2, ""},
    {REPORT_BY_ID, true, 0, 99, ""},
};

START_TEST(a_list_is_sorted_and_filtered)
{
    seven();
    struct store_list_query q = query(lists[_i].sort, lists[_i].ascending);
    q.result = lists[_i].result;
    q.project = lists[_i].project;
    expect(&q, lists[_i].ids);
}
END_TEST

/* Columns: status (0: all), result, project, the ids in order. */
static const struct {
    unsigned status;
    enum report_result result;
    uint64_t project;
    const char *ids;
} by_status[] = {
    {1 + REPORT_PENDING, 0, 0, "6"},         {1 + REPORT_DONE, 0, 0, "1 2 3 4 7"},
    {1 + REPORT_FAILED, 0, 0, "5"},          {1 + REPORT_DONE, RESULT_GOOD, 0, "1 2 7"},
    {1 + REPORT_FAILED, RESULT_GOOD, 0, ""}, {1 + REPORT_DONE, 0, 2, "2 3"},
    {1 + REPORT_PENDING, 0, 2, "6"},
};

START_TEST(a_status_filter_works_before_and_after_a_merge)
{
    kit_log_entries = 4;
    kit_reopen(&k);
    seven();
    struct store_list_query q = query(REPORT_BY_ID, true);
    q.status = by_status[_i].status;
    q.result = by_status[_i].result;
    q.project = by_status[_i].project;
    expect(&q, by_status[_i].ids);
    kit_purge(&k, 100);
    expect(&q, by_status[_i].ids);
    kit_log_entries = 0;
}
END_TEST

START_TEST(pages_of_any_size_join_to_the_whole_list)
{
    seven();
    for (unsigned sort = REPORT_BY_ID; sort <= REPORT_BY_SCORE; sort++) {
        for (unsigned per_page = 1; per_page <= 8; per_page++) {
            uint64_t whole[7];
            struct store_list_query q = query(sort, false);
            struct kit_list l = kit_reports(k.s, &q);
            ck_assert_uint_eq(l.count, 7);
            for (size_t i = 0; i < 7; i++)
                whole[i] = l.reports[i].id;
            q.per_page = per_page;
            size_t at = 0;
            for (q.page = 1; at < 7; q.page++) {
                l = kit_reports(k.s, &q);
                ck_assert_uint_eq(l.total, 7);
                ck_assert_uint_gt(l.count, 0);
                for (size_t i = 0; i < l.count; i++)
                    ck_assert_uint_eq(l.reports[i].id, whole[at++]);
            }
            l = kit_reports(k.s, &q);
            ck_assert_uint_eq(l.count, 0);
            ck_assert_uint_eq(l.total, 7);
            store_read_end(k.s);
        }
    }
}
END_TEST

START_TEST(a_page_past_the_end_is_empty_with_the_right_total)
{
    seven();
    struct store_list_query q = query(REPORT_BY_URL, true);
    q.page = UINT64_MAX;
    struct kit_list l = kit_reports(k.s, &q);
    ck_status(l.status, STORE_OK);
    ck_assert_uint_eq(l.count, 0);
    ck_assert_uint_eq(l.total, 7);
    q.search = STR("a.com");
    l = kit_reports(k.s, &q);
    ck_assert_uint_eq(l.count, 0);
    ck_assert_uint_eq(l.total, 3);
    q.sort = 4;
    ck_status(kit_reports(k.s, &q).status, STORE_INVALID);
    q = query(2, true);
    ck_status(kit_projects(k.s, &q).status, STORE_INVALID);
    q = query(REPORT_BY_ID, true);
    q.workspace = 99;
    l = kit_reports(k.s, &q);
    ck_status(l.status, STORE_OK);
    ck_assert_uint_eq(l.total, 0);
}
END_TEST

START_TEST(items_have_results_only_on_request)
{
    seven();
    struct store_list_query q = query(REPORT_BY_ID, true);
    ck_assert_uint_eq(kit_reports(k.s, &q).reports[0].results.n, 0);
    q.with_results = true;
    struct kit_list l = kit_reports(k.s, &q);
    ck_assert(str_eq(l.reports[0].results, STR("{\"title\":{}}")));
    ck_assert_uint_eq(l.reports[5].results.n, 0);
}
END_TEST

/* Columns: pattern, the ids in order. */
static const struct {
    const char *pattern, *ids;
} searches[] = {
    {"a.com", "2 3 6"},
    {"A.COM/b", "3"},
    {"/z", "1 7"},
    {"%", ""},
    {"_", ""},
    {"http", "1 2 3 4 5 6 7"},
    {"http:", "5"},
    {"?q=1", "4"},
    {"q=11", ""},
    {"https://b.com/a?q=1", "4"},
    {"https://b.com/a?q=12", ""},
};

START_TEST(a_search_finds_substrings_in_any_case_with_an_exact_total)
{
    seven();
    struct store_list_query q = query(REPORT_BY_ID, true);
    q.search = str_of(searches[_i].pattern);
    expect(&q, searches[_i].ids);
    for (unsigned sort = REPORT_BY_ID; sort <= REPORT_BY_SCORE; sort++) {
        struct store_list_query one = query(sort, false);
        one.search = q.search;
        uint64_t total = kit_reports(k.s, &q).total;
        one.per_page = 1;
        struct kit_list l = kit_reports(k.s, &one);
        ck_assert_uint_eq(l.total, total);
        ck_assert_uint_eq(l.count, total == 0 ? 0 : 1);
    }
}
END_TEST

START_TEST(a_search_finds_patterns_up_to_200_bytes_at_any_position)
{
    enum { URLS = 130, MOST = 200 };
    static char urls[URLS][300];
    kit_segment_rows = 64; /* some in segments, some in the tail */
    kit_ngram_block_shift = 6;
    kit_log_entries = 8;
    kit_reopen(&k);
    for (unsigned i = 0; i < URLS; i++) {
        size_t n = (size_t)snprintf(urls[i], sizeof(urls[i]), "https://a.com/%u/", i % 9);
        while (n < 260)
            n += (size_t)snprintf(urls[i] + n, sizeof(urls[i]) - n, "%s%u", n % 3 ? "Word-" : "q/",
                                  (unsigned)(i * 31 + n) % 40);
        kit_create(&k, w, urls[i], "a.com");
        if (i == 100)
            kit_purge(&k, 100);
    }
    struct store_list_query q = query(REPORT_BY_URL, true);
    for (unsigned n = 1; n <= MOST; n++) {
        char pattern[MOST + 1];
        unsigned from = n * 7 % (260 - MOST), total = 0;
        memcpy(pattern, urls[n % URLS] + from, n);
        pattern[n] = '\0';
        pattern[n / 2] ^= pattern[n / 2] >= 'a' && pattern[n / 2] <= 'z' ? 0x20 : 0;
        for (unsigned i = 0; i < URLS; i++)
            total += strcasestr(urls[i], pattern) != NULL;
        q.search = str_of(pattern);
        ck_assert_uint_ge(total, 1);
        ck_assert_uint_eq(kit_reports(k.s, &q).total, total);
        store_read_end(k.s);
        pattern[n - 1] = '~';
        ck_assert_uint_eq(kit_reports(k.s, &q).total, 0);
        store_read_end(k.s);
    }
    kit_segment_rows = kit_ngram_block_shift = kit_log_entries = 0;
}
END_TEST

START_TEST(a_search_combines_with_filters)
{
    seven();
    struct store_list_query q = query(REPORT_BY_SCORE, false);
    q.search = STR("COM");
    q.result = RESULT_GOOD;
    expect(&q, "7 1 2");
    q.project = 1;
    expect(&q, "7 1");
}
END_TEST

START_TEST(a_percent_and_an_underscore_are_literal)
{
    kit_create(&k, w, "https://a.com/x%20y", "a.com");
    kit_create(&k, w, "https://a.com/x_y", "a.com");
    kit_create(&k, w, "https://a.com/xzy", "a.com");
    struct store_list_query q = query(REPORT_BY_ID, true);
    q.search = STR("x_y");
    expect(&q, "2");
    q.search = STR("%");
    expect(&q, "1");
    char pattern[600];
    memset(pattern, 'a', sizeof(pattern));
    q.search = (struct str){pattern, sizeof(pattern)};
    expect(&q, "");
}
END_TEST

/* ---- URLs longer than a key ---- */

#define LONG 60

static char long_urls[LONG][8300];

static int by_url(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    int order = strcmp(long_urls[x - 1], long_urls[y - 1]);
    return order != 0 ? order : x < y ? -1 : x > y;
}

/*
 * Lengths on both sides of every truncation, many equal up to the last letter, some equal
 * altogether.
 */
static void make_long(int i)
{
    static const size_t lengths[] = {30, 439, 440, 441, 442, 879, 880, 881, 1319, 1321, 2048, 8192};
    size_t n = lengths[(size_t)i % 12];
    char *url = long_urls[i];
    memset(url, 'a', n);
    memcpy(url, "https://a.com/", 14);
    if (i % 5 != 0)
        url[n - 1] = (char)('!' + i % 90);
    if (i % 7 == 3 && n > 500)
        url[470] = 'b';
    url[n] = '\0';
}

START_TEST(the_order_by_url_is_right_for_long_urls)
{
    uint64_t ids[LONG];
    for (int i = 0; i < LONG; i++) {
        make_long(i);
        ids[i] = kit_create(&k, w, long_urls[i], "a.com");
        if (i % 3 == 0)
            kit_done(&k, ids[i], 1, i);
    }
    qsort(ids, LONG, sizeof(*ids), by_url);
    for (int project = 0; project < 2; project++) {
        struct store_list_query q = query(REPORT_BY_URL, true);
        q.project = (uint64_t)project;
        struct kit_list up = kit_reports(k.s, &q);
        ck_assert_uint_eq(up.count, LONG);
        for (size_t i = 0; i < LONG; i++)
            ck_assert_uint_eq(up.reports[i].id, ids[i]);
        q.ascending = false;
        struct kit_list down = kit_reports(k.s, &q);
        for (size_t i = 0; i < LONG; i++)
            ck_assert_uint_eq(down.reports[i].id, ids[LONG - 1 - i]);
        q.search = STR("AAAB");
        q.ascending = true;
        struct kit_list found = kit_reports(k.s, &q);
        ck_assert_uint_gt(found.count, 0);
        for (size_t i = 0; i < found.count; i++)
            ck_assert_ptr_nonnull(strcasestr(long_urls[found.reports[i].id - 1], "aaab"));
        store_read_end(k.s);
    }
    kit_check_clean(k.s);
    for (size_t i = 0; i < LONG; i++) {
        struct store_change c = {.kind = CHANGE_REPORT_DELETE, .workspace = w, .id = ids[i]};
        ck_status(kit_status(&k, &c), STORE_OK);
        if (i % 10 == 0)
            kit_check_clean(k.s);
    }
    kit_check_clean(k.s);
}
END_TEST

START_TEST(a_url_too_long_for_the_store_is_refused)
{
    char url[8300];
    memset(url, 'a', sizeof(url));
    struct store_change c = kit_create_change(w, "", "a.com");
    c.url = (struct str){url, 8193};
    ck_status(kit_status(&k, &c), STORE_INVALID);
    c.url.n = 8192;
    ck_status(kit_status(&k, &c), STORE_OK);
}
END_TEST

START_TEST(a_list_has_no_rows_of_another_workspace)
{
    uint64_t other = kit_workspace(&k, "other");
    seven();
    kit_create(&k, other, "https://a.com/", "a.com");
    struct store_list_query q = query(REPORT_BY_URL, true);
    q.workspace = other;
    expect(&q, "8");
    q.project = 1;
    expect(&q, "");
    q.project = 0;
    q.sort = PROJECT_BY_NAME;
    struct kit_list l = kit_projects(k.s, &q);
    ck_assert_uint_eq(l.count, 1);
    ck_assert(str_eq(l.projects[0].name, STR("a.com")));
    store_read_end(k.s);
}
END_TEST

START_TEST(one_snapshot_reads_alike_and_a_new_one_sees_changes)
{
    seven();
    struct store_list_query q = query(REPORT_BY_ID, false);
    struct kit_list l = kit_reports(k.s, &q);
    ck_assert_uint_eq(l.total, 7);
    const char *url = l.reports[6].url.p;
    struct store_txn *t;
    struct store_answer a;
    struct store_change c = kit_create_change(w, "https://d.com/", "d.com");
    ck_status(store_begin(k.s, &t), STORE_OK);
    store_apply(t, &c, k.now, &a);
    ck_status(store_commit(t), STORE_OK);
    ck_assert(memcmp(url, "https://b.com/z", 15) == 0);
    ck_assert_uint_eq(kit_reports(k.s, &q).total, 7);
    ck_status(kit_report(k.s, w, a.id, NULL), STORE_NOT_FOUND);
    store_read_end(k.s);
    ck_assert_uint_eq(kit_reports(k.s, &q).total, 8);
    ck_status(kit_report(k.s, w, a.id, NULL), STORE_OK);
}
END_TEST

#define COUNT(a) ((int)(sizeof(a) / sizeof(*(a))))

static uint64_t rated(enum report_result result)
{
    struct store_list_query q = query(REPORT_BY_ID, true);
    q.result = result;
    uint64_t total = kit_reports(k.s, &q).total;
    store_read_end(k.s);
    return total;
}

static bool one_step(void)
{
    return kit_status(&k, &(struct store_change){.kind = CHANGE_PURGE, .limit = 10}) == STORE_OK;
}

START_TEST(new_bounds_reclassify_every_result_and_resume)
{
    struct store_report r;
    struct store_maintenance_status maintenance;
    enum { REPORTS = 1700 };
    for (int i = 0; i < REPORTS; i++)
        kit_done(&k, kit_create(&k, w, "https://a.com/x", i % 2 ? "a.com" : "b.com"), 1, i % 100);
    kit_create(&k, w, "https://c.com/pending", "c.com");
    uint64_t dying = kit_create(&k, w, "https://d.com/", "d.com");
    kit_done(&k, dying, 1, 85);
    struct store_project p;
    ck_status(kit_project(k.s, w, "d.com", &p), STORE_OK);
    ck_status(
        kit_status(
            &k, &(struct store_change){.kind = CHANGE_PROJECT_DELETE, .workspace = w, .id = p.id}),
        STORE_OK);
    ck_assert_uint_eq(rated(RESULT_GOOD), REPORTS / 100 * 20);
    kit_purge(&k, 10);
    kit_good = 90;
    kit_decent = 10;
    kit_reopen(&k);
    ck_assert(one_step()); /* 500 of them */
    ck_status(store_maintenance_status(k.s, &maintenance), STORE_OK);
    ck_assert_str_eq(maintenance.what, "rating");
    ck_assert_uint_eq(maintenance.done, 500);
    store_read_end(k.s);
    ck_assert_uint_eq(rated(RESULT_GOOD), 5 * 10 + 12 * 20);
    kit_check_clean(k.s);
    kit_reopen(&k);
    kit_purge(&k, 10);
    ck_assert_uint_eq(rated(RESULT_GOOD), REPORTS / 100 * 10);
    ck_assert_uint_eq(rated(RESULT_DECENT), REPORTS / 100 * 80);
    ck_assert_uint_eq(rated(RESULT_BAD), REPORTS / 100 * 10);
    ck_status(kit_report(k.s, w, 86, &r), STORE_OK);
    ck_assert_int_eq(r.result, RESULT_DECENT);
    ck_assert_uint_eq(r.version, 3); /* another record for its readers */
    kit_check_clean(k.s);
    kit_reopen(&k);
    ck_assert(!one_step());
    ck_status(store_maintenance_status(k.s, &maintenance), STORE_OK);
    ck_assert_str_eq(maintenance.what, "");
    kit_good = kit_decent = 0;
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("store_lists");
    TCase *tc = tcase_create("lists");
    tcase_add_checked_fixture(tc, workspace_setup, store_teardown);
    tcase_set_timeout(tc, 60);
    tcase_add_loop_test(tc, a_list_is_sorted_and_filtered, 0, COUNT(lists));
    tcase_add_loop_test(tc, a_status_filter_works_before_and_after_a_merge, 0,
                        (int)(sizeof(by_status) / sizeof(by_status[0])));
    tcase_add_test(tc, pages_of_any_size_join_to_the_whole_list);
    tcase_add_test(tc, a_page_past_the_end_is_empty_with_the_right_total);
    tcase_add_test(tc, items_have_results_only_on_request);
    tcase_add_loop_test(tc, a_search_finds_substrings_in_any_case_with_an_exact_total, 0,
                        COUNT(searches));
    tcase_add_test(tc, a_search_finds_patterns_up_to_200_bytes_at_any_position);
    tcase_add_test(tc, a_search_combines_with_filters);
    tcase_add_test(tc, a_percent_and_an_underscore_are_literal);
    tcase_add_test(tc, the_order_by_url_is_right_for_long_urls);
    tcase_add_test(tc, a_url_too_long_for_the_store_is_refused);
    tcase_add_test(tc, a_list_has_no_rows_of_another_workspace);
    tcase_add_test(tc, one_snapshot_reads_alike_and_a_new_one_sees_changes);
    tcase_add_test(tc, new_bounds_reclassify_every_result_and_resume);
    suite_add_tcase(suite, tc);
    return kit_run(suite);
}
