/*
 * The keys of counts in Redis: "PREFIX:{LIMITER}:SECONDS:HASH". HASH is SipHash-2-4 of the caller
 * under a key derived from a key file that all nodes share: limits.redis.key_file or, without that
 * option, cluster.key_file. Nobody without it can construct collisions, or tell from Redis who
 * called. Nobody can tell the secret of the file from the derived key, or other keys derived from
 * it. All windows of a limiter have its name as hash tag. Any process.
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
    const char *option;                       /* which names the file */
    char prefix[CONF_REDIS_PREFIX_MAX + 1];
};

/*
 * redis_keys_read(conf, out, why, size): from the key file of the configuration. False, and the
 * reason in ${why}, with the path.
 */
bool redis_keys_read(const struct conf *conf, struct redis_keys *out, char *why, size_t size)
    __attribute__((warn_unused_result));

/* redis_keys_make(prefix, secret, out): all but the option. False: OpenSSL failed. */
bool redis_keys_make(const char *prefix, const uint8_t secret[SECRET_FILE_KEY],
                     struct redis_keys *out) __attribute__((warn_unused_result));

/* redis_keys_of(keys, limiter, window, out): the key of ${window}'s count; returns its length. */
size_t redis_keys_of(const struct redis_keys *keys, const char *limiter,
                     const struct ratelimit_window *window, char out[REDIS_KEY_SIZE]);

/* redis_keys_check(keys, out): the key that holds the fingerprint; returns its length. */
size_t redis_keys_check(const struct redis_keys *keys, char out[REDIS_KEY_SIZE]);

#endif
