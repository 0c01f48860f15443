#include "store/engine/cursor.h"
#include "store/engine/derived.h"
#include "store/engine/environment.h"
#include "store/engine/errors.h"
#include "store/index/builder.h"
#include "store/index/merge.h"
#include "store/maintenance.h"

#include <errno.h>
#include <stdio.h>

/* The work of the merge thread, for a command while no server runs. */

#define BATCH 256                     /* indexes of a transaction */
#define BATCH_BYTES ((size_t)4 << 20) /* of their data: the next one uses the pages of the old */

struct offline {
    struct store *s, *reader;
    bool every;          /* rebuild the indexes of all workspaces */
    struct store_txn *t; /* NULL: none is open */
    unsigned count;      /* of its indexes */
    size_t bytes;
    store_progress_fn *progress;
    void *arg;
};

static enum store_status commit(struct offline *r)
{
    enum store_status status = r->t == NULL ? STORE_OK : store_commit(r->t);
    r->t = NULL;
    r->count = 0;
    r->bytes = 0;
    return status;
}

/* After each index. */
static enum store_status commit_batch(struct offline *r, size_t bytes)
{
    r->bytes += bytes;
    return ++r->count < BATCH && r->bytes < BATCH_BYTES ? STORE_OK : commit(r);
}

static enum store_status apply(struct offline *r, const struct store_change *c,
                               struct store_answer *answer)
{
    enum store_status status = r->t == NULL ? store_begin(r->s, &r->t) : STORE_OK;
    if (status != STORE_OK)
        return status;
    store_apply(r->t, c, 0, answer);
    return (enum store_status)answer->status;
}

static struct store_answer carry_out(void *arg, const struct store_change *c)
{
    struct store_answer answer = {0};
    enum store_status status = apply(arg, c, &answer);
    enum store_status committed = commit(arg);
    answer.status = status != STORE_OK ? status : committed;
    return answer;
}

static enum store_status mark_those_with_files(struct offline *r)
{
    struct store_answer answer;
    enum store_status status = STORE_OK;
    for (uint64_t workspace = 0; status == STORE_OK;) {
        status = cursor_next_workspace(r->reader, SPACE_SEGMENT, workspace, &workspace);
        if (status != STORE_OK || workspace == 0)
            break;
        const struct store_change lost = {.kind = CHANGE_INDEX_LOST, .workspace = workspace};
        status = apply(r, &lost, &answer);
        if (status == STORE_OK)
            status = commit_batch(r, 0);
    }
    return status == STORE_OK ? commit(r) : status;
}

/* Until the commit the file has no name in the store, and the server would delete it. */
static enum store_status install(void *arg, struct builder *b, struct str data)
{
    struct offline *r = arg;
    struct store_answer answer;
    enum store_status status = STORE_OK;
    const struct store_change lost = {.kind = CHANGE_INDEX_LOST, .workspace = b->workspace};
    const struct store_change c = {
        .kind = CHANGE_INDEX_INSTALL, .workspace = b->workspace, .data = data};
    if (r->every)
        status = apply(r, &lost, &answer);
    if (status == STORE_OK)
        status = apply(r, &c, &answer);
    if (status == STORE_OK)
        buf_reset(&b->made);
    return status == STORE_OK ? commit_batch(r, data.n) : status;
}

static enum store_status rebuild_indexes(struct offline *r)
{
    struct rebuild *build = rebuild_new(r->reader, r->every);
    enum store_status status =
        build == NULL ? store_fail(r->reader, ENOMEM, "rebuild indexes of reports") : STORE_OK;
    for (uint64_t steps = 0; status == STORE_OK; steps++)
        status = r->progress == NULL || r->progress(r->arg, steps, 0)
                     ? rebuild_step(build, install, r)
                     : STORE_AGAIN;
    rebuild_free(build);
    return status == STORE_NOT_FOUND ? commit(r) : status;
}

/* Delete files of lost segments. */
static enum store_status sweep(struct offline *r)
{
    struct buf pending = {0};
    bool more;
    enum store_status status = sweep_files(r->reader, &pending, &more);
    buf_free(&pending);
    return status;
}

static bool never(void *arg)
{
    (void)arg;
    return false;
}

/* The store that failed has the sentence. */
static enum store_status end(struct offline *r, enum store_status status)
{
    if (r->t != NULL)
        store_abort(r->t);
    if (status != STORE_OK && store_why(r->reader)[0] != '\0')
        memcpy(r->s->why, r->reader->why, sizeof(r->s->why));
    store_close(r->reader);
    return status;
}

enum store_status store_rebuild(struct store *s, bool all, store_progress_fn *progress, void *arg)
{
    struct offline r = {.s = s, .every = all, .progress = progress, .arg = arg};
    enum store_status status = store_share(s, &r.reader, s->why, sizeof(s->why));
    if (status != STORE_OK)
        return status;
    if (all) {
        store_stage_begins(s, "the derived rows");
        status = derived_rebuild(s, r.reader);
    }
    store_stage_begins(s, "the indexes of reports");
    if (status == STORE_OK && !all)
        status = mark_those_with_files(&r);
    if (status == STORE_OK)
        status = rebuild_indexes(&r);
    if (status == STORE_OK)
        status = sweep(&r);
    return end(&r, status);
}

static enum store_status maintain(struct offline *r)
{
    struct store_maintenance_status now;
    struct maintenance *m = maintenance_new(r->reader, carry_out, never, r);
    if (m == NULL)
        return store_fail(r->reader, ENOMEM, "maintain the store");
    enum maintenance_result result = MAINTENANCE_MORE;
    while (result == MAINTENANCE_MORE) {
        result = maintenance_step(m, false);
        maintenance_progress(m, &now);
        if (!r->progress(r->arg, now.done, now.total))
            break;
    }
    if (result == MAINTENANCE_FAILED)
        snprintf(r->reader->why, sizeof(r->reader->why), "%s", maintenance_why(m));
    maintenance_free(m);
    return result == MAINTENANCE_FAILED ? STORE_IO : STORE_OK;
}

enum store_status store_maintain(struct store *s, store_progress_fn *progress, void *arg)
{
    struct offline r = {.s = s, .progress = progress, .arg = arg};
    enum store_status status = store_share(s, &r.reader, s->why, sizeof(s->why));
    return status == STORE_OK ? end(&r, maintain(&r)) : status;
}
