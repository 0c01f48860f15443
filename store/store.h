/*
 * The store: every record of Assay, in one LMDB environment under data_dir.
 *
 * Callers: workers and the command line open it with STORE_READ and call the readers. The writer
 * process (or the command line while no server runs) opens it with STORE_WRITE and applies changes
 * between store_begin and store_commit. A process opens one environment once, after the fork;
 * further threads share it (store_share). The store logs nothing and reads no clock: it returns
 * codes, and takes the time as an argument.
 *
 * Reads: each operation calls its callback exactly once, before it returns. Callers must not rely
 * on the order, so that a store on a network remains possible. The first read after store_read_end
 * begins a snapshot; the following reads share it. Values handed to a callback are borrowed until
 * store_read_end, which must be called before the event loop or the query thread continues with
 * other work.
 */
#ifndef ASSAY_STORE_H
#define ASSAY_STORE_H

#include "store/bytes.h"
#include "store/change.h"

#define STORE_RESULTS_MAX 65536 /* bytes of a report's results: an object of JSON */

/* Format of the records on disk. A store of another format is refused. */
#ifndef STORE_FORMAT_VERSION
#define STORE_FORMAT_VERSION 1
#endif
#define STORE_LAYOUT 9 /* layout within an unreleased format: incremented with each change */

enum store_status {
    STORE_OK,
    STORE_NOT_FOUND,     /* no such record, or it belongs to another workspace */
    STORE_EXISTS,        /* the name is taken */
    STORE_PRECONDITION,  /* If-Match does not match the version */
    STORE_KEY_REUSED,    /* the idempotency key was used with another body */
    STORE_NO_PASSWORD,   /* privacy 2 needs a password */
    STORE_NOT_PROTECTED, /* a password needs privacy 2 */
    STORE_QUEUE_FULL,    /* the workspace has its maximum of pending jobs */
    STORE_STALE,         /* results of an older attempt, or of a deleted report */
    STORE_FULL,          /* the map, the disk, or the limit of file sizes is exhausted */
    STORE_BUSY,          /* all slots of the reader table are taken */
    STORE_OTHER_FORMAT,  /* the format is not STORE_FORMAT_VERSION */
    STORE_INVALID,       /* malformed argument or change */
    STORE_CORRUPT,       /* a record is not well-formed */
    STORE_AGAIN,         /* the query was stopped: repeat it after store_read_end */
    STORE_IO,            /* an error of the disk or the system: store_why */
    STORE_TOO_MANY,      /* the maximum number is reached */
    STORE_REBUILDING,    /* the index of the workspace's reports is being rebuilt */
    STORE_DAMAGED,       /* that index of reports is damaged: store_lost_segment */
    STORE_AWAY,          /* no node of the cluster leads: nothing was changed */
    STORE_STATUSES
};

/* store_status_text(status): a short English phrase, static. */
const char *store_status_text(enum store_status status);

#include "store/synced.h"
#include "store/answers_log.h"

/*
 * store_stop_fn(arg): must the work stop here? Called between parts of well under a millisecond
 * each, if the data is in memory.
 */
typedef bool store_stop_fn(void *arg);

#include "store/lookup.h"
#include "store/widget.h"

enum report_status { REPORT_PENDING, REPORT_DONE, REPORT_FAILED };
enum report_privacy { PRIVACY_PUBLIC, PRIVACY_PRIVATE, PRIVACY_PASSWORD };

/* Scopes of a credential, as bits. */
enum scope {
    SCOPE_REPORTS_READ = 1 << 0,
    SCOPE_REPORTS_WRITE = 1 << 1,
    SCOPE_PROJECTS_READ = 1 << 2,
    SCOPE_PROJECTS_WRITE = 1 << 3,
    SCOPE_CONVERSATIONS_READ = 1 << 4,
    SCOPE_CONVERSATIONS_WRITE = 1 << 5,
    SCOPE_WP_SYNC = 1 << 6,
    /* not a scope: requests of this workspace token must be signed */
    SCOPE_SIGNED = 1 << 30,
};

/*
 * A credential with SCOPE_WP_SYNC is a workspace token and has no other scope. All others are API
 * keys.
 */
static inline bool scopes_of_token(uint32_t scopes)
{
    return (scopes & SCOPE_WP_SYNC) != 0;
}

/* Times are milliseconds since the epoch, UTC; 0 means never. */
struct store_workspace {
    uint64_t id;
    struct str name;
    int64_t created_at;
    uint64_t version; /* increases with every change of a report or project in it */
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
    uint64_t reports;     /* exact number */
    uint64_t scored;      /* reports with a score */
    uint64_t score_total; /* sum of their scores */
    int64_t created_at, updated_at;
    uint64_t version; /* 1 when created, incremented by every transaction that changes it */
};

struct store_report {
    uint64_t id, workspace, project;
    uint64_t version; /* 1 when created, incremented by every change */
    enum report_status status;
    enum report_privacy privacy;
    enum report_result result;
    int score; /* 0–100, -1 until first done */
    unsigned issues_high, issues_medium, issues_low, issues_passed;
    uint32_t attempt; /* of the current or last grading */
    int64_t created_at, updated_at, generated_at;
    struct str url, project_name;
    struct str password_hash;             /* empty unless privacy is 2 */
    struct str error_code, error_message; /* empty unless status is failed */
    struct str results;                   /* JSON object; empty if not requested or not graded */
};

/* store_progress_fn: ${done} of ${total} records or pages. Return false to stop. */
typedef bool store_progress_fn(void *arg, uint64_t done, uint64_t total);

/* store_stage_fn: ${what} begins, for example "the reports". Borrowed for the call. */
typedef void store_stage_fn(void *arg, const char *what);

enum store_mode { STORE_READ, STORE_WRITE };

struct store_options {
    const char *dir;   /* an existing directory of mode 0700 */
    uint64_t map_size; /* bytes; the map grows to it, and never shrinks */
    unsigned max_readers;
    enum store_mode mode;
    /* with STORE_WRITE: refuse an empty directory, which may be an unmounted disk */
    bool must_exist;
    /*
     * Lowest scores of the results "good" and "decent". With ${rates} CHANGE_PURGE updates the
     * results of reports that were graded by other thresholds; without it results do not change.
     */
    bool rates;
    unsigned good, decent;
    /*
     * For tests: maximum rows of a segment and (a power of two) of an n-gram block, length of a log
     * that is merged, rows from which a workspace has segments. 0: the default.
     */
    uint32_t segment_rows, ngram_block_shift, log_entries, small_rows;
    uint64_t mapped_bytes; /* of segment files: the most that this process maps; 0: no limit */
};

struct store;

/*
 * store_open(options, out, why, why_size): open the environment; with STORE_WRITE create what is
 * missing. STORE_OTHER_FORMAT: refused, nothing is changed. On failure ${why} is one sentence: what
 * is wrong and what to do. store_close(NULL) does nothing.
 */
enum store_status store_open(const struct store_options *options, struct store **out, char *why,
                             size_t why_size) __attribute__((warn_unused_result));
void store_close(struct store *s);

/*
 * store_share(s, out, why, why_size): another reader of the environment of ${s}, for another
 * thread, with its own snapshot and caches. ${s} may be open with STORE_WRITE. A struct store
 * belongs to one thread at a time. Those of one environment may be closed in any order.
 */
enum store_status store_share(struct store *s, struct store **out, char *why, size_t why_size)
    __attribute__((warn_unused_result));

/*
 * store_why(s): a sentence about the last STORE_IO, STORE_FULL or STORE_CORRUPT; borrowed until the
 * next call.
 */
const char *store_why(const struct store *s);

/* ---- reading (any process) ---- */

/* store_read_end(s): end the snapshot, if one is open, and with it everything borrowed from it. */
void store_read_end(struct store *s);

/*
 * store_version(s): the number of the last commit; while it does not change, the store does not.
 * store_snapshot_version(s): the number that the open snapshot shows; 0: none is open. What a
 * caller read from a snapshot is valid while store_version returns its number.
 */
uint64_t store_version(struct store *s);
uint64_t store_snapshot_version(const struct store *s);

/*
 * store_tidy(s): close answer files and unmap segment files of ${s} that are no longer current, and
 * compare some mapped blocks with their checksums again, all of them in STORE_TIDY_TURNS calls;
 * false: it has no file open. Between snapshots.
 */
#define STORE_TIDY_TURNS 720 /* an hour, if called every 5 s */
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
 * store_workspace_each(s, each, arg): ${each} for every workspace by id, then once with
 * STORE_NOT_FOUND and NULL. store_key_each: the same for keys; workspace 0: of all.
 */
void store_workspace_each(struct store *s, store_workspace_fn *each, void *arg);
void store_key_each(struct store *s, uint64_t workspace, store_key_fn *each, void *arg);

/*
 * store_key_find(s, hash, done, arg): the key whose secret has this hash, also a revoked or expired
 * one: the caller checks that. store_key_get: by id.
 */
void store_key_find(struct store *s, const uint8_t hash[32], store_key_fn *done, void *arg);
void store_key_get(struct store *s, uint64_t id, store_key_fn *done, void *arg);

/*
 * store_report_get(s, workspace, id, with_results, done, arg): STORE_NOT_FOUND also if its project
 * is being deleted. STORE_ANY_WORKSPACE: for pages, which the privacy of the report protects.
 */
#define STORE_ANY_WORKSPACE 0
void store_report_get(struct store *s, uint64_t workspace, uint64_t id, bool with_results,
                      store_report_fn *done, void *arg);

/*
 * store_grading_list(s, workspace, report, query, done, arg): gradings of a report, newest first:
 * those with numbers below ${before} (0: from the newest), at most ${limit}. ${items} is borrowed
 * for the call, its texts until store_read_end. STORE_NOT_FOUND as in store_report_get; a report
 * without a score has no gradings.
 *
 * A report that has a score always has a grading: if the store has no row of it, its numbers are
 * those of the report's record, its facts are unknown, and ${failed} is empty.
 */
struct store_gradings_query {
    uint32_t before;
    unsigned limit; /* at most STORE_GRADINGS_MAX are read */
};
typedef void store_grading_list_fn(void *arg, enum store_status status,
                                   const struct store_grading *items, size_t count);
void store_grading_list(struct store *s, uint64_t workspace, uint64_t report,
                        const struct store_gradings_query *query, store_grading_list_fn *done,
                        void *arg);

/* One project, by id or by name. */
void store_project_get(struct store *s, uint64_t workspace, uint64_t id, store_project_fn *done,
                       void *arg);
void store_project_find(struct store *s, uint64_t workspace, struct str name,
                        store_project_fn *done, void *arg);

enum report_sort { REPORT_BY_ID, REPORT_BY_GENERATED_AT, REPORT_BY_URL, REPORT_BY_SCORE };
enum project_sort { PROJECT_BY_CREATED_AT, PROJECT_BY_NAME };

struct store_list_query {
    uint64_t workspace;
    struct str
        /*
         * Case-insensitive substring of the URL or name; empty: all. Non-ASCII characters match
         * their percent-encoding in URLs.
         */
        search;
    unsigned sort; /* enum report_sort or project_sort */
    bool
        /* ties: by id in the same direction. Reports without score or date sort lowest. */
        ascending;
    uint64_t project;          /* reports only; 0: all */
    enum report_result result; /* reports only; RESULT_NONE: all */
    unsigned status;           /* reports only; enum report_status + 1; 0: all */
    uint64_t page;             /* from 1 */
    unsigned per_page;
    bool with_results; /* reports only */
    /*
     * Called at least each millisecond, if the data is in memory. When it returns true, or the size
     * of the map must change, the query ends with STORE_AGAIN. NULL: never.
     */
    store_stop_fn *stop;
    void *stop_arg;
};

#define STORE_PER_PAGE_MAX 1000

/*
 * ${total}: exact number of matches. ${items}: the page, at most per_page, borrowed until
 * store_read_end.
 */
typedef void store_report_list_fn(void *arg, enum store_status status, uint64_t total,
                                  const struct store_report *items, size_t count);
typedef void store_project_list_fn(void *arg, enum store_status status, uint64_t total,
                                   const struct store_project *items, size_t count);
void store_report_list(struct store *s, const struct store_list_query *query,
                       store_report_list_fn *done, void *arg);
void store_project_list(struct store *s, const struct store_list_query *query,
                        store_project_list_fn *done, void *arg);

/*
 * store_signing_keys(s, out): the sealed signing keys of a cluster (CHANGE_SIGNING_KEYS), borrowed
 * until store_read_end. STORE_NOT_FOUND: there are none.
 */
enum store_status store_signing_keys(struct store *s, struct str *out);

/* ---- jobs (the writer, at its start and when it assigns one) ---- */

struct store_job {
    uint64_t workspace, report;
    uint32_t attempt;
    uint32_t deaths; /* auditors that died while they held it alone */
    struct str url;
};
typedef void store_job_fn(void *arg, const struct store_job *job);
/*
 * store_job_each(s, each, arg): every pending job, oldest first. store_job_get: one; false: it is
 * gone.
 */
enum store_status store_job_each(struct store *s, store_job_fn *each, void *arg);
bool store_job_get(struct store *s, uint64_t report, struct store_job *out);

/* ---- writing (writer only) ---- */

struct store_txn;

/* What a commit changed, for those who wait for it. */
enum store_event_kind {
    EVENT_REPORT_FINISHED = 1, /* done or failed */
    EVENT_REPORT_DELETED,
    EVENT_JOB_ADDED,   /* value: attempt */
    EVENT_KEY_REVOKED, /* or rotated: read it again */
    EVENT_WORKSPACE_DELETED,
    EVENT_AGENT_CHANGED, /* or deleted. id, value: halves of its ULID */
    EVENT_CONVERSATION,  /* changed, new message, or deleted. id, value: halves of its ULID */
    EVENT_PURGE,         /* apply CHANGE_PURGE until it returns STORE_NOT_FOUND */
    /*
     * Not of a commit: sent when a worker connects. It hears of every later commit; earlier ones
     * are in the store.
     */
    EVENT_FEED_BEGINS,
    EVENT_PROJECT_DELETED,
    /* the log of changed documents has new rows: answers_log.h. For the writer process */
    EVENT_ANSWERS,
    EVENT_MAINTENANCE,  /* a deletion or a merge is due: maintenance.h. For the writer process */
    EVENT_SIGNING_KEYS, /* store_signing_keys has others. For the writer process */
    /* Not of a commit: to a worker that waits for the log of the cluster: it has news. */
    EVENT_POSITION,
};
struct store_event {
    uint64_t kind; /* enum store_event_kind; 64 bits, so that the struct has no padding */
    uint64_t workspace, id, value;
};

/*
 * Answer to a change, of fixed size, so that it can be kept for a sender that repeats its request.
 * ${id}, ${version}: of the record, if there is one.
 */
struct store_answer {
    uint32_t status; /* enum store_status */
    uint32_t
        /* the idempotency key is known: ${id} is the first request's record, ${code} its status */
        replayed;
    uint32_t code;
    uint64_t id, version;
    struct ulid first, second; /* see the change in change.h */
};

/*
 * store_begin → store_apply… → store_commit or store_abort.
 *
 * store_apply checks first and writes after, so a status other than STORE_OK means that nothing
 * changed. Only STORE_FULL, STORE_IO and STORE_CORRUPT can occur half-way: they stay in the
 * transaction (store_txn_error) and make store_commit fail. The caller then applies the batch
 * again in smaller parts. After STORE_OK from store_commit the data is on disk (fsync).
 * Either way store_commit ends the transaction.
 */
enum store_status store_begin(struct store *s, struct store_txn **out)
    __attribute__((warn_unused_result));
void store_apply(struct store_txn *t, const struct store_change *change, int64_t now_ms,
                 struct store_answer *answer);
enum store_status store_txn_error(const struct store_txn *t);
enum store_status store_commit(struct store_txn *t) __attribute__((warn_unused_result));
void store_abort(struct store_txn *t);

/*
 * store_txn_stop_when(t, stop, arg): background work of this transaction (CHANGE_PURGE,
 * CHANGE_PURGE_DELETED, CHANGE_INDEX_SWEEP, CHANGE_RETAIN) ends when ${stop} returns true. It is
 * called after each record; the next transaction continues.
 */
void store_txn_stop_when(struct store_txn *t, store_stop_fn *stop, void *arg);

/* store_events(s, count): events of the last commit; borrowed until the next store_begin. */
const struct store_event *store_events(const struct store *s, size_t *count);

/*
 * Exactly once. A sender of changes is a worker process or a command. Each commit stores
 * for every sender the highest sequence number applied, and the answers that it has not
 * confirmed (opaque bytes). store_sender_get reads them inside the transaction, borrowed until the
 * next write.
 */
void store_sender_note(struct store_txn *t, uint64_t sender, uint64_t sequence, struct str answers);
enum store_status store_sender_get(struct store_txn *t, uint64_t sender, uint64_t *sequence,
                                   struct str *answers);
void store_sender_drop(struct store_txn *t, uint64_t sender);
typedef void store_sender_fn(void *arg, uint64_t sender, uint64_t sequence);
void store_sender_each(struct store_txn *t, store_sender_fn *each, void *arg);

/* ---- maintenance, backup, checks ---- */

/*
 * store_space(s, out): usage of the map and of the reader table; cheap. store_usage(s, out): also
 * the number of records, which walks the smaller spaces.
 */
struct store_space {
    uint64_t map_bytes;    /* size of the map */
    uint64_t used_bytes;   /* pages in use, without free ones */
    uint64_t index_bytes;  /* of the segment files */
    uint64_t growth_bytes; /* that creates may still use; a lower bound while there are many */
    uint64_t last_transaction;
    unsigned readers, max_readers;
};
struct store_usage {
    struct store_space space;
    uint64_t workspaces, keys, projects, reports, jobs;
};
enum store_status store_space(struct store *s, struct store_space *out);
enum store_status store_usage(struct store *s, struct store_usage *out);
/*
 * store_refuse_growth(s, refuse): creates are refused as in a full store: another node of the
 * cluster has no space for them. For the writer.
 */
void store_refuse_growth(struct store *s, bool refuse);
/* store_is_full(s): would a create be refused, because the map or the disk is full? */
bool store_is_full(struct store *s);
/*
 * store_release_pages(s): after the STORE_FULL of a transaction with one change: true: only
 * snapshots, or the last transaction, keep pages that it needs. Apply the change again soon.
 */
bool store_release_pages(struct store *s);

/*
 * store_mapped_file(s, at, path, size): path of the segment file that the process has mapped at
 * that address; false: none. For a SIGBUS handler in the reading thread: takes no locks.
 */
bool store_mapped_file(const struct store *s, const void *at, char *path, size_t size);

/*
 * store_lost_segment(s): after STORE_DAMAGED, the number of the missing or damaged segment; 0: the
 * index contradicts the reports. CHANGE_INDEX_LOST with it rebuilds the index.
 */
uint64_t store_lost_segment(const struct store *s);

/*
 * store_maintenance_status(s, out): what CHANGE_PURGE has left to do: ${what} is "" or a word for
 * people ("rating"); ${done} of ${total} records.
 */
struct store_maintenance_status {
    const char *what;
    uint64_t done, total;
};
enum store_status store_maintenance_status(struct store *s, struct store_maintenance_status *out);

/*
 * store_reader_check(s): free the reader slots of dead processes; returns how many. Call after a
 * process died.
 */
unsigned store_reader_check(struct store *s);

/*
 * store_on_stage(s, stage, arg): store_check and store_backup report each part of their work. A
 * damaged page can end the process inside LMDB; the last stage then tells where.
 */
void store_on_stage(struct store *s, store_stage_fn *stage, void *arg);

/*
 * store_backup(s, dir, progress, arg): write a consistent, compacted copy into the empty directory
 * ${dir}, with fsync. Any process; runs beside the writer.
 */
enum store_status store_backup(struct store *s, const char *dir, store_progress_fn *progress,
                               void *arg);

/*
 * store_copy(s, put, arg): the contents of the data.mdb of a backup, piece by piece in order.
 * ${put}: 0, or an errno, which ends the copy with STORE_IO. Any thread with a struct store. A slow
 * copy keeps pages in use: STORE_FULL: the writer needs them.
 */
typedef int store_copy_fn(void *arg, const void *piece, size_t n);
enum store_status store_copy(struct store *s, store_copy_fn *put, void *arg);

/*
 * store_rebuild(s, all, progress, arg): rebuild the indexes of reports that have segment files;
 * with ${all} everything that follows from records. ${s} is open with STORE_WRITE, and no server
 * runs. ${progress} may be NULL; the total is unknown. STORE_AGAIN: it returned false. What is left
 * then, or after a kill, stays as it was with ${all}; without, the server rebuilds it.
 */
enum store_status store_rebuild(struct store *s, bool all, store_progress_fn *progress, void *arg);

/* store_maintain(s, progress, arg): do all the work of maintenance.h, while no server runs. */
enum store_status store_maintain(struct store *s, store_progress_fn *progress, void *arg);

/*
 * store_restore(from, to, progress, arg, why, why_size): make the backup in ${from} the store in
 * ${to}. Checks its records and builds its indexes first, then renames it into place. The replaced
 * data.mdb is kept: store_keep_replaced. No server and no other restore may run: the caller holds
 * the lock of ${to} (core/base/data_lock.h). Works in restore.part below ${to}, after deleting
 * an older one.
 */
/*
 * store_keep_replaced(path): give the file the second name PATH.before-restore; a file of that name
 * becomes PATH.before-restore-1, or the next free number. 0, also if there is none, or errno.
 */
int store_keep_replaced(const char *path);
void store_restore_clear(const char *to); /* delete restore.part of a killed restore */
enum store_status store_restore(const char *from, const char *to, store_progress_fn *progress,
                                void *arg, char *why, size_t why_size);

/*
 * A restore of a copy that arrives over a network, so that it needs space once.
 * store_receive(to, path, why, why_size): delete restore.part below ${to} and make it. The caller
 * writes the copy as ${path}, with fsync, and then:
 * store_received(from, to, progress, arg, why, why_size): go on as store_restore; ${from}: what
 * sentences call the backup. Without it store_restore_clear deletes the copy.
 */
#define STORE_PATH_BYTES (4096 + 128)
enum store_status store_receive(const char *to, char path[STORE_PATH_BYTES], char *why,
                                size_t why_size);
enum store_status store_received(const char *from, const char *to, store_progress_fn *progress,
                                 void *arg, char *why, size_t why_size);

/*
 * store_check(s, progress, problem, arg, records): check every record against its derived rows and
 * counters, and the reverse. Calls ${problem} with a sentence for each contradiction. Runs beside a
 * writer, with a new snapshot for each batch. STORE_CORRUPT: there were problems.
 */
typedef void store_problem_fn(void *arg, const char *sentence);
enum store_status store_check(struct store *s, store_progress_fn *progress,
                              store_problem_fn *problem, void *arg, uint64_t *records);
/*
 * store_on_lost(s, lost, arg): store_check calls ${lost} for each index of reports that must be
 * rebuilt, possibly several times, with the id for CHANGE_INDEX_LOST: a segment, or 0.
 */
typedef void store_lost_fn(void *arg, uint64_t workspace, uint64_t id);
void store_on_lost(struct store *s, store_lost_fn *lost, void *arg);
/* store_check_records(…): the same without the indexes of reports. */
enum store_status store_check_records(struct store *s, store_progress_fn *progress,
                                      store_problem_fn *problem, void *arg, uint64_t *records);

#endif
