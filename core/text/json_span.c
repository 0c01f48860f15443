#include "core/text/json_span.h"

#include "core/text/word.h"

/* These functions read from ${p} to ${end} and return where they stop. */

static const char *skip_space(const char *p, const char *end)
{
    while (p < end && (*p == ' ' || *p == '\t' || *p == '\n' || *p == '\r'))
        p++;
    return p;
}

/* Before a quote or a backslash. */
static const char *skip_plain(const char *p, const char *end)
{
    while (end - p >= (ptrdiff_t)WORD_BYTES) {
        uint64_t word = word_of(p);
        size_t plain = word_first(word_find(word, '"') | word_find(word, '\\'));
        p += plain;
        if (plain < WORD_BYTES)
            return p;
    }
    while (p < end && *p != '"' && *p != '\\')
        p++;
    return p;
}

/* Behind the string that begins at ${p}. */
static const char *skip_string(const char *p, const char *end)
{
    p++;
    while ((p = skip_plain(p, end)) < end - 1 && *p == '\\')
        p += 2;
    return p < end && *p == '"' ? p + 1 : end;
}

/* Ends of a number or word; starts of strings, and brackets. */
static const bool ends[256] = {[','] = true, [']'] = true,  ['}'] = true,  [':'] = true,
                               [' '] = true, ['\t'] = true, ['\n'] = true, ['\r'] = true};
static const bool structural[256] = {
    ['"'] = true, ['['] = true, [']'] = true, ['{'] = true, ['}'] = true};

static const char *skip_scalar(const char *p, const char *end)
{
    while (p < end && !ends[(unsigned char)*p])
        p++;
    return p;
}

static const char *skip_nested(const char *p, const char *end)
{
    size_t depth = 0;
    do {
        while (p < end && !structural[(unsigned char)*p])
            p++;
        if (p == end)
            return p;
        depth += *p == '[' || *p == '{';
        depth -= *p == ']' || *p == '}';
        p = *p == '"' ? skip_string(p, end) : p + 1;
    } while (depth > 0);
    return p;
}

static const char *skip_value(const char *p, const char *end)
{
    if (*p == '"')
        return skip_string(p, end);
    return *p == '[' || *p == '{' ? skip_nested(p, end) : skip_scalar(p, end);
}

struct str json_span_inside(struct str value)
{
    bool nested = value.n >= 2 && (value.p[0] == '[' || value.p[0] == '{');
    return nested ? (struct str){value.p + 1, value.n - 2} : (struct str){NULL, 0};
}

bool json_span_item(struct str *rest, struct str *item)
{
    if (rest->n == 0) /* an empty text may have no address */
        return false;
    const char *end = rest->p + rest->n, *p = skip_space(rest->p, end);
    if (p < end && *p == ',')
        p = skip_space(p + 1, end);
    if (p == end)
        return false;
    const char *behind = skip_value(p, end);
    *item = (struct str){p, (size_t)(behind - p)};
    behind += behind == p;
    *rest = (struct str){behind, (size_t)(end - behind)};
    return true;
}

bool json_span_member(struct str *rest, struct str *name, struct str *value)
{
    struct str quoted;
    if (!json_span_item(rest, &quoted) || quoted.n < 2)
        return false;
    *name = (struct str){quoted.p + 1, quoted.n - 2};
    const char *end = rest->p + rest->n, *p = skip_space(rest->p, end);
    if (p == end || *p != ':')
        return false;
    *rest = (struct str){p + 1, (size_t)(end - p - 1)};
    return json_span_item(rest, value);
}

bool json_span_text(struct str value, struct str *out)
{
    if (value.n < 2 || value.p[0] != '"' || memchr(value.p, '\\', value.n) != NULL)
        return false;
    *out = (struct str){value.p + 1, value.n - 2};
    return true;
}
