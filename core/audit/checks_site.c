#include "core/audit/checks_internal.h"
#include "core/audit/robots_internal.h"
#include "core/audit/text.h"
#include "core/audit/url.h"

#define TTFB_MAX_MS 600
#define REDIRECTS_MAX 1

void check_not_found_page(struct facts *f, struct verdict *v)
{
    if (f->missing.state != PROBE_DONE)
        return;
    verdict_number(v, (double)f->missing.status);
    verdict_detail(v, "%.*s", STR_ARG(f->missing.url));
    if (f->missing.status == 404 || f->missing.status == 410)
        verdict_pass(v);
    else
        verdict_fail(v,
                     "A page that does not exist answers with status %ld, so search engines may "
                     "index it. Answer with 404.",
                     f->missing.status);
}

/* ---- syntax of robots.txt, by Lighthouse's rules ---- */

static const char *const robots_names[] = {
    "user-agent", "disallow",     "allow",      "sitemap", "crawl-delay",    "clean-param",
    "host",       "request-rate", "visit-time", "noindex", "content-signal",
};

static bool is_robots_name(struct str name)
{
    for (size_t i = 0; i < sizeof(robots_names) / sizeof(*robots_names); i++)
        if (text_eq(name, robots_names[i]))
            return true;
    return false;
}

static const char *sitemap_error(struct str value)
{
    static const char *const schemes[] = {"http:", "https:", "ftp:"};
    struct buf absolute = {0};
    bool valid = url_resolve(value, "http://base.example/", &absolute);
    buf_free(&absolute);
    struct str scheme, rest;
    if (!valid || !text_split(value, ':', &scheme, &rest))
        return "invalid sitemap URL";
    for (size_t i = 0; i < sizeof(schemes) / sizeof(*schemes); i++)
        if (text_starts(value, schemes[i]))
            return NULL;
    return "invalid sitemap URL";
}

static const char *pattern_error(struct str value)
{
    const char *dollar = value.n == 0 ? NULL : memchr(value.p, '$', value.n);
    if (value.n > 0 && value.p[0] != '/' && value.p[0] != '*')
        return "a pattern must be empty or begin with / or *";
    if (dollar != NULL && dollar != value.p + value.n - 1)
        return "$ is allowed only at the end of a pattern";
    return NULL;
}

/* What is wrong with ${line}; NULL: nothing. ${in_group}: after a user-agent line. */
static const char *robots_error(const struct robots_line *line, bool *in_group)
{
    bool rule = text_eq(line->name, "allow") || text_eq(line->name, "disallow");
    if (line->name.p == NULL)
        return "not understood";
    if (!is_robots_name(line->name))
        return "unknown directive";
    if (text_eq(line->name, "sitemap"))
        return sitemap_error(line->value);
    if (text_eq(line->name, "user-agent")) {
        if (line->value.n == 0)
            return "no user-agent given";
        *in_group = true;
    }
    const char *error = rule ? pattern_error(line->value) : NULL;
    return error == NULL && rule && !*in_group ? "no user-agent before it" : error;
}

void check_robots_txt_valid(struct facts *f, struct verdict *v)
{
    const struct fact_probe *robots = &f->robots;
    struct str rest = robots->body;
    struct robots_line line = {0};
    bool in_group = false;
    size_t errors = 0;
    if (robots->state == PROBE_FAILED || robots->state == PROBE_CLOSED) {
        verdict_fail(
            v, "robots.txt could not be fetched. Let it answer 200, or 404 if there is none.");
        return;
    }
    if (robots->state != PROBE_DONE)
        return;
    if (robots->status >= 500) {
        verdict_number(v, (double)robots->status);
        verdict_fail(
            v, "robots.txt answers with status %ld. Let it answer 200, or 404 if there is none.",
            robots->status);
        return;
    }
    if (robots->status >= 400 || rest.n == 0)
        return;
    while (robots_line(&rest, &line)) {
        const char *error = robots_error(&line, &in_group);
        if (error == NULL)
            continue;
        errors++;
        verdict_detail(v, "Line %u: %s: %.*s", line.number, error, STR_ARG(line.whole));
    }
    verdict_number(v, (double)errors);
    if (errors > 0)
        verdict_fail(v, "robots.txt has %zu %s that crawlers do not understand. Correct %s.",
                     errors, verdict_plural(errors, "line", "lines"),
                     verdict_plural(errors, "it", "them"));
    else
        verdict_pass(v);
}

void check_sitemap(struct facts *f, struct verdict *v)
{
    struct str rest = f->robots.body;
    struct robots_line line = {0};
    size_t count = 0;
    if (f->robots.state != PROBE_DONE)
        return;
    bool there = f->robots.status >= 200 && f->robots.status < 300;
    while (there && robots_line(&rest, &line)) {
        if (!text_eq(line.name, "sitemap") || line.value.n == 0)
            continue;
        count++;
        verdict_detail(v, "%.*s", STR_ARG(line.value));
    }
    verdict_number(v, (double)count);
    if (count == 0)
        verdict_fail(
            v,
            "robots.txt names no sitemap. Create one, and add a line \"Sitemap:\" with its URL.");
    else
        verdict_pass(v);
}

void check_favicon(struct facts *f, struct verdict *v)
{
    size_t at = 0;
    for (const struct page_element *e; (e = page_next(&f->page, TAG_LINK, &at)) != NULL;) {
        struct str href = page_value(e, "href");
        if (!text_has_token(page_value(e, "rel"), "icon") || href.n == 0)
            continue;
        verdict_text(v, text_starts(href, "data:") ? STR("data:") : facts_resolve(f, href));
        verdict_pass(v);
        return;
    }
    if (f->favicon.state != PROBE_DONE)
        return;
    if (f->favicon.status >= 200 && f->favicon.status < 300) {
        verdict_text(v, f->favicon.final_url);
        verdict_pass(v);
    } else {
        verdict_fail(v, "The page has no icon. Add <link rel=\"icon\"> or the file /favicon.ico.");
    }
}

void check_ttfb(struct facts *f, struct verdict *v)
{
    verdict_number(v, f->response.ttfb_ms);
    if (f->response.ttfb_ms > TTFB_MAX_MS)
        verdict_fail(v,
                     "The server took %u ms to begin its response. Reduce this to at most %d, for "
                     "example with caching.",
                     f->response.ttfb_ms, TTFB_MAX_MS);
    else
        verdict_pass(v);
}

void check_redirects(struct facts *f, struct verdict *v)
{
    const struct fact_response *r = &f->response;
    for (size_t i = 0; i < r->hop_count; i++)
        verdict_detail(v, "%.*s", STR_ARG(r->hops[i]));
    if (r->hop_count > 0)
        verdict_detail(v, "%.*s", STR_ARG(r->url));
    verdict_number(v, (double)r->hop_count);
    if (r->hop_count > REDIRECTS_MAX)
        verdict_fail(v, "The page is behind %zu redirects. Redirect to it directly.", r->hop_count);
    else
        verdict_pass(v);
}

void check_https_redirect(struct facts *f, struct verdict *v)
{
    if (!f->response.https) {
        verdict_text(v, f->response.url);
        verdict_fail(v, "The page is served over http. Redirect it to https.");
        return;
    }
    if (f->http_form.state != PROBE_DONE)
        return;
    verdict_text(v, f->http_form.final_url);
    verdict_detail(v, "%.*s", STR_ARG(f->http_form.url));
    verdict_detail(v, "%.*s", STR_ARG(f->http_form.final_url));
    if (text_starts(f->http_form.final_url, "https://"))
        verdict_pass(v);
    else
        verdict_fail(v, "The http URL of the page does not redirect to https. Add a redirect.");
}
