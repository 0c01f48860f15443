#include "core/api/widget_internal.h"

#include "core/process/process.h"
#include "core/shm/typing_table.h"
#include "core/http/http.h"
#include "core/text/json_out.h"

struct store_change *widget_change(struct request *r, enum store_change_kind kind)
{
    struct store_change *change = request_alloc(r, sizeof(*change));
    *change = (struct store_change){.kind = kind};
    if (r->route->auth == AUTH_JWT) {
        change->agent = r->session.agent;
        change->visitor = r->session.visitor;
        change->conversation = r->session.conversation;
    } else {
        change->workspace = r->workspace;
        change->id = r->key;
    }
    r->state = change;
    return change;
}

void widget_refuse(struct request *r, enum store_status status)
{
    if (status == STORE_NOT_FOUND && r->route->auth == AUTH_JWT) {
        reply_header(r, "www-authenticate", STR("Bearer realm=\"assay\", error=\"invalid_token\""));
        reply_error(
            r, ERR_UNAUTHORIZED,
            "This visitor or its agent was deleted. Begin again with POST /api/v1/widget/init.");
    } else if (status == STORE_EXISTS)
        reply_error(r, ERR_CONFLICT,
                    "Another operator has claimed this conversation. Wait until it is released.");
    else
        reply_store_error(r, status);
}

void widget_replayed(struct request *r, const struct store_answer *answer)
{
    if (answer->replayed == 1)
        reply_header(r, "idempotent-replayed", STR("true"));
}

struct message_read {
    struct request *r;
    const struct store_answer *answer;
    widget_message_fn *done;
};

static void message_found(void *arg, enum store_status status, const struct store_message *m)
{
    const struct message_read *k = arg;
    if (status != STORE_OK) {
        widget_refuse(k->r, status);
        return;
    }
    widget_replayed(k->r, k->answer);
    k->done(k->r, k->answer, m);
}

void widget_read_message(struct request *r, const struct store_answer *answer,
                         const struct ulid *id, widget_message_fn *done)
{
    const struct store_change *change = r->state;
    struct message_read k = {r, answer, done};
    store_message_get(r->store, &change->conversation, id, message_found, &k);
}

void widget_put_id(struct buf *out, const char *name, const struct ulid *id)
{
    char text[ULID_TEXT];
    buf_adds(out, name);
    if (ulid_none(id)) {
        buf_adds(out, "null");
        return;
    }
    ulid_text(id, text);
    buf_adds(out, "\"");
    buf_add(out, text, sizeof(text));
    buf_adds(out, "\"");
}

void widget_put_state(struct buf *out, const struct store_conversation *c)
{
    const struct str name = {c->claimed_name.n > 0 ? c->claimed_name.p : NULL, c->claimed_name.n};
    buf_adds(out, c->claimed_by != 0 ? ",\"is_claimed\":true" : ",\"is_claimed\":false");
    buf_adds(out, ",\"operator_name\":");
    json_text(out, name);
    buf_adds(out, c->closed_at != 0 ? ",\"is_closed\":true" : ",\"is_closed\":false");
}

bool widget_read_id(struct request *r, unsigned field, struct ulid *out)
{
    const struct value *v = &r->values[field];
    *out = (struct ulid){{0}};
    if (!v->sent ||
        (ulid_parse(v->text, out) && !ulid_none(out))) /* all zeros means no id internally */
        return true;
    reply_invalid(r, r->route->fields[field].name, "must be an id from an earlier response");
    return false;
}

/* ---- versions ---- */

uint64_t widget_version(const struct store_conversation *c, uint64_t extra)
{
    uint64_t high, low, parts[4];
    ulid_halves(&c->id, &high, &low);
    parts[0] = high;
    parts[1] = low;
    parts[2] = c->version;
    parts[3] = extra;
    return api_hash(API_HASH_START, parts, sizeof(parts)) >> 1; /* etag.h reserves one value */
}

/* ---- typing ---- */

bool widget_is_typing(struct request *r, const struct ulid *conversation, unsigned who)
{
    return typing_table_is_typing(r->http->loop->process->typing, conversation, (enum typist)who,
                                  r->http->loop->now_ms);
}

static void tell_nodes(struct request *r, const struct ulid *conversation, unsigned who, bool on)
{
    const struct typing_notice notice = {
        .conversation = *conversation, .who = (enum typist)who, .left_ms = on ? TYPING_MS : 0};
    writer_client_send_typing(r->http->writer, &notice);
}

void widget_typing_reply(struct request *r, const struct ulid *conversation, unsigned who, bool on)
{
    char text[96];
    struct buf body = {.p = text, .cap = sizeof(text)}; /* never grows: both texts fit */
    typing_table_set(r->http->loop->process->typing, conversation, (enum typist)who,
                     on ? r->http->loop->now_ms + TYPING_MS : 0, r->http->loop->now_ms);
    if (r->http->log_waits != NULL) /* in a cluster */
        tell_nodes(r, conversation, who, on);
    buf_adds(&body, on ? "{\"typing\":true,\"expires_at\":" : "{\"typing\":false,\"expires_at\":");
    json_time(&body, on ? r->now_ms + TYPING_MS : 0);
    buf_adds(&body, "}");
    api_reply_data(r, 200, buf_view(&body));
}
