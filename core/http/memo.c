#include "core/http/memo.h"

#include <stdlib.h>

#define KEYS 256
#define REPORTS 256
/* all bodies together; what does not fit is sent and forgotten */
#define BODIES_MAX (4u << 20)

struct memo {
    struct memo_key key[KEYS];
    struct memo_key *last; /* asked for */
    struct memo_report report[REPORTS];
    size_t bodies;
    struct memo_report passing; /* the last body that did not fit */
};

struct memo *memo_new(void)
{
    return calloc(1, sizeof(struct memo));
}

static void let_go(struct memo *m, struct memo_report *r)
{
    if (r->body.base == NULL)
        return;
    if (r != &m->passing)
        m->bodies -= r->body.len;
    h2o_mem_release_shared(r->body.base);
    *r = (struct memo_report){0};
}

void memo_free(struct memo *m)
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

int memo_key(struct memo *m, struct str token, enum credential_kind kind, const struct memo_key **out)
{
    enum credential_kind found;
    uint64_t tail;
    uint8_t hash[CREDENTIAL_HASH];
    if (token.n >= CREDENTIAL_SIZE || token.n < sizeof(tail))
        return 0;
    memcpy(&tail, token.p + token.n - sizeof(tail), sizeof(tail));
    struct memo_key *k = &m->key[spread(tail, KEYS)];
    *out = m->last = k;
    if (k->size == token.n && k->kind == kind && same_secret(k->text, token.p, token.n))
        return 1;
    if (!credential_parse(token, &found) || found != kind)
        return 0;
    if (!credential_hash(token, hash))
        return -1;
    *k = (struct memo_key){.size = token.n, .kind = kind};
    memcpy(k->text, token.p, token.n);
    memcpy(k->hash, hash, sizeof(hash));
    return 1;
}

void memo_key_learn(struct memo *m, const struct store_key *key, uint64_t seen)
{
    struct memo_key *k = m->last;
    if (k == NULL || k->size == 0 || memcmp(k->hash, key->hash, sizeof(k->hash)) != 0)
        return;
    k->key = *key;
    k->key.name = (struct str){NULL, 0};
    k->seen = seen;
}

static struct memo_report *place_of(struct memo *m, uint64_t id)
{
    return &m->report[spread(id, REPORTS)];
}

struct memo_report *memo_report(struct memo *m, uint64_t workspace, uint64_t id)
{
    struct memo_report *r = place_of(m, id);
    return r->body.base != NULL && r->id == id && r->workspace == workspace ? r : NULL;
}

struct memo_report *memo_report_put(struct memo *m, uint64_t workspace, uint64_t id, uint64_t version, uint64_t seen,
                                    struct str body)
{
    struct memo_report *r = place_of(m, id);
    let_go(m, r);
    if (m->bodies + body.n > BODIES_MAX) {
        r = &m->passing;
        let_go(m, r);
    } else
        m->bodies += body.n;
    char *to = h2o_mem_alloc_shared(NULL, body.n, NULL);
    memcpy(to, body.p, body.n);
    *r = (struct memo_report){workspace, id, version, seen, {to, body.n}};
    return r;
}
