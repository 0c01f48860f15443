/*
 * The upkeep of the reports' indexes beside deletes, cut off anywhere, and where room is scarce.
 */
#include "00_store_kit.h"

static struct kit k;

static void setup(void)
{
    kit_segment_rows = 64;
    kit_chunk_shift = 6;
    kit_log_entries = 8;
    kit_open(&k);
}

static void teardown(void)
{
    kit_close(&k);
    kit_segment_rows = kit_chunk_shift = kit_log_entries = 0;
}

static bool one_slice(uint64_t limit)
{
    enum store_status status = kit_status(&k, &(struct store_change){.kind = CHANGE_PURGE, .limit = limit});
    if (status != STORE_NOT_FOUND)
        ck_status(status, STORE_OK);
    return status == STORE_OK;
}

START_TEST(a_deleted_workspaces_index_goes_in_slices_of_any_size_cut_off_anywhere)
{
    enum { REPORTS = 300 };
    uint64_t w = kit_workspace(&k, "going"), other = kit_workspace(&k, "staying");
    for (int i = 0; i < REPORTS; i++)
        kit_create(&k, i % 10 == 0 ? other : w, "https://a.com/x", i % 2 ? "a.com" : "b.com");
    kit_purge(&k, 1);
    ck_status(kit_status(&k, &(struct store_change){.kind = CHANGE_WORKSPACE_DELETE, .id = w}), STORE_OK);
    while (one_slice(1 + (uint64_t)_i)) {
        kit_check_clean(k.s);
        kit_reopen(&k);
    }
    struct store_list_query q = {.workspace = other, .sort = REPORT_BY_ID, .page = 1, .per_page = 100};
    ck_assert_uint_eq(kit_reports(k.s, &q).total, REPORTS / 10);
    store_read_end(k.s);
    kit_check_clean(k.s);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("store upkeep");
    TCase *tc = tcase_create("upkeep");
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_set_timeout(tc, 120);
    tcase_add_loop_test(tc, a_deleted_workspaces_index_goes_in_slices_of_any_size_cut_off_anywhere, 0, 5);
    suite_add_tcase(suite, tc);
    return kit_run(suite);
}
