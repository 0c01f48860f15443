/* Results of reports: JSON, compressed, in one or more rows. */
#ifndef ASSAY_STORE_RECORDS_RESULT_H
#define ASSAY_STORE_RECORDS_RESULT_H

#include "store/engine/txn.h"

/*
 * result_get(s, txn, report, out): borrowed until the snapshot ends; ${out} does not change if
 * there are none. result_look: are they there and whole? Afterwards they are in memory.
 * result_piece_good: does the row ${piece} follow one that says so? For checks.
 */
enum store_status result_get(struct store *s, MDB_txn *txn, uint64_t report, struct str *out);
enum store_status result_look(struct store *s, MDB_txn *txn, uint64_t report);
bool result_piece_good(struct store *s, MDB_txn *txn, uint64_t report, uint64_t piece);

/* result_put(t, report, json): replaces earlier ones. result_drop(t, report): if there are any. */
void result_put(struct store_txn *t, uint64_t report, struct str json);
void result_drop(struct store_txn *t, uint64_t report);

/* result_release(s): at the end of the snapshot. result_forget(s): at the end of ${s}. */
void result_release(struct store *s);
void result_forget(struct store *s);

/* The dictionary of the compression: result_dictionary.c */
extern const struct str result_dictionary;

#endif
