/*
 * The history of a report: a row for each grading with a score, the last hundred, deleted with the
 * report. A report without rows shows the grading of its record.
 */
#include "t/kit/store_gradings.h"

#include "store/engine/cursor.h"
#include "store/engine/snapshot.h"
#include "store/engine/txn.h"

/* ---- what a grading holds ---- */

START_TEST(a_grading_has_what_the_auditor_sent)
{
    uint64_t id = create();
    struct store_change c = kit_done_change(id, 1, 71);
    c.issues_high = 2;
    c.issues_medium = 3;
    c.issues_low = 4;
    c.issues_passed = 50;
    c.failed = STR("title h1 https");
    c.facts = (struct grading_facts){.http_status = 404,
                                     .ttfb_ms = 12,
                                     .load_ms = 345,
                                     .page_bytes = UINT64_C(1) << 40,
                                     .protocol = STR("HTTP/2"),
                                     .final_url = STR("https://www.a.com/"),
                                     .version = STR("1.2.3")};
    ck_status(kit_status(&k, &c), STORE_OK);
    struct kit_gradings g = list(id, 0, 10);
    ck_status(g.status, STORE_OK);
    ck_assert_uint_eq(g.count, 1);
    const struct store_grading *one = &g.items[0];
    ck_assert_uint_eq(one->number, 1);
    ck_assert_int_eq(one->score, 71);
    ck_assert_int_eq(one->result, RESULT_DECENT);
    ck_assert_uint_eq(one->issues_high, 2);
    ck_assert_uint_eq(one->issues_medium, 3);
    ck_assert_uint_eq(one->issues_low, 4);
    ck_assert_uint_eq(one->issues_passed, 50);
    ck_assert_int_eq(one->generated_at, k.now);
    ck_assert(str_eq(one->failed, STR("title h1 https")));
    ck_assert_uint_eq(one->facts.http_status, 404);
    ck_assert_uint_eq(one->facts.ttfb_ms, 12);
    ck_assert_uint_eq(one->facts.load_ms, 345);
    ck_assert_uint_eq(one->facts.page_bytes, UINT64_C(1) << 40);
    ck_assert(str_eq(one->facts.protocol, STR("HTTP/2")));
    ck_assert(str_eq(one->facts.final_url, STR("https://www.a.com/")));
    ck_assert(str_eq(one->facts.version, STR("1.2.3")));
    kit_check_clean(k.s);
}
END_TEST

START_TEST(the_reports_own_url_is_not_stored_again)
{
    uint64_t id = create();
    struct store_change c = kit_done_change(id, 1, 71);
    c.facts.final_url = STR("https://a.com/x");
    ck_status(kit_status(&k, &c), STORE_OK);
    ck_assert_uint_eq(list(id, 0, 1).items[0].facts.final_url.n, 0);
}
END_TEST

START_TEST(the_longest_texts_are_stored)
{
    char failed[STORE_FAILED_MAX], url[URL_MAX_BYTES];
    uint64_t id = create();
    struct store_change c = kit_done_change(id, 1, 71);
    memset(failed, 'x', sizeof(failed));
    memset(url, 'u', sizeof(url));
    c.failed = (struct str){failed, sizeof(failed)};
    c.facts = (struct grading_facts){.http_status = 999,
                                     .ttfb_ms = UINT32_MAX,
                                     .load_ms = UINT32_MAX,
                                     .page_bytes = UINT64_MAX,
                                     .protocol = {failed, STORE_PROTOCOL_MAX},
                                     .final_url = {url, sizeof(url)},
                                     .version = {failed, STORE_ASSAY_VERSION_MAX}};
    ck_status(kit_status(&k, &c), STORE_OK);
    struct kit_gradings g = list(id, 0, 1);
    ck_assert(str_eq(g.items[0].failed, c.failed));
    ck_assert(str_eq(g.items[0].facts.final_url, c.facts.final_url));
    ck_assert_uint_eq(g.items[0].facts.protocol.n, STORE_PROTOCOL_MAX);
    ck_assert_uint_eq(g.items[0].facts.version.n, STORE_ASSAY_VERSION_MAX);
    ck_assert_uint_eq(g.items[0].facts.ttfb_ms, UINT32_MAX);
    ck_assert_uint_eq(g.items[0].facts.page_bytes, UINT64_MAX);
    kit_check_clean(k.s);
}
END_TEST

static const char long_text[STORE_FAILED_MAX + 2] = {[0 ... STORE_FAILED_MAX] = 'x'};

/* Columns: failed, protocol, version, final URL: each may have ${n} bytes; status. */
static const struct {
    struct str failed, protocol, version, url;
    unsigned http_status;
} bad[] = {
    {.failed = {long_text, STORE_FAILED_MAX + 1}},
    {.failed = {"a  b", 4}},
    {.failed = {" a", 2}},
    {.failed = {"a ", 2}},
    {.failed = {" ", 1}},
    {.failed = {"a\nb", 3}},
    {.failed = {"\xc3\xa4", 2}},
    {.protocol = {long_text, STORE_PROTOCOL_MAX + 1}},
    {.protocol = {"HTTP 2", 6}},
    {.version = {long_text, STORE_ASSAY_VERSION_MAX + 1}},
    {.version = {"\x7f", 1}},
    {.url = {"https://a.com/ x", 16}},
    {.url = {"https://a.com/\0x", 16}},
    {.url = {"https://\xff/", 10}},
    {.http_status = 1000},
};

START_TEST(malformed_facts_are_refused)
{
    uint64_t id = create();
    struct store_change c = kit_done_change(id, 1, 71);
    c.failed = bad[_i].failed;
    c.facts.protocol = bad[_i].protocol;
    c.facts.version = bad[_i].version;
    c.facts.final_url = bad[_i].url;
    c.facts.http_status = bad[_i].http_status;
    ck_status(kit_status(&k, &c), STORE_INVALID);
    ck_assert_uint_eq(rows(), 0);
    kit_done(&k, id, 1, 71);
    ck_assert_uint_eq(rows(), 1);
}
END_TEST

START_TEST(a_change_carries_facts_and_failed_ids)
{
    struct buf wire = {0};
    struct store_change got, sent = kit_done_change(3, 4, 50);
    sent.facts.final_url = STR("https://b.com/");
    change_encode(&sent, &wire);
    ck_assert_uint_eq(wire.n, change_size(&sent));
    ck_assert(change_decode(buf_view(&wire), &got));
    ck_assert_uint_eq(got.facts.http_status, 200);
    ck_assert_uint_eq(got.facts.ttfb_ms, 30);
    ck_assert_uint_eq(got.facts.load_ms, 80);
    ck_assert_uint_eq(got.facts.page_bytes, 5000);
    ck_assert(str_eq(got.facts.protocol, STR("HTTP/1.1")));
    ck_assert(str_eq(got.facts.final_url, STR("https://b.com/")));
    ck_assert(str_eq(got.facts.version, STR("1.0.0")));
    ck_assert(str_eq(got.failed, STR("title")));
    ck_assert(str_eq(got.results, sent.results));
    buf_free(&wire);
}
END_TEST

/* ---- the list ---- */

START_TEST(gradings_are_listed_newest_first_below_a_number)
{
    uint64_t id = graded(30), other = graded(2);
    static const struct {
        uint32_t before;
        unsigned limit;
        size_t count;
        uint32_t first;
    } pages[] = {{0, 10, 10, 30},  {0, 100, 30, 30},       {21, 10, 10, 20},
                 {11, 10, 10, 10}, {5, 10, 4, 4},          {1, 10, 0, 0},
                 {0, 0, 0, 0},     {UINT32_MAX, 1, 1, 30}, {0, 5000, 30, 30}};
    for (size_t i = 0; i < sizeof(pages) / sizeof(*pages); i++) {
        struct kit_gradings g = list(id, pages[i].before, pages[i].limit);
        ck_status(g.status, STORE_OK);
        ck_assert_uint_eq(g.count, pages[i].count);
        for (uint32_t n = 0; n < g.count; n++) {
            ck_assert_uint_eq(g.items[n].number, pages[i].first - n);
            ck_assert_int_eq(g.items[n].score, (int)g.items[n].number);
        }
    }
    ck_assert_uint_eq(list(other, 0, 10).count, 2);
    ck_assert_uint_eq(rows(), 32);
}
END_TEST

START_TEST(other_workspaces_and_unknown_reports_have_no_history)
{
    uint64_t id = graded(3), other = kit_workspace(&k, "other");
    ck_status(kit_gradings(k.s, other, id, 0, 10).status, STORE_NOT_FOUND);
    ck_status(list(id + 1, 0, 10).status, STORE_NOT_FOUND);
}
END_TEST

START_TEST(a_failed_grading_adds_no_row)
{
    uint64_t id = create();
    struct store_change fails = kit_failed_change(id, 1);
    ck_status(kit_status(&k, &fails), STORE_OK);
    ck_assert_uint_eq(list(id, 0, 10).count, 0);
    kit_regrade(&k, w, id, 2, 60);
    ck_status(kit_status(&k, &(struct store_change){.kind = CHANGE_REPORT_UPDATE,
                                                    .workspace = w,
                                                    .id = id,
                                                    .fields = CHANGE_REGENERATE}),
              STORE_OK);
    fails = kit_failed_change(id, 3);
    ck_status(kit_status(&k, &fails), STORE_OK);
    kit_regrade(&k, w, id, 4, 61);
    struct kit_gradings g = list(id, 0, 10);
    ck_assert_uint_eq(g.count, 2);
    ck_assert_uint_eq(g.items[0].number, 4);
    ck_assert_uint_eq(g.items[1].number, 2);
    kit_check_clean(k.s);
}
END_TEST

START_TEST(a_hundred_gradings_are_kept)
{
    uint64_t before = graded(3), id = graded(STORE_GRADINGS_MAX), after = graded(3);
    ck_assert_uint_eq(list(id, 0, 200).count, STORE_GRADINGS_MAX);
    for (uint32_t n = STORE_GRADINGS_MAX + 1; n <= STORE_GRADINGS_MAX + 40; n++) {
        kit_regrade(&k, w, id, n, (int)(n % 101));
        struct kit_gradings g = list(id, 0, STORE_GRADINGS_MAX);
        ck_assert_uint_eq(g.count, STORE_GRADINGS_MAX);
        ck_assert_uint_eq(g.items[0].number, n);
        ck_assert_uint_eq(g.items[g.count - 1].number, n - STORE_GRADINGS_MAX + 1);
    }
    ck_assert_uint_eq(rows(), STORE_GRADINGS_MAX + 6);
    ck_assert_uint_eq(list(before, 0, 10).count, 3);
    ck_assert_uint_eq(list(after, 0, 10).count, 3);
    kit_check_clean(k.s);
}
END_TEST

START_TEST(failed_attempts_do_not_use_up_the_hundred)
{
    uint64_t id = create();
    for (uint32_t n = 1; n <= 2 * STORE_GRADINGS_MAX; n++) {
        struct store_change c = n % 2 ? kit_failed_change(id, n) : kit_done_change(id, n, 50);
        if (n > 1)
            kit_apply(&k, &(struct store_change){.kind = CHANGE_REPORT_UPDATE,
                                                 .workspace = w,
                                                 .id = id,
                                                 .fields = CHANGE_REGENERATE});
        ck_status(kit_status(&k, &c), STORE_OK);
    }
    ck_assert_uint_eq(rows(), STORE_GRADINGS_MAX);
    kit_regrade(&k, w, id, 2 * STORE_GRADINGS_MAX + 1, 50);
    ck_assert_uint_eq(rows(), STORE_GRADINGS_MAX);
}
END_TEST

START_TEST(results_of_gradings_keep_the_thresholds_of_their_time)
{
    uint64_t id = create();
    kit_done(&k, id, 1, 60);
    kit_good = 60;
    kit_decent = 30;
    kit_reopen(&k);
    kit_purge(&k, 0);
    struct store_report r;
    ck_status(kit_report(k.s, w, id, &r), STORE_OK);
    ck_assert_int_eq(r.result, RESULT_GOOD);
    ck_assert_int_eq(list(id, 0, 1).items[0].result, RESULT_DECENT);
    kit_check_clean(k.s);
    kit_good = kit_decent = 0;
}
END_TEST

/* ---- reports without rows ---- */

START_TEST(a_report_without_rows_shows_the_grading_of_its_record)
{
    uint64_t id = create();
    kit_done(&k, id, 1, 71);
    struct kit_gradings with = list(id, 0, 10);
    delete_row(id, 1);
    kit_check_clean(k.s);
    struct kit_gradings without = list(id, 0, 10);
    ck_status(without.status, STORE_OK);
    ck_assert_uint_eq(without.count, 1);
    const struct store_grading *a = &with.items[0], *b = &without.items[0];
    ck_assert_uint_eq(b->number, a->number);
    ck_assert_int_eq(b->score, a->score);
    ck_assert_int_eq(b->result, a->result);
    ck_assert_uint_eq(b->issues_high, a->issues_high);
    ck_assert_uint_eq(b->issues_medium, a->issues_medium);
    ck_assert_uint_eq(b->issues_low, a->issues_low);
    ck_assert_uint_eq(b->issues_passed, a->issues_passed);
    ck_assert_int_eq(b->generated_at, a->generated_at);
    ck_assert_uint_eq(b->failed.n + b->facts.protocol.n + b->facts.final_url.n +
                          b->facts.version.n + b->facts.http_status + b->facts.ttfb_ms +
                          b->facts.load_ms + b->facts.page_bytes,
                      0);
    ck_assert_uint_eq(list(id, 2, 10).count, 1);
    ck_assert_uint_eq(list(id, 1, 10).count, 0);
    ck_assert_uint_eq(list(id, 0, 0).count, 0);
}
END_TEST

START_TEST(the_grading_of_a_record_without_rows_stays_in_the_history)
{
    uint64_t id = create();
    kit_done(&k, id, 1, 71);
    int64_t then = k.now;
    delete_row(id, 1);
    k.now += 1000;
    kit_regrade(&k, w, id, 2, 72);
    k.now += 1000;
    kit_regrade(&k, w, id, 3, 73);
    struct kit_gradings g = list(id, 0, 10);
    ck_assert_uint_eq(g.count, 3);
    ck_assert_uint_eq(g.items[2].number, 1);
    ck_assert_int_eq(g.items[2].score, 71);
    ck_assert_int_eq(g.items[2].generated_at, then);
    ck_assert_uint_eq(g.items[2].issues_high, 1);
    ck_assert_uint_eq(g.items[2].failed.n + g.items[2].facts.http_status, 0);
    kit_check_clean(k.s);
}
END_TEST

START_TEST(a_report_without_a_score_has_no_gradings)
{
    struct kit_gradings g = list(create(), 0, 10);
    ck_status(g.status, STORE_OK);
    ck_assert_uint_eq(g.count, 0);
}
END_TEST

/* ---- deletion ---- */

/* Columns: the change that deletes the report's history with it. */
static const enum store_change_kind deletions[] = {CHANGE_REPORT_DELETE, CHANGE_PROJECT_DELETE,
                                                   CHANGE_WORKSPACE_DELETE};

START_TEST(the_history_is_deleted_with_its_report_project_or_workspace)
{
    uint64_t id = graded(120), other = kit_workspace(&k, "other");
    uint64_t kept = kit_create(&k, other, "https://b.com/", "b.com");
    kit_done(&k, kept, 1, 9);
    struct store_report r;
    ck_status(kit_report(k.s, w, id, &r), STORE_OK);
    store_read_end(k.s);
    const uint64_t ids[] = {id, r.project, w};
    ck_status(kit_status(&k, &(struct store_change){.kind = deletions[_i],
                                                    .workspace = _i == 2 ? 0 : w,
                                                    .id = ids[_i]}),
              STORE_OK);
    ck_status(list(id, 0, 10).status, STORE_NOT_FOUND);
    kit_purge(&k, 10);
    ck_assert_uint_eq(rows(), 1);
    ck_assert_uint_eq(kit_gradings(k.s, other, kept, 0, 10).count, 1);
    kit_check_clean(k.s);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("store_gradings");
    TCase *tc = tcase_create("gradings");
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_set_timeout(tc, 60);
    tcase_add_test(tc, a_grading_has_what_the_auditor_sent);
    tcase_add_test(tc, the_reports_own_url_is_not_stored_again);
    tcase_add_test(tc, the_longest_texts_are_stored);
    tcase_add_loop_test(tc, malformed_facts_are_refused, 0, sizeof(bad) / sizeof(*bad));
    tcase_add_test(tc, a_change_carries_facts_and_failed_ids);
    tcase_add_test(tc, gradings_are_listed_newest_first_below_a_number);
    tcase_add_test(tc, other_workspaces_and_unknown_reports_have_no_history);
    tcase_add_test(tc, a_failed_grading_adds_no_row);
    tcase_add_test(tc, a_hundred_gradings_are_kept);
    tcase_add_test(tc, failed_attempts_do_not_use_up_the_hundred);
    tcase_add_test(tc, results_of_gradings_keep_the_thresholds_of_their_time);
    tcase_add_test(tc, a_report_without_rows_shows_the_grading_of_its_record);
    tcase_add_test(tc, the_grading_of_a_record_without_rows_stays_in_the_history);
    tcase_add_test(tc, a_report_without_a_score_has_no_gradings);
    tcase_add_loop_test(tc, the_history_is_deleted_with_its_report_project_or_workspace, 0, 3);
    suite_add_tcase(suite, tc);
    return kit_run(suite);
}
