#include "store/records/workspace.h"

#include "store/engine/cursor.h"
#include "store/engine/errors.h"
#include "store/engine/free_space.h"
#include "store/engine/snapshot.h"
#include "store/engine/txn.h"
#include "store/records/apply.h"
#include "store/records/cached_records.h"

static void name_key(struct key *k, struct str name)
{
    key_space(k, SPACE_WORKSPACE_NAME);
    key_str(k, name);
}

/* ---- reading ---- */

enum store_status workspace_read(struct store *s, MDB_txn *txn, uint64_t id,
                                 struct store_workspace *out, struct counts *counts)
{
    struct store_workspace unwanted;
    struct key k;
    MDB_val v;
    key_id(&k, SPACE_WORKSPACE, id);
    enum store_status status = store_get(s, txn, SPACE_WORKSPACE, &k, &v);
    if (status == STORE_OK && !schema_read_workspace(v, out != NULL ? out : &unwanted))
        return store_corrupt(s, "a workspace's record");
    if (status != STORE_OK)
        return status;
    const struct workspace_record *r = v.mv_data;
    if (counts != NULL)
        *counts = r->counts;
    return r->deleting ? STORE_NOT_FOUND : STORE_OK;
}

void store_workspace_get(struct store *s, uint64_t workspace, store_workspace_fn *done, void *arg)
{
    MDB_txn *txn;
    struct store_workspace w;
    enum store_status status = store_snapshot(s, &txn);
    if (status == STORE_OK)
        status = workspace_read(s, txn, workspace, &w, NULL);
    done(arg, status, status == STORE_OK ? &w : NULL);
}

static enum store_status find(struct store *s, struct str name, struct store_workspace *out)
{
    MDB_txn *txn;
    MDB_val v;
    struct key k;
    if (name.n == 0 || name.n > NAME_MAX_BYTES)
        return STORE_NOT_FOUND;
    enum store_status status = store_snapshot(s, &txn);
    if (status != STORE_OK)
        return status;
    name_key(&k, name);
    status = store_get(s, txn, SPACE_WORKSPACE_NAME, &k, &v);
    if (status != STORE_OK)
        return status;
    uint64_t id;
    if (v.mv_size != sizeof(id))
        return store_corrupt(s, "a workspace's name");
    memcpy(&id, v.mv_data, sizeof(id));
    status = workspace_read(s, txn, id, out, NULL);
    return status == STORE_NOT_FOUND ? store_corrupt(s, "a workspace's name") : status;
}

void store_workspace_find(struct store *s, struct str name, store_workspace_fn *done, void *arg)
{
    struct store_workspace w;
    enum store_status status = find(s, name, &w);
    done(arg, status, status == STORE_OK ? &w : NULL);
}

void store_workspace_each(struct store *s, store_workspace_fn *each, void *arg)
{
    MDB_txn *txn;
    struct cursor w = {0};
    enum store_status status = store_snapshot(s, &txn);
    if (status == STORE_OK)
        status = cursor_begin(s, txn, &w, SPACE_WORKSPACE);
    for (; status == STORE_OK; status = cursor_next(&w)) {
        struct store_workspace workspace;
        if (!schema_read_workspace(w.v, &workspace)) {
            status = store_corrupt(s, "a workspace's record");
            break;
        }
        if (!((const struct workspace_record *)w.v.mv_data)->deleting)
            each(arg, STORE_OK, &workspace);
    }
    cursor_end(&w);
    each(arg, status, NULL);
}

/* ---- changing ---- */

enum store_status workspace_create(struct store_txn *t, const struct store_change *c,
                                   struct store_answer *answer)
{
    struct key k;
    MDB_val v;
    if (c->name.n == 0 || c->name.n > NAME_MAX_BYTES)
        return STORE_INVALID;
    name_key(&k, c->name);
    enum store_status status = txn_get(t, SPACE_WORKSPACE_NAME, &k, &v);
    if (status != STORE_NOT_FOUND)
        return status == STORE_OK ? STORE_EXISTS : status;
    if (txn_is_full(t))
        return STORE_FULL;
    uint64_t id = txn_next(t, workspace);
    struct cached_record *w = txn_made(t, SPACE_WORKSPACE, id, c->name);
    if (w == NULL)
        return t->error;
    w->workspace.version = 1;
    txn_put(t, SPACE_WORKSPACE_NAME, &k, &id, sizeof(id));
    answer->id = id;
    answer->version = 1;
    return STORE_OK;
}

enum store_status workspace_delete(struct store_txn *t, const struct store_change *c,
                                   struct store_answer *answer)
{
    struct cached_record *w = txn_workspace_active(t, c->id);
    if (w == NULL)
        return STORE_NOT_FOUND;
    struct key k;
    name_key(&k, w->name);
    txn_del(t, SPACE_WORKSPACE_NAME, &k);
    w->workspace.deleting = 1;
    w->workspace.version++;
    txn_changed(t, w);
    txn_mark_deleting(t, c->id, 0);
    txn_event(t, EVENT_WORKSPACE_DELETED, c->id, c->id, 0);
    txn_event(t, EVENT_MAINTENANCE, c->id, 0, 0);
    answer->id = c->id;
    return STORE_OK;
}
