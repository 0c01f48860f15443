#include "migrate.h"

#include <stdio.h>
#include <time.h>

/*
 * A store of an older format goes through three states, each left by one commit:
 *
 *   format N                  copied first, as a whole, under a name that tells format and day; cut off, it is copied again
 *   format M, from N          half-way: readers and older versions refuse it; the next start of the writer goes on
 *   format M                  done
 *
 * Steps from one format to the next: see migrate.h. Columns: from, to, what brings the records up to date.
 */
static migrate_fn index_reports, note_parts;
static const struct {
    uint32_t from, to;
    migrate_fn *fn;
} steps[] = {
    {1, 2, index_reports},    /* lists come from logs and segments (index.h), no longer from trees of keys */
    {2, 3, migrate_messages}, /* messages lie in the order in which they came (chain.h), no longer by conversation */
    {3, 4, note_parts},       /* long parts of indexes, as they are made, lie in parts.dat (extent.h); those that are there stay */
};

static void format_key(struct key *k)
{
    key_space(k, SPACE_META);
    key_bytes(k, "f", 1);
}

enum store_status format_read(struct store *s, MDB_txn *txn, struct format_record *out)
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

void format_write(struct store_txn *t, const struct format_record *f)
{
    struct key k;
    format_key(&k);
    txn_put(t, SPACE_META, &k, f, sizeof(*f));
}

/* what the records are of: half-way they are still of the format that was */
static uint32_t level_of(const struct format_record *f)
{
    return f->from != 0 ? f->from : f->format;
}

void migrate_note_step(struct store_txn *t, struct format_record *f, uint32_t to)
{
    f->from = to == f->format ? 0 : to;
    format_write(t, f);
}

static enum store_status judge(struct store *s, const struct store_options *o, const struct format_record *f, char *why, size_t why_size)
{
    if (f->format > STORE_FORMAT_VERSION) {
        snprintf(why, why_size,
                 "the store has format %u and this Assay knows up to %d: use the newer Assay that wrote it, or restore an older backup",
                 f->format, STORE_FORMAT_VERSION);
        return STORE_NEWER;
    }
    uint32_t level = level_of(f);
    bool known = level == STORE_FORMAT_VERSION;
    for (size_t i = 0; i < sizeof(steps) / sizeof(*steps); i++)
        known = known || steps[i].from == level;
    if (!known) {
        snprintf(why, why_size, "the store has format %u, which this Assay cannot bring up to date: use the versions in between first",
                 level);
        return STORE_CORRUPT;
    }
    if (s->mode == STORE_READ && level < STORE_FORMAT_VERSION) { /* what lists are answered from is not there yet */
        if (o->old != NULL)
            *o->old = true;
        snprintf(why, why_size, "the store has the old format %u: start assayd once, which brings it up to date", level);
        return STORE_CORRUPT;
    }
    return STORE_OK;
}

/* An environment without our sub-databases is a new one if it holds nothing at all. */
static enum store_status look(struct store *s, const struct store_options *o, MDB_txn *txn, struct format_record *f, char *why, size_t why_size)
{
    MDB_stat stat;
    mdb_env_stat(s->env, &stat);
    int rc = mdb_dbi_open(txn, schema_db_names[DB_BASE], 0, &s->dbi[DB_BASE]);
    if (rc == MDB_NOTFOUND && stat.ms_entries == 0) {
        if (s->mode == STORE_WRITE)
            return STORE_OK;
        snprintf(why, why_size, "the data directory holds no store yet: start assayd, or create a workspace, once");
        return STORE_NOT_FOUND;
    }
    enum store_status status = rc == 0 ? format_read(s, txn, f) : store_fail(s, rc, "open the store");
    if (rc == MDB_NOTFOUND || status == STORE_NOT_FOUND) {
        snprintf(why, why_size, "data.mdb is another program's: set data_dir to a directory of Assay's own");
        return STORE_CORRUPT;
    }
    if (status != STORE_OK) {
        snprintf(why, why_size, "%s", s->why);
        return status;
    }
    return judge(s, o, f, why, why_size);
}

static void tell_stage(const struct store_options *o, const char *what)
{
    if (o->stage != NULL)
        o->stage(o->progress_arg, what);
}

/* Nothing is changed before the copy is on the disk: whatever happens from then on, the store as it was is there. */
static enum store_status keep_copy(struct store *s, const struct store_options *o, uint32_t format, char *why, size_t why_size)
{
    char dir[sizeof(s->dir) + 64], day[32], what[sizeof(dir) + 64];
    time_t seconds = (time_t)(o->now_ms / 1000);
    struct tm utc;
    if (gmtime_r(&seconds, &utc) == NULL || strftime(day, sizeof(day), "%Y-%m-%d", &utc) == 0)
        snprintf(day, sizeof(day), "undated");
    snprintf(dir, sizeof(dir), "%s/format-%u-%s", o->dir, format, day);
    snprintf(what, sizeof(what), "copying the store of format %u to %s", format, dir);
    tell_stage(o, what);
    enum store_status status = store_copy_beside(s, dir, o->progress, o->progress_arg);
    if (status != STORE_OK)
        snprintf(why, why_size, "the store has the old format %u and is copied before it is brought to %d: %s", format, STORE_FORMAT_VERSION,
                 s->why);
    return status;
}

enum store_status migrate_look(struct store *s, const struct store_options *o, char *why, size_t why_size)
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
    struct format_record f = {.format = 0};
    enum store_status status = look(s, o, txn, &f, why, why_size);
    mdb_txn_abort(txn);
    bool old = status == STORE_OK && f.format != 0 && f.format < STORE_FORMAT_VERSION && f.from == 0;
    return old && s->mode == STORE_WRITE && !o->without_copy ? keep_copy(s, o, f.format, why, why_size) : status;
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

bool migrate_go_on(struct store *s, const struct store_options *o, uint64_t done, uint64_t total)
{
    if (o->progress == NULL || o->progress(o->progress_arg, done, total > done ? total : done))
        return true;
    snprintf(s->why, sizeof(s->why), "stopped while the store was brought to this version; the next start goes on from there");
    return false;
}

/* ---- 1 to 2 ---- */

static void indexed_key(struct key *k)
{
    key_space(k, SPACE_META);
    key_bytes(k, "x", 1);
}

/* Up to MIGRATE_SLICE heads above ${after} go into the log of their workspace; ${after} is the last. How many. */
static size_t index_slice(struct store_txn *t, uint64_t *after)
{
    uint64_t ids[MIGRATE_SLICE];
    size_t count = record_ids(t, SPACE_REPORT, *after, MIGRATE_SLICE, ids);
    struct key k;
    for (size_t i = 0; i < count && t->error == STORE_OK; i++) {
        struct store_report r;
        if (report_load(t, ids[i], &r) == STORE_OK)
            index_move(t, NULL, &r);
        else
            txn_fail(t, 0, "a report's record");
        *after = ids[i];
    }
    indexed_key(&k);
    if (count != 0)
        txn_put(t, SPACE_META, &k, after, sizeof(*after));
    return count;
}

static enum store_status merge_all(struct store *s)
{
    enum store_status status = STORE_OK;
    for (bool more = true; more && status == STORE_OK;) {
        struct store_txn *t;
        status = store_begin(s, &t);
        if (status != STORE_OK)
            return status;
        more = tend_step(t);
        status = store_commit(t);
    }
    return status;
}

static enum store_status index_end(struct store *s, struct format_record *f)
{
    struct store_txn *t;
    struct key k;
    MDB_dbi old;
    enum store_status status = store_begin(s, &t);
    if (status != STORE_OK)
        return status;
    indexed_key(&k);
    txn_drop(t, SPACE_META, &k);
    int rc = mdb_dbi_open(t->mdb, "index", 0, &old);
    if (rc == 0)
        rc = mdb_drop(t->mdb, old, 1);
    if (rc != 0 && rc != MDB_NOTFOUND)
        txn_fail(t, rc, "drop the old index");
    migrate_note_step(t, f, 2);
    return store_commit(t);
}

static enum store_status index_reports(struct store *s, const struct store_options *o, struct format_record *f)
{
    uint64_t after = 0, done = 0, total = reports_about(s);
    for (size_t count = 1; count != 0; done += count) {
        struct store_txn *t;
        MDB_val v;
        struct key k;
        enum store_status status = store_begin(s, &t);
        if (status != STORE_OK)
            return status;
        indexed_key(&k);
        if (txn_get(t, SPACE_META, &k, &v) == STORE_OK && v.mv_size == sizeof(after))
            memcpy(&after, v.mv_data, sizeof(after));
        count = index_slice(t, &after);
        status = store_commit(t);
        if (status == STORE_OK && s->tend != NULL)
            status = merge_all(s);
        if (status != STORE_OK)
            return status;
        if (count != 0 && !migrate_go_on(s, o, done + count, total))
            return STORE_IO;
    }
    return index_end(s, f);
}

/* ---- 3 to 4 ---- */

static enum store_status note_parts(struct store *s, const struct store_options *o, struct format_record *f)
{
    struct store_txn *t;
    (void)o;
    enum store_status status = store_begin(s, &t);
    if (status != STORE_OK)
        return status;
    migrate_note_step(t, f, 4);
    return store_commit(t);
}

/* From here on it is half-way. */
static enum store_status begin(struct store *s, struct format_record *f)
{
    struct store_txn *t;
    enum store_status status = store_begin(s, &t);
    if (status != STORE_OK)
        return status;
    f->from = level_of(f);
    f->format = STORE_FORMAT_VERSION;
    format_write(t, f);
    return store_commit(t);
}

/* Nothing but the copy gets further than what is damaged here: a check is of stores that are not half-way. */
static void name_copy(struct store *s, const struct store_options *o, uint32_t from)
{
    char damage[sizeof(s->why)];
    memcpy(damage, s->why, sizeof(damage));
    snprintf(s->why, sizeof(s->why),
             "%.300s. It is half-way from format %u to %d, which assay check refuses: restore the copy that %s has of it "
             "as it was, unless store.copy_before_upgrade is off; its name begins with format-",
             damage, from, STORE_FORMAT_VERSION, o->dir);
}

static enum store_status bring_up(struct store *s, const struct store_options *o)
{
    MDB_txn *txn;
    struct format_record f;
    char what[96];
    enum store_status status = store_snapshot(s, &txn);
    if (status == STORE_OK)
        status = format_read(s, txn, &f);
    store_read_end(s);
    if (status == STORE_NOT_FOUND)
        return make(s);
    if (status == STORE_OK && f.format < STORE_FORMAT_VERSION)
        status = begin(s, &f);
    for (size_t i = 0; status == STORE_OK && f.from != 0 && i < sizeof(steps) / sizeof(*steps); i++) {
        if (steps[i].from == f.from) {
            snprintf(what, sizeof(what), "bringing the store from format %u to %u", steps[i].from, steps[i].to);
            tell_stage(o, what);
            status = steps[i].fn(s, o, &f);
            if (status == STORE_CORRUPT)
                name_copy(s, o, steps[i].from);
        }
    }
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
