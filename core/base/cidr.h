/*
 * Addresses and networks as bits, never as text. An address is always 16 bytes; an IPv4 one is v4-mapped (::ffff:a.b.c.d), and a v4-mapped
 * IPv6 one
 * is the same address. Pure functions, any process.
 */
#ifndef ASSAY_BASE_CIDR_H
#define ASSAY_BASE_CIDR_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

struct ip {
    uint8_t b[16];
};

struct cidr {
    struct ip net;
    unsigned bits; /* of the 128; a v4 network has at least 96 */
};

struct cidr_list {
    struct cidr *items;
    size_t count;
};

/* ip_of(sa, out): the address of a sockaddr_in or _in6; false for any other family. */
bool ip_of(const struct sockaddr *sa, struct ip *out);
/* ip_parse(text, out): strict dotted quad or RFC 4291 text, no zone, no port. */
bool ip_parse(const char *text, struct ip *out);
bool ip_is_v4(const struct ip *ip);
/* ip_text(ip, out): as people write it, an IPv4 one as a dotted quad. */
void ip_text(const struct ip *ip, char out[INET6_ADDRSTRLEN]);

/* cidr_parse(text, out): "10.0.0.0/8", "2001:db8::/32", or a bare address. False if malformed or if bits are set beyond the prefix. */
bool cidr_parse(const char *text, struct cidr *out);
/* cidr_has(net, ip): whether ${ip} is in ${net}. An IPv6 network wider than ::ffff:0:0/96 (::/0, say) holds no IPv4 address. */
bool cidr_has(const struct cidr *net, const struct ip *ip);
bool cidr_list_has(const struct cidr_list *list, const struct ip *ip);

#endif
