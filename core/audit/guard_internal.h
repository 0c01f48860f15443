/*
 * The guard: where grading may connect to (audits.md, "Fetching: the guard"). Judged twice: by name before any look-up, and by the resolved
 * address when the socket is opened, on every redirect and probe. The auditor, `assay audit`, and (names and literal addresses only) the
 * API.
 */
#ifndef ASSAY_GUARD_INTERNAL_H
#define ASSAY_GUARD_INTERNAL_H

#include "core/conf/conf.h"
#include "store/bytes.h"

/* guard_ip_denied(ip): the deny lists alone: true for addresses that are never public. */
bool guard_ip_denied(const struct ip *ip);

/* A host as the guard sees it before any look-up. */
enum guard_host {
    GUARD_HOST_FINE,
    GUARD_HOST_PRIVATE, /* a single label, localhost and its like: only conf->audit_allow_private can open it, and only it */
    GUARD_HOST_REFUSED,
};

/*
 * guard_host_judge(host, conf, why):
 * Judge ${host}: lower case, punycode, no trailing dot, an IPv6 address without brackets. Where it is not FINE or PRIVATE, ${why} is a
 * static sentence.
 */
enum guard_host guard_host_judge(const char *host, const struct conf *conf, const char **why);

/* guard_name_refused(name, conf): would that refuse ${name}, which is known to be a well-formed name of several labels and no address? */
bool guard_name_refused(struct str name, const struct conf *conf);

bool guard_port_open(uint16_t port, const struct conf *conf);

struct guard;

/* guard_new(conf): a guard that also knows the host's own addresses; ${conf} is borrowed. NULL when memory is short. */
struct guard *guard_new(const struct conf *conf);
void guard_free(struct guard *guard);

/*
 * guard_connect(guard, sa, private_host, now_ms): whether a socket to ${sa} may be opened. ${private_host}: the name was
 * GUARD_HOST_PRIVATE. ${now_ms} (monotonic) ages what is known of the host's own addresses.
 */
bool guard_connect(struct guard *guard, const struct sockaddr *sa, bool private_host, int64_t now_ms);

#endif
