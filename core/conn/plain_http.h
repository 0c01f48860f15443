/*
 * Plain HTTP on a TLS listener: the client is told to use https, in a 400 in plain text, before the
 * connection is closed. A worker's.
 *
 * OpenSSL hands over the header of the first record that a client sends. Its five bytes tell a method
 * from a TLS record; after them nothing of the connection is looked at, so a handshake costs no
 * system call more. A client that sends fewer is ended by the same time limits as a slow handshake.
 */
#ifndef ASSAY_CONN_PLAIN_HTTP_H
#define ASSAY_CONN_PLAIN_HTTP_H

#include <openssl/ssl.h>

/* plain_http_answer(ctx): answer it on the connections of ${ctx}, whose sockets are a struct conn's. */
void plain_http_answer(SSL_CTX *ctx);

#endif
