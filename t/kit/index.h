/*
 * Creates many reports in the store of a stopped server, through the store itself, which is faster
 * than requests.
 */
#ifndef ASSAY_T_INDEX_KIT_H
#define ASSAY_T_INDEX_KIT_H

#include "t/kit/harness.h"

#include "store/store.h"

/* index_store(s, mode): the store of a server; with STORE_WRITE the server does not run. */
struct store *index_store(const struct server *s, enum store_mode mode);

/*
 * index_fill(s, workspace, from, count): reports of URLs with the numbers from ${from} on, in the
 * projects "even" and "odd", a third of them graded and the others failed.
 */
void index_fill(const struct server *s, const char *workspace, unsigned from, unsigned count);

#endif
