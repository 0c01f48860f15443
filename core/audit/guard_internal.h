/*
 * The guard: which hosts, ports and addresses grading may connect to. It judges twice: the name
 * before the DNS lookup, and the resolved address when the socket is opened, for every redirect and
 * probe. Used by the auditor, by `assay audit`, and (names and literal addresses only) by the API.
 */
#ifndef ASSAY_GUARD_INTERNAL_H
#define ASSAY_GUARD_INTERNAL_H

#include "core/conf/conf.h"
#include "store/bytes.h"

/* guard_ip_denied(ip): ${ip} is never public. Looks at the deny lists only. */
bool guard_ip_denied(const struct ip *ip);

/* How the guard judges a host before the DNS lookup. */
enum guard_host {
    GUARD_HOST_FINE,
    /*
     * Single label, localhost and the like: only an address of conf->audit_allow_private is
     * acceptable.
     */
    GUARD_HOST_PRIVATE,
    GUARD_HOST_REFUSED,
};

/*
 * guard_host_judge(host, conf, why):
 * Judge ${host}: lower case, punycode, no trailing dot, an IPv6 address without brackets. If
 * refused, ${why} is a static sentence.
 */
enum guard_host guard_host_judge(const char *host, const struct conf *conf, const char **why);

/*
 * guard_name_refused(name, conf): the same for ${name}, which must be a well-formed name of several
 * labels and no address.
 */
bool guard_name_refused(struct str name, const struct conf *conf);

bool guard_port_open(uint16_t port, const struct conf *conf);

struct guard;

/*
 * guard_new(conf): a guard that also denies the host's own addresses; ${conf} is borrowed. NULL
 * when memory is short.
 */
struct guard *guard_new(const struct conf *conf);
void guard_free(struct guard *guard);

/*
 * guard_connect(guard, sa, private_host, now_ms): a socket to ${sa} may be opened. ${private_host}:
 * the name was GUARD_HOST_PRIVATE. ${now_ms} is monotonic and decides when to list the host's own
 * addresses again.
 */
bool guard_connect(struct guard *guard, const struct sockaddr *sa, bool private_host,
                   int64_t now_ms);

#endif
