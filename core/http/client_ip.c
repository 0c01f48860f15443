#include "client_ip.h"

#define ADDRESS_MAX 45 /* the longest text of an IPv6 address */

/* an address, perhaps with a port as some proxies write it: "192.0.2.1:80", "[2001:db8::1]:80" */
static bool parse(struct str s, struct ip *ip)
{
    char text[ADDRESS_MAX + 1];
    while (s.n > 0 && (*s.p == ' ' || *s.p == '\t'))
        s = (struct str){s.p + 1, s.n - 1};
    while (s.n > 0 && (s.p[s.n - 1] == ' ' || s.p[s.n - 1] == '\t'))
        s.n--;
    if (s.n > 0 && *s.p == '[') {
        const char *close = memchr(s.p, ']', s.n);
        if (close == NULL)
            return false;
        s = (struct str){s.p + 1, (size_t)(close - s.p) - 1};
    } else {
        const char *colon = s.n == 0 ? NULL : memchr(s.p, ':', s.n);
        if (colon != NULL && memchr(colon + 1, ':', s.n - (size_t)(colon + 1 - s.p)) == NULL)
            s.n = (size_t)(colon - s.p);
    }
    if (s.n == 0 || s.n > ADDRESS_MAX)
        return false;
    memcpy(text, s.p, s.n);
    text[s.n] = '\0';
    return strlen(text) == s.n && ip_parse(text, ip);
}

bool client_right_most(const struct cidr_list *trusted, struct str line, struct ip *ip)
{
    for (;;) {
        const char *comma = line.n == 0 ? NULL : memrchr(line.p, ',', line.n);
        struct str item = comma == NULL ? line : (struct str){comma + 1, line.n - (size_t)(comma + 1 - line.p)};
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
