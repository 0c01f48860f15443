#include "core/http/cors.h"

#include <ctype.h>

static bool port_valid(struct str port)
{
    unsigned value = 0;
    for (size_t i = 0; i < port.n; i++) {
        if (port.p[i] < '0' || port.p[i] > '9' ||
            (value = value * 10 + (unsigned)(port.p[i] - '0')) > 65535)
            return false;
    }
    return port.n > 0 && port.n <= 5 && value > 0;
}

/* A name (international ones in Punycode), an IPv4 address, or an IPv6 address in brackets. */
static bool host_valid(struct str host)
{
    bool v6 = host.n > 2 && host.p[0] == '[' && host.p[host.n - 1] == ']';
    const char *also = v6 ? ":.[]" : "-._";
    for (size_t i = 0; i < host.n; i++)
        if (!isalnum((unsigned char)host.p[i]) &&
            (host.p[i] == '\0' || strchr(also, host.p[i]) == NULL))
            return false;
    return host.n > 0 && host.p[0] != '.' && host.p[0] != '-';
}

bool cors_origin_normal(struct str text, char out[CORS_ORIGIN_MAX])
{
    static const struct {
        struct str scheme, port;
    } schemes[] = {{STR("http://"), STR("80")}, {STR("https://"), STR("443")}};
    if (text.n >= CORS_ORIGIN_MAX)
        return false;
    for (size_t i = 0; i < text.n; i++)
        out[i] = (char)tolower((unsigned char)text.p[i]);
    out[text.n] = '\0';
    if (str_eq(text, STR("*")))
        return true;
    for (size_t i = 0; i < sizeof(schemes) / sizeof(schemes[0]); i++) {
        size_t n = schemes[i].scheme.n;
        if (text.n <= n || memcmp(out, schemes[i].scheme.p, n) != 0)
            continue;
        struct str host = {out + n, text.n - n};
        char *colon = strrchr(out + n, ':'), *bracket = strrchr(out + n, ']');
        if (colon == NULL || (bracket != NULL && bracket > colon))
            return host_valid(host);
        host.n = (size_t)(colon - host.p);
        struct str port = str_of(colon + 1);
        if (!host_valid(host) || !port_valid(port))
            return false;
        if (str_eq(port, schemes[i].port))
            *colon = '\0';
        return true;
    }
    return false;
}

bool cors_allowed(struct str origins, struct str origin)
{
    while (origins.n > 0) {
        const char *end = memchr(origins.p, '\n', origins.n);
        struct str line = {origins.p, end == NULL ? origins.n : (size_t)(end - origins.p)};
        if (str_eq(line, STR("*")) || (origin.p != NULL && line.n > 0 && str_eq(line, origin)))
            return true;
        size_t used = end == NULL ? line.n : line.n + 1;
        origins = (struct str){origins.p + used, origins.n - used};
    }
    return false;
}
