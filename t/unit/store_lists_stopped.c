/* A list that its stop function ends: when it starts again, it returns the same rows. */
#include "t/kit/store_fixtures.h"

#define COUNT(a) ((int)(sizeof(a) / sizeof(*(a))))

/* In one transaction. Each URL is unique; none is in the order of the numbers. */
static void create_many(unsigned from, unsigned to)
{
    char url[64];
    struct store_txn *t;
    struct store_answer a;
    ck_status(store_begin(k.s, &t), STORE_OK);
    for (unsigned i = from; i < to; i++) {
        snprintf(url, sizeof(url), "https://a.com/%u/%s", i * 7919 % 10007,
                 i % 3 == 0 ? "needle" : "hay");
        struct store_change create = kit_create_change(w, url, "a.com");
        store_apply(t, &create, k.now, &a);
        ck_status(a.status, STORE_OK);
        struct store_change done = kit_done_change(a.id, 1, (int)(i % 100));
        store_apply(t, &done, k.now, &a);
        ck_status(a.status, STORE_OK);
    }
    ck_status(store_commit(t), STORE_OK);
}

/*
 * Turns until the list is complete. Each one is stopped ${every} checks later than the one before.
 * Between two turns ${meanwhile} more reports arrive, and (${merging}) maintenance runs a step.
 */
static unsigned list_with_stops(const struct store_list_query *q, unsigned every, unsigned *reports,
                                unsigned arriving, bool merging, struct kit_list *out)
{
    struct kit_stop *stop = q->stop_arg;
    for (unsigned turns = 1;; turns++) {
        *stop = (struct kit_stop){.at = turns * every};
        *out = kit_reports(k.s, q);
        if (out->status != STORE_AGAIN) {
            ck_status(out->status, STORE_OK);
            return turns;
        }
        ck_assert_uint_lt(turns, 1000);
        ck_assert_uint_eq(stop->asked, stop->at);
        store_read_end(k.s);
        create_many(*reports, *reports + arriving);
        *reports += arriving;
        if (merging)
            kit_status(&k, &(struct store_change){.kind = CHANGE_PURGE, .limit = 10});
    }
}

/* How often it checks whether to stop. */
static unsigned checks_of(const struct store_list_query *q, struct kit_list *out)
{
    struct kit_stop *stop = q->stop_arg;
    *stop = (struct kit_stop){0};
    *out = kit_reports(k.s, q);
    ck_status(out->status, STORE_OK);
    return stop->asked;
}

/*
 * Columns: sort; pattern; by how many checks each stop is later; reports that arrive between two
 * turns, and are merged.
 */
static const struct {
    unsigned sort;
    const char *pattern;
    unsigned every, arriving;
    bool merging;
} stopped[] = {
    {REPORT_BY_ID, "", 1, 0, false},
    {REPORT_BY_URL, "", 1, 0, false},
    {REPORT_BY_URL, "needle", 1, 0, false},
    {REPORT_BY_SCORE, "eedl", 1, 0, false},
    {REPORT_BY_URL, "", 3, 1, true},
    {REPORT_BY_ID, "n", 4, 1, true},
    {REPORT_BY_URL, "needle", 3, 1, true},
    {REPORT_BY_SCORE, "", 3, 2, false},
    {REPORT_BY_GENERATED_AT, "needle", 3, 2, false},
};

START_TEST(a_list_stopped_at_any_point_restarts_with_the_same_rows)
{
    static const unsigned merged = 1500, tail = 2500, batch = 250;
    unsigned reports = 0;
    struct kit_stop stop = {0};
    struct kit_list l;
    kit_segment_rows = 512;
    kit_ngram_block_shift = 6;
    kit_log_entries = 8;
    kit_reopen(&k);
    for (; reports < merged + tail; reports += batch) {
        if (reports == merged)
            kit_purge(&k, 10);
        create_many(reports, reports + batch);
    }
    kit_reopen(&k);
    struct store_list_query q = {.workspace = w,
                                 .sort = stopped[_i].sort,
                                 .ascending = true,
                                 .search = str_of(stopped[_i].pattern),
                                 .page = 3,
                                 .per_page = 100,
                                 .stop = kit_stop,
                                 .stop_arg = &stop};
    unsigned checks = checks_of(&q, &l);
    /* at most one segment to verify or search, or eight items, between two checks */
    ck_assert_uint_ge(checks, 2 * (merged / 512) + l.count / 8);
    store_read_end(k.s);
    kit_reopen(&k);
    unsigned turns = list_with_stops(&q, stopped[_i].every, &reports, stopped[_i].arriving,
                                     stopped[_i].merging, &l);
    ck_assert_uint_gt(turns, 1);
    uint64_t ids[100], total = l.total;
    size_t count = l.count;
    ck_assert_uint_eq(total, stopped[_i].pattern[0] == '\0' ? reports : (reports + 2) / 3);
    for (size_t i = 0; i < count; i++)
        ids[i] = l.reports[i].id;
    store_read_end(k.s);
    if (!stopped[_i].merging) /* the matches are cached */
        ck_assert_uint_le(checks_of(&q, &l), 2 * (merged / 512 + 1) + l.count / 8);
    store_read_end(k.s);
    kit_reopen(&k);
    q.stop = NULL;
    l = kit_reports(k.s, &q);
    ck_assert_uint_eq(l.total, total);
    ck_assert_uint_eq(l.count, count);
    for (size_t i = 0; i < count; i++)
        ck_assert_uint_eq(l.reports[i].id, ids[i]);
    store_read_end(k.s);
    kit_check_clean(k.s);
    kit_segment_rows = kit_ngram_block_shift = kit_log_entries = 0;
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("store_lists_stopped");
    TCase *tc = tcase_create("stopped");
    tcase_add_checked_fixture(tc, workspace_setup, store_teardown);
    tcase_set_timeout(tc, 60);
    tcase_add_loop_test(tc, a_list_stopped_at_any_point_restarts_with_the_same_rows, 0,
                        COUNT(stopped));
    suite_add_tcase(suite, tc);
    return kit_run(suite);
}
