/*
 * The client's address behind trusted proxies: the right-most address in X-Forwarded-For that is
 * not a trusted proxy's. Pure functions.
 */
#ifndef ASSAY_HTTP_CLIENT_IP_H
#define ASSAY_HTTP_CLIENT_IP_H

#include "core/base/cidr.h"
#include "store/bytes.h"

/*
 * client_right_most(trusted, line, ip): read one header line from right to left into *ip, up to the
 * first address that is not in ${trusted}. True: all are trusted; go on with the line before it.
 * False: *ip is the client, or, before text that is not an address, the last trusted one.
 */
bool client_right_most(const struct cidr_list *trusted, struct str line, struct ip *ip);

#endif
