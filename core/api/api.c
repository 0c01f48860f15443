#include "core/api/api_internal.h"
#include "core/text/form.h"
#include "core/http/pagination.h"
#include "core/http/http.h"

#include <endian.h>

const unsigned api_per_page[] = {10, 25, 50, 100};

bool api_is_number(struct str text)
{
    for (size_t i = 0; i < text.n; ++i)
        if (text.p[i] < '0' || text.p[i] > '9')
            return false;
    return text.n > 0;
}

bool api_id(struct str text, uint64_t *id)
{
    return number_parse(text, INT64_MAX, id) && *id > 0;
}

struct str api_lower(struct request *r, struct str text)
{
    char *to = request_alloc(r, text.n + 1);
    for (size_t i = 0; i < text.n; ++i)
        to[i] = text.p[i] >= 'A' && text.p[i] <= 'Z' ? (char)(text.p[i] | 0x20) : text.p[i];
    return (struct str){to, text.n};
}

struct str api_copy(struct request *r, struct str s)
{
    char *to = request_alloc(r, s.n + 1);
    if (s.n > 0)
        memcpy(to, s.p, s.n);
    return (struct str){to, s.n};
}

uint64_t api_hash(uint64_t hash, const void *p, size_t n)
{
    for (size_t i = 0; i < n; i++)
        hash = (hash ^ ((const uint8_t *)p)[i]) * UINT64_C(0x100000001b3);
    return hash;
}

uint64_t api_version(uint64_t id, uint64_t version)
{
    return (id << 40) + version;
}

void api_version_match(struct request *r, struct store_change *change, uint64_t id)
{
    struct str sent = change->match;
    char *match = request_alloc(r, sent.n);
    for (size_t i = 0; i < sent.n; i += sizeof(uint64_t)) {
        uint64_t version;
        memcpy(&version, sent.p + i, sizeof(version));
        version = htole64(le64toh(version) - api_version(id, 0));
        memcpy(match + i, &version, sizeof(version));
    }
    change->match = (struct str){match, sent.n};
}

struct str api_ignored(struct request *r)
{
    struct buf names = {0};
    if (r->unknown == NULL)
        return (struct str){NULL, 0};
    fields_unknown_list(r->unknown, &names);
    struct str copy = api_copy(r, buf_view(&names));
    buf_free(&names);
    return copy;
}

struct buf *api_body(struct request *r)
{
    struct buf *body = &r->http->body;
    if (body->cap > API_LIST_MAX)
        buf_free(body);
    buf_reset(body);
    return body;
}

void api_reply(struct request *r, int status, const struct buf *body)
{
    struct str whole = buf_view(body);
    if (buf_ok(body))
        reply_json(r, status, &whole, 1);
    else
        reply_error(r, ERR_UNAVAILABLE, NULL);
}

void api_reply_data(struct request *r, int status, struct str body)
{
    const struct str parts[] = {STR("{\"data\":"), body, STR("}")};
    if (r->etag.p == NULL)
        reply_header(r, "cache-control", STR("no-store"));
    reply_json(r, status, parts, 3);
}

void api_reply_data_buf(struct request *r, int status, const struct buf *body)
{
    if (buf_ok(body))
        api_reply_data(r, status, buf_view(body));
    else
        reply_error(r, ERR_UNAVAILABLE, NULL);
}

void api_list_begin(struct buf *out)
{
    buf_reset(out);
    buf_adds(out, "{\"data\":[");
}

void api_list_reply(struct request *r, struct buf *out, struct str path,
                    const struct store_list_query *query, uint64_t total, size_t count)
{
    struct buf link = {0};
    struct pagination p = {
        .base_url = request_base_url(r),
        .path = path,
        .query = r->query,
        .page = query->page,
        .per_page = query->per_page,
        .total = total,
        .count = count,
        .ignored = api_ignored(r),
    };
    buf_adds(out, "],");
    pagination_render(&p, out, &link);
    buf_adds(out, ",\"status\":200}");
    if (!buf_ok(&link)) {
        reply_error(r, ERR_UNAVAILABLE, NULL);
    } else if (out->n > API_LIST_MAX) {
        reply_invalid(r, "per_page", "makes a response larger than 1 MiB; send a smaller value");
    } else {
        if (link.n > 0)
            reply_header(r, "link", api_copy(r, buf_view(&link)));
        api_reply(r, 200, out);
    }
    buf_free(&link);
}
