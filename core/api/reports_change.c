/*
 * Creates, updates and deletes reports. Steps of a change: check → hash a password → writer → read
 * the record → wait for its grade, if the caller wants to → read again → respond. Between the steps
 * r->state is a struct report_change.
 */
#include "core/api/api_internal.h"
#include "core/audit/url.h"
#include "core/auth/password.h"

#include <inttypes.h>

/* Maximum number of a workspace's pages that wait for their grade. */
#define PENDING_MAX 10000

struct report_change {
    struct store_change change;
    request_change_fn *changed; /* called with the result of the change */
    int code;                   /* status of a successful response */
    unsigned wait_ms;           /* how long the response may still wait for the grade */
    struct str preference_applied;
};

static void read_record(struct request *r);

static struct str location_of(struct request *r, uint64_t id)
{
    struct str base_url = request_base_url(r), path = STR("/api/v1/reports/");
    size_t capacity = base_url.n + path.n + sizeof("18446744073709551615");
    struct buf text = {.p = request_alloc(r, capacity), .cap = capacity};
    buf_str(&text, base_url);
    buf_str(&text, path);
    buf_u64(&text, id);
    return buf_view(&text);
}

/* The request was valid and the change was made, so this is not 404. */
static void reply_gone(struct request *r, uint64_t id)
{
    reply_error(
        r, ERR_GONE,
        "Report %" PRIu64
        " was deleted after this request was accepted. Create a new report to grade its page.",
        id);
}

static void record_found(void *arg, enum store_status status, const struct store_report *report)
{
    struct request *r = arg;
    struct report_change *rc = r->state;
    if (status == STORE_NOT_FOUND) {
        reply_gone(r, rc->change.id);
        return;
    }
    if (status != STORE_OK) {
        reply_store_error(r, status);
        return;
    }
    if (report->status == REPORT_PENDING && rc->wait_ms > 0) {
        unsigned wait_ms = rc->wait_ms;
        rc->wait_ms = 0;
        request_await(r, rc->change.id, wait_ms, read_record);
        return;
    }
    /* a repeat gets the status of the first response, whatever its Prefer says */
    bool async = str_eq(rc->preference_applied, STR("respond-async"));
    if (rc->preference_applied.p != NULL && async == (rc->code == 202))
        reply_header(r, "preference-applied", rc->preference_applied);
    if (rc->change.kind == CHANGE_REPORT_CREATE)
        reply_header(r, "location", location_of(r, rc->change.id));
    api_report_reply(r, rc->code, report);
}

/* Reads the record again: it may have been graded or deleted since. */
static void read_record(struct request *r)
{
    const struct report_change *rc = r->state;
    store_report_get(r->store, r->workspace, rc->change.id, true, record_found, r);
}

static void reply_refused(struct request *r, enum store_status status)
{
    switch (status) {
    case STORE_NO_PASSWORD:
        reply_invalid(r, "password", "is required with privacy 2, unless one is set already");
        break;
    case STORE_NOT_PROTECTED:
        reply_invalid(r, "password", "is accepted only if privacy is 2; send privacy=2 with it");
        break;
    case STORE_QUEUE_FULL:
        reply_error(
            r, ERR_UNAVAILABLE,
            "This workspace has %d pages waiting for their grade. Try again when some are done.",
            PENDING_MAX);
        break;
    default:
        reply_store_error(r, status);
    }
}

static void password_hashed(struct request *r, struct str hash)
{
    struct report_change *rc = r->state;
    if (hash.p == NULL) {
        reply_retry(r, "Too many passwords are being set or checked. Retry in a second.");
        return;
    }
    rc->change.hash = hash;
    request_change(r, &rc->change, rc->changed);
}

static struct report_change *report_change_new(struct request *r, enum store_change_kind kind,
                                               request_change_fn *changed)
{
    struct report_change *rc = request_alloc(r, sizeof(*rc));
    *rc = (struct report_change){
        .changed = changed,
        .change = {.kind = kind, .workspace = r->workspace, .limit = PENDING_MAX}};
    r->state = rc;
    return rc;
}

/* ---- create ---- */

static void check_url(struct request *r, struct store_change *change, struct buf *errors)
{
    struct str sent = r->values[CREATE_URL].text;
    struct buf url = {0}, host = {0};
    const char *why = NULL;
    if (sent.p == NULL) {
        fields_error(errors, "url",
                     "is required: send the address of the page, http:// or https://");
    } else if (audit_url_plain(sent, r->conf, &change->name)) {
        change->url = sent;
    } else if (!audit_url_normalise(sent, r->conf, &url, &host, &why)) {
        fields_error(errors, "url", "%s", why);
    } else {
        change->url = api_copy(r, buf_view(&url));
        change->name = api_copy(r, buf_view(&host));
    }
    buf_free(&url);
    buf_free(&host);
}

static void check_password(struct str password, struct buf *errors)
{
    if (password.n == 0)
        fields_error(errors, "password", "is required with privacy 2");
    else if (password.n > PASSWORD_MAX)
        fields_error(errors, "password", "must be at most %d bytes long", PASSWORD_MAX);
}

static void created(struct request *r, const struct store_answer *answer)
{
    struct report_change *rc = r->state;
    if (answer->replayed)
        reply_header(r, "idempotent-replayed", STR("true"));
    if (answer->replayed && answer->status == STORE_NOT_FOUND) {
        reply_gone(r, answer->id);
        return;
    }
    if (answer->status != STORE_OK) {
        reply_refused(r, answer->status);
        return;
    }
    rc->change.id = answer->id;
    if (answer->replayed)
        rc->code = (int)answer->code;
    if (rc->code == 202)
        rc->wait_ms = 0;
    read_record(r);
}

void reports_create(struct request *r)
{
    struct report_change *rc = report_change_new(r, CHANGE_REPORT_CREATE, created);
    struct str password = r->values[CREATE_PASSWORD].text;
    struct buf errors = {0};
    bool async = false;
    rc->change.privacy = (uint32_t)r->values[CREATE_PRIVACY].number;
    check_url(r, &rc->change, &errors);
    if (rc->change.privacy == PRIVACY_PASSWORD)
        check_password(password, &errors);
    if (errors.n > 0) {
        reply_fields_error(r, &errors);
        return;
    }
    rc->wait_ms = r->conf->reports_wait_ms;
    rc->preference_applied = request_prefer(r, &rc->wait_ms, &async);
    rc->code = async ? 202 : 201;
    rc->change.code = (uint32_t)rc->code;
    if (async)
        rc->wait_ms = 0;
    if (!request_idempotency(r, &rc->change))
        return;
    if (rc->change.privacy == PRIVACY_PASSWORD)
        request_hash(r, password, password_hashed);
    else
        request_change(r, &rc->change, rc->changed);
}

/* ---- update ---- */

static void updated(struct request *r, const struct store_answer *answer)
{
    if (answer->status != STORE_OK)
        reply_refused(r, answer->status);
    else
        read_record(r);
}

/* Only a new grade can be waited for. Without Prefer: wait, the response is sent at once. */
static void update_prefer(struct request *r, struct report_change *rc)
{
    unsigned wait_ms = 0;
    bool async = false;
    struct str preference_applied = request_prefer(r, &wait_ms, &async);
    if ((rc->change.fields & CHANGE_REGENERATE) != 0 && !async) {
        rc->wait_ms = wait_ms;
        rc->preference_applied = preference_applied;
    }
}

void reports_update(struct request *r)
{
    struct report_change *rc = report_change_new(r, CHANGE_REPORT_UPDATE, updated);
    struct store_change *change = &rc->change;
    const struct value *privacy = &r->values[UPDATE_PRIVACY],
                       *password = &r->values[UPDATE_PASSWORD];
    rc->code = 200;
    if (!api_id(r->args[0], &change->id)) {
        reply_error(r, ERR_NOT_FOUND, NULL);
        return;
    }
    if (privacy->sent && privacy->number != PRIVACY_PASSWORD && password->sent) {
        reply_refused(r, STORE_NOT_PROTECTED);
        return;
    }
    change->privacy = (uint32_t)privacy->number;
    change->fields = (privacy->sent ? CHANGE_HAS_PRIVACY : 0u) |
                     (password->sent ? CHANGE_HAS_PASSWORD : 0u) |
                     (r->values[UPDATE_UPDATE].number == 1 ? CHANGE_REGENERATE : 0u);
    update_prefer(r, rc);
    request_if_match(r, change);
    if (password->sent)
        request_hash(r, password->text, password_hashed);
    else
        request_change(r, change, rc->changed);
}

/* ---- delete ---- */

static void deleted(struct request *r, const struct store_answer *answer)
{
    const struct report_change *rc = r->state;
    if (answer->status != STORE_OK) {
        reply_store_error(r, answer->status);
        return;
    }
    struct str body = request_printf(
        r, "{\"id\":%" PRIu64 ",\"object\":\"report\",\"deleted\":true,\"status\":200}",
        rc->change.id);
    reply_json(r, 200, &body, 1);
}

void reports_delete(struct request *r)
{
    struct report_change *rc = report_change_new(r, CHANGE_REPORT_DELETE, deleted);
    if (!api_id(r->args[0], &rc->change.id)) {
        reply_error(r, ERR_NOT_FOUND, NULL);
        return;
    }
    request_if_match(r, &rc->change);
    request_change(r, &rc->change, rc->changed);
}
