#include "core/web/cookies.h"

#include "core/text/chars.h"

static struct str unquoted(struct str value)
{
    if (value.n >= 2 && value.p[0] == '"' && value.p[value.n - 1] == '"')
        return (struct str){value.p + 1, value.n - 2};
    return value;
}

/* cookie-octet of RFC 6265 §4.1.1 */
static bool octets_valid(struct str value)
{
    if (value.n > COOKIE_VALUE_MAX)
        return false;
    for (size_t i = 0; i < value.n; i++) {
        unsigned char c = (unsigned char)value.p[i];
        if (c <= ' ' || c >= 0x7f || c == '"' || c == ',' || c == ';' || c == '\\')
            return false;
    }
    return true;
}

bool cookie_next(struct str *rest, struct str name, struct str *value)
{
    while (rest->n > 0) {
        struct str found = chars_cut(rest, ';');
        bool has_value = found.n > 0 && memchr(found.p, '=', found.n) != NULL;
        if (!str_eq(blanks_trim(chars_cut(&found, '=')), name) || !has_value)
            continue;
        found = unquoted(blanks_trim(found));
        if (!octets_valid(found))
            continue;
        *value = found;
        return true;
    }
    return false;
}

void cookie_text(const struct cookie *c, struct buf *out)
{
    buf_str(out, c->name);
    buf_adds(out, "=");
    buf_str(out, c->value);
    buf_adds(out, "; Path=");
    buf_str(out, c->path);
    buf_adds(out, "; Max-Age=");
    buf_u64(out, c->max_age_s);
    buf_adds(out, c->secure ? "; HttpOnly; SameSite=Lax; Secure" : "; HttpOnly; SameSite=Lax");
}
