#include "store/engine/free_space.h"

#include "store/engine/environment.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/statvfs.h>

/*
 * Pages of the map: all; those after the end of the file; free ones within the file, counted only
 * if the former are few; those kept in reserve.
 */
struct space_left {
    uint64_t map, behind, free, reserve;
    bool known; /* ${free} was counted */
};

/* Free pages are counted if at most ${reserves} times the reserve follow the end of the file. */
static struct space_left measure_space(struct store *s, unsigned reserves)
{
    enum { RESERVE_PAGES = 100 };
    MDB_envinfo info;
    MDB_stat stat;
    MDB_txn *txn;
    mdb_env_info(s->env, &info);
    mdb_env_stat(s->env, &stat);
    struct space_left r = {.map = info.me_mapsize / stat.ms_psize};
    uint64_t end = (uint64_t)info.me_last_pgno + 1;
    r.behind = r.map > end ? r.map - end : 0;
    r.reserve = r.map / 20 > RESERVE_PAGES
                    ? r.map / 20
                    : RESERVE_PAGES; /* needed by deletes and finished gradings of a small map */
    if (r.behind > reserves * r.reserve || mdb_txn_begin(s->env, NULL, MDB_RDONLY, &txn) != 0)
        return r; /* MDB_MAP_FULL will follow */
    r.known = true;
    if (store_usable_pages(s, txn, &r.free) != STORE_OK)
        r.free = 0;
    mdb_txn_abort(txn);
    return r;
}

uint64_t store_pages_left(struct store *s, uint64_t *reserve)
{
    struct space_left r = measure_space(s, 2);
    *reserve = r.reserve;
    return r.behind + r.free;
}

uint64_t store_pages_to_leave(struct store *s)
{
    uint64_t reserve, left = store_pages_left(s, &reserve), stop = reserve + reserve / 4;
    return left > stop ? stop : left / 2;
}

/*
 * Creates continue while the end of the file is below 95 % of the map. Near the end of the map free
 * pages are scattered, but results need some in a row: more of them must be free then, so that
 * gradings can still finish.
 */
static bool is_full(const struct space_left *r)
{
    return r->known && r->behind <= r->reserve &&
           (r->behind + r->free <= r->reserve ||
            (r->behind <= r->map / 50 && r->free <= r->map / 5));
}

enum { SPACE_LEFT, MAP_FULL, DISK_FULL, FILE_FULL, NODE_FULL };

void store_refuse_growth(struct store *s, bool refuse)
{
    s->shared->refuses_growth = refuse;
}

uint64_t store_growth_bytes(struct store *s)
{
    MDB_stat stat;
    int why;
    mdb_env_stat(s->env, &stat);
    struct space_left r = measure_space(s, 2);
    uint64_t left = r.behind + r.free, ahead = store_bytes_ahead(s, &why),
             map = is_full(&r) || left <= r.reserve ? 0 : (left - r.reserve) * stat.ms_psize,
             disk = ahead + r.free * stat.ms_psize;
    disk = disk > STORE_DISK_RESERVE ? disk - STORE_DISK_RESERVE : 0;
    return map < disk ? map : disk;
}

uint64_t store_bytes_ahead(const struct store *s, int *why)
{
    struct statvfs fs;
    struct rlimit longest;
    MDB_envinfo info;
    MDB_stat stat;
    uint64_t bytes = statvfs(s->dir, &fs) == 0 ? (uint64_t)fs.f_bavail * fs.f_frsize : UINT64_MAX;
    *why = ENOSPC;
    if (getrlimit(RLIMIT_FSIZE, &longest) != 0 || longest.rlim_cur == RLIM_INFINITY)
        return bytes;
    mdb_env_info(s->env, &info);
    mdb_env_stat(s->env, &stat);
    uint64_t end = ((uint64_t)info.me_last_pgno + 1) * stat.ms_psize;
    uint64_t file = longest.rlim_cur > end ? longest.rlim_cur - end : 0;
    if (file >= bytes)
        return bytes;
    *why = EFBIG;
    return file;
}

/*
 * The disk, or the limit of file sizes, may end before the map. Creates leave a part of it; deletes
 * use that part until pages of the file are free again.
 */
static void look_at_disk(struct store_txn *t)
{
    MDB_stat stat;
    int why;
    uint64_t bytes = store_bytes_ahead(t->s, &why);
    if (bytes >= STORE_DISK_RESERVE)
        return;
    mdb_env_stat(t->s->env, &stat);
    uint64_t reserve = STORE_DISK_RESERVE / stat.ms_psize;
    uint64_t left = bytes / stat.ms_psize + measure_space(t->s, UINT_MAX).free;
    uint64_t spare = left > reserve / 2 ? left - reserve / 2 : 0;
    if (t->full == SPACE_LEFT && left <= reserve)
        t->full = why == ENOSPC ? DISK_FULL : FILE_FULL;
    if (t->result_pages > spare)
        t->result_pages = spare;
}

/*
 * Creates leave the reserve to results and deletes; its second half is for deletes only.
 */
static void look_at_space(struct store_txn *t)
{
    struct space_left r = measure_space(t->s, 2);
    uint64_t left = r.behind + r.free;
    t->full = is_full(&r) ? MAP_FULL : t->s->shared->refuses_growth ? NODE_FULL : SPACE_LEFT;
    t->create_pages = !r.known ? UINT64_MAX : left > r.reserve ? left - r.reserve : 0;
    t->result_pages = !r.known ? r.behind : left > r.reserve / 2 ? left - r.reserve / 2 : 0;
    look_at_disk(t);
}

/*
 * A transaction writes a copy of each page that it changes. The pages that it replaces are free
 * only in the transaction after the next one. So that the next one has some, it may not take all.
 */
enum { TXN_PAGES = 20, PAGES_A_CHANGE = 4 }; /* of any transaction, and more for each change */

uint64_t txn_batch_limit(struct store_txn *t, uint64_t limit)
{
    enum { PAGES_A_RECORD = 8 };
    struct space_left r = measure_space(t->s, 1);
    uint64_t most = (r.behind + r.free) / 2 / PAGES_A_RECORD + 1;
    t->batch_limit = most < limit ? most : limit;
    t->spent = 0;
    return t->batch_limit;
}

bool txn_must_stop(const struct store_txn *t)
{
    return t->background && t->stop != NULL && t->stop(t->stop_arg);
}

void txn_spend(struct store_txn *t, uint64_t *left)
{
    t->spent++;
    *left = txn_must_stop(t) ? 0 : *left - 1;
}

static const char file_full_text[] =
    "data.mdb has nearly reached the file size limit: raise it (LimitFSIZE, ulimit -f), or delete "
    "reports";

static const char *const full_texts[] = {
    [MAP_FULL] = "the map is nearly full: raise store.map_size, or delete reports",
    [DISK_FULL] = "the disk is nearly full: free disk space, move data_dir, or delete reports",
    [FILE_FULL] = file_full_text,
    [NODE_FULL] = "a node of the cluster has no space left: see assay cluster status",
};

static const char reserved_text[] =
    "the rest of the map and the disk is reserved for deletes: free disk space, raise "
    "store.map_size, or delete reports";

static bool refuse(struct store_txn *t, const char *why)
{
    snprintf(t->s->why, sizeof(t->s->why), "%s", why);
    return false;
}

/* About as much as the creates so far, stored as a record and in an index. */
static bool creates_fit(struct store_txn *t)
{
    enum { PAGE = 4096, COPIES = 2 };
    t->create_bytes += COPIES * t->change_bytes;
    return t->create_bytes / PAGE <= t->create_pages;
}

bool txn_is_full(struct store_txn *t)
{
    if (t->full < 0)
        look_at_space(t);
    if (t->full != SPACE_LEFT)
        return !refuse(t, full_texts[t->full]);
    if (!creates_fit(t))
        return !refuse(t, full_texts[MAP_FULL]);
    t->creates = true;
    return false;
}

bool store_is_full(struct store *s)
{
    struct store_txn probe = {.s = s, .full = -1};
    return txn_is_full(&probe);
}

bool txn_results_fit(struct store_txn *t, size_t results_bytes)
{
    enum { PAGE = 4096, INDEX_PAGES = 12 }; /* the head, the grading and their rows, copied */
    uint64_t pages = results_bytes / PAGE + 1 + INDEX_PAGES;
    if (t->full < 0)
        look_at_space(t);
    if (t->result_pages < pages)
        return refuse(t, reserved_text);
    t->result_pages -= pages;
    t->results_took += pages;
    t->results++;
    return true;
}

/* ---- before the commit ---- */

static uint64_t tree_pages(const struct store *s, MDB_txn *txn)
{
    uint64_t pages = 0;
    MDB_stat stat;
    for (unsigned i = 0; i < DB_COUNT; i++)
        if (mdb_stat(txn, s->dbi[i], &stat) == 0)
            pages += stat.ms_branch_pages + stat.ms_leaf_pages + stat.ms_overflow_pages;
    return pages;
}

/* By how many pages the records grow with the transaction. */
static uint64_t growth(const struct store_txn *t)
{
    MDB_txn *committed;
    if (mdb_txn_begin(t->s->env, NULL, MDB_RDONLY, &committed) != 0)
        return 0;
    uint64_t before = tree_pages(t->s, committed), after = tree_pages(t->s, t->mdb);
    mdb_txn_abort(committed);
    return after > before ? after - before : 0;
}

static bool leaves_reserve(const struct store_txn *t, struct space_left r)
{
    uint64_t needed = growth(t) + (t->creates ? r.reserve : r.reserve / 2);
    if (r.behind < needed && !r.known)
        r = measure_space(t->s, UINT_MAX);
    return r.behind + r.free >= needed;
}

/* Does the next transaction find free pages? A single change may use all that it needs. */
static bool is_small_enough(const struct store_txn *t, const struct space_left *r)
{
    uint64_t left = r->behind + r->free, others = t->changes - t->results;
    uint64_t most = left > r->reserve / 2 ? left - r->reserve / 4 : left / 2;
    return !r->known || t->changes <= 1 || others == 0 ||
           t->results_took + TXN_PAGES + others * PAGES_A_CHANGE <= most;
}

/* Must it leave the reserve? Deletes need not, and row sets that do not grow the records. */
static bool keeps_reserve(const struct store_txn *t)
{
    return t->creates || t->results != 0 || (t->follows && growth(t) > 0);
}

bool txn_leaves_space(struct store_txn *t)
{
    struct space_left r = measure_space(t->s, 2);
    if (keeps_reserve(t) && !leaves_reserve(t, r))
        return refuse(t, t->creates ? full_texts[MAP_FULL] : reserved_text);
    return is_small_enough(t, &r) ||
           refuse(t, "the map has too few free pages for these changes together");
}

/* ---- after STORE_FULL ---- */

/* Commit a record, so that pages which the last transaction replaced are free for the next one. */
static bool commit_counters(struct store *s)
{
    struct store_txn *t;
    if (store_begin(s, &t) != STORE_OK)
        return false;
    t->counters_dirty = true;
    return store_commit(t) == STORE_OK;
}

bool store_release_pages(struct store *s)
{
    enum { COMMIT_PAGES = 8 }; /* that commit_counters replaces, at most */
    MDB_envinfo info;
    MDB_txn *txn;
    uint64_t all, usable;
    if (s->txn.creates || s->txn.results != 0)
        return false;
    size_t oldest = store_oldest_snapshot(s);
    mdb_env_info(s->env, &info);
    if (mdb_txn_begin(s->env, NULL, MDB_RDONLY, &txn) != 0)
        return false;
    if (store_free_pages(s, txn, &all) != STORE_OK ||
        store_usable_pages(s, txn, &usable) != STORE_OK)
        usable = all = 0;
    mdb_txn_abort(txn);
    if (oldest < info.me_last_txnid)
        return usable < all;
    return usable + COMMIT_PAGES < all && commit_counters(s);
}
