#include "config.h"

#include "core/audit/results_internal.h"
#include "core/audit/charset_internal.h"
#include "core/audit/text.h"

#include <stdlib.h>

/*
 * If the results are too long, details go first. Each row gives how many details a check keeps and
 * how long texts are; the first row that fits is used.
 */
static const struct {
    size_t details, points;
} cuts[] = {{50, 200}, {25, 200}, {10, 200}, {10, 100}, {5, 100}, {3, 80}, {1, 80}, {0, 60}};

/*
 * Append ${s} as a JSON string, cut after ${points} code points. Control characters become spaces,
 * invalid UTF-8 becomes U+FFFD.
 */
static void add_text(struct buf *out, struct str s, size_t points)
{
    struct buf clean = {0};
    if (!charset_clean_utf8(s, &clean))
        out->failed = true;
    s = text_cut(buf_view(&clean), points);
    buf_add(out, "\"", 1);
    for (size_t i = 0; i < s.n; i++) {
        char c = s.p[i];
        if (c == '"' || c == '\\')
            buf_add(out, "\\", 1);
        else if ((unsigned char)c < 0x20 || c == 0x7F)
            c = ' ';
        buf_add(out, &c, 1);
    }
    buf_add(out, "\"", 1);
    buf_free(&clean);
}

static void add_value(struct buf *out, const struct verdict *v, size_t points)
{
    if (v->value_kind == VALUE_TEXT)
        add_text(out, v->text, points);
    else if (v->value_kind == VALUE_NUMBER)
        buf_printf(out, "%.10g", v->number);
    else
        buf_adds(out, "null");
}

static void add_check(struct buf *out, const struct check *check, const struct verdict *v,
                      size_t details, size_t points)
{
    static const char *const outcomes[] = {
        [OUTCOME_NOT_APPLICABLE] = "null", [OUTCOME_PASS] = "true", [OUTCOME_FAIL] = "false"};
    buf_printf(out, "\"%s\":{\"category\":\"%s\",\"importance\":\"%s\",\"passed\":%s,\"value\":",
               check->id, check_category_name(check->category),
               check_importance_name(check->importance), outcomes[v->outcome]);
    add_value(out, v, points);
    buf_adds(out, ",\"message\":");
    if (v->message.n > 0)
        add_text(out, v->message, VERDICT_TEXT_POINTS);
    else
        buf_adds(out, "null");
    buf_adds(out, ",\"details\":[");
    for (size_t i = 0; i < v->detail_count && i < details; i++) {
        if (i > 0)
            buf_adds(out, ",");
        add_text(out, v->details[i], points);
    }
    buf_adds(out, "]}");
}

static void add_all(struct buf *out, const struct verdict *verdicts, size_t details, size_t points)
{
    buf_reset(out);
    buf_adds(out, "{");
    for (size_t i = 0; i < checks_count; i++) {
        if (i > 0)
            buf_adds(out, ",");
        add_check(out, &checks[i], &verdicts[i], details, points);
    }
    buf_adds(out, "}");
}

static void count(const struct verdict *verdicts, const struct conf *conf,
                  struct audit_findings *out)
{
    const unsigned weights[] = {[IMPORTANCE_HIGH] = conf->reports_weight_high,
                                [IMPORTANCE_MEDIUM] = conf->reports_weight_medium,
                                [IMPORTANCE_LOW] = conf->reports_weight_low};
    unsigned won = 0, all = 0;
    unsigned *const failed[] = {[IMPORTANCE_HIGH] = &out->issues.high,
                                [IMPORTANCE_MEDIUM] = &out->issues.medium,
                                [IMPORTANCE_LOW] = &out->issues.low};
    out->issues = (struct audit_issues){0};
    for (size_t i = 0; i < checks_count; i++) {
        if (verdicts[i].outcome == OUTCOME_NOT_APPLICABLE)
            continue;
        unsigned weight = weights[checks[i].importance];
        all += weight;
        if (verdicts[i].outcome == OUTCOME_PASS) {
            won += weight;
            out->issues.passed++;
        } else {
            (*failed[checks[i].importance])++;
        }
    }
    /* rounded half up; some checks always apply, so ${all} > 0 */
    out->score = all == 0 ? 0 : (int)((200 * won + all) / (2 * all));
}

static struct str list_failed(const struct verdict *verdicts, struct arena *arena)
{
    struct buf ids = {0};
    for (size_t i = 0; i < checks_count; i++) {
        if (verdicts[i].outcome != OUTCOME_FAIL)
            continue;
        buf_adds(&ids, ids.n == 0 ? "" : " ");
        buf_adds(&ids, checks[i].id);
    }
    struct str failed = arena_copy(arena, buf_view(&ids));
    arena->full = arena->full || !buf_ok(&ids);
    buf_free(&ids);
    return failed;
}

_Static_assert(sizeof(PACKAGE_VERSION) <= STORE_ASSAY_VERSION_MAX, "a grading holds the version");

static struct grading_facts list_facts(const struct facts *facts)
{
    const struct fact_response *r = &facts->response;
    return (struct grading_facts){.http_status = (unsigned)r->status,
                                  .ttfb_ms = r->ttfb_ms,
                                  .load_ms = r->load_ms,
                                  .page_bytes = r->wire_bytes,
                                  .protocol = facts_protocol(facts),
                                  .final_url = r->url,
                                  .version = STR(PACKAGE_VERSION)};
}

bool results_make(struct facts *facts, const struct conf *conf, struct audit_findings *out,
                  struct buf *json)
{
    struct verdict *verdicts = calloc(checks_count, sizeof(*verdicts));
    if (verdicts == NULL)
        return false;
    for (size_t i = 0; i < checks_count; i++) {
        verdicts[i].arena = &facts->arena;
        checks[i].run(facts, &verdicts[i]);
    }
    count(verdicts, conf, out);
    out->facts = list_facts(facts);
    out->failed = list_failed(verdicts, &facts->arena);
    for (size_t i = 0; i < sizeof(cuts) / sizeof(*cuts); i++) {
        add_all(json, verdicts, cuts[i].details, cuts[i].points);
        if (json->n <= RESULTS_MAX_BYTES)
            break;
    }
    free(verdicts);
    out->results = buf_view(json);
    return buf_ok(json) && json->n <= RESULTS_MAX_BYTES && !facts->arena.full;
}

int audit_result(int score, const struct conf *conf)
{
    enum { NONE, GOOD, DECENT, BAD };
    if (score < 0)
        return NONE;
    return score >= (int)conf->reports_good     ? GOOD
           : score >= (int)conf->reports_decent ? DECENT
                                                : BAD;
}
