#include "core/http/request.h"

#include "core/http/http.h"

#include <stdarg.h>
#include <stdio.h>

void *request_alloc(struct request *r, size_t size)
{
    return h2o_mem_alloc_pool(&r->h2o->pool, size);
}

struct str request_printf(struct request *r, const char *format, ...)
{
    char usual[256];
    va_list args, again;
    va_start(args, format);
    va_copy(again, args);
    size_t n = (size_t)vsnprintf(usual, sizeof(usual), format, args);
    va_end(args);
    char *p = request_alloc(r, n + 1);
    if (n < sizeof(usual))
        memcpy(p, usual, n + 1);
    else
        vsnprintf(p, n + 1, format, again);
    va_end(again);
    return (struct str){p, n};
}

bool request_header(struct request *r, const char *name, struct str *value)
{
    ssize_t at = h2o_find_header_by_str(&r->h2o->headers, name, strlen(name), -1);
    if (at < 0)
        return false;
    *value =
        (struct str){r->h2o->headers.entries[at].value.base, r->h2o->headers.entries[at].value.len};
    return true;
}

struct str request_base_url(struct request *r)
{
    return r->http->base_url;
}

struct str request_base_path(struct request *r)
{
    struct str base = r->http->base_url;
    const char *host = memchr(base.p, ':', base.n), *end = base.p + base.n;
    host = host == NULL || end - host < 3 ? end : host + 3; /* "://" */
    const char *path = memchr(host, '/', (size_t)(end - host));
    return path == NULL ? (struct str){"", 0} : (struct str){path, (size_t)(end - path)};
}

bool request_is_tls(struct request *r)
{
    return r->wait.conn->socket->ssl != NULL;
}
