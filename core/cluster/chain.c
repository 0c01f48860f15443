#include "core/cluster/chain.h"

#include <endian.h>
#include <openssl/evp.h>

static bool add(EVP_MD_CTX *c, const void *p, size_t n)
{
    return EVP_DigestUpdate(c, p, n) == 1;
}

bool chain_next(const uint8_t before[STORE_CHAIN_BYTES], uint64_t sequence, uint64_t epoch,
                uint32_t format, struct str rows, uint8_t out[STORE_CHAIN_BYTES])
{
    const uint64_t numbers[] = {htobe64(sequence), htobe64(epoch), htobe64(format)};
    EVP_MD_CTX *c = EVP_MD_CTX_new();
    bool good = c != NULL && EVP_DigestInit_ex(c, EVP_sha256(), NULL) == 1 &&
                add(c, before, STORE_CHAIN_BYTES) && add(c, numbers, sizeof(numbers)) &&
                add(c, rows.p, rows.n) && EVP_DigestFinal_ex(c, out, NULL) == 1;
    EVP_MD_CTX_free(c);
    return good;
}
