#include "core/http/prefer.h"

#include "core/text/chars.h"
#include "core/text/form.h"

#include <stdio.h>

/* Cut ${rest} at the first ${stop} outside a quoted string. False: nothing is left. */
static bool cut(struct str *rest, char stop, struct str *piece)
{
    bool quoted = false;
    size_t i = 0;
    if (rest->p == NULL)
        return false;
    for (; i < rest->n && (quoted || rest->p[i] != stop); ++i) {
        if (quoted && rest->p[i] == '\\' && i + 1 < rest->n)
            ++i;
        else if (rest->p[i] == '"')
            quoted = !quoted;
    }
    *piece = blanks_trim((struct str){rest->p, i});
    *rest = i < rest->n ? (struct str){rest->p + i + 1, rest->n - i - 1} : (struct str){NULL, 0};
    return true;
}

static void take(struct prefer *p, struct str name, struct str value)
{
    if (chars_equal(name, STR("respond-async")) && value.n == 0) {
        p->async = true;
    } else if (chars_equal(name, STR("wait")) && !p->wait_seen) {
        uint64_t seconds;
        p->wait_seen = true;
        p->wait = number_parse(value, PREFER_WAIT_MAX, &seconds);
        if (p->wait)
            p->wait_s = (unsigned)seconds;
    } else if (chars_equal(name, STR("handling")) && !p->handling_seen) {
        p->handling_seen = true;
        p->strict = chars_equal(value, STR("strict"));
    }
}

void prefer_parse(struct str header, struct prefer *p)
{
    struct str preference, pair, name;
    if (str_eq(header, STR("respond-async"))) { /* the usual spelling */
        p->async = true;
        return;
    }
    while (cut(&header, ',', &preference)) {
        if (!cut(&preference, ';', &pair) || !cut(&pair, '=', &name))
            continue;
        struct str value = pair.p == NULL ? (struct str){NULL, 0} : blanks_trim(pair);
        if (value.n >= 2 && value.p[0] == '"' && value.p[value.n - 1] == '"')
            value = (struct str){value.p + 1, value.n - 2};
        take(p, name, value);
    }
}

struct str prefer_applied(const struct prefer *p, char out[PREFER_APPLIED_SIZE])
{
    if (p->async)
        return STR("respond-async");
    if (!p->wait)
        return (struct str){NULL, 0};
    return (struct str){out, (size_t)snprintf(out, PREFER_APPLIED_SIZE, "wait=%u", p->wait_s)};
}
