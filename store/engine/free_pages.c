#include "store/engine/environment.h"
#include "store/engine/errors.h"
#include "store/engine/free_space.h"

#include <stdlib.h>

/* LMDB keeps free pages in its table 0: transaction → list of pages, its length first. */
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

/* A line of mdb_reader_list for each used slot: process, thread, transaction ("-": none). */
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

/* mdb_reader_list writes a heading (or that there is none) and a line for each used slot. */
static int count_reader(const char *line, void *arg)
{
    unsigned *readers = arg;
    while (*line == ' ')
        line++;
    *readers += *line >= '0' && *line <= '9';
    return 0;
}

unsigned store_count_readers(struct store *s)
{
    unsigned readers = 0;
    mdb_reader_list(s->env, count_reader, &readers);
    return readers;
}
