#include "core/web/put.h"

static struct str entity_of(unsigned char c)
{
    switch (c) {
    case '&':
        return STR("&amp;");
    case '<':
        return STR("&lt;");
    case '>':
        return STR("&gt;");
    case '"':
        return STR("&quot;");
    case '\'':
        return STR("&#39;");
    default:
        return STR("");
    }
}

void put_text(struct buf *out, struct str text)
{
    size_t from = 0;
    for (size_t i = 0; i < text.n; i++) {
        unsigned char c = (unsigned char)text.p[i];
        if (c > '>' || (c != '&' && c != '<' && c != '>' && c != '"' && c != '\''))
            continue;
        buf_add(out, text.p + from, i - from);
        buf_str(out, entity_of(c));
        from = i + 1;
    }
    buf_add(out, text.p + from, text.n - from);
}

static bool starts_with(struct str s, struct str start)
{
    return s.n >= start.n && memcmp(s.p, start.p, start.n) == 0;
}

void put_url(struct buf *out, struct str url)
{
    bool relative = url.n == 0 || memchr("/?#.", url.p[0], 4) != NULL;
    if (relative || starts_with(url, STR("https://")) || starts_with(url, STR("http://")))
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
