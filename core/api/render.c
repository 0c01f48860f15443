#include "core/api/render_internal.h"
#include "core/text/json_out.h"

#include <assert.h>

static const char *const statuses[] = {
    [REPORT_PENDING] = "\"pending\"", [REPORT_DONE] = "\"done\"", [REPORT_FAILED] = "\"failed\""};
static const char *const results[] = {[RESULT_NONE] = "null",
                                      [RESULT_GOOD] = "\"good\"",
                                      [RESULT_DECENT] = "\"decent\"",
                                      [RESULT_BAD] = "\"bad\""};

static void member_u64(struct buf *out, const char *name, uint64_t v)
{
    buf_adds(out, name);
    buf_u64(out, v);
}

static void member_time(struct buf *out, const char *name, int64_t ms)
{
    buf_adds(out, name);
    json_time(out, ms);
}

static void put_grade(const struct store_report *r, struct buf *out)
{
    if (r->score < 0)
        buf_adds(out, ",\"score\":null");
    else
        member_u64(out, ",\"score\":", (uint64_t)r->score);
    buf_adds(out, ",\"result\":");
    buf_adds(out, results[r->result]);
}

static void put_counts(struct buf *out, unsigned high, unsigned medium, unsigned low,
                       unsigned passed)
{
    member_u64(out, "{\"high\":", high);
    member_u64(out, ",\"medium\":", medium);
    member_u64(out, ",\"low\":", low);
    member_u64(out, ",\"passed\":", passed);
    buf_adds(out, "}");
}

/* A failed grading keeps the counts of the last successful one. */
static void put_issues(const struct store_report *r, struct buf *out)
{
    if (r->score < 0)
        buf_adds(out, "null");
    else
        put_counts(out, r->issues_high, r->issues_medium, r->issues_low, r->issues_passed);
}

static void put_error(const struct store_report *r, struct buf *out)
{
    if (r->status != REPORT_FAILED) {
        buf_adds(out, "null");
        return;
    }
    buf_adds(out, "{\"code\":");
    json_string(out, r->error_code);
    buf_adds(out, ",\"message\":");
    json_string(out, r->error_message);
    buf_adds(out, "}");
}

void render_report(const struct store_report *r, struct str base_url, bool with_results,
                   struct buf *out)
{
    assert((unsigned)r->status <= REPORT_FAILED && (unsigned)r->result <= RESULT_BAD);
    member_u64(out, "{\"id\":", r->id);
    buf_adds(out, ",\"url\":");
    json_string(out, r->url);
    buf_adds(out, ",\"project\":");
    json_string(out, r->project_name);
    buf_adds(out, ",\"status\":");
    buf_adds(out, statuses[r->status]);
    put_grade(r, out);
    member_u64(out, ",\"privacy\":", r->privacy);
    buf_adds(out, r->password_hash.n > 0 ? ",\"password\":true" : ",\"password\":false");
    buf_adds(out, ",\"link\":\"");
    buf_str(out, base_url);
    member_u64(out, "/reports/", r->id);
    buf_adds(out, "\",\"issues\":");
    put_issues(r, out);
    if (with_results) {
        buf_adds(out, ",\"results\":");
        buf_str(out, r->results.n > 0 ? r->results : STR("null"));
    }
    buf_adds(out, ",\"error\":");
    put_error(r, out);
    member_time(out, ",\"generated_at\":", r->generated_at);
    member_time(out, ",\"created_at\":", r->created_at);
    member_time(out, ",\"updated_at\":", r->updated_at);
    buf_adds(out, "}");
}

/* ${ids}: as in a store_grading. */
static void put_ids(struct str ids, struct buf *out)
{
    buf_adds(out, ids.n == 0 ? "[" : "[\"");
    for (size_t i = 0; i < ids.n; i++) {
        if (ids.p[i] == ' ')
            buf_adds(out, "\",\"");
        else
            buf_add(out, ids.p + i, 1);
    }
    buf_adds(out, ids.n == 0 ? "]" : "\"]");
}

static void put_facts(const struct store_grading *g, struct str url, struct buf *out)
{
    const struct grading_facts *f = &g->facts;
    if (f->http_status == 0) {
        buf_adds(out, ",\"failed\":null,\"final_url\":null,\"http_status\":null,"
                      "\"protocol\":null,\"ttfb_ms\":null,\"load_ms\":null,"
                      "\"page_bytes\":null,\"version\":null");
        return;
    }
    buf_adds(out, ",\"failed\":");
    put_ids(g->failed, out);
    buf_adds(out, ",\"final_url\":");
    json_string(out, f->final_url.n == 0 ? url : f->final_url);
    member_u64(out, ",\"http_status\":", f->http_status);
    buf_adds(out, ",\"protocol\":");
    json_string(out, f->protocol);
    member_u64(out, ",\"ttfb_ms\":", f->ttfb_ms);
    member_u64(out, ",\"load_ms\":", f->load_ms);
    member_u64(out, ",\"page_bytes\":", f->page_bytes);
    buf_adds(out, ",\"version\":");
    json_string(out, f->version);
}

void render_grading(const struct store_grading *g, struct str url, struct buf *out)
{
    assert((unsigned)g->result <= RESULT_BAD);
    member_u64(out, "{\"number\":", g->number);
    member_u64(out, ",\"score\":", (uint64_t)g->score);
    buf_adds(out, ",\"result\":");
    buf_adds(out, results[g->result]);
    buf_adds(out, ",\"issues\":");
    put_counts(out, g->issues_high, g->issues_medium, g->issues_low, g->issues_passed);
    put_facts(g, url, out);
    member_time(out, ",\"generated_at\":", g->generated_at);
    buf_adds(out, "}");
}

void render_project(const struct store_project *p, struct buf *out)
{
    member_u64(out, "{\"id\":", p->id);
    buf_adds(out, ",\"project\":");
    json_string(out, p->name);
    member_u64(out, ",\"reports_count\":", p->reports);
    if (p->scored == 0)
        buf_adds(out, ",\"score\":null");
    else
        member_u64(out, ",\"score\":", (p->score_total + p->scored / 2) / p->scored);
    member_time(out, ",\"created_at\":", p->created_at);
    member_time(out, ",\"updated_at\":", p->updated_at);
    buf_adds(out, "}");
}
