/*
 * IP addresses and networks in binary form. An address has 16 bytes; IPv4 is v4-mapped
 * (::ffff:a.b.c.d), and equals the v4-mapped IPv6 address. Pure functions, any process.
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

/* ip_of(sa, out): the address of a sockaddr_in or _in6; false: another family. */
bool ip_of(const struct sockaddr *sa, struct ip *out);
/* ip_parse(text, out): a dotted quad or RFC 4291 text, without zone and port. */
bool ip_parse(const char *text, struct ip *out);
bool ip_is_v4(const struct ip *ip);
/* ip_text(ip, out): the usual text; IPv4 as a dotted quad. */
void ip_text(const struct ip *ip, char out[INET6_ADDRSTRLEN]);

/*
 * cidr_parse(text, out): "10.0.0.0/8", "2001:db8::/32", or an address. False: malformed, or bits
 * are set after the prefix.
 */
bool cidr_parse(const char *text, struct cidr *out);
/* cidr_has(net, ip): ${ip} is in ${net}. IPv6 networks such as ::/0 contain no IPv4 address. */
bool cidr_has(const struct cidr *net, const struct ip *ip);
bool cidr_list_has(const struct cidr_list *list, const struct ip *ip);

#endif
