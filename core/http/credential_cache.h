/*
 * API keys and workspace tokens that a worker has seen, with their digest and record, so that a
 * repeated credential costs neither a hash nor a read. An entry is valid while the store has the
 * version at which it was read.
 */
#ifndef ASSAY_HTTP_CREDENTIAL_CACHE_H
#define ASSAY_HTTP_CREDENTIAL_CACHE_H

#include "core/auth/credential.h"
#include "store/store.h"

struct credential_cache;

/* credential_cache_new(): NULL when memory is short. credential_cache_free(NULL) does nothing. */
struct credential_cache *credential_cache_new(void);
void credential_cache_free(struct credential_cache *c);

struct cached_key {
    size_t size; /* of ${text}; 0: empty */
    char text[CREDENTIAL_SIZE];
    uint8_t hash[CREDENTIAL_HASH];
    uint64_t store_version; /* at which ${key} was read; 0: not yet */
    struct store_key key;   /* without its name */
    enum credential_kind kind;
};

/*
 * credential_cache_find(c, token, kind, out): *out: the entry of ${token} with its digest, until
 * the next call. 1: found or added; 0: by prefix and checksum not a credential of ${kind}; -1:
 * OpenSSL failed. The time of the comparison depends on the length alone.
 * credential_cache_store(c, key, store_version): add the record read for the entry found last.
 */
int credential_cache_find(struct credential_cache *c, struct str token, enum credential_kind kind,
                          const struct cached_key **out);
void credential_cache_store(struct credential_cache *c, const struct store_key *key,
                            uint64_t store_version);

#endif
