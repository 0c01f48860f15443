#include "names.h"

#include "search.h"

#include <errno.h>
#include <stdlib.h>

#define NAMES_KEPT 64
#define STEP 16            /* keys between two looks whether to pause: as many pages, where none of them is in memory */
#define FRESH 512          /* new ones that are put in order at once */
#define NEW_MANY 10000     /* where so many more projects were made than there are here, all are read again */

/* ---- rows ---- */

static struct names_row *rows_of(const struct names *n)
{
    return (struct names_row *)(void *)n->rows.p;
}

static uint32_t row_count(const struct names *n)
{
    return (uint32_t)(n->rows.n / sizeof(struct names_row));
}

static struct str name_of(const struct names *n, uint32_t row)
{
    const uint32_t *at = (const uint32_t *)(const void *)n->offset.p + row;
    return (struct str){n->text.p + at[0], at[1] - at[0] - 1};
}

static size_t slot_of(const struct names *n, uint64_t id)
{
    size_t at = (size_t)(id * 0x9e3779b97f4a7c15ull >> 32) & (n->slot_count - 1);
    while (n->slots[at] != 0 && rows_of(n)[n->slots[at] - 1].id != id)
        at = (at + 1) & (n->slot_count - 1);
    return at;
}

/* The row of that id; row_count when there is none. */
static uint32_t find_row(const struct names *n, uint64_t id)
{
    uint32_t row = n->slot_count == 0 ? 0 : n->slots[slot_of(n, id)];
    return row == 0 ? row_count(n) : row - 1;
}

static bool grow_slots(struct names *n)
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

static bool add_row(struct names *n, uint64_t id, int64_t created_at, struct str name)
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

static bool begin_reading(struct store *s, struct names *n, MDB_txn *txn, uint64_t upto)
{
    static const char pad[TEXT_PAD];
    uint32_t zero = 0;
    n->phase = NAMES_BY_NAME;
    n->at.n = 0;
    n->upto = upto;
    n->snapshot = mdb_txn_id(txn);
    n->read = true;
    n->made = ++s->rows_made;
    buf_reset(&n->rows);
    buf_reset(&n->text);
    buf_reset(&n->offset);
    buf_reset(&n->orders[0]);
    buf_reset(&n->orders[1]);
    buf_reset(&n->fresh);
    buf_add(&n->text, pad, sizeof(pad));
    buf_add(&n->offset, &zero, sizeof(zero));
    if (n->slots != NULL)
        memset(n->slots, 0, n->slot_count * sizeof(*n->slots));
    return buf_ok(&n->text) && buf_ok(&n->offset);
}

static bool take_name(struct names *n, const struct walk *w)
{
    uint64_t id;
    if (w->v.mv_size != sizeof(id))
        return false;
    memcpy(&id, w->v.mv_data, sizeof(id));
    return add_row(n, id, NAMES_UNDATED, (struct str){(const char *)w->k.mv_data + w->prefix.n, w->k.mv_size - w->prefix.n});
}

static bool take_date(struct names *n, const struct walk *w)
{
    uint64_t created_at, id;
    if (!walk_u64(w, 1, &created_at) || !walk_u64(w, 2, &id))
        return false;
    uint32_t row = find_row(n, id);
    if (row == row_count(n)) /* it was made since its name would have been read */
        return true;
    rows_of(n)[row].created_at = (int64_t)created_at;
    buf_add(&n->orders[PROJECT_BY_CREATED_AT], &row, sizeof(row));
    return buf_ok(&n->orders[PROJECT_BY_CREATED_AT]);
}

static bool seen_before(const struct names *n, const struct walk *w)
{
    return w->k.mv_size == n->at.n && n->at.n > 0 && memcmp(w->k.mv_data, n->at.b, n->at.n) == 0;
}

/* Names were read in their order. Those without a date went before that was read, or came too late for it: these are new. */
static void order_names(struct names *n)
{
    for (uint32_t row = 0; row < row_count(n); row++)
        if (rows_of(n)[row].created_at != NAMES_UNDATED)
            buf_add(&n->orders[PROJECT_BY_NAME], &row, sizeof(row));
}

/* Rows that lie before this key in the order of dates, or before its end, are not there any more. */
static bool strike_before(struct names *n, bool end, int64_t created_at, uint64_t id)
{
    uint32_t *order = (uint32_t *)(void *)n->orders[PROJECT_BY_CREATED_AT].p;
    size_t count = names_count(n);
    for (; n->looked < count; n->looked++) {
        struct names_row *row = &rows_of(n)[order[n->looked]];
        if (!end && (row->created_at > created_at || (row->created_at == created_at && row->id >= id)))
            break;
        row->created_at = NAMES_UNDATED;
    }
    if (end || n->looked == count || rows_of(n)[order[n->looked]].id != id)
        return true;
    order[n->kept++] = order[n->looked++];
    return true;
}

static bool strike(struct names *n, const struct walk *w)
{
    uint64_t created_at, id;
    return walk_u64(w, 1, &created_at) && walk_u64(w, 2, &id) && strike_before(n, false, (int64_t)created_at, id);
}

/* What was struck out leaves the orders. */
static void end_strike(struct names *n)
{
    struct buf *dates = &n->orders[PROJECT_BY_CREATED_AT], *names = &n->orders[PROJECT_BY_NAME];
    uint32_t *order = (uint32_t *)(void *)names->p;
    size_t kept = 0;
    strike_before(n, true, 0, 0);
    dates->n = n->kept * sizeof(*order);
    for (size_t i = 0; i < names->n / sizeof(*order); i++)
        if (rows_of(n)[order[i]].created_at != NAMES_UNDATED)
            order[kept++] = order[i];
    names->n = kept * sizeof(*order);
}

/* Columns: the index that is walked in a phase, what is done with a key of it, what at its end, the phase that follows. */
static const struct {
    enum space space;
    bool (*take)(struct names *n, const struct walk *w);
    void (*end)(struct names *n);
    enum names_phase next;
} walks[] = {
    [NAMES_BY_NAME] = {SPACE_PROJECT_NAME, take_name, NULL, NAMES_BY_DATE},
    [NAMES_BY_DATE] = {SPACE_PROJECT_DATE, take_date, order_names, NAMES_NEW},
    [NAMES_STRIKE] = {SPACE_PROJECT_DATE, strike, end_strike, NAMES_NEW},
};

/* The index of the present phase, from where it was left; at its end ${n} goes on to the next. */
static enum store_status read_index(struct store *s, MDB_txn *txn, struct names *n, const struct store_list_query *q)
{
    struct walk w = {0};
    unsigned keys = 0;
    enum space space = walks[n->phase].space;
    key_id(&w.prefix, space, n->workspace);
    enum store_status status = walk_from(s, txn, &w, DB_BASE, n->at.n == 0 ? &w.prefix : &n->at);
    if (status == STORE_OK && seen_before(n, &w))
        status = walk_next(&w);
    for (; status == STORE_OK; status = walk_next(&w)) {
        if (keys++ % STEP == STEP - 1 && store_paused(s, q)) {
            status = STORE_AGAIN;
            break;
        }
        if (w.k.mv_data == NULL || !walks[n->phase].take(n, &w)) {
            status = store_corrupt(s, "an index of projects");
            break;
        }
        n->at.n = 0;
        key_bytes(&n->at, w.k.mv_data, w.k.mv_size);
    }
    walk_end(&w);
    if (status != STORE_NOT_FOUND)
        return status;
    n->at.n = 0;
    if (walks[n->phase].end != NULL)
        walks[n->phase].end(n);
    n->phase = walks[n->phase].next;
    return buf_ok(&n->orders[PROJECT_BY_NAME]) ? STORE_OK : store_fail(s, ENOMEM, "list projects");
}

/* ---- what was made since ---- */

static int compare_names(const void *a, const void *b, void *names)
{
    const struct names *sorting = names;
    struct str x = name_of(sorting, *(const uint32_t *)a), y = name_of(sorting, *(const uint32_t *)b);
    return memcmp(x.p, y.p, (x.n < y.n ? x.n : y.n) + 1); /* the NUL at the end decides where one begins the other */
}

static int compare_dates(const void *a, const void *b, void *names)
{
    const struct names *sorting = names;
    const struct names_row *x = &rows_of(sorting)[*(const uint32_t *)a], *y = &rows_of(sorting)[*(const uint32_t *)b];
    if (x->created_at != y->created_at)
        return x->created_at < y->created_at ? -1 : 1;
    return x->id < y->id ? -1 : x->id > y->id;
}

typedef int compare_fn(const void *a, const void *b, void *names);

/* How many of the first ${count} of an order come before ${row}. */
static size_t place_of(struct names *n, const uint32_t *rows, size_t count, const uint32_t *row, compare_fn *compare)
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

static bool merge_fresh(struct names *n, unsigned sort)
{
    static compare_fn *const compare[] = {[PROJECT_BY_CREATED_AT] = compare_dates, [PROJECT_BY_NAME] = compare_names};
    struct buf *order = &n->orders[sort];
    size_t come = n->fresh.n / sizeof(uint32_t), there = order->n / sizeof(uint32_t);
    if (buf_reserve(order, n->fresh.n) == NULL)
        return false;
    uint32_t *rows = (uint32_t *)(void *)order->p, *fresh = (uint32_t *)(void *)n->fresh.p;
    qsort_r(fresh, come, sizeof(*fresh), compare[sort], n);
    for (size_t to = there + come; come > 0;) { /* from the end, where there is room */
        size_t before = place_of(n, rows, there, &fresh[come - 1], compare[sort]);
        to -= there - before;
        memmove(rows + to, rows + before, (there - before) * sizeof(*rows));
        there = before;
        rows[--to] = fresh[--come];
    }
    order->n += n->fresh.n;
    return true;
}

static enum store_status take_new(struct store *s, MDB_txn *txn, struct names *n, uint64_t id)
{
    struct store_project p;
    uint32_t row = find_row(n, id);
    if (row < row_count(n) && rows_of(n)[row].created_at != NAMES_UNDATED)
        return STORE_OK;
    enum store_status status = project_read(s, txn, n->workspace, id, &p, NULL);
    if (status != STORE_OK)
        return status == STORE_NOT_FOUND ? STORE_OK : status;
    if (row < row_count(n))
        rows_of(n)[row].created_at = p.created_at;
    else if (!add_row(n, id, p.created_at, p.name))
        return store_fail(s, ENOMEM, "list projects");
    buf_add(&n->fresh, &row, sizeof(row));
    return buf_ok(&n->fresh) ? STORE_OK : store_fail(s, ENOMEM, "list projects");
}

/* What is fresh goes into both orders. */
static enum store_status put_fresh(struct store *s, struct names *n)
{
    if (n->fresh.n != 0 && (!merge_fresh(n, PROJECT_BY_NAME) || !merge_fresh(n, PROJECT_BY_CREATED_AT)))
        return store_fail(s, ENOMEM, "list projects");
    buf_reset(&n->fresh);
    return STORE_OK;
}

static enum store_status read_new(struct store *s, MDB_txn *txn, struct names *n, uint64_t given, const struct store_list_query *q)
{
    enum store_status status = STORE_OK;
    for (unsigned keys = 1; n->upto < given && status == STORE_OK; keys++) {
        status = take_new(s, txn, n, n->upto + 1);
        n->upto += status == STORE_OK;
        if (status == STORE_OK && (n->fresh.n >= FRESH * sizeof(uint32_t) || n->upto == given))
            status = put_fresh(s, n);
        if (status == STORE_OK && keys % STEP == 0 && n->upto < given && store_paused(s, q))
            return STORE_AGAIN;
    }
    return status;
}

/* ---- bringing it up to a snapshot ---- */

/* The last number that a project was given, in any workspace. */
static enum store_status numbers_given(struct store *s, MDB_txn *txn, uint64_t *out)
{
    struct key k;
    MDB_val v;
    key_space(&k, SPACE_META);
    key_bytes(&k, "c", 1);
    enum store_status status = store_get(s, txn, SPACE_META, &k, &v);
    const struct counters_record *counters = status == STORE_OK ? store_record(v, sizeof(*counters)) : NULL;
    if (counters == NULL)
        return store_corrupt(s, "the record of counters");
    *out = counters->project;
    return STORE_OK;
}

static void begin_strike(struct names *n, MDB_txn *txn)
{
    n->phase = NAMES_STRIKE;
    n->at.n = 0;
    n->looked = n->kept = 0;
    n->snapshot = mdb_txn_id(txn);
}

static enum store_status read_all(struct store *s, MDB_txn *txn, struct names *n, uint64_t given, const struct store_list_query *q)
{
    enum store_status status = STORE_OK;
    while (status == STORE_OK && n->phase != NAMES_NEW)
        status = read_index(s, txn, n, q);
    return status == STORE_OK ? read_new(s, txn, n, given, q) : status;
}

/* So much is new, or struck out, that all is read again. */
static bool is_old(const struct names *n, uint64_t given)
{
    uint32_t rows = row_count(n);
    return !n->read || given < n->upto || given - n->upto > NEW_MANY + rows || rows - names_count(n) > NEW_MANY + names_count(n);
}

static enum store_status bring_up(struct store *s, MDB_txn *txn, struct names *n, uint64_t living, const struct store_list_query *q)
{
    uint64_t given;
    enum store_status status = numbers_given(s, txn, &given);
    if (status == STORE_OK && n->phase == NAMES_NEW && is_old(n, given) && !begin_reading(s, n, txn, given))
        status = store_fail(s, ENOMEM, "list projects");
    if (status == STORE_OK)
        status = read_all(s, txn, n, given, q);
    while (status == STORE_OK && names_count(n) != living) {
        if (n->snapshot == mdb_txn_id(txn))
            return store_corrupt(s, "an index of projects");
        begin_strike(n, txn);
        status = read_all(s, txn, n, given, q);
    }
    return status;
}

/* ---- those that are kept ---- */

static void names_free(struct names *n)
{
    buf_free(&n->rows);
    buf_free(&n->text);
    buf_free(&n->offset);
    buf_free(&n->orders[0]);
    buf_free(&n->orders[1]);
    buf_free(&n->fresh);
    free(n->slots);
    free(n);
}

void names_forget(struct store *s)
{
    while (s->names != NULL) {
        struct names *n = s->names;
        s->names = n->next;
        names_free(n);
    }
}

/* The list is in the order of use. */
static void drop_last(struct store *s)
{
    struct names **at = &s->names;
    unsigned count = 1;
    for (; *at != NULL && (*at)->next != NULL; count++)
        at = &(*at)->next;
    if (count < NAMES_KEPT || *at == NULL)
        return;
    names_free(*at);
    *at = NULL;
}

static struct names *names_of(struct store *s, uint64_t workspace)
{
    struct names **at = &s->names, *n;
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
        n->phase = NAMES_NEW;
    }
    n->next = s->names;
    s->names = n;
    return n;
}

enum store_status names_get(struct store *s, MDB_txn *txn, const struct store_list_query *q, uint64_t living, const struct names **out)
{
    struct names *n = names_of(s, q->workspace);
    *out = n;
    if (n == NULL)
        return store_fail(s, ENOMEM, "list projects");
    enum store_status status = bring_up(s, txn, n, living, q);
    if (status != STORE_OK)
        *out = NULL;
    if (status != STORE_OK && status != STORE_AGAIN) {
        s->names = n->next;
        names_free(n);
    }
    return status;
}
