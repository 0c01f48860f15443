/*
 * Creates many reports in the store of a stopped server, through the store itself, which is faster
 * than requests.
 */
#ifndef ASSAY_T_INDEX_KIT_H
#define ASSAY_T_INDEX_KIT_H

#include "t/kit/harness.h"

#include "store/store.h"

/*
 * index_store(s, mode): opens the store of a server; with STORE_WRITE the server must be stopped.
 */
struct store *index_store(const struct server *s, enum store_mode mode);

/*
 * index_fill(s, workspace, from, count): creates reports with URLs numbered from ${from}, in the
 * projects "even" and "odd". A third is graded, the others failed.
 */
void index_fill(const struct server *s, const char *workspace, unsigned from, unsigned count);

#endif
