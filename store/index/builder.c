#include "store/index/builder.h"

#include "store/engine/environment.h"
#include "store/engine/errors.h"
#include "store/index/context_internal.h"
#include "store/index/index.h"
#include "store/index/segment_file_internal.h"
#include "store/index/segment_internal.h"

#include <errno.h>
#include <stdlib.h>

#define BASE_TEXT_BYTES ((size_t)1 << 20) /* maximum of URLs in a base */

void builder_init(struct builder *b, struct store *s, uint64_t workspace)
{
    *b = (struct builder){.s = s, .workspace = workspace};
}

void builder_free(struct builder *b)
{
    free(b->rows);
    buf_free(&b->text);
    buf_free(&b->removed);
    buf_free(&b->put);
    buf_free(&b->base);
    buf_free(&b->made);
}

void builder_undo(struct builder *b)
{
    for (size_t at = 0; at < b->made.n; at += sizeof(uint64_t)) {
        uint64_t number;
        memcpy(&number, b->made.p + at, sizeof(number));
        segment_file_delete(b->s->dir, b->workspace, number);
    }
    buf_reset(&b->made);
}

/* ---- rows ---- */

static bool grow(struct builder *b)
{
    size_t cap = b->cap == 0 ? 16 : b->cap * 2;
    struct segment_row *more = realloc(b->rows, cap * sizeof(*more));
    if (more == NULL)
        return false;
    b->rows = more;
    b->cap = cap;
    return true;
}

void builder_add(struct builder *b, const struct segment_row *row)
{
    if (b->count == b->cap && !grow(b)) {
        b->failed = true;
        return;
    }
    b->rows[b->count++] = *row;
    buf_str(&b->text, row->url);
    buf_add(&b->text, "", 1);
    b->total++;
}

size_t builder_bytes(const struct builder *b)
{
    return b->cap * sizeof(*b->rows) + b->text.cap;
}

static int by_id(const void *a, const void *b)
{
    const struct segment_row *x = a, *y = b;
    return x->id < y->id ? -1 : x->id > y->id;
}

/* The URLs do not move from here on. */
static void settle(struct builder *b)
{
    const char *p = b->text.p;
    bool sorted = true;
    for (size_t i = 0; i < b->count; i++) {
        b->rows[i].url.p = p;
        p += b->rows[i].url.n + 1;
        sorted = sorted && (i == 0 || b->rows[i - 1].id < b->rows[i].id);
    }
    if (!sorted)
        qsort(b->rows, b->count, sizeof(*b->rows), by_id);
}

static bool has_memory(const struct builder *b)
{
    return !b->failed && buf_ok(&b->text) && buf_ok(&b->removed) && buf_ok(&b->put) &&
           buf_ok(&b->base) && buf_ok(&b->made);
}

static enum store_status no_memory(struct builder *b)
{
    return store_fail(b->s, ENOMEM, "build an index of reports");
}

/* ---- segments ---- */

void builder_remove(struct builder *b, uint64_t number)
{
    buf_add(&b->removed, &number, sizeof(number));
}

void builder_put(struct builder *b, uint64_t number, const struct segment_record *record,
                 const uint64_t *dead)
{
    buf_add(&b->put, &number, sizeof(number));
    buf_add(&b->put, record, sizeof(*record));
    if (record->dead != 0)
        buf_add(&b->put, dead, index_words(record->rows) * sizeof(*dead));
    b->put_count++;
}

/* Number of rows from ${from} on that go into one segment. */
static uint32_t rows_of_segment(const struct builder *b, size_t from)
{
    size_t bytes = 0, at = from;
    while (at < b->count && at - from < b->s->index->segment_rows &&
           (at == from || bytes + b->rows[at].url.n < SEGMENT_TEXT_BYTES))
        bytes += b->rows[at++].url.n + 1;
    return (uint32_t)(at - from);
}

static enum store_status write_segment(struct builder *b, const struct segment_row *rows,
                                       uint32_t count)
{
    struct buf data = {0};
    struct segment_record record = {
        .first_id = rows[0].id, .last_id = rows[count - 1].id, .rows = count};
    uint64_t number, bytes;
    segment_data(rows, count, b->s->index->ngram_block_shift, &data);
    enum store_status status = buf_ok(&data) ? STORE_OK : no_memory(b);
    if (status == STORE_OK)
        status = segment_file_write(b->s, b->workspace, buf_view(&data), &number, &bytes);
    buf_free(&data);
    if (status != STORE_OK)
        return status;
    record.bytes = bytes;
    buf_add(&b->made, &number, sizeof(number));
    builder_put(b, number, &record, NULL);
    if (has_memory(b))
        return STORE_OK;
    segment_file_delete(b->s->dir, b->workspace, number);
    return no_memory(b);
}

enum store_status builder_write(struct builder *b)
{
    enum store_status status = has_memory(b) ? STORE_OK : no_memory(b);
    if (status == STORE_OK)
        settle(b);
    for (size_t from = 0; status == STORE_OK && from < b->count;) {
        uint32_t count = rows_of_segment(b, from);
        status = write_segment(b, b->rows + from, count);
        from += count;
    }
    free(b->rows);
    b->rows = NULL;
    b->count = b->cap = 0;
    buf_free(&b->text);
    return status;
}

/* ---- base ---- */

static void put_piece(struct builder *b, struct buf *piece)
{
    uint32_t n = (uint32_t)piece->n;
    if (n == 0)
        return;
    buf_add(&b->base, &n, sizeof(n));
    buf_str(&b->base, buf_view(piece));
    b->base.failed = b->base.failed || piece->failed;
    b->piece_count++;
    buf_reset(piece);
}

static void make_base(struct builder *b)
{
    struct buf piece = {0};
    settle(b);
    for (size_t i = 0; i < b->count; i++) {
        const struct segment_row *r = &b->rows[i];
        struct log_entry e = {LOG_ADD, r->id,      r->class,          r->score,
                              r->date, r->project, (uint16_t)r->url.n};
        if (piece.n + sizeof(e) + r->url.n > PAGE_VALUE_BYTES)
            put_piece(b, &piece);
        index_entry_put(&piece, &e, r->url);
    }
    put_piece(b, &piece);
    buf_free(&piece);
}

/* ---- the data of CHANGE_INDEX_INSTALL ---- */

enum store_status builder_end(struct builder *b, struct index_install head, uint64_t kept,
                              struct buf *out)
{
    bool small = kept == 0 && b->made.n == 0 && b->total < b->s->index->small_rows &&
                 b->text.n <= BASE_TEXT_BYTES;
    enum store_status status = has_memory(b) ? STORE_OK : no_memory(b);
    if (status == STORE_OK && small)
        make_base(b);
    else if (status == STORE_OK)
        status = builder_write(b);
    if (status != STORE_OK)
        return status;
    head.rows = b->total + kept;
    head.removed = (uint32_t)(b->removed.n / sizeof(uint64_t));
    head.put = b->put_count;
    head.pieces = b->piece_count;
    buf_add(out, &head, sizeof(head));
    buf_str(out, buf_view(&b->removed));
    buf_str(out, buf_view(&b->put));
    buf_str(out, buf_view(&b->base));
    return has_memory(b) && buf_ok(out) ? STORE_OK : no_memory(b);
}
