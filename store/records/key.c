#include "store/engine/cursor.h"
#include "store/engine/errors.h"
#include "store/engine/free_space.h"
#include "store/engine/snapshot.h"
#include "store/engine/txn.h"
#include "store/records/apply.h"
#include "store/records/cached_records.h"
#include "store/records/workspace.h"

#define HASH_BYTES 32

static void hash_key(struct key *k, const void *hash)
{
    key_space(k, SPACE_KEY);
    key_bytes(k, hash, HASH_BYTES);
}

/* ---- reading ---- */

/* The keys of a workspace that is being deleted are revoked by that. */
static enum store_status key_at(struct store *s, MDB_txn *txn, const uint8_t *hash,
                                struct store_key *out)
{
    MDB_val v;
    enum store_status status = store_get_key(s, hash, &v);
    if (status != STORE_OK)
        return status;
    if (!schema_read_key(v, hash, out))
        return store_corrupt(s, "a key's record");
    return store_is_deleting(s, txn, out->workspace, 0) ? STORE_NOT_FOUND : STORE_OK;
}

void store_key_find(struct store *s, const uint8_t hash[32], store_key_fn *done, void *arg)
{
    MDB_txn *txn;
    struct store_key key;
    enum store_status status = store_snapshot(s, &txn);
    if (status == STORE_OK)
        status = key_at(s, txn, hash, &key);
    done(arg, status, status == STORE_OK ? &key : NULL);
}

static enum store_status get(struct store *s, uint64_t id, struct store_key *out)
{
    MDB_txn *txn;
    struct key k;
    MDB_val v;
    enum store_status status = store_snapshot(s, &txn);
    if (status != STORE_OK)
        return status;
    key_id(&k, SPACE_KEY_ID, id);
    status = store_get(s, txn, SPACE_KEY_ID, &k, &v);
    if (status == STORE_OK && v.mv_size != HASH_BYTES)
        return store_corrupt(s, "the index of keys");
    return status == STORE_OK ? key_at(s, txn, v.mv_data, out) : status;
}

void store_key_get(struct store *s, uint64_t id, store_key_fn *done, void *arg)
{
    struct store_key key;
    enum store_status status = get(s, id, &key);
    done(arg, status, status == STORE_OK ? &key : NULL);
}

void store_key_each(struct store *s, uint64_t workspace, store_key_fn *each, void *arg)
{
    MDB_txn *txn;
    struct cursor w = {0};
    enum space space = workspace == 0 ? SPACE_KEY_ID : SPACE_KEY_WORKSPACE;
    enum store_status status = store_snapshot(s, &txn);
    key_space(&w.prefix, space);
    if (workspace != 0)
        key_u64(&w.prefix, workspace);
    if (status == STORE_OK)
        status = cursor_prefix(s, txn, &w, schema_space_db[space], false);
    for (; status == STORE_OK; status = cursor_next(&w)) {
        struct store_key key;
        status = w.v.mv_size == HASH_BYTES ? key_at(s, txn, w.v.mv_data, &key)
                                           : store_corrupt(s, "the index of keys");
        if (status == STORE_OK)
            each(arg, STORE_OK, &key);
        else if (status != STORE_NOT_FOUND)
            break;
    }
    cursor_end(&w);
    each(arg, status, NULL);
}

/* ---- changing ---- */

/* A copy of the key's record; its name stays in the page until the next write. */
static enum store_status key_load(struct store_txn *t, uint64_t workspace, uint64_t id,
                                  struct store_key *out)
{
    struct key k;
    MDB_val v, hash;
    key_id(&k, SPACE_KEY_ID, id);
    enum store_status status = txn_get(t, SPACE_KEY_ID, &k, &hash);
    if (status != STORE_OK)
        return status;
    hash_key(&k, hash.mv_data);
    status = txn_get(t, SPACE_KEY, &k, &v);
    if (status != STORE_OK || !schema_read_key(v, hash.mv_data, out))
        return txn_fail(t, 0, "a key's record");
    if ((workspace != 0 && out->workspace != workspace) ||
        store_is_deleting(t->s, t->mdb, out->workspace, 0))
        return STORE_NOT_FOUND;
    buf_reset(&t->copy);
    buf_str(&t->copy, out->name);
    out->name = buf_view(&t->copy);
    return STORE_OK;
}

static void key_write(struct store_txn *t, const struct store_key *key)
{
    struct key k;
    struct key_record r = {
        .scopes = key->scopes,
        .id = key->id,
        .workspace = key->workspace,
        .created_at = key->created_at,
        .last_used_at = key->last_used_at,
        .expires_at = key->expires_at,
        .revoked_at = key->revoked_at,
        .name_n = (uint16_t)key->name.n,
    };
    hash_key(&k, key->hash);
    char *to = txn_reserve(t, SPACE_KEY, &k, sizeof(r) + key->name.n);
    if (to == NULL)
        return;
    memcpy(to, &r, sizeof(r));
    if (key->name.n != 0)
        memcpy(to + sizeof(r), key->name.p, key->name.n);
}

/* A new key and its two derived rows. */
static void key_add(struct store_txn *t, struct store_key *key, const void *hash)
{
    struct key k;
    key->id = txn_next(t, key);
    key->created_at = t->now;
    key->last_used_at = key->revoked_at = 0;
    memcpy(key->hash, hash, HASH_BYTES);
    key_write(t, key);
    key_id(&k, SPACE_KEY_ID, key->id);
    txn_put(t, SPACE_KEY_ID, &k, hash, HASH_BYTES);
    key_id(&k, SPACE_KEY_WORKSPACE, key->workspace);
    key_u64(&k, key->id);
    txn_put(t, SPACE_KEY_WORKSPACE, &k, hash, HASH_BYTES);
}

static enum store_status hash_is_new(struct store_txn *t, struct str hash)
{
    struct key k;
    MDB_val v;
    if (hash.n != HASH_BYTES)
        return STORE_INVALID;
    hash_key(&k, hash.p);
    enum store_status status = txn_get(t, SPACE_KEY, &k, &v);
    return status == STORE_NOT_FOUND ? STORE_OK : status == STORE_OK ? STORE_EXISTS : status;
}

void key_remove(struct store_txn *t, uint64_t workspace, uint64_t id)
{
    struct key k, hash;
    MDB_val v;
    key_id(&k, SPACE_KEY_ID, id);
    if (txn_get(t, SPACE_KEY_ID, &k, &v) != STORE_OK || v.mv_size != HASH_BYTES) {
        txn_fail(t, 0, "the index of keys");
        return;
    }
    hash_key(&hash, v.mv_data);
    txn_del(t, SPACE_KEY, &hash);
    txn_del(t, SPACE_KEY_ID, &k);
    key_id(&k, SPACE_KEY_WORKSPACE, workspace);
    key_u64(&k, id);
    txn_del(t, SPACE_KEY_WORKSPACE, &k);
}

enum store_status key_create(struct store_txn *t, const struct store_change *c,
                             struct store_answer *answer)
{
    enum store_status status = c->name.n > NAME_MAX_BYTES ? STORE_INVALID : hash_is_new(t, c->hash);
    if (status != STORE_OK)
        return status;
    if (txn_workspace_active(t, c->workspace) == NULL)
        return STORE_NOT_FOUND;
    if (txn_is_full(t))
        return STORE_FULL;
    struct store_key key = {.workspace = c->workspace,
                            .scopes = c->scopes,
                            .expires_at = c->expires_at,
                            .name = c->name};
    key_add(t, &key, c->hash.p);
    answer->id = key.id;
    return STORE_OK;
}

enum store_status key_revoke(struct store_txn *t, const struct store_change *c,
                             struct store_answer *answer)
{
    struct store_key key;
    enum store_status status = key_load(t, c->workspace, c->id, &key);
    if (status != STORE_OK)
        return status;
    answer->id = c->id;
    if (key.revoked_at != 0)
        return STORE_OK;
    key.revoked_at = t->now;
    key_write(t, &key);
    txn_event(t, EVENT_KEY_REVOKED, key.workspace, key.id, 0);
    return STORE_OK;
}

/*
 * The new key's lifetime is that of the old one, from now on. Workers must read the old one again.
 */
enum store_status key_rotate(struct store_txn *t, const struct store_change *c,
                             struct store_answer *answer)
{
    struct store_key key;
    enum store_status status = hash_is_new(t, c->hash);
    if (status == STORE_OK)
        status = key_load(t, c->workspace, c->id, &key);
    if (status != STORE_OK)
        return status;
    if (key.revoked_at != 0)
        return STORE_NOT_FOUND;
    if (txn_is_full(t))
        return STORE_FULL;
    struct store_key made = key;
    made.expires_at = key.expires_at == 0 ? 0 : t->now + (key.expires_at - key.created_at);
    if (key.expires_at == 0 || c->expires_at < key.expires_at)
        key.expires_at = c->expires_at;
    key_write(t, &key);
    key_add(t, &made, c->hash.p);
    txn_event(t, EVENT_KEY_REVOKED, key.workspace, key.id, 0);
    answer->id = made.id;
    return STORE_OK;
}

enum store_status key_touch(struct store_txn *t, const struct store_change *c,
                            struct store_answer *answer)
{
    struct store_key key;
    enum store_status status = key_load(t, c->workspace, c->id, &key);
    if (status != STORE_OK)
        return status;
    answer->id = c->id;
    if (key.last_used_at < t->now) {
        key.last_used_at = t->now;
        key_write(t, &key);
    }
    return STORE_OK;
}
