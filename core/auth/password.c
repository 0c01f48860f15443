#include "core/auth/password.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/rand.h>
#include <stdio.h>

#define SALT_SIZE 16
#define HASH_SIZE 32
/* 16 and 32 bytes in base64 without padding */
#define SALT_TEXT 22
#define HASH_TEXT 43
#define MEMORY_MAX (UINT64_C(66) << 20)

static const unsigned log_n = 14, block = 8, parallel = 1;

static bool derive(struct str password, const unsigned char salt[SALT_SIZE], const unsigned cost[3],
                   unsigned char out[HASH_SIZE])
{
    return EVP_PBE_scrypt(password.p, password.n, salt, SALT_SIZE, UINT64_C(1) << cost[0], cost[1],
                          cost[2], MEMORY_MAX, out, HASH_SIZE) == 1;
}

/* Base64 without OpenSSL's padding. */
static void encode(const unsigned char *bytes, int n, char *out, size_t text)
{
    char padded[64];
    EVP_EncodeBlock((unsigned char *)padded, bytes, n);
    memcpy(out, padded, text);
}

/* False unless ${text} is exactly what encode makes of the ${n} bytes. */
static bool decode(struct str text, unsigned char *out, int n)
{
    char padded[64], again[64];
    unsigned char bytes[48];
    size_t groups = (text.n + 3) / 4;
    if (groups * 4 > sizeof(padded) || groups * 3 < (size_t)n)
        return false;
    memset(padded, '=', sizeof(padded));
    memcpy(padded, text.p, text.n);
    if (EVP_DecodeBlock(bytes, (const unsigned char *)padded, (int)(groups * 4)) < n)
        return false;
    encode(bytes, n, again, text.n);
    memcpy(out, bytes, (size_t)n);
    return memcmp(again, text.p, text.n) == 0;
}

bool password_hash(struct str password, char out[PASSWORD_HASH_SIZE])
{
    const unsigned cost[3] = {log_n, block, parallel};
    unsigned char salt[SALT_SIZE], hash[HASH_SIZE];
    char salt_text[SALT_TEXT + 1] = "", hash_text[HASH_TEXT + 1] = "";
    if (RAND_bytes(salt, SALT_SIZE) != 1 || !derive(password, salt, cost, hash))
        return false;
    encode(salt, SALT_SIZE, salt_text, SALT_TEXT);
    encode(hash, HASH_SIZE, hash_text, HASH_TEXT);
    OPENSSL_cleanse(hash, sizeof(hash));
    snprintf(out, PASSWORD_HASH_SIZE, "$scrypt$ln=%u,r=%u,p=%u$%s$%s", log_n, block, parallel,
             salt_text, hash_text);
    return true;
}

bool password_verify(struct str password, struct str hash)
{
    char text[PASSWORD_HASH_SIZE];
    unsigned cost[3];
    int salt_at = 0;
    unsigned char salt[SALT_SIZE], stored[HASH_SIZE], made[HASH_SIZE];
    if (hash.n >= sizeof(text))
        return false;
    memcpy(text, hash.p, hash.n);
    text[hash.n] = '\0';
    if (sscanf(text, "$scrypt$ln=%2u,r=%2u,p=%2u$%n", &cost[0], &cost[1], &cost[2], &salt_at) !=
            3 ||
        salt_at == 0)
        return false;
    if (cost[0] < 1 || cost[0] > 16 || cost[1] < 1 || cost[1] > 8 || cost[2] < 1 || cost[2] > 4)
        return false;
    if (hash.n != (size_t)salt_at + SALT_TEXT + 1 + HASH_TEXT || text[salt_at + SALT_TEXT] != '$')
        return false;
    if (!decode((struct str){text + salt_at, SALT_TEXT}, salt, SALT_SIZE) ||
        !decode((struct str){text + salt_at + SALT_TEXT + 1, HASH_TEXT}, stored, HASH_SIZE))
        return false;
    bool same = derive(password, salt, cost, made) && CRYPTO_memcmp(stored, made, HASH_SIZE) == 0;
    OPENSSL_cleanse(made, sizeof(made));
    return same;
}
