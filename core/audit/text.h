/*
 * String functions with the rules of HTML and HTTP: ASCII case, ASCII white space, UTF-8. Strings
 * are borrowed. Pure functions.
 */
#ifndef ASSAY_TEXT_H
#define ASSAY_TEXT_H

#include "store/bytes.h"

/* text_lower(c): ${c} in ASCII lower case; other bytes unchanged. */
char text_lower(char c);
/* text_is_space(c): HTML's ASCII white space: tab, LF, FF, CR, space. */
bool text_is_space(char c);

static inline bool text_is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* text_is_letter(c): ${c} is an ASCII letter. */
static inline bool text_is_letter(char c)
{
    return (unsigned char)((c | 0x20) - 'a') < 26;
}

bool text_eq(struct str a, const char *b);          /* ignores ASCII case */
bool text_starts(struct str s, const char *prefix); /* ignores ASCII case */
bool text_ends(struct str s, const char *suffix);   /* ignores ASCII case */
bool text_has(struct str s, const char *needle);    /* ignores ASCII case */

struct str text_trim(struct str s);
struct str text_trim_unicode(struct str s);    /* Unicode white space, as in ECMAScript */
struct str text_from(struct str s, size_t at); /* without the first ${at} bytes */

/*
 * text_token(rest, separators, out): the next non-empty piece of ${rest} between any of
 * ${separators}; false if there is none.
 */
bool text_token(struct str *rest, const char *separators, struct str *out);

/*
 * text_has_token(list, token): the space-separated ${list} (rel, class, target …) contains
 * ${token}. Ignores ASCII case.
 */
bool text_has_token(struct str list, const char *token);

/*
 * text_split(s, at, before, after): split ${s} at the first ${at}; false, with all of it in
 * ${before}, if there is none.
 */
bool text_split(struct str s, char at, struct str *before, struct str *after);

/*
 * text_points(s): number of code points of UTF-8 ${s}. text_cut(s, points): the first ${points} of
 * them.
 */
size_t text_points(struct str s);
struct str text_cut(struct str s, size_t points);

/*
 * text_cut_bytes(s, max): the first ${max} bytes of UTF-8 ${s}, or fewer, so that no code point is
 * cut.
 */
struct str text_cut_bytes(struct str s, size_t max);

/*
 * text_number(s, out): leading decimal digits, after white space, as in HTML's rules for
 * non-negative integers; false if there are none. Saturates.
 */
bool text_number(struct str s, unsigned long *out);

/*
 * text_word(rest, out): the next run of letters and digits: ASCII ones, and code points from U+00C0
 * that are neither punctuation nor space.
 */
bool text_word(struct str *rest, struct str *out);

/*
 * text_fold(s, out): append ${s} in Unicode lower case. The process's LC_CTYPE must be UTF-8
 * (audit_new sets it).
 */
void text_fold(struct str s, struct buf *out);

/* text_add_point(point, out): append a code point as UTF-8. */
void text_add_point(uint32_t point, struct buf *out);

/*
 * text_is_ideographic(s): ${s} begins with a code point from U+2E80 on: CJK and other scripts
 * without spaces between words.
 */
bool text_is_ideographic(struct str s);

#endif
