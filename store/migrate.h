/*
 * Steps from one format to the next, each in transactions of its own, which ends with one that notes the new format. Private to store/.
 */
#ifndef ASSAY_STORE_MIGRATE_H
#define ASSAY_STORE_MIGRATE_H

#include "internal.h"

#define MIGRATE_SLICE 1000 /* records of a transaction */

/* migrate_fn(s, o, f): cut off, it goes on at the next start where it was. */
typedef enum store_status migrate_fn(struct store *s, const struct store_options *o, struct format_record *f);

/* migrate_go_on(s, o, done, total): after a transaction; false when that is told to stop: what is done is committed. */
bool migrate_go_on(struct store *s, const struct store_options *o, uint64_t done, uint64_t total);
/* migrate_note_step(t, f, to): in the transaction that ends a step. */
void migrate_note_step(struct store_txn *t, struct format_record *f, uint32_t to);

/* 2 to 3: migrate_messages.c */
migrate_fn migrate_messages;

#endif
