/* What is wrong with a PEM file of a listener, in words for its operator. */
#ifndef ASSAY_CONN_TLS_FILE_H
#define ASSAY_CONN_TLS_FILE_H

#include <stddef.h>

/*
 * tls_certificate_why(bytes, size), tls_key_why(bytes, size): why OpenSSL finds no certificate, or no
 * private key, in a file's bytes: a static sentence that says what the file holds and what to do.
 * Call them only after OpenSSL failed.
 */
const char *tls_certificate_why(const void *bytes, size_t size);
const char *tls_key_why(const void *bytes, size_t size);

#endif
