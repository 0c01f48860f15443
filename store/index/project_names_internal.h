/*
 * The projects of a workspace in memory: names and orders, from which pages of its list are taken
 * at once, whatever they search. Private to store/.
 *
 * A process keeps those of the workspaces it was asked about. They are read from the indexes of
 * projects; later come the projects that were made since, for their numbers are above all that were
 * given before. Names and creation dates never change, so where as many are known as the workspace
 * has, none of them is gone. Where it has fewer, some were deleted: the index of dates is read
 * again, and what it lacks is taken out.
 */
#ifndef ASSAY_STORE_NAMES_H
#define ASSAY_STORE_NAMES_H

#include "store/engine/schema.h"

struct names_row {
    uint64_t id;
    int64_t created_at; /* NAMES_UNDATED: the index of dates does not have it */
};
#define NAMES_UNDATED INT64_MIN

struct project_names {
    struct project_names *next;
    uint64_t workspace;
    uint64_t upto; /* no project is missing up to this number */
    /*
     * Another number each time the rows begin anew; until then they only become more, and their
     * names stay. 0: never read.
     */
    uint64_t made;
    struct buf rows;      /* of struct names_row */
    struct buf text;      /* their names, each ending in a NUL, and TEXT_PAD bytes */
    struct buf offset;    /* of uint32_t: rows + 1 */
    struct buf orders[2]; /* of uint32_t, by enum project_sort: the rows that are there */
    uint32_t *slots;      /* id → row + 1, hashed */
    size_t slot_count;
};

/*
 * project_names_get(s, txn, q, living, out): the projects of q->workspace, which has ${living} of
 * them, as ${txn} shows them; good until the next call. STORE_AGAIN when ${q} was stopped: what was
 * known of them is forgotten.
 */
enum store_status project_names_get(struct store *s, MDB_txn *txn, const struct store_list_query *q,
                                    uint64_t living, const struct project_names **out);

static inline uint32_t project_names_count(const struct project_names *n)
{
    return (uint32_t)(n->orders[0].n / sizeof(uint32_t));
}

/* project_names_forget(s): all of them. */
void project_names_forget(struct store *s);

#endif
