/* The rows of spaces of a store, to compare two stores. */
#ifndef ASSAY_T_SPACE_ROWS_KIT_H
#define ASSAY_T_SPACE_ROWS_KIT_H

#include "store/engine/schema.h"

/* space_follows_log(space): do stores that apply the same row sets have equal rows there? */
bool space_follows_log(enum space space);

/*
 * space_rows(s, space, out): adds all its rows, in order, in a snapshot that it ends. space_name: a
 * new string.
 */
void space_rows(struct store *s, enum space space, struct buf *out);
char *space_name(enum space space);

#endif
