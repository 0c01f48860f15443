#include "core/http/http.h"
#include "core/http/request.h"
#include "core/web/cookies.h"
#include "core/web/report_cookie.h"

#include <inttypes.h>

bool report_cookie_set(struct request *r, const struct store_report *report)
{
    char *value = request_alloc(r, REPORT_COOKIE_SIZE);
    size_t n = report_cookie_make(r->http->keys, report, r->now_ms, value);
    struct str base = request_base_path(r);
    if (n == 0)
        return false;
    cookie_set(r, &(struct cookie){.name = STR(REPORT_COOKIE),
                                   .value = {value, n},
                                   .path = request_printf(r, "%.*s/reports/%" PRIu64, (int)base.n,
                                                          base.p, report->id),
                                   .max_age_s = REPORT_COOKIE_LIFE_MS / 1000,
                                   .secure = cookie_secure(r)});
    return true;
}

struct opening {
    const struct request *r;
    const struct store_report *report;
};

static bool opens(void *arg, struct str value)
{
    const struct opening *o = arg;
    return report_cookie_valid(o->r->http->keys, o->report, o->r->now_ms, value);
}

bool report_cookie_opens(struct request *r, const struct store_report *report)
{
    struct opening opening = {r, report};
    return cookie_any(r, STR(REPORT_COOKIE), opens, &opening);
}
