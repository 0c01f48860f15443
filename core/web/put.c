#include "core/web/put.h"

#include <endian.h>

/* ---- eight bytes at a time, as a number whose lowest byte is the first ---- */

#define WORD_BYTES sizeof(uint64_t)
#define EACH(byte) (UINT64_C(0x0101010101010101) * (byte))

static inline uint64_t word_of(const char *p)
{
    uint64_t bytes;
    memcpy(&bytes, p, sizeof(bytes));
    return le64toh(bytes);
}

/* Marks of the bytes that are ${c}. The lowest is exact; a higher one can come from a carry. */
static inline uint64_t find(uint64_t word, char c)
{
    uint64_t zero = word ^ EACH((unsigned char)c);
    return (zero - EACH(1)) & ~zero & EACH(0x80);
}

/* Marks of the bytes that need an entity. < and > differ in one bit, and so do " and & */
static inline uint64_t find_special(uint64_t word)
{
    return find(word | EACH('<' ^ '>'), '<' | '>') | find(word | EACH('"' ^ '&'), '"' | '&');
}

/* The number of bytes before the first mark. */
static inline size_t bytes_before(uint64_t marks)
{
    return marks == 0 ? WORD_BYTES : (size_t)__builtin_ctzll(marks) / 8;
}

/* ---- texts ---- */

/* In text and in double quotes, an apostrophe needs no entity. */
#define ENTITY_BYTES 8
static const char entities[256][ENTITY_BYTES] = {
    ['&'] = "&amp;", ['<'] = "&lt;", ['>'] = "&gt;", ['"'] = "&quot;"};
static const unsigned char entity_sizes[256] = {['&'] = 5, ['<'] = 4, ['>'] = 4, ['"'] = 6};

/* ${c}, or its entity. */
static inline char *put_character(char *to, unsigned char c)
{
    if (entity_sizes[c] == 0) {
        *to = (char)c;
        return to + 1;
    }
    memcpy(to, entities[c], ENTITY_BYTES);
    return to + entity_sizes[c];
}

char *html_write(char *to, struct str text)
{
    const char *at = text.p, *end = at + text.n;
    while (end - at >= (ptrdiff_t)WORD_BYTES) {
        size_t plain = bytes_before(find_special(word_of(at)));
        memcpy(to, at, WORD_BYTES);
        to += plain;
        at += plain;
        if (plain < WORD_BYTES)
            to = put_character(to, (unsigned char)*at++);
    }
    while (at < end)
        to = put_character(to, (unsigned char)*at++);
    return to;
}

char *html_write_json(char *to, struct str *rest)
{
    const char *at = rest->p, *end = at + rest->n;
    for (;;) {
        if (end - at >= (ptrdiff_t)WORD_BYTES) {
            uint64_t word = word_of(at);
            size_t plain = bytes_before(find_special(word) | find(word, '\\'));
            memcpy(to, at, WORD_BYTES);
            to += plain;
            at += plain;
            if (plain == WORD_BYTES)
                continue;
        }
        if (at == end || *at == '"')
            break;
        at += *at == '\\' && at + 1 < end;
        to = put_character(to, (unsigned char)*at++);
    }
    at += at < end; /* the last quote */
    *rest = (struct str){at, (size_t)(end - at)};
    return to;
}

void put_text(struct buf *out, struct str text)
{
    char *to = text.n == 0 ? NULL : buf_reserve(out, HTML_MAX(text.n));
    if (to != NULL)
        out->n = (size_t)(html_write(to, text) - out->p);
}

/* ---- URLs ---- */

void put_url(struct buf *out, struct str url)
{
    bool relative = url.n == 0 || memchr("/?#.", url.p[0], 4) != NULL;
    if (relative || str_starts(url, STR("https://")) || str_starts(url, STR("http://")))
        put_text(out, url);
    else
        buf_adds(out, "#");
}

static bool is_unreserved(unsigned char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '.' || c == '_' || c == '~';
}

void put_url_part(struct buf *out, struct str part)
{
    for (size_t i = 0; i < part.n; i++) {
        unsigned char c = (unsigned char)part.p[i];
        if (is_unreserved(c))
            buf_add(out, &part.p[i], 1);
        else
            buf_printf(out, "%%%02X", c);
    }
}
