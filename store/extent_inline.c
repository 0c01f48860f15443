#include "extent.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

/* A copy of data.mdb on its own: what parts.dat has of it goes into it. LMDB has a transaction of that file as of any. */

#define COMMIT_BYTES ((size_t)8 << 20)
#define SLACK_BYTES ((uint64_t)64 << 20)

/* A row that names an extent, with its key behind it. */
struct named {
    uint64_t at, bytes;
    size_t key_bytes;
    bool in_use;
};

struct inlining {
    struct store *s;
    MDB_txn *txn;      /* which keeps what is named */
    struct store copy; /* as much of one as reading rows takes */
    MDB_txn *looking;  /* at it */
    struct buf rows;
    extent_step_fn *step;
    void *arg;
};

static bool note_row(void *arg, const struct extent_at *at)
{
    struct inlining *in = arg;
    struct named n = {at->at, at->bytes, at->row->k.mv_size, extent_is_named(&in->copy, in->looking, at)};
    buf_add(&in->rows, &n, sizeof(n));
    buf_add(&in->rows, at->row->k.mv_data, n.key_bytes);
    return buf_ok(&in->rows);
}

static int open_copy(struct inlining *in, const char *path)
{
    MDB_envinfo info;
    mdb_env_info(in->s->env, &info);
    int rc = mdb_env_create(&in->copy.env);
    if (rc == 0)
        rc = mdb_env_set_maxdbs(in->copy.env, DB_COUNT);
    if (rc == 0)
        rc = mdb_env_set_mapsize(in->copy.env, info.me_mapsize);
    return rc != 0 ? rc : mdb_env_open(in->copy.env, path, MDB_NOSUBDIR | MDB_NOLOCK | MDB_NOSYNC, 0600);
}

/* MDB_NOTFOUND: the copy needs nothing more, for it has no parts elsewhere. */
static int read_rows(struct inlining *in, uint64_t *id)
{
    MDB_txn *txn;
    MDB_val v;
    struct key k;
    int rc = mdb_txn_begin(in->copy.env, NULL, 0, &txn);
    if (rc != 0)
        return rc;
    in->looking = txn;
    rc = mdb_dbi_open(txn, schema_db_names[DB_BASE], 0, &in->copy.dbi[DB_BASE]);
    if (rc == 0)
        rc = mdb_dbi_open(txn, schema_db_names[DB_LIST], 0, &in->copy.dbi[DB_LIST]);
    extent_id_key(&k);
    MDB_val key = key_val(&k);
    if (rc == 0)
        rc = mdb_get(txn, in->copy.dbi[DB_BASE], &key, &v);
    if (rc == 0 && v.mv_size != sizeof(*id))
        rc = MDB_CORRUPTED;
    if (rc == 0)
        memcpy(id, v.mv_data, sizeof(*id));
    if (rc == 0 && extent_each(&in->copy, txn, note_row, in) != STORE_OK)
        rc = buf_ok(&in->rows) ? MDB_CORRUPTED : ENOMEM;
    if (rc == 0)
        return mdb_txn_commit(txn);
    mdb_txn_abort(txn);
    return rc;
}

/* The map of the copy gets room for all of it. */
static int make_room(struct inlining *in, const char *path)
{
    enum { MAP_STEP = 1 << 16 };
    MDB_envinfo info;
    struct stat st;
    if (stat(path, &st) != 0)
        return errno;
    mdb_env_info(in->copy.env, &info);
    uint64_t need = (uint64_t)st.st_size + SLACK_BYTES;
    for (size_t at = 0; at < in->rows.n;) {
        struct named n;
        memcpy(&n, in->rows.p + at, sizeof(n));
        at += sizeof(n) + n.key_bytes;
        need += n.bytes + MAP_STEP;
    }
    return need <= info.me_mapsize ? 0 : mdb_env_set_mapsize(in->copy.env, (need + MAP_STEP - 1) / MAP_STEP * MAP_STEP);
}

/* Of the reports' index each is on a page of its own, however short (merge.c). */
static int put_row(const struct inlining *in, MDB_txn *to, MDB_val *k, MDB_val *v)
{
    size_t page = store_page_value(in->s);
    MDB_val padded = {page, NULL};
    if (*(const uint8_t *)k->mv_data != schema_space_tag[SPACE_PART] || v->mv_size >= page)
        return mdb_put(to, in->copy.dbi[DB_LIST], k, v, 0);
    int rc = mdb_put(to, in->copy.dbi[DB_LIST], k, &padded, MDB_RESERVE);
    if (rc != 0)
        return rc;
    memcpy(padded.mv_data, v->mv_data, v->mv_size);
    memset((char *)padded.mv_data + v->mv_size, 0, page - v->mv_size);
    return 0;
}

static enum store_status put_one(struct inlining *in, MDB_txn *to, const struct named *n, const char *key)
{
    MDB_val k = {n->key_bytes, (void *)(uintptr_t)key}, v;
    enum store_status status = n->in_use ? extent_read(in->s, in->txn, n->at, n->bytes, &v) : STORE_OK;
    if (status != STORE_OK)
        return status;
    int rc = !n->in_use ? mdb_del(to, in->copy.dbi[DB_LIST], &k, NULL) : put_row(in, to, &k, &v);
    return rc == 0 ? STORE_OK : store_fail(in->s, rc, "write the copy");
}

/* What is written goes to the disk as it comes, and no commit of the writer's waits for all of it. */
static void settle(const struct inlining *in)
{
    int fd;
    if (mdb_env_get_fd(in->copy.env, &fd) == 0)
        sync_file_range(fd, 0, 0, SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE | SYNC_FILE_RANGE_WAIT_AFTER);
}

/* Some of the rows from ${at} on, in one transaction. */
static enum store_status put_some(struct inlining *in, size_t *at)
{
    MDB_txn *txn;
    size_t bytes = 0;
    enum store_status status = STORE_OK;
    int rc = mdb_txn_begin(in->copy.env, NULL, 0, &txn);
    if (rc != 0)
        return store_fail(in->s, rc, "write the copy");
    while (status == STORE_OK && *at < in->rows.n && bytes < COMMIT_BYTES) {
        struct named n;
        memcpy(&n, in->rows.p + *at, sizeof(n));
        status = put_one(in, txn, &n, in->rows.p + *at + sizeof(n));
        *at += sizeof(n) + n.key_bytes;
        bytes += n.bytes;
    }
    if (status != STORE_OK) {
        mdb_txn_abort(txn);
        return status;
    }
    if ((rc = mdb_txn_commit(txn)) != 0)
        return store_fail(in->s, rc, "write the copy");
    settle(in);
    return in->step(in->arg, bytes);
}

/* It needs no parts.dat, and is as long as it says. */
static int end_copy(struct inlining *in, const char *path)
{
    MDB_txn *txn;
    MDB_envinfo info;
    MDB_stat stat_env;
    struct stat st;
    struct key k;
    int rc = mdb_txn_begin(in->copy.env, NULL, 0, &txn);
    if (rc != 0)
        return rc;
    extent_id_key(&k);
    MDB_val key = key_val(&k);
    rc = mdb_del(txn, in->copy.dbi[DB_BASE], &key, NULL);
    if (rc != 0 && rc != MDB_NOTFOUND) {
        mdb_txn_abort(txn);
        return rc;
    }
    rc = mdb_txn_commit(txn);
    mdb_env_info(in->copy.env, &info);
    mdb_env_stat(in->copy.env, &stat_env);
    off_t bytes = (off_t)((info.me_last_pgno + 1) * stat_env.ms_psize);
    if (rc == 0 && (stat(path, &st) != 0 || (st.st_size < bytes && truncate(path, bytes) != 0)))
        rc = errno;
    return rc;
}

static enum store_status inline_all(struct inlining *in, const char *path)
{
    uint64_t id;
    size_t at = 0;
    int rc = open_copy(in, path);
    if (rc == 0)
        rc = read_rows(in, &id);
    if (rc == MDB_NOTFOUND)
        return STORE_OK;
    if (rc == 0)
        rc = make_room(in, path);
    enum store_status status = rc == 0 ? extent_use(in->s, id) : STORE_OK;
    while (rc == 0 && status == STORE_OK && at < in->rows.n)
        status = put_some(in, &at);
    if (rc == 0 && status == STORE_OK)
        rc = end_copy(in, path);
    return rc == 0 ? status : store_fail(in->s, rc, "write the copy");
}

enum store_status extent_inline(struct store *s, MDB_txn *txn, const char *path, extent_step_fn *step, void *arg)
{
    struct inlining *in = calloc(1, sizeof(*in));
    if (in == NULL)
        return store_fail(s, ENOMEM, "write the copy");
    *in = (struct inlining){.s = s, .txn = txn, .step = step, .arg = arg};
    enum store_status status = inline_all(in, path);
    if (in->copy.env != NULL)
        mdb_env_close(in->copy.env);
    buf_free(&in->rows);
    free(in);
    return status;
}
