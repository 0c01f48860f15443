/*
 * Long parts of indexes lie beside data.mdb, in parts.dat, each in an extent: pages side by side. Private to store/.
 *
 *   put    an extent is written → the row of its space (SPACE_PART) says where → commit, synced
 *   before what names it
 *   get    the row → its bytes in the map of the file
 *   gone   the row is deleted → commit → no snapshot has it any more, and no power cut brings it back → it is free
 *
 * Why not in LMDB: a value of many pages needs them side by side, so after a large purge LMDB looks for them through every free page there
 * is, and has the list of all of these written again by each later commit. Here what is free is known in memory alone: it is all that no
 * row names, so nothing of it can be lost, and a writer that was killed leaves nothing to mend.
 *
 * A row is short where it names an extent. Else it is the part itself: a short one, or any in a backup, which is
 * data.mdb alone.
 *
 * Which of both files belong together is told by a number in both (SPACE_META 'p', and the first page of parts.dat).
 */
#ifndef ASSAY_EXTENT_H
#define ASSAY_EXTENT_H

#include "internal.h"

/* extent_open(s, why, why_size): the writer's part of it: parts.dat is made where the store has none. extent_close(s): at the end. */
enum store_status extent_open(struct store *s, char *why, size_t why_size);
void extent_close(struct store *s);

/* extent_get(s, txn, space, key, out): as store_get, with the bytes wherever they are; borrowed as those of the map are. */
enum store_status extent_get(struct store *s, MDB_txn *txn, enum space space, struct key *key, MDB_val *out);

/*
 * extent_put(t, space, key, pieces, count): a part, in place of what was there: the pieces one behind the other. A part of the reports' index
 * that is short ends in zeros, so that it has a page of its own.
 */
void extent_put(struct store_txn *t, enum space space, struct key *key, const struct str *pieces, size_t count);

/* extent_gone(t, space, key): its row is about to go, if there is one; any space. */
void extent_gone(struct store_txn *t, enum space space, struct key *key);

/*
 * extent_unsettled(s): was something put that is not synced? extent_settle(s): between transactions, sync it, so that the one that names it
 * need not. 0, or the system's number: what was put since the last sync may be lost then, and no later sync tells.
 */
bool extent_unsettled(const struct store *s);
int extent_settle(struct store *s);

/*
 * Around a commit. extent_sync(t): 0, or the system's number; before it. extent_committed(t, txn), extent_aborted(t): after it, ${txn} is
 * LMDB's number of it.
 */
int extent_sync(struct store_txn *t);
void extent_committed(struct store_txn *t, size_t txn);
void extent_aborted(struct store_txn *t);

/*
 * extent_each(s, txn, each, arg): every row that names an extent, as long as ${each} says true. extent_read(s, txn, at, bytes, out): those
 * bytes; STORE_CORRUPT where the file has no such.
 */
struct extent_at {
    const struct walk *row;
    enum space space;
    uint64_t at, bytes;
};
typedef bool extent_fn(void *arg, const struct extent_at *e);
enum store_status extent_each(struct store *s, MDB_txn *txn, extent_fn *each, void *arg);
enum store_status extent_read(struct store *s, MDB_txn *txn, uint64_t at, uint64_t bytes, MDB_val *out);

/* extent_bytes(s, txn, out): of the file, what rows name. extent_file_bytes(s, txn): how long it is, 0 where there is none. */
enum store_status extent_bytes(struct store *s, MDB_txn *txn, uint64_t *out);
uint64_t extent_file_bytes(struct store *s, MDB_txn *txn);

/* extent_is_named(s, txn, at): is it in use? What a merge put that did not end is not. */
bool extent_is_named(struct store *s, MDB_txn *txn, const struct extent_at *at);

/* extent_id_key(k): where data.mdb has the number of the file. extent_use(s, id): open the file of that number, unless it is. */
void extent_id_key(struct key *k);
enum store_status extent_use(struct store *s, uint64_t id);

/* extent_check(s, txn, problem, arg): rows name what is there, and no two the same page. ${problem} has a sentence. */
enum store_status extent_check(struct store *s, MDB_txn *txn, store_problem_fn *problem, void *arg);

/*
 * extent_inline(s, txn, path, step, arg): in the copy ${path} of ${txn} or of a later snapshot, every row that is in use becomes the part
 * itself. ${txn} stays open until then: what it or a later one names is not written over. Sub-databases of ${s} need not be open. ${step} is
 * told of each so many bytes, and says STORE_OK, or why not to go on. Not synced.
 */
typedef enum store_status extent_step_fn(void *arg, size_t bytes);
enum store_status extent_inline(struct store *s, MDB_txn *txn, const char *path, extent_step_fn *step, void *arg);

#endif
