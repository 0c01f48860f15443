/* Synced items in the store: versions, tombstones, idempotency, deletion. */
#include "t/kit/store_synced.h"

#include "store/engine/cursor.h"
#include "store/engine/snapshot.h"
#include "store/engine/txn.h"

/* ---- single items ---- */

START_TEST(an_item_is_stored_changed_skipped_and_deleted)
{
    ck_assert_int_eq(one(SYNC_UPSERT, 1, 7, NOW, ""), SYNCED_QUEUED);
    ck_assert_str_eq(shown(), "1:7");
    ck_assert_int_eq(one(SYNC_UPSERT, 1, 7, NOW, ""), SYNCED_UNCHANGED);
    ck_assert_int_eq(one(SYNC_UPSERT, 1, 8, NOW, ""), SYNCED_QUEUED);
    ck_assert_str_eq(shown(), "1:8");
    ck_assert_int_eq(one(SYNC_UPSERT, 1, 9, NOW - 1, ""), SYNCED_STALE);
    ck_assert_str_eq(shown(), "1:8");
    ck_assert_int_eq(one(SYNC_DELETE, 1, 0, 0, ""), SYNCED_DELETED);
    ck_assert_str_eq(shown(), "");
    ck_assert_uint_eq(counted(), 0);
}
END_TEST

START_TEST(only_a_newer_version_restores_a_deleted_item_as_a_new_document)
{
    one(SYNC_UPSERT, 1, 7, NOW, "");
    uint64_t document = there(SYNCED_PRODUCT)->documents[0];
    one(SYNC_DELETE, 1, 0, NOW + HOUR, "");
    ck_assert_int_eq(one(SYNC_UPSERT, 1, 8, NOW + HOUR, ""), SYNCED_STALE);
    ck_assert_str_eq(shown(), "");
    ck_assert_int_eq(one(SYNC_UPSERT, 1, 8, NOW + 2 * HOUR, ""), SYNCED_QUEUED);
    ck_assert_str_eq(shown(), "1:8");
    ck_assert_uint_ne(there(SYNCED_PRODUCT)->documents[0], document);
}
END_TEST

START_TEST(a_deletion_before_its_item_blocks_the_item)
{
    ck_assert_int_eq(one(SYNC_DELETE, 5, 0, NOW, ""), SYNCED_DELETED);
    ck_assert_int_eq(one(SYNC_UPSERT, 5, 7, NOW - 1, ""), SYNCED_STALE);
    ck_assert_str_eq(shown(), "");
    ck_assert_int_eq(one(SYNC_DELETE, 5, 0, NOW - HOUR, ""), SYNCED_STALE);
}
END_TEST

START_TEST(an_item_reported_unchanged_must_be_unchanged)
{
    struct rows r = {0};
    one(SYNC_UPSERT, 1, 7, 0, "");
    ck_assert_int_eq(one(SYNC_SAME, 1, 7, 0, ""), SYNCED_UNCHANGED);
    row(&r, SYNC_UPSERT, 2, 2, 0);
    row(&r, SYNC_SAME, 1, 8, 0);
    ck_status(send_kind(&r, SYNCED_PRODUCT, "", false).status, STORE_AGAIN);
    ck_assert_str_eq(shown(), "1:7"); /* nothing was applied */
    row(&r, SYNC_SAME, 3, 8, 0);
    ck_status(send_kind(&r, SYNCED_POST, "", false).status, STORE_AGAIN);
}
END_TEST

START_TEST(posts_and_products_of_one_number_are_two_items)
{
    struct rows r = {0};
    row(&r, SYNC_UPSERT, 1, 5, 0);
    ck_status(send_kind(&r, SYNCED_POST, "", false).status, STORE_OK);
    one(SYNC_UPSERT, 1, 7, 0, "");
    one(SYNC_DELETE, 1, 0, 0, "");
    ck_assert_uint_eq(there(SYNCED_POST)->count, 1);
}
END_TEST

START_TEST(another_workspaces_agent_is_not_found)
{
    struct rows r = {0};
    row(&r, SYNC_UPSERT, 1, 5, 0);
    workspace = kit_workspace(&kit, "other");
    ck_status(send_kind(&r, SYNCED_PRODUCT, "", false).status, STORE_NOT_FOUND);
}
END_TEST

START_TEST(a_malformed_batch_is_refused_whole)
{
    struct rows r = {0};
    row(&r, SYNC_UPSERT, 1, 5, 0);
    r.data.n--;
    ck_status(send_kind(&r, SYNCED_PRODUCT, "", false).status, STORE_INVALID);
    row(&r, SYNC_UPSERT, 0, 5, 0);
    ck_status(send_kind(&r, SYNCED_PRODUCT, "", false).status, STORE_INVALID);
    row(&r, SYNC_UPSERT, 1, 5, 0);
    ck_status(send_kind(&r, SYNCED_COUPON, "", false).status, STORE_INVALID);
    row(&r, SYNC_UPSERT, 1, 5, 0);
    /* complete, but which sync? */
    ck_status(send_kind(&r, SYNCED_PRODUCT, "", true).status, STORE_INVALID);
    for (uint64_t i = 1; i <= STORE_BATCH_MAX + 1; i++)
        row(&r, SYNC_UPSERT, i, 5, 0);
    ck_status(send_kind(&r, SYNCED_PRODUCT, "", false).status, STORE_INVALID);
    ck_assert_str_eq(shown(), "");
}
END_TEST

/* ---- idempotency keys ---- */

START_TEST(a_batch_under_an_idempotency_key_runs_once)
{
    static const char key[32] = "k", body[32] = "b", other[32] = "o";
    struct rows r = {0};
    row(&r, SYNC_UPSERT, 1, 7, 0);
    row(&r, SYNC_DELETE, 2, 0, 0);
    struct store_change c = {.kind = CHANGE_SYNC,
                             .workspace = workspace,
                             .agent = agent,
                             .name = SITE,
                             .status = SYNCED_PRODUCT,
                             .data = buf_view(&r.data),
                             .idem_key = {key, 32},
                             .idem_body = {body, 32},
                             .code = 200};
    struct store_answer first = kit_apply(&kit, &c), again = kit_apply(&kit, &c);
    ck_status(again.status, STORE_OK);
    ck_assert_uint_eq(again.replayed, 1);
    ck_assert_int_eq(synced_mark(&again, 0), SYNCED_QUEUED);
    ck_assert_int_eq(synced_mark(&again, 1), SYNCED_DELETED);
    ck_assert_uint_eq(again.version, first.version);
    c.idem_body = (struct str){other, 32};
    ck_status(kit_status(&kit, &c), STORE_KEY_REUSED);
    kit.now += 25 * HOUR;
    kit_purge(&kit, 10);
    c.idem_key.n = c.idem_body.n = 0;
    again = kit_apply(&kit, &c);
    ck_assert_int_eq(synced_mark(&again, 0), SYNCED_UNCHANGED);
    buf_free(&r.data);
}
END_TEST

/* ---- deletion ---- */

static size_t problems_while_purging(void)
{
    size_t problems = 0;
    const struct store_change purge = {.kind = CHANGE_PURGE, .limit = 3};
    while (kit_status(&kit, &purge) == STORE_OK)
        problems += kit_problems(kit.s);
    return problems;
}

START_TEST(deleting_an_agent_or_workspace_deletes_its_synced_items)
{
    static const char *const codes[] = {"SAVE10"};
    for (uint64_t i = 1; i <= 20; i++)
        one(SYNC_UPSERT, i, 7, 0, "a");
    complete("a");
    for (uint64_t i = 1; i <= 3; i++)
        one(SYNC_UPSERT, i, 7, 0, "b");
    coupons(codes, 1, MONEY_SCALE);
    complete("b");
    struct store_change gone = {
        .kind = CHANGE_AGENT_DELETE, .workspace = workspace, .agent = agent};
    if (_i == 1)
        gone = (struct store_change){.kind = CHANGE_WORKSPACE_DELETE, .id = workspace};
    ck_status(kit_status(&kit, &gone), STORE_OK);
    ck_assert_uint_eq(counted(), 0); /* nothing of it is visible */
    ck_assert_msg(problems_while_purging() == 0, "%s", kit_problem);
}
END_TEST

static void see_status(void *arg, enum store_status status, const struct store_synced *d)
{
    (void)d;
    *(enum store_status *)arg = status;
}

START_TEST(a_document_is_found_by_its_id_until_deleted)
{
    enum store_status status;
    one(SYNC_UPSERT, 1, 7, 0, "a");
    uint64_t id = there(SYNCED_PRODUCT)->documents[0];
    store_synced_get(kit.s, id, see_status, &status);
    store_read_end(kit.s);
    ck_status(status, STORE_OK);
    complete("b"); /* which has not seen it */
    store_synced_get(kit.s, id, see_status, &status);
    store_read_end(kit.s);
    ck_status(status, STORE_NOT_FOUND);
}
END_TEST

static Suite *suite(void)
{
    Suite *s = suite_create("store_synced");
    TCase *c = tcase_create("synced");
    tcase_add_checked_fixture(c, begin, end);
    tcase_set_timeout(c, 60);
    tcase_add_test(c, an_item_is_stored_changed_skipped_and_deleted);
    tcase_add_test(c, only_a_newer_version_restores_a_deleted_item_as_a_new_document);
    tcase_add_test(c, a_deletion_before_its_item_blocks_the_item);
    tcase_add_test(c, an_item_reported_unchanged_must_be_unchanged);
    tcase_add_test(c, posts_and_products_of_one_number_are_two_items);
    tcase_add_test(c, another_workspaces_agent_is_not_found);
    tcase_add_test(c, a_malformed_batch_is_refused_whole);
    tcase_add_test(c, a_batch_under_an_idempotency_key_runs_once);
    tcase_add_loop_test(c, deleting_an_agent_or_workspace_deletes_its_synced_items, 0, 2);
    tcase_add_test(c, a_document_is_found_by_its_id_until_deleted);
    suite_add_tcase(s, c);
    return s;
}

int main(void)
{
    return kit_run(suite());
}
