/*
 * The hash of a store's replicated rows: equal in a store that applied its row sets, and another
 * one after any row has changed.
 */
#include "t/kit/store_copy.h"

#include "store/engine/cursor.h"
#include "store/engine/derived.h"
#include "store/engine/snapshot.h"

static uint8_t before[STORE_HASH_BYTES];

static void hash_of(struct store *s, uint8_t out[STORE_HASH_BYTES])
{
    ck_status(store_rows_hash(s, NULL, NULL, out), STORE_OK);
    store_read_end(s);
}

static bool is_changed(void)
{
    uint8_t now[STORE_HASH_BYTES];
    hash_of(kit.s, now);
    return memcmp(now, before, sizeof(now)) != 0;
}

static void setup(void)
{
    copy_begin();
    for (int i = 0; i < 600; i++)
        random_act();
}

static void teardown(void)
{
    copy_end();
}

START_TEST(stores_with_the_same_row_sets_have_one_hash)
{
    uint8_t other[STORE_HASH_BYTES];
    for (int i = 0; i < 20; i++) {
        random_act();
        copy_apply(SIZE_MAX);
        hash_of(kit.s, before);
        hash_of(copy.s, other);
        ck_assert(memcmp(before, other, sizeof(other)) == 0);
    }
    copy_expect_equal_rows();
}
END_TEST

START_TEST(a_restored_backup_has_the_same_hash)
{
    char backup[64], why[512] = "";
    uint8_t restored[STORE_HASH_BYTES];
    kit_dir(backup);
    copy_apply(SIZE_MAX);
    hash_of(kit.s, before);
    ck_status(store_backup(kit.s, backup, NULL, NULL), STORE_OK);
    store_close(copy.s);
    ck_status(store_restore(backup, copy.dir, NULL, NULL, why, sizeof(why)), STORE_OK);
    copy.s = kit_store(copy.dir, STORE_WRITE, MAP_BYTES);
    hash_of(copy.s, restored);
    ck_assert(memcmp(before, restored, sizeof(restored)) == 0);
    kit_remove(backup);
}
END_TEST

/* ---- one altered row ---- */

/* A row of the space, in the middle of it; false: it has none. The key is copied. */
static bool choose_row(enum space space, struct key *key, struct buf *value)
{
    MDB_txn *txn;
    struct cursor w = {0};
    unsigned at = 0;
    ck_status(store_snapshot(kit.s, &txn), STORE_OK);
    enum store_status status = cursor_begin(kit.s, txn, &w, space);
    bool found = status == STORE_OK;
    for (; status == STORE_OK && at < 3; at++) {
        key->n = 0;
        key_bytes(key, w.k.mv_data, w.k.mv_size);
        buf_reset(value);
        buf_add(value, w.v.mv_data, w.v.mv_size);
        status = cursor_next(&w);
    }
    cursor_end(&w);
    store_read_end(kit.s);
    return found;
}

/* Beside the store's own transactions; ${value} NULL: delete the row. */
static void put_row(enum space space, struct key *key, const struct str *value)
{
    MDB_txn *txn;
    MDB_val k = key_val(key), v = {0};
    MDB_dbi dbi = kit.s->dbi[schema_space_db[space]];
    ck_assert_int_eq(mdb_txn_begin(kit.s->env, NULL, 0, &txn), 0);
    if (value != NULL)
        v = (MDB_val){value->n, (void *)(uintptr_t)value->p};
    ck_assert_int_eq(value == NULL ? mdb_del(txn, dbi, &k, NULL) : mdb_put(txn, dbi, &k, &v, 0), 0);
    ck_assert_int_eq(mdb_txn_commit(txn), 0);
}

static void expect_changed(enum space space, bool changed, const char *how)
{
    ck_assert_msg(is_changed() == changed, "space %s %c: %s",
                  schema_db_names[schema_space_db[space]], schema_space_tag[space], how);
}

/* Each is undone. */
static void alter(enum space space, struct key *key, const struct buf *value)
{
    const bool counts = space_is_replicated(space);
    const struct str was = buf_view(value);
    struct buf other = {0};
    if (was.n > 0) {
        buf_str(&other, was);
        other.p[was.n / 2] ^= 1;
        put_row(space, key, &(struct str){other.p, other.n});
        expect_changed(space, counts, "a bit of a value");
    }
    put_row(space, key, NULL);
    expect_changed(space, counts, "a missing row");
    key->b[key->n++] = 0; /* no row has such a key */
    put_row(space, key, &was);
    expect_changed(space, counts, "another key");
    put_row(space, key, NULL);
    key->n--;
    put_row(space, key, &was);
    expect_changed(space, false, "as it was");
    buf_free(&other);
}

START_TEST(an_altered_row_of_any_replicated_space_changes_the_hash)
{
    unsigned altered = 0;
    struct buf value = {0};
    struct key key;
    hash_of(kit.s, before);
    for (enum space space = 0; space < SPACE_COUNT; space++) {
        if (!choose_row(space, &key, &value) || key.n < 2)
            continue;
        alter(space, &key, &value);
        altered += space_is_replicated(space);
    }
    ck_assert_uint_gt(altered, 15);
    buf_free(&value);
}
END_TEST

static bool yes(void *arg)
{
    (void)arg;
    return true;
}

START_TEST(it_ends_when_it_must_stop)
{
    uint8_t out[STORE_HASH_BYTES];
    uint64_t many = kit_workspace(&kit, "many");
    kit_batch_begin(&kit);
    for (int i = 0; i < 2000; i++)
        kit_create(&kit, many, "https://a.example/", "a.example");
    kit_batch_end(&kit);
    ck_status(store_rows_hash(kit.s, yes, NULL, out), STORE_AGAIN);
    store_read_end(kit.s);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("store_rows_hash");
    TCase *tcase = tcase_create("hash");
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_set_timeout(tcase, 120);
    suite_add_tcase(suite, tcase);
    tcase_add_test(tcase, stores_with_the_same_row_sets_have_one_hash);
    tcase_add_test(tcase, a_restored_backup_has_the_same_hash);
    tcase_add_test(tcase, an_altered_row_of_any_replicated_space_changes_the_hash);
    tcase_add_test(tcase, it_ends_when_it_must_stop);
    return kit_run(suite);
}
