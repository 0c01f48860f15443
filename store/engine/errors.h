/*
 * Errors of the store: one enum for callers, and one sentence in s->why. Any process.
 */
#ifndef ASSAY_STORE_ENGINE_ERRORS_H
#define ASSAY_STORE_ENGINE_ERRORS_H

#include "store/store.h"

/*
 * store_fail(s, rc, what): translate the code ${rc} of LMDB or of the system, and keep a sentence
 * for store_why. ${what} completes "could not …".
 */
enum store_status store_fail(struct store *s, int rc, const char *what);

/* store_corrupt(s, what): STORE_CORRUPT; the sentence says that ${what} is damaged. */
enum store_status store_corrupt(struct store *s, const char *what);

#endif
