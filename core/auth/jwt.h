/*
 * Visitors' tokens: JSON Web Tokens (RFC 7519) signed with HMAC-SHA256. The algorithm is fixed: the
 * header of a token is only compared with HS256.
 */
#ifndef ASSAY_AUTH_JWT_H
#define ASSAY_AUTH_JWT_H

#include "core/auth/signing_keys.h"
#include "core/text/log_position.h"
#include "store/ulid.h"

#define JWT_MAX 1024 /* longer tokens are refused; valid ones have less than JWT_SIZE bytes */
#define JWT_SIZE 512
#define JWT_LEEWAY_S 30 /* for clocks that differ */
#define JWT_ISSUER "assay"

struct jwt {
    struct ulid agent, visitor, conversation;
    int64_t iat, exp;             /* seconds since the epoch */
    struct log_position position; /* of the node that made it; log 0: none */
};

/* jwt_sign(keys, now_ms, claims, out): a token with NUL; its length, 0 when OpenSSL fails. */
size_t jwt_sign(const struct signing_keys *keys, int64_t now_ms, const struct jwt *claims,
                char out[JWT_SIZE]);

/*
 * jwt_verify(keys, token, now_ms, ttl_ms, out): the signature is valid, and the token is at
 * ${now_ms}. ${ttl_ms}: lifetime of tokens, which limits how long an older key is accepted. *out is
 * undefined after false.
 */
bool jwt_verify(const struct signing_keys *keys, struct str token, int64_t now_ms, int64_t ttl_ms,
                struct jwt *out);

#endif
