/* Items of a collection. */
#ifndef ASSAY_STORE_RECORDS_ITEM_H
#define ASSAY_STORE_RECORDS_ITEM_H

#include "store/engine/schema.h"

void item_key(struct key *k, uint64_t collection, uint64_t wp_id);
bool schema_read_item(MDB_val value, struct item_record *out);

/* item_there(i, complete): it has a document and was seen in the last complete sync or later. */
static inline bool item_there(const struct item_record *i, uint64_t complete)
{
    return i->document != 0 && i->generation >= complete;
}

#endif
