#include "store/engine/txn.h"

#include "store/engine/errors.h"
#include "store/engine/free_space.h"
#include "store/engine/layers.h"
#include "store/engine/rows.h"
#include "store/engine/snapshot.h"

#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/random.h>

bool store_change_is_local(uint32_t kind)
{
    return kind < CHANGE_KINDS && change_rows[kind].local;
}

void store_apply(struct store_txn *t, const struct store_change *change, int64_t now_ms,
                 struct store_answer *answer)
{
    *answer = (struct store_answer){0};
    t->now = now_ms;
    if (t->error != STORE_OK) {
        answer->status = t->error;
        return;
    }
    if (change->kind >= CHANGE_KINDS || change_rows[change->kind].apply == NULL || t->complete ||
        t->follows || (t->s->shared->follows && !store_change_is_local(change->kind))) {
        answer->status = STORE_INVALID;
        return;
    }
    t->change_bytes = change_size(change);
    t->background = change_rows[change->kind].background;
    t->awaited = t->awaited || !change_rows[change->kind].lazy;
    t->unawaited = t->unawaited || change_rows[change->kind].lazy;
    t->synced = t->synced || change_rows[change->kind].local;
    enum store_status status = change_rows[change->kind].apply(t, change, answer);
    answer->status = t->error != STORE_OK ? t->error : status;
    t->changes += answer->status == STORE_OK;
}

/* ---- errors, reads and writes ---- */

enum store_status store_txn_error(const struct store_txn *t)
{
    return t->error;
}

enum store_status txn_fail(struct store_txn *t, int rc, const char *what)
{
    if (t->error != STORE_OK)
        return t->error;
    enum store_status status = rc == 0 ? store_corrupt(t->s, what) : store_fail(t->s, rc, what);
    t->error = status == STORE_NOT_FOUND ? STORE_CORRUPT : status;
    return t->error;
}

enum store_status txn_get(struct store_txn *t, enum space space, struct key *key, MDB_val *out)
{
    if (t->error != STORE_OK)
        return t->error;
    MDB_val k = key_val(key);
    int rc = mdb_get(t->mdb, t->s->dbi[schema_space_db[space]], &k, out);
    if (rc == MDB_NOTFOUND)
        return STORE_NOT_FOUND;
    return rc == 0 ? STORE_OK : txn_fail(t, rc, "read a record");
}

enum store_status txn_get_copy(struct store_txn *t, enum space space, struct key *key, MDB_val *out)
{
    enum store_status status = txn_get(t, space, key, out);
    if (status != STORE_OK)
        return status;
    buf_reset(&t->copy);
    buf_add(&t->copy, out->mv_data, out->mv_size);
    *out = (MDB_val){t->copy.n, t->copy.p};
    return buf_ok(&t->copy) ? STORE_OK : txn_fail(t, ENOMEM, "hold a record");
}

/* The cursor of a space; NULL: it is not written in the order of its keys. */
static MDB_cursor **cursor_of(struct store_txn *t, enum space space)
{
    if (space == SPACE_REPORT)
        return &t->cursors[0];
    if (space == SPACE_JOB)
        return &t->cursors[1];
    return space == SPACE_MESSAGE ? &t->cursors[2] : NULL;
}

static int put_at(struct store_txn *t, MDB_cursor **at, MDB_dbi dbi, MDB_val *k, MDB_val *v,
                  unsigned flags)
{
    int rc = *at != NULL ? 0 : mdb_cursor_open(t->mdb, dbi, at);
    return rc != 0 ? rc : mdb_cursor_put(*at, k, v, flags);
}

static void put(struct store_txn *t, enum space space, struct key *key, MDB_val *v, unsigned flags)
{
    MDB_val k = key_val(key);
    if (t->error != STORE_OK)
        return;
    if (__builtin_expect(t->collects, false))
        rows_note(t, space, key);
    MDB_dbi dbi = t->s->dbi[schema_space_db[space]];
    MDB_cursor **at = cursor_of(t, space);
    int rc = at != NULL ? put_at(t, at, dbi, &k, v, flags) : mdb_put(t->mdb, dbi, &k, v, flags);
    if (rc != 0)
        txn_fail(t, rc, "write a record");
}

/* A delete can merge and free the pages of a cursor. */
static void close_cursors(struct store_txn *t)
{
    for (size_t i = 0; i < TXN_CURSORS; i++) {
        if (t->cursors[i] != NULL)
            mdb_cursor_close(t->cursors[i]);
        t->cursors[i] = NULL;
    }
}

void txn_put(struct store_txn *t, enum space space, struct key *key, const void *value, size_t n)
{
    MDB_val v = {n, (void *)(uintptr_t)value};
    put(t, space, key, &v, 0);
}

void *txn_reserve(struct store_txn *t, enum space space, struct key *key, size_t n)
{
    MDB_val v = {n, NULL};
    put(t, space, key, &v, MDB_RESERVE);
    return t->error == STORE_OK ? v.mv_data : NULL;
}

static int del(struct store_txn *t, enum space space, struct key *key)
{
    MDB_val k = key_val(key);
    close_cursors(t);
    if (__builtin_expect(t->collects, false))
        rows_note(t, space, key);
    return t->error != STORE_OK ? 0 : mdb_del(t->mdb, t->s->dbi[schema_space_db[space]], &k, NULL);
}

void txn_del(struct store_txn *t, enum space space, struct key *key)
{
    int rc = del(t, space, key);
    if (rc == MDB_NOTFOUND)
        txn_fail(t, 0, "an index");
    else if (rc != 0)
        txn_fail(t, rc, "delete a record");
}

void txn_drop(struct store_txn *t, enum space space, struct key *key)
{
    int rc = del(t, space, key);
    if (rc != 0 && rc != MDB_NOTFOUND)
        txn_fail(t, rc, "delete a record");
}

bool txn_match(struct str match, uint64_t version)
{
    if (match.n == 0)
        return true;
    for (size_t at = 0; at + sizeof(version) <= match.n; at += sizeof(version)) {
        uint64_t one;
        memcpy(&one, match.p + at, sizeof(one));
        if (le64toh(one) == version)
            return true;
    }
    return false;
}

void txn_event(struct store_txn *t, enum store_event_kind kind, uint64_t workspace, uint64_t id,
               uint64_t value)
{
    struct store *s = t->s;
    if (s->event_count == s->event_cap) {
        size_t cap = s->event_cap == 0 ? 64 : s->event_cap * 2;
        struct store_event *more = realloc(s->events, cap * sizeof(*more));
        if (more == NULL) {
            txn_fail(t, ENOMEM, "remember an event");
            return;
        }
        s->events = more;
        s->event_cap = cap;
    }
    s->events[s->event_count++] = (struct store_event){kind, workspace, id, value};
}

const struct store_event *store_events(const struct store *s, size_t *count)
{
    *count = s->event_count;
    return s->events;
}

/* ---- ULIDs ---- */

static void ulid_key(struct key *k)
{
    key_meta(k, 'u');
}

static bool ulid_load(struct store_txn *t)
{
    struct key k;
    MDB_val v;
    ulid_key(&k);
    enum store_status status = txn_get(t, SPACE_META, &k, &v);
    t->ulid = (struct ulid){{0}};
    if (status == STORE_OK && v.mv_size != sizeof(t->ulid))
        status = txn_fail(t, 0, "the record of the last id");
    if (status == STORE_OK)
        memcpy(&t->ulid, v.mv_data, sizeof(t->ulid));
    t->ulid_known = status == STORE_OK || status == STORE_NOT_FOUND;
    return t->ulid_known;
}

/* Read for many ids at once: a system call for each id costs a twentieth of a message. */
static const uint64_t *random_pair(struct store *s)
{
    _Static_assert(sizeof(s->random) <= 256, "so much comes whole");
    if (s->random_left == 0 &&
        getrandom(s->random, sizeof(s->random), 0) != (ssize_t)sizeof(s->random))
        return NULL;
    if (s->random_left == 0)
        s->random_left = sizeof(s->random) / sizeof(s->random[0]);
    s->random_left -= 2;
    return &s->random[s->random_left];
}

bool txn_ulid(struct store_txn *t, struct ulid *out)
{
    if (t->error != STORE_OK || (!t->ulid_known && !ulid_load(t)))
        return false;
    const uint64_t *random = random_pair(t->s);
    if (random == NULL) {
        txn_fail(t, errno, "get random bytes");
        return false;
    }
    ulid_next(t->now, &t->ulid, random, out);
    t->ulid = *out;
    t->ulid_dirty = true;
    return true;
}

static void ulid_write_back(struct store_txn *t)
{
    struct key k;
    ulid_key(&k);
    if (t->ulid_dirty)
        txn_put(t, SPACE_META, &k, &t->ulid, sizeof(t->ulid));
}

/* ---- begin, commit, abort ---- */

static void write_back(struct store_txn *t)
{
    for (size_t i = 0; layers[i] != NULL; i++)
        if (layers[i]->txn_write_back != NULL)
            layers[i]->txn_write_back(t);
    ulid_write_back(t);
    if (!t->counters_dirty)
        return;
    struct key k;
    key_meta(&k, 'c');
    txn_put(t, SPACE_META, &k, &t->counters, sizeof(t->counters));
}

void txn_free(struct store_txn *t)
{
    for (size_t i = 0; layers[i] != NULL; i++)
        if (layers[i]->txn_free != NULL)
            layers[i]->txn_free(t);
    buf_free(&t->copy);
    buf_free(&t->noted);
}

static void end(struct store_txn *t, bool failed)
{
    for (size_t i = 0; layers[i] != NULL; i++)
        if (layers[i]->txn_end != NULL)
            layers[i]->txn_end(t, failed);
}

static int begin_try(struct store *s)
{
    int rc = mdb_txn_begin(s->env, NULL, 0, &s->txn.mdb);
    for (int tries = 0; rc == MDB_MAP_RESIZED && !s->reading && tries < 3; tries++) {
        rc = store_remap(s);
        if (rc == 0)
            rc = mdb_txn_begin(s->env, NULL, 0, &s->txn.mdb);
    }
    return rc;
}

enum store_status store_begin(struct store *s, struct store_txn **out)
{
    struct store_txn *t = &s->txn;
    *out = NULL;
    if (s->mode != STORE_WRITE || t->mdb != NULL)
        return STORE_INVALID;
    txn_keep_file_ahead(s);
    int rc = begin_try(s);
    if (rc != 0) {
        t->mdb = NULL;
        return store_fail(s, rc, "begin a transaction");
    }
    t->error = STORE_OK;
    t->full = -1;
    t->counters_dirty = t->maintenance_told = t->ulid_known = t->ulid_dirty = false;
    t->awaited = t->unawaited = t->creates = t->in_log = t->synced = false;
    t->results = t->results_took = t->changes = t->create_bytes = 0;
    t->stop = NULL;
    t->collects = s->collects;
    t->complete = t->follows = false;
    buf_reset(&t->noted);
    s->event_count = 0;
    for (size_t i = 0; layers[i] != NULL; i++)
        if (layers[i]->txn_begin != NULL)
            layers[i]->txn_begin(t);
    struct key k;
    MDB_val v;
    key_meta(&k, 'c');
    enum store_status status = txn_get(t, SPACE_META, &k, &v);
    const void *counters = status == STORE_OK ? store_record(v, sizeof(t->counters)) : NULL;
    if (counters == NULL) {
        status = txn_fail(t, 0, "the record of counters");
        store_abort(t);
        return status;
    }
    memcpy(&t->counters, counters, sizeof(t->counters));
    *out = t;
    return STORE_OK;
}

void store_txn_stop_when(struct store_txn *t, store_stop_fn *stop, void *arg)
{
    t->stop = stop;
    t->stop_arg = arg;
}

void store_abort(struct store_txn *t)
{
    bool open = t->mdb != NULL;
    close_cursors(t);
    if (open)
        mdb_txn_abort(t->mdb);
    t->mdb = NULL;
    t->s->event_count = 0;
    end(t, open);
}

/*
 * LMDB reports a short write as EIO: find out whether the disk or the limit of file sizes was the
 * reason.
 */
static int short_write_reason(const struct store *s, int rc)
{
    enum { SPARE_BYTES = 4 << 20 };
    int why;
    return rc == EIO && store_bytes_ahead(s, &why) < SPARE_BYTES ? why : rc;
}

/*
 * A commit that nobody waits for, or that the log has, syncs once instead of twice: its pages are
 * synced before the meta page is written, but the next commit syncs the meta page. After a power
 * cut the store is consistent and may lack the last such transaction, which is repeated.
 */
static int commit(struct store_txn *t)
{
    bool lazy = !t->synced && (t->in_log || (t->unawaited && !t->awaited));
    if (lazy)
        mdb_env_set_flags(t->s->env, MDB_NOMETASYNC, 1);
    int rc = mdb_txn_commit(t->mdb);
    if (lazy)
        mdb_env_set_flags(t->s->env, MDB_NOMETASYNC, 0);
    return rc;
}

enum store_status txn_complete(struct store_txn *t)
{
    if (t->complete)
        return t->error;
    write_back(t);
    t->complete = true;
    if (t->error == STORE_OK && !txn_leaves_space(t))
        t->error = STORE_FULL;
    return t->error;
}

/* LMDB frees the transaction whether or not the commit succeeds. */
enum store_status store_commit(struct store_txn *t)
{
    if (txn_complete(t) != STORE_OK) {
        store_abort(t);
        return t->error;
    }
    close_cursors(t);
    int rc = commit(t);
    t->mdb = NULL;
    end(t, rc != 0);
    if (rc == 0)
        return STORE_OK;
    t->s->event_count = 0;
    return store_fail(t->s, short_write_reason(t->s, rc), "commit");
}

bool txn_mark_deleting(struct store_txn *t, uint64_t workspace, uint64_t project)
{
    struct key k;
    key_id(&k, SPACE_DELETING, workspace);
    key_u64(&k, project);
    txn_put(t, SPACE_DELETING, &k, "", 0);
    t->counters.deleting++;
    t->counters_dirty = true;
    return t->error == STORE_OK;
}
