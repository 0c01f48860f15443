/* What the handlers of the widget and of operators share. Worker processes only. */
#ifndef ASSAY_API_WIDGET_H
#define ASSAY_API_WIDGET_H

#include "core/api/api_internal.h"

/* a younger conversation is resumed */
#define WIDGET_RESUME_MS (INT64_C(24) * 60 * 60 * 1000)
#define WIDGET_MESSAGES_MAX 100 /* maximum on one page */
#define WIDGET_MESSAGES_INIT 30 /* sent when a visitor returns */

/* Indexes into r->values: the fields of each route, in the order of their tables in routes.c. */
enum { INIT_AGENT, INIT_PAGE_URL, INIT_ANON, INIT_LOCALE, INIT_TITLE, INIT_REFERRER };
enum { MESSAGE_TEXT, MESSAGE_PAGE_URL, MESSAGE_PAGE_CONTEXT, MESSAGE_CLIENT_ID };
enum { PAGE_AFTER, PAGE_BEFORE, PAGE_LIMIT };
enum { EVENTS_BATCH, EVENTS_ONE, EVENTS_METADATA };
enum { LEAD_EMAIL, LEAD_NAME, LEAD_PHONE, LEAD_FIELDS };
enum { TYPING_STATUS };
enum { RATING_VALUE, RATING_COMMENT };
enum { COUPON_CODE, COUPON_CART };
enum {
    ROWS_AGENT,
    ROWS_AFTER,
    ROWS_SINCE,
    ROWS_UNTIL,
    ROWS_PER_PAGE,
    ROWS_STATUS, /* conversations only, as the next ones */
    ROWS_SEARCH,
    ROWS_SEARCH_BY
};
enum { REPLY_TEXT };
enum { CLAIM_NAME };
enum { NOTE_TEXT, NOTE_NAME };

request_fn widget_init, widget_message, widget_messages, widget_stream, widget_read, widget_clear,
    widget_close, widget_request_human, widget_erase;
request_fn widget_events, widget_lead, widget_typing, widget_rating, widget_coupon;
request_fn conversations_list, conversations_get, conversations_reply, conversations_claim,
    conversations_release, conversations_typing;
request_fn conversations_close, conversations_reopen, conversations_note;
request_fn leads_list, events_list, ratings_list;

/*
 * widget_change(r, kind): a change by the request's visitor or, with an API key, its operator, in
 * the request's memory.
 */
struct store_change *widget_change(struct request *r, enum store_change_kind kind);

/* widget_refuse(r, status): send the error for a refused change; 401 if the visitor was deleted. */
void widget_refuse(struct request *r, enum store_status status);

/*
 * widget_read_message(r, answer, id, done): read message ${id} of the conversation of the change in
 * r->state, then call ${done}, which replies. A repeat gets the message of the first request, with
 * Idempotent-Replayed. If the message cannot be read, an error is sent.
 */
typedef void widget_message_fn(struct request *r, const struct store_answer *answer,
                               const struct store_message *m);
void widget_read_message(struct request *r, const struct store_answer *answer,
                         const struct ulid *id, widget_message_fn *done);

/* widget_replayed(r, answer): add Idempotent-Replayed if the change is a repeat. */
void widget_replayed(struct request *r, const struct store_answer *answer);

/*
 * widget_put_id(out, name, id): append `"name":"ID"`, or null for no id. ${name} has its quotes and
 * colon.
 */
void widget_put_id(struct buf *out, const char *name, const struct ulid *id);

/*
 * widget_put_state(out, c): append what a visitor sees of the state of a conversation:
 * `,"is_claimed":…` and so on.
 */
void widget_put_state(struct buf *out, const struct store_conversation *c);

/*
 * widget_read_id(r, field, out): read a cursor; if it was not sent, ${out} is no id. False: it is
 * invalid and 422 was sent.
 */
bool widget_read_id(struct request *r, unsigned field, struct ulid *out);

/*
 * widget_page_reply(r, conversation, cleared, values, prefix, suffix): send 200 with the messages
 * that after, before and limit select (${values} NULL: the last WIDGET_MESSAGES_INIT), without
 * messages up to ${cleared}: {"data":{${prefix}"messages":[…],"has_more":…${suffix}}}; or 422 or
 * 503. A client that does not read uses little memory, however large the messages are.
 * conversation_page_reply: the same for an operator, including notes.
 */
void widget_page_reply(struct request *r, const struct ulid *conversation,
                       const struct ulid *cleared, const struct value *values,
                       const struct buf *prefix, const struct buf *suffix);
void conversation_page_reply(struct request *r, const struct ulid *conversation,
                             const struct buf *prefix);

/* widget_version(c, extra): the version for the ETag of a response that shows ${c} and ${extra}. */
uint64_t widget_version(const struct store_conversation *c, uint64_t extra);

/* widget_typing_reply(r, conversation, who, on): set the typing status and reply. */
void widget_typing_reply(struct request *r, const struct ulid *conversation, unsigned who, bool on);

/* widget_is_typing(r, conversation, who): true if ${who} has typed in the last seconds. */
bool widget_is_typing(struct request *r, const struct ulid *conversation, unsigned who);

#endif
