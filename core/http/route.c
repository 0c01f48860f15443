#include "route.h"

/* one segment of a pattern against one of a path; an argument takes any but the empty one */
static bool match(const char *pattern, struct str path, struct str args[PATH_ARGS_MAX])
{
    const char *p = path.p, *end = path.p + path.n;
    size_t count = 0;
    while (*pattern != '\0') {
        if (*pattern != '{') {
            if (p == end || *p++ != *pattern++)
                return false;
            continue;
        }
        const char *from = p;
        while (p < end && *p != '/')
            p++;
        if (p == from)
            return false;
        args[count++] = (struct str){from, (size_t)(p - from)};
        pattern = strchr(pattern, '}') + 1;
    }
    return p == end;
}

static bool has_method(const struct route *row, struct str method)
{
    size_t n = strlen(row->method);
    return method.n == n && memcmp(method.p, row->method, n) == 0;
}

const struct route *route_find(struct str method, struct str path, bool internal, struct str args[PATH_ARGS_MAX], const struct route **other)
{
    if (str_eq(method, STR("HEAD")))
        method = STR("GET");
    *other = NULL;
    for (size_t i = 0; i < routes_count; i++) {
        const struct route *row = &routes[i];
        if ((internal && (row->flags & ROUTE_INTERNAL) == 0) || !match(row->path, path, args))
            continue;
        if (has_method(row, method))
            return row;
        *other = row;
    }
    return NULL;
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
