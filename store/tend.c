#include "tend.h"

#include <stdlib.h>

/*
 * The upkeep of the reports' indexes, in steps of some milliseconds, each in a transaction that the writer has under way anyhow:
 *
 *   a workspace whose log is long → its log and its last small segments become new ones, chunk by chunk → other segments that the log
 *   touched get new moving parts → the manifest is replaced → what nobody names any more is swept
 *
 * New parts are put under numbers that no manifest names yet, so whatever ends the work before the manifest is replaced leaves only parts
 * to sweep. What the log gains meanwhile stays in it and is laid over the new segments.
 */

#define SWEEP_KEYS 32     /* parts that a step deletes */
#define SWEEP_RECORDS 500 /* records of the log */

/* ---- its life ---- */

void tend_forget_plan(struct tend *t)
{
    for (size_t i = 0; i < t->sequence_count; i++)
        free(t->sequences[i].rows);
    free(t->sequences);
    free(t->rows);
    free(t->grams);
    free(t->made);
    free(t->kept);
    buf_free(&t->text);
    buf_free(&t->part);
    *t = (struct tend){.looked = t->looked, .txn = t->txn, .due = t->due};
}

void tend_free(struct store *s)
{
    if (s->tend == NULL)
        return;
    tend_forget_plan(s->tend);
    buf_free(&s->tend->due);
    free(s->tend);
    s->tend = NULL;
}

void tend_aborted(struct store *s, size_t txn)
{
    if (s->tend != NULL && s->tend->txn == txn)
        tend_free(s);
}

static struct tend *tend_of(struct store *s)
{
    if (s->tend == NULL)
        s->tend = calloc(1, sizeof(*s->tend));
    return s->tend;
}

bool tend_due_add(struct tend *t, uint64_t workspace)
{
    for (size_t at = 0; at < t->due.n; at += sizeof(workspace))
        if (memcmp(t->due.p + at, &workspace, sizeof(workspace)) == 0)
            return false;
    buf_add(&t->due, &workspace, sizeof(workspace));
    return true;
}

static bool due_take(struct tend *t, uint64_t *out)
{
    if (t->due.n == 0)
        return false;
    t->due.n -= sizeof(*out);
    memcpy(out, t->due.p + t->due.n, sizeof(*out));
    return true;
}

uint64_t tend_next(const struct store *s)
{
    const struct tend *tend = s->tend;
    uint64_t workspace = 0;
    if (tend != NULL && tend->phase == TEND_SWEEP)
        workspace = tend->workspace;
    else if (tend != NULL && tend->phase == TEND_IDLE && tend->due.n != 0)
        memcpy(&workspace, tend->due.p + tend->due.n - sizeof(workspace), sizeof(workspace));
    return workspace;
}

void tend_due(struct store_txn *t, uint64_t workspace)
{
    struct tend *tend = tend_of(t->s);
    if (tend == NULL || (tend->phase > TEND_SWEEP && tend->workspace == workspace))
        return;
    tend->txn = mdb_txn_id(t->mdb);
    if (tend_due_add(tend, workspace))
        txn_event(t, EVENT_PURGE, workspace, 0, 0);
}

void tend_drop(struct store *s, uint64_t workspace)
{
    if (s->tend != NULL && s->tend->phase != TEND_IDLE && s->tend->workspace == workspace)
        tend_forget_plan(s->tend);
}

static void look_everywhere(struct store_txn *t, struct tend *tend)
{
    struct walk w = {0};
    uint64_t workspace;
    tend->looked = true;
    enum store_status status = walk_begin(t->s, t->mdb, &w, SPACE_WORKSPACE);
    for (; status == STORE_OK; status = walk_next(&w))
        if (walk_u64(&w, 0, &workspace))
            tend_due_add(tend, workspace);
    walk_end(&w);
}

/* ---- sweeping ---- */

/* Up to ${most} keys of ${space} that nobody needs any more; how many. */
static size_t gather_old(struct store_txn *t, enum space space, const struct manifest *m, uint64_t workspace, struct key *keys, size_t most)
{
    struct walk w = {0};
    size_t n = 0;
    key_id(&w.prefix, space, workspace);
    enum store_status status = walk_prefix(t->s, t->mdb, &w, DB_LIST, false);
    for (; status == STORE_OK && n < most; status = walk_next(&w)) {
        uint64_t number;
        if (!walk_u64(&w, 1, &number)) {
            txn_fail(t, 0, "a key of the reports' index");
            break;
        }
        if (space == SPACE_LOG && number >= m->head.log_from)
            break;
        if (space == SPACE_PART && index_names(m, number))
            continue;
        keys[n].n = 0;
        key_bytes(&keys[n++], w.k.mv_data, w.k.mv_size);
    }
    walk_end(&w);
    return n;
}

static size_t sweep(struct store_txn *t, enum space space, const struct manifest *m, uint64_t workspace, size_t most)
{
    struct key *keys = malloc(most * sizeof(*keys));
    if (keys == NULL)
        return 0;
    size_t n = gather_old(t, space, m, workspace, keys, most);
    bool paused = false;
    for (size_t i = 0; i < n && t->error == STORE_OK && !paused; i++) {
        txn_del(t, space, &keys[i]);
        paused = txn_paused(t);
    }
    free(keys);
    return n;
}

static void step_sweep(struct store_txn *t, struct tend *tend)
{
    struct manifest m;
    if (index_manifest(t->s, t->mdb, tend->workspace, &m) != STORE_OK)
        txn_fail(t, 0, "the reports' index");
    else if (sweep(t, SPACE_PART, &m, tend->workspace, SWEEP_KEYS) == 0 && sweep(t, SPACE_LOG, &m, tend->workspace, SWEEP_RECORDS) == 0)
        merge_plan(t, tend);
}

/* Columns: phase, what a step of it does. */
static void (*const steps[])(struct store_txn *t, struct tend *tend) = {
    [TEND_SWEEP] = step_sweep,    [TEND_ORDER] = merge_order,     [TEND_CHUNKS] = merge_chunk,    [TEND_FIXED] = merge_fixed,
    [TEND_MOVING] = merge_moving, [TEND_TOUCHED] = merge_touched, [TEND_INSTALL] = merge_install,
};

/* What the plan has put so far is swept, and room with it. */
static void give_up(struct store_txn *t, struct tend *tend)
{
    uint64_t workspace = tend->workspace;
    txn_upkeep_fails(t);
    tend_forget_plan(tend);
    tend->workspace = workspace;
    tend->phase = TEND_SWEEP;
}

/* Workspaces that need nothing are passed over, so many a step. */
#define IDLE_WORKSPACES 100

bool tend_step(struct store_txn *t)
{
    struct tend *tend = tend_of(t->s);
    if (tend == NULL || t->error != STORE_OK)
        return false;
    tend->txn = mdb_txn_id(t->mdb);
    if (t->installed) /* no more in this transaction, since parts that it put are not where they will be */
        return true;
    if (!tend->looked)
        look_everywhere(t, tend);
    for (int i = 0; i < IDLE_WORKSPACES; i++) {
        if (tend->phase == TEND_IDLE) {
            if (!due_take(tend, &tend->workspace))
                return false;
            tend->phase = TEND_SWEEP;
        }
        t->upkept = t->upkept || tend->phase > TEND_SWEEP;
        steps[tend->phase](t, tend);
        if (tend->cramped)
            give_up(t, tend);
        if (tend->phase != TEND_IDLE || t->installed || t->error != STORE_OK)
            return true;
    }
    return true;
}

void tend_progress(const struct store *s, struct store_upkeep *out)
{
    const struct tend *tend = s->tend;
    if (tend == NULL || (tend->phase == TEND_IDLE && tend->due.n == 0))
        return;
    uint32_t chunked = tend->done + (tend->chunk << s->chunk_shift);
    out->what = "merging";
    out->total = tend->count;
    out->done = chunked < tend->count ? chunked : tend->count;
}
