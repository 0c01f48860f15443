/* What a visitor sends besides messages: events, leads, typing, ratings and coupon codes. */
#include "core/api/widget_internal.h"

#include "core/api/coupon_internal.h"
#include "core/auth/credential.h"
#include "core/shm/typing_table.h"
#include "core/text/json_out.h"
#include "core/text/time_in.h"

#include <inttypes.h>
#include <json-c/json.h>

#define EVENTS_MAX 50
#define KIND_MAX 64
#define PAYLOAD_MAX 4096
#define EMAIL_MAX 254

/* ---- events ---- */

static bool kind_valid(struct str kind)
{
    for (size_t i = 0; i < kind.n; i++) {
        char c = kind.p[i];
        if (!(c >= 'a' && c <= 'z') && !(c >= '0' && c <= '9') && c != '_' && c != '.' && c != '-')
            return false;
    }
    return kind.n >= 1 && kind.n <= KIND_MAX;
}

static struct str text_of(struct json_object *value)
{
    return json_object_is_type(value, json_type_string)
               ? (struct str){json_object_get_string(value),
                              (size_t)json_object_get_string_len(value)}
               : (struct str){"", 0};
}

/* Appends an event to ${out}. Returns what is wrong, or NULL. */
static const char *event_add(struct buf *out, struct str kind, struct str payload,
                             struct json_object *at)
{
    int64_t at_ms = at == NULL ? 0 : time_read(text_of(at));
    if (!kind_valid(kind))
        return "must have a kind of 1 to 64 characters of a-z, 0-9, _, . and -";
    if (payload.n > PAYLOAD_MAX)
        return "must have a payload of at most 4 KiB of JSON";
    if (at != NULL && at_ms <= 0)
        return "must have an RFC 3339 time in at, such as 2026-05-07T13:00:00Z";
    event_pack(out, kind, payload, at_ms);
    return NULL;
}

static const char *event_member_add(struct buf *out, struct json_object *event)
{
    struct json_object *kind = NULL, *payload = NULL, *at = NULL;
    if (!json_object_is_type(event, json_type_object))
        return "must be objects";
    json_object_object_get_ex(event, "kind", &kind);
    json_object_object_get_ex(event, "payload", &payload);
    json_object_object_get_ex(event, "at", &at);
    struct str text = {NULL, 0};
    if (payload != NULL)
        text = str_of(json_object_to_json_string_ext(payload, JSON_C_TO_STRING_PLAIN |
                                                                  JSON_C_TO_STRING_NOSLASHESCAPE));
    return event_add(out, text_of(kind), text, at);
}

static const char *batch_add(struct buf *out, struct json_object *events)
{
    if (!json_object_is_type(events, json_type_array) || json_object_array_length(events) < 1 ||
        json_object_array_length(events) > EVENTS_MAX)
        return "must be an array of 1 to 50 events";
    for (size_t i = 0; i < json_object_array_length(events); i++) {
        const char *why = event_member_add(out, json_object_array_get_idx(events, i));
        if (why != NULL)
            return why;
    }
    return NULL;
}

static void events_stored(struct request *r, const struct store_answer *answer)
{
    if (answer->status == STORE_OK)
        api_reply_data(r, 202, request_printf(r, "{\"accepted\":%" PRIu64 "}", answer->id));
    else
        widget_refuse(r, answer->status);
}

void widget_events(struct request *r)
{
    const struct value *batch = &r->values[EVENTS_BATCH], *one = &r->values[EVENTS_ONE],
                       *metadata = &r->values[EVENTS_METADATA];
    struct buf rows = {0};
    const char *why = NULL;
    if (batch->sent == one->sent)
        why = "or event is required: a batch or a single event";
    else if (batch->sent)
        why = batch_add(&rows, batch->json);
    else
        why = event_add(&rows, one->text, metadata->sent ? metadata->text : (struct str){NULL, 0},
                        NULL);
    if (why != NULL)
        reply_invalid(r, one->sent && !batch->sent ? "event" : "events", why);
    else if (!buf_ok(&rows))
        reply_error(r, ERR_UNAVAILABLE, NULL);
    else {
        struct store_change *change = widget_change(r, CHANGE_EVENTS);
        change->data = buf_view(&rows);
        request_change(r, change, events_stored);
    }
    buf_free(&rows);
}

/* ---- leads ---- */

/*
 * As in HTML forms: text, an at sign, and a host name with a letter. Refuses characters that could
 * end a header or a line.
 */
static bool email_valid(struct str email)
{
    const char *at = email.n == 0 ? NULL : memchr(email.p, '@', email.n);
    if (at == NULL || at == email.p || email.n > EMAIL_MAX)
        return false;
    struct str host = {at + 1, email.n - (size_t)(at + 1 - email.p)};
    for (size_t i = 0; i < email.n; i++)
        if ((unsigned char)email.p[i] <= ' ' || email.p[i] == 0x7f ||
            strchr("<>()[],;:\\\"", email.p[i]) != NULL)
            return false;
    return host.n > 0 && memchr(host.p, '@', host.n) == NULL && host.p[0] != '.' &&
           host.p[0] != '-' && host.p[host.n - 1] != '.';
}

static void lead_stored(struct request *r, const struct store_answer *answer)
{
    struct buf body = {0};
    if (answer->status != STORE_OK) {
        widget_refuse(r, answer->status);
        return;
    }
    /* what an earlier sender of the address sent is not shown to this one */
    widget_replayed(r, answer);
    widget_put_id(&body, "{\"lead_id\":", &answer->first);
    widget_put_id(&body, ",\"conversation_id\":", &r->session.conversation);
    buf_adds(&body, ",\"email\":");
    json_string(&body, r->values[LEAD_EMAIL].text);
    buf_adds(&body, ",\"lead_captured\":true}");
    api_reply_data_buf(r, (int)answer->code, &body);
    buf_free(&body);
}

static bool check_lead(struct request *r)
{
    const struct value *email = &r->values[LEAD_EMAIL], *fields = &r->values[LEAD_FIELDS];
    struct buf errors = {0};
    if (!email->sent)
        fields_error(&errors, "email", "is required");
    else if (!email_valid(email->text))
        fields_error(&errors, "email", "must be an e-mail address");
    if (fields->sent && !json_object_is_type(fields->json, json_type_object))
        fields_error(&errors, "fields", "must be an object");
    if (errors.n == 0)
        return true;
    reply_fields_error(r, &errors);
    return false;
}

void widget_lead(struct request *r)
{
    if (!check_lead(r))
        return;
    struct store_change *change = widget_change(r, CHANGE_LEAD);
    uint8_t *hash = request_alloc(r, CREDENTIAL_HASH);
    if (!credential_hash(api_lower(r, r->values[LEAD_EMAIL].text), hash)) {
        reply_error(r, ERR_INTERNAL, NULL);
        return;
    }
    change->hash = (struct str){(const char *)hash, CREDENTIAL_HASH};
    change->text = r->values[LEAD_EMAIL].text;
    if (r->values[LEAD_NAME].sent)
        change->name = r->values[LEAD_NAME].text;
    if (r->values[LEAD_PHONE].sent)
        change->url = r->values[LEAD_PHONE].text;
    if (r->values[LEAD_FIELDS].sent)
        change->data = r->values[LEAD_FIELDS].text;
    if (request_idempotency(r, change))
        request_change(r, change, lead_stored);
}

/* ---- typing ---- */

void widget_typing(struct request *r)
{
    widget_typing_reply(r, &r->session.conversation, TYPIST_VISITOR,
                        r->values[TYPING_STATUS].number == 0);
}

/* ---- rating ---- */

static void rating_stored(struct request *r, const struct store_answer *answer)
{
    if (answer->status != STORE_OK) {
        widget_refuse(r, answer->status);
        return;
    }
    struct buf body = {0};
    widget_put_id(&body, "{\"rating_id\":", &answer->first);
    widget_put_id(&body, ",\"conversation_id\":", &r->session.conversation);
    buf_printf(&body, ",\"rating\":%" PRIu32 "}", answer->code);
    api_reply_data_buf(r, 200, &body);
    buf_free(&body);
}

void widget_rating(struct request *r)
{
    /* by choice in the route's table: 1 to 5, positive, negative */
    static const int32_t scores[] = {1, 2, 3, 4, 5, 5, 1};
    if (!r->values[RATING_VALUE].sent) {
        reply_invalid(r, "rating", "is required: 1 to 5, positive or negative");
        return;
    }
    struct store_change *change = widget_change(r, CHANGE_RATING);
    change->score = scores[r->values[RATING_VALUE].number];
    if (r->values[RATING_COMMENT].sent) {
        change->text = r->values[RATING_COMMENT].text;
        change->fields = RATING_HAS_COMMENT;
    }
    request_change(r, change, rating_stored);
}

/* ---- coupon ---- */

void widget_coupon(struct request *r)
{
    const struct value *code = &r->values[COUPON_CODE], *cart = &r->values[COUPON_CART];
    struct buf errors = {0};
    const char *why = cart->sent ? coupon_cart_mistake(cart->json) : NULL;
    if (!code->sent)
        fields_error(&errors, "code", "is required: the coupon's code");
    if (why != NULL)
        fields_error(&errors, "cart", "%s", why);
    if (errors.n > 0)
        reply_fields_error(r, &errors);
    else
        coupon_apply(r, code->text, cart->sent ? cart->json : NULL);
}
