/*
 * The store's inside: the environment, the cached read transaction, the write transaction and its caches. Private to store/.
 */
#ifndef ASSAY_STORE_INTERNAL_H
#define ASSAY_STORE_INTERNAL_H

#include "store/pages.h"
#include "store/schema.h"

#include <pthread.h>
#include <stdatomic.h>

/*
 * A workspace's or project's record while a transaction changes it: read once, written back once by the commit, so that sixty-four
 * creates in one project write its record once.
 */
struct cached {
    struct cached *next;
    enum space space; /* SPACE_WORKSPACE or SPACE_PROJECT */
    uint64_t id;
    bool dirty, gone;
    struct workspace_record workspace;
    struct project_record project;
    struct str name;
    char name_bytes[NAME_MAX_BYTES];
};

#define CACHE_CHAINS 64

/*
 * Cursors that stay where the last put of their kind was: what is put in order (reports, jobs, messages) is then put without a search from the root.
 */
#define TXN_CURSORS 3

/* What a transaction gathers for the log of a workspace's index. */
struct log_batch {
    uint64_t workspace, entries;
    struct buf bytes;
};

struct store_txn {
    struct store *s;
    MDB_txn *mdb; /* NULL: none under way */
    int64_t now;
    enum store_status error; /* the first that happened half-way */
    int full;                /* creates are refused, and why (room.c): -1 not looked at yet */
    uint64_t
        spare_pages; /* for results, as of that look, less what was taken since: behind them are those kept for deletes */
    bool counters_dirty;
    struct counters_record counters;
    struct ulid ulid; /* the last one given */
    bool ulid_known, ulid_dirty;
    struct synced_counters synced;
    bool synced_known, synced_dirty;
    struct { /* the agent whose documents changed last: answers_log.h */
        struct ulid agent;
        struct answers_record record;
        bool known, dirty, event_sent;
    } answers;
    struct cached *cache[CACHE_CHAINS];
    struct cached *spare;
    struct cached
        *named; /* the project that project_for found last, still listed by its name; or NULL */
    MDB_cursor *cursors[TXN_CURSORS]; /* NULL: not opened, or closed by a delete */
    struct buf packed, copy;          /* a report's results; a record */
    struct log_batch *batches;
    size_t batch_count, batch_cap;
    store_pause_fn *pause; /* of work in the background, or NULL */
    void *pause_arg;
    bool background;         /* the change under way is such work */
    bool awaited, unawaited; /* there was a change in it that a caller waits for, or such work */
    uint64_t slice,
        spent;     /* records that may go for it, by the last txn_slice, and that went since */
    bool rated;    /* results were rated in it */
    bool due_told; /* there is an EVENT_MAINTENANCE of it */
};

/*
 * Where a snapshot found a key or a report. A place stays right for as long as nothing was committed, so between two commits the same
 * look-up is one comparison; the next commit makes all of them stale at once.
 */
#define SEEN_KEYS 64
#define SEEN_REPORTS 512

struct seen_key {
    size_t snapshot;
    uint8_t hash[32];
    MDB_val value;
};

struct seen_report {
    size_t snapshot;
    uint64_t id;
    MDB_val value;
};

/*
 * What all readers of a process share: LMDB has one environment a process. A snapshot holds ${map}
 * for reading, since LMDB may not change the size of the map under it.
 */
struct shared_env {
    MDB_env *env;
    bool writes; /* one of them is open for writing */
    pthread_rwlock_t map;
    atomic_uint readers; /* how many struct stores share it */
    atomic_uint waiting; /* readers that wait to change the map's size; queries stop for them */
    atomic_uint maps;    /* changes of the size of the map so far */
    struct segment_maps *segments; /* index/segment_file.h */
};

struct store {
    struct shared_env *shared;
    MDB_env *env; /* the shared one */
    MDB_dbi dbi[DB_COUNT];
    unsigned maps; /* shared->maps when what is remembered of the map was seen */
    MDB_txn *read; /* kept between snapshots, reset */
    bool reading;
    enum store_mode mode;
    size_t snapshot; /* LMDB's transaction id of the one under way */
    struct seen_key seen_keys[SEEN_KEYS];
    struct seen_report seen_reports[SEEN_REPORTS];
    size_t dying_snapshot; /* the transaction that dying was read in */
    uint64_t dying;
    uint64_t file_bytes;       /* writer: data.mdb is at least that long */
    struct packer *packer;     /* of results: see result.c */
    struct unpacked *unpacked; /* results, for the snapshot */
    store_stage_fn *stage;     /* store_tell */
    void *stage_arg;
    struct store_txn txn;
    struct store_event *events;
    size_t event_count, event_cap;
    struct store_report *reports; /* the page handed out by store_report_list */
    struct store_project *projects;
    size_t report_cap, project_cap;
    struct view *views;    /* of workspaces' indexes: index/view.h */
    uint64_t lost_segment; /* the number of the last one that was missing or damaged; 0: none */
    uint64_t mapped_bytes; /* of segment files, that views may map in this process */
    size_t view_count;
    uint64_t view_clock;
    struct names *names; /* of workspaces' projects, the latest asked for first: see names.h */
    struct found *found; /* what searches found, the latest first: index/found.h */
    size_t found_bytes, found_count;
    uint64_t rows_made; /* how often the rows of a view, or names, were begun anew */
    bool rates;         /* results are brought to these bounds */
    unsigned good, decent;
    bool rated; /* all were */
    struct ulid
        set_aside; /* writer: a scope whose erasure failed, for the turn; none: see erase.c */
    unsigned upkeep_turn; /* writer: which kind of work in the background is next: see purge.c */
    bool rating_failed;   /* writer: and when: see txn_rating_fails */
    int64_t rating_failed_at;
    struct buf scratch;
    uint64_t random[32]; /* writer: for ids, */
    size_t random_left;  /* so many of them not used yet */
    /* a segment's most rows, a chunk's as a power of two, the log's length that is merged, rows from which there are segments */
    uint32_t segment_rows, chunk_shift, log_entries, small_rows;
    struct reader_cache *answers; /* open answer files: answers/reader_cache.h */
    char dir[4096];
    char why[1024];
};

/* ---- store.c ---- */

/*
 * store_fail(s, rc, what): translate LMDB's (or the system's) ${rc}, remember the sentence for store_why. ${what} completes "could not
 * …".
 */
enum store_status store_fail(struct store *s, int rc, const char *what);

/* store_corrupt(s, what): remember that ${what} is damaged. */
enum store_status store_corrupt(struct store *s, const char *what);

/* store_begins(s, what): tell it, see store_tell. */
void store_begins(struct store *s, const char *what);

/* store_snapshot(s, out): the snapshot under way, or a new one. */
enum store_status store_snapshot(struct store *s, MDB_txn **out);

/* store_remap(s): take the map's size from the file, where another process made it larger. No transaction may be under way. */
int store_remap(struct store *s);

/* Bytes of a value that LMDB keeps on a page of its own, of the least size. */
#define PAGE_VALUE_BYTES ((size_t)4080)

/* store_sync_dir(dir): so that a new name in it is there after a crash; 0, or -1 and errno. */
int store_sync_dir(const char *dir);
/* store_write_all(fd, p, n): all of it, also where a write is cut short; false: errno. */
bool store_write_all(int fd, const void *p, size_t n);

/* store_get(s, txn, space, key, out): one value; STORE_NOT_FOUND without one. ${key} carries its tag already. */
enum store_status store_get(struct store *s, MDB_txn *txn, enum space space, struct key *key,
                            MDB_val *out);

/* store_see_key, store_see_report: the same, within the snapshot under way, for what every request reads. */
enum store_status store_see_key(struct store *s, const uint8_t *hash, MDB_val *out);
enum store_status store_see_report(struct store *s, uint64_t id, MDB_val *out);

/* store_record(value, size): the value as a packed record of ${size} bytes, NULL when it is another size. */
static inline const void *store_record(MDB_val value, size_t size)
{
    return value.mv_size == size ? value.mv_data : NULL;
}

/*
 * store_pauses(s, pause, arg): should the work stop here, for the caller or for a change of the
 * size of the map? A reader's query then ends with STORE_AGAIN. store_paused(s, q): likewise of a
 * query, which may be NULL.
 */
static inline bool store_pauses(const struct store *s, store_pause_fn *pause, void *arg)
{
    return pause != NULL &&
           (atomic_load_explicit(&s->shared->waiting, memory_order_relaxed) != 0 || pause(arg));
}

static inline bool store_paused(const struct store *s, const struct store_list_query *q)
{
    return q != NULL && store_pauses(s, q->pause, q->pause_arg);
}

/* store_dying(s, txn, workspace, project): is that workspace, or (project not 0) that project, being deleted? */
bool store_dying(struct store *s, MDB_txn *txn, uint64_t workspace, uint64_t project);

/* store_any_dying(s, txn): is anything at all being deleted? */
bool store_any_dying(struct store *s, MDB_txn *txn);

/* store_free_pages(s, txn, out): pages within the file that are free. ${txn} is a read transaction. */
enum store_status store_free_pages(struct store *s, MDB_txn *txn, uint64_t *out);

/* store_usable_pages(s, txn, out): those of them that no reader may still be looking at. */
enum store_status store_usable_pages(struct store *s, MDB_txn *txn, uint64_t *out);

/* store_oldest_snapshot(s): the oldest that any process has under way, by its transaction; SIZE_MAX: there is none. */
size_t store_oldest_snapshot(struct store *s);

/*
 * A walk over the keys that begin with a prefix, in either direction. Each step answers STORE_OK with k and v, or STORE_NOT_FOUND at the
 * end. walk_end is safe after a begin that failed.
 */
struct walk {
    struct store *s;
    MDB_cursor *cursor;
    bool backward;
    struct key prefix;
    MDB_val k, v;
};
enum store_status walk_begin(struct store *s, MDB_txn *txn, struct walk *w, enum space space);
enum store_status walk_prefix(struct store *s, MDB_txn *txn, struct walk *w, enum db db,
                              bool backward); /* prefix and its length are set */
/* walk_below(…): as walk_prefix, backward, but starting at the last key below ${below}. */
enum store_status walk_below(struct store *s, MDB_txn *txn, struct walk *w, enum db db,
                             const struct key *below);
/* walk_from(…): as walk_prefix, forward, but starting at the first key not below ${from}. */
enum store_status walk_from(struct store *s, MDB_txn *txn, struct walk *w, enum db db,
                            const struct key *from);
enum store_status walk_next(struct walk *w);
void walk_end(struct walk *w);

/* walk_u64(w, skip, out): the number that lies ${skip} numbers after the tag of the present key. */
bool walk_u64(const struct walk *w, unsigned skip, uint64_t *out);

/*
 * walk_next_workspace(s, space, after, out): the workspace of the first key of ${space} above
 * ${after}, in a snapshot of its own; 0: there is none.
 */
enum store_status walk_next_workspace(struct store *s, enum space space, uint64_t after,
                                      uint64_t *out);

/* record_ids(t, space, after, most, ids): up to ${most} ids above ${after} of the records of ${space}, dying ones too; how many. */
size_t record_ids(struct store_txn *t, enum space space, uint64_t after, size_t most,
                  uint64_t *ids);

/* ---- txn.c: the write transaction ---- */

/* txn_keep_file_ahead(s): make data.mdb long enough for what the next transactions take. */
void txn_keep_file_ahead(struct store *s);
void txn_free(struct store_txn *t);
enum store_status txn_fail(struct store_txn *t, int rc, const char *what);
enum store_status txn_get(struct store_txn *t, enum space space, struct key *key, MDB_val *out);
void txn_put(struct store_txn *t, enum space space, struct key *key, const void *value, size_t n);
/* txn_reserve(t, …): room for ${n} bytes in the page itself, to be filled before anything else is written; NULL after an error. */
void *txn_reserve(struct store_txn *t, enum space space, struct key *key, size_t n);
/* txn_del(t, …): a key that must be there: STORE_CORRUPT sticks when it is not. txn_drop: one that may be. */
void txn_del(struct store_txn *t, enum space space, struct key *key);
void txn_drop(struct store_txn *t, enum space space, struct key *key);

/* txn_next(t, counter): the next id of that counter. */
#define txn_next(t, counter) ((t)->counters_dirty = true, ++(t)->counters.counter)

/* txn_ulid(t, out): the next ULID; false after an error. */
bool txn_ulid(struct store_txn *t, struct ulid *out);

void txn_event(struct store_txn *t, enum store_event_kind kind, uint64_t workspace, uint64_t id,
               uint64_t value);
bool txn_mark_dying(struct store_txn *t, uint64_t workspace, uint64_t project);
/* txn_match(match, version): does If-Match let that version through? */
bool txn_match(struct str match, uint64_t version);

/* ---- cache.c ---- */

/* txn_workspace(t, id), txn_project(t, id): the cached record, dying ones included; NULL without one or after an error. */
struct cached *txn_workspace(struct store_txn *t, uint64_t id);
struct cached *txn_project(struct store_txn *t, uint64_t id);
/* txn_workspace_living(t, id), txn_project_living(t, workspace, id): NULL where it is dying or another workspace's. */
struct cached *txn_workspace_living(struct store_txn *t, uint64_t id);
struct cached *txn_project_living(struct store_txn *t, uint64_t workspace, uint64_t id);
/* txn_made(t, space, id, name): a new record in the cache, dirty, all zero but id and name. */
struct cached *txn_made(struct store_txn *t, enum space space, uint64_t id, struct str name);
/* txn_changed(t, c): it will be written back; a project's version and updated_at move once a transaction. */
void txn_changed(struct store_txn *t, struct cached *c);
/* txn_gone(t, c): delete the record. */
void txn_gone(struct store_txn *t, struct cached *c);

/* cache_write(t): put what of it changed. cache_clear(t): at the end of the transaction. cache_free(t): at the writer's. */
void cache_write(struct store_txn *t);
void cache_clear(struct store_txn *t);
void cache_free(struct store_txn *t);

/* ---- room.c ---- */

#define STORE_DISK_RESERVE                                                                         \
    ((uint64_t)16 << 20) /* of the disk, or of what a file may grow to: for deletes */
/* store_bytes_ahead(s, why): what data.mdb may still grow by; *why it ends there: ENOSPC, the disk, or EFBIG, this process' limit of file sizes. */
uint64_t store_bytes_ahead(const struct store *s, int *why);
/* txn_is_full(t): have creates to be refused? */
bool txn_is_full(struct store_txn *t);
/* txn_slice(t, limit): how many records, up to ${limit}, there is room to delete in one transaction; at least one. */
uint64_t txn_slice(struct store_txn *t, uint64_t limit);
/* txn_spend(t, left): a record of them went: ${left} is one less, and nothing where a pause is due. txn_paused(t): is it? Never for callers' changes. */
void txn_spend(struct store_txn *t, uint64_t *left);
bool txn_paused(const struct store_txn *t);

/*
 * Rating can wait, deletes cannot: they need what is left of a full store. txn_rating_fails(t): a
 * transaction that rated came to nothing: rating rests for a minute. txn_rating_rests(t): does it,
 * or is the store full?
 */
void txn_rating_fails(struct store_txn *t);
bool txn_rating_rests(struct store_txn *t);
/* txn_results_fit(t, results_bytes): may a page finish, with results of that size? Deletes and revocations keep what they need. */
bool txn_results_fit(struct store_txn *t, size_t results_bytes);

/* ---- one file per record type: what store_apply calls. They judge first and write after; all but STORE_OK wrote nothing. ---- */

typedef enum store_status apply_fn(struct store_txn *t, const struct store_change *c,
                                   struct store_answer *answer);
apply_fn workspace_create, workspace_delete;
apply_fn key_create, key_revoke, key_rotate, key_touch;
apply_fn report_create, report_update, report_delete, report_finish, report_died;
apply_fn project_delete;
apply_fn purge_slice, purge_dying;
apply_fn index_install, index_lost, index_sweep;
apply_fn agent_create, agent_update, agent_delete;
apply_fn visitor_init, visitor_erase, message_post, message_reply, note_post, conversation_set,
    lead_put, events_put, rating_put, retain_slice;
apply_fn sync_put, coupons_put, coupon_stage, answers_note;

/* ---- report.c ---- */

/* report_load(t, id, out): a copy of the report that later writes leave alone; one of a dying project or workspace too. */
enum store_status report_load(struct store_txn *t, uint64_t id, struct store_report *out);
/* report_living(t, r): neither its project nor its workspace is being deleted. */
bool report_living(struct store_txn *t, const struct store_report *r);
/* report_write(t, r): put the head. */
void report_write(struct store_txn *t, const struct store_report *r);
/* report_results(s, txn, r): fill r->results; there may be none. */
enum store_status report_results(struct store *s, MDB_txn *txn, struct store_report *r);
/* report_replace(t, old, new): ${old} becomes ${new}: version, time, head, index and counters. */
void report_replace(struct store_txn *t, const struct store_report *old, struct store_report *new);
/* report_remove(t, r): the head, results, index entries and job of it. Counters are the caller's. */
void report_remove(struct store_txn *t, const struct store_report *r);

/* ---- result.c ---- */

/*
 * result_get(s, txn, report, out): its results, good as long as the snapshot; ${out} is left alone where there are none. result_look: are
 * they there, and whole? Afterwards they are in memory. result_put(t, report, json): in place of what was there. result_drop(t, report):
 * there may be none. result_forget(s): what it keeps for all that, at the end.
 */
enum store_status result_get(struct store *s, MDB_txn *txn, uint64_t report, struct str *out);
enum store_status result_look(struct store *s, MDB_txn *txn, uint64_t report);
/* result_piece_good(s, txn, report, piece): does it follow one that says so? */
bool result_piece_good(struct store *s, MDB_txn *txn, uint64_t report, uint64_t piece);
void result_put(struct store_txn *t, uint64_t report, struct str json);
/* result_release(s): what was unpacked for a snapshot goes with it. */
void result_release(struct store *s);
void result_drop(struct store_txn *t, uint64_t report);
extern const struct str result_like;
void result_forget(struct store *s);

/* ---- workspace.c, key.c ---- */

/* workspace_read(s, txn, id, out, counts): a living one; ${out} may be NULL. */
enum store_status workspace_read(struct store *s, MDB_txn *txn, uint64_t id,
                                 struct store_workspace *out, struct counts *counts);
/* key_remove(t, workspace, id): the key and its indexes. */
void key_remove(struct store_txn *t, uint64_t workspace, uint64_t id);

/* ---- project.c ---- */

/* project_unlist(t, p): take away its name and its place in lists. */
void project_unlist(struct store_txn *t, struct cached *p);

/* project_read(s, txn, workspace, id, out, counts): a living one; ${counts}, unless NULL, are its reports by result. */
enum store_status project_read(struct store *s, MDB_txn *txn, uint64_t workspace, uint64_t id,
                               struct store_project *out, struct counts *counts);

/* project_for(t, workspace, name): the project of that name, made when there is none. */
struct cached *project_for(struct store_txn *t, struct cached *workspace, struct str name);
/* project_write(t, c): put it. */
void project_write(struct store_txn *t, struct cached *c);
/*
 * project_count(t, r, old, new): the counters of ${r}'s workspace and project, as the report ${old} becomes ${new}; NULL: it was not
 * there, or is no more. The workspace's version moves in any case, the project's and its updated_at where its own counters did.
 */
void project_count(struct store_txn *t, struct cached *workspace, struct cached *project,
                   const struct store_report *old, const struct store_report *new);

/* ---- lookup.c ---- */

/* lookup_tidy(s): store_tidy of answer files. */
bool lookup_tidy(struct store *s);

/* ---- index/ ---- */

/* index_move(t, old, new): in the index ${old} becomes ${new}; NULL: it was not there before, or is no more. */
void index_move(struct store_txn *t, const struct store_report *old,
                const struct store_report *new);

/* ---- rate.c ---- */

/* rate_step(t): bring some more results to the bounds; false when all are. rate_progress(s, txn, after): how far that is; false: done. */
bool rate_step(struct store_txn *t);
/* rate_result(s, score, sent): the result by the bounds; ${sent}, by whoever graded, where the store has none. */
enum report_result rate_result(const struct store *s, int score, enum report_result sent);
bool rate_progress(struct store *s, MDB_txn *txn, uint64_t *after);

/* ---- job.c ---- */

void job_put(struct store_txn *t, uint64_t report, const struct job_record *job);
enum store_status job_load(struct store_txn *t, uint64_t report, struct job_record *out);
void job_drop(struct store_txn *t, uint64_t report);

/* ---- idem.c ---- */

/*
 * idem_look(t, c, answer): STORE_NOT_FOUND: not seen, go on. Otherwise the answer of a replay (answer->replayed set), or
 * STORE_KEY_REUSED.
 */
enum store_status idem_look(struct store_txn *t, const struct store_change *c,
                            struct store_answer *answer);
void idem_put(struct store_txn *t, const struct store_change *c, uint64_t report);
/* idem_look_sync, idem_put_sync: the same of a batch, whose answer itself is kept. */
enum store_status idem_look_sync(struct store_txn *t, const struct store_change *c,
                                 struct store_answer *answer);
void idem_put_sync(struct store_txn *t, const struct store_change *c,
                   const struct store_answer *answer);
/* idem_purge(t, left): delete what is over its time. */
void idem_purge(struct store_txn *t, uint64_t *left);

/* ---- collection.c ---- */

/*
 * synced_write_back(t), answers_write_back(t): counters and records of synced documents, at the end
 * of the transaction.
 */
void synced_write_back(struct store_txn *t);
void answers_write_back(struct store_txn *t);

/* ---- format.c ---- */

/*
 * format_look(s, why, why_size): has the store this format, or may a writer make a new one here? STORE_OTHER_FORMAT, STORE_CORRUPT or
 * STORE_NOT_FOUND where not; nothing is changed. format_make(s, why, why_size): the writer makes a new store's first records.
 */
enum store_status format_look(struct store *s, char *why, size_t why_size);
enum store_status format_make(struct store *s, char *why, size_t why_size);
/*
 * Each store has a random id, which its answer files carry. format_id(s, out): it.
 * format_renew_id(dir): another one, of a store that no
 * process has open; 0, or LMDB's or the system's code.
 */
#define STORE_ID_BYTES 16
enum store_status format_id(struct store *s, uint8_t out[STORE_ID_BYTES]);
int format_renew_id(const char *dir);

#endif
