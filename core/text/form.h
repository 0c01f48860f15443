/*
 * application/x-www-form-urlencoded, as query strings and bodies use it, read strictly: "+" is a
 * space, %XX must be two hex digits, and what comes out must be UTF-8 without NUL. Pure functions;
 * the decoded bytes live in memory the caller gives.
 */
#ifndef ASSAY_TEXT_FORM_H
#define ASSAY_TEXT_FORM_H

#include "store/bytes.h"

/*
 * utf8_valid(s): well-formed UTF-8 by RFC 3629 (no surrogates, no overlong forms), and no NUL.
 * Plain ASCII is told eight bytes at a time. utf8_length(s): how many bytes of ${s} are, from its
 * start; s.n where all of them are.
 */
bool utf8_valid(struct str s);
size_t utf8_length(struct str s);

/*
 * form_decode(in, plus, out): percent-decode ${in} into ${out} (room for in.n bytes; may be in.p
 * itself), "+" as a space where ${plus}. Returns the decoded string, with p NULL when it is
 * malformed, holds NUL or is not UTF-8.
 */
struct str form_decode(struct str in, bool plus, char *out);

/* A cursor over the pairs of a form. */
struct form {
    struct str rest;
};

/*
 * form_next(f, name, value): the next raw pair (still encoded); empty pieces between "&" are
 * skipped. False at the end.
 */
bool form_next(struct form *f, struct str *name, struct str *value);

/* number_parse(s, max, out): decimal digits and nothing else, at most ${max}. */
bool number_parse(struct str s, uint64_t max, uint64_t *out);

#endif
