/*
 * Money as shops write it: decimal strings, read exactly into the store's whole numbers
 * (MONEY_SCALE), never through a float. Pure functions, any process.
 */
#ifndef ASSAY_API_MONEY_H
#define ASSAY_API_MONEY_H

#include "store/store.h"

/*
 * money_read(text, out): "12", "12.5", "12.50": up to 12 digits, then up to 12 decimals, of which
 * the fifth rounds half up. False for all else; nothing is negative.
 */
bool money_read(struct str text, int64_t *out);

/*
 * currency_known(code): three capital letters. currency_exponent(code): decimals of its minor unit
 * by ISO 4217; 2 where that has no say.
 */
bool currency_known(struct str code);
unsigned currency_exponent(struct str code);

#endif
