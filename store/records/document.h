/* Synced documents. */
#ifndef ASSAY_STORE_RECORDS_DOCUMENT_H
#define ASSAY_STORE_RECORDS_DOCUMENT_H

#include "store/engine/txn.h"
#include "store/records/sync_rows.h"

bool schema_read_document(MDB_val value, struct store_synced *out);

/*
 * document_get(s, txn, id, out): the record, borrowed. document_read: STORE_NOT_FOUND also if its
 * item was deleted.
 */
enum store_status document_get(struct store *s, MDB_txn *txn, uint64_t id,
                               struct store_synced *out);
enum store_status document_read(struct store *s, MDB_txn *txn, uint64_t id,
                                struct store_synced *out);

/* document_add(t, c, row): the id of the new document; 0 after an error. */
uint64_t document_add(struct store_txn *t, const struct collection_record *c,
                      const struct sync_row *row);
void document_replace(struct store_txn *t, const struct collection_record *c, uint64_t id,
                      const struct sync_row *row);
void document_remove(struct store_txn *t, uint64_t id);

#endif
