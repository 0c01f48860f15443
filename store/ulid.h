/*
 * ULIDs: 48 bits of milliseconds and 80 of randomness. The order of the bytes, and of the 26
 * characters, is the order of creation. Any process. https://github.com/ulid/spec
 */
#ifndef ASSAY_ULID_H
#define ASSAY_ULID_H

#include "store/bytes.h"

#define ULID_BYTES 16
#define ULID_TEXT 26 /* characters, no NUL */

struct ulid {
    uint8_t b[ULID_BYTES];
};

static inline bool ulid_eq(const struct ulid *a, const struct ulid *b)
{
    return memcmp(a->b, b->b, ULID_BYTES) == 0;
}

/* ulid_none(u): is it no id (all zero)? */
bool ulid_none(const struct ulid *u);

/*
 * ulid_next(now_ms, last, random, out): a new id above ${last}, whatever the clock does: if
 * ${now_ms} is not above the time of ${last}, it is ${last} plus a random step.
 */
void ulid_next(int64_t now_ms, const struct ulid *last, const uint64_t random[2], struct ulid *out);

/*
 * ulid_ms(u): its time, milliseconds since the epoch. ulid_floor(ms, out): the smallest id of that
 * time.
 */
int64_t ulid_ms(const struct ulid *u);
void ulid_floor(int64_t ms, struct ulid *out);

/*
 * ulid_text(u, out): 26 characters of Crockford's base 32, upper case. ulid_parse(text, out):
 * either case; false for anything else.
 */
void ulid_text(const struct ulid *u, char out[ULID_TEXT]);
bool ulid_parse(struct str text, struct ulid *out);

/*
 * ulid_halves(u, high, low), ulid_of_halves(high, low): as two numbers, in the order of the bytes.
 */
void ulid_halves(const struct ulid *u, uint64_t *high, uint64_t *low);
struct ulid ulid_of_halves(uint64_t high, uint64_t low);

#endif
