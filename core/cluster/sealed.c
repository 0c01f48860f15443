#include "core/cluster/sealed.h"

#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <sys/random.h>

/* format, nonce, cipher text, tag */
enum { FORMAT = 1, NONCE = 12, TAG = 16, HEAD = 1 + NONCE };

#define PURPOSE "assay signing keys"

static bool derive(const struct channel_tls_key *key, uint8_t out[32])
{
    unsigned n = 32;
    return HMAC(EVP_sha256(), key->bytes, sizeof(key->bytes), (const unsigned char *)PURPOSE,
                sizeof(PURPOSE) - 1, out, &n) != NULL;
}

/* The cipher, ready for the text. NULL: no memory. */
static EVP_CIPHER_CTX *cipher_of(const struct channel_tls_key *key, const uint8_t nonce[NONCE],
                                 int encrypt)
{
    uint8_t derived[32];
    EVP_CIPHER_CTX *c = EVP_CIPHER_CTX_new();
    bool good = c != NULL && derive(key, derived) &&
                EVP_CipherInit_ex(c, EVP_aes_256_gcm(), NULL, derived, nonce, encrypt) == 1;
    explicit_bzero(derived, sizeof(derived));
    if (good)
        return c;
    EVP_CIPHER_CTX_free(c);
    return NULL;
}

bool seal(const struct channel_tls_key *key, struct str plain, struct buf *out)
{
    int n = 0, last = 0;
    uint8_t *to = (uint8_t *)buf_reserve(out, HEAD + plain.n + TAG);
    if (to == NULL || getrandom(to + 1, NONCE, 0) != NONCE)
        return false;
    to[0] = FORMAT;
    EVP_CIPHER_CTX *c = cipher_of(key, to + 1, 1);
    bool good = c != NULL &&
                EVP_CipherUpdate(c, to + HEAD, &n, (const uint8_t *)plain.p, (int)plain.n) == 1 &&
                EVP_CipherFinal_ex(c, to + HEAD + n, &last) == 1 &&
                EVP_CIPHER_CTX_ctrl(c, EVP_CTRL_GCM_GET_TAG, TAG, to + HEAD + plain.n) == 1;
    EVP_CIPHER_CTX_free(c);
    out->n += good ? HEAD + plain.n + TAG : 0;
    return good;
}

bool unseal(const struct channel_tls_key *key, struct str sealed, struct buf *out)
{
    const uint8_t *from = (const uint8_t *)sealed.p;
    uint8_t tag[TAG];
    int n = 0, last = 0;
    if (sealed.n < HEAD + TAG || from[0] != FORMAT)
        return false;
    const size_t size = sealed.n - HEAD - TAG;
    uint8_t *to = (uint8_t *)buf_reserve(out, size + 1);
    if (to == NULL)
        return false;
    memcpy(tag, from + HEAD + size, TAG);
    EVP_CIPHER_CTX *c = cipher_of(key, from + 1, 0);
    bool good = c != NULL && EVP_CipherUpdate(c, to, &n, from + HEAD, (int)size) == 1 &&
                EVP_CIPHER_CTX_ctrl(c, EVP_CTRL_GCM_SET_TAG, TAG, tag) == 1 &&
                EVP_CipherFinal_ex(c, to + n, &last) == 1;
    EVP_CIPHER_CTX_free(c);
    if (!good)
        explicit_bzero(to, size);
    out->n += good ? size : 0;
    return good;
}
