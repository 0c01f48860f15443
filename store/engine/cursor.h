/*
 * A cursor over the keys that begin with a prefix, in either direction. Each step returns STORE_OK
 * with ${k} and ${v}, or STORE_NOT_FOUND at the end. cursor_end is safe after a failed begin.
 */
#ifndef ASSAY_STORE_ENGINE_CURSOR_H
#define ASSAY_STORE_ENGINE_CURSOR_H

#include "store/engine/schema.h"

struct cursor {
    struct store *s;
    MDB_cursor *cursor;
    bool backward;
    struct key prefix;
    MDB_val k, v;
};

/* cursor_begin(…): all keys of a space. cursor_prefix(…): ${w}->prefix is set by the caller. */
enum store_status cursor_begin(struct store *s, MDB_txn *txn, struct cursor *w, enum space space);
enum store_status cursor_prefix(struct store *s, MDB_txn *txn, struct cursor *w, enum db db,
                                bool backward);

/*
 * cursor_below(…): backward, from the last key below ${below}. cursor_from(…): forward, from the
 * first key that is not below ${from}.
 */
enum store_status cursor_below(struct store *s, MDB_txn *txn, struct cursor *w, enum db db,
                               const struct key *below);
enum store_status cursor_from(struct store *s, MDB_txn *txn, struct cursor *w, enum db db,
                              const struct key *from);
enum store_status cursor_next(struct cursor *w);
void cursor_end(struct cursor *w);

/* cursor_u64(w, skip, out): read the number of the current key that follows ${skip} numbers. */
bool cursor_u64(const struct cursor *w, unsigned skip, uint64_t *out);

/*
 * cursor_next_workspace(s, space, after, out): the workspace of the first key of ${space} above
 * ${after}, in a snapshot of its own; 0: there is none.
 */
enum store_status cursor_next_workspace(struct store *s, enum space space, uint64_t after,
                                        uint64_t *out);

/*
 * record_ids(t, space, after, most, ids): up to ${most} ids of records of ${space} above ${after},
 * including records that are being deleted; returns how many.
 */
struct store_txn;
size_t record_ids(struct store_txn *t, enum space space, uint64_t after, size_t most,
                  uint64_t *ids);

#endif
