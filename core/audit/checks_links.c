#include "core/audit/checks_internal.h"
#include "core/audit/language_internal.h"
#include "core/audit/generic_link_text_internal.h"
#include "core/audit/text.h"
#include "core/audit/url.h"

#define LINKS_MAX 150

/* ${url} without its fragment. */
static struct str without_fragment(struct str url)
{
    struct str before, rest;
    text_split(url, '#', &before, &rest);
    return before;
}

/* host[:port] of an absolute http(s) URL; empty for any other. */
static struct str authority_of(struct str url)
{
    struct str rest, authority;
    if (!text_starts(url, "http://") && !text_starts(url, "https://"))
        return STR("");
    rest = text_from(url, text_starts(url, "https://") ? 8 : 7);
    return text_token(&rest, "/?#", &authority) ? authority : STR("");
}

/*
 * ${href} leads to another host. Works on the text, without libcurl, since a page may have many
 * links.
 */
static bool is_external(const struct facts *f, struct str href)
{
    struct str own = authority_of(f->response.url), other, rest;
    if (text_starts(href, "//")) {
        rest = text_from(href, 2);
        other = text_token(&rest, "/?#", &other) ? other : STR("");
    } else if (url_has_scheme(href)) {
        other = authority_of(href);
    } else {
        other = authority_of(f->base_url);
    }
    return other.n > 0 && !(other.n == own.n && strncasecmp(other.p, own.p, own.n) == 0);
}

/* The link's href, or xlink:href within SVG. False: it has neither. */
static bool href_of(const struct page_element *a, struct str *out)
{
    bool has = page_attribute(a, "href", out) ||
               ((a->flags & ELEMENT_IN_SVG) != 0 && page_attribute(a, "xlink:href", out));
    if (out->p == NULL)
        *out = STR("");
    return has;
}

/* ---- generic link texts ---- */

static bool is_generic(const struct page_element *a)
{
    struct buf folded = {0};
    struct str language, rest;
    text_split(a->lang, '-', &language, &rest);
    text_fold(text_trim_unicode(a->text), &folded);
    bool generic = is_generic_link_text(language, buf_view(&folded));
    buf_free(&folded);
    return generic;
}

/*
 * Fast path without libcurl: an absolute path of this site made absolute in ${out}. Returns its
 * length; 0: not of that form.
 */
static size_t plain_absolute(const struct facts *f, struct str href, char *out, size_t size)
{
    struct str authority = authority_of(f->base_url), host;
    uint16_t port;
    size_t origin = authority.n == 0 ? 0 : (size_t)(authority.p - f->base_url.p) + authority.n;
    if (origin == 0 || href.n == 0 || href.p[0] != '/' || (href.n > 1 && href.p[1] == '/') ||
        origin + href.n > size)
        return 0;
    memcpy(out, f->base_url.p, origin);
    memcpy(out + origin, href.p, href.n);
    return url_plain((struct str){out, origin + href.n}, &host, &port) ? origin + href.n : 0;
}

static bool leads_here(const struct facts *f, struct str href, size_t *resolved)
{
    char plain[URL_MAX_BYTES];
    struct str here = without_fragment(f->response.url);
    if (href.n == 0 || href.p[0] == '#')
        return url_same(without_fragment(f->base_url), here);
    size_t n = plain_absolute(f, without_fragment(href), plain, sizeof(plain));
    if (n > 0)
        return str_eq((struct str){plain, n}, here);
    if (!facts_may_resolve(f, resolved))
        return true;
    struct buf url = {0};
    bool same = url_resolve(href, f->base_url.p, &url) && buf_ok(&url) &&
                url_same(without_fragment(buf_view(&url)), here);
    buf_free(&url);
    return same;
}

void check_link_text(struct facts *f, struct verdict *v)
{
    size_t count = 0, generic = 0, resolved = 0, at = 0;
    for (const struct page_element *e; (e = page_next(&f->page, TAG_A, &at)) != NULL;) {
        struct str href;
        bool has_href = href_of(e, &href);
        href = text_trim(href);
        if (!has_href || text_has(page_value(e, "rel"), "nofollow") ||
            text_starts(href, "javascript:") || text_starts(href, "mailto:"))
            continue;
        count++;
        if (e->text.n == 0 || !is_generic(e) || leads_here(f, href, &resolved))
            continue;
        generic++;
        verdict_detail(v, "%.*s: %.*s", STR_ARG(e->text), STR_ARG(href));
    }
    verdict_number(v, (double)generic);
    if (generic > 0)
        verdict_fail(
            v,
            "%zu of %zu %s a generic text, such as \"click here\". Say in the text where the link "
            "leads.",
            generic, count,
            verdict_plural(count, "link has", verdict_plural(generic, "links has", "links have")));
    else
        verdict_pass(v);
}

/* ---- anchors a crawler can follow ---- */

/*
 * An anchor without these attributes is no link. ${acts}: it has event handlers in the markup and
 * may act as a link.
 */
static bool is_placeholder(const struct page_element *e, bool *acts)
{
    static const char *const of_links[] = {"target",   "download", "ping",          "rel",
                                           "hreflang", "type",     "referrerpolicy"};
    struct str unused;
    for (size_t i = 0; i < sizeof(of_links) / sizeof(*of_links); i++)
        if (page_attribute(e, of_links[i], &unused))
            return false;
    *acts = false;
    for (size_t i = 0; i < e->attribute_count; i++)
        *acts = *acts || text_starts(e->attributes[i].name, "on");
    return true;
}

/* ${href} without white space, as in Lighthouse; cut at ${size}. */
static struct str without_space(struct str href, char *out, size_t size)
{
    size_t n = 0;
    for (size_t i = 0; i < href.n && n < size - 1; i++)
        if (!text_is_space(href.p[i]) && href.p[i] != '\v')
            out[n++] = href.p[i];
    out[n] = '\0';
    return (struct str){out, n};
}

/* ${href} has a scheme with a host and is no valid URL. */
static bool is_broken_url(const struct facts *f, struct str href, size_t *resolved)
{
    static const char *const schemes[] = {"http:", "https:", "ftp:", "ws:", "wss:", "//"};
    struct str host;
    uint16_t port;
    for (size_t i = 0; i < sizeof(schemes) / sizeof(*schemes); i++) {
        if (!text_starts(href, schemes[i]) || url_plain(href, &host, &port))
            continue;
        if (!facts_may_resolve(f, resolved))
            return false;
        struct buf unused = {0};
        bool broken = !url_resolve(href, f->base_url.p, &unused);
        buf_free(&unused);
        return broken;
    }
    return false;
}

static bool is_void_script(struct str href)
{
    return text_has(href, "javascript:void(0") || text_has(href, "javascript:void0");
}

static bool is_uncrawlable(const struct facts *f, const struct page_element *e, size_t *resolved)
{
    char space[URL_MAX_BYTES];
    struct str written;
    bool acts, has_href = href_of(e, &written);
    if (page_value(e, "role").n > 0)
        return false;
    struct str href = without_space(written, space, sizeof(space));
    if (text_starts(href, "mailto:") || (href.n == 0 && page_value(e, "id").n > 0))
        return false;
    if (text_starts(href, "file:"))
        return true;
    if (page_value(e, "name").n > 0)
        return false;
    if (!has_href)
        return is_placeholder(e, &acts) ? acts : true;
    return is_void_script(href) || is_broken_url(f, href, resolved);
}

void check_crawlable_links(struct facts *f, struct verdict *v)
{
    size_t count = 0, resolved = 0, at = 0;
    for (const struct page_element *e; (e = page_next(&f->page, TAG_A, &at)) != NULL;) {
        if (!is_uncrawlable(f, e, &resolved))
            continue;
        count++;
        verdict_detail(v, "<a href=\"%.*s\">%.*s</a>", STR_ARG(page_value(e, "href")),
                       STR_ARG(e->text));
    }
    verdict_number(v, (double)count);
    if (count > 0)
        verdict_fail(v, "Search engines cannot follow %zu %s. Give each an href with a URL.", count,
                     verdict_plural(count, "link", "links"));
    else
        verdict_pass(v);
}

void check_in_page_links(struct facts *f, struct verdict *v)
{
    size_t internal = 0, external = 0, at = 0;
    for (const struct page_element *e; (e = page_next(&f->page, TAG_A, &at)) != NULL;) {
        struct str href = page_value(e, "href");
        if (href.n == 0 || href.p[0] == '#')
            continue;
        if (is_external(f, href))
            external++;
        else
            internal++;
    }
    verdict_number(v, (double)(internal + external));
    verdict_detail(v, "Internal: %zu", internal);
    verdict_detail(v, "External: %zu", external);
    if (internal + external > LINKS_MAX)
        verdict_fail(v, "The page has %zu links. Reduce them to at most %d, so that each counts.",
                     internal + external, LINKS_MAX);
    else
        verdict_pass(v);
}

void check_unsafe_cross_origin_links(struct facts *f, struct verdict *v)
{
    size_t count = 0;
    for (size_t i = 0; i < f->page.count; i++) {
        const struct page_element *e = f->page.elements[i];
        if ((e->tag != TAG_A && e->tag != TAG_AREA) || !text_eq(page_value(e, "target"), "_blank"))
            continue;
        struct str rel = page_value(e, "rel");
        if (text_has_token(rel, "noopener") || text_has_token(rel, "noreferrer") ||
            !is_external(f, page_value(e, "href")))
            continue;
        count++;
        verdict_element(v, e);
    }
    verdict_number(v, (double)count);
    if (count > 0)
        verdict_fail(
            v,
            "%zu %s another site in a new window that can control this page. Add rel=\"noopener\".",
            count, verdict_plural(count, "link opens", "links open"));
    else
        verdict_pass(v);
}

/* ---- canonical and alternate links: of the head, and of the Link header ---- */

struct link {
    struct str rel, href, hreflang;
    bool has_href, has_hreflang; /* and not empty */
    bool of_header;
};

/* Iterates over all links of the head and of the Link headers. */
struct link_iterator {
    struct facts *facts;
    size_t element, header;
    struct str rest; /* of the current Link header */
};

/*
 * One parameter of a Link header's value (RFC 8288, 3): ;name=value or ;name="value". False at the
 * end of the value, where a comma may follow.
 */
static bool header_parameter(struct str *rest, struct str *name, struct str *value)
{
    *rest = text_trim(*rest);
    if (rest->n == 0 || rest->p[0] != ';')
        return false;
    *rest = text_trim(text_from(*rest, 1));
    *value = STR("");
    size_t n = 0;
    while (n < rest->n && strchr("=;,", rest->p[n]) == NULL)
        n++;
    *name = text_trim((struct str){rest->p, n});
    *rest = text_from(*rest, n);
    if (rest->n == 0 || rest->p[0] != '=')
        return true;
    *rest = text_trim(text_from(*rest, 1));
    if (rest->n > 0 && rest->p[0] == '"') {
        text_split(text_from(*rest, 1), '"', value, rest);
        return true;
    }
    for (n = 0; n < rest->n && strchr(";,", rest->p[n]) == NULL; n++)
        ;
    *value = text_trim((struct str){rest->p, n});
    *rest = text_from(*rest, n);
    return true;
}

static bool header_link(struct link_iterator *all, struct link *out)
{
    for (;;) {
        struct str before, name, value;
        if (text_split(all->rest, '<', &before, &all->rest) &&
            text_split(all->rest, '>', &out->href, &all->rest)) {
            while (header_parameter(&all->rest, &name, &value)) {
                if (text_eq(name, "rel") && out->rel.n == 0) /* RFC 8288, 3.3: the first counts */
                    out->rel = value;
                if (text_eq(name, "hreflang")) {
                    out->hreflang = value;
                    out->has_hreflang = value.n > 0;
                }
            }
            out->has_href = out->href.n > 0;
            out->of_header = true;
            return true;
        }
        all->rest = facts_header(all->facts, "link", &all->header);
        if (all->rest.p == NULL)
            return false;
    }
}

static bool next_link(struct link_iterator *all, struct link *out)
{
    *out = (struct link){0};
    for (const struct page_element *e;
         (e = page_next(&all->facts->page, TAG_LINK, &all->element)) != NULL;) {
        if ((e->flags & ELEMENT_IN_HEAD) == 0)
            continue;
        out->rel = page_value(e, "rel");
        out->has_href = page_attribute(e, "href", &out->href) && out->href.n > 0;
        out->href = text_trim(out->href);
        /* not trimmed: with white space it is no language */
        page_attribute(e, "hreflang", &out->hreflang);
        out->has_hreflang = out->hreflang.n > 0;
        return true;
    }
    return header_link(all, out);
}

/*
 * A link of a header may have several relations. One of the page is identified by its whole rel, as
 * in Lighthouse.
 */
static bool is_rel(const struct link *link, const char *rel)
{
    return link->of_header ? text_has_token(link->rel, rel) : text_eq(link->rel, rel);
}

/*
 * A link of a header is relative to the response's URL, not to the page's base. Empty: invalid URL.
 */
static struct str resolve(struct facts *f, const struct link *link)
{
    if (!link->of_header)
        return facts_resolve(f, link->href);
    struct str page = f->base_url;
    f->base_url = f->response.url;
    struct str url = facts_resolve(f, link->href);
    f->base_url = page;
    return url;
}

struct canonical {
    struct str url; /* of the first one, resolved */
    size_t distinct;
    bool invalid, relative; /* at least one is */
};

static void find_canonical(struct facts *f, struct verdict *v, struct canonical *out)
{
    struct link_iterator all = {.facts = f};
    for (struct link link; next_link(&all, &link);) {
        if (!is_rel(&link, "canonical") || !link.has_href)
            continue;
        struct str url = resolve(f, &link);
        verdict_detail(v, "%.*s", STR_ARG(link.href));
        if (url.n == 0) {
            out->invalid = true;
        } else if (!url_has_scheme(link.href)) {
            out->relative = true;
        } else if (out->distinct == 0 || !url_same(out->url, url)) {
            out->url = out->distinct == 0 ? url : out->url;
            out->distinct++;
        }
    }
}

/* The page and its canonical URL are two different entries of the page's hreflang set. */
static bool leads_to_another_language(struct facts *f, struct str canonical)
{
    struct link_iterator all = {.facts = f};
    bool has_page = false, has_canonical = false;
    for (struct link link; next_link(&all, &link);) {
        if (!is_rel(&link, "alternate") || link.href.n == 0 || !link.has_hreflang)
            continue;
        struct str url = resolve(f, &link);
        has_page = has_page || url_same(url, f->response.url);
        has_canonical = has_canonical || url_same(url, canonical);
    }
    return has_page && has_canonical && !url_same(canonical, f->response.url);
}

static bool is_root(struct str url, struct str origin)
{
    struct str path = text_from(url, origin.n);
    return url.n >= origin.n && memcmp(url.p, origin.p, origin.n) == 0 &&
           (path.n == 0 || (path.p[0] == '/' && (path.n == 1 || strchr("?#", path.p[1]) != NULL)));
}

void check_canonical(struct facts *f, struct verdict *v)
{
    struct canonical canonical = {0};
    find_canonical(f, v, &canonical);
    if (canonical.distinct == 0 && !canonical.invalid && !canonical.relative)
        return;
    if (canonical.url.n > 0)
        verdict_text(v, canonical.url);
    if (canonical.invalid)
        verdict_fail(v, "The canonical link is not a valid URL. Write the full URL.");
    else if (canonical.relative)
        verdict_fail(
            v,
            "The canonical link is a relative URL. Write the full URL, beginning with https://.");
    else if (canonical.distinct > 1)
        verdict_fail(v, "The page has several different canonical links. Keep one.");
    else if (leads_to_another_language(f, canonical.url))
        verdict_fail(v, "The canonical link points to the page in another language. Let each "
                        "language version name itself.");
    else if (is_root(canonical.url, f->response.origin) &&
             !is_root(f->response.url, f->response.origin))
        verdict_fail(v, "The canonical link points to the home page, not to this page. Set it to "
                        "the URL of this page.");
    else
        verdict_pass(v);
}

void check_hreflang(struct facts *f, struct verdict *v)
{
    struct link_iterator all = {.facts = f};
    size_t count = 0, bad = 0;
    for (struct link link; next_link(&all, &link);) {
        if (!is_rel(&link, "alternate") || !link.has_hreflang)
            continue;
        count++;
        struct str primary, rest;
        text_split(link.hreflang, '-', &primary, &rest);
        bool known = text_eq(link.hreflang, "x-default") || language_is_known(primary);
        bool full = text_starts(link.href, "http:") || text_starts(link.href, "https:");
        if (known && full)
            continue;
        bad++;
        verdict_detail(v, "%s: %.*s %.*s", known ? "relative URL" : "unknown language",
                       STR_ARG(link.hreflang), STR_ARG(link.href));
    }
    verdict_number(v, (double)count);
    if (bad > 0)
        verdict_fail(
            v,
            "%zu of %zu alternate %s an unknown language or a relative URL. Use codes such as de "
            "or pt-BR, and full URLs.",
            bad, count,
            verdict_plural(count, "link has", verdict_plural(bad, "links has", "links have")));
    else
        verdict_pass(v);
}
