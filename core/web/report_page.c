#include "core/web/report_page.h"

#include "core/text/form.h"
#include "core/http/cluster_reads.h"
#include "core/http/http.h"
#include "core/http/response_cache.h"
#include "core/web/page_headers.h"
#include "core/web/pages.h"
#include "core/web/report_cookie.h"
#include "core/web/templates.h"

#include <xxhash.h>

#define HTML "text/html; charset=utf-8"

/* ---- who may see it ---- */

enum access { ACCESS_NONE, ACCESS_FORM, ACCESS_PAGE, ACCESS_UNKNOWN };

/* The session of a member is asked here. */
static bool is_member(struct request *r, const struct store_report *report)
{
    (void)r;
    (void)report;
    return false;
}

static enum access access_of(struct request *r, const struct store_report *report)
{
    if (report->privacy == PRIVACY_PUBLIC || is_member(r, report))
        return ACCESS_PAGE;
    if (report->privacy != PRIVACY_PASSWORD)
        return ACCESS_NONE;
    if (cluster_reads_are_stale(r->http))
        return ACCESS_UNKNOWN;
    return report_cookie_opens(r, report) ? ACCESS_PAGE : ACCESS_FORM;
}

uint64_t report_page_id(struct request *r)
{
    uint64_t id;
    bool usual = r->args[0].n > 0 && r->args[0].p[0] != '0';
    return usual && number_parse(r->args[0], INT64_MAX, &id) ? id : 0;
}

/* ---- headers ---- */

static struct str path_of(struct request *r, uint64_t id)
{
    char digits[STR_U64_MAX];
    struct view_memory memory = page_memory(r);
    return VIEW_JOIN(&memory, STR("/reports/"), str_u64(digits, id));
}

static void put_headers(struct request *r, const struct store_report *report,
                        enum language language)
{
    bool public = report->privacy == PRIVACY_PUBLIC;
    page_headers(r);
    reply_header(r, "cache-control", public ? STR("no-cache") : STR("private, no-cache"));
    reply_header(r, "vary", STR("accept-language, cookie"));
    reply_header(r, "content-language", text_tables[language].code);
    if (!public || !r->conf->reports_indexable)
        reply_header(r, "x-robots-tag", STR("noindex"));
}

/* An error has none of the headers of the page. */
static void drop_headers(struct request *r)
{
    r->h2o->res.headers.size = 0;
}

/* Of everything that changes the page of a report. */
static uint64_t page_version(struct request *r, const struct store_report *report,
                             enum language language)
{
    const uint64_t parts[] = {report->version,      language,
                              page_query(r).n > 0,  r->values[REPORT_PAGE_AGAINST].number,
                              is_member(r, report), web_stylesheet.version,
                              web_script.version};
    struct str base_url = request_base_url(r);
    return XXH3_64bits_withSeed(parts, sizeof(parts), XXH3_64bits(base_url.p, base_url.n));
}

/* ---- the page ---- */

/* What is read of the store, all of one snapshot. */
struct page_records {
    struct request *r;
    enum language language; /* of the page */
    const struct store_report *report;
    const struct store_grading *gradings;
    size_t count;
};

/* The page in the cache: its version has everything that changes it. */
static const struct cached_report *entry_of(const struct page_records *from)
{
    struct cached_report *entry = request_alloc(from->r, sizeof(*entry));
    *entry = (struct cached_report){
        .variant = from->r->version, .id = from->report->id, .version = from->report->version};
    return entry;
}

static const struct store_grading *grading_of(const struct page_records *from, uint64_t number)
{
    for (size_t i = 1; i < from->count; i++)
        if (from->gradings[i].number == number)
            return &from->gradings[i];
    return NULL;
}

/* The addresses of the page: in other languages, and its absolute one. */
static void fill_addresses(const struct page_records *from, struct page_view *page, struct str path)
{
    struct request *r = from->r;
    const struct value *against = &r->values[REPORT_PAGE_AGAINST];
    struct view_memory memory = page_memory(r);
    char digits[STR_U64_MAX];
    struct str query = {0};
    if (against->sent)
        query = VIEW_JOIN(&memory, STR("against="), str_u64(digits, against->number));
    page_fill(r, page, from->language, path, query);
    page->link = VIEW_JOIN(&memory, request_base_url(r), path);
}

static const struct report_view *view_of(struct page_records *from,
                                         const struct store_grading *against)
{
    struct request *r = from->r;
    struct view_memory memory = page_memory(r);
    struct report_view *view = request_alloc(r, sizeof(*view));
    struct str path = path_of(r, from->report->id), query = page_query(r);
    const struct report_source source = {
        .report = from->report,
        .gradings = from->gradings,
        .count = from->count,
        .against = against,
        .address = VIEW_JOIN(&memory, request_base_path(r), path, STR("?"), query,
                             query.n > 0 ? STR("&") : STR("")),
        .language = from->language,
    };
    *view = (struct report_view){.member = is_member(r, from->report)};
    fill_addresses(from, &view->page, path);
    report_view_make(view, &source, &memory);
    return view;
}

static void reply_page(struct page_records *from)
{
    struct request *r = from->r;
    const struct value *sent = &r->values[REPORT_PAGE_AGAINST];
    const struct store_grading *against = sent->sent ? grading_of(from, sent->number) : NULL;
    struct buf *html = &r->http->body;
    if (sent->sent && against == NULL) {
        drop_headers(r);
        reply_error(r, ERR_NOT_FOUND, "The report has no earlier grading of this number.");
        return;
    }
    buf_reset(html);
    template_report(html, from->language, view_of(from, against));
    if (buf_ok(html)) {
        reply_cached(r, 200, HTML, r->http->pages,
                     response_cache_put(r->http->pages, entry_of(from), buf_view(html)));
        return;
    }
    drop_headers(r);
    reply_error(r, ERR_UNAVAILABLE, NULL);
}

static void gradings_found(void *arg, enum store_status status, const struct store_grading *items,
                           size_t count)
{
    struct page_records *from = arg;
    if (status != STORE_OK) {
        drop_headers(from->r);
        reply_store_error(from->r, status);
        return;
    }
    from->gradings = items;
    from->count = count;
    reply_page(from);
}

static void results_found(void *arg, enum store_status status, const struct store_report *report)
{
    const struct store_gradings_query newest = {.limit = STORE_GRADINGS_MAX};
    struct page_records from = {.r = arg, .language = page_language(arg), .report = report};
    if (status != STORE_OK) {
        drop_headers(from.r);
        reply_store_error(from.r, status);
        return;
    }
    store_grading_list(from.r->store, report->workspace, report->id, &newest, gradings_found,
                       &from);
}

static void show(struct request *r, const struct store_report *report)
{
    enum language language = page_language(r);
    put_headers(r, report, language);
    r->version = page_version(r, report, language);
    if (reply_etag(r, r->version))
        return;
    struct cached_report *cached = response_cache_find(r->http->pages, r->version, report->id);
    if (cached != NULL && cached->version == report->version)
        reply_cached(r, 200, HTML, r->http->pages, cached);
    else
        store_report_get(r->store, report->workspace, report->id, true, results_found, r);
}

static void report_found(void *arg, enum store_status status, const struct store_report *report)
{
    struct request *r = arg;
    enum access access = status == STORE_OK ? access_of(r, report) : ACCESS_NONE;
    if (status != STORE_OK && status != STORE_NOT_FOUND)
        reply_store_error(r, status);
    else if (access == ACCESS_NONE)
        reply_error(r, ERR_NOT_FOUND, NULL);
    else if (access == ACCESS_UNKNOWN)
        reply_stale(r);
    else if (access == ACCESS_FORM)
        report_page_form(r, report, false);
    else
        show(r, report);
}

void report_page(struct request *r)
{
    store_report_get(r->store, STORE_ANY_WORKSPACE, report_page_id(r), false, report_found, r);
}

/* ---- the form ---- */

void report_page_form(struct request *r, const struct store_report *report, bool wrong)
{
    enum language language = page_language(r);
    struct view_memory memory = page_memory(r);
    struct str path = path_of(r, report->id), query = page_query(r);
    struct password_view view = {.wrong = wrong};
    page_fill(r, &view.page, language, path, (struct str){0});
    view.action = VIEW_JOIN(&memory, request_base_path(r), path, STR("/password"),
                            query.n > 0 ? STR("?") : STR(""), query);
    page_headers(r);
    reply_header(r, "cache-control", STR("no-store"));
    reply_header(r, "vary", STR("accept-language, cookie"));
    reply_header(r, "x-robots-tag", STR("noindex"));
    reply_header(r, "content-language", text_tables[language].code);
    buf_reset(&r->http->body);
    template_password(&r->http->body, language, &view);
    page_reply(r, wrong ? 422 : 200, &r->http->body);
}
