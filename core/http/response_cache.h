/*
 * Bodies of responses about a report that a worker has sent, so that a repeated request costs no
 * rendering: one cache for JSON, one for pages. An entry is valid while the report's version is the
 * same. Each cache holds at most 4 MiB: when it is full, entries are evicted in turn.
 */
#ifndef ASSAY_HTTP_RESPONSE_CACHE_H
#define ASSAY_HTTP_RESPONSE_CACHE_H

#include "store/bytes.h"

#include <h2o.h>

struct response_cache;

/* response_cache_new(): NULL when memory is short. response_cache_free(NULL) does nothing. */
struct response_cache *response_cache_new(void);
void response_cache_free(struct response_cache *c);

struct cached_report {
    uint64_t variant;       /* of the bodies of a report: for JSON, the workspace that asked */
    uint64_t id, version;   /* of the record */
    uint64_t store_version; /* at which the record had ${version} */
    h2o_iovec_t body;       /* of h2o_mem_alloc_shared; base NULL: empty */
    h2o_iovec_t gzip;       /* the same compressed; base NULL: not yet */
};

/*
 * response_cache_find(c, variant, id): the entry of a report, or NULL.
 * response_cache_put(c, entry, body): add ${entry} with a copy of ${body}; the entry lives at least
 * until the next put. Requests hold a reference to a body while they send it.
 * response_cache_compress(c, entry, gzip): add a copy of its compressed body.
 */
struct cached_report *response_cache_find(struct response_cache *c, uint64_t variant, uint64_t id);
struct cached_report *response_cache_put(struct response_cache *c,
                                         const struct cached_report *entry, struct str body);
void response_cache_compress(struct response_cache *c, struct cached_report *entry,
                             struct str gzip);

#endif
