#include "core/http/response_cache.h"

#include "core/http/cache_slot_internal.h"

#include <stdlib.h>

#define REPORTS 256
#define BODIES_MAX (4u << 20) /* bytes of all bodies */

struct response_cache {
    struct cached_report reports[REPORTS];
    size_t bodies;
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
        c->bodies -= r->body.len;
    h2o_mem_release_shared(r->body.base);
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

struct cached_report *response_cache_find(struct response_cache *c, uint64_t workspace, uint64_t id)
{
    struct cached_report *r = slot_of(c, id);
    return r->body.base != NULL && r->id == id && r->workspace == workspace ? r : NULL;
}

struct cached_report *response_cache_put(struct response_cache *c, uint64_t workspace, uint64_t id,
                                         uint64_t version, uint64_t store_version, struct str body)
{
    struct cached_report *r = slot_of(c, id);
    drop(c, r);
    if (c->bodies + body.n > BODIES_MAX) {
        r = &c->uncached;
        drop(c, r);
    } else
        c->bodies += body.n;
    char *to = h2o_mem_alloc_shared(NULL, body.n, NULL);
    memcpy(to, body.p, body.n);
    *r = (struct cached_report){workspace, id, version, store_version, {to, body.n}};
    return r;
}
