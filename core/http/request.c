#include "core/http/request.h"

#include "core/http/http.h"

#include <stdarg.h>
#include <stdio.h>
#include <strings.h>

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

bool request_header_twice(const struct request *r, const char *name)
{
    const h2o_headers_t *all = &r->h2o->headers;
    ssize_t first = h2o_find_header_by_str(all, name, strlen(name), -1);
    return first >= 0 && h2o_find_header_by_str(all, name, strlen(name), first) >= 0;
}

bool request_bearer(struct request *r, struct str *token)
{
    struct str value;
    if (!request_token_header(r, H2O_TOKEN_AUTHORIZATION, &value) || value.n < 7 ||
        (memcmp(value.p, "Bearer ", 7) != 0 && strncasecmp(value.p, "Bearer ", 7) != 0))
        return false;
    *token = (struct str){value.p + 7, value.n - 7};
    while (token->n > 0 && *token->p == ' ')
        *token = (struct str){token->p + 1, token->n - 1};
    return token->n > 0;
}

struct str request_base_url(struct request *r)
{
    return r->http->base_url;
}

static bool id_acceptable(struct str id)
{
    if (id.n == 0 || id.n > 128)
        return false;
    for (size_t i = 0; i < id.n; i++) {
        char c = id.p[i];
        if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
              c == '.' || c == '_' || c == '-'))
            return false;
    }
    return true;
}

struct str request_id_of(struct http *h, h2o_req_t *req)
{
    for (size_t i = 0; i < req->headers.size; i++) {
        const h2o_header_t *header = &req->headers.entries[i];
        if (header->name->len != strlen("x-request-id") ||
            memcmp(header->name->base, "x-request-id", header->name->len) != 0)
            continue;
        if (id_acceptable((struct str){header->value.base, header->value.len}))
            return (struct str){header->value.base, header->value.len};
        break;
    }
    char *text = h2o_mem_alloc_pool(&req->pool, LOOP_ID_BYTES);
    memcpy(text, loop_next_id(h->loop).p, LOOP_ID_BYTES);
    return (struct str){text, LOOP_ID_BYTES};
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
