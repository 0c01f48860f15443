#include "store/engine/cursor.h"
#include "store/engine/environment.h"
#include "store/engine/errors.h"
#include "store/engine/free_space.h"
#include "store/engine/snapshot.h"
#include "store/index/index.h"
#include "store/index/merge.h"
#include "store/index/segment_file_internal.h"

#include <errno.h>
#include <stdlib.h>

/* A segment file that no manifest names; ${snapshot}: the first one that showed it so. */
struct unnamed {
    uint64_t workspace, number;
    size_t snapshot;
};

struct sweep {
    struct store *s;
    MDB_txn *txn;
    size_t snapshot;
    const struct buf *before;
    struct buf found; /* struct unnamed */
    enum store_status status;
};

static enum store_status is_named(struct store *s, MDB_txn *txn, uint64_t workspace,
                                  uint64_t number)
{
    struct key k;
    MDB_val v;
    key_id(&k, SPACE_SEGMENT, workspace);
    key_u64(&k, number);
    return store_get(s, txn, SPACE_SEGMENT, &k, &v);
}

static size_t unnamed_since(const struct sweep *w, uint64_t workspace, uint64_t number)
{
    const struct unnamed *u = (const struct unnamed *)(const void *)w->before->p;
    for (size_t i = 0; i < w->before->n / sizeof(*u); i++)
        if (u[i].number == number && u[i].workspace == workspace)
            return u[i].snapshot;
    return w->snapshot;
}

static bool take_file(void *arg, uint64_t workspace, uint64_t number)
{
    struct sweep *w = arg;
    enum store_status status = is_named(w->s, w->txn, workspace, number);
    if (status == STORE_NOT_FOUND) {
        struct unnamed u = {workspace, number, unnamed_since(w, workspace, number)};
        buf_add(&w->found, &u, sizeof(u));
    } else if (status != STORE_OK) {
        w->status = status;
    }
    return w->status == STORE_OK && buf_ok(&w->found);
}

/* Numbers are never reused: a file without a name in one snapshot has none in later ones. */
static enum store_status take_files(struct sweep *w)
{
    w->status = store_snapshot(w->s, &w->txn);
    if (w->status == STORE_OK) {
        w->snapshot = mdb_txn_id(w->txn);
        int rc = segment_file_each(w->s->dir, take_file, w);
        if (rc != 0)
            w->status = store_fail(w->s, rc, "list the segment files");
    }
    store_read_end(w->s);
    if (w->status == STORE_OK && !buf_ok(&w->found))
        w->status = store_fail(w->s, ENOMEM, "list the segment files");
    return w->status;
}

/* The commit that dropped their names is on disk: a power cut cannot bring them back. */
static enum store_status sync_commits(struct store *s)
{
    int rc = mdb_env_sync(s->env, 1);
    return rc == 0 ? STORE_OK : store_fail(s, rc, "sync the store");
}

static enum store_status delete_files(struct sweep *w, struct buf *pending)
{
    enum store_status status = sync_commits(w->s);
    const bool synced = status == STORE_OK;
    size_t oldest = store_oldest_snapshot(w->s);
    const struct unnamed *u = (const struct unnamed *)(const void *)w->found.p;
    for (size_t i = 0; i < w->found.n / sizeof(*u); i++) {
        int rc = 0;
        if (!synced || oldest < u[i].snapshot)
            buf_add(pending, &u[i], sizeof(u[i]));
        else
            rc = segment_file_delete(w->s->dir, u[i].workspace, u[i].number);
        if (rc != 0)
            status = store_fail(w->s, rc, "delete a segment file");
    }
    return status == STORE_OK && !buf_ok(pending)
               ? store_fail(w->s, ENOMEM, "list the segment files")
               : status;
}

/* Does a reader, such as a backup, still need all unnamed files? */
static bool all_are_needed(struct store *s, const struct buf *pending)
{
    const struct unnamed *u = (const struct unnamed *)(const void *)pending->p;
    size_t count = pending->n / sizeof(*u), oldest = count == 0 ? 0 : store_oldest_snapshot(s),
           i = 0;
    while (i < count && oldest < u[i].snapshot)
        i++;
    return count != 0 && i == count;
}

enum store_status sweep_files(struct store *s, struct buf *pending, bool *more)
{
    struct sweep w = {.s = s, .before = pending};
    struct buf left = {0};
    if (all_are_needed(s, pending)) {
        *more = true;
        return STORE_OK;
    }
    enum store_status status = take_files(&w);
    if (status == STORE_OK && w.found.n != 0)
        status = delete_files(&w, &left);
    *more = status != STORE_OK || left.n != 0;
    buf_free(&w.found);
    buf_free(pending);
    *pending = left;
    return status;
}

/* ---- missing files ---- */

/* In one snapshot, so that none of its files is deleted meanwhile. */
enum store_status missing_files(struct store *s, missing_file_fn *each, void *arg)
{
    MDB_txn *txn;
    struct cursor w = {0};
    enum store_status status = store_snapshot(s, &txn);
    if (status == STORE_OK)
        status = cursor_begin(s, txn, &w, SPACE_SEGMENT);
    for (; status == STORE_OK; status = cursor_next(&w)) {
        uint64_t workspace, number;
        struct segment_record record;
        const void *p = store_record(w.v, sizeof(record));
        if (p == NULL || !cursor_u64(&w, 0, &workspace) || !cursor_u64(&w, 1, &number))
            continue; /* its readers report it */
        memcpy(&record, p, sizeof(record));
        if (segment_file_bytes(s->dir, workspace, number) != record.bytes)
            each(arg, workspace, number);
    }
    cursor_end(&w);
    store_read_end(s);
    return status == STORE_NOT_FOUND ? STORE_OK : status;
}
