#include "core/audit/facts_internal.h"
#include "core/audit/text.h"
#include "core/audit/url.h"

#include <zlib.h>

/* About a microsecond each. URLs beyond this number are assumed to be valid. */
#define RESOLVED_MAX 10000
#define BASE_MAX 2048 /* as for all URLs; a longer base is ignored */

#define GZIP_LEVEL 1 /* nginx's default; takes a third of the time of level 6 */
#define ARENA_BYTES ((size_t)16 * 1024 * 1024)

void facts_init(struct facts *facts)
{
    *facts = (struct facts){0};
    arena_init(&facts->arena, ARENA_BYTES);
}

void facts_free(struct facts *facts)
{
    page_free(&facts->page);
    arena_free(&facts->arena);
}

static uint64_t gzip_size(struct str body)
{
    unsigned char out[16 * 1024];
    z_stream z = {0};
    if (deflateInit2(&z, GZIP_LEVEL, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) != Z_OK)
        return 0;
    uint64_t bytes = 0;
    int code;
    z.next_in = (Bytef *)(uintptr_t)body.p;
    z.avail_in = (uInt)body.n;
    do {
        z.next_out = out;
        z.avail_out = sizeof(out);
        code = deflate(&z, Z_FINISH);
        bytes += sizeof(out) - z.avail_out;
    } while (code == Z_OK || code == Z_BUF_ERROR);
    deflateEnd(&z);
    return code == Z_STREAM_END ? bytes : 0;
}

static void find_base(struct facts *facts)
{
    facts->base_url = facts->response.url;
    size_t at = 0;
    for (const struct page_element *e; (e = page_next(&facts->page, TAG_BASE, &at)) != NULL;) {
        struct str href = page_value(e, "href");
        if (href.n == 0)
            continue;
        struct str absolute = facts_resolve(facts, href);
        bool web = text_starts(absolute, "http://") || text_starts(absolute, "https://");
        if (web && absolute.n <= BASE_MAX)
            facts->base_url = absolute;
        return;
    }
}

enum page_status facts_read(struct facts *facts, struct str body, unsigned deadline_ms)
{
    struct buf html = {0};
    charset_find(body, facts_header_first(facts, "content-type"), &facts->charset);
    enum page_status status = PAGE_NO_MEMORY;
    if (charset_to_utf8(&facts->charset, body, &html))
        status = page_read(&facts->page, buf_view(&html), deadline_ms);
    buf_free(&html);
    if (status == PAGE_OK) {
        find_base(facts);
        if (facts_header_first(facts, "content-encoding").n == 0)
            facts->response.gzip_bytes = gzip_size(body);
    }
    return status;
}

struct str facts_header(const struct facts *facts, const char *name, size_t *from)
{
    while (*from < facts->response.header_count) {
        const struct fact_header *h = &facts->response.headers[(*from)++];
        if (text_eq(h->name, name))
            return h->value;
    }
    return (struct str){0};
}

struct str facts_header_first(const struct facts *facts, const char *name)
{
    size_t from = 0;
    struct str value = facts_header(facts, name, &from);
    return value.p == NULL ? STR("") : value;
}

const struct page_element *facts_title_element(const struct facts *facts)
{
    size_t at = 0;
    for (const struct page_element *e; (e = page_next(&facts->page, TAG_TITLE, &at)) != NULL;)
        if ((e->flags & ELEMENT_IN_SVG) == 0)
            return e;
    return NULL;
}

struct str facts_title(const struct facts *facts)
{
    const struct page_element *title = facts_title_element(facts);
    return title == NULL ? STR("") : title->text;
}

struct str facts_protocol(const struct facts *facts)
{
    switch (facts->response.http_version) {
    case 10:
        return STR("HTTP/1.0");
    case 20:
        return STR("HTTP/2");
    case 30:
        return STR("HTTP/3");
    default:
        return STR("HTTP/1.1");
    }
}

bool facts_wants_favicon(const struct facts *facts)
{
    size_t at = 0;
    for (const struct page_element *e; (e = page_next(&facts->page, TAG_LINK, &at)) != NULL;)
        if (text_has_token(page_value(e, "rel"), "icon") && page_value(e, "href").n > 0)
            return false;
    return true;
}

bool facts_may_resolve(const struct facts *facts, size_t *spent)
{
    *spent += 1 + facts->base_url.n / 256;
    return *spent <= RESOLVED_MAX;
}

struct str facts_resolve(struct facts *facts, struct str url)
{
    struct buf out = {0};
    struct str kept = STR("");
    if (facts_may_resolve(facts, &facts->resolved) && url_resolve(url, facts->base_url.p, &out) &&
        buf_ok(&out))
        kept = arena_copy(&facts->arena, buf_view(&out));
    buf_free(&out);
    return kept;
}
