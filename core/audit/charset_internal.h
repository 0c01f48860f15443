/*
 * Conversion of a page to UTF-8. The charset comes from the byte order mark, Content-Type or a meta
 * tag within the first 1024 bytes; otherwise it is windows-1252, as in browsers. Invalid sequences
 * and NUL become U+FFFD.
 */
#ifndef ASSAY_CHARSET_INTERNAL_H
#define ASSAY_CHARSET_INTERNAL_H

#include "core/audit/arena_internal.h"

enum charset_source { CHARSET_DEFAULT, CHARSET_BOM, CHARSET_HEADER, CHARSET_META };

#define CHARSET_NAME_BYTES 32

struct charset {
    enum charset_source source;
    char name[CHARSET_NAME_BYTES]; /* as declared, lower case; "windows-1252" by default */
    size_t skip;                   /* bytes of the byte order mark */
    bool known; /* false: the declared charset is unknown, and the page is read as windows-1252 */
};

/*
 * charset_find(body, content_type, out): find the charset of ${body}. ${content_type} is the
 * header's value and may be empty.
 */
void charset_find(struct str body, struct str content_type, struct charset *out);

/*
 * charset_to_utf8(charset, body, out): append ${body} as UTF-8 to ${out}, at most three times its
 * size. False when memory is short.
 */
bool charset_to_utf8(const struct charset *charset, struct str body, struct buf *out);

/*
 * charset_clean_utf8(s, out): append ${s}, which should be UTF-8, with invalid sequences replaced.
 * False when memory is short.
 * charset_copy_utf8(arena, s): the same, as a copy in the arena; empty when memory is short.
 */
bool charset_clean_utf8(struct str s, struct buf *out);
struct str charset_copy_utf8(struct arena *arena, struct str s);

/*
 * charset_iconv_name(label): iconv's name of the encoding that browsers know as ${label} (lower
 * case); NULL for an unknown label.
 */
const char *charset_iconv_name(const char *label);

#endif
