/*
 * Credentials: `asy_key_` (API keys) or `asy_wp_` (workspace tokens) and 36 base62 characters, 30 of randomness and 6 of CRC-32 over all
 * that stands before them. Made once, shown once, stored as SHA-256 only.
 * Any process. Not for several threads: the digest's context is one a process.
 */
#ifndef ASSAY_AUTH_CREDENTIAL_H
#define ASSAY_AUTH_CREDENTIAL_H

#include "store/store.h"

#define CREDENTIAL_RANDOM 30
#define CREDENTIAL_CHECK 6
#define CREDENTIAL_SIZE 48 /* longest credential and its terminating NUL fit */
#define CREDENTIAL_HASH 32

/* The scopes by name (api.md §2), ending with a NULL name. wp:sync belongs to workspace tokens, the others to API keys. */
struct credential_scope {
    const char *name;
    enum scope bit;
};
extern const struct credential_scope credential_scopes[];

enum credential_kind { CREDENTIAL_KEY, CREDENTIAL_TOKEN, CREDENTIAL_KINDS };

/* credential_prefix(kind): "asy_key_", "asy_wp_". */
const char *credential_prefix(enum credential_kind kind);

/*
 * credential_looks_like(text): what somebody sent, by its first characters alone: "an API key", "a workspace token", "a visitor's token", "a
 * visitor's anonymous id"; NULL for anything else. It says nothing about whether the credential is good.
 */
const char *credential_looks_like(struct str text);

/* credential_new(prefix, out): a fresh secret. False when the system gives no randomness; then ${out} is empty. */
bool credential_new(const char *prefix, char out[CREDENTIAL_SIZE])
    __attribute__((warn_unused_result));

/*
 * credential_parse(text, kind): whether ${text} is a credential somebody could have been given: known prefix, right length, right checksum.
 * Tells a typo without a look-up.
 */
bool credential_parse(struct str text, enum credential_kind *kind);

/*
 * credential_hash(text, out): SHA-256 of ${text}, what the store keeps. False only when OpenSSL fails. Any thread; credential_hash_end() gives
 * back what this one keeps for it, and a thread that ends before its process calls it.
 */
bool credential_hash(struct str text, uint8_t out[CREDENTIAL_HASH])
    __attribute__((warn_unused_result));
void credential_hash_end(void);

#endif
