#include "core/web/report_password.h"

#include "core/http/cluster_reads.h"
#include "core/http/error_html.h"
#include "core/web/report_cookie.h"
#include "core/web/report_page.h"
#include "core/web/same_site.h"

#include <inttypes.h>

/* Has the cost of a real hash. No password is tried for it: its result is not used. */
static const struct str no_hash = STR("$scrypt$ln=14,r=8,p=1$AAAAAAAAAAAAAAAAAAAAAA$"
                                      "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA");

/* r->state while the password is checked. */
struct attempt {
    struct str hash; /* that is checked: a copy, or ${no_hash} */
    bool right;
};

/* ---- answers ---- */

static void reply_opened(struct request *r, const struct store_report *report)
{
    struct str base = request_base_path(r), query = page_query(r);
    if (!report_cookie_set(r, report)) {
        reply_error(r, ERR_INTERNAL, NULL);
        return;
    }
    reply_redirect(r, request_printf(r, "%.*s/reports/%" PRIu64 "%s%.*s", (int)base.n, base.p,
                                     report->id, query.n > 0 ? "?" : "", (int)query.n, query.p));
}

static void reply_wrong(struct request *r, const struct store_report *report, const char *message)
{
    if (error_is_page(r))
        report_page_form(r, report, true);
    else
        reply_invalid(r, "password", message);
}

/* Whether ${report} has a password; if not, the request was answered. */
static bool is_protected(struct request *r, enum store_status status,
                         const struct store_report *report)
{
    if (status == STORE_OK && report->privacy == PRIVACY_PASSWORD)
        return true;
    if (status == STORE_OK || status == STORE_NOT_FOUND)
        reply_error(r, ERR_NOT_FOUND, NULL);
    else
        reply_store_error(r, status);
    return false;
}

/* ---- steps: read the report → check the password → read it again → answer ---- */

/* The password may have been replaced while the old one was checked. */
static void found_again(void *arg, enum store_status status, const struct store_report *report)
{
    struct request *r = arg;
    const struct attempt *attempt = r->state;
    if (!is_protected(r, status, report))
        return;
    if (attempt->right && str_eq(attempt->hash, report->password_hash))
        reply_opened(r, report);
    else
        reply_wrong(r, report, "is wrong");
}

static void verified(struct request *r, bool right)
{
    struct attempt *attempt = r->state;
    attempt->right = right;
    store_report_get(r->store, STORE_ANY_WORKSPACE, report_page_id(r), false, found_again, r);
}

static struct str copy(struct request *r, struct str s)
{
    char *to = request_alloc(r, s.n);
    memcpy(to, s.p, s.n);
    return (struct str){to, s.n};
}

static void found(void *arg, enum store_status status, const struct store_report *report)
{
    struct request *r = arg;
    struct attempt *attempt = request_alloc(r, sizeof(*attempt));
    const struct value *password = &r->values[REPORT_PASSWORD];
    bool protected = status == STORE_OK && report->privacy == PRIVACY_PASSWORD;
    bool known = status == STORE_OK || status == STORE_NOT_FOUND;
    if (!known || !password->sent) {
        if (is_protected(r, status, report))
            reply_wrong(r, report, "is required");
        return;
    }
    *attempt = (struct attempt){.hash = protected ? copy(r, report->password_hash) : no_hash};
    r->state = attempt;
    request_verify(r, password->text, attempt->hash, verified);
}

void report_password(struct request *r)
{
    if (!same_site(r))
        return;
    if (cluster_reads_are_stale(r->http)) {
        reply_stale(r);
        return;
    }
    store_report_get(r->store, STORE_ANY_WORKSPACE, report_page_id(r), false, found, r);
}
