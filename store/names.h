/*
 * The projects of a workspace in memory: names and orders, from which pages of its list are taken at once, whatever they search. Private to
 * store/.
 *
 * A process keeps those of the workspaces it was asked about. They are read from the indexes of projects, in parts that may lie in
 * different snapshots; then come the projects that were made since, for their numbers are above all that were given before. Names and
 * creation dates never change. So every project that is there is known, and where as many are known as the workspace has, none of them is
 * gone. Where it has fewer, some were deleted: the index of dates is walked beside what is known, and what it lacks is struck out.
 */
#ifndef ASSAY_STORE_NAMES_H
#define ASSAY_STORE_NAMES_H

#include "internal.h"

enum names_phase { NAMES_BY_NAME, NAMES_BY_DATE, NAMES_STRIKE, NAMES_NEW };

struct names_row {
    uint64_t id;
    int64_t created_at; /* NAMES_UNDATED: the index of dates did not have it (yet, or any more) */
};
#define NAMES_UNDATED INT64_MIN

struct names {
    struct names *next;
    uint64_t workspace, used;
    enum names_phase phase;
    struct key at;        /* the last key that the reading of an index saw; n 0: none */
    uint64_t upto;        /* no project is missing up to this number once the indexes are read */
    size_t snapshot;      /* in which the reading, or the striking out, began */
    bool read;            /* the indexes were */
    size_t looked, kept;  /* striking out: so many of the order of dates were looked at, so many of them are still there */
    uint64_t made;        /* another number each time the rows begin anew; until then they only become more, and their names stay */
    struct buf rows;      /* of struct names_row */
    struct buf text;      /* their names, each ending in a NUL, and TEXT_PAD bytes */
    struct buf offset;    /* of uint32_t: rows + 1 */
    struct buf orders[2]; /* of uint32_t, by enum project_sort: the rows that are there */
    struct buf fresh;     /* of uint32_t: rows that are not in the orders yet */
    uint32_t *slots;      /* id → row + 1, hashed */
    size_t slot_count;
};

/*
 * names_get(s, txn, q, living, out): the projects of q->workspace, which has ${living} of them, as ${txn} shows them. STORE_AGAIN when a
 * pause of ${q} came between. Good until the next call.
 */
enum store_status names_get(struct store *s, MDB_txn *txn, const struct store_list_query *q, uint64_t living, const struct names **out);

static inline uint32_t names_count(const struct names *n)
{
    return (uint32_t)(n->orders[0].n / sizeof(uint32_t));
}

/* names_forget(s): all of them. */
void names_forget(struct store *s);

#endif
