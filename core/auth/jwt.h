/*
 * Visitors' tokens: JSON Web Tokens (RFC 7519), signed by HMAC-SHA256 and nothing else. The algorithm is pinned: what a token's header says
 * about it is only ever compared with HS256. Pure but for the secrets; worker processes only (one context for HMAC).
 */
#ifndef ASSAY_AUTH_JWT_H
#define ASSAY_AUTH_JWT_H

#include "core/auth/signing_keys.h"
#include "store/ulid.h"

#define JWT_MAX 1024 /* bytes of a token, ours have under 400; longer ones are not looked at */
#define JWT_SIZE 512
#define JWT_LEEWAY_S 30 /* two hosts' clocks may differ by that */
#define JWT_ISSUER "assay"

struct jwt {
    struct ulid agent, visitor, conversation;
    int64_t iat, exp; /* seconds since the epoch */
};

/* jwt_sign(secrets, now_ms, claims, out): the token in ${out}, ended by NUL; its length, 0 when OpenSSL fails. */
size_t jwt_sign(const struct signing_keys *secrets, int64_t now_ms, const struct jwt *claims,
                char out[JWT_SIZE]);

/*
 * jwt_verify(secrets, token, now_ms, ttl_ms, out): true for a token of ours that is good at ${now_ms}; ${ttl_ms}: the life of tokens, which
 * bounds how long an older secret is believed. What lies in ${out} after false means nothing.
 */
bool jwt_verify(const struct signing_keys *secrets, struct str token, int64_t now_ms,
                int64_t ttl_ms, struct jwt *out);

#endif
