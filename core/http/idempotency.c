#include "core/http/idempotency.h"

#include <openssl/evp.h>

bool idempotency_key_valid(struct str key)
{
    if (key.n == 0 || key.n > IDEMPOTENCY_KEY_MAX)
        return false;
    for (size_t i = 0; i < key.n; ++i)
        if (key.p[i] < 0x20 || key.p[i] > 0x7e)
            return false;
    return true;
}

/* The length of the path comes first, so that different triples have different input. */
bool idempotency_digest(uint64_t credential, struct str path, struct str key,
                        uint8_t out[IDEMPOTENCY_DIGEST_SIZE])
{
    uint64_t head[2] = {credential, path.n};
    EVP_MD_CTX *context = EVP_MD_CTX_new();
    bool ok = context != NULL && EVP_DigestInit_ex(context, EVP_sha256(), NULL) == 1 &&
              EVP_DigestUpdate(context, head, sizeof(head)) == 1 &&
              EVP_DigestUpdate(context, path.p, path.n) == 1 &&
              EVP_DigestUpdate(context, key.p, key.n) == 1 &&
              EVP_DigestFinal_ex(context, out, NULL) == 1;
    EVP_MD_CTX_free(context);
    return ok;
}

bool idempotency_body(struct str body, uint8_t out[IDEMPOTENCY_DIGEST_SIZE])
{
    return EVP_Digest(body.p, body.n, out, NULL, EVP_sha256(), NULL) == 1;
}
