#include "store/maintenance.h"

#include "store/engine/cursor.h"
#include "store/engine/errors.h"
#include "store/engine/snapshot.h"
#include "store/index/builder.h"
#include "store/index/merge.h"
#include "store/index/snapshot.h"
#include "store/records/purge.h"
#include "store/records/result.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#define BATCH 256 /* reports of a change; the loop deletes as many as its time allows */
#define IDS_MAX ((size_t)1 << 20) /* reports to delete that are kept in memory */

/* Reports that are to be deleted. */
struct purge {
    struct deleting deleting;
    struct buf ids;  /* of uint64_t */
    size_t at;       /* ids before it are deleted */
    uint64_t mended; /* the workspace whose index contradicted the reports */
};

struct maintenance {
    struct store *s;
    maintenance_carry_fn *carry;
    store_stop_fn *ends;
    void *arg;
    bool started;
    struct purge purge;
    uint64_t due;            /* the last workspace that was checked */
    bool sweeping;           /* its log is being swept */
    bool due_failed;         /* some failed since the first one */
    bool due_moved;          /* others were merged */
    struct rebuild *rebuild; /* in progress */
    bool rebuild_due;
    unsigned turn;      /* which kind of work is next */
    unsigned failed;    /* bits of the kinds of work that failed and wait */
    char why[1024];     /* the last failure */
    bool files_due;     /* unnamed files may exist */
    struct buf pending; /* sweep_files */
    bool files_later;
    pthread_mutex_t lock;
    struct store_maintenance_status progress; /* under the lock */
};

/* ---- progress ---- */

static void tell(struct maintenance *m, const char *what, uint64_t left)
{
    pthread_mutex_lock(&m->lock);
    struct store_maintenance_status *p = &m->progress;
    if (strcmp(p->what, what) != 0 || left > p->total)
        *p = (struct store_maintenance_status){.what = what, .total = left};
    p->done = p->total - left;
    pthread_mutex_unlock(&m->lock);
}

void maintenance_progress(struct maintenance *m, struct store_maintenance_status *out)
{
    pthread_mutex_lock(&m->lock);
    *out = m->progress;
    pthread_mutex_unlock(&m->lock);
}

/* ---- deletions ---- */

static bool take_id(void *arg, uint64_t id)
{
    struct buf *ids = arg;
    buf_add(ids, &id, sizeof(id));
    return buf_ok(ids) && ids->n < IDS_MAX * sizeof(id);
}

/* Handle the failure of a step. STORE_OK: it was repaired, and the step continues. */
static enum store_status mend(struct maintenance *m, uint64_t workspace, enum store_status status)
{
    if (status != STORE_DAMAGED)
        return status == STORE_REBUILDING || status == STORE_STALE ? STORE_OK : status;
    const struct store_change lost = {
        .kind = CHANGE_INDEX_LOST, .workspace = workspace, .id = store_lost_segment(m->s)};
    status = m->carry(m->arg, &lost).status;
    m->files_due = true; /* files of its segments */
    return status == STORE_STALE ? STORE_OK : status;
}

static enum store_status find_reports(struct maintenance *m, MDB_txn *txn)
{
    struct purge *p = &m->purge;
    struct index_snapshot *v;
    enum store_status status = index_snapshot_get(m->s, txn, p->deleting.workspace, &v);
    buf_reset(&p->ids);
    p->at = 0;
    if (status != STORE_OK)
        return status;
    index_snapshot_each_id(v, p->deleting.project, take_id, &p->ids);
    return buf_ok(&p->ids) ? STORE_OK : store_fail(m->s, ENOMEM, "find reports to delete");
}

/* Read the pages from the disk here, so that the transaction does not wait for them. */
static void read_records(struct maintenance *m, const uint64_t *ids, size_t count)
{
    MDB_txn *txn;
    struct key k;
    MDB_val v;
    if (store_snapshot(m->s, &txn) != STORE_OK)
        return; /* the transaction says what is wrong */
    for (size_t i = 0; i < count; i++) {
        key_id(&k, SPACE_REPORT, ids[i]);
        if (store_get(m->s, txn, SPACE_REPORT, &k, &v) == STORE_OK && v.mv_size > 0)
            (void)*(const volatile char *)v.mv_data;
        (void)result_look(m->s, txn, ids[i]);
    }
    store_read_end(m->s);
}

/* The index contradicts the reports: rebuild it, once per workspace. */
static enum store_status contradicted(struct maintenance *m)
{
    struct purge *p = &m->purge;
    const struct store_change lost = {.kind = CHANGE_INDEX_LOST,
                                      .workspace = p->deleting.workspace};
    buf_reset(&p->ids);
    p->at = 0;
    if (p->mended == p->deleting.workspace)
        return STORE_CORRUPT;
    p->mended = p->deleting.workspace;
    return m->carry(m->arg, &lost).status;
}

static enum store_status purge_some(struct maintenance *m)
{
    struct purge *p = &m->purge;
    const uint64_t *ids = (const uint64_t *)(const void *)p->ids.p;
    size_t left = p->ids.n / sizeof(*ids) - p->at, count = left < BATCH ? left : BATCH;
    struct store_change change = {.kind = CHANGE_PURGE_DELETED,
                                  .workspace = p->deleting.workspace,
                                  .id = p->deleting.project};
    tell(m, "purging", left);
    if (count != 0) {
        read_records(m, ids + p->at, count);
        change.data = (struct str){(const char *)(ids + p->at), count * sizeof(*ids)};
    }
    struct store_answer answer = m->carry(m->arg, &change);
    if (count == 0)
        m->files_due = true; /* a workspace's segments are deleted with it */
    if (answer.status == STORE_CORRUPT)
        return contradicted(m);
    if (answer.status == STORE_OK && count != 0)
        p->at += answer.id < count ? (size_t)answer.id : count;
    return answer.status == STORE_NOT_FOUND ? STORE_OK : answer.status;
}

/* The next deletion, but not of a workspace whose index is being rebuilt: others do not wait. */
static enum store_status find_deletion(struct maintenance *m, MDB_txn *txn)
{
    struct deleting *d = &m->purge.deleting;
    enum store_status status = STORE_REBUILDING;
    if (!store_any_deleting(m->s, txn))
        return STORE_NOT_FOUND;
    for (uint64_t from = 0; status == STORE_REBUILDING; from = d->workspace + 1)
        status = deleting_next(m->s, txn, from, d) ? find_reports(m, txn) : STORE_NOT_FOUND;
    return status;
}

/* STORE_NOT_FOUND: nothing can be deleted. */
static enum store_status purge_step(struct maintenance *m)
{
    struct purge *p = &m->purge;
    MDB_txn *txn;
    if (m->s->shared->follows)
        return STORE_NOT_FOUND; /* the row sets have what is deleted */
    if (p->at < p->ids.n / sizeof(uint64_t))
        return purge_some(m);
    enum store_status status = store_snapshot(m->s, &txn);
    if (status == STORE_OK)
        status = find_deletion(m, txn);
    store_read_end(m->s);
    if (status == STORE_OK)
        return purge_some(m);
    return status == STORE_NOT_FOUND ? status : mend(m, p->deleting.workspace, status);
}

/* ---- due indexes ---- */

static enum store_status sweep_log(struct maintenance *m)
{
    const struct store_change change = {.kind = CHANGE_INDEX_SWEEP, .workspace = m->due};
    struct store_answer answer = m->carry(m->arg, &change);
    m->sweeping = answer.status == STORE_OK && answer.id != 0;
    return answer.status;
}

static enum store_status install(void *arg, struct builder *b, struct str install)
{
    struct maintenance *m = arg;
    const struct store_change change = {
        .kind = CHANGE_INDEX_INSTALL, .workspace = b->workspace, .data = install};
    struct store_answer answer = m->carry(m->arg, &change);
    m->files_due = true;
    if (answer.status == STORE_OK)
        buf_reset(&b->made);
    return answer.status == STORE_STALE ? STORE_OK : answer.status;
}

static enum store_status merge(struct maintenance *m)
{
    struct builder b;
    struct buf out = {0};
    builder_init(&b, m->s, m->due);
    tell(m, "merging", 0);
    enum store_status status = merge_make(&b, &out);
    if (status == STORE_OK)
        status = install(m, &b, buf_view(&out));
    builder_undo(&b);
    builder_free(&b);
    buf_free(&out);
    if (status == STORE_REBUILDING)
        m->rebuild_due = true;
    else
        m->due_moved = true;
    return status == STORE_NOT_FOUND ? STORE_OK : mend(m, m->due, status);
}

/* The reader has no details if the writer refused a change. */
static void note_failure(struct maintenance *m, enum store_status status)
{
    const char *details = store_why(m->s);
    snprintf(m->why, sizeof(m->why), "%s%s%s", store_status_text(status),
             details[0] == '\0' ? "" : ": ", details);
}

/* All were checked. Start again with those that are still, or again, due. */
static enum store_status end_of_due(struct maintenance *m)
{
    bool failed = m->due_failed, moved = m->due_moved;
    m->due_failed = m->due_moved = false;
    return failed ? STORE_CORRUPT : moved ? STORE_OK : STORE_NOT_FOUND;
}

/* STORE_NOT_FOUND: none is due. */
static enum store_status index_step(struct maintenance *m)
{
    if (m->sweeping)
        return sweep_log(m);
    enum store_status status = cursor_next_workspace(m->s, SPACE_INDEX_DUE, m->due, &m->due);
    if (status != STORE_OK)
        return status;
    if (m->due == 0)
        return end_of_due(m);
    status = merge(m);
    m->sweeping = status == STORE_OK;
    if (status == STORE_OK || status == STORE_FULL || status == STORE_IO)
        return status;
    note_failure(m, status); /* of this workspace only */
    m->due_failed = true;
    return STORE_OK;
}

/* ---- files ---- */

static enum store_status sweep(struct maintenance *m)
{
    m->files_due = false;
    index_snapshot_tidy(m->s); /* their maps keep the disk space of deleted files in use */
    return sweep_files(m->s, &m->pending, &m->files_later);
}

/* The files of a rebuild are unnamed until its end. */
static enum store_status files_step(struct maintenance *m)
{
    return !m->files_due || m->rebuild != NULL ? STORE_NOT_FOUND : sweep(m);
}

static void take_missing(void *arg, uint64_t workspace, uint64_t number)
{
    struct buf *out = arg;
    buf_add(out, &workspace, sizeof(workspace));
    buf_add(out, &number, sizeof(number));
}

/* Find missing files before a list needs them: a backup has none. */
static enum store_status start(struct maintenance *m)
{
    struct buf missing = {0};
    enum store_status status = missing_files(m->s, take_missing, &missing);
    if (status == STORE_OK && !buf_ok(&missing))
        status = store_fail(m->s, ENOMEM, "look for segment files");
    const uint64_t *at = (const uint64_t *)(const void *)missing.p;
    for (size_t i = 0; status == STORE_OK && i < missing.n / sizeof(*at); i += 2) {
        const struct store_change lost = {
            .kind = CHANGE_INDEX_LOST, .workspace = at[i], .id = at[i + 1]};
        status = m->carry(m->arg, &lost).status;
        if (status == STORE_STALE) /* reported by another segment of the workspace */
            status = STORE_OK;
    }
    buf_free(&missing);
    m->started = status == STORE_OK;
    m->files_due = true;
    return status;
}

/* ---- rebuilds ---- */

/*
 * Delete the replaced files first: the rebuild may need their disk space. files_step reports a file
 * that cannot be deleted.
 */
static enum store_status rebuild_begin(struct maintenance *m)
{
    m->files_due = sweep(m) != STORE_OK;
    m->rebuild_due = false;
    m->rebuild = rebuild_new(m->s, false);
    return m->rebuild == NULL ? store_fail(m->s, ENOMEM, "rebuild indexes of reports") : STORE_OK;
}

static enum store_status rebuild_some(struct maintenance *m)
{
    if (m->rebuild == NULL)
        return m->rebuild_due ? rebuild_begin(m) : STORE_NOT_FOUND;
    tell(m, "rebuilding", 0);
    enum store_status status = rebuild_step(m->rebuild, install, m);
    if (status == STORE_OK)
        return status;
    rebuild_free(m->rebuild);
    m->rebuild = NULL;
    m->files_due = true;
    return status == STORE_NOT_FOUND ? STORE_OK : status;
}

/* ---- steps ---- */

/* Round robin, so that no kind of work waits for another. */
static enum store_status (*const kinds[])(struct maintenance *m) = {purge_step, index_step,
                                                                    rebuild_some, files_step};
#define KINDS (sizeof(kinds) / sizeof(*kinds))

/* True: it did something. */
static bool work(struct maintenance *m)
{
    m->turn = (m->turn + 1) % KINDS;
    if ((m->failed & 1U << m->turn) != 0)
        return false;
    bool noted = m->due_failed;
    enum store_status status = kinds[m->turn](m);
    if (status == STORE_OK || status == STORE_NOT_FOUND)
        return status == STORE_OK;
    if (!noted)
        note_failure(m, status);
    m->failed |= 1U << m->turn;
    return false;
}

enum maintenance_result maintenance_step(struct maintenance *m, bool again)
{
    if (again)
        m->failed = 0;
    if (!m->started) {
        enum store_status status = start(m);
        if (status == STORE_OK)
            return MAINTENANCE_MORE;
        note_failure(m, status);
        return MAINTENANCE_FAILED;
    }
    for (unsigned i = 0; i < KINDS && !m->ends(m->arg); i++)
        if (work(m))
            return MAINTENANCE_MORE;
    tell(m, "", 0);
    m->files_due = m->files_later;
    return m->failed != 0   ? MAINTENANCE_FAILED
           : m->files_later ? MAINTENANCE_LATER
                            : MAINTENANCE_IDLE;
}

const char *maintenance_why(const struct maintenance *m)
{
    return m->why;
}

/* ---- create, free ---- */

struct maintenance *maintenance_new(struct store *s, maintenance_carry_fn *carry,
                                    store_stop_fn *ends, void *arg)
{
    struct maintenance *m = calloc(1, sizeof(*m));
    if (m == NULL)
        return NULL;
    *m = (struct maintenance){.s = s,
                              .carry = carry,
                              .ends = ends,
                              .arg = arg,
                              .turn = KINDS - 1,
                              .progress = {.what = ""}};
    pthread_mutex_init(&m->lock, NULL);
    return m;
}

void maintenance_free(struct maintenance *m)
{
    if (m == NULL)
        return;
    rebuild_free(m->rebuild);
    buf_free(&m->purge.ids);
    buf_free(&m->pending);
    pthread_mutex_destroy(&m->lock);
    free(m);
}
