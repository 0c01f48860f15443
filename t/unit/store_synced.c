/* Synced content in the store: items, generations, tombstones, coupons. */
#include "t/kit/store.h"

#include "store/engine/cursor.h"
#include "store/engine/snapshot.h"
#include "store/engine/txn.h"

#define SITE STR("shop.example")

static struct kit kit;
static uint64_t workspace;
static struct ulid agent;

static struct ulid agent_new(void)
{
    return kit_agent(&kit, workspace, "\"theme\":{}");
}

static void begin(void)
{
    kit_open(&kit);
    workspace = kit_workspace(&kit, "acme");
    agent = agent_new();
}

static void end(void)
{
    kit_check_clean(kit.s);
    kit_close(&kit);
}

/* ---- batches ---- */

struct rows {
    struct buf data;
};

static void hash_of(int content, uint8_t out[16])
{
    memset(out, 0, 16);
    memcpy(out, &content, sizeof(content));
}

static void row(struct rows *r, enum sync_action action, uint64_t wp_id, int content,
                int64_t modified_at)
{
    char title[32], url[64];
    uint8_t hash[16];
    snprintf(title, sizeof(title), "Item %d", content);
    snprintf(url, sizeof(url), "https://shop.example/%llu", (unsigned long long)wp_id);
    const struct store_synced d = {.title = str_of(title),
                                   .url = str_of(url),
                                   .text = STR("text"),
                                   .price = 125000,
                                   .regular_price = MONEY_NONE,
                                   .sale_price = MONEY_NONE,
                                   .modified_at = modified_at};
    hash_of(content, hash);
    sync_pack(&r->data, action, wp_id, hash, modified_at, action == SYNC_UPSERT ? &d : NULL);
}

/* Send the collected items; "" is no sync_id. */
static struct store_answer send_kind(struct rows *r, enum synced_kind kind, const char *sync_id,
                                     bool complete)
{
    const struct store_change c = {.kind = CHANGE_SYNC,
                                   .workspace = workspace,
                                   .agent = agent,
                                   .name = SITE,
                                   .status = kind,
                                   .text = str_of(sync_id),
                                   .fields = complete ? SYNC_COMPLETE : 0,
                                   .data = buf_view(&r->data),
                                   .code = 200};
    struct store_answer answer = kit_apply(&kit, &c);
    buf_free(&r->data);
    return answer;
}

static struct store_answer send(struct rows *r, const char *sync_id, bool complete)
{
    struct store_answer answer = send_kind(r, SYNCED_PRODUCT, sync_id, complete);
    ck_status(answer.status, STORE_OK);
    return answer;
}

static enum synced_mark one(enum sync_action action, uint64_t wp_id, int content,
                            int64_t modified_at, const char *sync_id)
{
    struct rows r = {0};
    row(&r, action, wp_id, content, modified_at);
    struct store_answer answer = send(&r, sync_id, false);
    return synced_mark(&answer, 0);
}

static uint64_t complete(const char *sync_id)
{
    struct rows r = {0};
    return send(&r, sync_id, true).id;
}

/* ---- the stored items ---- */

struct there {
    enum store_status status;
    size_t count;
    uint64_t ids[1024], documents[1024];
    char titles[1024][32];
};

static void see(void *arg, enum store_status status, const struct store_synced *d)
{
    struct there *t = arg;
    t->status = status;
    if (d == NULL)
        return;
    t->ids[t->count] = d->wp_id;
    t->documents[t->count] = d->id;
    snprintf(t->titles[t->count++], sizeof(t->titles[0]), "%.*s", (int)d->title.n, d->title.p);
}

static struct there *there(void)
{
    static struct there t;
    t = (struct there){0};
    store_synced_each(kit.s, &agent, SYNCED_PRODUCT, see, &t);
    store_read_end(kit.s);
    ck_status(t.status, STORE_NOT_FOUND);
    return &t;
}

/* "1:7 2:8": each item and its content. */
static const char *shown(void)
{
    static char text[1024];
    const struct there *t = there();
    size_t n = 0;
    text[0] = '\0';
    for (size_t i = 0; i < t->count; i++)
        n += (size_t)snprintf(text + n, sizeof(text) - n, "%s%llu:%s", i == 0 ? "" : " ",
                              (unsigned long long)t->ids[i], t->titles[i] + 5);
    return text;
}

static void see_count(void *arg, enum store_status status, const struct store_collection *c)
{
    uint64_t *count = arg;
    (void)status;
    if (c != NULL && c->kind == SYNCED_PRODUCT)
        *count = c->count;
}

static uint64_t counted(void)
{
    uint64_t count = 0;
    store_collection_each(kit.s, &agent, see_count, &count);
    store_read_end(kit.s);
    return count;
}

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
    uint64_t document = there()->documents[0];
    one(SYNC_DELETE, 1, 0, NOW + HOUR, "");
    ck_assert_int_eq(one(SYNC_UPSERT, 1, 8, NOW + HOUR, ""), SYNCED_STALE);
    ck_assert_str_eq(shown(), "");
    ck_assert_int_eq(one(SYNC_UPSERT, 1, 8, NOW + 2 * HOUR, ""), SYNCED_QUEUED);
    ck_assert_str_eq(shown(), "1:8");
    ck_assert_uint_ne(there()->documents[0], document);
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
    struct there t = {0};
    store_synced_each(kit.s, &agent, SYNCED_POST, see, &t);
    store_read_end(kit.s);
    ck_assert_uint_eq(t.count, 1);
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

static bool pause_always(void *arg)
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
        send(&rows, "a", false);
    }
    complete("a");
    one(SYNC_UPSERT, 1, 7, 0, "b");
    /* or nearly all are seen */
    for (uint64_t at = 1; _i == 1 && at <= ITEMS; at += STORE_BATCH_MAX) {
        struct rows rows = {0};
        for (uint64_t i = at; i < at + STORE_BATCH_MAX - (at == 1); i++)
            row(&rows, SYNC_UPSERT, i, 7, 0);
        send(&rows, "b", false);
    }
    ck_status(store_begin(kit.s, &t), STORE_OK);
    store_txn_pause(t, pause_always, NULL);
    answer = apply_in(t, "shop.example", "b", true);
    ck_status(answer.status, STORE_OK);
    ck_assert_uint_eq(answer.id, _i == 1 ? 1 : ITEMS - 1);
    ck_status(store_commit(t), STORE_OK);
    ck_assert_uint_eq(counted(), _i == 1 ? ITEMS - 1 : 1);
    kit_check_clean(kit.s);
    for (; answer.status == STORE_OK; steps++) {
        ck_status(store_begin(kit.s, &t), STORE_OK);
        store_txn_pause(t, pause_always, NULL);
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
    const struct there *t = there();
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

/* ---- coupons ---- */

static struct store_answer coupons(const char *const *codes, size_t count, int64_t amount)
{
    struct buf data = {0};
    for (size_t i = 0; i < count; i++) {
        const struct store_coupon coupon = {.code = str_of(codes[i]),
                                            .type = COUPON_PERCENT,
                                            .amount = amount,
                                            .minimum = MONEY_NONE,
                                            .maximum = MONEY_NONE,
                                            .usage_limit = UINT64_MAX,
                                            .products = {"\1\0\0\0\0\0\0\0", 8}};
        if (codes[i][0] == '!')
            coupon_pack_seen(&data, str_of(codes[i] + 1));
        else
            coupon_pack(&data, &coupon);
    }
    const struct store_change c = {.kind = CHANGE_COUPONS,
                                   .workspace = workspace,
                                   .agent = agent,
                                   .data = buf_view(&data),
                                   .code = 200};
    struct store_answer answer = kit_apply(&kit, &c);
    ck_status(answer.status, STORE_OK);
    buf_free(&data);
    return answer;
}

static void see_coupon(void *arg, enum store_status status, const struct store_coupon *coupon)
{
    struct buf *out = arg;
    if (coupon == NULL) {
        ck_status(status, STORE_NOT_FOUND);
        return;
    }
    buf_printf(out, "%.*s=%d ", (int)coupon->code.n, coupon->code.p,
               (int)(coupon->amount / MONEY_SCALE));
    ck_assert_uint_eq(coupon_product(coupon->products, 0), 1);
}

static const char *coupons_shown(void)
{
    static char text[256];
    struct buf out = {0};
    store_coupon_each(kit.s, &agent, see_coupon, &out);
    store_read_end(kit.s);
    snprintf(text, sizeof(text), "%.*s", (int)out.n, out.p);
    buf_free(&out);
    return text;
}

START_TEST(coupons_are_replaced_as_a_set)
{
    static const char *const first[] = {"SAVE10", " Lower "}, *const second[] = {"save10", "NEW"},
                             *const third[] = {"!NEW"};
    struct store_answer answer = coupons(first, 2, 10 * MONEY_SCALE);
    ck_assert_str_eq(coupons_shown(), "Lower=10 SAVE10=10 ");
    answer = coupons(first, 2, 10 * MONEY_SCALE);
    ck_assert_int_eq(synced_mark(&answer, 1), SYNCED_UNCHANGED);
    answer = coupons(second, 2, 20 * MONEY_SCALE);
    ck_assert_uint_eq(answer.id, 1);
    ck_assert_int_eq(synced_mark(&answer, 0), SYNCED_QUEUED);
    ck_assert_str_eq(coupons_shown(), "NEW=20 save10=20 ");
    answer = coupons(third, 1, 0); /* it failed, so it is unchanged */
    ck_assert_str_eq(coupons_shown(), "NEW=20 ");
    ck_assert_uint_eq(coupons(third, 0, 0).id, 1);
    ck_assert_str_eq(coupons_shown(), "");
}
END_TEST

static void see_found(void *arg, enum store_status status, const struct store_coupon *coupon)
{
    *(bool *)arg = status == STORE_OK && coupon->type == COUPON_PERCENT;
}

START_TEST(a_coupon_is_found_by_its_code_in_any_case)
{
    static const char *const codes[] = {"Save10"};
    bool found;
    coupons(codes, 1, MONEY_SCALE);
    store_coupon_get(kit.s, &agent, STR(" sAVE10 "), see_found, &found);
    ck_assert(found);
    store_coupon_get(kit.s, &agent, STR("save1"), see_found, &found);
    ck_assert(!found);
    store_coupon_get(kit.s, &agent, STR("  "), see_found, &found);
    ck_assert(!found);
    store_read_end(kit.s);
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
    uint64_t id = there()->documents[0];
    store_synced_get(kit.s, id, see_status, &status);
    store_read_end(kit.s);
    ck_status(status, STORE_OK);
    complete("b"); /* which has not seen it */
    store_synced_get(kit.s, id, see_status, &status);
    store_read_end(kit.s);
    ck_status(status, STORE_NOT_FOUND);
}
END_TEST

/* Columns: money, exponent, minor units. */
static const struct {
    int64_t money;
    unsigned exponent;
    int64_t minor;
} minors[] = {{125000, 2, 1250},  {125049, 2, 1250},   {125050, 2, 1251},
              {125000, 0, 13},    {124999, 0, 12},     {125000, 3, 12500},
              {125005, 3, 12501}, {125001, 4, 125001}, {0, 2, 0}};

START_TEST(money_rounds_half_up_to_minor_units)
{
    ck_assert_int_eq(money_minor_units(minors[_i].money, minors[_i].exponent), minors[_i].minor);
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
    tcase_add_test(c, a_batch_under_an_idempotency_key_runs_once);
    tcase_add_test(c, coupons_are_replaced_as_a_set);
    tcase_add_test(c, a_coupon_is_found_by_its_code_in_any_case);
    tcase_add_loop_test(c, deleting_an_agent_or_workspace_deletes_its_synced_items, 0, 2);
    tcase_add_test(c, a_document_is_found_by_its_id_until_deleted);
    tcase_add_loop_test(c, money_rounds_half_up_to_minor_units, 0,
                        sizeof(minors) / sizeof(minors[0]));
    suite_add_tcase(s, c);
    return s;
}

int main(void)
{
    return kit_run(suite());
}
