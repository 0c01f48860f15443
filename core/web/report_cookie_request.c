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

bool report_cookie_opens(struct request *r, const struct store_report *report)
{
    struct str value;
    return cookie_find(r, STR(REPORT_COOKIE), &value) &&
           report_cookie_valid(r->http->keys, report, r->now_ms, value);
}
