/* The format record, and the store's random id. */
#ifndef ASSAY_STORE_ENGINE_FORMAT_H
#define ASSAY_STORE_ENGINE_FORMAT_H

#include "store/rows.h"

/*
 * format_look(s, why, why_size): has the store this format, or may a writer create a store here?
 * If not: STORE_OTHER_FORMAT, STORE_CORRUPT or STORE_NOT_FOUND. Nothing is changed.
 * format_make(s, why, why_size): the writer creates the first records of a new store.
 */
enum store_status format_look(struct store *s, char *why, size_t why_size);
enum store_status format_make(struct store *s, char *why, size_t why_size);

/*
 * The store's random id, which its answer files carry. format_id(s, out): read it.
 * format_renew_id(dir): replace it, in a store that no process has open; 0, or a code of LMDB or
 * of the system.
 */
enum store_status format_id(struct store *s, uint8_t out[STORE_ID_BYTES]);
int format_renew_id(const char *dir);

#endif
