/*
 * Names of a workspace's projects in memory, with their orders, from which pages of lists are
 * taken.
 *
 * A struct store keeps them for the workspaces it was asked about. New projects have numbers above
 * all earlier ones and are added. Names and creation dates never change, so as long as the number
 * of known projects equals the workspace's counter, none was deleted. Otherwise the rows by date
 * are read again, and missing ones removed.
 */
#ifndef ASSAY_STORE_INDEX_PROJECT_NAMES_INTERNAL_H
#define ASSAY_STORE_INDEX_PROJECT_NAMES_INTERNAL_H

#include "store/engine/schema.h"

struct names_row {
    uint64_t id;
    int64_t created_at; /* NAMES_UNDATED: there is no row by date */
};
#define NAMES_UNDATED INT64_MIN

struct project_names {
    struct project_names *next;
    uint64_t workspace;
    uint64_t upto; /* all projects up to this number are known */
    /* Changes when the rows are read again; until then rows are only added. 0: never read. */
    uint64_t made;
    struct buf rows;      /* of struct names_row */
    struct buf text;      /* names, each ending in a NUL, and TEXT_PAD bytes */
    struct buf offset;    /* of uint32_t: rows + 1 */
    struct buf orders[2]; /* of uint32_t, by enum project_sort: existing rows */
    uint32_t *slots;      /* id → row + 1, hashed */
    size_t slot_count;
};

/*
 * project_names_get(s, txn, q, existing, out): the projects of q->workspace, which has ${existing}
 * of them, as ${txn} shows them; valid until the next call. STORE_AGAIN: ${q} was stopped, and the
 * names are forgotten.
 */
enum store_status project_names_get(struct store *s, MDB_txn *txn, const struct store_list_query *q,
                                    uint64_t existing, const struct project_names **out);

static inline uint32_t project_names_count(const struct project_names *n)
{
    return (uint32_t)(n->orders[0].n / sizeof(uint32_t));
}

/* project_names_forget(s): forget all. */
void project_names_forget(struct store *s);

#endif
