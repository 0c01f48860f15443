#include "core/base/cidr.h"

#include <arpa/inet.h>
#include <string.h>

static const uint8_t v4_prefix[12] = {[10] = 0xff, [11] = 0xff};

static void ip_of_v4(const struct in_addr *in, struct ip *out)
{
    memcpy(out->b, v4_prefix, sizeof(v4_prefix));
    memcpy(out->b + sizeof(v4_prefix), in, 4);
}

bool ip_is_v4(const struct ip *ip)
{
    return memcmp(ip->b, v4_prefix, sizeof(v4_prefix)) == 0;
}

bool ip_of(const struct sockaddr *sa, struct ip *out)
{
    /* copied, since ${sa} may not be aligned */
    if (sa->sa_family == AF_INET) {
        struct sockaddr_in in;
        memcpy(&in, sa, sizeof(in));
        ip_of_v4(&in.sin_addr, out);
        return true;
    }
    if (sa->sa_family == AF_INET6) {
        struct sockaddr_in6 in6;
        memcpy(&in6, sa, sizeof(in6));
        memcpy(out->b, &in6.sin6_addr, sizeof(out->b));
        return true;
    }
    return false;
}

bool ip_parse(const char *text, struct ip *out)
{
    struct in_addr in;
    struct in6_addr in6;
    if (inet_pton(AF_INET, text, &in) == 1) {
        ip_of_v4(&in, out);
        return true;
    }
    if (inet_pton(AF_INET6, text, &in6) == 1) {
        memcpy(out->b, &in6, sizeof(out->b));
        return true;
    }
    return false;
}

/* A number from 0 to ${max} without leading zeros. */
static bool prefix_parse(const char *text, unsigned max, unsigned *out)
{
    size_t n = strlen(text);
    if (n == 0 || n > 3 || (n > 1 && text[0] == '0'))
        return false;
    unsigned value = 0;
    for (size_t i = 0; i < n; i++) {
        if (text[i] < '0' || text[i] > '9')
            return false;
        value = value * 10 + (unsigned)(text[i] - '0');
    }
    *out = value;
    return value <= max;
}

static bool bits_equal(const struct ip *a, const struct ip *b, unsigned bits)
{
    unsigned bytes = bits / 8, rest = bits % 8;
    if (memcmp(a->b, b->b, bytes) != 0)
        return false;
    if (rest == 0)
        return true;
    unsigned mask = 0xffu << (8 - rest) & 0xffu;
    return ((a->b[bytes] ^ b->b[bytes]) & mask) == 0;
}

static bool bits_beyond_are_zero(const struct ip *ip, unsigned bits)
{
    for (unsigned i = bits; i < 128; i++)
        if ((ip->b[i / 8] >> (7 - i % 8) & 1) != 0)
            return false;
    return true;
}

bool cidr_parse(const char *text, struct cidr *out)
{
    char address[INET6_ADDRSTRLEN];
    const char *slash = strchr(text, '/');
    size_t n = slash == NULL ? strlen(text) : (size_t)(slash - text);
    if (n >= sizeof(address))
        return false;
    memcpy(address, text, n);
    address[n] = '\0';
    if (!ip_parse(address, &out->net))
        return false;
    out->bits = 128;
    if (slash == NULL)
        return true;
    /* 10.0.0.0/8 and ::ffff:10.0.0.0/104 are the same network */
    bool dotted = strchr(address, ':') == NULL;
    if (!prefix_parse(slash + 1, dotted ? 32 : 128, &out->bits))
        return false;
    if (dotted)
        out->bits += 96;
    return bits_beyond_are_zero(&out->net, out->bits);
}

bool cidr_has(const struct cidr *net, const struct ip *ip)
{
    if (net->bits < 96 && ip_is_v4(ip))
        return false;
    return bits_equal(&net->net, ip, net->bits);
}

bool cidr_list_has(const struct cidr_list *list, const struct ip *ip)
{
    for (size_t i = 0; i < list->count; i++)
        if (cidr_has(&list->items[i], ip))
            return true;
    return false;
}

void ip_text(const struct ip *ip, char out[INET6_ADDRSTRLEN])
{
    if (ip_is_v4(ip))
        inet_ntop(AF_INET, ip->b + sizeof(v4_prefix), out, INET6_ADDRSTRLEN);
    else
        inet_ntop(AF_INET6, ip->b, out, INET6_ADDRSTRLEN);
}
