/* A visitor's requests in a conversation: messages, reading, streaming, state. */
#include "core/api/widget_internal.h"

#include "core/api/answer_internal.h"
#include "core/api/render_widget_internal.h"
#include "core/shm/typing_table.h"
#include "core/text/json_scan.h"
#include "core/text/json_out.h"
#include "core/api/event_stream.h"

#include <json-c/json.h>

/* ---- a message ---- */

/* The result of a message. ${reply}: NULL if an operator has claimed the conversation. */
static void result_put(struct buf *body, const struct store_change *change,
                       const struct store_answer *answer, const struct store_message *reply)
{
    widget_put_id(body, "{\"message_id\":", &answer->first);
    widget_put_id(body, ",\"answer_id\":", &answer->second);
    widget_put_id(body, ",\"conversation_id\":", &change->conversation);
    buf_adds(body, ",\"client_message_id\":");
    json_text(body, change->client_id);
    buf_adds(body, ",");
    if (reply == NULL)
        buf_adds(body, "\"content\":null,\"citations\":[],\"low_confidence\":false");
    else
        render_message_result(reply, body);
    buf_adds(body, reply == NULL ? ",\"human_takeover\":true}" : ",\"human_takeover\":false}");
}

/* Sends an answer word by word, for pages that show it as it arrives. */
static void tokens_put(struct buf *body, struct str content)
{
    for (size_t from = 0, to; from < content.n; from = to) {
        to = from;
        while (to < content.n && content.p[to] != ' ')
            to++;
        while (to < content.n && content.p[to] == ' ')
            to++;
        buf_adds(body, "event: token\ndata: {\"text\":");
        json_string(body, (struct str){content.p + from, to - from});
        buf_adds(body, "}\n\n");
    }
}

static void answer_events(struct buf *body, const struct store_message *reply)
{
    tokens_put(body, reply->text);
    buf_adds(body, "event: citations\ndata: ");
    buf_str(body, reply->citations.n == 0 ? STR("[]") : reply->citations);
    buf_adds(body, "\n\n");
}

/*
 * The answer is committed before the stream starts, so the stream cannot fail and ends with done.
 */
static void events_reply(struct request *r, const struct store_answer *answer,
                         const struct store_message *reply, struct buf *body)
{
    const struct store_change *change = r->state;
    widget_put_id(body, "event: start\ndata: {\"message_id\":", &answer->first);
    widget_put_id(body, ",\"conversation_id\":", &change->conversation);
    buf_adds(body, ",\"client_message_id\":");
    json_text(body, change->client_id);
    buf_adds(body, "}\n\n");
    if (reply != NULL)
        answer_events(body, reply);
    buf_adds(body, "event: done\ndata: ");
    result_put(body, change, answer, reply);
    buf_adds(body, "\n\n");
    struct str part = buf_view(body);
    if (!buf_ok(body)) {
        reply_error(r, ERR_UNAVAILABLE, NULL);
        return;
    }
    reply_header(r, "cache-control", STR("no-store"));
    reply_parts(r, 200, "text/event-stream", &part, 1);
}

static void message_body(struct request *r, const struct store_answer *answer,
                         const struct store_message *reply)
{
    struct buf body = {0};
    if ((r->route->flags & ROUTE_TEXT) != 0) {
        events_reply(r, answer, reply, &body);
    } else {
        result_put(&body, r->state, answer, reply);
        api_reply_data_buf(r, 200, &body);
    }
    buf_free(&body);
}

static void reply_found(struct request *r, const struct store_answer *answer,
                        const struct store_message *m)
{
    message_body(r, answer, m);
}

static void posted(struct request *r, const struct store_answer *answer)
{
    if (answer->status != STORE_OK)
        widget_refuse(r, answer->status);
    else if (!ulid_none(&answer->second))
        widget_read_message(r, answer, &answer->second, reply_found);
    else {
        widget_replayed(r, answer);
        message_body(r, answer, NULL);
    }
}

static struct str sent_text(const struct value *v)
{
    return v->sent ? v->text : (struct str){NULL, 0};
}

static void answer_found(struct request *r, const struct answer *answer)
{
    struct store_change *change = r->state;
    change->answer = answer->content;
    change->citations = answer->citations;
    change->fields = answer->low_confidence ? MESSAGE_LOW_CONFIDENCE : 0;
    request_change(r, change, posted);
}

void widget_message(struct request *r)
{
    if (!r->values[MESSAGE_TEXT].sent) {
        reply_invalid(r, "message", "is required: 1 to 4000 characters");
        return;
    }
    struct store_change *change = widget_change(r, CHANGE_MESSAGE_POST);
    change->text = r->values[MESSAGE_TEXT].text;
    change->url = sent_text(&r->values[MESSAGE_PAGE_URL]);
    change->data = sent_text(&r->values[MESSAGE_PAGE_CONTEXT]);
    change->client_id = sent_text(&r->values[MESSAGE_CLIENT_ID]);
    change->code = 200;
    if (request_idempotency(r, change))
        answer_find(r, &change->agent, change->text, answer_found);
}

/* ---- reading ---- */

static void messages_found(void *arg, enum store_status status, const struct store_agent *agent,
                           const struct store_conversation *c)
{
    struct request *r = arg;
    struct buf prefix = {0}, suffix = {0};
    (void)agent;
    if (status != STORE_OK) {
        widget_refuse(r, status);
        return;
    }
    bool typing = widget_is_typing(r, &c->id, TYPIST_OPERATOR);
    const struct ulid id = c->id, cleared = c->cleared;
    if (reply_etag(r, widget_version(c, typing)))
        return;
    widget_put_state(&suffix, c);
    buf_printf(&suffix, ",\"operator_typing\":%s", typing ? "true" : "false");
    widget_page_reply(r, &id, &cleared, r->values, &prefix, &suffix);
    buf_free(&suffix);
}

void widget_messages(struct request *r)
{
    store_session_get(r->store, &r->session.agent, &r->session.visitor, &r->session.conversation,
                      messages_found, r);
}

/* ---- streaming ---- */

static void stream_found(void *arg, enum store_status status, const struct store_agent *agent,
                         const struct store_conversation *c)
{
    struct request *r = arg;
    (void)agent;
    struct str sent;
    struct ulid last;
    if (status != STORE_OK) {
        widget_refuse(r, status);
        return;
    }
    last = c->last;
    if (request_header(r, "last-event-id", &sent) && sent.n > 0 && !ulid_parse(sent, &last))
        reply_error(r, ERR_BAD_REQUEST,
                    "Last-Event-ID must be the id of a message event of the stream.");
    else {
        /*
         * an id after the last message (invented, or from before a restore) would hide new messages
         */
        if (memcmp(last.b, c->last.b, ULID_BYTES) > 0)
            last = c->last;
        stream_open(r, &last);
    }
}

void widget_stream(struct request *r)
{
    store_session_get(r->store, &r->session.agent, &r->session.visitor, &r->session.conversation,
                      stream_found, r);
}

/* ---- state ---- */

static void reply_state(void *arg, enum store_status status, const struct store_agent *agent,
                        const struct store_conversation *c)
{
    struct request *r = arg;
    struct buf body = {0};
    (void)agent;
    if (status != STORE_OK) {
        widget_refuse(r, status);
        return;
    }
    widget_put_id(&body, "{\"conversation_id\":", &c->id);
    buf_printf(&body, ",\"status\":\"%s\",\"is_claimed\":%s",
               conversation_status_name(conversation_status(c)),
               c->claimed_by != 0 ? "true" : "false");
    widget_put_id(&body, ",\"read_up_to\":", &c->read);
    buf_adds(&body, "}");
    api_reply_data_buf(r, 200, &body);
    buf_free(&body);
}

static void state_set(struct request *r, const struct store_answer *answer)
{
    if (answer->status != STORE_OK)
        widget_refuse(r, answer->status);
    else
        store_session_get(r->store, &r->session.agent, &r->session.visitor,
                          &r->session.conversation, reply_state, r);
}

static void set_state(struct request *r, uint32_t fields)
{
    struct store_change *change = widget_change(r, CHANGE_CONVERSATION_SET);
    change->fields = fields;
    request_change(r, change, state_set);
}

void widget_read(struct request *r)
{
    set_state(r, CONVERSATION_SET_READ);
}

void widget_clear(struct request *r)
{
    set_state(r, CONVERSATION_SET_CLEARED);
}

void widget_close(struct request *r)
{
    set_state(r, CONVERSATION_SET_CLOSED);
}

void widget_request_human(struct request *r)
{
    set_state(r, CONVERSATION_SET_HUMAN);
}

/* ---- erasing ---- */

static void reply_erased(struct request *r)
{
    struct buf body = {0};
    widget_put_id(&body, "{\"visitor_id\":", &r->session.visitor);
    buf_adds(&body, ",\"deleted\":true}");
    api_reply_data_buf(r, 200, &body);
    buf_free(&body);
}

static void erased(struct request *r, const struct store_answer *answer)
{
    if (answer->status == STORE_OK || answer->status == STORE_NOT_FOUND)
        reply_erased(r);
    else
        widget_refuse(r, answer->status);
}

void widget_erase(struct request *r)
{
    if (r->session.erased)
        reply_erased(r);
    else
        request_change(r, widget_change(r, CHANGE_VISITOR_ERASE), erased);
}
