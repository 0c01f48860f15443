/*
 * Full syncs in the store: their begin, their end, which deletes unseen items, and interruptions.
 */
#include "t/kit/store_synced.h"
#include "store/engine/cursor.h"
#include "store/engine/snapshot.h"
#include "store/engine/txn.h"

/* ---- full syncs ---- */

START_TEST(a_complete_sync_deletes_unseen_items_at_its_end)
{
    for (uint64_t i = 1; i <= 4; i++)
        one(SYNC_UPSERT, i, 7, 0, "a");
    ck_assert_uint_eq(complete("a"), 0);
    one(SYNC_UPSERT, 2, 7, 0, "b");
    one(SYNC_UPSERT, 3, 8, 0, "b");
    ck_assert_str_eq(shown(), "1:7 2:7 3:8 4:7");
    ck_assert_uint_eq(complete("b"), 2);
    ck_assert_str_eq(shown(), "2:7 3:8"); /* at once, before any purge */
    ck_assert_uint_eq(counted(), 2);
    kit_check_clean(kit.s);
    kit_purge(&kit, 1);
    ck_assert_str_eq(shown(), "2:7 3:8");
    ck_assert_uint_eq(complete("b"), 0); /* the last batch again */
}
END_TEST

START_TEST(items_that_failed_or_changed_during_a_sync_count_as_seen)
{
    for (uint64_t i = 1; i <= 5; i++)
        one(SYNC_UPSERT, i, 7, 0, "a");
    complete("a");
    one(SYNC_UPSERT, 1, 7, 0, "b"); /* b begins */
    one(SYNC_SEEN, 2, 0, 0, "b");
    one(SYNC_UPSERT, 3, 9, 0, "");
    one(SYNC_UPSERT, 4, 7, 0, ""); /* unchanged, but it exists */
    ck_assert_uint_eq(complete("b"), 1);
    ck_assert_str_eq(shown(), "1:7 2:7 3:9 4:7");
}
END_TEST

START_TEST(an_unfinished_sync_deletes_nothing_and_an_older_one_is_refused)
{
    struct rows r = {0};
    one(SYNC_UPSERT, 1, 7, 0, "a");
    one(SYNC_UPSERT, 2, 7, 0, "b");
    ck_assert_str_eq(shown(), "1:7 2:7");
    ck_assert_uint_eq(complete("b"), 1);
    row(&r, SYNC_UPSERT, 1, 7, 0);
    ck_status(send_kind(&r, SYNCED_PRODUCT, "a", false).status, STORE_STALE);
    ck_status(send_kind(&r, SYNCED_PRODUCT, "a", true).status, STORE_STALE);
    ck_assert_str_eq(shown(), "2:7");
}
END_TEST

START_TEST(a_later_sync_restores_an_unseen_item_with_any_date)
{
    one(SYNC_UPSERT, 1, 7, NOW, "a");
    one(SYNC_UPSERT, 2, 7, NOW, "a");
    complete("a");
    one(SYNC_UPSERT, 2, 7, NOW, "b");
    complete("b");
    if (_i == 1)
        kit_purge(&kit, 10);
    ck_assert_int_eq(one(SYNC_UPSERT, 1, 7, NOW, ""), SYNCED_STALE);
    ck_assert_int_eq(one(SYNC_UPSERT, 1, 7, NOW, "c"), SYNCED_QUEUED);
    ck_assert_str_eq(shown(), "1:7 2:7");
}
END_TEST

START_TEST(a_batch_after_the_end_of_its_sync_is_accepted)
{
    one(SYNC_UPSERT, 1, 7, 0, "a");
    one(SYNC_UPSERT, 2, 7, 0, "a");
    complete("a");
    one(SYNC_UPSERT, 2, 7, 0, "b");
    ck_assert_uint_eq(complete("b"), 1);
    if (_i == 1)
        kit_purge(&kit, 10);
    ck_assert_int_eq(one(SYNC_UPSERT, 1, 7, 0, "b"), SYNCED_QUEUED);
    ck_assert_str_eq(shown(), "1:7 2:7");
}
END_TEST

START_TEST(a_sync_does_not_restore_items_deleted_during_it)
{
    one(SYNC_UPSERT, 1, 7, 0, "a");
    complete("a");
    one(SYNC_UPSERT, 2, 7, 0, "b"); /* b starts, and has read item 1 from the shop */
    one(SYNC_DELETE, 1, 0, 0, "");
    ck_assert_int_eq(one(SYNC_UPSERT, 1, 7, 0, "b"), SYNCED_STALE);
    complete("b");
    ck_assert_str_eq(shown(), "2:7");
    ck_assert_int_eq(one(SYNC_UPSERT, 1, 7, 0, "c"), SYNCED_QUEUED);
}
END_TEST

static struct store_answer apply_in(struct store_txn *t, const char *site, const char *sync_id,
                                    bool complete)
{
    struct store_answer answer = {0};
    const struct store_change c = {.kind = CHANGE_SYNC,
                                   .workspace = workspace,
                                   .agent = agent,
                                   .name = str_of(site),
                                   .status = SYNCED_PRODUCT,
                                   .text = str_of(sync_id),
                                   .fields = complete ? SYNC_COMPLETE : 0,
                                   .code = 200};
    store_apply(t, &c, kit.now, &answer);
    return answer;
}

static uint64_t rows_of(enum space space)
{
    MDB_txn *txn;
    struct cursor w = {0};
    uint64_t count = 0;
    ck_status(store_snapshot(kit.s, &txn), STORE_OK);
    for (enum store_status status = cursor_begin(kit.s, txn, &w, space); status == STORE_OK;
         status = cursor_next(&w))
        count++;
    cursor_end(&w);
    store_read_end(kit.s);
    return count;
}

static struct store_answer see_in(struct store_txn *t, const char *sync_id, uint64_t wp_id)
{
    struct rows r = {0};
    struct store_answer answer = {0};
    row(&r, SYNC_UPSERT, wp_id, 7, 0);
    const struct store_change c = {.kind = CHANGE_SYNC,
                                   .workspace = workspace,
                                   .agent = agent,
                                   .name = SITE,
                                   .status = SYNCED_PRODUCT,
                                   .text = str_of(sync_id),
                                   .data = buf_view(&r.data),
                                   .code = 200};
    store_apply(t, &c, kit.now, &answer);
    ck_status(answer.status, STORE_OK);
    buf_free(&r.data);
    return answer;
}

/* Each sees its own item, and only the last one completes. */
START_TEST(the_oldest_unfinished_syncs_are_closed)
{
    enum { BEGUN = STORE_SYNCS_OPEN + 3 * STORE_SYNCS_KEPT, ITEMS = 21 };
    struct store_txn *t;
    char name[32];
    one(SYNC_UPSERT, ITEMS + 1, 7, 0, "");
    for (unsigned i = 1; i <= BEGUN; i++) {
        if (i % 1000 == 1)
            ck_status(store_begin(kit.s, &t), STORE_OK);
        snprintf(name, sizeof(name), "s%u", i);
        if (i % 500 == 0 || i < 3)
            see_in(t, name, 1 + i / 500 % ITEMS);
        else
            ck_status(apply_in(t, "shop.example", name, false).status, STORE_OK);
        if (i % 1000 == 0) {
            ck_status(store_commit(t), STORE_OK);
            if (i > STORE_SYNCS_OPEN)
                kit_check_clean(kit.s);
            kit_purge(&kit, 77);
        }
    }
    kit_check_clean(kit.s);
    ck_assert_uint_eq(counted(), ITEMS + 1);
    ck_assert_uint_eq(rows_of(SPACE_GENERATION_ID), STORE_SYNCS_OPEN + STORE_SYNCS_KEPT);
    ck_status(store_begin(kit.s, &t), STORE_OK);
    snprintf(name, sizeof(name), "s%u", BEGUN - STORE_SYNCS_OPEN);
    ck_status(apply_in(t, "shop.example", name, true).status, STORE_STALE);
    snprintf(name, sizeof(name), "s%u", BEGUN - STORE_SYNCS_OPEN + 1);
    /* the oldest possible one */
    struct store_answer answer = apply_in(t, "shop.example", name, true);
    ck_status(answer.status, STORE_OK);
    /* the sync before all others, and that of the last closed one */
    ck_assert_uint_eq(answer.id, 2);
    see_in(t, "last", 3);
    answer = apply_in(t, "shop.example", "last", true);
    ck_assert_uint_eq(answer.id, ITEMS - 2);
    ck_status(store_commit(t), STORE_OK);
    ck_assert_str_eq(shown(), "3:7");
    kit_purge(&kit, 777);
    kit_check_clean(kit.s);
    ck_assert_uint_eq(rows_of(SPACE_GENERATION_ID), STORE_SYNCS_KEPT);
}
END_TEST

static bool stop_always(void *arg)
{
    (void)arg;
    return true;
}

START_TEST(the_end_of_a_sync_hides_at_once_and_deletes_in_batches)
{
    enum { ITEMS = 3000 };
    struct store_txn *t;
    struct store_answer answer = {0};
    unsigned steps = 0;
    for (uint64_t at = 1; at <= ITEMS; at += STORE_BATCH_MAX) {
        struct rows rows = {0};
        for (uint64_t i = at; i < at + STORE_BATCH_MAX; i++)
            row(&rows, SYNC_UPSERT, i, 7, 0);
        send_products(&rows, "a", false);
    }
    complete("a");
    one(SYNC_UPSERT, 1, 7, 0, "b");
    /* or nearly all are seen */
    for (uint64_t at = 1; _i == 1 && at <= ITEMS; at += STORE_BATCH_MAX) {
        struct rows rows = {0};
        for (uint64_t i = at; i < at + STORE_BATCH_MAX - (at == 1); i++)
            row(&rows, SYNC_UPSERT, i, 7, 0);
        send_products(&rows, "b", false);
    }
    ck_status(store_begin(kit.s, &t), STORE_OK);
    store_txn_stop_when(t, stop_always, NULL);
    answer = apply_in(t, "shop.example", "b", true);
    ck_status(answer.status, STORE_OK);
    ck_assert_uint_eq(answer.id, _i == 1 ? 1 : ITEMS - 1);
    ck_status(store_commit(t), STORE_OK);
    ck_assert_uint_eq(counted(), _i == 1 ? ITEMS - 1 : 1);
    kit_check_clean(kit.s);
    for (; answer.status == STORE_OK; steps++) {
        ck_status(store_begin(kit.s, &t), STORE_OK);
        store_txn_stop_when(t, stop_always, NULL);
        store_apply(t, &(struct store_change){.kind = CHANGE_PURGE, .limit = 1000}, kit.now,
                    &answer);
        ck_status(store_commit(t), STORE_OK);
    }
    ck_assert_uint_gt(steps, _i == 1 ? 1 : ITEMS / 1000);
    kit_check_clean(kit.s);
    ck_assert_uint_eq(counted(), _i == 1 ? ITEMS - 1 : 1);
    ck_assert_uint_eq(rows_of(SPACE_DOCUMENT), _i == 1 ? ITEMS - 1 : 1);
}
END_TEST

START_TEST(old_syncs_are_closed_and_removed)
{
    struct store_txn *t;
    char name[32];
    ck_status(store_begin(kit.s, &t), STORE_OK);
    for (unsigned i = 1; i <= STORE_SYNCS_OPEN; i++) {
        snprintf(name, sizeof(name), "s%u", i);
        ck_status(apply_in(t, "shop.example", name, false).status, STORE_OK);
    }
    ck_status(apply_in(t, "shop.example", "s1", false).status, STORE_OK);
    ck_status(apply_in(t, "shop.example", "one more", false).status, STORE_OK);
    ck_status(apply_in(t, "shop.example", "s1", false).status, STORE_STALE);
    ck_status(apply_in(t, "shop.example", "s2", false).status, STORE_OK);
    ck_status(apply_in(t, "other.example", "one more", false).status, STORE_OK);
    ck_status(apply_in(t, "shop.example", name, true).status, STORE_OK);
    ck_status(store_commit(t), STORE_OK);
    kit_check_clean(kit.s);
    kit_purge(&kit, 777);
    ck_assert_uint_eq(rows_of(SPACE_GENERATION_ID), STORE_SYNCS_KEPT + 2);
    ck_assert_uint_eq(rows_of(SPACE_GENERATION), STORE_SYNCS_KEPT + 2);
    ck_status(store_begin(kit.s, &t), STORE_OK);
    ck_status(apply_in(t, "shop.example", "s9001", false).status, STORE_STALE);
    ck_status(apply_in(t, "shop.example", "one more", false).status, STORE_OK);
    ck_status(store_commit(t), STORE_OK);
}
END_TEST

START_TEST(the_number_of_sites_per_agent_is_bounded)
{
    struct store_txn *t;
    char name[32];
    ck_status(store_begin(kit.s, &t), STORE_OK);
    for (unsigned i = 0; i <= STORE_SITES_MAX; i++) {
        snprintf(name, sizeof(name), "shop%u.example", i);
        ck_status(apply_in(t, name, "", false).status,
                  i < STORE_SITES_MAX ? STORE_OK : STORE_TOO_MANY);
    }
    ck_status(apply_in(t, "shop1.example", "", false).status, STORE_OK);
    ck_status(store_commit(t), STORE_OK);
}
END_TEST

START_TEST(the_next_complete_sync_removes_old_tombstones)
{
    one(SYNC_UPSERT, 1, 7, NOW, "");
    one(SYNC_DELETE, 1, 0, NOW, "");
    kit.now += 91 * 24 * HOUR;
    complete("a");
    kit_purge(&kit, 10);
    ck_assert_int_eq(one(SYNC_UPSERT, 1, 8, NOW - 1, ""), SYNCED_QUEUED);
}
END_TEST

/* ---- a shop and its random syncs, compared with a model of plain arrays ---- */

#define SHOP 60

struct shop {
    int content[SHOP]; /* 0: not in the shop */
};

/*
 * One full sync in batches of up to 7, interrupted and restarted at any point, with single changes
 * between.
 */
static void sync_once(struct shop *shop, unsigned *seed, unsigned number)
{
    char id[32];
    unsigned tries = 0;
    bool done = false;
    while (!done) {
        bool again = rand_r(seed) % 2 == 0; /* under the same id, from the start */
        snprintf(id, sizeof(id), "sync-%u-%u", number, again ? 0 : tries);
        tries++;
        unsigned end_at = rand_r(seed) % 4 == 0 || tries > 5 ? SHOP : (unsigned)rand_r(seed) % SHOP;
        for (unsigned at = 0; at < end_at;) {
            struct rows r = {0};
            unsigned batch = 1 + (unsigned)rand_r(seed) % 7;
            for (unsigned i = 0; i < batch && at < end_at; i++, at++)
                if (shop->content[at] != 0)
                    row(&r, SYNC_UPSERT, at + 1, shop->content[at], 0);
            struct store_answer answer = send_kind(&r, SYNCED_PRODUCT, id, false);
            if (answer.status == STORE_STALE)
                break;
            ck_status(answer.status, STORE_OK);
            if (rand_r(seed) % 8 == 0)
                kit_purge(&kit, 5);
        }
        if (end_at == SHOP) {
            struct rows r = {0};
            done = send_kind(&r, SYNCED_PRODUCT, id, true).status == STORE_OK;
        }
    }
}

static void expect_shop(const struct shop *shop)
{
    const struct there *t = there(SYNCED_PRODUCT);
    size_t at = 0;
    for (unsigned i = 0; i < SHOP; i++) {
        if (shop->content[i] == 0)
            continue;
        ck_assert_msg(at < t->count && t->ids[at] == i + 1 &&
                          atoi(t->titles[at] + 5) == shop->content[i],
                      "item %u must be there with %d", i + 1, shop->content[i]);
        at++;
    }
    ck_assert_uint_eq(at, t->count);
    ck_assert_uint_eq(at, counted());
}

START_TEST(interrupted_syncs_end_with_an_exact_mirror)
{
    struct shop shop = {{0}};
    unsigned seed = (unsigned)_i + 1;
    for (unsigned number = 0; number < 12; number++) {
        for (unsigned i = 0; i < SHOP; i++)
            if (rand_r(&seed) % 4 == 0)
                shop.content[i] = (int)(rand_r(&seed) % 3);
        sync_once(&shop, &seed, number);
        expect_shop(&shop);
        kit_check_clean(kit.s);
    }
    kit_reopen(&kit);
    kit_purge(&kit, 3);
    expect_shop(&shop);
}
END_TEST

static Suite *suite(void)
{
    Suite *s = suite_create("store_syncs");
    TCase *c = tcase_create("synced");
    tcase_add_checked_fixture(c, begin, end);
    tcase_set_timeout(c, 60);
    tcase_add_test(c, a_complete_sync_deletes_unseen_items_at_its_end);
    tcase_add_test(c, items_that_failed_or_changed_during_a_sync_count_as_seen);
    tcase_add_test(c, an_unfinished_sync_deletes_nothing_and_an_older_one_is_refused);
    tcase_add_loop_test(c, a_later_sync_restores_an_unseen_item_with_any_date, 0, 2);
    tcase_add_loop_test(c, a_batch_after_the_end_of_its_sync_is_accepted, 0, 2);
    tcase_add_test(c, a_sync_does_not_restore_items_deleted_during_it);
    tcase_add_test(c, the_oldest_unfinished_syncs_are_closed);
    tcase_add_loop_test(c, the_end_of_a_sync_hides_at_once_and_deletes_in_batches, 0, 2);
    tcase_add_test(c, old_syncs_are_closed_and_removed);
    tcase_add_test(c, the_number_of_sites_per_agent_is_bounded);
    tcase_add_test(c, the_next_complete_sync_removes_old_tombstones);
    tcase_add_loop_test(c, interrupted_syncs_end_with_an_exact_mirror, 0, 8);
    suite_add_tcase(s, c);
    return s;
}

int main(void)
{
    return kit_run(suite());
}
