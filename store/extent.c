#include "extent.h"
#include "index.h"
#include "spare.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#define PAGE_BYTES 4096
#define FIRST_PAGE 1 /* of extents; the one before is the head */
#define MAP_LEAST ((uint64_t)256 << 20) /* of addresses */
#define MAPS 40

static const enum space spaces[] = {SPACE_PART, SPACE_TEXT_PART};
#define SPACES_COUNT (sizeof(spaces) / sizeof(*spaces))

/* What a row is that names an extent: shorter than any part. */
struct PACKED ref {
    uint8_t format;
    uint64_t at, bytes;
};
#define REF_FORMAT 1

struct PACKED head {
    char text[16];
    uint64_t id;
};
#define HEAD_TEXT "assay parts 1\n"

/* Pages that a transaction gave up: free when no snapshot is older than it, and it is on the disk. */
struct gone {
    struct run run;
    size_t txn; /* 0: of the transaction under way */
};

struct extents {
    int fd;
    uint64_t file_bytes; /* known to be there */
    /* as the file grows it is mapped anew, larger; what was borrowed of an older map is still there */
    struct {
        const uint8_t *p;
        uint64_t bytes;
    } maps[MAPS];
    size_t map_count;
    /* writer */
    struct spare spare;
    struct gone *gone;
    size_t gone_count, gone_cap;
    struct run *taken; /* by the transaction under way */
    size_t taken_count, taken_cap;
    size_t reclaimed;    /* in which ${gone} was gone through last */
    size_t txn;          /* LMDB's number of the transaction that all this is of, as it began; 0: unknown */
    bool written, named; /* since the last sync; by the transaction under way, in a part that is of use at once */
};

static bool is_long_space(enum space space)
{
    return space == SPACE_PART || space == SPACE_TEXT_PART;
}

static uint64_t pages_of(uint64_t bytes)
{
    return (bytes + PAGE_BYTES - 1) / PAGE_BYTES;
}

static bool is_ref(MDB_val v, struct ref *out)
{
    if (v.mv_size != sizeof(*out))
        return false;
    memcpy(out, v.mv_data, sizeof(*out));
    return true;
}

static bool is_place(uint64_t at, uint64_t bytes)
{
    return at >= FIRST_PAGE * PAGE_BYTES && at % PAGE_BYTES == 0 && bytes != 0 && at <= INT64_MAX && bytes <= INT64_MAX - at;
}

/* ---- the file ---- */

void extent_id_key(struct key *k)
{
    key_space(k, SPACE_META);
    key_bytes(k, "p", 1);
}

static enum store_status read_id(struct store *s, MDB_txn *txn, uint64_t *out)
{
    struct key k;
    MDB_val v;
    extent_id_key(&k);
    enum store_status status = store_get(s, txn, SPACE_META, &k, &v);
    if (status == STORE_OK && v.mv_size != sizeof(*out))
        status = store_corrupt(s, "the number of parts.dat");
    if (status == STORE_OK)
        memcpy(out, v.mv_data, sizeof(*out));
    return status;
}

static enum store_status foreign(struct store *s, const char *what)
{
    snprintf(s->why, sizeof(s->why), "parts.dat %s: put both files back as they were together, or restore a backup", what);
    return STORE_CORRUPT;
}

static struct extents *extents_of(struct store *s)
{
    if (s->extents == NULL && (s->extents = calloc(1, sizeof(*s->extents))) != NULL)
        s->extents->fd = -1;
    return s->extents;
}

/* Open it, and see that it is the one that belongs to this data.mdb. */
static enum store_status open_file(struct store *s, uint64_t id)
{
    char path[sizeof(s->dir) + 16];
    struct head head;
    struct extents *e = extents_of(s);
    if (e == NULL)
        return store_fail(s, ENOMEM, "open parts.dat");
    snprintf(path, sizeof(path), "%s/parts.dat", s->dir);
    int fd = open(path, (s->mode == STORE_WRITE ? O_RDWR : O_RDONLY) | O_CLOEXEC);
    if (fd < 0 && errno == ENOENT)
        return foreign(s, "is not there");
    if (fd < 0)
        return store_fail(s, errno, "open parts.dat");
    bool whole = pread(fd, &head, sizeof(head), 0) == (ssize_t)sizeof(head);
    bool ours = whole && memcmp(head.text, HEAD_TEXT, sizeof(HEAD_TEXT)) == 0 && head.id == id;
    if (!ours) {
        close(fd);
        return foreign(s, "belongs to another data.mdb");
    }
    e->fd = fd;
    return STORE_OK;
}

enum store_status extent_use(struct store *s, uint64_t id)
{
    return s->extents != NULL && s->extents->fd >= 0 ? STORE_OK : open_file(s, id);
}

static enum store_status opened(struct store *s, MDB_txn *txn)
{
    uint64_t id;
    if (s->extents != NULL && s->extents->fd >= 0)
        return STORE_OK;
    enum store_status status = read_id(s, txn, &id);
    return status == STORE_OK ? open_file(s, id) : status == STORE_NOT_FOUND ? foreign(s, "is not named by data.mdb") : status;
}

static const uint8_t *map_upto(struct store *s, uint64_t end)
{
    struct extents *e = s->extents;
    uint64_t bytes = MAP_LEAST;
    if (e->map_count != 0 && e->maps[e->map_count - 1].bytes >= end)
        return e->maps[e->map_count - 1].p;
    while (bytes < 2 * end)
        bytes *= 2;
    if (e->map_count == MAPS)
        return NULL;
    void *p = mmap(NULL, bytes, PROT_READ, MAP_SHARED | MAP_NORESERVE, e->fd, 0);
    if (p == MAP_FAILED)
        return NULL;
    if (s->sparing)
        madvise(p, bytes, MADV_RANDOM);
    e->maps[e->map_count].p = p;
    e->maps[e->map_count++].bytes = bytes;
    return p;
}

enum store_status extent_read(struct store *s, MDB_txn *txn, uint64_t at, uint64_t bytes, MDB_val *out)
{
    struct stat st;
    enum store_status status = opened(s, txn);
    if (status != STORE_OK)
        return status;
    struct extents *e = s->extents;
    if (!is_place(at, bytes))
        return store_corrupt(s, "a part of an index");
    if (at + bytes > e->file_bytes) {
        if (fstat(e->fd, &st) != 0)
            return store_fail(s, errno, "look at parts.dat");
        e->file_bytes = (uint64_t)st.st_size;
    }
    if (at + bytes > e->file_bytes)
        return foreign(s, "is cut short");
    const uint8_t *map = map_upto(s, at + bytes);
    if (map == NULL)
        return store_fail(s, ENOMEM, "map parts.dat");
    *out = (MDB_val){bytes, (void *)(uintptr_t)(map + at)};
    return STORE_OK;
}

enum store_status extent_get(struct store *s, MDB_txn *txn, enum space space, struct key *key, MDB_val *out)
{
    struct ref ref;
    enum store_status status = store_get(s, txn, space, key, out);
    if (status != STORE_OK || !is_ref(*out, &ref))
        return status;
    return ref.format == REF_FORMAT ? extent_read(s, txn, ref.at, ref.bytes, out) : store_corrupt(s, "a part of an index");
}

void extent_close(struct store *s)
{
    struct extents *e = s->extents;
    if (e == NULL)
        return;
    for (size_t i = 0; i < e->map_count; i++)
        munmap((void *)(uintptr_t)e->maps[i].p, e->maps[i].bytes);
    if (e->fd >= 0)
        close(e->fd);
    spare_free(&e->spare);
    free(e->gone);
    free(e->taken);
    free(e);
    s->extents = NULL;
}

/* ---- all of them ---- */

enum store_status extent_each(struct store *s, MDB_txn *txn, extent_fn *each, void *arg)
{
    bool more = true;
    for (size_t i = 0; i < SPACES_COUNT && more; i++) {
        struct walk w = {0};
        struct ref ref;
        enum store_status status = walk_begin(s, txn, &w, spaces[i]);
        for (; status == STORE_OK && more; status = walk_next(&w))
            if (is_ref(w.v, &ref))
                more = each(arg, &(struct extent_at){&w, spaces[i], ref.at, ref.bytes});
        walk_end(&w);
        if (more && status != STORE_NOT_FOUND)
            return status;
    }
    return STORE_OK;
}

static bool add_bytes(void *arg, const struct extent_at *at)
{
    uint64_t *sum = arg;
    *sum += pages_of(at->bytes) * PAGE_BYTES;
    return true;
}

enum store_status extent_bytes(struct store *s, MDB_txn *txn, uint64_t *out)
{
    *out = 0;
    return extent_each(s, txn, add_bytes, out);
}

bool extent_is_named(struct store *s, MDB_txn *txn, const struct extent_at *at)
{
    uint64_t workspace, part;
    struct manifest m;
    if (at->space != SPACE_PART || !walk_u64(at->row, 0, &workspace) || !walk_u64(at->row, 1, &part))
        return true;
    return index_manifest(s, txn, workspace, &m) != STORE_OK || index_names(&m, part);
}

uint64_t extent_file_bytes(struct store *s, MDB_txn *txn)
{
    struct stat st;
    return opened(s, txn) == STORE_OK && fstat(s->extents->fd, &st) == 0 ? (uint64_t)st.st_size : 0;
}

static bool note_run(void *arg, const struct extent_at *at)
{
    if (!is_place(at->at, at->bytes)) /* whoever reads it says so */
        return true;
    struct run run = {at->at / PAGE_BYTES, pages_of(at->bytes)};
    buf_add(arg, &run, sizeof(run));
    return buf_ok(arg);
}

/* The runs that rows name; to be freed. */
static enum store_status used_runs(struct store *s, MDB_txn *txn, struct buf *out)
{
    enum store_status status = extent_each(s, txn, note_run, out);
    return status == STORE_OK && !buf_ok(out) ? store_fail(s, ENOMEM, "read where the parts of indexes are") : status;
}

struct checking {
    struct store *s;
    MDB_txn *txn;
    store_problem_fn *problem;
    void *arg;
};

/* The first is told: a file that is not the right one has them all. */
static bool check_one(void *arg, const struct extent_at *at)
{
    struct checking *c = arg;
    MDB_val v;
    if (!extent_is_named(c->s, c->txn, at)) /* a merge did not end, and it need not be on the disk */
        return true;
    bool good = extent_read(c->s, c->txn, at->at, at->bytes, &v) == STORE_OK;
    if (!good)
        c->problem(c->arg, store_why(c->s));
    return good;
}

/* A writer wants it there, though nothing may be in it. */
static enum store_status check_rows(struct checking *c)
{
    uint64_t id;
    enum store_status status = read_id(c->s, c->txn, &id);
    if (status == STORE_OK)
        status = opened(c->s, c->txn);
    if (status == STORE_OK || status == STORE_NOT_FOUND)
        return extent_each(c->s, c->txn, check_one, c);
    if (status == STORE_CORRUPT)
        c->problem(c->arg, store_why(c->s));
    return status == STORE_CORRUPT ? STORE_OK : status;
}

enum store_status extent_check(struct store *s, MDB_txn *txn, store_problem_fn *problem, void *arg)
{
    struct buf used = {0};
    struct spare spare = {0};
    uint64_t free_pages = 0, pages = 0;
    enum store_status status = check_rows(&(struct checking){s, txn, problem, arg});
    if (status == STORE_OK)
        status = used_runs(s, txn, &used);
    struct run *runs = (struct run *)(void *)used.p;
    size_t count = used.n / sizeof(*runs);
    if (status == STORE_OK && !spare_rest(&spare, FIRST_PAGE, runs, count))
        status = store_fail(s, ENOMEM, "look at the parts of indexes");
    for (size_t i = 0; i < spare.count; i++)
        free_pages += spare.runs[i].count;
    for (size_t i = 0; i < count; i++)
        pages += runs[i].count;
    if (status == STORE_OK && spare.end - FIRST_PAGE - free_pages != pages)
        problem(arg, "parts of indexes lie over each other in parts.dat");
    spare_free(&spare);
    buf_free(&used);
    return status;
}

/* ---- the writer ---- */

static bool gone_add(struct extents *e, struct run run, size_t txn)
{
    if (e->gone_count == e->gone_cap) {
        size_t cap = e->gone_cap == 0 ? 64 : e->gone_cap * 2;
        struct gone *more = realloc(e->gone, cap * sizeof(*more));
        if (more == NULL)
            return false;
        e->gone = more;
        e->gone_cap = cap;
    }
    e->gone[e->gone_count++] = (struct gone){run, txn};
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
        spare_give(&e->spare, (struct run){known, end - known});
    }
    return true;
}

/* Before the transaction ${txn}: what no row names is free as soon as nobody has an older snapshot than the last one's. */
static enum store_status look(struct store *s, MDB_txn *mdb, size_t txn)
{
    struct buf used = {0};
    enum store_status status = opened(s, mdb);
    if (status == STORE_OK)
        status = used_runs(s, mdb, &used);
    if (status != STORE_OK) {
        buf_free(&used);
        return status;
    }
    struct extents *e = s->extents;
    bool good = spare_rest(&e->spare, FIRST_PAGE, (struct run *)(void *)used.p, used.n / sizeof(struct run)) && rest_of_file(e);
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
    struct head head = {.text = HEAD_TEXT, .id = id};
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
    store_read_end(s);
    return status;
}

enum store_status extent_open(struct store *s, char *why, size_t why_size)
{
    MDB_txn *txn;
    uint64_t id;
    enum store_status status = store_snapshot(s, &txn);
    if (status == STORE_OK)
        status = read_id(s, txn, &id);
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
        const struct gone *g = &e->gone[i];
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

static bool taken_add(struct extents *e, struct run run)
{
    if (e->taken_count == e->taken_cap) {
        size_t cap = e->taken_cap == 0 ? 16 : e->taken_cap * 2;
        struct run *more = realloc(e->taken, cap * sizeof(*more));
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
    struct run run = {.count = pages_of(bytes)};
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
            ssize_t n = pwrite(fd, pieces[i].p + done, pieces[i].n - done, (off_t)(at + done));
            if (n < 0 && errno != EINTR)
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
        bool full = errno == ENOSPC || errno == EDQUOT;
        if (full)
            spare_give(&e->spare, e->taken[--e->taken_count]);
        else
            txn_fail(t, errno, "write a part of an index");
        return !full;
    }
    const struct ref ref = {.format = REF_FORMAT, .at = at, .bytes = bytes};
    e->written = true;
    e->named = e->named || space != SPACE_PART; /* those are named by a manifest, later */
    txn_put(t, space, key, &ref, sizeof(ref));
    return true;
}

static void put_inline(struct store_txn *t, enum space space, struct key *key, const struct str *pieces, size_t count, size_t n, size_t bytes)
{
    char *to = txn_reserve(t, space, key, bytes > n ? bytes : n);
    for (size_t i = 0; to != NULL && i < count; i++) {
        if (pieces[i].n != 0)
            memcpy(to, pieces[i].p, pieces[i].n);
        to += pieces[i].n;
    }
    if (to != NULL && bytes > n)
        memset(to, 0, bytes - n);
}

/* While an older format is brought up, there is no such file yet; and where it can't grow, data.mdb may have free pages. */
void extent_put(struct store_txn *t, enum space space, struct key *key, const struct str *pieces, size_t count, size_t bytes)
{
    size_t n = 0;
    for (size_t i = 0; i < count; i++)
        n += pieces[i].n;
    extent_gone(t, space, key);
    if (t->error == STORE_OK && !(n >= t->s->part_bytes && t->s->extents != NULL && put_extent(t, space, key, pieces, count, n)))
        put_inline(t, space, key, pieces, count, n, bytes);
}

void extent_gone(struct store_txn *t, enum space space, struct key *key)
{
    MDB_val v;
    struct ref ref;
    if (!is_long_space(space) || txn_get(t, space, key, &v) != STORE_OK || !is_ref(v, &ref))
        return;
    struct extents *e = known(t);
    if (e != NULL && is_place(ref.at, ref.bytes) && !gone_add(e, (struct run){ref.at / PAGE_BYTES, pages_of(ref.bytes)}, 0))
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
    return e != NULL && e->written && (e->named || t->installed) ? extent_settle(t->s) : 0;
}

void extent_committed(struct store_txn *t, size_t txn)
{
    struct extents *e = t->s->extents;
    if (e == NULL)
        return;
    e->named = false;
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
    e->named = false;
    for (size_t i = 0; i < e->taken_count; i++)
        spare_give(&e->spare, e->taken[i]);
    e->taken_count = 0;
    for (size_t i = 0; i < e->gone_count; i++)
        if (e->gone[i].txn != 0)
            e->gone[kept++] = e->gone[i];
    e->gone_count = kept;
}
