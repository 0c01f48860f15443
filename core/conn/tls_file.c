#include "core/conn/tls_file_internal.h"

#include <stdbool.h>
#include <string.h>

/* What the file holds, by its lines "-----BEGIN …-----". */
struct blocks {
    bool any, certificate, request, key, encrypted, public_key;
};

static bool has(const void *bytes, size_t size, const char *text)
{
    return memmem(bytes, size, text, strlen(text)) != NULL;
}

static struct blocks find_blocks(const void *bytes, size_t size)
{
    return (struct blocks){
        .any = has(bytes, size, "-----BEGIN "),
        /* also TRUSTED CERTIFICATE and X509 CERTIFICATE */
        .certificate = has(bytes, size, " CERTIFICATE-----"),
        .request = has(bytes, size, " CERTIFICATE REQUEST-----"),
        .key = has(bytes, size, " PRIVATE KEY-----"),
        .encrypted = has(bytes, size, "-----BEGIN ENCRYPTED PRIVATE KEY-----") ||
                     has(bytes, size, "Proc-Type: 4,ENCRYPTED"),
        .public_key = has(bytes, size, " PUBLIC KEY-----"),
    };
}

/* An ASN.1 SEQUENCE with a long length: every certificate, key and PKCS #12 file. */
static bool is_der(const void *bytes, size_t size)
{
    const unsigned char *b = bytes;
    return size > 4 && b[0] == 0x30 && (b[1] & 0x80) != 0;
}

const char *tls_certificate_why(const void *bytes, size_t size)
{
    struct blocks in = find_blocks(bytes, size);
    if (size == 0)
        return "the file is empty; it must hold the certificate and its chain as PEM";
    if (in.certificate)
        return "the certificate is damaged or cut off; copy the whole file again";
    if (in.key)
        return "the file holds a private key and no certificate; name the certificate's file here, "
               "and this one as the key";
    if (in.request)
        return "the file holds a certificate request (CSR); give the certificate that the "
               "authority issued for it";
    if (in.any)
        return "the file is PEM but holds no certificate; a certificate begins with -----BEGIN "
               "CERTIFICATE-----";
    if (is_der(bytes, size))
        return "the file is DER, not PEM; convert it with: openssl x509 -inform DER -in FILE -out "
               "FILE.pem"
               " (PKCS #12, .p12 or .pfx: openssl pkcs12 -in FILE -nokeys -out FILE.pem)";
    return "the file is not PEM; a certificate begins with -----BEGIN CERTIFICATE-----";
}

const char *tls_key_why(const void *bytes, size_t size)
{
    struct blocks in = find_blocks(bytes, size);
    if (size == 0)
        return "the file is empty; it must hold the certificate's private key as PEM";
    if (in.encrypted)
        return "the key is encrypted, and assayd asks for no passphrase; decrypt it with: openssl "
               "pkey -in FILE -out FILE.plain";
    if (in.key)
        return "the private key is damaged, cut off or of an unknown kind; copy the whole file "
               "again";
    if (in.certificate)
        return "the file holds a certificate and no private key; name the key's file here, and "
               "this one as the certificate";
    if (in.public_key)
        return "the file holds a public key; give the private key";
    if (in.any)
        return "the file is PEM but holds no private key; a key begins with -----BEGIN PRIVATE "
               "KEY-----";
    if (is_der(bytes, size))
        return "the file is DER, not PEM; convert it with: openssl pkey -inform DER -in FILE -out "
               "FILE.pem"
               " (PKCS #12, .p12 or .pfx: openssl pkcs12 -in FILE -nocerts -nodes -out FILE.pem)";
    return "the file is not PEM; a key begins with -----BEGIN PRIVATE KEY-----";
}
