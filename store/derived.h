/*
 * Derived spaces: each of their rows follows from a record. Private to store/.
 *
 * A space is RECORD, DERIVED or INDEX (schema.h). What DERIVED spaces hold follows here, by the
 * space of the record; what INDEX spaces hold is built by index/rebuild.c. t/unit/store_derived holds
 * that both are rebuilt equal from records alone.
 */
#ifndef ASSAY_STORE_DERIVED_H
#define ASSAY_STORE_DERIVED_H

#include "store/internal.h"

enum space_kind { SPACE_IS_RECORD, SPACE_IS_DERIVED, SPACE_IS_INDEX };
extern const uint8_t derived_kinds[SPACE_COUNT]; /* enum space_kind */

/*
 * derived_rows(space, w, put, arg): ${put} for each row that follows from the record on which the
 * walk stands, a record of ${space}. False: the record is malformed.
 */
typedef void derived_fn(void *arg, enum space space, struct key *key, const void *value, size_t n);
bool derived_rows(enum space space, const struct walk *w, derived_fn *put, void *arg);

/* derived_has_rows(space): do rows follow from records of ${space}? */
bool derived_has_rows(enum space space);

/*
 * derived_rebuild(s, reader): delete all rows of DERIVED spaces and put them anew, in one
 * transaction, so that a malformed record, a full store or a kill changes nothing. No server runs.
 */
enum store_status derived_rebuild(struct store *s, struct store *reader);

#endif
