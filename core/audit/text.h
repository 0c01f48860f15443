/*
 * Small readings of borrowed strings, as HTML and HTTP define them: ASCII case, ASCII white space, UTF-8. Pure functions, any process.
 */
#ifndef ASSAY_TEXT_H
#define ASSAY_TEXT_H

#include "store/bytes.h"

/* text_lower(c): the ASCII lower case of ${c}; other bytes as they are. */
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

bool text_eq(struct str a, const char *b);          /* without regard to ASCII case */
bool text_starts(struct str s, const char *prefix); /* without regard to ASCII case */
bool text_ends(struct str s, const char *suffix);   /* without regard to ASCII case */
bool text_has(struct str s, const char *needle);    /* without regard to ASCII case */

struct str text_trim(struct str s);
struct str text_trim_unicode(struct str s);       /* of Unicode's white space, as scripts trim */
struct str text_from(struct str s, size_t at); /* what follows the first ${at} bytes */

/*
 * text_token(rest, separators, out): the next piece of ${rest} between any of ${separators}, empty pieces left out; false when there is
 * none.
 */
bool text_token(struct str *rest, const char *separators, struct str *out);

/* text_has_token(list, token): whether the space-separated ${list} (rel, class, target …) holds ${token}, without regard to ASCII case. */
bool text_has_token(struct str list, const char *token);

/* text_split(s, at, before, after): cut ${s} at the first ${at}; false, with all of it in ${before}, when there is none. */
bool text_split(struct str s, char at, struct str *before, struct str *after);

/* text_points(s): code points of UTF-8 ${s}. text_cut(s, points): at most the first ${points} of them. */
size_t text_points(struct str s);
struct str text_cut(struct str s, size_t points);

/* text_cut_bytes(s, max): the first ${max} bytes of UTF-8 ${s}, or fewer: no code point is cut. */
struct str text_cut_bytes(struct str s, size_t max);

/*
 * text_number(s, out): leading decimal digits (after white space) as HTML's rules for non-negative integers; false without any. Saturates.
 */
bool text_number(struct str s, unsigned long *out);

/*
 * text_word(rest, out): the next run of letters and digits (ASCII ones, and any code point from U+00C0 that is no punctuation or space of
 * its own).
 */
bool text_word(struct str *rest, struct str *out);

/* text_fold(s, out): append ${s} in lower case, of any script (the process' LC_CTYPE is UTF-8, see audit_new). */
void text_fold(struct str s, struct buf *out);

/* text_add_point(point, out): append a code point as UTF-8. */
void text_add_point(uint32_t point, struct buf *out);

/* text_is_ideographic(s): ${s} begins with a code point of a script that parts no words: from U+2E80, CJK and its neighbours. */
bool text_is_ideographic(struct str s);

#endif
