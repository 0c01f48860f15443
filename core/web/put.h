/* What compiled templates call: values as HTML. Pure functions. */
#ifndef ASSAY_WEB_PUT_H
#define ASSAY_WEB_PUT_H

#include "store/bytes.h"

#include <stdint.h>

/* HTML that is safe in text and in double quotes. */
struct html {
    const char *p;
    size_t n;
};

/*
 * html_write(to, text): ${text} as HTML at ${to}, where HTML_MAX(text.n) bytes have space; its end.
 * html_write_json(to, rest): so, too, but the JSON string behind whose first quote ${rest} begins;
 * *rest: what follows it. Of escapes other than \" and \\, the character stays.
 */
#define HTML_MAX(n) (6 * (n) + 8) /* the longest entity has 6 bytes; 8 are written at once */
char *html_write(char *to, struct str text);
char *html_write_json(char *to, struct str *rest);

/*
 * put_text(out, text): escaped for text and for attributes in double quotes.
 * put_url(out, url): the start of a URL; "#" for one that is not http, https or relative.
 * put_url_part(out, part): a part of a URL, percent-encoded.
 */
void put_text(struct buf *out, struct str text);
void put_url(struct buf *out, struct str url);
void put_url_part(struct buf *out, struct str part);

static inline void put_html(struct buf *out, struct html html)
{
    buf_add(out, html.p, html.n);
}

static inline void put_u64(struct buf *out, uint64_t v)
{
    buf_u64(out, v);
}

/* clang-format off */
#define PUT_TEXT(out, v)     _Generic((v), struct str: put_text, struct html: put_html, \
                                      unsigned: put_u64, uint64_t: put_u64)(out, v)
#define PUT_URL(out, v)      _Generic((v), struct str: put_url)(out, v)
#define PUT_URL_PART(out, v) _Generic((v), struct str: put_url_part, unsigned: put_u64, \
                                      uint64_t: put_u64)(out, v)

static inline bool is_set_text(struct str v) { return v.n > 0; }
static inline bool is_set_html(struct html v) { return v.n > 0; }
static inline bool is_set_number(uint64_t v) { return v != 0; }
#define IS_SET(v) _Generic((v), bool: is_set_number, unsigned: is_set_number, \
                           uint64_t: is_set_number, struct str: is_set_text, \
                           struct html: is_set_html)(v)
/* clang-format on */

#endif
