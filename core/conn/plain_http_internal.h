/*
 * Plain HTTP on a TLS listener: the client gets a 400 in plain text that says to use https.
 *
 * OpenSSL passes the header of the first record to a callback. Its five bytes tell an HTTP method
 * from a TLS record. After that nothing is inspected, so a handshake costs no extra system call. A
 * client that sends fewer bytes runs into the timeout of a slow handshake.
 */
#ifndef ASSAY_CONN_PLAIN_HTTP_INTERNAL_H
#define ASSAY_CONN_PLAIN_HTTP_INTERNAL_H

#include <openssl/ssl.h>

/* plain_http_answer(ctx): do so on the connections of ${ctx}; their sockets belong to a conn. */
void plain_http_answer(SSL_CTX *ctx);

#endif
