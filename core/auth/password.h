/*
 * Passwords at rest: scrypt (RFC 7914) with N=2^14, r=8, p=1 (16 MiB, some 50 ms), as text that
 * carries its own parameters: $scrypt$ln=14,r=8,p=1$<salt>$<hash>, base64 without padding.
 *
 * Slow on purpose: only the hash thread of a worker and the command line may call these. The
 * password is never kept.
 */
#ifndef ASSAY_AUTH_PASSWORD_H
#define ASSAY_AUTH_PASSWORD_H

#include "store/bytes.h"

#define PASSWORD_HASH_SIZE 96 /* the text and its NUL */
#define PASSWORD_MAX 255      /* bytes */

/*
 * password_hash(password, out): hash under a fresh random salt, zero-terminated text into ${out}.
 * False when memory or randomness is short.
 */
bool password_hash(struct str password, char out[PASSWORD_HASH_SIZE])
    __attribute__((warn_unused_result));

/*
 * password_verify(password, hash): whether ${hash}, of this format and with parameters that cost at
 * most 64 MiB, was made of ${password}. Compares in constant time.
 */
bool password_verify(struct str password, struct str hash) __attribute__((warn_unused_result));

#endif
