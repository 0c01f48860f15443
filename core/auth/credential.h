/*
 * API keys (`asy_key_`) and workspace tokens (`asy_wp_`): the prefix and 36 base62 characters: 30
 * random ones, and 6 with the CRC-32 of all before. The store has only their SHA-256. Any process.
 */
#ifndef ASSAY_AUTH_CREDENTIAL_H
#define ASSAY_AUTH_CREDENTIAL_H

#include "store/store.h"

#define CREDENTIAL_RANDOM 30
#define CREDENTIAL_CHECK 6
#define CREDENTIAL_SIZE 48 /* of the longest credential with NUL */
#define CREDENTIAL_HASH 32

/*
 * The scopes by name; ends with a NULL name. wp:sync is for workspace tokens, the others for keys.
 */
struct credential_scope {
    const char *name;
    enum scope bit;
};
extern const struct credential_scope credential_scopes[];

enum credential_kind { CREDENTIAL_KEY, CREDENTIAL_TOKEN, CREDENTIAL_KINDS };

/* credential_prefix(kind): "asy_key_" or "asy_wp_". */
const char *credential_prefix(enum credential_kind kind);

/*
 * credential_looks_like(text): the kind of a credential by its first characters, valid or not: "an
 * API key", "a workspace token", "a visitor's token", "a visitor's anonymous id"; NULL: unknown.
 */
const char *credential_looks_like(struct str text);

/* credential_new(prefix, out): a new credential. False: no randomness; then ${out} is empty. */
bool credential_new(const char *prefix, char out[CREDENTIAL_SIZE])
    __attribute__((warn_unused_result));

/* credential_parse(text, kind): prefix, length and checksum are right. Needs no lookup. */
bool credential_parse(struct str text, enum credential_kind *kind);

/*
 * credential_hash(text, out): SHA-256 of ${text}. False: OpenSSL failed. Any thread.
 * credential_hash_end(): free what this thread keeps for it, before the thread ends.
 */
bool credential_hash(struct str text, uint8_t out[CREDENTIAL_HASH])
    __attribute__((warn_unused_result));
void credential_hash_end(void);

#endif
