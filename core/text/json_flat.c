#include "core/text/json_flat.h"

#include "core/text/form.h"

static const char *after_space(const char *p, const char *end)
{
    while (p < end && (*p == ' ' || *p == '\t' || *p == '\n' || *p == '\r'))
        p++;
    return p;
}

/* Read a string without escapes into ${out}; returns the text after it, NULL: none. */
static const char *plain_string(const char *p, const char *end, struct str *out)
{
    if (p == end || *p != '"')
        return NULL;
    const char *from = ++p;
    while (p < end && *p != '"' && *p != '\\' && (unsigned char)*p >= 0x20)
        p++;
    *out = (struct str){from, (size_t)(p - from)};
    return p < end && *p == '"' ? p + 1 : NULL;
}

static const char *plain_member(const char *p, const char *end, struct json_member *out)
{
    p = plain_string(after_space(p, end), end, &out->name);
    p = p == NULL ? NULL : after_space(p, end);
    if (p == NULL || p == end || *p != ':')
        return NULL;
    p = plain_string(after_space(p + 1, end), end, &out->text);
    return p == NULL ? NULL : after_space(p, end);
}

static bool is_repeated(const struct json_member *members, int count)
{
    for (int i = 0; i < count; i++)
        if (str_eq(members[i].name, members[count].name))
            return true;
    return false;
}

int json_scan_flat(struct str text, struct json_member *members, int most)
{
    const char *end = text.p + text.n, *p = after_space(text.p, end);
    int count = 0;
    if (p == end || *p != '{')
        return -1;
    do {
        p = count < most ? plain_member(p + 1, end, &members[count]) : NULL;
        if (p == NULL || p == end || is_repeated(members, count))
            return -1;
        count++;
    } while (*p == ',');
    return *p == '}' && after_space(p + 1, end) == end && utf8_valid(text) ? count : -1;
}
