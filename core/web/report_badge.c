#include "core/web/report_page.h"

#include "core/http/http.h"
#include "core/web/templates.h"

/* Widths of the texts in 11 px Verdana, with a margin at both sides. */
enum { LABEL_WIDTH = 44, DIGIT_WIDTH = 8, MARGIN = 12 };

static unsigned digits_of(unsigned score)
{
    return score >= 100 ? 3 : score >= 10 ? 2 : 1;
}

static void reply_badge(struct request *r, const struct store_report *report)
{
    unsigned score = (unsigned)report->score;
    unsigned width = digits_of(score) * DIGIT_WIDTH + MARGIN;
    struct badge_view view = {
        .score = score,
        .label_width = LABEL_WIDTH,
        .score_width = width,
        .width = LABEL_WIDTH + width,
        .label_x = LABEL_WIDTH / 2,
        .score_x = LABEL_WIDTH + width / 2,
        .good = report->result == RESULT_GOOD,
        .decent = report->result == RESULT_DECENT,
        .bad = report->result == RESULT_BAD,
    };
    struct buf *out = &r->http->body;
    buf_reset(out);
    template_badge(out, page_language(r), &view);
    struct str part = buf_view(out);
    if (buf_ok(out))
        reply_parts(r, 200, "image/svg+xml", &part, 1);
    else
        reply_error(r, ERR_UNAVAILABLE, NULL);
}

static void report_found(void *arg, enum store_status status, const struct store_report *report)
{
    struct request *r = arg;
    if (status != STORE_OK && status != STORE_NOT_FOUND) {
        reply_store_error(r, status);
        return;
    }
    if (status != STORE_OK || report->privacy != PRIVACY_PUBLIC || report->score < 0) {
        reply_error(r, ERR_NOT_FOUND, NULL);
        return;
    }
    reply_header(r, "cache-control", STR("public, max-age=300"));
    reply_header(r, "vary", STR("accept-language"));
    reply_header(r, "content-security-policy", STR("default-src 'none'"));
    if (!reply_etag(r, report->version * LANGUAGES + page_language(r)))
        reply_badge(r, report);
}

void report_badge(struct request *r)
{
    store_report_get(r->store, STORE_ANY_WORKSPACE, report_page_id(r), false, report_found, r);
}
