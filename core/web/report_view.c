#include "core/web/report_view.h"

#include "core/text/chars.h"
#include "core/text/json_out.h"
#include "core/web/results_view_internal.h"

#define NAME_BYTES 60

struct str view_join(const struct view_memory *memory, const struct str *parts, size_t count)
{
    size_t n = 0;
    for (size_t i = 0; i < count; i++)
        n += parts[i].n;
    char *p = memory->alloc(memory->of, n), *to = p;
    for (size_t i = 0; i < count; i++)
        if (parts[i].n > 0)
            to = mempcpy(to, parts[i].p, parts[i].n);
    return (struct str){p, n};
}

struct str view_time(const struct view_memory *memory, int64_t ms, struct str *iso)
{
    struct buf quoted = {0};
    json_time(&quoted, ms == 0 ? 1 : ms); /* which writes null for 0 */
    bool written = buf_ok(&quoted) && quoted.n == sizeof("\"2026-11-27T04:12:00Z\"") - 1;
    const char *time = written ? quoted.p + 1 : "                    ";
    *iso = VIEW_JOIN(memory, {time, 20});
    struct str date = VIEW_JOIN(memory, {time, 10}, STR(" "), {time + 11, 5}, STR(" UTC"));
    buf_free(&quoted);
    return date;
}

/* The URL without its scheme and a slash at the end, cut at a character. */
static struct str short_name(const struct view_memory *memory, struct str url)
{
    const char *at = url.n == 0 ? NULL : memchr(url.p, ':', url.n);
    if (at != NULL && url.n - (size_t)(at - url.p) > 3)
        url = (struct str){at + 3, url.n - (size_t)(at - url.p) - 3};
    if (url.n > 0 && url.p[url.n - 1] == '/')
        url.n--;
    if (url.n <= NAME_BYTES)
        return url;
    size_t n = NAME_BYTES;
    while (n > 0 && ((unsigned char)url.p[n] & 0xC0) == 0x80)
        n--;
    return VIEW_JOIN(memory, {url.p, n}, STR("…"));
}

static struct str size_text(const struct view_memory *memory, uint64_t bytes)
{
    char digits[STR_U64_MAX];
    if (bytes == 0)
        return (struct str){0};
    if (bytes < 1000)
        return VIEW_JOIN(memory, str_u64(digits, bytes), STR(" B"));
    return bytes < 10000000
               ? VIEW_JOIN(memory, str_u64(digits, (bytes + 500) / 1000), STR(" kB"))
               : VIEW_JOIN(memory, str_u64(digits, (bytes + 500000) / 1000000), STR(" MB"));
}

static struct str result_text(enum language l, enum report_result result)
{
    static const char *const ids[] = {[RESULT_NONE] = "",
                                      [RESULT_GOOD] = "good",
                                      [RESULT_DECENT] = "decent",
                                      [RESULT_BAD] = "bad"};
    return text_find(l, "result", str_of(ids[result]), NULL);
}

/* ---- history ---- */

static void fill_grading(struct grading_view *v, const struct report_source *s,
                         const struct store_grading *g, const struct view_memory *memory)
{
    bool current = g == &s->gradings[0];
    /* the record follows the thresholds of the configuration, and so does the verdict above */
    enum report_result result = current ? s->report->result : g->result;
    *v = (struct grading_view){
        .score = (unsigned)g->score,
        .issues = g->issues_high + g->issues_medium + g->issues_low,
        .result = result_text(s->language, result),
        .current = current,
        .compared = s->against != NULL && s->against->number == g->number,
    };
    v->date = view_time(memory, g->generated_at, &v->iso);
    char digits[STR_U64_MAX];
    if (!v->current && !v->compared && s->address.n > 0)
        v->against = VIEW_JOIN(memory, s->address, STR("against="), str_u64(digits, g->number),
                               STR("#comparison"));
}

/* Where the chart of report_history.html begins and ends. */
enum { CHART_LEFT = 40, CHART_RIGHT = 620, CHART_TOP = 10, CHART_HEIGHT = 110 };

static void fill_point(struct grading_view *v, size_t at, size_t count)
{
    size_t steps = count > 1 ? count - 1 : 1;
    v->x = (unsigned)(CHART_LEFT + (CHART_RIGHT - CHART_LEFT) * at / steps);
    v->y = CHART_TOP + CHART_HEIGHT * (100 - v->score) / 100;
}

static void fill_history(struct report_view *view, const struct report_source *s,
                         const struct view_memory *memory)
{
    struct grading_view *rows = memory->alloc(memory->of, 2 * s->count * sizeof(*rows));
    struct grading_view *points = rows + s->count;
    for (size_t i = 0; i < s->count; i++) {
        fill_grading(&rows[i], s, &s->gradings[i], memory);
        points[s->count - 1 - i] = rows[i];
        fill_point(&points[s->count - 1 - i], s->count - 1 - i, s->count);
    }
    view->history = (struct grading_list){rows, s->count};
    view->points = (struct grading_list){points, s->count};
    view->history_count = (unsigned)s->count;
    view->chart = s->count > 1;
}

/* ---- comparison ---- */

static bool has_id(struct str ids, struct str id)
{
    while (ids.n > 0)
        if (str_eq(chars_cut(&ids, ' '), id))
            return true;
    return false;
}

/* The checks of ${ids} that are in ${other}, or not. */
static struct finding_list named(enum language l, const struct view_memory *memory, struct str ids,
                                 struct str other, bool in_other)
{
    struct finding_view *at = memory->alloc(memory->of, (ids.n / 2 + 1) * sizeof(*at));
    size_t n = 0;
    while (ids.n > 0) {
        struct str id = chars_cut(&ids, ' ');
        if (has_id(other, id) == in_other)
            at[n++] = (struct finding_view){.name = results_check_name(l, id, memory)};
    }
    return (struct finding_list){at, n};
}

/* Which checks of ${g} failed is on record. */
static bool failed_are_known(const struct store_grading *g)
{
    return g->failed.n > 0 || g->issues_high + g->issues_medium + g->issues_low == 0;
}

static void fill_comparison(struct report_view *view, const struct report_source *s,
                            const struct view_memory *memory)
{
    struct comparison_view *c = &view->comparison;
    struct str then = s->against->failed, now = s->gradings[0].failed;
    struct str iso;
    c->date = view_time(memory, s->against->generated_at, &iso);
    c->score = (unsigned)s->against->score;
    if (s->address.n > 0) /* without "?" or "&" at its end */
        c->end = (struct str){s->address.p, s->address.n - 1};
    view->comparing = true;
    c->known = failed_are_known(s->against) && failed_are_known(&s->gradings[0]);
    if (!c->known)
        return;
    c->gone = named(s->language, memory, then, now, false);
    c->new = named(s->language, memory, now, then, false);
    c->still = named(s->language, memory, now, then, true);
    c->gone_count = (unsigned)c->gone.n;
    c->new_count = (unsigned)c->new.n;
    c->still_count = (unsigned)c->still.n;
}

/* ---- the page ---- */

static void fill_error(struct report_view *view, const struct report_source *s)
{
    const struct store_report *r = s->report;
    view->error_name = text_find(s->language, "error", r->error_code, "name");
    view->error_mend = text_find(s->language, "error", r->error_code, "mend");
    view->error_why = s->language == LANGUAGE_EN ? r->error_message : (struct str){0};
    if (view->error_why.n == 0)
        view->error_why = text_find(s->language, "error", r->error_code, "why");
    if (view->error_why.n == 0)
        view->error_why = r->error_message;
}

static void fill_facts(struct report_view *view, const struct store_grading *g,
                       const struct view_memory *memory)
{
    const struct grading_facts *f = &g->facts;
    view->http_status = f->http_status;
    view->ttfb_ms = f->ttfb_ms;
    view->load_ms = f->load_ms;
    view->protocol = f->protocol;
    view->grader = f->version;
    view->size = size_text(memory, f->page_bytes);
    view->final_url = f->final_url;
}

static void fill_grade(struct report_view *view, const struct report_source *s,
                       const struct view_memory *memory)
{
    const struct store_report *r = s->report;
    view->score = (unsigned)r->score;
    view->high = r->issues_high;
    view->medium = r->issues_medium;
    view->low = r->issues_low;
    view->failed_count = r->issues_high + r->issues_medium + r->issues_low;
    view->good = r->result == RESULT_GOOD;
    view->decent = r->result == RESULT_DECENT;
    view->bad = r->result == RESULT_BAD;
    view->result = result_text(s->language, r->result);
    view->date = view_time(memory, r->generated_at, &view->iso);
    results_view_fill(view, r->results, s->language, memory);
    if (s->count > 0) {
        fill_facts(view, &s->gradings[0], memory);
        fill_history(view, s, memory);
    }
    if (s->count > 0 && s->against != NULL)
        fill_comparison(view, s, memory);
}

void report_view_make(struct report_view *view, const struct report_source *s,
                      const struct view_memory *memory)
{
    const struct store_report *r = s->report;
    view->id = r->id;
    view->url = r->url;
    view->name = short_name(memory, r->url);
    view->pending = r->status == REPORT_PENDING;
    view->failed = r->status == REPORT_FAILED;
    view->graded = r->score >= 0;
    view->public = r->privacy == PRIVACY_PUBLIC;
    if (view->failed)
        fill_error(view, s);
    if (view->graded)
        fill_grade(view, s, memory);
}
