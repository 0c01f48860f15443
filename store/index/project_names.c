#include "store/index/project_names_internal.h"

#include "store/engine/cursor.h"
#include "store/engine/errors.h"
#include "store/engine/snapshot.h"
#include "store/index/context_internal.h"
#include "store/index/search_internal.h"

#include <errno.h>
#include <stdlib.h>

#define NAMES_KEPT 64
#define STEP 16 /* keys read between two calls of ${stop}; each may be a read from the disk */
#define NEW_MANY 10000 /* from so many new projects on, all are read again */

/* ---- rows ---- */

static struct names_row *rows_of(const struct project_names *n)
{
    return (struct names_row *)(void *)n->rows.p;
}

static uint32_t row_count(const struct project_names *n)
{
    return (uint32_t)(n->rows.n / sizeof(struct names_row));
}

static struct str name_of(const struct project_names *n, uint32_t row)
{
    const uint32_t *at = (const uint32_t *)(const void *)n->offset.p + row;
    return (struct str){n->text.p + at[0], at[1] - at[0] - 1};
}

static size_t slot_of(const struct project_names *n, uint64_t id)
{
    size_t at = (size_t)(id * 0x9e3779b97f4a7c15ull >> 32) & (n->slot_count - 1);
    while (n->slots[at] != 0 && rows_of(n)[n->slots[at] - 1].id != id)
        at = (at + 1) & (n->slot_count - 1);
    return at;
}

/* The row of that id; row_count: none. */
static uint32_t find_row(const struct project_names *n, uint64_t id)
{
    uint32_t row = n->slot_count == 0 ? 0 : n->slots[slot_of(n, id)];
    return row == 0 ? row_count(n) : row - 1;
}

static bool grow_slots(struct project_names *n)
{
    size_t count = n->slot_count == 0 ? 256 : n->slot_count * 2;
    uint32_t *slots = calloc(count, sizeof(*slots));
    if (slots == NULL)
        return false;
    free(n->slots);
    n->slots = slots;
    n->slot_count = count;
    for (uint32_t i = 0; i < row_count(n); i++)
        n->slots[slot_of(n, rows_of(n)[i].id)] = i + 1;
    return true;
}

static bool add_row(struct project_names *n, uint64_t id, int64_t created_at, struct str name)
{
    static const char pad[TEXT_PAD];
    struct names_row row = {id, created_at};
    if (2 * ((size_t)row_count(n) + 1) > n->slot_count && !grow_slots(n))
        return false;
    n->text.n -= TEXT_PAD;
    buf_str(&n->text, name);
    buf_add(&n->text, pad, 1);
    uint32_t end = (uint32_t)n->text.n;
    buf_add(&n->text, pad, sizeof(pad));
    buf_add(&n->offset, &end, sizeof(end));
    n->slots[slot_of(n, id)] = row_count(n) + 1;
    buf_add(&n->rows, &row, sizeof(row));
    return buf_ok(&n->text) && buf_ok(&n->offset) && buf_ok(&n->rows);
}

/* ---- reading the indexes ---- */

static enum store_status no_memory(struct store *s)
{
    return store_fail(s, ENOMEM, "list projects");
}

typedef enum store_status take_fn(struct project_names *n, const struct cursor *w);

static enum store_status read_index(struct store *s, MDB_txn *txn, struct project_names *n,
                                    enum space space, take_fn *take,
                                    const struct store_list_query *q)
{
    struct cursor w = {0};
    key_id(&w.prefix, space, n->workspace);
    enum store_status status = cursor_prefix(s, txn, &w, DB_BASE, false);
    for (unsigned keys = 1; status == STORE_OK; keys++) {
        status = keys % STEP == 0 && store_query_must_stop(s, q) ? STORE_AGAIN : take(n, &w);
        if (status == STORE_OK)
            status = cursor_next(&w);
    }
    cursor_end(&w);
    return status == STORE_NOT_FOUND ? STORE_OK : status;
}

static enum store_status take_name(struct project_names *n, const struct cursor *w)
{
    uint64_t id;
    uint32_t row = row_count(n);
    struct str name = {(const char *)w->k.mv_data + w->prefix.n, w->k.mv_size - w->prefix.n};
    if (w->v.mv_size != sizeof(id))
        return store_corrupt(w->s, "an index of projects");
    memcpy(&id, w->v.mv_data, sizeof(id));
    buf_add(&n->orders[PROJECT_BY_NAME], &row, sizeof(row));
    return add_row(n, id, NAMES_UNDATED, name) ? STORE_OK : no_memory(w->s);
}

static enum store_status take_date(struct project_names *n, const struct cursor *w)
{
    uint64_t created_at, id;
    uint32_t row =
        cursor_u64(w, 1, &created_at) && cursor_u64(w, 2, &id) ? find_row(n, id) : row_count(n);
    if (row == row_count(n))
        return store_corrupt(w->s, "an index of projects");
    rows_of(n)[row].created_at = (int64_t)created_at;
    buf_add(&n->orders[PROJECT_BY_CREATED_AT], &row, sizeof(row));
    return STORE_OK;
}

/* Read all names again, without dates. */
static enum store_status read_names(struct store *s, MDB_txn *txn, struct project_names *n,
                                    const struct store_list_query *q)
{
    static const char pad[TEXT_PAD];
    uint32_t zero = 0;
    n->made = ++s->index->rows_made;
    buf_reset(&n->rows);
    buf_reset(&n->text);
    buf_reset(&n->offset);
    buf_reset(&n->orders[PROJECT_BY_NAME]);
    buf_reset(&n->orders[PROJECT_BY_CREATED_AT]);
    buf_add(&n->text, pad, sizeof(pad));
    buf_add(&n->offset, &zero, sizeof(zero));
    if (n->slots != NULL)
        memset(n->slots, 0, n->slot_count * sizeof(*n->slots));
    if (!buf_ok(&n->text) || !buf_ok(&n->offset))
        return no_memory(s);
    return read_index(s, txn, n, SPACE_PROJECT_NAME, take_name, q);
}

/*
 * Read the order of dates again. Rows without a date belong to deleted projects and leave the order
 * of names.
 */
static enum store_status read_dates(struct store *s, MDB_txn *txn, struct project_names *n,
                                    const struct store_list_query *q)
{
    struct buf *names = &n->orders[PROJECT_BY_NAME];
    uint32_t *order = (uint32_t *)(void *)names->p;
    size_t kept = 0;
    for (uint32_t row = 0; row < row_count(n); row++)
        rows_of(n)[row].created_at = NAMES_UNDATED;
    buf_reset(&n->orders[PROJECT_BY_CREATED_AT]);
    enum store_status status = read_index(s, txn, n, SPACE_PROJECT_DATE, take_date, q);
    for (size_t i = 0; i < names->n / sizeof(*order); i++)
        if (rows_of(n)[order[i]].created_at != NAMES_UNDATED)
            order[kept++] = order[i];
    names->n = kept * sizeof(*order);
    return status;
}

/* ---- new projects ---- */

static int compare_names(const void *a, const void *b, void *names)
{
    const struct project_names *sorting = names;
    struct str x = name_of(sorting, *(const uint32_t *)a),
               y = name_of(sorting, *(const uint32_t *)b);
    return memcmp(x.p, y.p,
                  (x.n < y.n ? x.n : y.n) + 1); /* the NUL at the end decides if one is a prefix */
}

static int compare_dates(const void *a, const void *b, void *names)
{
    const struct project_names *sorting = names;
    const struct names_row *x = &rows_of(sorting)[*(const uint32_t *)a],
                           *y = &rows_of(sorting)[*(const uint32_t *)b];
    if (x->created_at != y->created_at)
        return x->created_at < y->created_at ? -1 : 1;
    return x->id < y->id ? -1 : x->id > y->id;
}

typedef int compare_fn(const void *a, const void *b, void *names);

/* Number of the first ${count} rows of an order that sort before ${row}. */
static size_t place_of(struct project_names *n, const uint32_t *rows, size_t count,
                       const uint32_t *row, compare_fn *compare)
{
    size_t low = 0, high = count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (compare(&rows[middle], row, n) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static bool merge_fresh(struct project_names *n, enum project_sort sort, const struct buf *new)
{
    static compare_fn *const compare[] = {
        [PROJECT_BY_CREATED_AT] = compare_dates, [PROJECT_BY_NAME] = compare_names};
    struct buf *order = &n->orders[sort];
    size_t come = new->n / sizeof(uint32_t), there = order->n / sizeof(uint32_t);
    if (come == 0)
        return true;
    if (buf_reserve(order, new->n) == NULL)
        return false;
    uint32_t *rows = (uint32_t *)(void *)order->p, *fresh = (uint32_t *)(void *)new->p;
    qsort_r(fresh, come, sizeof(*fresh), compare[sort], n);
    for (size_t to = there + come; come > 0;) { /* from the end, where there is space */
        size_t before = place_of(n, rows, there, &fresh[come - 1], compare[sort]);
        to -= there - before;
        memmove(rows + to, rows + before, (there - before) * sizeof(*rows));
        there = before;
        rows[--to] = fresh[--come];
    }
    order->n += new->n;
    return true;
}

static enum store_status take_new(struct store *s, MDB_txn *txn, struct project_names *n,
                                  uint64_t id, struct buf *fresh)
{
    struct key k;
    MDB_val v;
    struct store_project p;
    uint32_t row = row_count(n);
    key_id(&k, SPACE_PROJECT, id);
    enum store_status status = store_get(s, txn, SPACE_PROJECT, &k, &v);
    if (status != STORE_OK)
        return status == STORE_NOT_FOUND ? STORE_OK : status;
    if (!schema_read_project(v, &p))
        return store_corrupt(s, "a project's record");
    if (p.workspace != n->workspace || ((const struct project_record *)v.mv_data)->deleting)
        return STORE_OK;
    buf_add(fresh, &row, sizeof(row));
    return add_row(n, id, p.created_at, p.name) && buf_ok(fresh) ? STORE_OK : no_memory(s);
}

/* Add projects up to the number ${given} to both orders. */
static enum store_status read_new(struct store *s, MDB_txn *txn, struct project_names *n,
                                  uint64_t given, const struct store_list_query *q)
{
    struct buf fresh = {0};
    enum store_status status = STORE_OK;
    for (uint64_t id = n->upto; id < given && status == STORE_OK; id++) {
        bool stops = id % STEP == 0 && store_query_must_stop(s, q);
        status = stops ? STORE_AGAIN : take_new(s, txn, n, id + 1, &fresh);
    }
    if (status == STORE_OK && (!merge_fresh(n, PROJECT_BY_NAME, &fresh) ||
                               !merge_fresh(n, PROJECT_BY_CREATED_AT, &fresh)))
        status = no_memory(s);
    buf_free(&fresh);
    return status;
}

/* ---- updates ---- */

/* The last project number given, in any workspace. */
static enum store_status numbers_given(struct store *s, MDB_txn *txn, uint64_t *out)
{
    struct counters_record counters;
    enum store_status status = store_counters(s, txn, &counters);
    *out = status == STORE_OK ? counters.project : 0;
    return status;
}

/* So much is new or deleted that all is read again. */
static bool is_old(const struct project_names *n, uint64_t given)
{
    uint32_t rows = row_count(n);
    return n->made == 0 || given < n->upto || given - n->upto > NEW_MANY + rows ||
           rows - project_names_count(n) > NEW_MANY + project_names_count(n);
}

static enum store_status update(struct store *s, MDB_txn *txn, struct project_names *n,
                                uint64_t existing, const struct store_list_query *q)
{
    uint64_t given;
    enum store_status status = numbers_given(s, txn, &given);
    if (status != STORE_OK)
        return status;
    status = is_old(n, given) ? read_names(s, txn, n, q) : read_new(s, txn, n, given, q);
    n->upto = given;
    if (status == STORE_OK && project_names_count(n) != existing)
        status = read_dates(s, txn, n, q);
    if (status != STORE_OK)
        return status;
    if (!buf_ok(&n->orders[PROJECT_BY_NAME]) || !buf_ok(&n->orders[PROJECT_BY_CREATED_AT]))
        return no_memory(s);
    return project_names_count(n) == existing ? STORE_OK : store_corrupt(s, "an index of projects");
}

/* ---- the cache ---- */

static void project_names_free(struct project_names *n)
{
    buf_free(&n->rows);
    buf_free(&n->text);
    buf_free(&n->offset);
    buf_free(&n->orders[0]);
    buf_free(&n->orders[1]);
    free(n->slots);
    free(n);
}

void project_names_forget(struct store *s)
{
    while (s->index->project_names != NULL) {
        struct project_names *n = s->index->project_names;
        s->index->project_names = n->next;
        project_names_free(n);
    }
}

/* The list is in the order of use. */
static void drop_last(struct store *s)
{
    struct project_names **at = &s->index->project_names;
    unsigned count = 1;
    for (; *at != NULL && (*at)->next != NULL; count++)
        at = &(*at)->next;
    if (count < NAMES_KEPT || *at == NULL)
        return;
    project_names_free(*at);
    *at = NULL;
}

static struct project_names *project_names_of(struct store *s, uint64_t workspace)
{
    struct project_names **at = &s->index->project_names, *n;
    while (*at != NULL && (*at)->workspace != workspace)
        at = &(*at)->next;
    n = *at;
    if (n != NULL) {
        *at = n->next;
    } else {
        drop_last(s);
        n = calloc(1, sizeof(*n));
        if (n == NULL)
            return NULL;
        n->workspace = workspace;
    }
    n->next = s->index->project_names;
    s->index->project_names = n;
    return n;
}

enum store_status project_names_get(struct store *s, MDB_txn *txn, const struct store_list_query *q,
                                    uint64_t existing, const struct project_names **out)
{
    struct project_names *n = project_names_of(s, q->workspace);
    *out = n;
    if (n == NULL)
        return no_memory(s);
    enum store_status status = update(s, txn, n, existing, q);
    if (status != STORE_OK) {
        *out = NULL;
        s->index->project_names = n->next;
        project_names_free(n);
    }
    return status;
}
