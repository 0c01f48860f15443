/*
 * The upkeep of the reports' indexes: what tend.c (which workspace, when, and what is swept), merge_plan.c (what of one is merged) and
 * merge.c (the merge) share. Private to store/; writer only.
 */
#ifndef ASSAY_STORE_TEND_H
#define ASSAY_STORE_TEND_H

#include "view.h"

enum tend_phase { TEND_IDLE, TEND_SWEEP, TEND_ORDER, TEND_CHUNKS, TEND_FIXED, TEND_MOVING, TEND_TOUCHED, TEND_INSTALL };

/* Rows of a plan in the order of their URLs; a plan begins with several and merges the shortest two until there is one. */
struct sequence {
    uint32_t *rows, count;
};

struct tend {
    enum tend_phase phase;
    bool looked;  /* every workspace was looked at since the store was opened */
    bool cramped; /* there was no room for a part: the plan is given up */
    size_t txn;   /* the transaction of the last step */
    struct buf due;
    uint64_t workspace;
    /* the plan */
    struct manifest_head head; /* as it will be */
    size_t first, last;        /* segments first..last (not included) become new ones */
    struct segment_row *rows;
    uint32_t count;
    struct buf text; /* URLs of the view's rows, which move in its memory; those of segments do not */
    struct sequence *sequences;
    size_t sequence_count;
    uint64_t *grams;               /* of the chunks of the present new segment */
    uint32_t done, chunk;          /* rows that are in complete new segments; chunks of the present one */
    struct manifest_segment *made; /* new segments */
    size_t made_count;
    struct manifest_segment *kept; /* all the old ones, moving parts replaced as they come */
    size_t kept_count, touched;
    /* what the next step puts, where it was made before the transaction */
    bool prepared;
    struct buf part;
    uint32_t part_live; /* of a moving part: its rows that are there */
};

/* tend_forget_plan(t): the phase is TEND_IDLE again. tend_due_add(t, workspace): false when it was due already. */
void tend_forget_plan(struct tend *t);
bool tend_due_add(struct tend *t, uint64_t workspace);

/*
 * Outside of a transaction, so that it is held for as short a time as can be. tend_next(s): the workspace that the next step looks at first,
 * 0: none, or its merge is under way. merge_ahead(s, txn, q): read what planning its merge takes, if it is due; false where a pause came
 * between. merge_prepare(s, txn, tend): make what the next step puts; what cannot be made is made, or fails, in the step.
 */
uint64_t tend_next(const struct store *s);
void merge_prepare(struct store *s, MDB_txn *txn, struct tend *tend);
bool merge_ahead(struct store *s, MDB_txn *txn, const struct store_list_query *q);

/* merge_plan(t, tend): what to merge of tend->workspace; the phase tells what is next, TEND_IDLE: nothing. */
void merge_plan(struct store_txn *t, struct tend *tend);

/* One step of the phase of that name. */
void merge_order(struct store_txn *t, struct tend *tend);
void merge_chunk(struct store_txn *t, struct tend *tend);
void merge_fixed(struct store_txn *t, struct tend *tend);
void merge_moving(struct store_txn *t, struct tend *tend);
void merge_touched(struct store_txn *t, struct tend *tend);
void merge_install(struct store_txn *t, struct tend *tend);

#endif
