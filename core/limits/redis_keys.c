#include "core/limits/redis_keys.h"

#include "ratelimit/siphash.h"

#include <inttypes.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <stdio.h>
#include <string.h>

_Static_assert(CONF_REDIS_PREFIX_MAX + LIMITER_NAME_MAX + sizeof(":{}:2678400:0123456789abcdef") <=
                   REDIS_KEY_SIZE,
               "every key fits");

bool redis_keys_make(const char *prefix, const uint8_t secret[SECRET_FILE_KEY],
                     struct redis_keys *out)
{
    static const char purpose[] = "assay: limits in Redis";
    unsigned char derived[EVP_MAX_MD_SIZE];
    unsigned size = 0;
    uint64_t mark;
    if (HMAC(EVP_sha256(), secret, SECRET_FILE_KEY, (const unsigned char *)purpose, strlen(purpose),
             derived, &size) == NULL ||
        size != 32)
        return false;
    memcpy(out->siphash, derived, sizeof(out->siphash));
    memcpy(&mark, derived + sizeof(out->siphash), sizeof(mark));
    snprintf(out->fingerprint, sizeof(out->fingerprint), "%016" PRIx64, mark);
    snprintf(out->prefix, sizeof(out->prefix), "%s", prefix);
    explicit_bzero(derived, sizeof(derived));
    return true;
}

bool redis_keys_read(const struct conf *conf, struct redis_keys *out, char *why, size_t size)
{
    const bool own = conf->redis_key_file[0] != '\0';
    const char *path = own ? conf->redis_key_file : conf->cluster_key_file;
    uint8_t secret[SECRET_FILE_KEY];
    char reason[256] = "OpenSSL cannot hash";
    bool good = secret_file_key(path, secret, reason, sizeof(reason)) &&
                redis_keys_make(conf->redis_prefix, secret, out);
    explicit_bzero(secret, sizeof(secret));
    out->option = own ? "limits.redis.key_file" : "cluster.key_file";
    if (!good)
        snprintf(why, size, "%s: %s", path, reason);
    return good;
}

size_t redis_keys_of(const struct redis_keys *keys, const char *limiter,
                     const struct ratelimit_window *window, char out[REDIS_KEY_SIZE])
{
    uint64_t hash = siphash(SIPHASH_2_4, keys->siphash, window->key, window->key_size);
    return (size_t)snprintf(out, REDIS_KEY_SIZE, "%s:{%s}:%u:%016" PRIx64, keys->prefix, limiter,
                            window->seconds, hash);
}

size_t redis_keys_check(const struct redis_keys *keys, char out[REDIS_KEY_SIZE])
{
    return (size_t)snprintf(out, REDIS_KEY_SIZE, "%s:key-file", keys->prefix);
}
