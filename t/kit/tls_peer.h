/*
 * A peer of a channel that uses OpenSSL without our code: other versions, certificates, keys and
 * identities, and messages that a channel never sends. A failure fails the running test.
 */
#ifndef ASSAY_T_TLS_PEER_H
#define ASSAY_T_TLS_PEER_H

#include "core/ipc/channel_tls.h"

#include <openssl/ssl.h>

struct tls_peer_kind {
    bool is_server, has_certificate, tls_1_2;
    bool allows_psk_ke;   /* a key without a secret of the connection */
    const char *identity; /* NULL: no key */
    const char *ciphers;  /* NULL: the default */
    unsigned char fill;   /* of the key */
};

struct tls_peer {
    const struct tls_peer_kind *kind;
    SSL_CTX *ctx;
    SSL *ssl;
    unsigned received[256]; /* handshake messages by their type */
};

/* tls_peer_begin(kind, fd, out): take over ${fd} */
void tls_peer_begin(const struct tls_peer_kind *kind, int fd, struct tls_peer *out);

/* tls_peer_turn(p): go on with the handshake or read ${size} bytes: as SSL_read */
int tls_peer_turn(struct tls_peer *p, void *to, int size);

void tls_peer_close(struct tls_peer *p);

#endif
