#include "core/http/response_cache.h"

#include <stdlib.h>

#define KEYS 256
#define REPORTS 256
/* all bodies together; what does not fit is sent and forgotten */
#define BODIES_MAX (4u << 20)

struct response_cache {
    struct cached_key key[KEYS];
    struct cached_key *last; /* asked for */
    struct cached_report report[REPORTS];
    size_t bodies;
    struct cached_report passing; /* the last body that did not fit */
};

struct response_cache *response_cache_new(void)
{
    return calloc(1, sizeof(struct response_cache));
}

static void let_go(struct response_cache *m, struct cached_report *r)
{
    if (r->body.base == NULL)
        return;
    if (r != &m->passing)
        m->bodies -= r->body.len;
    h2o_mem_release_shared(r->body.base);
    *r = (struct cached_report){0};
}

void response_cache_free(struct response_cache *m)
{
    if (m == NULL)
        return;
    for (size_t i = 0; i < REPORTS; i++)
        let_go(m, &m->report[i]);
    let_go(m, &m->passing);
    explicit_bzero(m->key, sizeof(m->key));
    free(m);
}

static size_t spread(uint64_t v, size_t slots)
{
    return (v * 0x9E3779B97F4A7C15u >> 32) % slots;
}

/* n ≥ 8 */
static bool same_secret(const char *a, const char *b, size_t n)
{
    uint64_t differ = 0, x, y;
    for (size_t i = 0; i < n; i += sizeof(x)) {
        size_t at = i + sizeof(x) <= n ? i : n - sizeof(x);
        memcpy(&x, a + at, sizeof(x));
        memcpy(&y, b + at, sizeof(y));
        differ |= x ^ y;
    }
    return differ == 0;
}

int cached_key(struct response_cache *m, struct str token, enum credential_kind kind,
               const struct cached_key **out)
{
    enum credential_kind found;
    uint64_t tail;
    uint8_t hash[CREDENTIAL_HASH];
    if (token.n >= CREDENTIAL_SIZE || token.n < sizeof(tail))
        return 0;
    memcpy(&tail, token.p + token.n - sizeof(tail), sizeof(tail));
    struct cached_key *k = &m->key[spread(tail, KEYS)];
    *out = m->last = k;
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

void cached_key_learn(struct response_cache *m, const struct store_key *key, uint64_t seen)
{
    struct cached_key *k = m->last;
    if (k == NULL || k->size == 0 || memcmp(k->hash, key->hash, sizeof(k->hash)) != 0)
        return;
    k->key = *key;
    k->key.name = (struct str){NULL, 0};
    k->seen = seen;
}

static struct cached_report *place_of(struct response_cache *m, uint64_t id)
{
    return &m->report[spread(id, REPORTS)];
}

struct cached_report *cached_report(struct response_cache *m, uint64_t workspace, uint64_t id)
{
    struct cached_report *r = place_of(m, id);
    return r->body.base != NULL && r->id == id && r->workspace == workspace ? r : NULL;
}

struct cached_report *cached_report_put(struct response_cache *m, uint64_t workspace, uint64_t id,
                                        uint64_t version, uint64_t seen, struct str body)
{
    struct cached_report *r = place_of(m, id);
    let_go(m, r);
    if (m->bodies + body.n > BODIES_MAX) {
        r = &m->passing;
        let_go(m, r);
    } else
        m->bodies += body.n;
    char *to = h2o_mem_alloc_shared(NULL, body.n, NULL);
    memcpy(to, body.p, body.n);
    *r = (struct cached_report){workspace, id, version, seen, {to, body.n}};
    return r;
}
