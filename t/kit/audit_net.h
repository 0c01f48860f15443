/*
 * A private network for tests of grading. In its network and mount namespaces every IPv4 and IPv6
 * address is delivered to the test, a DNS server of the test answers for all names, and only the
 * test's certificate authority is trusted. The auditor runs with its default guard, so the test
 * sees any connection to a forbidden address.
 */
#ifndef ASSAY_T_AUDIT_NET_H
#define ASSAY_T_AUDIT_NET_H

#include <openssl/ssl.h>
#include <stdbool.h>

/*
 * net_enter(own, why): enter it, before any thread is made; ${own} is an IPv4 address that this
 * host has for its own. False, with a static ${why}, where the system does not let us.
 */
bool net_enter(const char *own, const char **why);

/*
 * What a name is: addresses apart by spaces, at its first look-up (of each type) and at all later
 * ones; NULL: the same.
 */
struct net_name {
    const char *name, *first, *next;
};

/*
 * net_dns_start(names, count): answer on 127.0.0.1:53 in a thread; other names do not exist, and
 * "silent.example" is never answered.
 */
void net_dns_start(const struct net_name *names, size_t count);

/* Certificates, all for "site.example" and what is below it but NET_CERT_OTHER's. */
enum net_cert {
    NET_CERT_GOOD,
    NET_CERT_EXPIRED,
    NET_CERT_OTHER,
    NET_CERT_SELF_SIGNED,
    NET_CERT_STRANGER,
    NET_CERTS
};

/*
 * net_tls(): a server's context that shows the certificate whose kind begins the name asked for:
 * "expired.site.example".
 */
SSL_CTX *net_tls(void);

/* net_write_good(directory): cert.pem and key.pem there, for another server. */
bool net_write_good(const char *directory);

#endif
