#include "core/http/route.h"

#include <assert.h>
#include <strings.h>

/*
 * A hash index by the first two letters of the resource, the segment after /api/v1/ (elsewhere the
 * first segment), so that a request is compared with few rows.
 */
#define BUCKETS 64

static const struct str api = STR("/api/v1/");
static uint8_t bucket_first[BUCKETS];   /* row + 1; 0: none */
static uint8_t bucket_next[ROUTES_MAX]; /* the next row of the bucket, likewise */
static uint8_t prefix_size[ROUTES_MAX]; /* of a row's path, before its first argument */
static bool indexed;

static unsigned bucket_of(struct str path)
{
    const char *p = path.p + (path.n > 0), *end = path.p + path.n;
    if (str_starts(path, api))
        p = path.p + api.n;
    unsigned h = 0, n = 0;
    for (; p < end && *p != '/' && n < 2; p++, n++)
        h = h * 31 + (unsigned char)*p;
    return h % BUCKETS;
}

static void build_index(void)
{
    assert(routes_count <= ROUTES_MAX);
    for (size_t i = routes_count; i > 0; i--) {
        unsigned bucket = bucket_of(str_of(routes[i - 1].path));
        bucket_next[i - 1] = bucket_first[bucket];
        bucket_first[bucket] = (uint8_t)i;
        prefix_size[i - 1] = (uint8_t)strcspn(routes[i - 1].path, "{");
    }
    indexed = true;
}

/* A segment in braces matches any segment that is not empty. */
static bool match(const char *pattern, struct str path, struct str args[PATH_ARGS_MAX])
{
    const char *p = path.p, *end = path.p + path.n;
    size_t count = 0;
    for (; *pattern != '\0'; pattern++) {
        if (*pattern != '{') {
            if (p == end || *p++ != *pattern)
                return false;
            continue;
        }
        const char *from = p;
        while (p < end && *p != '/')
            p++;
        if (p == from)
            return false;
        args[count++] = (struct str){from, (size_t)(p - from)};
        while (*pattern != '}')
            pattern++;
    }
    return p == end;
}

static bool has_method(const struct route *row, struct str method)
{
    return strncmp(row->method, method.p, method.n) == 0 && row->method[method.n] == '\0';
}

const struct route *route_find(struct str method, struct str path, bool internal,
                               struct str args[PATH_ARGS_MAX], const struct route **other)
{
    if (str_eq(method, STR("HEAD")))
        method = STR("GET");
    *other = NULL;
    if (!indexed)
        build_index();
    for (unsigned i = bucket_first[bucket_of(path)]; i != 0; i = bucket_next[i - 1]) {
        const struct route *row = &routes[i - 1];
        size_t prefix = prefix_size[i - 1];
        if (path.n < prefix || (path.n > prefix && row->path[prefix] == '\0') ||
            memcmp(path.p, row->path, prefix) != 0)
            continue;
        if ((row->flags & (internal ? ROUTE_INTERNAL : ROUTE_PRIVATE)) ==
                (internal ? 0 : ROUTE_PRIVATE) ||
            !match(row->path + prefix, (struct str){path.p + prefix, path.n - prefix}, args))
            continue;
        if (has_method(row, method))
            return row;
        *other = row;
    }
    return NULL;
}

struct str route_path(const h2o_req_t *req, struct str *query)
{
    struct str path = {req->input.path.base, req->input.path.len};
    if (path.n > 7 && *path.p != '/' &&
        (strncasecmp(path.p, "http://", 7) == 0 ||
         (path.n > 8 && strncasecmp(path.p, "https://", 8) == 0))) {
        size_t at = path.p[4] == ':' ? 7 : 8;
        const char *slash = memchr(path.p + at, '/', path.n - at);
        path = slash == NULL ? STR("/") : (struct str){slash, path.n - (size_t)(slash - path.p)};
    }
    const char *mark = path.n == 0 ? NULL : memchr(path.p, '?', path.n);
    *query = mark == NULL ? (struct str){NULL, 0}
                          : (struct str){mark + 1, path.n - (size_t)(mark + 1 - path.p)};
    return mark == NULL ? path : (struct str){path.p, (size_t)(mark - path.p)};
}

bool route_known(struct str method, struct str path)
{
    if (path.n > 0 && path.p[path.n - 1] == '*')
        return true;
    for (size_t i = 0; i < routes_count; i++)
        if (str_eq(str_of(routes[i].path), path) &&
            (str_eq(method, STR("*")) || has_method(&routes[i], method)))
            return true;
    return false;
}

void route_allow(const struct route *same, struct buf *out)
{
    for (size_t i = 0; i < routes_count; i++)
        if (strcmp(routes[i].path, same->path) == 0) {
            buf_adds(out, routes[i].method);
            buf_adds(out, strcmp(routes[i].method, "GET") == 0 ? ", HEAD, " : ", ");
        }
    buf_adds(out, "OPTIONS");
}
