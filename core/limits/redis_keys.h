/*
 * The keys of counts in Redis: "PREFIX:{LIMITER}:SECONDS:HASH". HASH is SipHash-2-4 of the caller
 * under a key derived from the key file (limits.redis.key_file), which all nodes share: nobody
 * without it can construct collisions, or tell from Redis who called. All windows of a limiter have
 * its name as hash tag. Pure; any process.
 */
#ifndef ASSAY_LIMITS_REDIS_KEYS_H
#define ASSAY_LIMITS_REDIS_KEYS_H

#include "core/auth/secret_file.h"
#include "core/conf/conf.h"
#include "ratelimit/ratelimit.h"

#define REDIS_KEY_SIZE 112 /* with its NUL */
#define REDIS_FINGERPRINT_SIZE 17

struct redis_keys {
    uint64_t siphash[2];
    char fingerprint[REDIS_FINGERPRINT_SIZE]; /* tells key files apart and reveals nothing else */
    char prefix[CONF_REDIS_PREFIX_MAX + 1];
};

/* redis_keys_make(prefix, secret, out): false: OpenSSL failed. */
bool redis_keys_make(const char *prefix, const uint8_t secret[SECRET_FILE_KEY],
                     struct redis_keys *out) __attribute__((warn_unused_result));

/* redis_keys_of(keys, limiter, window, out): the key of ${window}'s count; returns its length. */
size_t redis_keys_of(const struct redis_keys *keys, const char *limiter,
                     const struct ratelimit_window *window, char out[REDIS_KEY_SIZE]);

/* redis_keys_check(keys, out): the key that holds the fingerprint; returns its length. */
size_t redis_keys_check(const struct redis_keys *keys, char out[REDIS_KEY_SIZE]);

#endif
