#include "core/audit/guard_internal.h"
#include "core/audit/text.h"

#include <ifaddrs.h>
#include <stdlib.h>

#define OWN_MAX_AGE_MS 10000

/* A network as prefix and length. */
#define NET4(a, b, c, bits)                                                                        \
    {                                                                                              \
        {{[10] = 0xff, [11] = 0xff, (a), (b), (c)}}, 96 + (bits)                                   \
    }
#define NET6(first, second, bits)                                                                  \
    {                                                                                              \
        {{(first) >> 8, (first)&0xff, (second) >> 8, (second)&0xff}}, (bits)                       \
    }

/* IPv4: all addresses are public except these. */
static const struct cidr denied_v4[] = {
    NET4(0, 0, 0, 8),       /* this network, RFC 791 */
    NET4(10, 0, 0, 8),      /* private, RFC 1918 */
    NET4(100, 64, 0, 10),   /* carrier-grade NAT, RFC 6598 */
    NET4(127, 0, 0, 8),     /* loopback, RFC 1122 */
    NET4(169, 254, 0, 16),  /* link-local and cloud metadata, RFC 3927 */
    NET4(172, 16, 0, 12),   /* private, RFC 1918 */
    NET4(192, 0, 0, 24),    /* protocol assignments, RFC 6890 */
    NET4(192, 0, 2, 24),    /* documentation, RFC 5737 */
    NET4(192, 88, 99, 24),  /* 6to4 relays, RFC 7526 */
    NET4(192, 168, 0, 16),  /* private, RFC 1918 */
    NET4(198, 18, 0, 15),   /* benchmarks, RFC 2544 */
    NET4(198, 51, 100, 24), /* documentation, RFC 5737 */
    NET4(203, 0, 113, 24),  /* documentation, RFC 5737 */
    NET4(224, 0, 0, 4),     /* multicast, RFC 5771 */
    NET4(240, 0, 0, 4),     /* reserved and broadcast, RFC 1112 */
};

/* IPv6: only global unicast is public, except these. */
static const struct cidr public_v6 = NET6(0x2000, 0, 3);
static const struct cidr denied_v6[] = {
    NET6(0x2001, 0, 23),     /* protocol assignments, including Teredo, RFC 2928 */
    NET6(0x2001, 0xdb8, 32), /* documentation, RFC 3849 */
    NET6(0x2002, 0, 16),     /* 6to4: contains an IPv4 address, RFC 3056 */
    NET6(0x3fff, 0, 20),     /* documentation, RFC 9637 */
};

struct guard {
    const struct conf *conf;
    struct ip *own;
    size_t own_count;
    int64_t own_at_ms;
};

static bool in_list(const struct cidr *list, size_t count, const struct ip *ip)
{
    for (size_t i = 0; i < count; i++)
        if (cidr_has(&list[i], ip))
            return true;
    return false;
}

bool guard_ip_denied(const struct ip *ip)
{
    if (ip_is_v4(ip))
        return in_list(denied_v4, sizeof(denied_v4) / sizeof(*denied_v4), ip);
    return !cidr_has(&public_v6, ip) ||
           in_list(denied_v6, sizeof(denied_v6) / sizeof(*denied_v6), ip);
}

static bool ends_in_label(struct str host, const char *label)
{
    size_t n = strlen(label);
    return text_ends(host, label) && (host.n == n || host.p[host.n - n - 1] == '.');
}

/* Names of local networks. audit.allow_private does not open them. */
static bool is_reserved_name(struct str host)
{
    return memchr(host.p, '.', host.n) != NULL &&
           (ends_in_label(host, "local") || ends_in_label(host, "internal"));
}

static bool is_private_name(struct str host)
{
    return memchr(host.p, '.', host.n) == NULL || ends_in_label(host, "localhost");
}

/* Some parsers read a name whose last label is a number, in any base, as an address. */
static bool is_number(struct str label)
{
    bool hex = label.n >= 2 && label.p[0] == '0' && label.p[1] == 'x';
    return strspn(label.p + (hex ? 2 : 0), hex ? "0123456789abcdef" : "0123456789") >=
           label.n - (hex ? 2 : 0);
}

/* Why ${host}, which is zero-terminated, is no valid host name; NULL: it is. */
static const char *name_error(struct str host)
{
    if (host.n > 253)
        return "The host name is longer than 253 characters.";
    if (strspn(host.p, "abcdefghijklmnopqrstuvwxyz0123456789-_.") != host.n)
        return "The host name contains an invalid character. Use letters, digits, hyphens and "
               "dots.";
    for (struct str rest = host, label;;) {
        bool more = text_split(rest, '.', &label, &rest);
        if (label.n == 0 || label.n > 63)
            return "The host name has an empty label, or one longer than 63 characters.";
        if (!more)
            return is_number(label) ? "The host name ends in a number but is not an address."
                                    : NULL;
    }
}

static enum guard_host class_of_name(struct str host, const struct conf *conf)
{
    if (is_reserved_name(host))
        return GUARD_HOST_REFUSED;
    if (!is_private_name(host))
        return GUARD_HOST_FINE;
    return conf->audit_allow_private.count > 0 ? GUARD_HOST_PRIVATE : GUARD_HOST_REFUSED;
}

bool guard_name_refused(struct str name, const struct conf *conf)
{
    return class_of_name(name, conf) == GUARD_HOST_REFUSED;
}

static enum guard_host judge_name(struct str host, const struct conf *conf, const char **why)
{
    *why = name_error(host);
    if (*why != NULL)
        return GUARD_HOST_REFUSED;
    enum guard_host class = class_of_name(host, conf);
    if (class != GUARD_HOST_REFUSED)
        return class;
    *why = is_reserved_name(host)
               ? "Hosts below .local and .internal are not graded. Use a public host name, or an "
                 "address "
                 "that the server's operator allows with the option audit.allow_private."
               : "The host name is private. Use a public one, or ask the server's operator to "
                 "allow its "
                 "address with the option audit.allow_private.";
    return GUARD_HOST_REFUSED;
}

enum guard_host guard_host_judge(const char *host, const struct conf *conf, const char **why)
{
    struct ip ip;
    if (!ip_parse(host, &ip))
        return judge_name(str_of(host), conf, why);
    if (!guard_ip_denied(&ip) || cidr_list_has(&conf->audit_allow_private, &ip))
        return GUARD_HOST_FINE;
    *why = "The address is private or reserved. Use a public one, or ask the server's operator to "
           "allow this one with the option audit.allow_private.";
    return GUARD_HOST_REFUSED;
}

bool guard_port_open(uint16_t port, const struct conf *conf)
{
    for (size_t i = 0; i < conf->audit_ports_count; i++)
        if (conf->audit_ports[i] == port)
            return true;
    return false;
}

static void list_own_addresses(struct guard *guard, int64_t now_ms)
{
    struct ifaddrs *all = NULL;
    if (getifaddrs(&all) != 0)
        return; /* keep the old list */
    size_t count = 0;
    for (struct ifaddrs *a = all; a != NULL; a = a->ifa_next)
        count++;
    struct ip *own = calloc(count + 1, sizeof(*own));
    if (own != NULL) {
        size_t n = 0;
        for (struct ifaddrs *a = all; a != NULL; a = a->ifa_next)
            if (a->ifa_addr != NULL && ip_of(a->ifa_addr, &own[n]))
                n++;
        free(guard->own);
        guard->own = own;
        guard->own_count = n;
        guard->own_at_ms = now_ms;
    }
    freeifaddrs(all);
}

struct guard *guard_new(const struct conf *conf)
{
    struct guard *guard = calloc(1, sizeof(*guard));
    if (guard != NULL) {
        guard->conf = conf;
        guard->own_at_ms = -OWN_MAX_AGE_MS;
    }
    return guard;
}

void guard_free(struct guard *guard)
{
    if (guard == NULL)
        return;
    free(guard->own);
    free(guard);
}

static bool is_own(struct guard *guard, const struct ip *ip, int64_t now_ms)
{
    if (now_ms - guard->own_at_ms >= OWN_MAX_AGE_MS)
        list_own_addresses(guard, now_ms);
    for (size_t i = 0; i < guard->own_count; i++)
        if (memcmp(&guard->own[i], ip, sizeof(*ip)) == 0)
            return true;
    return guard->own == NULL; /* unknown: any address may be the host's own */
}

static uint16_t port_of(const struct sockaddr *sa)
{
    if (sa->sa_family == AF_INET)
        return ntohs(((const struct sockaddr_in *)(const void *)sa)->sin_port);
    return ntohs(((const struct sockaddr_in6 *)(const void *)sa)->sin6_port);
}

bool guard_connect(struct guard *guard, const struct sockaddr *sa, bool private_host,
                   int64_t now_ms)
{
    struct ip ip;
    if (!ip_of(sa, &ip) || !guard_port_open(port_of(sa), guard->conf))
        return false;
    if (cidr_list_has(&guard->conf->audit_allow_private, &ip))
        return true;
    return !private_host && !guard_ip_denied(&ip) && !is_own(guard, &ip, now_ms);
}
