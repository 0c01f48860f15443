/*
 * Creates, updates and deletes reports. Steps of a change: check → hash a password → writer → read
 * the record → wait for its grade, if the caller wants to → read again → respond. Between the steps
 * r->state is a struct asked.
 */
#include "core/api/api.h"
#include "core/audit/url.h"
#include "core/auth/password.h"

#include <inttypes.h>

/* Maximum number of a workspace's pages that wait for their grade. */
#define PENDING_MAX 10000

struct asked {
    struct store_change change;
    int code;         /* status of a successful response */
    unsigned hold_ms; /* how long the response may still wait for the grade */
    struct str applied;
};

static void record_show(struct request *r);

static struct str location_of(struct request *r, uint64_t id)
{
    struct str base_url = request_base_url(r), path = STR("/api/v1/reports/");
    size_t room = base_url.n + path.n + sizeof("18446744073709551615");
    struct buf text = {.p = request_alloc(r, room), .cap = room};
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
    struct asked *asked = r->state;
    if (status == STORE_NOT_FOUND) {
        reply_gone(r, asked->change.id);
        return;
    }
    if (status != STORE_OK) {
        reply_store_error(r, status);
        return;
    }
    if (report->status == REPORT_PENDING && asked->hold_ms > 0) {
        unsigned hold_ms = asked->hold_ms;
        asked->hold_ms = 0;
        request_await(r, asked->change.id, hold_ms, record_show);
        return;
    }
    /* a repeat gets the status of the first response, whatever its Prefer says */
    bool async = str_eq(asked->applied, STR("respond-async"));
    if (asked->applied.p != NULL && async == (asked->code == 202))
        reply_header(r, "preference-applied", asked->applied);
    if (asked->change.kind == CHANGE_REPORT_CREATE)
        reply_header(r, "location", location_of(r, asked->change.id));
    api_report_reply(r, asked->code, report);
}

/* Reads the record again: it may have been graded or deleted since. */
static void record_show(struct request *r)
{
    const struct asked *asked = r->state;
    store_report_get(r->store, r->workspace, asked->change.id, true, record_found, r);
}

static void refused(struct request *r, enum store_status status)
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

static struct asked *asked_new(struct request *r, enum store_change_kind kind)
{
    struct asked *asked = request_alloc(r, sizeof(*asked));
    *asked =
        (struct asked){.change = {.kind = kind, .workspace = r->workspace, .limit = PENDING_MAX}};
    r->state = asked;
    return asked;
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

static void password_judge(struct str password, struct buf *errors)
{
    if (password.n == 0)
        fields_error(errors, "password", "is required with privacy 2");
    else if (password.n > PASSWORD_MAX)
        fields_error(errors, "password", "must be at most %d bytes long", PASSWORD_MAX);
}

static void created(struct request *r, const struct store_answer *answer)
{
    struct asked *asked = r->state;
    if (answer->replayed)
        reply_header(r, "idempotent-replayed", STR("true"));
    if (answer->replayed && answer->status == STORE_NOT_FOUND) {
        reply_gone(r, answer->id);
        return;
    }
    if (answer->status != STORE_OK) {
        refused(r, answer->status);
        return;
    }
    asked->change.id = answer->id;
    if (answer->replayed)
        asked->code = (int)answer->code;
    if (asked->code == 202)
        asked->hold_ms = 0;
    record_show(r);
}

static void create_hashed(struct request *r, struct str hash)
{
    struct asked *asked = r->state;
    if (hash.p == NULL) {
        reply_error(r, ERR_UNAVAILABLE,
                    "Too many passwords are being set at the moment. Try again shortly.");
        return;
    }
    asked->change.hash = hash;
    request_change(r, &asked->change, created);
}

void reports_create(struct request *r)
{
    struct asked *asked = asked_new(r, CHANGE_REPORT_CREATE);
    struct str password = r->values[CREATE_PASSWORD].text;
    struct buf errors = {0};
    bool async = false;
    asked->change.privacy = (uint32_t)r->values[CREATE_PRIVACY].number;
    check_url(r, &asked->change, &errors);
    if (asked->change.privacy == PRIVACY_PASSWORD)
        password_judge(password, &errors);
    if (errors.n > 0) {
        reply_fields_error(r, &errors);
        return;
    }
    asked->hold_ms = r->conf->reports_wait_ms;
    asked->applied = request_prefer(r, &asked->hold_ms, &async);
    asked->code = async ? 202 : 201;
    asked->change.code = (uint32_t)asked->code;
    if (async)
        asked->hold_ms = 0;
    if (!request_idempotency(r, &asked->change))
        return;
    if (asked->change.privacy == PRIVACY_PASSWORD)
        request_hash(r, password, create_hashed);
    else
        request_change(r, &asked->change, created);
}

/* ---- update ---- */

static void updated(struct request *r, const struct store_answer *answer)
{
    if (answer->status != STORE_OK)
        refused(r, answer->status);
    else
        record_show(r);
}

static void update_hashed(struct request *r, struct str hash)
{
    struct asked *asked = r->state;
    if (hash.p == NULL) {
        reply_error(r, ERR_UNAVAILABLE,
                    "Too many passwords are being set at the moment. Try again shortly.");
        return;
    }
    asked->change.hash = hash;
    request_change(r, &asked->change, updated);
}

/* Only a new grade can be waited for. Without Prefer: wait, the response is sent at once. */
static void update_prefer(struct request *r, struct asked *asked)
{
    unsigned wait_ms = 0;
    bool async = false;
    struct str applied = request_prefer(r, &wait_ms, &async);
    if ((asked->change.fields & CHANGE_REGENERATE) != 0 && !async) {
        asked->hold_ms = wait_ms;
        asked->applied = applied;
    }
}

void reports_update(struct request *r)
{
    struct asked *asked = asked_new(r, CHANGE_REPORT_UPDATE);
    struct store_change *change = &asked->change;
    const struct value *privacy = &r->values[UPDATE_PRIVACY],
                       *password = &r->values[UPDATE_PASSWORD];
    asked->code = 200;
    if (!api_id(r->args[0], &change->id)) {
        reply_error(r, ERR_NOT_FOUND, NULL);
        return;
    }
    if (privacy->sent && privacy->number != PRIVACY_PASSWORD && password->sent) {
        refused(r, STORE_NOT_PROTECTED);
        return;
    }
    change->privacy = (uint32_t)privacy->number;
    change->fields = (privacy->sent ? CHANGE_HAS_PRIVACY : 0u) |
                     (password->sent ? CHANGE_HAS_PASSWORD : 0u) |
                     (r->values[UPDATE_UPDATE].number == 1 ? CHANGE_REGENERATE : 0u);
    update_prefer(r, asked);
    request_if_match(r, change);
    if (password->sent)
        request_hash(r, password->text, update_hashed);
    else
        request_change(r, change, updated);
}

/* ---- delete ---- */

static void deleted(struct request *r, const struct store_answer *answer)
{
    const struct asked *asked = r->state;
    if (answer->status != STORE_OK) {
        reply_store_error(r, answer->status);
        return;
    }
    struct str body = request_printf(
        r, "{\"id\":%" PRIu64 ",\"object\":\"report\",\"deleted\":true,\"status\":200}",
        asked->change.id);
    reply_json(r, 200, &body, 1);
}

void reports_delete(struct request *r)
{
    struct asked *asked = asked_new(r, CHANGE_REPORT_DELETE);
    if (!api_id(r->args[0], &asked->change.id)) {
        reply_error(r, ERR_NOT_FOUND, NULL);
        return;
    }
    request_if_match(r, &asked->change);
    request_change(r, &asked->change, deleted);
}
