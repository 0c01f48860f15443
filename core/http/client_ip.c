#include "core/http/client_ip.h"

#include "core/text/chars.h"

#define ADDRESS_MAX 45 /* the longest text of an IPv6 address */

/* ":" and 1 to 5 digits, or empty */
static bool is_port(struct str s)
{
    if (s.n == 0)
        return true;
    if (*s.p != ':' || s.n < 2 || s.n > 6)
        return false;
    for (size_t i = 1; i < s.n; i++)
        if (s.p[i] < '0' || s.p[i] > '9')
            return false;
    return true;
}

/*
 * An address, perhaps with a port: "192.0.2.1:80", "[2001:db8::1]:80". No names, zones or octals.
 */
static bool parse(struct str s, struct ip *ip)
{
    char text[ADDRESS_MAX + 1];
    struct str port = {NULL, 0};
    s = blanks_trim(s);
    bool bracketed = s.n > 0 && *s.p == '[';
    const char *colon = s.n == 0 ? NULL : memchr(s.p, bracketed ? ']' : ':', s.n);
    bool one_colon =
        colon != NULL && memchr(colon + 1, ':', s.n - (size_t)(colon + 1 - s.p)) == NULL;
    if (bracketed) {
        if (colon == NULL)
            return false;
        port = (struct str){colon + 1, s.n - (size_t)(colon + 1 - s.p)};
        s = (struct str){s.p + 1, (size_t)(colon - s.p) - 1};
    } else if (one_colon) {
        port = (struct str){colon, s.n - (size_t)(colon - s.p)};
        s.n = (size_t)(colon - s.p);
    }
    if (s.n == 0 || s.n > ADDRESS_MAX || !is_port(port) || memchr(s.p, '\0', s.n) != NULL)
        return false;
    memcpy(text, s.p, s.n);
    text[s.n] = '\0';
    return (!bracketed || strchr(text, ':') != NULL) && ip_parse(text, ip);
}

bool client_right_most(const struct cidr_list *trusted, struct str line, struct ip *ip)
{
    for (;;) {
        const char *comma = line.n == 0 ? NULL : memrchr(line.p, ',', line.n);
        struct str item =
            comma == NULL ? line : (struct str){comma + 1, line.n - (size_t)(comma + 1 - line.p)};
        struct ip found;
        if (!parse(item, &found))
            return false;
        *ip = found;
        if (!cidr_list_has(trusted, ip))
            return false;
        if (comma == NULL)
            return true;
        line.n = (size_t)(comma - line.p);
    }
}
