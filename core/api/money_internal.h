/*
 * Amounts of money as decimal strings, parsed exactly into the store's integers (MONEY_SCALE),
 * never through a float. Pure functions, any process.
 */
#ifndef ASSAY_API_MONEY_H
#define ASSAY_API_MONEY_H

#include "store/store.h"

/*
 * money_read(text, out): parse "12", "12.5" or "12.50": up to 12 digits and up to 12 decimals,
 * rounded half up at the fifth. False for anything else, such as a negative amount.
 */
bool money_read(struct str text, int64_t *out);

/*
 * currency_known(code): true for three capital letters.
 * currency_exponent(code): decimals of the currency's minor unit by ISO 4217; 2 for unknown codes.
 */
bool currency_known(struct str code);
unsigned currency_exponent(struct str code);

#endif
