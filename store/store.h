/*
 * The store: every record Assay keeps, in one LMDB environment under data_dir.
 *
 * Who may call what: a worker and the command line open it with STORE_READ and use the readers; the writer process (or the command line
 * while no server runs) opens it with STORE_WRITE and, between store_begin and store_commit, applies changes. One environment is opened
 * once per process, after the fork; further threads of a reader share it (store_share). The store logs
 * nothing and owns no clock: it returns codes, and takes the time as an argument.
 *
 * Reads: each operation ends in exactly one call of its callback. Today it happens before the operation returns; a store on a network may
 * do it later, so callers must not rely on that. The first read after store_read_end begins a snapshot and the following reads share it.
 * Values handed to a callback are borrowed until store_read_end, which must be called before the
 * event loop or the query thread goes on to other work.
 */
#ifndef ASSAY_STORE_H
#define ASSAY_STORE_H

#include "store/bytes.h"
#include "store/change.h"

#define STORE_RESULTS_MAX 65536 /* bytes of a report's results: an object of JSON */

/* The format of the records on disk. A store of any other is refused. */
#ifndef STORE_FORMAT_VERSION
#define STORE_FORMAT_VERSION 1
#endif
#define STORE_LAYOUT 4 /* of the records within an unreleased format: one more with each change */

enum store_status {
    STORE_OK,
    STORE_NOT_FOUND,     /* no such record, or another workspace's */
    STORE_EXISTS,        /* that name is taken */
    STORE_PRECONDITION,  /* If-Match names another version */
    STORE_KEY_REUSED,    /* idempotency key was used with another body */
    STORE_NO_PASSWORD,   /* privacy 2 asked for, and no password is set or sent */
    STORE_NOT_PROTECTED, /* a password sent alone for a report whose privacy is not 2 */
    STORE_QUEUE_FULL,    /* the workspace has its 10,000 pending jobs */
    STORE_STALE,         /* findings of an older attempt, or of a report that is gone: dropped */
    STORE_FULL, /* no room: map at 95 %, or MDB_MAP_FULL, or the disk is full, or files may not be longer */
    STORE_BUSY,         /* no reader slot is free */
    STORE_OTHER_FORMAT, /* its format is not STORE_FORMAT_VERSION */
    STORE_INVALID,      /* malformed argument or change */
    STORE_CORRUPT,      /* a record is not well-formed */
    STORE_AGAIN,        /* the query was stopped: begin it again after store_read_end */
    STORE_IO,           /* the disk or the system refused; store_why tells */
    STORE_TOO_MANY,     /* there are as many of them as there may be */
    STORE_REBUILDING, /* the index of the workspace's reports is being built: list them again later */
    STORE_DAMAGED,    /* a segment of that index is missing or damaged: store_lost_segment */
    STORE_STATUSES
};

/* store_status_text(status): a short English phrase, static. */
const char *store_status_text(enum store_status status);

#include "store/synced.h"
#include "store/answers_log.h"

/*
 * store_pause_fn(arg): should the work stop here? Asked between parts of it, each of well under a
 * millisecond where what it reads is in memory.
 */
typedef bool store_pause_fn(void *arg);

#include "store/lookup.h"
#include "store/widget.h"

enum report_status { REPORT_PENDING, REPORT_DONE, REPORT_FAILED };
enum report_result { RESULT_NONE, RESULT_GOOD, RESULT_DECENT, RESULT_BAD };
enum report_privacy { PRIVACY_PUBLIC, PRIVACY_PRIVATE, PRIVACY_PASSWORD };

/* Scopes of a credential, as bits. api.md §2. */
enum scope {
    SCOPE_REPORTS_READ = 1 << 0,
    SCOPE_REPORTS_WRITE = 1 << 1,
    SCOPE_PROJECTS_READ = 1 << 2,
    SCOPE_PROJECTS_WRITE = 1 << 3,
    SCOPE_CONVERSATIONS_READ = 1 << 4,
    SCOPE_CONVERSATIONS_WRITE = 1 << 5,
    SCOPE_WP_SYNC = 1 << 6,
    /* not a scope but kept with them: requests of this workspace token must be signed (api.md §7) */
    SCOPE_SIGNED = 1 << 30,
};

/* A credential with SCOPE_WP_SYNC is a workspace token, which has no other scope; all others are API keys. */
static inline bool scopes_of_token(uint32_t scopes)
{
    return (scopes & SCOPE_WP_SYNC) != 0;
}

/* Times are milliseconds since the epoch, UTC; 0 means never. */
struct store_workspace {
    uint64_t id;
    struct str name;
    int64_t created_at;
    uint64_t version; /* grows with every change of a report or project in it */
    uint64_t reports, projects;
};

struct store_key {
    uint64_t id, workspace;
    uint32_t scopes; /* enum scope bits */
    int64_t created_at, last_used_at, expires_at, revoked_at;
    uint8_t hash[32]; /* SHA-256 of the secret */
    struct str name;
};

struct store_project {
    uint64_t id, workspace;
    struct str name;
    uint64_t reports;     /* reports of it, exact */
    uint64_t scored;      /* those that have a score */
    uint64_t score_total; /* sum of their scores */
    int64_t created_at, updated_at;
    uint64_t
        version; /* 1 when created, one more with every transaction that changed it; CHANGE_PROJECT_DELETE matches against it */
};

struct store_report {
    uint64_t id, workspace, project;
    uint64_t version; /* 1 when created, one more with every change */
    enum report_status status;
    enum report_privacy privacy;
    enum report_result result;
    int score; /* 0–100, -1 until first done */
    unsigned issues_high, issues_medium, issues_low, issues_passed;
    uint32_t attempt; /* of the generation that runs or ran last */
    int64_t created_at, updated_at, generated_at;
    struct str url, project_name;
    struct str password_hash;             /* empty unless privacy is 2 */
    struct str error_code, error_message; /* empty unless status is failed */
    struct str
        results; /* the JSON object of the checks, `{}`-shaped; empty when not asked for or not there yet */
};

/* progress: ${done} of ${total} so far (records or pages). Return false to stop. */
typedef bool store_progress_fn(void *arg, uint64_t done, uint64_t total);

/* stage: ${what} begins: "the reports". Borrowed for the call. */
typedef void store_stage_fn(void *arg, const char *what);

enum store_mode { STORE_READ, STORE_WRITE };

struct store_options {
    const char
        *dir; /* an existing directory of mode 0700; with STORE_WRITE the files are made in it */
    uint64_t map_size; /* bytes; grows the map where it is larger than the stored one */
    unsigned max_readers;
    enum store_mode mode;
    bool must_exist; /* with STORE_WRITE: an empty directory is a lost disk, not a new store */
    /*
     * the scores from which a result is good, or decent. With ${rates} CHANGE_PURGE brings the results of reports that were graded by
     * others to these; without it results stay as they are.
     */
    bool rates;
    unsigned good, decent;
    /*
     * for tests: the most rows of a segment and of a chunk (a power of two), the length of a log
     * that is merged, the rows from which a workspace has segments; 0: as usual
     */
    uint32_t segment_rows, ngram_block_shift, log_entries, small_rows;
    uint64_t mapped_bytes; /* of segment files that this process maps at most; 0: no limit */
};

struct store;

/*
 * store_open(options, out, why, why_size):
 * Open the environment. STORE_WRITE also makes what is missing. STORE_OTHER_FORMAT: refused, and nothing is changed. On failure ${why}
 * says in one sentence what is wrong and what to do. store_close(NULL) does nothing.
 */
enum store_status store_open(const struct store_options *options, struct store **out, char *why,
                             size_t why_size) __attribute__((warn_unused_result));
void store_close(struct store *s);

/*
 * store_share(s, out, why, why_size): another reader of the environment of ${s}, for another thread,
 * with a snapshot and caches of its own, also where ${s} was opened with STORE_WRITE. One
 * thread at a time uses a struct store. Those of one environment may be closed in any order. On
 * failure ${why} is a sentence, as for store_open.
 */
enum store_status store_share(struct store *s, struct store **out, char *why, size_t why_size)
    __attribute__((warn_unused_result));

/* store_why(s): a sentence about the last STORE_IO, STORE_FULL or STORE_CORRUPT of this process; borrowed until the next call. */
const char *store_why(const struct store *s);

/* ---- reading (any process) ---- */

/* store_read_end(s): end the snapshot, if one is open; everything borrowed from it is gone. */
void store_read_end(struct store *s);

/*
 * store_version(s): the number of the last commit; while it stays, nothing in the store has changed. store_snapshot_version(s): the one the
 * open snapshot shows; 0 where none is open. So what was learnt from a snapshot holds as long as store_version still tells its number.
 */
uint64_t store_version(struct store *s);
uint64_t store_snapshot_version(const struct store *s);

/*
 * store_tidy(s): close answer files and unmap segment files that ${s} has open and that are not in
 * use any more; false: it has none open. Between snapshots.
 */
bool store_tidy(struct store *s);

typedef void store_workspace_fn(void *arg, enum store_status status,
                                const struct store_workspace *workspace);
typedef void store_key_fn(void *arg, enum store_status status, const struct store_key *key);
typedef void store_report_fn(void *arg, enum store_status status,
                             const struct store_report *report);
typedef void store_project_fn(void *arg, enum store_status status,
                              const struct store_project *project);

void store_workspace_get(struct store *s, uint64_t workspace, store_workspace_fn *done, void *arg);
void store_workspace_find(struct store *s, struct str name, store_workspace_fn *done, void *arg);
/*
 * store_workspace_each(s, each, arg): ${each} for every workspace by id, then once with STORE_NOT_FOUND and NULL. Likewise
 * store_key_each; workspace 0 is all.
 */
void store_workspace_each(struct store *s, store_workspace_fn *each, void *arg);
void store_key_each(struct store *s, uint64_t workspace, store_key_fn *each, void *arg);

/*
 * store_key_find(s, hash, done, arg): the key whose secret hashes to ${hash}, revoked and expired ones included: judging is the caller's.
 * store_key_get: by id.
 */
void store_key_find(struct store *s, const uint8_t hash[32], store_key_fn *done, void *arg);
void store_key_get(struct store *s, uint64_t id, store_key_fn *done, void *arg);

/* store_report_get(s, workspace, id, with_results, done, arg): one report; dying ones (of a project being deleted) are not found. */
void store_report_get(struct store *s, uint64_t workspace, uint64_t id, bool with_results,
                      store_report_fn *done, void *arg);

/* store_project_get / store_project_find: one project by id, by name. */
void store_project_get(struct store *s, uint64_t workspace, uint64_t id, store_project_fn *done,
                       void *arg);
void store_project_find(struct store *s, uint64_t workspace, struct str name,
                        store_project_fn *done, void *arg);

enum report_sort { REPORT_BY_ID, REPORT_BY_GENERATED_AT, REPORT_BY_URL, REPORT_BY_SCORE };
enum project_sort { PROJECT_BY_CREATED_AT, PROJECT_BY_NAME };

struct store_list_query {
    uint64_t workspace;
    struct str
        search; /* case-insensitive substring of the URL or name; empty: all. In URLs what is no ASCII is percent-encoded, so here too */
    unsigned sort; /* enum report_sort or project_sort */
    bool
        ascending; /* ties sort by id in the same direction; reports without a score or date sort below all others */
    uint64_t project;          /* reports only; 0: all */
    enum report_result result; /* reports only; RESULT_NONE: all */
    unsigned status;           /* reports only; enum report_status + 1; 0: all */
    uint64_t page;             /* from 1 */
    unsigned per_page;
    bool with_results; /* reports only */
    /*
     * Asked now and then, at least each millisecond where what is read is in memory. Where it says
     * true, or the size of the map has to change, the query stops: STORE_AGAIN. NULL: never.
     */
    store_pause_fn *pause;
    void *pause_arg;
};

#define STORE_PER_PAGE_MAX 1000

/* ${total}: exact count of all that match. ${items}: the page, at most per_page, borrowed until store_read_end. */
typedef void store_report_list_fn(void *arg, enum store_status status, uint64_t total,
                                  const struct store_report *items, size_t count);
typedef void store_project_list_fn(void *arg, enum store_status status, uint64_t total,
                                   const struct store_project *items, size_t count);
void store_report_list(struct store *s, const struct store_list_query *query,
                       store_report_list_fn *done, void *arg);
void store_project_list(struct store *s, const struct store_list_query *query,
                        store_project_list_fn *done, void *arg);

/* ---- jobs (writer, at its start and when it hands one out) ---- */

struct store_job {
    uint64_t workspace, report;
    uint32_t attempt;
    uint32_t deaths; /* auditors that died while they held it alone */
    struct str url;
};
typedef void store_job_fn(void *arg, const struct store_job *job);
/* store_job_each(s, each, arg): every pending job, oldest first. store_job_get: one; false when it is gone. */
enum store_status store_job_each(struct store *s, store_job_fn *each, void *arg);
bool store_job_get(struct store *s, uint64_t report, struct store_job *out);

/* ---- writing (writer only) ---- */

struct store_txn;

/* What a commit changed that others wait for. */
enum store_event_kind {
    EVENT_REPORT_FINISHED = 1, /* done or failed */
    EVENT_REPORT_DELETED,
    EVENT_JOB_ADDED,   /* value: attempt */
    EVENT_KEY_REVOKED, /* or rotated: look it up again */
    EVENT_WORKSPACE_DELETED,
    EVENT_AGENT_CHANGED, /* or deleted. id, value: the halves of its ULID */
    EVENT_CONVERSATION, /* something of it changed, a message came, it is gone. id, value: likewise */
    EVENT_PURGE,        /* CHANGE_PURGE should be applied until it answers STORE_NOT_FOUND */
    /* no commit's: the writer's greeting. From here on a worker hears of every commit; what came before is in the store by now */
    EVENT_FEED_BEGINS,
    EVENT_PROJECT_DELETED,
    EVENT_ANSWERS, /* the log of changed documents has more: answers_log.h. For the writer's process */
    EVENT_MAINTENANCE, /* something is dying, or an index of reports is due: maintenance.h. For the writer's process */
};
struct store_event {
    uint64_t kind; /* enum store_event_kind; travels as it is, so there is no padding */
    uint64_t workspace, id, value;
};

/*
 * The answer to a change, small and fixed so that it can be kept for a sender that must ask again. ${id}, ${version}: the record's, where
 * there is one.
 */
struct store_answer {
    uint32_t status; /* enum store_status */
    uint32_t
        replayed; /* an idempotency key was seen before: ${id} is the first request's record, ${code} its HTTP status */
    uint32_t code;
    uint64_t id, version;
    struct ulid first, second; /* of a widget's change: see its row in change.h */
};

/*
 * store_begin → store_apply… → store_commit or store_abort.
 * store_apply judges first and writes after, so that an operation that answers other than STORE_OK changed nothing; only STORE_FULL,
 * STORE_IO and STORE_CORRUPT can happen half-way, stick in the transaction (store_txn_error) and make store_commit fail: the caller then
 * aborts and applies the batch again one change at a time. store_commit has fsynced when it returns STORE_OK; either way it ends the
 * transaction.
 */
enum store_status store_begin(struct store *s, struct store_txn **out)
    __attribute__((warn_unused_result));
void store_apply(struct store_txn *t, const struct store_change *change, int64_t now_ms,
                 struct store_answer *answer);
enum store_status store_txn_error(const struct store_txn *t);
enum store_status store_commit(struct store_txn *t) __attribute__((warn_unused_result));
void store_abort(struct store_txn *t);

/*
 * store_txn_pause(t, pause, arg): work in the background (CHANGE_PURGE, CHANGE_PURGE_DELETED,
 * CHANGE_INDEX_SWEEP, CHANGE_RETAIN) in this transaction ends where that says true: it is asked
 * after each record, and what is left is for the next one.
 */
void store_txn_pause(struct store_txn *t, store_pause_fn *pause, void *arg);

/* store_events(s, count): what the last commit changed; borrowed until the next store_begin. */
const struct store_event *store_events(const struct store *s, size_t *count);

/*
 * Exactly once. A channel is one sender of changes (a worker's life, a command). Each commit notes, for every channel it served, the
 * highest sequence number applied and the answers the sender has not confirmed yet (opaque bytes). store_channel_get reads them back
 * inside the transaction (borrowed until the next write in it).
 */
void store_channel_note(struct store_txn *t, uint64_t channel, uint64_t sequence,
                        struct str answers);
enum store_status store_channel_get(struct store_txn *t, uint64_t channel, uint64_t *sequence,
                                    struct str *answers);
void store_channel_drop(struct store_txn *t, uint64_t channel);
typedef void store_channel_fn(void *arg, uint64_t channel, uint64_t sequence);
void store_channel_each(struct store_txn *t, store_channel_fn *each, void *arg);

/* ---- keeping ---- */

/*
 * store_space(s, out): how much of the map and of the readers' table is in use; cheap. store_usage(s, out): that, and how many records there are, which walks
 * the smaller spaces.
 */
struct store_space {
    uint64_t map_bytes;   /* size of the map */
    uint64_t used_bytes;  /* pages in use, free ones within not counted */
    uint64_t index_bytes; /* of the segment files beside the map */
    uint64_t last_transaction;
    unsigned readers, max_readers;
};
struct store_usage {
    struct store_space room;
    uint64_t workspaces, keys, projects, reports, jobs;
};
enum store_status store_space(struct store *s, struct store_space *out);
enum store_status store_usage(struct store *s, struct store_usage *out);
/* store_is_full(s): would a create be refused now, for want of room in the map or on the disk? */
bool store_is_full(struct store *s);

/*
 * store_mapped_file(s, at, path, size): the path of the segment file that the process has mapped at
 * that address; false: none. For a handler of SIGBUS in the thread that reads there: no locks.
 */
bool store_mapped_file(const struct store *s, const void *at, char *path, size_t size);

/*
 * store_lost_segment(s): after STORE_DAMAGED, the number of that segment. A CHANGE_INDEX_LOST with
 * it has the index rebuilt.
 */
uint64_t store_lost_segment(const struct store *s);

/*
 * store_maintenance_status(s, out): what CHANGE_PURGE has left to do: ${what} is "" when nothing is under way, else a word for people ("purging");
 * ${done} of ${total} records of it.
 */
struct store_maintenance_status {
    const char *what;
    uint64_t done, total;
};
enum store_status store_maintenance_status(struct store *s, struct store_maintenance_status *out);

/* store_reader_check(s): free the slots of dead readers; how many. Call after any process died. */
unsigned store_reader_check(struct store *s);

/*
 * store_on_stage(s, stage, arg): from now on store_check and store_backup tell which part of their work begins, as what they look at:
 * "the reports". A damaged page can end the process inside LMDB; whoever watches it then knows where.
 */
void store_on_stage(struct store *s, store_stage_fn *stage, void *arg);

/*
 * store_backup(s, dir, progress, arg): a consistent copy, compacted, into the existing empty directory ${dir}; fsynced. Any process; runs
 * beside the writer.
 */
enum store_status store_backup(struct store *s, const char *dir, store_progress_fn *progress,
                               void *arg);

/*
 * store_rebuild(s, all): build the indexes of reports that have segment files anew from the
 * reports; with ${all} everything that follows from records. ${s} is open with STORE_WRITE, and no
 * server runs. ${progress}, where not NULL, is asked between two steps, of unknown number; STORE_AGAIN: it said false.
 * What is left then, or after a kill, the server rebuilds.
 */
enum store_status store_rebuild(struct store *s, bool all, store_progress_fn *progress, void *arg);

/*
 * store_maintain(s, progress, arg): all that maintenance (maintenance.h) has to do. Likewise, while
 * no server runs. ${progress}: reports of what is under way.
 */
enum store_status store_maintain(struct store *s, store_progress_fn *progress, void *arg);

/*
 * store_restore(from, to, why, why_size): put the backup in ${from} in place as the store of ${to}: its records are checked and its indexes of
 * reports are built first, then one rename; what was in ${to} is kept, see store_keep_replaced.
 * No server may run, nor another restore; both hold the lock of ${to} (core/client.h). It works in restore.part below ${to}; what one that was
 * killed left there goes.
 */
/*
 * store_keep_replaced(path): the file gets a second name, PATH.before-restore; the file that had the
 * name is PATH.before-restore-1, or the next number that is free. 0, also when there is none, or errno.
 */
int store_keep_replaced(const char *path);
void store_restore_clear(const char *to); /* restore.part of one that was killed */
enum store_status store_restore(const char *from, const char *to, store_progress_fn *progress,
                                void *arg, char *why, size_t why_size);

/*
 * store_check(s, progress, problem, arg, records): walk every record against every index and every counter, and every index against its
 * record. Each contradiction is one call of ${problem} with a sentence. Works beside a running writer: walks in slices with renewed
 * snapshots and looks at suspects again.
 */
typedef void store_problem_fn(void *arg, const char *sentence);
enum store_status store_check(struct store *s, store_progress_fn *progress,
                              store_problem_fn *problem, void *arg, uint64_t *records);
/* store_check_records(…): likewise, without the indexes of reports. */
enum store_status store_check_records(struct store *s, store_progress_fn *progress,
                                      store_problem_fn *problem, void *arg, uint64_t *records);

#endif
