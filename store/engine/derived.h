/*
 * Kinds of spaces (schema.h), and derived spaces: each of their rows follows from a record.
 *
 * RECORD spaces are replicated, all others are local. The rows of DERIVED spaces are computed by
 * records/derived_rows.c, from the space of the record; INDEX spaces are built by index/rebuild.c.
 * A test rebuilds both from records alone and compares them with what was there. LOCAL spaces are
 * about files of this store; applying a row set (store/rows.h) writes them.
 */
#ifndef ASSAY_STORE_ENGINE_DERIVED_H
#define ASSAY_STORE_ENGINE_DERIVED_H

#include "store/engine/cursor.h"

enum space_kind { SPACE_IS_RECORD, SPACE_IS_DERIVED, SPACE_IS_INDEX, SPACE_IS_LOCAL };
extern const uint8_t derived_kinds[SPACE_COUNT]; /* enum space_kind */

static inline bool space_is_replicated(enum space space)
{
    return derived_kinds[space] == SPACE_IS_RECORD;
}

typedef void derived_fn(void *arg, enum space space, struct key *key, const void *value, size_t n);

/* Receives the rows that follow from a record. */
struct derived_sink {
    derived_fn *put;
    void *arg;
};

/*
 * Columns: space of records; what puts the rows that follow from the current record of ${w} into
 * ${r}, NULL: none follow. It returns false if the record is malformed. records/derived_rows.c
 */
typedef bool derived_of_fn(const struct cursor *w, const struct derived_sink *r);
extern derived_of_fn *const derived_rows_of[SPACE_COUNT];

/* derived_has_rows(space): do rows follow from records of ${space}? */
bool derived_has_rows(enum space space);

/*
 * derived_rebuild(s, reader): delete all rows of DERIVED spaces and write them again, in one
 * transaction: a malformed record, a full store or a kill changes nothing. No server runs.
 */
enum store_status derived_rebuild(struct store *s, struct store *reader);

#endif
