#include "core/web/put.h"

#include "core/text/word.h"

#define ENTITY_MAX 6 /* bytes */

/* In text and in double quotes, an apostrophe needs no entity. */
static const bool special[256] = {['&'] = true, ['<'] = true, ['>'] = true, ['"'] = true};

static char *put_entity(char *to, char c)
{
    return c == '&'   ? mempcpy(to, "&amp;", 5)
           : c == '<' ? mempcpy(to, "&lt;", 4)
           : c == '>' ? mempcpy(to, "&gt;", 4)
                      : mempcpy(to, "&quot;", ENTITY_MAX);
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
            to = put_entity(to, *at++);
    }
    for (; at < end; at++)
        if (special[(unsigned char)*at])
            to = put_entity(to, *at);
        else
            *to++ = *at;
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
