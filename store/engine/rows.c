#include "store/engine/rows.h"

#include "store/engine/derived.h"
#include "store/engine/errors.h"

#include <errno.h>
#include <stdlib.h>
#include <xxhash.h>

#define DELETED 0x80

struct PACKED rows_head {
    char magic[4];
    uint16_t rows_format;
    uint32_t format, layout;
    uint64_t count, bytes, sum;
};

struct PACKED row_head {
    uint8_t db;
    uint16_t key_n;
};

static const struct rows_head current = {
    .magic = {'r', 'o', 'w', 's'}, .format = STORE_FORMAT_VERSION, .layout = STORE_LAYOUT};

static uint64_t sum_of(const struct rows_head *h, const void *rows)
{
    const void *head = h;
    return XXH3_64bits_withSeed(rows, h->bytes, XXH3_64bits(head, offsetof(struct rows_head, sum)));
}

/* ---- collecting ---- */

void store_rows_collect(struct store *s, bool collect)
{
    s->collects = collect;
}

void rows_note(struct store_txn *t, enum space space, const struct key *key)
{
    const struct row_head h = {schema_space_db[space], (uint16_t)key->n};
    if (!space_is_replicated(space))
        return;
    buf_add(&t->noted, &h, sizeof(h));
    buf_add(&t->noted, key->b, key->n);
}

static struct row_head head_at(const uint8_t *p)
{
    struct row_head h;
    memcpy(&h, p, sizeof(h));
    return h;
}

static int compare_keys(uint8_t db_a, struct str a, uint8_t db_b, struct str b)
{
    if (db_a != db_b)
        return db_a < db_b ? -1 : 1;
    int by = memcmp(a.p, b.p, a.n < b.n ? a.n : b.n);
    return by != 0 ? by : (a.n > b.n) - (a.n < b.n);
}

static struct str key_at(const uint8_t *p)
{
    return (struct str){(const char *)p + sizeof(struct row_head), head_at(p).key_n};
}

static int compare_notes(const void *a, const void *b)
{
    const uint8_t *const *x = a, *const *y = b;
    return compare_keys(head_at(*x).db, key_at(*x), head_at(*y).db, key_at(*y));
}

/* Pointers to the notes; the caller frees them. NULL: there is none, or no memory. */
static const uint8_t **sorted_notes(const struct buf *noted, size_t *count)
{
    *count = 0;
    if (noted->n == 0)
        return NULL;
    const uint8_t *at = (const uint8_t *)noted->p, *end = at + noted->n;
    for (const uint8_t *p = at; p < end; p += sizeof(struct row_head) + head_at(p).key_n)
        ++*count;
    const uint8_t **notes = malloc(*count * sizeof(*notes));
    if (notes == NULL)
        return NULL;
    for (size_t i = 0; i < *count; i++, at += sizeof(struct row_head) + head_at(at).key_n)
        notes[i] = at;
    qsort(notes, *count, sizeof(*notes), compare_notes);
    return notes;
}

/* ---- encoding ---- */

/* In the order of the keys a cursor mostly finds the next one in its page. */
struct lookup {
    MDB_cursor *cursor; /* NULL: not opened */
    uint8_t db;
};

static int look_up(const struct store_txn *t, struct lookup *l, uint8_t db, MDB_val *k, MDB_val *v)
{
    if (l->cursor != NULL && l->db != db) {
        mdb_cursor_close(l->cursor);
        l->cursor = NULL;
    }
    l->db = db;
    int rc = l->cursor != NULL ? 0 : mdb_cursor_open(t->mdb, t->s->dbi[db], &l->cursor);
    return rc != 0 ? rc : mdb_cursor_get(l->cursor, k, v, MDB_SET);
}

static int add_row(const struct store_txn *t, struct lookup *l, const uint8_t *note,
                   struct buf *out)
{
    struct row_head h = head_at(note);
    struct str key = key_at(note);
    MDB_val k = {key.n, (void *)(uintptr_t)key.p}, v = {0};
    int rc = look_up(t, l, h.db, &k, &v);
    if (rc != 0 && rc != MDB_NOTFOUND)
        return rc;
    uint32_t n = rc == 0 ? (uint32_t)v.mv_size : 0;
    if (rc != 0)
        h.db |= DELETED;
    buf_add(out, &h, sizeof(h));
    if (rc == 0)
        buf_add(out, &n, sizeof(n));
    buf_str(out, key);
    buf_add(out, v.mv_data, n);
    return 0;
}

static int add_rows(const struct store_txn *t, struct buf *out, uint64_t *rows)
{
    size_t count;
    int rc = 0;
    struct lookup l = {0};
    const uint8_t **notes = sorted_notes(&t->noted, &count);
    if (notes == NULL && count != 0)
        return ENOMEM;
    *rows = 0;
    for (size_t i = 0; i < count && rc == 0; i++) {
        if (i > 0 && compare_notes(&notes[i - 1], &notes[i]) == 0)
            continue;
        rc = add_row(t, &l, notes[i], out);
        ++*rows;
    }
    if (l.cursor != NULL)
        mdb_cursor_close(l.cursor);
    free(notes);
    return rc;
}

enum store_status store_rows_take(struct store_txn *t, uint32_t format, struct buf *out)
{
    struct rows_head h = current;
    uint64_t count = 0;
    const size_t from = out->n;
    if (!t->collects || !store_rows_reads(format))
        return STORE_INVALID;
    enum store_status status = txn_complete(t);
    if (status != STORE_OK)
        return status;
    h.rows_format = (uint16_t)format;
    buf_add(out, &h, sizeof(h));
    int rc = buf_ok(&t->noted) ? add_rows(t, out, &count) : ENOMEM;
    if (rc != 0 || !buf_ok(out))
        return txn_fail(t, rc != 0 ? rc : ENOMEM, "collect the rows of a transaction");
    h.count = count;
    h.bytes = out->n - from - sizeof(h);
    h.sum = sum_of(&h, out->p + from + sizeof(h));
    memcpy(out->p + from, &h, sizeof(h));
    return STORE_OK;
}

uint64_t store_rows_count(struct str rows)
{
    struct rows_head h = {0};
    if (rows.n >= sizeof(h))
        memcpy(&h, rows.p, sizeof(h));
    return h.count;
}

bool store_rows_are_none(struct str rows)
{
    return rows.n == sizeof(struct rows_head) &&
           memcmp(rows.p, current.magic, sizeof(current.magic)) == 0 && store_rows_count(rows) == 0;
}

/* ---- reading ---- */

static enum store_status refuse(struct store *s)
{
    return store_corrupt(s, "a row set");
}

enum store_status rows_open(struct store *s, struct str rows, struct rows_reader *out)
{
    struct rows_head h;
    if (rows.n < sizeof(h))
        return refuse(s);
    memcpy(&h, rows.p, sizeof(h));
    if (memcmp(h.magic, current.magic, sizeof(h.magic)) != 0)
        return refuse(s);
    if (!store_rows_reads(h.rows_format) || h.format != current.format ||
        h.layout != current.layout)
        return STORE_OTHER_FORMAT;
    if (h.bytes != rows.n - sizeof(h) || sum_of(&h, rows.p + sizeof(h)) != h.sum)
        return refuse(s);
    const uint8_t *at = (const uint8_t *)rows.p + sizeof(h);
    *out = (struct rows_reader){.at = at, .end = at + h.bytes, .left = h.count};
    return STORE_OK;
}

/* The space of a tag, plus one; 0: none has it. */
#define X(id, db, tag, kind, text) [db][tag] = 1 + (id),
static const uint8_t space_of[DB_COUNT][256] = {SPACES(X)};
#undef X

static bool take(struct rows_reader *r, void *to, size_t n)
{
    if ((size_t)(r->end - r->at) < n)
        return false;
    memcpy(to, r->at, n);
    r->at += n;
    return true;
}

static bool take_key(struct rows_reader *r, const struct row_head *h, struct row *out)
{
    const uint8_t db = h->db & (uint8_t)~DELETED;
    if (db >= DB_COUNT || h->key_n == 0 || h->key_n > KEY_MAX_BYTES)
        return false;
    struct str key = {(const char *)r->at, h->key_n};
    if (!take(r, out->key.b, h->key_n) || space_of[db][out->key.b[0]] == 0)
        return false;
    out->key.n = h->key_n;
    out->space = (enum space)(space_of[db][out->key.b[0]] - 1);
    if (r->last.n != 0 && compare_keys(r->last_db, r->last, db, key) >= 0)
        return false;
    r->last = key;
    r->last_db = db;
    return space_is_replicated(out->space);
}

static bool take_row(struct rows_reader *r, struct row *out)
{
    struct row_head h;
    uint32_t n = 0;
    if (r->left-- == 0 || !take(r, &h, sizeof(h)))
        return false;
    out->deleted = (h.db & DELETED) != 0;
    if ((!out->deleted && !take(r, &n, sizeof(n))) || !take_key(r, &h, out) ||
        (size_t)(r->end - r->at) < n)
        return false;
    out->value = (struct str){(const char *)r->at, n};
    r->at += n;
    return true;
}

enum store_status rows_next(struct store *s, struct rows_reader *r, struct row *out)
{
    if (r->left == 0 && r->at == r->end)
        return STORE_NOT_FOUND;
    return take_row(r, out) ? STORE_OK : refuse(s);
}
