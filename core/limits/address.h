/* Addresses of Redis, as the configuration checks them. Pure. */
#ifndef ASSAY_LIMITS_ADDRESS_H
#define ASSAY_LIMITS_ADDRESS_H

#include <stdio.h>
#include <string.h>

#define REDIS_HOST_SIZE 256

/* redis_address_split(address, host): the host of host:port or [ipv6]:port; returns the port. */
static inline const char *redis_address_split(const char *address, char host[REDIS_HOST_SIZE])
{
    const char *colon = strrchr(address, ':');
    size_t n = colon == NULL ? strlen(address) : (size_t)(colon - address);
    if (n > 1 && address[0] == '[')
        snprintf(host, REDIS_HOST_SIZE, "%.*s", (int)n - 2, address + 1);
    else
        snprintf(host, REDIS_HOST_SIZE, "%.*s", (int)n, address);
    return colon == NULL ? "" : colon + 1;
}

/* redis_address_join(host, port, out, size): the address; an IPv6 host gets brackets. */
static inline void redis_address_join(const char *host, const char *port, char *out, size_t size)
{
    int v6 = strchr(host, ':') != NULL;
    snprintf(out, size, "%s%s%s:%s", v6 ? "[" : "", host, v6 ? "]" : "", port);
}

#endif
