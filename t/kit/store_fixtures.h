/* Fixtures of tests of the store: an empty store, or one with a workspace. */
#ifndef ASSAY_T_STORE_FIXTURES_H
#define ASSAY_T_STORE_FIXTURES_H

#include "t/kit/store.h"

extern struct kit k;
extern uint64_t w; /* the workspace of workspace_setup */

/* Checked fixtures: store_setup or workspace_setup, with store_teardown. */
void store_setup(void);
void workspace_setup(void);
void store_teardown(void);

/* change(c): carries out a change. report(id): a report of ${w}. */
struct store_answer change(struct store_change c);
struct store_report report(uint64_t id);

/* query(sort, ascending): the first 100 items of a list of ${w}. */
struct store_list_query query(unsigned sort, bool ascending);

#endif
