/*
 * The PROXY protocol's header, versions 1 and 2 (HAProxy's doc/proxy-protocol.txt), which a proxy sends before anything else on a
 * connection: whom it speaks for. Pure functions. Whether the proxy is believed is the caller's to judge, before it reads a byte.
 */
#ifndef ASSAY_CONN_PROXY_PROTOCOL_H
#define ASSAY_CONN_PROXY_PROTOCOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

/* A longer header is refused: the addresses of version 2 take 52 bytes, the rest is for extensions, of which none is used. */
#define PROXY_HEADER_MAX 536

struct proxy_header {
    size_t size; /* bytes of the header, extensions included */
    /* the client's address; family AF_UNSPEC: the proxy speaks for itself (LOCAL), or does not tell an IP address */
    struct sockaddr_storage client;
    socklen_t client_size;
};

enum proxy_verdict {
    PROXY_WHOLE,
    PROXY_MORE /* all ${n} bytes belong to it, and more must come */,
    PROXY_WRONG
};

/* proxy_header_parse(bytes, n, out): what a connection's first ${n} bytes are; *out is filled with PROXY_WHOLE. */
enum proxy_verdict proxy_header_parse(const uint8_t *bytes, size_t n, struct proxy_header *out);

#endif
