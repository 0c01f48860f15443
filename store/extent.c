#include "extent_parts.h"
#include "index.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAP_LEAST ((uint64_t)256 << 20) /* of addresses */
static const enum space spaces[] = {SPACE_PART};
#define SPACES_COUNT (sizeof(spaces) / sizeof(*spaces))

/* ---- the file ---- */

void extent_id_key(struct key *k)
{
    key_space(k, SPACE_META);
    key_bytes(k, "p", 1);
}

enum store_status extent_read_id(struct store *s, MDB_txn *txn, uint64_t *out)
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
    struct extent_head head;
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

enum store_status extent_opened(struct store *s, MDB_txn *txn)
{
    uint64_t id;
    if (s->extents != NULL && s->extents->fd >= 0)
        return STORE_OK;
    enum store_status status = extent_read_id(s, txn, &id);
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
    e->maps[e->map_count].p = p;
    e->maps[e->map_count++].bytes = bytes;
    return p;
}

enum store_status extent_read(struct store *s, MDB_txn *txn, uint64_t at, uint64_t bytes, MDB_val *out)
{
    struct stat st;
    enum store_status status = extent_opened(s, txn);
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
    struct extent_ref ref;
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
        struct extent_ref ref;
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
    return extent_opened(s, txn) == STORE_OK && fstat(s->extents->fd, &st) == 0 ? (uint64_t)st.st_size : 0;
}

static bool note_run(void *arg, const struct extent_at *at)
{
    if (!is_place(at->at, at->bytes)) /* whoever reads it says so */
        return true;
    struct page_run run = {at->at / PAGE_BYTES, pages_of(at->bytes)};
    buf_add(arg, &run, sizeof(run));
    return buf_ok(arg);
}

/* The runs that rows name; to be freed. */
enum store_status extent_used(struct store *s, MDB_txn *txn, struct buf *out)
{
    enum store_status status = extent_each(s, txn, note_run, out);
    return status == STORE_OK && !buf_ok(out) ? store_fail(s, ENOMEM, "read where the parts of indexes are") : status;
}

struct checking {
    struct store *s;
    MDB_txn *txn;
    store_problem_fn *problem;
    void *arg;
    bool lost;
};

/* The first is told: a file that is not the right one has them all. */
static bool find_lost(void *arg, const struct extent_at *at)
{
    struct checking *c = arg;
    MDB_val v;
    if (extent_is_named(c->s, c->txn, at) && extent_read(c->s, c->txn, at->at, at->bytes, &v) != STORE_OK)
        c->lost = true;
    return !c->lost;
}

enum store_status extent_look(struct store *s, MDB_txn *txn)
{
    struct checking c = {.s = s, .txn = txn};
    enum store_status status = extent_each(s, txn, find_lost, &c);
    return c.lost ? STORE_CORRUPT : status;
}

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
    enum store_status status = extent_read_id(c->s, c->txn, &id);
    if (status == STORE_OK)
        status = extent_opened(c->s, c->txn);
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
    enum store_status status = check_rows(&(struct checking){.s = s, .txn = txn, .problem = problem, .arg = arg});
    if (status == STORE_OK)
        status = extent_used(s, txn, &used);
    struct page_run *runs = (struct page_run *)(void *)used.p;
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
