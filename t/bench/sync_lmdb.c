/*
 * What the disk and LMDB allow: the puts of a sync of products, and nothing else: keys and records
 * of the store's own, values as large as what the server stores of sync_load.c's products; every
 * commit is synced.
 *
 *   run_sync_lmdb DIR BATCHES BATCHES-A-COMMIT     prints: seconds, items a second
 */
#include "store/engine/schema.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define ITEMS 100
#define TEXTS_BYTES 330 /* of one of sync_load.c's products, reduced */
#define MAP_BYTES ((size_t)4 << 30)

static void must(int rc, const char *what)
{
    if (rc != 0) {
        fprintf(stderr, "run_sync_lmdb: %s: %s\n", what, mdb_strerror(rc));
        exit(1);
    }
}

static double now(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

static void put(MDB_txn *txn, MDB_dbi dbi, struct key *key, const void *value, size_t n)
{
    MDB_val k = key_val(key), v = {n, (void *)(uintptr_t)value};
    must(mdb_put(txn, dbi, &k, &v, 0), "put");
}

static void one_item(MDB_txn *txn, MDB_dbi dbi, uint64_t id)
{
    static char document[sizeof(struct document_record) + TEXTS_BYTES];
    const struct item_record item = {.document = id, .generation = 1};
    struct key k;
    MDB_val found;
    key_id(&k, SPACE_ITEM, 1);
    key_u64(&k, id);
    MDB_val key = key_val(&k);
    (void)mdb_get(txn, dbi, &key, &found); /* as the store must: is it there? */
    put(txn, dbi, &k, &item, sizeof(item));
    key_id(&k, SPACE_DOCUMENT, id);
    put(txn, dbi, &k, document, sizeof(document));
}

static void once_a_batch(MDB_txn *txn, MDB_dbi dbi)
{
    static const struct collection_record collection;
    static const struct generation_record generation;
    struct key k;
    key_id(&k, SPACE_COLLECTION, 1);
    put(txn, dbi, &k, &collection, sizeof(collection));
    key_id(&k, SPACE_GENERATION, 1);
    key_u64(&k, 1);
    put(txn, dbi, &k, &generation, sizeof(generation));
}

int main(int argc, char **argv)
{
    MDB_env *env;
    MDB_txn *txn;
    MDB_dbi dbi;
    unsigned long batches = argc == 4 ? strtoul(argv[2], NULL, 10) : 0,
                  a_commit = argc == 4 ? strtoul(argv[3], NULL, 10) : 0;
    if (batches == 0 || a_commit == 0) {
        fprintf(stderr, "usage: run_sync_lmdb DIR BATCHES BATCHES-A-COMMIT\n");
        return 2;
    }
    must(mdb_env_create(&env), "create");
    must(mdb_env_set_maxdbs(env, 2), "maxdbs");
    must(mdb_env_set_mapsize(env, MAP_BYTES), "mapsize");
    must(mdb_env_open(env, argv[1], MDB_NOTLS, 0600), argv[1]);
    must(mdb_txn_begin(env, NULL, 0, &txn), "begin");
    must(mdb_dbi_open(txn, "widget", MDB_CREATE, &dbi), "open");
    must(mdb_txn_commit(txn), "commit");
    double began = now();
    for (unsigned long done = 0; done < batches;) {
        must(mdb_txn_begin(env, NULL, 0, &txn), "begin");
        for (unsigned long i = 0; i < a_commit && done < batches; i++, done++) {
            for (uint64_t item = 1; item <= ITEMS; item++)
                one_item(txn, dbi, done * ITEMS + item);
            once_a_batch(txn, dbi);
        }
        must(mdb_txn_commit(txn), "commit");
    }
    double took = now() - began;
    printf("%.3f %.0f\n", took, (double)(batches * ITEMS) / took);
    mdb_env_close(env);
    return 0;
}
