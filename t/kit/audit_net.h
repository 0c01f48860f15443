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
 * net_enter(own, why): enters the network, before any thread starts. ${own}: an IPv4 address of
 * this host. False, with a static ${why}, when the system does not permit it.
 */
bool net_enter(const char *own, const char **why);

/*
 * Addresses of a name, separated by spaces: at its first look-up of each type, and at later ones
 * (NULL: the same).
 */
struct net_name {
    const char *name, *first, *next;
};

/*
 * net_dns_start(names, count): a thread that answers on 127.0.0.1:53. Other names do not exist;
 * "silent.example" gets no answer.
 */
void net_dns_start(const struct net_name *names, size_t count);

/* Certificates for "site.example" and its subdomains, except NET_CERT_OTHER. */
enum net_cert {
    NET_CERT_GOOD,
    NET_CERT_EXPIRED,
    NET_CERT_OTHER,
    NET_CERT_SELF_SIGNED,
    NET_CERT_STRANGER,
    NET_CERTS
};

/*
 * net_tls(): a TLS context of a server. The first label of the requested name selects the
 * certificate, as in "expired.site.example".
 */
SSL_CTX *net_tls(void);

/* net_write_good(directory): writes cert.pem and key.pem for another server. */
bool net_write_good(const char *directory);

#endif
