#include "core/http/conditions.h"

#include "core/http/etag.h"
#include "core/http/reply_internal.h"
#include "core/http/idempotency.h"
#include "core/http/prefer.h"
#include "core/http/reply.h"

#include <endian.h>

/* Further versions in If-Match are ignored, which can refuse a change but never allow one. */
#define MATCH_MAX 64

static bool header_at(struct request *r, ssize_t at, struct str *value)
{
    if (at < 0)
        return false;
    h2o_iovec_t v = r->h2o->headers.entries[at].value;
    *value = (struct str){v.base, v.len};
    return true;
}

/* The next line of a repeated header; *cursor starts at -1. */
static bool header_next(struct request *r, struct str name, ssize_t *cursor, struct str *value)
{
    *cursor = h2o_find_header_by_str(&r->h2o->headers, name.p, name.n, *cursor);
    return header_at(r, *cursor, value);
}

/* The same for a header that libh2o knows by name, which is faster. */
static bool token_next(struct request *r, const h2o_token_t *name, ssize_t *cursor,
                       struct str *value)
{
    *cursor = h2o_find_header(&r->h2o->headers, name, *cursor);
    return header_at(r, *cursor, value);
}

bool reply_etag(struct request *r, uint64_t version)
{
    enum etag_match match = ETAG_MISS;
    struct str line;
    /* once only: a query may call this again with a later version */
    if (r->etag.p == NULL && (r->route->flags & (ROUTE_PUBLIC | ROUTE_PAGE)) == 0)
        reply_token(r, H2O_TOKEN_CACHE_CONTROL,
                    r->route->auth == AUTH_JWT || r->route->auth == AUTH_WP_TOKEN
                        ? STR("no-store")
                        : STR("private, no-cache"));
    r->etag = etag_format(version, request_alloc(r, ETAG_SIZE));
    for (ssize_t cursor = -1;
         match == ETAG_MISS && token_next(r, H2O_TOKEN_IF_NONE_MATCH, &cursor, &line);)
        match = etag_none_match(line, r->etag);
    if (match == ETAG_MISS)
        return false;
    if (match == ETAG_GZIP)
        r->etag = etag_compressed(r->etag, request_alloc(r, ETAG_SIZE));
    reply_token(r, H2O_TOKEN_VARY, STR("accept-encoding")); /* as the 200 has it */
    reply_empty(r, 304);
    return true;
}

void request_if_match(struct request *r, struct store_change *change)
{
    struct str line;
    ssize_t cursor = -1;
    if (!header_next(r, STR("if-match"), &cursor, &line))
        return;
    uint64_t *versions = request_alloc(r, MATCH_MAX * sizeof(*versions));
    size_t count = 0;
    do {
        if (!etag_versions(line, versions, MATCH_MAX, &count))
            return;
    } while (header_next(r, STR("if-match"), &cursor, &line));
    if (count == 0)
        versions[count++] = ETAG_VERSION_NONE;
    for (size_t i = 0; i < count; ++i)
        versions[i] = htole64(versions[i]);
    change->match = (struct str){(const char *)versions, count * sizeof(*versions)};
}

bool request_idempotency(struct request *r, struct store_change *change)
{
    struct str key;
    if (!request_header(r, "idempotency-key", &key))
        return true;
    if (!idempotency_key_valid(key)) {
        reply_error(r, ERR_BAD_REQUEST,
                    "Idempotency-Key must be 1 to %d printable ASCII characters.",
                    IDEMPOTENCY_KEY_MAX);
        return false;
    }
    uint8_t *digests = request_alloc(r, 2 * IDEMPOTENCY_DIGEST_SIZE);
    struct str path = {r->h2o->path_normalized.base, r->h2o->path_normalized.len};
    struct str body = {r->h2o->entity.base, r->h2o->entity.len};
    if (!idempotency_digest(r->key, path, key, digests) ||
        !idempotency_body(body, digests + IDEMPOTENCY_DIGEST_SIZE)) {
        reply_error(r, ERR_INTERNAL, NULL);
        return false;
    }
    change->idem_key = (struct str){(const char *)digests, IDEMPOTENCY_DIGEST_SIZE};
    change->idem_body =
        (struct str){(const char *)digests + IDEMPOTENCY_DIGEST_SIZE, IDEMPOTENCY_DIGEST_SIZE};
    return true;
}

static struct prefer read_prefer(struct request *r)
{
    struct prefer p = {0};
    struct str line;
    for (ssize_t cursor = -1; header_next(r, STR("prefer"), &cursor, &line);)
        prefer_parse(line, &p);
    return p;
}

bool request_is_strict(struct request *r)
{
    return read_prefer(r).strict;
}

struct str request_prefer(struct request *r, unsigned *wait_ms, bool *async)
{
    struct prefer p = read_prefer(r);
    if (p.wait)
        *wait_ms = p.wait_s * 1000;
    if (p.async)
        *async = true;
    return prefer_applied(&p, request_alloc(r, PREFER_APPLIED_SIZE));
}
