/*
 * Idempotency-Key: callers choose keys, so each is bound to its credential and path. Pure
 * functions; conditions.c applies them.
 */
#ifndef ASSAY_HTTP_IDEMPOTENCY_H
#define ASSAY_HTTP_IDEMPOTENCY_H

#include "store/bytes.h"

#define IDEMPOTENCY_KEY_MAX 255
#define IDEMPOTENCY_DIGEST_SIZE 32

/* idempotency_key_valid(key): 1 to 255 printable ASCII characters. */
bool idempotency_key_valid(struct str key);

/*
 * idempotency_digest(credential, path, key, out): SHA-256 of all three. False when OpenSSL fails.
 */
bool idempotency_digest(uint64_t credential, struct str path, struct str key,
                        uint8_t out[IDEMPOTENCY_DIGEST_SIZE]);

/* idempotency_body(body, out): SHA-256 of the body as it was sent. */
bool idempotency_body(struct str body, uint8_t out[IDEMPOTENCY_DIGEST_SIZE]);

#endif
