#include "store/answers/token_counts_internal.h"

#include "store/answers/file_internal.h"
#include "store/answers/tokenizer_internal.h"
#include "store/store.h"

#include <stdlib.h>

#define ROWS_MAX 400000

struct adding {
    struct token_counts *c;
    int64_t table, words;
    int change;
};

static int take_token(void *arg, int flags, const char *token, int n, int from, int to)
{
    struct adding *a = arg;
    struct token_counts_row row = {.table = a->table,
                                   .at = (uint32_t)a->c->bytes.n,
                                   .n = (uint16_t)n,
                                   .change = (int16_t)a->change,
                                   .document = a->c->document};
    (void)from, (void)to;
    a->words += (flags & FTS5_TOKEN_COLOCATED) == 0;
    buf_add(&a->c->bytes, token, (size_t)n);
    buf_add(&a->c->rows, &row, sizeof(row));
    return buf_ok(&a->c->bytes) && buf_ok(&a->c->rows) ? SQLITE_OK : SQLITE_NOMEM;
}

int token_counts_add(struct token_counts *c, struct file_table *t, const struct str *texts,
                     int change, int64_t *words)
{
    struct adding a = {c, t->number, 0, change};
    int rc = SQLITE_OK;
    c->document++;
    for (size_t i = 0; i < COLUMNS && rc == SQLITE_OK; i++)
        rc = tokenizer_run(t->tokenizer, FTS5_TOKENIZE_DOCUMENT, texts[i], take_token, &a);
    *words += change * a.words;
    return rc;
}

bool token_counts_full(const struct token_counts *c)
{
    return c->rows.n / sizeof(struct token_counts_row) > ROWS_MAX;
}

static int same_token(const struct token_counts_row *x, const struct token_counts_row *y,
                      const char *bytes)
{
    if (x->table != y->table)
        return x->table < y->table ? -1 : 1;
    size_t n = x->n < y->n ? x->n : y->n;
    int order = memcmp(bytes + x->at, bytes + y->at, n);
    return order != 0 ? order : (int)x->n - (int)y->n;
}

static int by_token(const void *a, const void *b, void *bytes)
{
    const struct token_counts_row *x = a, *y = b;
    int order = same_token(x, y, bytes);
    return order != 0 ? order : x->document < y->document ? -1 : x->document > y->document;
}

static enum store_status write_token(struct file *f, const struct token_counts_row *row,
                                     const char *bytes, int64_t change)
{
    struct str token = {bytes + row->at, row->n};
    sqlite3_stmt *const both[] = {f->token_add, f->token_drop};
    enum store_status status = STORE_OK;
    for (int i = 0; i < (change < 0 ? 2 : 1) && change != 0 && status == STORE_OK; i++) {
        sqlite3_bind_int64(both[i], 1, row->table);
        bind_str(both[i], 2, token);
        if (i == 0)
            sqlite3_bind_int64(both[i], 3, change);
        status = file_step(f, both[i]);
    }
    return status;
}

enum store_status token_counts_flush(struct token_counts *c, struct file *f)
{
    struct token_counts_row *rows = (struct token_counts_row *)(void *)c->rows.p;
    size_t n = c->rows.n / sizeof(*rows);
    enum store_status status = STORE_OK;
    if (n > 0)
        qsort_r(rows, n, sizeof(*rows), by_token, c->bytes.p);
    for (size_t i = 0, next; i < n && status == STORE_OK; i = next) {
        int64_t change = rows[i].change;
        for (next = i + 1; next < n && same_token(&rows[i], &rows[next], c->bytes.p) == 0; next++)
            change += rows[next].document != rows[next - 1].document ? rows[next].change : 0;
        status = write_token(f, &rows[i], c->bytes.p, change);
    }
    token_counts_reset(c);
    return status;
}

void token_counts_reset(struct token_counts *c)
{
    buf_reset(&c->bytes);
    buf_reset(&c->rows);
    c->document = 0;
}

void token_counts_free(struct token_counts *c)
{
    buf_free(&c->bytes);
    buf_free(&c->rows);
}
