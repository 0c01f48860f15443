#include "core/http/response_cache.h"

#include "core/http/cache_slot_internal.h"

#include <stdlib.h>

#define REPORTS 256
#define BODIES_MAX (4u << 20) /* bytes of all bodies */

struct response_cache {
    struct cached_report reports[REPORTS];
    size_t bodies;
    size_t next_evicted;           /* slot; entries are evicted in turn */
    struct cached_report uncached; /* the last body that did not fit */
};

struct response_cache *response_cache_new(void)
{
    return calloc(1, sizeof(struct response_cache));
}

static void drop(struct response_cache *c, struct cached_report *r)
{
    if (r->body.base == NULL)
        return;
    if (r != &c->uncached)
        c->bodies -= r->body.len + r->gzip.len;
    h2o_mem_release_shared(r->body.base);
    if (r->gzip.base != NULL)
        h2o_mem_release_shared(r->gzip.base);
    *r = (struct cached_report){0};
}

void response_cache_free(struct response_cache *c)
{
    if (c == NULL)
        return;
    for (size_t i = 0; i < REPORTS; i++)
        drop(c, &c->reports[i]);
    drop(c, &c->uncached);
    free(c);
}

static struct cached_report *slot_of(struct response_cache *c, uint64_t id)
{
    return &c->reports[cache_slot(id, REPORTS)];
}

struct cached_report *response_cache_find(struct response_cache *c, uint64_t variant, uint64_t id)
{
    struct cached_report *r = slot_of(c, id);
    return r->body.base != NULL && r->id == id && r->variant == variant ? r : NULL;
}

static h2o_iovec_t shared_copy(struct str body)
{
    char *to = h2o_mem_alloc_shared(NULL, body.n, NULL);
    memcpy(to, body.p, body.n);
    return h2o_iovec_init(to, body.n);
}

/* Evict entries other than ${kept} until ${n} more bytes fit. False: they never do. */
static bool evict_for(struct response_cache *c, size_t n, const struct cached_report *kept)
{
    if (n + kept->body.len > BODIES_MAX)
        return false;
    for (; c->bodies + n > BODIES_MAX; c->next_evicted = (c->next_evicted + 1) % REPORTS)
        if (&c->reports[c->next_evicted] != kept)
            drop(c, &c->reports[c->next_evicted]);
    return true;
}

struct cached_report *response_cache_put(struct response_cache *c,
                                         const struct cached_report *entry, struct str body)
{
    struct cached_report *r = slot_of(c, entry->id);
    drop(c, r);
    if (evict_for(c, body.n, r)) {
        c->bodies += body.n;
    } else {
        r = &c->uncached;
        drop(c, r);
    }
    *r = *entry;
    r->body = shared_copy(body);
    r->gzip = (h2o_iovec_t){0};
    return r;
}

void response_cache_compress(struct response_cache *c, struct cached_report *entry, struct str gzip)
{
    bool counted = entry != &c->uncached;
    if (entry->gzip.base != NULL || (counted && !evict_for(c, gzip.n, entry)))
        return;
    entry->gzip = shared_copy(gzip);
    if (counted)
        c->bodies += gzip.n;
}
