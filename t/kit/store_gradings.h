/* For tests of the history of a report: reports with gradings, and the rows of the history. */
#ifndef ASSAY_T_STORE_GRADINGS_KIT_H
#define ASSAY_T_STORE_GRADINGS_KIT_H

#include "store/engine/snapshot.h"
#include "store/engine/txn.h"
#include "t/kit/store.h"

extern struct kit k;
extern uint64_t w; /* a workspace */

/* setup(): a new store with a workspace. teardown(): closes the store. */
void setup(void);
void teardown(void);

/*
 * create(): a report. graded(gradings): a report with that many gradings, one a second; the score
 * of number n is n % 101. list(id, before, limit): the gradings of a report.
 */
uint64_t create(void);
uint64_t graded(uint32_t gradings);
struct kit_gradings list(uint64_t id, uint32_t before, unsigned limit);

/*
 * rows(): number of rows of all histories. row_key: the key of a row. delete_row, put_row: change a
 * row in a transaction of its own.
 */
size_t rows(void);
void row_key(struct key *key, uint64_t id, uint64_t number);
void delete_row(uint64_t id, uint64_t number);
void put_row(uint64_t id, uint64_t number, struct str value);

#endif
