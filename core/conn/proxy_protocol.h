/*
 * Parser of the PROXY protocol header, versions 1 and 2 (HAProxy's doc/proxy-protocol.txt): the
 * address of the client that a proxy forwards. Pure functions. The caller decides first whether it
 * trusts the proxy.
 */
#ifndef ASSAY_CONN_PROXY_PROTOCOL_H
#define ASSAY_CONN_PROXY_PROTOCOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

/* Longer headers are refused. Addresses of version 2 take 52 bytes; extensions are ignored. */
#define PROXY_HEADER_MAX 536

struct proxy_header {
    size_t size; /* bytes of the header, with its extensions */
    /* the client; AF_UNSPEC: the proxy speaks for itself (LOCAL) or names no IP address */
    struct sockaddr_storage client;
    socklen_t client_size;
};

enum proxy_verdict {
    PROXY_WHOLE,
    PROXY_MORE, /* all ${n} bytes belong to the header, and more must come */
    PROXY_WRONG,
};

/* proxy_header_parse(bytes, n, out): parse the first ${n} bytes; PROXY_WHOLE fills *out. */
enum proxy_verdict proxy_header_parse(const uint8_t *bytes, size_t n, struct proxy_header *out);

#endif
