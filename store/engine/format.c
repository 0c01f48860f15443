#include "store/engine/format.h"

#include "store/engine/environment.h"
#include "store/engine/errors.h"
#include "store/engine/snapshot.h"

#include <errno.h>
#include <stdio.h>
#include <sys/random.h>

static void format_key(struct key *k)
{
    key_local(k, 'f');
}

static enum store_status format_read(struct store *s, MDB_txn *txn, struct format_record *out)
{
    struct key k;
    MDB_val v;
    format_key(&k);
    enum store_status status = store_get(s, txn, SPACE_LOCAL, &k, &v);
    if (status == STORE_OK && v.mv_size < sizeof(out->format))
        return store_corrupt(s, "the record of the store's format");
    if (status != STORE_OK)
        return status;
    *out = (struct format_record){0};
    memcpy(out, v.mv_data, v.mv_size < sizeof(*out) ? v.mv_size : sizeof(*out));
    return STORE_OK;
}

static enum store_status look(struct store *s, MDB_txn *txn, char *why, size_t why_size)
{
    struct format_record f;
    MDB_stat stat;
    mdb_env_stat(s->env, &stat);
    int rc = mdb_dbi_open(txn, schema_db_names[DB_BASE], 0, &s->dbi[DB_BASE]);
    if (rc == MDB_NOTFOUND && stat.ms_entries == 0) {
        if (s->mode == STORE_WRITE)
            return STORE_OK;
        snprintf(why, why_size,
                 "the data directory has no store yet: start assayd or create a workspace first");
        return STORE_NOT_FOUND;
    }
    enum store_status status =
        rc == 0 ? format_read(s, txn, &f) : store_fail(s, rc, "open the store");
    if (rc == MDB_NOTFOUND || status == STORE_NOT_FOUND) {
        snprintf(
            why, why_size,
            "data.mdb belongs to another program: set data_dir to a directory for Assay alone");
        return STORE_CORRUPT;
    }
    if (status != STORE_OK) {
        snprintf(why, why_size, "%s", s->why);
        return status;
    }
    if (f.format == STORE_FORMAT_VERSION && f.layout == STORE_LAYOUT)
        return STORE_OK;
    snprintf(why, why_size,
             "%s: data.mdb has format %u.%u, but this version of Assay reads only format %d.%d: "
             "use the version of Assay that wrote it",
             s->dir, f.format, f.layout, STORE_FORMAT_VERSION, STORE_LAYOUT);
    return STORE_OTHER_FORMAT;
}

enum store_status format_look(struct store *s, char *why, size_t why_size)
{
    MDB_txn *txn;
    int rc = mdb_txn_begin(s->env, NULL, MDB_RDONLY, &txn);
    if (rc == MDB_READERS_FULL) {
        store_reader_check(s);
        rc = mdb_txn_begin(s->env, NULL, MDB_RDONLY, &txn);
    }
    if (rc != 0) {
        enum store_status status = store_fail(s, rc, "read the store");
        snprintf(why, why_size, "%s", s->why);
        return status;
    }
    enum store_status status = look(s, txn, why, why_size);
    mdb_txn_abort(txn);
    return status;
}

static void id_key(struct key *k)
{
    key_local(k, 'i');
}

static int id_put(MDB_txn *txn, MDB_dbi dbi)
{
    uint8_t id[STORE_ID_BYTES];
    struct key k;
    if (getrandom(id, sizeof(id), 0) != sizeof(id))
        return errno;
    id_key(&k);
    MDB_val key = key_val(&k), v = {sizeof(id), id};
    return mdb_put(txn, dbi, &key, &v, 0);
}

enum store_status format_id(struct store *s, uint8_t out[STORE_ID_BYTES])
{
    struct key k;
    MDB_val v;
    MDB_txn *txn;
    enum store_status status = store_snapshot(s, &txn);
    id_key(&k);
    if (status == STORE_OK)
        status = store_get(s, txn, SPACE_LOCAL, &k, &v);
    if (status == STORE_NOT_FOUND || (status == STORE_OK && v.mv_size != STORE_ID_BYTES))
        return store_corrupt(s, "the store's id");
    if (status == STORE_OK)
        memcpy(out, v.mv_data, STORE_ID_BYTES);
    return status;
}

static int renew_id(MDB_env *env, const char *dir)
{
    MDB_txn *txn;
    MDB_dbi dbi;
    int rc = mdb_env_set_maxdbs(env, DB_COUNT);
    if (rc == 0)
        rc = mdb_env_open(env, dir, MDB_NOTLS, 0600);
    if (rc == 0)
        rc = mdb_txn_begin(env, NULL, 0, &txn);
    if (rc != 0)
        return rc;
    rc = mdb_dbi_open(txn, schema_db_names[DB_BASE], 0, &dbi);
    if (rc == 0)
        rc = id_put(txn, dbi);
    if (rc == 0)
        return mdb_txn_commit(txn);
    mdb_txn_abort(txn);
    return rc;
}

int format_renew_id(const char *dir)
{
    MDB_env *env;
    int rc = mdb_env_create(&env);
    if (rc != 0)
        return rc;
    rc = renew_id(env, dir);
    mdb_env_close(env);
    return rc;
}

/* The rows that every new store has. All later rows are written by txn.c. */
static enum store_status make(struct store *s)
{
    MDB_txn *txn;
    struct format_record f = {.format = STORE_FORMAT_VERSION, .layout = STORE_LAYOUT};
    struct counters_record counters = {0};
    struct key k;
    int rc = mdb_txn_begin(s->env, NULL, 0, &txn);
    if (rc != 0)
        return store_fail(s, rc, "begin a transaction");
    format_key(&k);
    MDB_val key = key_val(&k), v = {sizeof(f), &f};
    rc = mdb_put(txn, s->dbi[DB_BASE], &key, &v, 0);
    key_meta(&k, 'c');
    key = key_val(&k);
    v = (MDB_val){sizeof(counters), &counters};
    if (rc == 0)
        rc = mdb_put(txn, s->dbi[DB_BASE], &key, &v, 0);
    if (rc == 0)
        rc = id_put(txn, s->dbi[DB_BASE]);
    if (rc == 0)
        return (rc = mdb_txn_commit(txn)) == 0 ? STORE_OK : store_fail(s, rc, "commit");
    mdb_txn_abort(txn);
    return store_fail(s, rc, "make the store");
}

enum store_status format_make(struct store *s, char *why, size_t why_size)
{
    MDB_txn *txn;
    struct format_record f;
    enum store_status status = store_snapshot(s, &txn);
    if (status == STORE_OK)
        status = format_read(s, txn, &f);
    store_read_end(s);
    if (status == STORE_NOT_FOUND)
        status = make(s);
    if (status != STORE_OK)
        snprintf(why, why_size, "%s", s->why);
    return status;
}
