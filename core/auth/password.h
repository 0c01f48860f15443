/*
 * Password hashes: scrypt (RFC 7914) with N=2^14, r=8, p=1 (16 MiB, some 50 ms), as text with its
 * parameters: $scrypt$ln=14,r=8,p=1$<salt>$<hash>, base64 without padding.
 *
 * Slow on purpose: only the password thread of a worker and the command line may call these.
 */
#ifndef ASSAY_AUTH_PASSWORD_H
#define ASSAY_AUTH_PASSWORD_H

#include "store/bytes.h"

#define PASSWORD_HASH_SIZE 96 /* of the text with NUL */
#define PASSWORD_MAX 255      /* bytes */

/*
 * password_hash(password, out): hash it with a new random salt into a string. False: no memory or
 * randomness.
 */
bool password_hash(struct str password, char out[PASSWORD_HASH_SIZE])
    __attribute__((warn_unused_result));

/*
 * password_verify(password, hash): ${hash} is of ${password}. False also for other formats and for
 * parameters that need more than 64 MiB. Compares in constant time.
 */
bool password_verify(struct str password, struct str hash) __attribute__((warn_unused_result));

#endif
