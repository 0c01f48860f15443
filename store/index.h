/*
 * What lists walk: for each report one entry per sort in its workspace's scope and one in its project's. Private to store/.
 *
 * A key is a tag byte (kind, scope, class), the scope's id, what is sorted by, and the report's id. The class is the report's result, so
 * that a list filtered by result is a walk, and one that is not merges four walks. Reports that were never done (RESULT_NONE) have no
 * date and no score: in lists sorted by these they come from the entries by id, below all others. The value is the project's id in the
 * workspace's scope, nothing in a project's.
 *
 * By URL: LMDB's keys are short, so a URL is cut into segments. An entry "segment 0x00 id" ends one; a full segment and 0x01 leads to a
 * node, whose entries begin with its number, and keeps how many URLs go through it. The first node is 0. So the order of the keys is the
 * order of the URLs, however long.
 */
#ifndef ASSAY_STORE_INDEX_H
#define ASSAY_STORE_INDEX_H

#include "internal.h"

enum index_kind { INDEX_ID = 1, INDEX_DATE, INDEX_SCORE, INDEX_URL };
enum index_scope { SCOPE_WORKSPACE, SCOPE_PROJECT };

#define INDEX_SEGMENT_BYTES ((size_t)440)
#define INDEX_LEVELS (URL_MAX_BYTES / INDEX_SEGMENT_BYTES + 2)

struct PACKED index_node {
    uint64_t node, urls;
};

/* index_prefix(k, kind, scope, scope_id, class): begin a key. */
void index_prefix(struct key *k, enum index_kind kind, enum index_scope scope, uint64_t scope_id, enum report_result class);

struct index_entry {
    unsigned group; /* 0: below all others */
    uint64_t value; /* date or score; 0 by id and by URL */
    struct str url; /* by URL only; borrowed until the next step */
    uint64_t id;
    uint64_t project; /* in a workspace's scope */
};

/* One class of one index. */
struct index_run {
    struct walk levels[INDEX_LEVELS]; /* deeper ones for long URLs */
    size_t depth;
    enum store_status status;
    enum index_kind kind;
    enum index_scope scope;
    unsigned group;
    struct index_entry entry;
    size_t path_n[INDEX_LEVELS]; /* bytes of the URL above each level */
    char path[URL_MAX_BYTES + INDEX_SEGMENT_BYTES];
};

/* Several runs merged. Large: never on the stack of a small thread. */
struct index_walk {
    struct store *s;
    MDB_txn *txn;
    bool backward;
    size_t count;
    struct index_run *last; /* the one whose entry was handed out */
    struct index_run runs[CLASSES];
};

/*
 * index_begin(s, txn, w, sort, scope, scope_id, result, ascending): ready to step. index_next(w, entry): STORE_OK and the next one
 * (borrowed until the next step), STORE_NOT_FOUND at the end. index_end(w): safe at any time after a begin.
 */
void index_begin(struct store *s, MDB_txn *txn, struct index_walk *w, enum report_sort sort, enum index_scope scope, uint64_t scope_id,
                 enum report_result result, bool ascending);
enum store_status index_next(struct index_walk *w, struct index_entry *entry);
void index_end(struct index_walk *w);

/*
 * index_key(s, txn, r, scope, kind, out): the key that ${r}'s entry must have; STORE_NOT_FOUND where a node on the way is not there. For
 * store_check.
 */
enum store_status index_key(struct store *s, MDB_txn *txn, const struct store_report *r, enum index_scope scope, enum index_kind kind,
                            struct key *out);

#endif
