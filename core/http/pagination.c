#include "core/http/pagination.h"
#include "core/text/form.h"
#include "core/text/json_out.h"

/* A URL of the list, split where the page number goes. */
struct address {
    struct buf before, after;
};

/*
 * Characters of a query (RFC 3986 §3.4). Others are percent-encoded, so links are safe in JSON and
 * <…>.
 */
static bool query_char(unsigned char c)
{
    if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9'))
        return true;
    return c != 0 && strchr("-._~!$&'()*+,;=:@/?%[]", c) != NULL;
}

static void query_add(struct buf *b, struct str raw)
{
    static const char digits[] = "0123456789ABCDEF";
    for (size_t i = 0; i < raw.n; ++i) {
        unsigned char c = (unsigned char)raw.p[i];
        if (query_char(c))
            buf_add(b, raw.p + i, 1);
        else
            buf_add(b, (char[]){'%', digits[c >> 4], digits[c & 15]}, 3);
    }
}

static bool is_page(struct str raw_name)
{
    char decoded[12]; /* "page", each letter as %XX */
    return raw_name.n <= sizeof(decoded) &&
           str_eq(form_decode(raw_name, true, decoded), STR("page"));
}

static void address_make(const struct pagination *p, struct address *a)
{
    buf_str(&a->before, p->base_url);
    buf_str(&a->before, p->path);
    struct buf *side = &a->before;
    struct form form = {p->query};
    struct str name, value;
    char separator = '?';
    while (form_next(&form, &name, &value)) {
        buf_add(side, &separator, 1);
        separator = '&';
        if (side == &a->before && is_page(name)) {
            buf_adds(side, "page=");
            side = &a->after;
            continue;
        }
        /* the pair as it was sent, with or without "=" */
        query_add(side, (struct str){name.p, (size_t)(value.p + value.n - name.p)});
    }
    if (side == &a->before) {
        buf_add(side, &separator, 1);
        buf_adds(side, "page=");
    }
}

static void address_add(struct buf *b, const struct address *a, uint64_t page)
{
    buf_str(b, buf_view(&a->before));
    buf_u64(b, page);
    buf_str(b, buf_view(&a->after));
}

/* Page 0: null in the body, and not in the header. */
static void relation(struct buf *envelope, struct buf *link, const struct address *a,
                     const char *name, uint64_t page)
{
    buf_printf(envelope, "%s\"%s\":", strcmp(name, "first") == 0 ? "" : ",", name);
    if (page == 0) {
        buf_adds(envelope, "null");
        return;
    }
    buf_adds(envelope, "\"");
    address_add(envelope, a, page);
    buf_adds(envelope, "\"");
    buf_adds(link, link->n == 0 ? "<" : ", <");
    address_add(link, a, page);
    buf_printf(link, ">; rel=\"%s\"", name);
}

static void number_or_null(struct buf *b, const char *name, uint64_t number, bool there)
{
    buf_printf(b, ",\"%s\":", name);
    if (there)
        buf_u64(b, number);
    else
        buf_adds(b, "null");
}

void pagination_render(const struct pagination *p, struct buf *envelope, struct buf *link)
{
    uint64_t last = p->total == 0 ? 1 : (p->total - 1) / p->per_page + 1;
    uint64_t from = (p->page - 1) * p->per_page + 1;
    struct address a = {0};
    address_make(p, &a);
    buf_adds(envelope, "\"links\":{");
    relation(envelope, link, &a, "first", 1);
    relation(envelope, link, &a, "last", last);
    relation(envelope, link, &a, "prev", p->page <= last ? p->page - 1 : last);
    relation(envelope, link, &a, "next", p->page < last ? p->page + 1 : 0);
    buf_adds(envelope, "},\"meta\":{\"current_page\":");
    buf_u64(envelope, p->page);
    number_or_null(envelope, "from", from, p->count > 0);
    number_or_null(envelope, "last_page", last, true);
    buf_adds(envelope, ",\"path\":\"");
    buf_str(envelope, p->base_url);
    buf_str(envelope, p->path);
    buf_adds(envelope, "\"");
    number_or_null(envelope, "per_page", p->per_page, true);
    number_or_null(envelope, "to", from + p->count - 1, p->count > 0);
    number_or_null(envelope, "total", p->total, true);
    if (p->ignored.n > 0) {
        buf_adds(envelope, ",\"ignored\":");
        buf_str(envelope, p->ignored);
    }
    buf_adds(envelope, "}");
    if (link->n > PAGINATION_LINK_MAX)
        buf_reset(link);
    if (!buf_ok(&a.before) || !buf_ok(&a.after))
        envelope->failed = true;
    buf_free(&a.before);
    buf_free(&a.after);
}
