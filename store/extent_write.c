#include "extent_parts.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- what is free ---- */

static bool gone_add(struct extents *e, struct page_run run, size_t txn)
{
    if (e->gone_count == e->gone_cap) {
        size_t cap = e->gone_cap == 0 ? 64 : e->gone_cap * 2;
        struct extent_gone *more = realloc(e->gone, cap * sizeof(*more));
        if (more == NULL)
            return false;
        e->gone = more;
        e->gone_cap = cap;
    }
    e->gone[e->gone_count++] = (struct extent_gone){run, txn};
    return true;
}

/* What lies behind the last page that a row names was named by one of an older snapshot, or was written by who died. */
static bool rest_of_file(struct extents *e)
{
    struct stat st;
    if (fstat(e->fd, &st) != 0)
        return false;
    uint64_t end = pages_of((uint64_t)st.st_size), known = e->spare.end;
    if (end > known) {
        e->spare.end = end;
        spare_give(&e->spare, (struct page_run){known, end - known});
    }
    return true;
}

/* Before the transaction ${txn}: what no row names is free as soon as nobody has an older snapshot than the last one's. */
static enum store_status look(struct store *s, MDB_txn *mdb, size_t txn)
{
    struct buf used = {0};
    enum store_status status = extent_opened(s, mdb);
    if (status == STORE_OK)
        status = extent_used(s, mdb, &used);
    if (status != STORE_OK) {
        buf_free(&used);
        return status;
    }
    struct extents *e = s->extents;
    bool good = spare_rest(&e->spare, FIRST_PAGE, (struct page_run *)(void *)used.p, used.n / sizeof(struct page_run)) && rest_of_file(e);
    buf_free(&used);
    e->gone_count = e->taken_count = 0;
    for (size_t i = 0; good && i < e->spare.count; i++)
        good = gone_add(e, e->spare.runs[i], txn - 1);
    e->spare.count = 0;
    e->txn = good ? txn : 0;
    return good ? STORE_OK : store_fail(s, ENOMEM, "find room in parts.dat");
}

/* Of an earlier store in this directory there may be one, which is not written to: a restore may have kept it under another name. */
static enum store_status make_file(struct store *s, uint64_t id)
{
    char path[sizeof(s->dir) + 16];
    struct extent_head head = {.text = HEAD_TEXT, .id = id};
    snprintf(path, sizeof(path), "%s/parts.dat", s->dir);
    if (unlink(path) != 0 && errno != ENOENT)
        return store_fail(s, errno, "make parts.dat");
    int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    bool good = fd >= 0 && pwrite(fd, &head, sizeof(head), 0) == (ssize_t)sizeof(head) && fsync(fd) == 0 && store_sync_dir(s->dir) == 0;
    enum store_status status = good ? STORE_OK : store_fail(s, errno, "make parts.dat");
    if (fd >= 0)
        close(fd);
    return status;
}

/* From the commit on, the store has it. */
static enum store_status begin_file(struct store *s)
{
    struct store_txn *t;
    struct key k;
    uint64_t id;
    if (getrandom(&id, sizeof(id), 0) != (ssize_t)sizeof(id))
        return store_fail(s, errno, "get random bytes");
    enum store_status status = make_file(s, id);
    if (status == STORE_OK)
        status = store_begin(s, &t);
    if (status != STORE_OK)
        return status;
    extent_id_key(&k);
    txn_put(t, SPACE_META, &k, &id, sizeof(id));
    return store_commit(t);
}

/* The file, and what of it is free. */
static enum store_status open_whole(struct store *s)
{
    MDB_txn *txn;
    enum store_status status = store_snapshot(s, &txn);
    if (status == STORE_OK)
        status = look(s, txn, mdb_txn_id(txn) + 1);
    if (status == STORE_OK)
        status = extent_look(s, txn);
    store_read_end(s);
    return status;
}

enum store_status extent_open(struct store *s, char *why, size_t why_size)
{
    MDB_txn *txn;
    uint64_t id;
    enum store_status status = store_snapshot(s, &txn);
    if (status == STORE_OK)
        status = extent_read_id(s, txn, &id);
    if (status == STORE_OK && s->mode == STORE_READ)
        (void)extent_use(s, id); /* where it can't be, what needs it says so: a check tells more of it */
    store_read_end(s);
    if (s->mode == STORE_READ)
        return STORE_OK;
    if (status == STORE_NOT_FOUND)
        status = begin_file(s);
    if (status == STORE_OK)
        status = open_whole(s);
    if (status != STORE_OK)
        snprintf(why, why_size, "%s", s->why);
    return status;
}

/* ---- a transaction ---- */

/* Whoever else wrote to the store, between two transactions of ours, may have taken what was free. */
static struct extents *known(struct store_txn *t)
{
    struct store *s = t->s;
    size_t txn = mdb_txn_id(t->mdb);
    if (t->error == STORE_OK && (s->extents == NULL || s->extents->txn != txn))
        t->error = look(s, t->mdb, txn);
    return t->error == STORE_OK ? s->extents : NULL;
}

/* The commit after the one that gave it up has that one on the disk, so it has to be over as well. */
static void reclaim(struct store *s, struct extents *e)
{
    size_t oldest = store_oldest_snapshot(s), kept = 0;
    for (size_t i = 0; i < e->gone_count; i++) {
        const struct extent_gone *g = &e->gone[i];
        if (g->txn != 0 && g->txn <= oldest && g->txn + 2 <= e->txn)
            spare_give(&e->spare, g->run);
        else
            e->gone[kept++] = *g;
    }
    e->gone_count = kept;
    e->reclaimed = e->txn;
}

static bool fits(const struct spare *p, uint64_t count)
{
    for (size_t i = 0; i < p->count; i++)
        if (p->runs[i].count >= count)
            return true;
    return false;
}

static bool taken_add(struct extents *e, struct page_run run)
{
    if (e->taken_count == e->taken_cap) {
        size_t cap = e->taken_cap == 0 ? 16 : e->taken_cap * 2;
        struct page_run *more = realloc(e->taken, cap * sizeof(*more));
        if (more == NULL)
            return false;
        e->taken = more;
        e->taken_cap = cap;
    }
    e->taken[e->taken_count++] = run;
    return true;
}

/* The file may become as large as the map, which is the bound that its operator set. */
static bool take(struct store_txn *t, struct extents *e, uint64_t bytes, uint64_t *at)
{
    MDB_envinfo info;
    struct page_run run = {.count = pages_of(bytes)};
    if (!fits(&e->spare, run.count) && e->reclaimed != e->txn)
        reclaim(t->s, e);
    mdb_env_info(t->s->env, &info);
    if (!fits(&e->spare, run.count) && e->spare.end + run.count > info.me_mapsize / PAGE_BYTES)
        return false;
    run.page = spare_take(&e->spare, run.count);
    *at = run.page * PAGE_BYTES;
    if (taken_add(e, run))
        return true;
    spare_give(&e->spare, run);
    return false;
}

static bool write_pieces(int fd, const struct str *pieces, size_t count, uint64_t at)
{
    for (size_t i = 0; i < count; i++) {
        for (size_t done = 0; done < pieces[i].n;) {
            errno = EIO;
            ssize_t n = pwrite(fd, pieces[i].p + done, pieces[i].n - done, (off_t)(at + done));
            if (n <= 0 && errno != EINTR)
                return false;
            done += n > 0 ? (size_t)n : 0;
        }
        at += pieces[i].n;
    }
    return true;
}

/* false: there is no room for it, or no memory, and nothing was done. */
static bool put_extent(struct store_txn *t, enum space space, struct key *key, const struct str *pieces, size_t count, size_t bytes)
{
    struct extents *e = known(t);
    uint64_t at;
    if (e == NULL)
        return true;
    if (!take(t, e, bytes, &at))
        return false;
    if (!write_pieces(e->fd, pieces, count, at)) {
        bool full = errno == ENOSPC || errno == EDQUOT || errno == EFBIG;
        if (full)
            spare_give(&e->spare, e->taken[--e->taken_count]);
        else
            txn_fail(t, errno, "write a part of an index");
        return !full;
    }
    const struct extent_ref ref = {.format = REF_FORMAT, .at = at, .bytes = bytes};
    e->written = true;
    txn_put(t, space, key, &ref, sizeof(ref));
    return true;
}

static void put_inline(struct store_txn *t, enum space space, struct key *key, const struct str *pieces, size_t count, size_t n)
{
    size_t least = space == SPACE_PART ? store_page_value(t->s) : 0;
    char *to = txn_reserve(t, space, key, n > least ? n : least);
    for (size_t i = 0; to != NULL && i < count; i++) {
        if (pieces[i].n != 0)
            memcpy(to, pieces[i].p, pieces[i].n);
        to += pieces[i].n;
    }
    if (to != NULL && least > n)
        memset(to, 0, least - n);
}

/* Where the file can't grow, data.mdb may have free pages. */
void extent_put(struct store_txn *t, enum space space, struct key *key, const struct str *pieces, size_t count)
{
    size_t n = 0;
    for (size_t i = 0; i < count; i++)
        n += pieces[i].n;
    extent_gone(t, space, key);
    if (t->error == STORE_OK && !(n >= t->s->part_bytes && put_extent(t, space, key, pieces, count, n)))
        put_inline(t, space, key, pieces, count, n);
}

void extent_gone(struct store_txn *t, enum space space, struct key *key)
{
    MDB_val v;
    struct extent_ref ref;
    if (!is_long_space(space) || txn_get(t, space, key, &v) != STORE_OK || !is_ref(v, &ref))
        return;
    struct extents *e = known(t);
    if (e != NULL && is_place(ref.at, ref.bytes) && !gone_add(e, (struct page_run){ref.at / PAGE_BYTES, pages_of(ref.bytes)}, 0))
        txn_fail(t, ENOMEM, "give up a part of an index");
}

bool extent_unsettled(const struct store *s)
{
    return s->extents != NULL && s->extents->written;
}

int extent_settle(struct store *s)
{
    if (fdatasync(s->extents->fd) != 0)
        return errno;
    s->extents->written = false;
    return 0;
}

/* Parts of the reports' index wait for what names them all. */
int extent_sync(struct store_txn *t)
{
    struct extents *e = t->s->extents;
    return e != NULL && e->written && t->installed ? extent_settle(t->s) : 0;
}

void extent_committed(struct store_txn *t, size_t txn)
{
    struct extents *e = t->s->extents;
    if (e == NULL)
        return;
    e->taken_count = 0;
    for (size_t i = 0; i < e->gone_count; i++)
        if (e->gone[i].txn == 0)
            e->gone[i].txn = txn;
    e->txn = e->txn == txn ? store_version(t->s) + 1 : 0; /* one that changed nothing has no number */
}

void extent_aborted(struct store_txn *t)
{
    struct extents *e = t->s->extents;
    size_t kept = 0;
    if (e == NULL)
        return;
    for (size_t i = 0; i < e->taken_count; i++)
        spare_give(&e->spare, e->taken[i]);
    e->taken_count = 0;
    for (size_t i = 0; i < e->gone_count; i++)
        if (e->gone[i].txn != 0)
            e->gone[kept++] = e->gone[i];
    e->gone_count = kept;
}
