#include "store/engine/errors.h"
#include "store/engine/snapshot.h"
#include "store/records/context.h"
#include "store/records/rows_derived.h"

#include <errno.h>

/*
 * Applying a row set: four passes over its rows. The first reads them all and writes nothing. Two
 * write what follows from the difference of the stored and the new values: deletions of documents
 * last, because they use numbers of changes that no document has. The fourth writes the rows.
 */

struct applying {
    struct store_txn *t;
    struct rows_reader first; /* at the first row */
    struct row row;
    struct row_change change;
    MDB_val old, new;
    struct buf copy; /* of the stored value */
};

typedef enum store_status row_fn(struct applying *a);

/* Each row, as a change that has no old value. */
static enum store_status each_row(struct applying *a, row_fn *each)
{
    struct rows_reader r = a->first;
    struct store *s = a->t->s;
    enum store_status status = rows_next(s, &r, &a->row);
    while (status == STORE_OK) {
        a->new = (MDB_val){a->row.value.n, (void *)(uintptr_t)a->row.value.p};
        a->change.space = a->row.space;
        a->change.key = &a->row.key;
        a->change.old = NULL;
        a->change.new = a->row.deleted ? NULL : &a->new;
        status = each(a);
        if (status == STORE_OK)
            status = rows_next(s, &r, &a->row);
    }
    return status == STORE_NOT_FOUND ? STORE_OK : status;
}

static enum store_status check_row(struct applying *a)
{
    return rows_well_formed(&a->change) ? STORE_OK : store_corrupt(a->t->s, "a row set");
}

/* Fill in the stored value, as a copy that later writes do not move. */
static void load_old(struct applying *a)
{
    MDB_val v;
    if (txn_get(a->t, a->row.space, &a->row.key, &v) != STORE_OK)
        return;
    buf_reset(&a->copy);
    buf_add(&a->copy, v.mv_data, v.mv_size);
    if (!buf_ok(&a->copy))
        txn_fail(a->t, ENOMEM, "hold a record");
    a->old = (MDB_val){a->copy.n, a->copy.p};
    a->change.old = &a->old;
}

static bool is_document_deletion(const struct row *r)
{
    return r->space == SPACE_DOCUMENT && r->deleted;
}

static enum store_status follow_row(struct applying *a)
{
    if (is_document_deletion(&a->row))
        return a->t->error;
    load_old(a);
    rows_derived_drop(a->t, &a->change);
    rows_follow(a->t, &a->change);
    return a->t->error;
}

static enum store_status follow_document_deletion(struct applying *a)
{
    if (!is_document_deletion(&a->row))
        return a->t->error;
    load_old(a);
    rows_follow(a->t, &a->change);
    return a->t->error;
}

static enum store_status write_row(struct applying *a)
{
    if (a->row.deleted)
        txn_drop(a->t, a->row.space, &a->row.key);
    else
        txn_put(a->t, a->row.space, &a->row.key, a->row.value.p, a->row.value.n);
    rows_derived_put(a->t, &a->change);
    return a->t->error;
}

/* What the transaction and its store remember of rows of SPACE_META. */
static enum store_status forget(struct store_txn *t)
{
    t->ulid_known = false;
    t->s->records->synced_known = false;
    t->s->records->rated = false;
    return store_counters(t->s, t->mdb, &t->counters) == STORE_OK
               ? STORE_OK
               : txn_fail(t, 0, "the record of counters");
}

enum store_status store_rows_apply(struct store_txn *t, struct str rows)
{
    static row_fn *const passes[] = {follow_row, follow_document_deletion, write_row};
    struct applying a = {.t = t};
    if (t->changes != 0 || t->complete)
        return STORE_INVALID;
    t->background = false;
    enum store_status status = t->error != STORE_OK ? t->error : rows_open(t->s, rows, &a.first);
    if (status == STORE_OK)
        status = each_row(&a, check_row);
    bool good = status == STORE_OK;
    for (size_t i = 0; i < sizeof(passes) / sizeof(*passes) && status == STORE_OK; i++)
        status = each_row(&a, passes[i]);
    if (status == STORE_OK)
        status = forget(t);
    t->follows = t->follows || good;
    t->awaited = t->awaited || good;
    buf_free(&a.copy);
    buf_free(&a.change.before);
    buf_free(&a.change.after);
    return status;
}
