/*
 * A page's bytes brought to UTF-8: by byte order mark, Content-Type, a meta tag within the first 1024 bytes, else windows-1252, as browsers
 * do. What is no valid text becomes U+FFFD, NUL too.
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
    bool known;                    /* false: declared, but no charset known here; read as windows-1252 */
};

/* charset_find(body, content_type, out): which charset ${body} is in. ${content_type}: the header's value, may be empty. */
void charset_find(struct str body, struct str content_type, struct charset *out);

/*
 * charset_to_utf8(charset, body, out): append ${body} as UTF-8 to ${out}; ${out} is at most three times as long. False when memory is
 * short.
 */
bool charset_to_utf8(const struct charset *charset, struct str body, struct buf *out);

/* charset_clean_utf8(s, out): append ${s}, which is UTF-8 but may be invalid. False when memory is short. */
bool charset_clean_utf8(struct str s, struct buf *out);
/* charset_copy_utf8(arena, s): the same as a copy in the arena; empty when memory is short. */
struct str charset_copy_utf8(struct arena *arena, struct str s);

/* charset_iconv_name(label): iconv's name of the encoding that browsers know by ${label}, which is in lower case; NULL where they know none. */
const char *charset_iconv_name(const char *label);

#endif
