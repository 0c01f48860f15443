/*
 * The client's address behind trusted proxies: the right-most address of X-Forwarded-For that no
 * trusted proxy has. api.md §1. Pure.
 */
#ifndef ASSAY_HTTP_CLIENT_IP_H
#define ASSAY_HTTP_CLIENT_IP_H

#include "core/base/cidr.h"
#include "store/bytes.h"

/*
 * client_right_most(trusted, line, ip): go through one header line from its right end. *ip becomes
 * each address met, until one is met that is not ${trusted}. True: all of the line was trusted, go
 * on with the line before. False: *ip is the client, or what stands there is no address and *ip
 * stays the last good one.
 */
bool client_right_most(const struct cidr_list *trusted, struct str line, struct ip *ip);

#endif
