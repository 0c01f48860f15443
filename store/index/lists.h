/*
 * Lists: which reports or projects match a query, and which of them are its page. The caller reads
 * the records. Runs on query threads.
 */
#ifndef ASSAY_STORE_INDEX_LISTS_H
#define ASSAY_STORE_INDEX_LISTS_H

#include "store/engine/schema.h"

/* list_take_fn(arg, id): the next item of the page; any result but STORE_OK ends the list. */
typedef enum store_status list_take_fn(void *arg, uint64_t id);

/*
 * list_reports(s, txn, q, take, arg, total): ${total}: all matches. STORE_AGAIN: the query was
 * stopped. list_projects(…): the same for a workspace that has ${projects} projects.
 */
enum store_status list_reports(struct store *s, MDB_txn *txn, const struct store_list_query *q,
                               list_take_fn *take, void *arg, uint64_t *total);
enum store_status list_projects(struct store *s, MDB_txn *txn, const struct store_list_query *q,
                                uint64_t projects, list_take_fn *take, void *arg, uint64_t *total);

/*
 * index_contradicted(s, id): the index names that report, whose record is missing or damaged.
 * Returns STORE_DAMAGED; store_lost_segment is 0, which rebuilds the whole index without it.
 */
enum store_status index_contradicted(struct store *s, uint64_t id);

#endif
