#include "t/kit/tls.h"

#include <check.h>
#include <openssl/pem.h>
#include <openssl/x509.h>

static EVP_PKEY *prepared; /* an RSA key that the next RSA pair of this process takes */

void tls_prepare(void)
{
    prepared = EVP_RSA_gen(2048);
}

static EVP_PKEY *new_key(bool is_rsa)
{
    EVP_PKEY *key = prepared;
    if (!is_rsa)
        return EVP_EC_gen("P-256");
    if (key == NULL)
        return EVP_RSA_gen(2048);
    prepared = NULL;
    return key;
}

EVP_PKEY *tls_pair(const char *certificate, const char *key, bool is_rsa, long serial)
{
    EVP_PKEY *pair = new_key(is_rsa);
    X509 *x = X509_new();
    ck_assert(pair && x);
    X509_set_version(x, 2);
    ASN1_INTEGER_set(X509_get_serialNumber(x), serial);
    X509_gmtime_adj(X509_getm_notBefore(x), -60);
    X509_gmtime_adj(X509_getm_notAfter(x), 3600);
    X509_set_pubkey(x, pair);
    X509_NAME_add_entry_by_txt(X509_get_subject_name(x), "CN", MBSTRING_ASC,
                               (const unsigned char *)"127.0.0.1", -1, -1, 0);
    X509_set_issuer_name(x, X509_get_subject_name(x));
    ck_assert_int_gt(X509_sign(x, pair, EVP_sha256()), 0);
    FILE *file = fopen(certificate, "w");
    ck_assert(file && PEM_write_X509(file, x) == 1 && fclose(file) == 0);
    file = key ? fopen(key, "w") : NULL;
    ck_assert(!key || (file && PEM_write_PrivateKey(file, pair, NULL, NULL, 0, NULL, NULL) == 1 &&
                       fclose(file) == 0));
    X509_free(x);
    return pair;
}
