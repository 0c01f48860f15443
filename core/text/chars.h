/* Characters of texts. Pure functions, any process. */
#ifndef ASSAY_TEXT_CHARS_H
#define ASSAY_TEXT_CHARS_H

#include "store/bytes.h"

#include <strings.h>

/* hex_digit(c): the value of a hexadecimal digit in either case; -1: it is none. */
static inline int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c = (char)(c | 0x20);
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* blanks_trim(s): ${s} without blanks and tabs at both ends. */
static inline struct str blanks_trim(struct str s)
{
    while (s.n > 0 && (s.p[0] == ' ' || s.p[0] == '\t'))
        s = (struct str){s.p + 1, s.n - 1};
    while (s.n > 0 && (s.p[s.n - 1] == ' ' || s.p[s.n - 1] == '\t'))
        s.n--;
    return s;
}

/* chars_equal(a, b): equal but for the case of ASCII letters. */
static inline bool chars_equal(struct str a, struct str b)
{
    return a.n == b.n && strncasecmp(a.p, b.p, a.n) == 0;
}

/* chars_cut(rest, mark): the text before the first ${mark}, or all; *rest: the text after it. */
static inline struct str chars_cut(struct str *rest, char mark)
{
    if (rest->n == 0)
        return *rest;
    const char *at = memchr(rest->p, mark, rest->n);
    struct str head = {rest->p, at == NULL ? rest->n : (size_t)(at - rest->p)};
    size_t taken = head.n + (at != NULL);
    *rest = (struct str){rest->p + taken, rest->n - taken};
    return head;
}

#endif
