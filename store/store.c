#include "store/index/found.h"
#include "store/names.h"
#include "store/answers/reader_cache.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* Columns: status, phrase. */
static const char *const status_texts[STORE_STATUSES] = {
    [STORE_OK] = "done",
    [STORE_NOT_FOUND] = "there is no such record",
    [STORE_EXISTS] = "that name is taken",
    [STORE_PRECONDITION] = "the record has another version by now",
    [STORE_KEY_REUSED] = "that idempotency key came with another body before",
    [STORE_NO_PASSWORD] = "privacy 2 needs a password",
    [STORE_NOT_PROTECTED] = "a password is for reports of privacy 2 only",
    [STORE_QUEUE_FULL] = "too many reports of this workspace are waiting",
    [STORE_STALE] = "findings of a generation that is over",
    [STORE_FULL] = "the store is full",
    [STORE_BUSY] = "too many processes read the store",
    [STORE_OTHER_FORMAT] = "the store has another format",
    [STORE_INVALID] = "malformed",
    [STORE_CORRUPT] = "the store is damaged",
    [STORE_AGAIN] = "the query was stopped",
    [STORE_REBUILDING] = "the index of reports is being rebuilt",
    [STORE_DAMAGED] = "the index of reports is damaged",
    [STORE_TOO_MANY] = "there are as many as there may be",
    [STORE_IO] = "the disk or the system refused",
};

const char *store_status_text(enum store_status status)
{
    return (unsigned)status < STORE_STATUSES ? status_texts[status] : "unknown";
}

/* Columns: LMDB's or the system's code, ours, what to tell; NULL: LMDB's own words. */
static const struct {
    int rc;
    enum store_status status;
    const char *advice;
} translations[] = {
    {MDB_NOTFOUND, STORE_NOT_FOUND, NULL},
    {MDB_MAP_FULL, STORE_FULL, "the map is full: raise store.map_size"},
    {ENOSPC, STORE_FULL, "the disk is full: make room on the disk, or move data_dir"},
    {EDQUOT, STORE_FULL, "the disk quota is used up"},
    {EFBIG, STORE_FULL,
     "files may not be longer: raise the limit of their size (LimitFSIZE, ulimit -f)"},
    {MDB_READERS_FULL, STORE_BUSY, "every reader slot is taken"},
    {MDB_CORRUPTED, STORE_CORRUPT, "data.mdb is damaged: restore a backup"},
    {MDB_PAGE_NOTFOUND, STORE_CORRUPT, "data.mdb is damaged: restore a backup"},
    {MDB_INVALID, STORE_CORRUPT, "data.mdb is not a store, or is damaged: restore a backup"},
    {MDB_INCOMPATIBLE, STORE_CORRUPT,
     "data.mdb is not a store of Assay's, or is damaged: restore a backup"},
    {MDB_VERSION_MISMATCH, STORE_OTHER_FORMAT, "data.mdb was written by another version of LMDB"},
    {EACCES, STORE_IO, "permission denied: run as the owner of the data directory"},
    {EPERM, STORE_IO, "permission denied: run as the owner of the data directory"},
    {EROFS, STORE_IO, "the file system is read-only"},
};

enum store_status store_fail(struct store *s, int rc, const char *what)
{
    enum store_status status = STORE_IO;
    const char *advice = NULL;
    for (size_t i = 0; i < sizeof(translations) / sizeof(*translations); i++) {
        if (translations[i].rc == rc) {
            status = translations[i].status;
            advice = translations[i].advice;
        }
    }
    snprintf(s->why, sizeof(s->why), "could not %s: %s", what,
             advice != NULL ? advice : mdb_strerror(rc));
    return status;
}

enum store_status store_corrupt(struct store *s, const char *what)
{
    snprintf(s->why, sizeof(s->why), "%s is damaged: run assay check, and restore a backup", what);
    return STORE_CORRUPT;
}

const char *store_why(const struct store *s)
{
    return s->why;
}

/* The directory itself, before LMDB's less helpful words. */
static enum store_status dir_look(const char *dir, enum store_mode mode, char *why, size_t why_size)
{
    struct stat st;
    if (strlen(dir) > sizeof(((struct store *)0)->dir) - 64) {
        snprintf(why, why_size, "the name of the data directory is too long");
        return STORE_INVALID;
    }
    if (stat(dir, &st) != 0) {
        bool missing = errno == ENOENT;
        snprintf(why, why_size,
                 missing ? "%s does not exist: create it with mode 0700, or set data_dir"
                         : "%s cannot be reached: %s",
                 dir, strerror(errno));
        return missing ? STORE_NOT_FOUND : STORE_IO;
    }
    if (!S_ISDIR(st.st_mode)) {
        snprintf(why, why_size, "%s is not a directory: set data_dir to one", dir);
        return STORE_INVALID;
    }
    if (faccessat(AT_FDCWD, dir, mode == STORE_WRITE ? R_OK | W_OK | X_OK : R_OK | X_OK,
                  AT_EACCESS) != 0) {
        snprintf(why, why_size, "%s may not be %s: %s; run as its owner, or mend its mode (0700)",
                 dir, mode == STORE_WRITE ? "written to" : "read", strerror(errno));
        return STORE_IO;
    }
    return STORE_OK;
}

/* Handles stay good for the environment's life when the transaction that opened them ends well. */
static int open_databases(struct store *s)
{
    MDB_txn *txn;
    int rc = mdb_txn_begin(s->env, NULL, s->mode == STORE_WRITE ? 0 : MDB_RDONLY, &txn);
    if (rc == MDB_MAP_RESIZED) {
        rc = mdb_env_set_mapsize(s->env, 0);
        if (rc == 0)
            rc = mdb_txn_begin(s->env, NULL, s->mode == STORE_WRITE ? 0 : MDB_RDONLY, &txn);
    }
    if (rc != 0)
        return rc;
    for (int i = 0; i < DB_COUNT && rc == 0; i++)
        rc = mdb_dbi_open(txn, schema_db_names[i], s->mode == STORE_WRITE ? MDB_CREATE : 0,
                          &s->dbi[i]);
    if (rc == 0)
        return mdb_txn_commit(txn);
    mdb_txn_abort(txn);
    return rc;
}

static int open_environment(struct store *s, const struct store_options *o,
                            const struct pages_facts *facts)
{
    int rc = mdb_env_create(&s->shared->env);
    s->env = s->shared->env;
    if (rc == 0)
        rc = mdb_env_set_maxdbs(s->env, DB_COUNT);
    if (rc == 0 && o->max_readers != 0)
        rc = mdb_env_set_maxreaders(s->env, o->max_readers);
    uint64_t map_bytes = o->map_size > facts->map_bytes ? o->map_size : facts->map_bytes;
    if (rc == 0 && s->mode == STORE_WRITE && map_bytes != 0)
        rc = mdb_env_set_mapsize(s->env, map_bytes);
    if (rc == 0)
        rc = mdb_env_open(s->env, o->dir, MDB_NOTLS | (s->mode == STORE_READ ? MDB_RDONLY : 0U),
                          0600);
    return rc;
}

/* A new store is a format record and counters; before that commit, it is not there for readers. */
static enum store_status open_all(struct store *s, const struct store_options *o, char *why,
                                  size_t why_size)
{
    struct pages_facts facts = {0};
    enum store_status status = dir_look(o->dir, o->mode, why, why_size);
    if (status == STORE_OK)
        status = pages_open_look(o->dir, &facts, why, why_size);
    if (status == STORE_NOT_FOUND && facts.bytes == 0 && why[0] == '\0') {
        if (o->mode == STORE_WRITE)
            status = STORE_OK;
        else
            snprintf(why, why_size,
                     "%s holds no store yet: start assayd, or create a workspace, once", o->dir);
    }
    if (status != STORE_OK)
        return status;
    int rc = open_environment(s, o, &facts);
    if (rc == 0)
        status = format_look(s, why, why_size);
    if (rc == 0 && status == STORE_OK)
        rc = open_databases(s);
    if (rc != 0) {
        status = rc == MDB_NOTFOUND ? STORE_CORRUPT : store_fail(s, rc, "open the store");
        snprintf(why, why_size, "%s: %s", o->dir,
                 rc == MDB_NOTFOUND ? "data.mdb is not a store of Assay's" : s->why);
        return status;
    }
    if (status == STORE_OK && o->mode == STORE_WRITE)
        status = format_make(s, why, why_size);
    if (status == STORE_OK && o->mode == STORE_WRITE &&
        store_sync_dir(o->dir) != 0) { /* a new file's name */
        status = store_fail(s, errno, "sync the data directory");
        snprintf(why, why_size, "%s: %s", o->dir, s->why);
    }
    if (status == STORE_OK && o->mode == STORE_WRITE)
        txn_keep_file_ahead(s);
    return status;
}

static bool has_store(const char *dir)
{
    char path[4096];
    snprintf(path, sizeof(path), "%s/data.mdb", dir);
    return access(path, F_OK) == 0;
}

void store_tell(struct store *s, store_stage_fn *stage, void *arg)
{
    s->stage = stage;
    s->stage_arg = arg;
}

void store_begins(struct store *s, const char *what)
{
    if (s->stage != NULL)
        s->stage(s->stage_arg, what);
}

/* Writers go first, so that a change of the size of the map does not wait for ever new snapshots. */
static struct shared_env *shared_new(void)
{
    struct shared_env *shared = calloc(1, sizeof(*shared));
    pthread_rwlockattr_t first;
    if (shared == NULL || (shared->segments = segment_maps_new()) == NULL) {
        free(shared);
        return NULL;
    }
    pthread_rwlockattr_init(&first);
    pthread_rwlockattr_setkind_np(&first, PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP);
    pthread_rwlock_init(&shared->map, &first);
    pthread_rwlockattr_destroy(&first);
    return shared;
}

static void shared_leave(struct shared_env *shared)
{
    if (shared == NULL || atomic_fetch_sub(&shared->readers, 1) > 1)
        return;
    if (shared->env != NULL)
        mdb_env_close(shared->env);
    pthread_rwlock_destroy(&shared->map);
    segment_maps_free(shared->segments);
    free(shared);
}

/* A struct store of ${shared}, NULL: a new one, with what ${options} say. */
static struct store *store_new(struct shared_env *shared, const struct store_options *options)
{
    struct store *s = calloc(1, sizeof(*s));
    if (s == NULL || (s->shared = shared != NULL ? shared : shared_new()) == NULL) {
        free(s);
        return NULL;
    }
    atomic_fetch_add(&s->shared->readers, 1);
    s->env = s->shared->env;
    s->maps = atomic_load(&s->shared->maps);
    s->mode = options->mode;
    if (s->mode == STORE_WRITE)
        s->shared->writes = true;
    s->txn.s = s;
    s->dying_snapshot = (size_t)-1;
    s->rates = options->rates;
    s->good = options->good;
    s->decent = options->decent;
    s->segment_rows = options->segment_rows != 0 ? options->segment_rows : SEGMENT_ROWS;
    s->chunk_shift = options->chunk_shift != 0 ? options->chunk_shift : CHUNK_ROWS_SHIFT;
    s->log_entries = options->log_entries != 0 ? options->log_entries : LOG_ENTRIES;
    s->small_rows = options->small_rows != 0 ? options->small_rows : SMALL_ROWS;
    s->mapped_bytes = options->mapped_bytes != 0 ? options->mapped_bytes : UINT64_MAX;
    snprintf(s->dir, sizeof(s->dir), "%s", options->dir);
    return s;
}

/* Its slot in the readers' table, which it keeps from here on, however many others come. */
static void take_slot(struct store *s)
{
    MDB_txn *unused;
    if (store_snapshot(s, &unused) == STORE_OK)
        store_read_end(s);
}

enum store_status store_open(const struct store_options *options, struct store **out, char *why,
                             size_t why_size)
{
    *out = NULL;
    if (why_size != 0)
        why[0] = '\0';
    struct store *s = store_new(NULL, options);
    if (s == NULL) {
        snprintf(why, why_size, "out of memory");
        return STORE_IO;
    }
    enum store_status status =
        options->must_exist && !has_store(options->dir) ? STORE_NOT_FOUND : STORE_OK;
    if (status != STORE_OK)
        snprintf(why, why_size,
                 "%s holds no store any more: mount its disk again, or restore a backup",
                 options->dir);
    else
        status = open_all(s, options, why, why_size);
    if (status != STORE_OK) {
        store_close(s);
        return status;
    }
    take_slot(s);
    *out = s;
    return STORE_OK;
}

enum store_status store_share(struct store *s, struct store **out, char *why, size_t why_size)
{
    const struct store_options same = {.dir = s->dir,
                                       .mode = STORE_READ,
                                       .segment_rows = s->segment_rows,
                                       .chunk_shift = s->chunk_shift,
                                       .log_entries = s->log_entries,
                                       .small_rows = s->small_rows,
                                       .mapped_bytes = s->mapped_bytes};
    *out = NULL;
    struct store *other = store_new(s->shared, &same);
    if (other == NULL) {
        snprintf(why, why_size, "out of memory");
        return STORE_IO;
    }
    memcpy(other->dbi, s->dbi, sizeof(other->dbi));
    take_slot(other);
    *out = other;
    return STORE_OK;
}

void store_close(struct store *s)
{
    if (s == NULL)
        return;
    if (s->txn.mdb != NULL)
        store_abort(&s->txn);
    store_read_end(s);
    if (s->read != NULL)
        mdb_txn_abort(s->read);
    txn_free(&s->txn);
    view_forget(s);
    found_forget(s);
    names_forget(s);
    result_release(s);
    result_forget(s);
    reader_cache_free(s->answers);
    buf_free(&s->scratch);
    free(s->events);
    free(s->reports);
    free(s->projects);
    shared_leave(s->shared);
    free(s);
}

/* What this reader remembers of the map is where it was. */
static void forget_map(struct store *s)
{
    memset(s->seen_keys, 0, sizeof(s->seen_keys));
    memset(s->seen_reports, 0, sizeof(s->seen_reports));
}

int store_remap(struct store *s)
{
    forget_map(s);
    atomic_fetch_add(&s->shared->waiting, 1);
    pthread_rwlock_wrlock(&s->shared->map);
    atomic_fetch_sub(&s->shared->waiting, 1);
    int rc = mdb_env_set_mapsize(s->env, 0);
    s->maps = atomic_fetch_add(&s->shared->maps, 1) + 1;
    pthread_rwlock_unlock(&s->shared->map);
    return rc;
}

/* One try at a snapshot: the kept transaction, or a first one. */
static int snapshot_once(struct store *s)
{
    if (s->read != NULL)
        return mdb_txn_renew(s->read);
    return mdb_txn_begin(s->env, NULL, MDB_RDONLY, &s->read);
}

/*
 * LMDB takes a transaction's number first and the roots after it, from a page that the second commit after it writes over: a reader held up
 * in between has a later state under an earlier number. What is remembered by number (views, places) must not meet that, so a snapshot
 * counts when its number is still the last once it has its roots.
 */
#define TRIES 16

static int snapshot_look(struct store *s)
{
    MDB_envinfo info;
    for (int tries = 1;; tries++) {
        int rc = snapshot_once(s);
        if (rc != 0 || tries == TRIES || mdb_env_info(s->env, &info) != 0 ||
            info.me_last_txnid == mdb_txn_id(s->read))
            return rc;
        mdb_txn_reset(s->read);
    }
}

/* The map keeps its size until store_read_end. */
static int snapshot_try(struct store *s)
{
    pthread_rwlock_rdlock(&s->shared->map);
    int rc = snapshot_look(s);
    if (rc != 0)
        pthread_rwlock_unlock(&s->shared->map);
    return rc;
}

/*
 * The size of the map changes between two write transactions alone, so the writer's thread changes
 * it.
 */
static bool is_beside_writer(const struct store *s)
{
    return s->shared->writes && s->mode == STORE_READ;
}

static enum store_status snapshot_begin(struct store *s)
{
    int rc = snapshot_try(s);
    if (rc == MDB_READERS_FULL) {
        store_reader_check(s);
        rc = snapshot_try(s);
    }
    /*
     * Another process grew the map: take its size. The writer's own transaction would hold the old one; then the read has to wait for its
     * end.
     */
    for (int tries = 0; rc == MDB_MAP_RESIZED && tries < 3; tries++) {
        rc = s->txn.mdb != NULL || is_beside_writer(s) ? EBUSY : store_remap(s);
        if (rc == 0)
            rc = snapshot_try(s);
    }
    if (rc != 0)
        return store_fail(s, rc, "read the store");
    s->reading = true;
    s->snapshot = mdb_txn_id(s->read);
    unsigned maps = atomic_load_explicit(&s->shared->maps, memory_order_relaxed);
    if (s->maps != maps)
        forget_map(s);
    s->maps = maps;
    return STORE_OK;
}

enum store_status store_snapshot(struct store *s, MDB_txn **out)
{
    enum store_status status = s->reading ? STORE_OK : snapshot_begin(s);
    *out = s->read;
    return status;
}

void store_read_end(struct store *s)
{
    if (!s->reading)
        return;
    mdb_txn_reset(s->read);
    pthread_rwlock_unlock(&s->shared->map);
    s->reading = false;
    result_release(s);
}

enum store_status store_get(struct store *s, MDB_txn *txn, enum space space, struct key *key,
                            MDB_val *out)
{
    MDB_val k = key_val(key);
    int rc = mdb_get(txn, s->dbi[schema_space_db[space]], &k, out);
    if (rc == 0)
        return STORE_OK;
    return rc == MDB_NOTFOUND ? STORE_NOT_FOUND : store_fail(s, rc, "read a record");
}

enum store_status store_see_key(struct store *s, const uint8_t *hash, MDB_val *out)
{
    struct seen_key *seen = &s->seen_keys[hash[0] % SEEN_KEYS];
    if (seen->snapshot == s->snapshot && memcmp(seen->hash, hash, sizeof(seen->hash)) == 0) {
        *out = seen->value;
        return STORE_OK;
    }
    struct key k;
    key_space(&k, SPACE_KEY);
    key_bytes(&k, hash, sizeof(seen->hash));
    enum store_status status = store_get(s, s->read, SPACE_KEY, &k, out);
    if (status == STORE_OK) {
        *seen = (struct seen_key){.snapshot = s->snapshot, .value = *out};
        memcpy(seen->hash, hash, sizeof(seen->hash));
    }
    return status;
}

enum store_status store_see_report(struct store *s, uint64_t id, MDB_val *out)
{
    struct seen_report *seen = &s->seen_reports[id % SEEN_REPORTS];
    if (seen->snapshot == s->snapshot && seen->id == id) {
        *out = seen->value;
        return STORE_OK;
    }
    struct key k;
    key_id(&k, SPACE_REPORT, id);
    enum store_status status = store_get(s, s->read, SPACE_REPORT, &k, out);
    if (status == STORE_OK)
        *seen = (struct seen_report){s->snapshot, id, *out};
    return status;
}

uint64_t store_version(struct store *s)
{
    MDB_envinfo info;
    if (!s->reading)
        pthread_rwlock_rdlock(&s->shared->map);
    uint64_t version = mdb_env_info(s->env, &info) == 0 ? info.me_last_txnid : 0;
    if (!s->reading)
        pthread_rwlock_unlock(&s->shared->map);
    return version;
}

uint64_t store_snapshot_version(const struct store *s)
{
    return s->reading ? s->snapshot : 0;
}

/* How many things are dying is looked up once a snapshot of the store; nearly always nothing is, and then nobody pays for the question. */
static uint64_t dying_count(struct store *s, MDB_txn *txn)
{
    size_t id = mdb_txn_id(txn);
    if (txn == s->txn.mdb)
        return s->txn.counters.dying;
    if (id != s->dying_snapshot) {
        struct key k;
        MDB_val v;
        key_space(&k, SPACE_META);
        key_bytes(&k, "c", 1);
        const struct counters_record *counters = NULL;
        if (store_get(s, txn, SPACE_META, &k, &v) == STORE_OK)
            counters = store_record(v, sizeof(*counters));
        s->dying = counters == NULL ? 0 : counters->dying;
        s->dying_snapshot = id;
    }
    return s->dying;
}

bool store_any_dying(struct store *s, MDB_txn *txn)
{
    return dying_count(s, txn) != 0;
}

bool store_dying(struct store *s, MDB_txn *txn, uint64_t workspace, uint64_t project)
{
    if (dying_count(s, txn) == 0)
        return false;
    struct key k;
    MDB_val v;
    key_id(&k, SPACE_DYING, workspace);
    key_u64(&k, 0);
    if (store_get(s, txn, SPACE_DYING, &k, &v) == STORE_OK)
        return true;
    if (project == 0)
        return false;
    key_id(&k, SPACE_DYING, workspace);
    key_u64(&k, project);
    return store_get(s, txn, SPACE_DYING, &k, &v) == STORE_OK;
}

unsigned store_reader_check(struct store *s)
{
    int dead = 0;
    mdb_reader_check(s->env, &dead);
    return (unsigned)dead;
}

bool store_tidy(struct store *s)
{
    bool answers = lookup_tidy(s), views = view_tidy(s);
    return answers || views;
}

uint64_t store_lost_segment(const struct store *s)
{
    return s->lost_segment;
}
