#include "core/web/put.h"

#include "core/text/word.h"

/* In text and in double quotes, an apostrophe needs no entity. */
#define ENTITY_MAX 8
static const char entities[256][ENTITY_MAX] = {
    ['&'] = "&amp;", ['<'] = "&lt;", ['>'] = "&gt;", ['"'] = "&quot;"};
static const unsigned char entity_sizes[256] = {['&'] = 5, ['<'] = 4, ['>'] = 4, ['"'] = 6};

/* ${c}, or its entity. */
static inline char *put_character(char *to, unsigned char c)
{
    if (entity_sizes[c] == 0) {
        *to = (char)c;
        return to + 1;
    }
    memcpy(to, entities[c], ENTITY_MAX);
    return to + entity_sizes[c];
}

/* The number of bytes before the first one that needs an entity. */
static size_t plain_bytes(uint64_t word)
{
    /* < and > differ in one bit, and so do " and & */
    return word_first(word_find(word | WORD_EACH('<' ^ '>'), '<' | '>') |
                      word_find(word | WORD_EACH('"' ^ '&'), '"' | '&'));
}

void put_text(struct buf *out, struct str text)
{
    char *to = text.n == 0 ? NULL : buf_reserve(out, text.n * ENTITY_MAX);
    if (to == NULL)
        return;
    const char *at = text.p, *end = text.p + text.n;
    while (end - at >= (ptrdiff_t)WORD_BYTES) {
        size_t plain = plain_bytes(word_of(at));
        memcpy(to, at, WORD_BYTES);
        to += plain;
        at += plain;
        if (plain < WORD_BYTES)
            to = put_character(to, (unsigned char)*at++);
    }
    while (at < end)
        to = put_character(to, (unsigned char)*at++);
    out->n = (size_t)(to - out->p);
}

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
