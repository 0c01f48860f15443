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

/* A failed grading keeps the counts of the last successful one. */
static void put_issues(const struct store_report *r, struct buf *out)
{
    if (r->score < 0) {
        buf_adds(out, "null");
        return;
    }
    member_u64(out, "{\"high\":", r->issues_high);
    member_u64(out, ",\"medium\":", r->issues_medium);
    member_u64(out, ",\"low\":", r->issues_low);
    member_u64(out, ",\"passed\":", r->issues_passed);
    buf_adds(out, "}");
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
