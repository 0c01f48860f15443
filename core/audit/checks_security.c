#include "core/audit/checks_internal.h"
#include "core/audit/css_internal.h"
#include "core/audit/text.h"
#include "core/audit/url.h"

#define HSTS_MIN_SECONDS 31536000

void check_https_encryption(struct facts *f, struct verdict *v)
{
    const struct fact_certificate *c = &f->response.certificate;
    verdict_text(v, f->response.https ? STR("https") : STR("http"));
    if (!f->response.https) {
        verdict_fail(v, "The page is not encrypted. Serve it over https, with a certificate from a "
                        "trusted authority.");
        return;
    }
    if (c->issuer.n > 0)
        verdict_detail(v, "Issued by %.*s", STR_ARG(c->issuer));
    if (c->not_before.n > 0)
        verdict_detail(v, "Valid from %.*s", STR_ARG(c->not_before));
    if (c->not_after.n > 0)
        verdict_detail(v, "Valid until %.*s", STR_ARG(c->not_after));
    if (!c->verified)
        verdict_fail(v,
                     "Browsers warn about the certificate: %.*s. Install one that is valid for "
                     "this host name.",
                     STR_ARG(c->reason));
    else
        verdict_pass(v);
}

/*
 * Attributes with URLs that a page loads from or sends to. <link> is judged by its rel; links that
 * lead elsewhere are not listed.
 */
static const struct {
    enum page_tag tag;
    const char *attribute;
} loads[] = {
    {TAG_IMG, "src"},
    {TAG_IMG, "srcset"},
    {TAG_SCRIPT, "src"},
    {TAG_LINK, "href"},
    {TAG_LINK, "imagesrcset"},
    {TAG_IFRAME, "src"},
    {TAG_FRAME, "src"},
    {TAG_SOURCE, "src"},
    {TAG_SOURCE, "srcset"},
    {TAG_VIDEO, "src"},
    {TAG_VIDEO, "poster"},
    {TAG_AUDIO, "src"},
    {TAG_TRACK, "src"},
    {TAG_EMBED, "src"},
    {TAG_OBJECT, "data"},
    {TAG_INPUT, "src"},
    {TAG_INPUT, "formaction"},
    {TAG_BUTTON, "formaction"},
    {TAG_FORM, "action"},
    {TAG_SVG_IMAGE, "href"},
    {TAG_SVG_USE, "href"},
    {TAG_SVG_IMAGE, "xlink:href"},
    {TAG_SVG_USE, "xlink:href"},
};

static const char *const loading_rels[] = {
    "stylesheet", "icon",    "apple-touch-icon", "apple-touch-icon-precomposed",
    "mask-icon",  "preload", "modulepreload",    "prefetch",
    "manifest",
};

static bool is_loading_link(const struct page_element *link)
{
    struct str rel = page_value(link, "rel");
    for (size_t i = 0; i < sizeof(loading_rels) / sizeof(*loading_rels); i++)
        if (text_has_token(rel, loading_rels[i]))
            return true;
    return false;
}

/* ${url}, as the page means it, uses http. */
static bool is_insecure(const struct facts *f, struct str url)
{
    if (text_starts(url, "http:"))
        return true;
    return !url_has_scheme(url) && url.n > 0 && text_starts(f->base_url, "http:");
}

/* ${value} is one URL, or for a srcset a list of URLs with descriptors. */
static bool any_insecure(const struct facts *f, const char *attribute, struct str value)
{
    if (!text_ends(str_of(attribute), "srcset"))
        return is_insecure(f, value);
    for (struct str rest = value, candidate; text_token(&rest, ",", &candidate);) {
        struct str url;
        candidate = text_trim(candidate);
        if (text_token(&candidate, " \t\n\f\r", &url) && is_insecure(f, url))
            return true;
    }
    return false;
}

static bool styled_insecurely(const struct facts *f, struct str css)
{
    for (struct css_url one; css_url(&css, &one);)
        if (is_insecure(f, one.url))
            return true;
    return false;
}

static bool loads_insecurely(const struct facts *f, const struct page_element *e)
{
    if (styled_insecurely(f, e->tag == TAG_STYLE ? e->text : page_value(e, "style")))
        return true;
    if (e->tag == TAG_LINK && !is_loading_link(e))
        return false;
    for (size_t i = 0; i < sizeof(loads) / sizeof(*loads); i++)
        if (loads[i].tag == e->tag &&
            any_insecure(f, loads[i].attribute, page_value(e, loads[i].attribute)))
            return true;
    return false;
}

void check_mixed_content(struct facts *f, struct verdict *v)
{
    if (!f->response.https)
        return;
    size_t count = 0;
    for (size_t i = 0; i < f->page.count; i++) {
        if (!loads_insecurely(f, f->page.elements[i]))
            continue;
        count++;
        verdict_element(v, f->page.elements[i]);
    }
    verdict_number(v, (double)count);
    if (count > 0)
        verdict_fail(
            v,
            "%zu %s loaded or sent over http, which browsers block or warn about. Use https URLs.",
            count, verdict_plural(count, "element is", "elements are"));
    else
        verdict_pass(v);
}

void check_hsts(struct facts *f, struct verdict *v)
{
    if (!f->response.https)
        return;
    /* RFC 6797, 8.1: only the first header counts; 6.1: directives may be empty. */
    struct str header = facts_header_first(f, "strict-transport-security");
    bool has_age = false;
    unsigned long age = 0;
    size_t unknown = 0;
    if (header.n == 0) {
        verdict_fail(v, "The Strict-Transport-Security header is missing. Send it with a max-age "
                        "of at least a year.");
        return;
    }
    verdict_text(v, header);
    for (struct str rest = header, one; text_token(&rest, ";", &one);) {
        struct str name, value;
        one = text_trim(one);
        text_split(one, '=', &name, &value);
        name = text_trim(name);
        value = text_trim(value);
        if (value.n >= 2 && value.p[0] == '"' && value.p[value.n - 1] == '"')
            value = (struct str){value.p + 1, value.n - 2};
        if (text_eq(name, "max-age")) {
            has_age = text_number(value, &age);
        } else if (one.n > 0 && !text_eq(one, "includeSubDomains") && !text_eq(one, "preload")) {
            unknown++;
            verdict_detail(v, "Unknown directive: %.*s", STR_ARG(one));
        }
    }
    if (!has_age)
        verdict_fail(v,
                     "The Strict-Transport-Security header has no max-age. Set it to at least %d "
                     "seconds (one year).",
                     HSTS_MIN_SECONDS);
    else if (age < HSTS_MIN_SECONDS)
        verdict_fail(v,
                     "The max-age of the Strict-Transport-Security header is %lu seconds. Set it "
                     "to at least %d (one year).",
                     age, HSTS_MIN_SECONDS);
    else if (unknown > 0)
        verdict_fail(v, "The Strict-Transport-Security header has %zu unknown %s. Remove %s.",
                     unknown, verdict_plural(unknown, "directive", "directives"),
                     verdict_plural(unknown, "it", "them"));
    else
        verdict_pass(v);
}
