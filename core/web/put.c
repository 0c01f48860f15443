#include "core/web/put.h"

/* In text and in double quotes, an apostrophe needs no entity. */
static const bool special[256] = {['&'] = true, ['<'] = true, ['>'] = true, ['"'] = true};

static struct str entity_of(char c)
{
    return c == '&'   ? STR("&amp;")
           : c == '<' ? STR("&lt;")
           : c == '>' ? STR("&gt;")
                      : STR("&quot;");
}

void put_text(struct buf *out, struct str text)
{
    if (text.n == 0)
        return;
    const char *from = text.p, *end = text.p + text.n;
    for (const char *at = from; at < end; at++) {
        if (!special[(unsigned char)*at])
            continue;
        buf_add(out, from, (size_t)(at - from));
        buf_str(out, entity_of(*at));
        from = at + 1;
    }
    buf_add(out, from, (size_t)(end - from));
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
