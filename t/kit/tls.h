/* Self-signed certificates for listeners under test. A failure fails the running test. */
#ifndef ASSAY_T_TLS_KIT_H
#define ASSAY_T_TLS_KIT_H

#include <openssl/evp.h>
#include <stdbool.h>

/*
 * tls_pair(certificate, key, is_rsa, serial): a certificate for 127.0.0.1 that is good for an hour,
 * in the file ${certificate}, and its key in the file ${key} (NULL: nowhere); ECDSA where it is not
 * RSA. The key, which the caller frees.
 */
EVP_PKEY *tls_pair(const char *certificate, const char *key, bool is_rsa, long serial);

/*
 * tls_prepare(), in main: makes an RSA key, which takes long, for the first RSA pair of each test.
 */
void tls_prepare(void);

#endif
