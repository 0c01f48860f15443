#include "core/http/credential_cache.h"

#include "core/http/cache_slot_internal.h"

#include <stdlib.h>
#include <string.h>

#define KEYS 256

struct credential_cache {
    struct cached_key keys[KEYS];
    struct cached_key *last; /* found */
};

struct credential_cache *credential_cache_new(void)
{
    return calloc(1, sizeof(struct credential_cache));
}

void credential_cache_free(struct credential_cache *c)
{
    if (c == NULL)
        return;
    explicit_bzero(c->keys, sizeof(c->keys));
    free(c);
}

int credential_cache_find(struct credential_cache *c, struct str token, enum credential_kind kind,
                          const struct cached_key **out)
{
    enum credential_kind found;
    uint64_t tail;
    uint8_t hash[CREDENTIAL_HASH];
    if (token.n >= CREDENTIAL_SIZE || token.n < sizeof(tail))
        return 0;
    memcpy(&tail, token.p + token.n - sizeof(tail), sizeof(tail));
    struct cached_key *k = &c->keys[cache_slot(tail, KEYS)];
    *out = c->last = k;
    if (k->size == token.n && k->kind == kind && same_secret(k->text, token.p, token.n))
        return 1;
    if (!credential_parse(token, &found) || found != kind)
        return 0;
    if (!credential_hash(token, hash))
        return -1;
    *k = (struct cached_key){.size = token.n, .kind = kind};
    memcpy(k->text, token.p, token.n);
    memcpy(k->hash, hash, sizeof(hash));
    return 1;
}

void credential_cache_store(struct credential_cache *c, const struct store_key *key,
                            uint64_t store_version)
{
    struct cached_key *k = c->last;
    if (k == NULL || k->size == 0 || memcmp(k->hash, key->hash, sizeof(k->hash)) != 0)
        return;
    k->key = *key;
    k->key.name = (struct str){NULL, 0};
    k->store_version = store_version;
}
