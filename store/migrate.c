#include "internal.h"

#include <stdio.h>

#define SLICE 1000 /* records a transaction renders again */

/*
 * Steps from one format to the next. Columns: from, to, what rewrites the records within one transaction (and leaves it to migrate_open
 * to note ${to}). There is one format so far; the table's end is its only row.
 */
typedef enum store_status migrate_fn(struct store_txn *t);
static const struct {
    uint32_t from, to;
    migrate_fn *fn;
} steps[] = {
    {STORE_FORMAT_VERSION, STORE_FORMAT_VERSION, NULL},
};

static void format_key(struct key *k)
{
    key_space(k, SPACE_META);
    key_bytes(k, "f", 1);
}

static enum store_status format_read(struct store *s, MDB_txn *txn, struct format_record *out)
{
    struct key k;
    MDB_val v;
    format_key(&k);
    enum store_status status = store_get(s, txn, SPACE_META, &k, &v);
    if (status == STORE_OK && v.mv_size < sizeof(out->format))
        return STORE_CORRUPT;
    if (status != STORE_OK)
        return status;
    *out = (struct format_record){0};
    memcpy(out, v.mv_data, v.mv_size < sizeof(*out) ? v.mv_size : sizeof(*out));
    return STORE_OK;
}

static void format_write(struct store_txn *t, const struct format_record *f)
{
    struct key k;
    format_key(&k);
    txn_put(t, SPACE_META, &k, f, sizeof(*f));
}

static enum store_status judge(struct store *s, const struct format_record *f, char *why, size_t why_size)
{
    if (f->format > STORE_FORMAT_VERSION) {
        snprintf(why, why_size,
                 "the store has format %u and this Assay knows up to %d: use the newer Assay that wrote it, or restore an older backup",
                 f->format, STORE_FORMAT_VERSION);
        return STORE_NEWER;
    }
    bool known = f->format == STORE_FORMAT_VERSION;
    for (size_t i = 0; i < sizeof(steps) / sizeof(*steps); i++)
        known = known || steps[i].from == f->format;
    if (!known) {
        snprintf(why, why_size, "the store has format %u, which this Assay cannot bring up to date: use the versions in between first",
                 f->format);
        return STORE_CORRUPT;
    }
    if (s->mode == STORE_READ && f->format + 1 < STORE_FORMAT_VERSION) {
        snprintf(why, why_size, "the store has the old format %u: start assayd once, which brings it up to date", f->format);
        return STORE_CORRUPT;
    }
    return STORE_OK;
}

/* An environment without our sub-databases is a new one if it holds nothing at all. */
static enum store_status look(struct store *s, MDB_txn *txn, char *why, size_t why_size)
{
    MDB_stat stat;
    struct format_record f;
    mdb_env_stat(s->env, &stat);
    int rc = mdb_dbi_open(txn, schema_db_names[DB_BASE], 0, &s->dbi[DB_BASE]);
    if (rc == MDB_NOTFOUND && stat.ms_entries == 0) {
        if (s->mode == STORE_WRITE)
            return STORE_OK;
        snprintf(why, why_size, "the data directory holds no store yet: start assayd, or create a workspace, once");
        return STORE_NOT_FOUND;
    }
    enum store_status status = rc == 0 ? format_read(s, txn, &f) : store_fail(s, rc, "open the store");
    if (rc == MDB_NOTFOUND || status == STORE_NOT_FOUND) {
        snprintf(why, why_size, "data.mdb is another program's: set data_dir to a directory of Assay's own");
        return STORE_CORRUPT;
    }
    if (status != STORE_OK) {
        snprintf(why, why_size, "%s", s->why);
        return status;
    }
    return judge(s, &f, why, why_size);
}

enum store_status migrate_look(struct store *s, char *why, size_t why_size)
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

/* ---- the writer's part ---- */

/* The first records of a new store, in one transaction: format and counters. */
static enum store_status make(struct store *s)
{
    MDB_txn *txn;
    struct format_record f = {.format = STORE_FORMAT_VERSION, .renderer = s->renderer->version};
    struct counters_record counters = {0};
    struct key k;
    int rc = mdb_txn_begin(s->env, NULL, 0, &txn);
    if (rc != 0)
        return store_fail(s, rc, "begin a transaction");
    format_key(&k);
    MDB_val key = key_val(&k), v = {sizeof(f), &f};
    rc = mdb_put(txn, s->dbi[DB_BASE], &key, &v, 0);
    k.b[1] = 'c';
    v = (MDB_val){sizeof(counters), &counters};
    if (rc == 0)
        rc = mdb_put(txn, s->dbi[DB_BASE], &key, &v, 0);
    if (rc == 0)
        return (rc = mdb_txn_commit(txn)) == 0 ? STORE_OK : store_fail(s, rc, "commit");
    mdb_txn_abort(txn);
    return store_fail(s, rc, "make the store");
}

static enum store_status step(struct store *s, size_t i, struct format_record *f)
{
    struct store_txn *t;
    enum store_status status = store_begin(s, &t);
    if (status != STORE_OK)
        return status;
    status = steps[i].fn(t);
    f->format = steps[i].to;
    format_write(t, f);
    if (status == STORE_OK)
        return store_commit(t);
    store_abort(t);
    return status;
}

/* Up to SLICE reports above f->rendering_after; how many. */
static size_t render_reports(struct store_txn *t, struct format_record *f)
{
    uint64_t ids[SLICE];
    size_t count = 0;
    struct walk w = {0};
    struct key from;
    key_id(&from, SPACE_REPORT, f->rendering_after + 1);
    key_space(&w.prefix, SPACE_REPORT);
    enum store_status status = walk_from(t->s, t->mdb, &w, DB_RECORD, &from);
    for (; status == STORE_OK && count < SLICE; status = walk_next(&w))
        count += walk_u64(&w, 0, &ids[count]);
    walk_end(&w);
    for (size_t i = 0; i < count; i++) {
        struct store_report r;
        if (report_load(t, ids[i], &r) != STORE_OK)
            break;
        report_write(t, &r);
        f->rendering_after = ids[i];
    }
    return count;
}

/* Projects are few enough for one transaction each thousand reports of them; their versions and times stay. */
static void render_projects(struct store_txn *t)
{
    struct walk w = {0};
    struct buf ids = {0};
    enum store_status status = walk_begin(t->s, t->mdb, &w, SPACE_PROJECT);
    for (; status == STORE_OK; status = walk_next(&w)) {
        uint64_t id;
        if (walk_u64(&w, 0, &id))
            buf_add(&ids, &id, sizeof(id));
    }
    walk_end(&w);
    for (size_t at = 0; at < ids.n && t->error == STORE_OK; at += sizeof(uint64_t)) {
        uint64_t id;
        memcpy(&id, ids.p + at, sizeof(id));
        struct cached *p = txn_project(t, id);
        if (p != NULL)
            project_write(t, p);
    }
    buf_free(&ids);
}

static enum store_status render_slice(struct store *s, struct format_record *f, size_t *count)
{
    struct store_txn *t;
    enum store_status status = store_begin(s, &t);
    if (status != STORE_OK)
        return status;
    *count = render_reports(t, f);
    if (*count == 0) {
        render_projects(t);
        f->renderer = f->rendering;
        f->rendering = 0;
    }
    format_write(t, f);
    return store_commit(t);
}

/* keys lie beside the reports and are few */
static uint64_t reports_about(struct store *s)
{
    MDB_txn *txn;
    MDB_stat stat = {0};
    if (store_snapshot(s, &txn) == STORE_OK)
        mdb_stat(txn, s->dbi[DB_RECORD], &stat);
    store_read_end(s);
    return stat.ms_entries;
}

/* Render again what an older renderer made, a slice a transaction; the place reached is committed with the slice. */
static enum store_status render(struct store *s, const struct store_options *o, struct format_record *f)
{
    uint64_t done = 0, total = reports_about(s);
    size_t count = 1;
    if (f->rendering != s->renderer->version) {
        f->rendering = s->renderer->version;
        f->rendering_after = 0;
    }
    while (count != 0) {
        enum store_status status = render_slice(s, f, &count);
        if (status != STORE_OK)
            return status;
        done += count;
        if (o->progress != NULL && count != 0 && !o->progress(o->progress_arg, done, total > done ? total : done)) {
            snprintf(s->why, sizeof(s->why), "stopped while reports were rendered again; the next start goes on from there");
            return STORE_IO;
        }
    }
    return STORE_OK;
}

static enum store_status bring_up(struct store *s, const struct store_options *o)
{
    MDB_txn *txn;
    struct format_record f;
    enum store_status status = store_snapshot(s, &txn);
    if (status == STORE_OK)
        status = format_read(s, txn, &f);
    store_read_end(s);
    if (status == STORE_NOT_FOUND)
        return make(s);
    for (size_t i = 0; status == STORE_OK && i < sizeof(steps) / sizeof(*steps); i++) {
        if (steps[i].fn != NULL && steps[i].from == f.format)
            status = step(s, i, &f);
    }
    if (status == STORE_OK && f.renderer < s->renderer->version)
        status = render(s, o, &f);
    return status;
}

enum store_status migrate_open(struct store *s, const struct store_options *o, char *why, size_t why_size)
{
    if (s->mode == STORE_READ)
        return STORE_OK;
    if (s->renderer == NULL) {
        snprintf(why, why_size, "a store cannot be written without a renderer");
        return STORE_INVALID;
    }
    enum store_status status = bring_up(s, o);
    if (status != STORE_OK)
        snprintf(why, why_size, "%s", s->why);
    return status;
}
