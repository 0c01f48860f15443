#include "store/engine/cursor.h"
#include "store/engine/environment.h"
#include "store/engine/free_space.h"
#include "store/engine/snapshot.h"
#include "store/index/index.h"

/* How much of the store is in use: the map, the reader table, records of each kind. */

/* Number of keys of a space. The spaces are small; reports are counted by their sub-database. */
static enum store_status count_space(struct store *s, MDB_txn *txn, enum space space, uint64_t *out)
{
    struct cursor w;
    enum store_status status = cursor_begin(s, txn, &w, space);
    *out = 0;
    for (; status == STORE_OK; status = cursor_next(&w))
        ++*out;
    cursor_end(&w);
    return status == STORE_NOT_FOUND ? STORE_OK : status;
}

static enum store_status segment_bytes(struct store *s, MDB_txn *txn, uint64_t *out)
{
    struct cursor w;
    enum store_status status = cursor_begin(s, txn, &w, SPACE_SEGMENT);
    for (; status == STORE_OK; status = cursor_next(&w)) {
        struct segment_record r;
        const uint8_t *dead;
        if (index_segment_read(s, w.v, &r, &dead) == STORE_OK)
            *out += r.bytes;
    }
    cursor_end(&w);
    return status == STORE_NOT_FOUND ? STORE_OK : status;
}

/* In the open snapshot. */
static enum store_status measure_space(struct store *s, MDB_txn *txn, struct store_space *out)
{
    MDB_envinfo info;
    MDB_stat stat;
    uint64_t free_pages;
    enum store_status status = store_free_pages(s, txn, &free_pages);
    if (status != STORE_OK)
        return status;
    mdb_env_info(s->env, &info);
    mdb_env_stat(s->env, &stat);
    uint64_t pages = (uint64_t)info.me_last_pgno + 1;
    *out = (struct store_space){.map_bytes = info.me_mapsize,
                                .used_bytes =
                                    pages > free_pages ? (pages - free_pages) * stat.ms_psize : 0,
                                .growth_bytes = store_growth_bytes(s),
                                .readers = store_count_readers(s),
                                .max_readers = info.me_maxreaders,
                                .last_transaction = info.me_last_txnid};
    return segment_bytes(s, txn, &out->index_bytes);
}

enum store_status store_space(struct store *s, struct store_space *out)
{
    MDB_txn *txn;
    *out = (struct store_space){0};
    enum store_status status = store_snapshot(s, &txn);
    return status == STORE_OK ? measure_space(s, txn, out) : status;
}

enum store_status store_usage(struct store *s, struct store_usage *out)
{
    MDB_txn *txn;
    MDB_stat stat;
    *out = (struct store_usage){0};
    enum store_status status = store_snapshot(s, &txn);
    if (status == STORE_OK)
        status = measure_space(s, txn, &out->space);
    if (status == STORE_OK)
        status = count_space(s, txn, SPACE_WORKSPACE, &out->workspaces);
    if (status == STORE_OK)
        status = count_space(s, txn, SPACE_KEY_ID, &out->keys);
    if (status == STORE_OK)
        status = count_space(s, txn, SPACE_PROJECT, &out->projects);
    if (status == STORE_OK)
        status = count_space(s, txn, SPACE_JOB, &out->jobs);
    mdb_stat(txn, s->dbi[DB_RECORD], &stat);
    out->reports = stat.ms_entries - out->keys;
    return status;
}
