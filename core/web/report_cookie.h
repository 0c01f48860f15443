/*
 * The cookie that opens a report with a password. It names a signing key and its expiry, and holds
 * an HMAC-SHA256 over the report's id, the expiry and the stored hash of the password. The hash has
 * a new salt with every password, so a new password, or another privacy, ends all cookies of the
 * report. No state is kept: every worker can check every cookie.
 */
#ifndef ASSAY_WEB_REPORT_COOKIE_H
#define ASSAY_WEB_REPORT_COOKIE_H

#include "core/auth/signing_keys.h"
#include "store/store.h"

struct request;

#define REPORT_COOKIE "assay_report"
#define REPORT_COOKIE_LIFE_MS (INT64_C(12) * 3600 * 1000)
#define REPORT_COOKIE_SIZE 128 /* of the value with NUL: KID.EXPIRY.HEX */

/*
 * report_cookie_make(keys, report, now_ms, out): the value for ${report}; its length, 0: the report
 * has no password, or OpenSSL fails.
 * report_cookie_valid(keys, report, now_ms, value): ${value} was made for ${report} with its
 * current password, and has not expired. Compares in constant time.
 */
size_t report_cookie_make(const struct signing_keys *keys, const struct store_report *report,
                          int64_t now_ms, char out[REPORT_COOKIE_SIZE]);
bool report_cookie_valid(const struct signing_keys *keys, const struct store_report *report,
                         int64_t now_ms, struct str value);

/*
 * report_cookie_set(r, report): set the cookie for the path of the report's page; false: it cannot
 * be made.
 * report_cookie_opens(r, report): the request has a valid cookie of ${report}.
 */
bool report_cookie_set(struct request *r, const struct store_report *report)
    __attribute__((warn_unused_result));
bool report_cookie_opens(struct request *r, const struct store_report *report);

#endif
