#include "store/records/job.h"

#include "store/engine/cursor.h"
#include "store/engine/errors.h"
#include "store/engine/snapshot.h"
#include "store/engine/txn.h"

#include <errno.h>
#include <stdlib.h>

/* ---- reading ---- */

/* The head has the URL, and tells whether the job is still needed. */
static enum store_status job_read(struct store *s, MDB_txn *txn, uint64_t report, MDB_val v,
                                  struct store_job *out)
{
    struct key k;
    MDB_val head;
    struct store_report r;
    const struct job_record *job = store_record(v, sizeof(*job));
    key_id(&k, SPACE_REPORT, report);
    enum store_status status =
        job == NULL ? STORE_NOT_FOUND : store_get(s, txn, SPACE_REPORT, &k, &head);
    if (status == STORE_NOT_FOUND || (status == STORE_OK && !schema_read_report(head, &r)))
        return store_corrupt(s, "a job");
    if (status != STORE_OK)
        return status;
    if (store_is_deleting(s, txn, r.workspace, r.project))
        return STORE_NOT_FOUND;
    *out = (struct store_job){.workspace = r.workspace,
                              .report = report,
                              .attempt = job->attempt,
                              .deaths = job->deaths,
                              .url = r.url};
    return STORE_OK;
}

bool store_job_get(struct store *s, uint64_t report, struct store_job *out)
{
    MDB_txn *txn;
    struct key k;
    MDB_val v;
    if (store_snapshot(s, &txn) != STORE_OK)
        return false;
    key_id(&k, SPACE_JOB, report);
    return store_get(s, txn, SPACE_JOB, &k, &v) == STORE_OK &&
           job_read(s, txn, report, v, out) == STORE_OK;
}

struct waiting {
    uint64_t order, report;
};

static int by_order(const void *a, const void *b)
{
    const struct waiting *x = a, *y = b;
    return x->order < y->order ? -1 : x->order > y->order;
}

/*
 * A repeated job has an old report id and a new place in the queue, so the rows are sorted first.
 */
static enum store_status gather(struct store *s, MDB_txn *txn, struct buf *out)
{
    struct cursor w = {0};
    enum store_status status = cursor_begin(s, txn, &w, SPACE_JOB);
    for (; status == STORE_OK; status = cursor_next(&w)) {
        const struct job_record *job = store_record(w.v, sizeof(*job));
        struct waiting one = {0};
        if (job == NULL || !cursor_u64(&w, 0, &one.report)) {
            status = store_corrupt(s, "a job");
            break;
        }
        one.order = job->order;
        buf_add(out, &one, sizeof(one));
    }
    cursor_end(&w);
    return status == STORE_NOT_FOUND ? STORE_OK : status;
}

enum store_status store_job_each(struct store *s, store_job_fn *each, void *arg)
{
    MDB_txn *txn;
    struct buf rows = {0};
    enum store_status status = store_snapshot(s, &txn);
    if (status == STORE_OK)
        status = gather(s, txn, &rows);
    if (status == STORE_OK && !buf_ok(&rows))
        status = store_fail(s, ENOMEM, "list the jobs");
    struct waiting *waiting = (struct waiting *)(void *)rows.p;
    size_t count = rows.n / sizeof(*waiting);
    if (status == STORE_OK && count != 0)
        qsort(waiting, count, sizeof(*waiting), by_order);
    for (size_t i = 0; i < count && status == STORE_OK; i++) {
        struct store_job job;
        struct key k;
        MDB_val v;
        key_id(&k, SPACE_JOB, waiting[i].report);
        status = store_get(s, txn, SPACE_JOB, &k, &v);
        if (status == STORE_OK)
            status = job_read(s, txn, waiting[i].report, v, &job);
        if (status == STORE_OK)
            each(arg, &job);
        else if (status == STORE_NOT_FOUND)
            status = STORE_OK;
    }
    buf_free(&rows);
    return status;
}

/* ---- changing ---- */

void job_put(struct store_txn *t, uint64_t report, const struct job_record *job)
{
    struct key k;
    key_id(&k, SPACE_JOB, report);
    txn_put(t, SPACE_JOB, &k, job, sizeof(*job));
}

enum store_status job_load(struct store_txn *t, uint64_t report, struct job_record *out)
{
    struct key k;
    MDB_val v;
    key_id(&k, SPACE_JOB, report);
    enum store_status status = txn_get(t, SPACE_JOB, &k, &v);
    if (status != STORE_OK)
        return status;
    if (v.mv_size != sizeof(*out))
        return txn_fail(t, 0, "a job");
    memcpy(out, v.mv_data, sizeof(*out));
    return STORE_OK;
}

void job_drop(struct store_txn *t, uint64_t report)
{
    struct key k;
    key_id(&k, SPACE_JOB, report);
    txn_del(t, SPACE_JOB, &k);
}
