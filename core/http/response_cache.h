/*
 * Bodies of GET /api/v1/reports/{id} that a worker has sent, so that a repeated request costs no
 * rendering. An entry is valid while the report's version is the same. At most 4 MiB per worker.
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
    uint64_t workspace, id, version; /* of the record */
    uint64_t store_version;          /* at which the record had ${version} */
    h2o_iovec_t body;                /* of h2o_mem_alloc_shared; base NULL: empty */
};

/*
 * response_cache_find(c, workspace, id): the entry of a report, or NULL.
 * response_cache_put(c, workspace, id, version, store_version, body): add a copy of ${body}; the
 * entry lives at least until the next put. Requests hold a reference to a body while they send it.
 */
struct cached_report *response_cache_find(struct response_cache *c, uint64_t workspace,
                                          uint64_t id);
struct cached_report *response_cache_put(struct response_cache *c, uint64_t workspace, uint64_t id,
                                         uint64_t version, uint64_t store_version, struct str body);

#endif
