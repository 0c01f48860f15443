/*
 * What the handlers of the widget and of its operators share. Worker processes only. api.md §6.
 */
#ifndef ASSAY_API_WIDGET_H
#define ASSAY_API_WIDGET_H

#include "core/api/api.h"

/* a conversation is gone on with while it is younger */
#define WIDGET_RESUME_MS (INT64_C(24) * 60 * 60 * 1000)
#define WIDGET_MESSAGES_MAX 100 /* of a page */
#define WIDGET_MESSAGES_INIT 30 /* that a visitor finds again */

/* The fields of each route, in the order of their tables in routes.c. */
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
    ROWS_STATUS, /* of conversations alone, as the next */
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
 * widget_change(r, kind): a change of the request's visitor, or (API key) of its operator, in the
 * request's memory.
 */
struct store_change *widget_change(struct request *r, enum store_change_kind kind);

/* widget_reply(r, status, body): {"data":${body}}, no-store. */
void widget_reply(struct request *r, int status, struct str body);
/* widget_send: the same of a buffer, which stays the caller's; 503 where it could not grow. */
void widget_send(struct request *r, int status, const struct buf *body);

/*
 * widget_refuse(r, status): the answer to a refused change: a visitor that is gone meanwhile gets
 * 401.
 */
void widget_refuse(struct request *r, enum store_status status);

/*
 * widget_kept(r, answer, id, done): read back the message ${id} of the conversation that the change
 * in r->state was about: of a repeat, it is the one the first request got, and the header says so.
 * ${done} replies; where it cannot be read, an error is replied here.
 */
typedef void widget_kept_fn(struct request *r, const struct store_answer *answer,
                            const struct store_message *m);
void widget_kept(struct request *r, const struct store_answer *answer, const struct ulid *id,
                 widget_kept_fn *done);

/* widget_replayed(r, answer): the header that says so. */
void widget_replayed(struct request *r, const struct store_answer *answer);

/* widget_id(out, name, id): `"name":"ID"`, or null for none. ${name} with its quotes and colon. */
void widget_id(struct buf *out, const char *name, const struct ulid *id);

/*
 * widget_state(out, c): what a visitor sees of the conversation's state, as `,"is_claimed":…` and
 * more.
 */
void widget_state(struct buf *out, const struct store_conversation *c);

/*
 * widget_ulid(r, value, out): a cursor that was sent; false, and 422 was replied, when it is none.
 * Not sent: none.
 */
bool widget_ulid(struct request *r, unsigned field, struct ulid *out);

/*
 * widget_page_reply(r, conversation, seen_after, values, before, behind): 200 with the page of
 * messages that after, before and limit ask for (${values} NULL: the last WIDGET_MESSAGES_INIT),
 * nothing up to ${seen_after} in it: {"data":{${before}"messages":[…],"has_more":…${behind}}}. Or
 * 422 or 503. However large the messages are, a client that does not read keeps little memory.
 * conversation_page_reply: the same for an operator, with the notes among the messages.
 */
void widget_page_reply(struct request *r, const struct ulid *conversation,
                       const struct ulid *seen_after, const struct value *values,
                       const struct buf *before, const struct buf *behind);
void conversation_page_reply(struct request *r, const struct ulid *conversation,
                             const struct buf *before);

/*
 * widget_tag(c, extra): the version that makes the ETag of what shows ${c}; ${extra}: whatever else
 * it shows.
 */
uint64_t widget_tag(const struct store_conversation *c, uint64_t extra);

/* widget_typing_set(r, conversation, who, on): note a ping and answer it. */
void widget_typing_reply(struct request *r, const struct ulid *conversation, unsigned who, bool on);

/* widget_is_typing(r, conversation, who). */
bool widget_is_typing(struct request *r, const struct ulid *conversation, unsigned who);

#endif
