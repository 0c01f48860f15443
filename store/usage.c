#include "store/index/index.h"

#include <stdlib.h>

/* How much of the map and of the table of readers is in use, and how many records there are. */

/* LMDB keeps what is free in its own table: transaction → list of pages, its length first. */
static enum store_status free_before(struct store *s, MDB_txn *txn, size_t transaction,
                                     uint64_t *out)
{
    MDB_cursor *cursor;
    MDB_val k, v;
    *out = 0;
    int rc = mdb_cursor_open(txn, 0, &cursor);
    if (rc == 0) {
        while ((rc = mdb_cursor_get(cursor, &k, &v, MDB_NEXT)) == 0) {
            size_t pages = 0, freed = 0;
            if (k.mv_size == sizeof(freed))
                memcpy(&freed, k.mv_data, sizeof(freed));
            if (freed >= transaction)
                break;
            if (v.mv_size >= sizeof(pages))
                memcpy(&pages, v.mv_data, sizeof(pages));
            *out += pages;
        }
        mdb_cursor_close(cursor);
    }
    return rc == 0 || rc == MDB_NOTFOUND ? STORE_OK
                                         : store_fail(s, rc, "read the list of free pages");
}

enum store_status store_free_pages(struct store *s, MDB_txn *txn, uint64_t *out)
{
    return free_before(s, txn, SIZE_MAX, out);
}

/* A line of mdb_reader_list for each slot in use: process, thread, transaction ("-": none). */
static int note_oldest(const char *line, void *arg)
{
    size_t *oldest = arg;
    const char *last = strrchr(line, ' ');
    char *end;
    if (last == NULL || last[1] < '0' || last[1] > '9')
        return 0;
    size_t transaction = strtoull(last + 1, &end, 10);
    if (transaction < *oldest)
        *oldest = transaction;
    return 0;
}

size_t store_oldest_snapshot(struct store *s)
{
    size_t oldest = SIZE_MAX;
    mdb_reader_list(s->env, note_oldest, &oldest);
    return oldest;
}

enum store_status store_usable_pages(struct store *s, MDB_txn *txn, uint64_t *out)
{
    return free_before(s, txn, store_oldest_snapshot(s), out);
}

/* How many keys start with the tag of ${space}; they are few but for reports, which have a sub-database's count. */
static enum store_status count_space(struct store *s, MDB_txn *txn, enum space space, uint64_t *out)
{
    struct walk w;
    enum store_status status = walk_begin(s, txn, &w, space);
    *out = 0;
    for (; status == STORE_OK; status = walk_next(&w))
        ++*out;
    walk_end(&w);
    return status == STORE_NOT_FOUND ? STORE_OK : status;
}

/* mdb_reader_list tells in lines: a heading, or that there is none, and one a slot in use. */
static int count_reader(const char *line, void *arg)
{
    unsigned *readers = arg;
    while (*line == ' ')
        line++;
    *readers += *line >= '0' && *line <= '9';
    return 0;
}

static enum store_status segment_bytes(struct store *s, MDB_txn *txn, uint64_t *out)
{
    struct walk w;
    enum store_status status = walk_begin(s, txn, &w, SPACE_SEGMENT);
    for (; status == STORE_OK; status = walk_next(&w)) {
        struct segment_record r;
        const uint8_t *dead;
        if (index_segment_read(s, w.v, &r, &dead) == STORE_OK)
            *out += r.bytes;
    }
    walk_end(&w);
    return status == STORE_NOT_FOUND ? STORE_OK : status;
}

/* in the snapshot that is open */
static enum store_status measure_room(struct store *s, MDB_txn *txn, struct store_room *out)
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
    *out = (struct store_room){.map_bytes = info.me_mapsize,
                               .used_bytes =
                                   pages > free_pages ? (pages - free_pages) * stat.ms_psize : 0,
                               .max_readers = info.me_maxreaders,
                               .last_transaction = info.me_last_txnid};
    mdb_reader_list(s->env, count_reader, &out->readers);
    return segment_bytes(s, txn, &out->index_bytes);
}

enum store_status store_room(struct store *s, struct store_room *out)
{
    MDB_txn *txn;
    *out = (struct store_room){0};
    enum store_status status = store_snapshot(s, &txn);
    return status == STORE_OK ? measure_room(s, txn, out) : status;
}

enum store_status store_usage(struct store *s, struct store_usage *out)
{
    MDB_txn *txn;
    MDB_stat stat;
    *out = (struct store_usage){0};
    enum store_status status = store_snapshot(s, &txn);
    if (status == STORE_OK)
        status = measure_room(s, txn, &out->room);
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
