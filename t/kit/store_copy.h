/*
 * For tests of row sets (store/rows.h): ${kit} executes random changes (store_random.h), and
 * ${copy} applies its row sets. The second store has another clock, locale and time zone, and
 * segments of other sizes.
 */
#ifndef ASSAY_T_STORE_COPY_KIT_H
#define ASSAY_T_STORE_COPY_KIT_H

#include "t/kit/store_random.h"

#include "store/rows.h"

#define ROW_SETS_MAX 8192

/* A row set of a commit of ${kit}, and the struct store_events of that commit. */
struct row_set {
    struct buf rows, events;
};

extern struct row_set row_sets[ROW_SETS_MAX];
extern size_t row_set_count, row_sets_applied; /* of ${copy} */
extern struct kit copy;

/* A fixture: both stores are open. At its end ${kit} must be consistent. */
void copy_begin(void);
void copy_end(void);
void copy_reopen_first(void);
void copy_reopen(uint64_t map_bytes);

/* copy_apply(most): applies row sets in up to ${most} transactions of random length. */
void copy_apply(size_t most);
/* copy_take_events(s, out): the events of the last commit, after emptying ${out}. */
void copy_take_events(const struct store *s, struct buf *out);
/* copy_maintain(steps): merges and sweeps in ${copy}, and deletes no record. */
void copy_maintain(unsigned steps);

/*
 * copy_expect_equal(): applies all row sets and updates the answer files. Both stores must be
 * consistent, have equal rows, and give equal lists, searches, conversations and answers.
 * copy_expect_equal_rows(): compares records and derived rows alone.
 */
void copy_expect_equal(void);
void copy_expect_equal_rows(void);

#endif
