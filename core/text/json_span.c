#include "core/text/json_span.h"

static struct str from(struct str s, size_t at)
{
    return (struct str){s.p + at, s.n - at};
}

static struct str skip_space(struct str s)
{
    size_t at = 0;
    while (at < s.n && (s.p[at] == ' ' || s.p[at] == '\t' || s.p[at] == '\n' || s.p[at] == '\r'))
        at++;
    return at == 0 ? s : from(s, at); /* an empty text may have no address */
}

/* The size of the string at the start of ${s}, with quotes. */
static size_t string_size(struct str s)
{
    size_t at = 1;
    while (at < s.n) {
        const char *quote = memchr(s.p + at, '"', s.n - at);
        if (quote == NULL)
            return s.n;
        size_t end = (size_t)(quote - s.p), slashes = 0;
        while (end - slashes > 1 && quote[-(ptrdiff_t)slashes - 1] == '\\')
            slashes++;
        at = end + 1;
        if (slashes % 2 == 0)
            break;
    }
    return at;
}

/* Ends of a number or word; starts of strings, and brackets. */
static const bool ends[256] = {[','] = true, [']'] = true,  ['}'] = true,  [':'] = true,
                               [' '] = true, ['\t'] = true, ['\n'] = true, ['\r'] = true};
static const bool structural[256] = {
    ['"'] = true, ['['] = true, [']'] = true, ['{'] = true, ['}'] = true};

static size_t scalar_size(struct str s)
{
    size_t at = 0;
    while (at < s.n && !ends[(unsigned char)s.p[at]])
        at++;
    return at;
}

static size_t nested_size(struct str s)
{
    size_t at = 0, depth = 0;
    do {
        while (at < s.n && !structural[(unsigned char)s.p[at]])
            at++;
        if (at == s.n)
            return at;
        char c = s.p[at];
        depth += c == '[' || c == '{';
        depth -= c == ']' || c == '}';
        at += c == '"' ? string_size(from(s, at)) : 1;
    } while (depth > 0);
    return at;
}

static size_t value_size(struct str s)
{
    if (s.p[0] == '"')
        return string_size(s);
    return s.p[0] == '[' || s.p[0] == '{' ? nested_size(s) : scalar_size(s);
}

struct str json_span_inside(struct str value)
{
    bool nested = value.n >= 2 && (value.p[0] == '[' || value.p[0] == '{');
    return nested ? (struct str){value.p + 1, value.n - 2} : (struct str){NULL, 0};
}

bool json_span_item(struct str *rest, struct str *item)
{
    struct str s = skip_space(*rest);
    if (s.n > 0 && s.p[0] == ',')
        s = skip_space(from(s, 1));
    if (s.n == 0)
        return false;
    *item = (struct str){s.p, value_size(s)};
    *rest = from(s, item->n > 0 ? item->n : 1);
    return true;
}

bool json_span_member(struct str *rest, struct str *name, struct str *value)
{
    struct str quoted;
    if (!json_span_item(rest, &quoted) || quoted.n < 2)
        return false;
    *name = (struct str){quoted.p + 1, quoted.n - 2};
    struct str s = skip_space(*rest);
    if (s.n == 0 || s.p[0] != ':')
        return false;
    *rest = from(s, 1);
    return json_span_item(rest, value);
}

bool json_span_text(struct str value, struct str *out)
{
    if (value.n < 2 || value.p[0] != '"' || memchr(value.p, '\\', value.n) != NULL)
        return false;
    *out = (struct str){value.p + 1, value.n - 2};
    return true;
}
