/* What is wrong with a PEM file of a listener, in a sentence for the operator. */
#ifndef ASSAY_CONN_TLS_FILE_INTERNAL_H
#define ASSAY_CONN_TLS_FILE_INTERNAL_H

#include <stddef.h>

/*
 * tls_certificate_why(bytes, size), tls_key_why(bytes, size): a static sentence that says what the
 * file holds and what to do. Call them after OpenSSL found no certificate or private key in it.
 */
const char *tls_certificate_why(const void *bytes, size_t size);
const char *tls_key_why(const void *bytes, size_t size);

#endif
