#include "t/kit/store_gradings.h"

#include "store/engine/environment.h"

struct kit k;
uint64_t w;

void setup(void)
{
    kit_open(&k);
    w = kit_workspace(&k, "acme");
}

void teardown(void)
{
    kit_close(&k);
}

uint64_t create(void)
{
    return kit_create(&k, w, "https://a.com/x", "a.com");
}

uint64_t graded(uint32_t gradings)
{
    uint64_t id = create();
    for (uint32_t n = 1; n <= gradings; n++) {
        k.now += 1000;
        if (n == 1)
            kit_done(&k, id, n, (int)n);
        else
            kit_regrade(&k, w, id, n, (int)(n % 101));
    }
    return id;
}

struct kit_gradings list(uint64_t id, uint32_t before, unsigned limit)
{
    return kit_gradings(k.s, w, id, before, limit);
}

size_t rows(void)
{
    MDB_txn *txn;
    MDB_stat stat;
    ck_status(store_snapshot(k.s, &txn), STORE_OK);
    ck_assert_int_eq(mdb_stat(txn, k.s->dbi[DB_GRADING], &stat), 0);
    store_read_end(k.s);
    return stat.ms_entries;
}

void row_key(struct key *key, uint64_t id, uint64_t number)
{
    key_id(key, SPACE_GRADING, id);
    key_u64(key, number);
}

void delete_row(uint64_t id, uint64_t number)
{
    struct store_txn *t;
    struct key key;
    store_read_end(k.s);
    ck_status(store_begin(k.s, &t), STORE_OK);
    row_key(&key, id, number);
    txn_del(t, SPACE_GRADING, &key);
    ck_status(store_commit(t), STORE_OK);
}

void put_row(uint64_t id, uint64_t number, struct str value)
{
    struct store_txn *t;
    struct key key;
    store_read_end(k.s);
    ck_status(store_begin(k.s, &t), STORE_OK);
    row_key(&key, id, number);
    txn_put(t, SPACE_GRADING, &key, value.p, value.n);
    ck_status(store_commit(t), STORE_OK);
}
