/*
 * Strict application/x-www-form-urlencoded, for queries and bodies, and UTF-8. "+" is a space, %XX
 * needs two hexadecimal digits, and the result must be UTF-8 without NUL. Pure functions.
 */
#ifndef ASSAY_TEXT_FORM_H
#define ASSAY_TEXT_FORM_H

#include "store/bytes.h"

/*
 * utf8_valid(s): UTF-8 (RFC 3629) without surrogates, overlong forms and NUL.
 * utf8_length(s): the number of such bytes at the start of ${s}; s.n: all.
 */
bool utf8_valid(struct str s);
size_t utf8_length(struct str s);

/*
 * form_decode(in, plus, out): percent-decode ${in} into ${out}, which has in.n bytes and may be
 * in.p; ${plus}: "+" is a space. p NULL: malformed, NUL or not UTF-8.
 */
struct str form_decode(struct str in, bool plus, char *out);

struct form {
    struct str rest;
};

/* form_next(f, name, value): the next pair, still encoded, skipping empty ones. False: the end. */
bool form_next(struct form *f, struct str *name, struct str *value);

/* number_parse(s, max, out): decimal digits alone, at most ${max}. */
bool number_parse(struct str s, uint64_t max, uint64_t *out);

#endif
