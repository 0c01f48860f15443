#include "store/records/events_and_ratings.h"

#include "store/engine/cursor.h"
#include "store/engine/errors.h"
#include "store/engine/free_space.h"
#include "store/engine/snapshot.h"
#include "store/engine/txn.h"
#include "store/records/agent.h"
#include "store/records/apply.h"
#include "store/records/conversation.h"
#include "store/records/lead.h"
#include "store/records/list_entries.h"
#include "store/records/ulid_keys.h"
#include "store/records/visitor.h"

#include <errno.h>

/* Events and ratings: a record, and its entries in three lists. */

static bool event_read(MDB_val value, const struct event_record **out, struct str *kind,
                       struct str *text)
{
    const struct event_record *r = *out = value.mv_data;
    if (value.mv_size < sizeof(*r) || value.mv_size != sizeof(*r) + (size_t)r->kind_n + r->text_n)
        return false;
    *kind = (struct str){(const char *)(r + 1), r->kind_n};
    *text = (struct str){kind->p + r->kind_n, r->text_n};
    return true;
}

static const enum space space_of[LIST_ENTRY_KINDS] = {
    [LIST_ENTRY_EVENT] = SPACE_EVENT, [LIST_ENTRY_RATING] = SPACE_RATING};

static void event_write(struct store_txn *t, enum list_entry_kind kind, struct event_record *r,
                        struct str name, struct str text)
{
    struct key k;
    r->kind_n = (uint16_t)name.n;
    r->text_n = (uint32_t)text.n;
    key_of(&k, space_of[kind], &r->id);
    char *to = txn_reserve(t, space_of[kind], &k, sizeof(*r) + name.n + text.n);
    if (to != NULL)
        append_str(append_str(append_str(to, (struct str){(const char *)r, sizeof(*r)}), name),
                   text);
}

static struct event_record event_new(const struct store_txn *t, const struct store_conversation *v,
                                     const struct ulid *id)
{
    return (struct event_record){.id = *id,
                                 .agent = v->agent,
                                 .visitor = v->visitor,
                                 .conversation = v->id,
                                 .workspace = v->workspace,
                                 .created_at = t->now};
}

static void event_list(struct store_txn *t, bool put, enum list_entry_kind kind,
                       const struct event_record *r)
{
    const struct ulid agent = r->agent, visitor = r->visitor, id = r->id;
    list_entry_everywhere(t, put, kind, r->workspace, &agent, &visitor, &id);
}

void event_remove(struct store_txn *t, enum list_entry_kind kind, const struct ulid *id)
{
    struct key k;
    MDB_val v;
    const struct event_record *found;
    struct str name, text;
    key_of(&k, space_of[kind], id);
    if (txn_get(t, space_of[kind], &k, &v) != STORE_OK || !event_read(v, &found, &name, &text)) {
        txn_fail(t, 0, "a list of events or ratings");
        return;
    }
    struct event_record r = *found;
    event_list(t, false, kind, &r);
    key_of(&k, space_of[kind], id);
    txn_del(t, space_of[kind], &k);
}

/* ---- events ---- */

struct PACKED event_head {
    int64_t at;
    uint16_t kind_n;
    uint32_t payload_n;
};

void event_pack(struct buf *out, struct str kind, struct str payload, int64_t at)
{
    const struct event_head head = {at, (uint16_t)kind.n, (uint32_t)payload.n};
    buf_add(out, &head, sizeof(head));
    buf_str(out, kind);
    buf_str(out, payload);
}

/* The next row of ${rest}; false at the end, or (${rest} not empty) if it is malformed. */
static bool event_next(struct str *rest, struct store_event_row *out)
{
    struct event_head head;
    if (rest->n < sizeof(head))
        return false;
    memcpy(&head, rest->p, sizeof(head));
    if (rest->n - sizeof(head) < (size_t)head.kind_n + head.payload_n)
        return false;
    const char *p = rest->p + sizeof(head);
    out->at = head.at;
    out->kind = (struct str){p, head.kind_n};
    out->payload = (struct str){p + head.kind_n, head.payload_n};
    size_t used = sizeof(head) + head.kind_n + head.payload_n;
    *rest = (struct str){rest->p + used, rest->n - used};
    return true;
}

static bool events_well_formed(struct str rows)
{
    struct store_event_row e;
    while (event_next(&rows, &e))
        ;
    return rows.n == 0;
}

static bool event_put(struct store_txn *t, const struct store_conversation *v,
                      const struct store_event_row *e)
{
    struct ulid id;
    if (!txn_ulid(t, &id))
        return false;
    struct event_record r = event_new(t, v, &id);
    r.at = e->at;
    event_write(t, LIST_ENTRY_EVENT, &r, e->kind, e->payload);
    event_list(t, true, LIST_ENTRY_EVENT, &r);
    return true;
}

enum store_status events_put(struct store_txn *t, const struct store_change *c,
                             struct store_answer *answer)
{
    struct store_conversation v;
    struct store_event_row e;
    struct str rows = c->data;
    if (c->workspace != 0 || !events_well_formed(rows))
        return STORE_INVALID;
    enum store_status status = conversation_open(t, c, &v);
    if (status != STORE_OK)
        return status;
    if (txn_is_full(t))
        return STORE_FULL;
    while (event_next(&rows, &e)) {
        if (!event_put(t, &v, &e))
            return t->error;
        answer->id++;
    }
    return STORE_OK;
}

/* ---- ratings ---- */

static void rating_write(struct store_txn *t, struct event_record *r, struct str comment)
{
    r->at = t->now;
    event_write(t, LIST_ENTRY_RATING, r, (struct str){NULL, 0}, comment);
}

/* A conversation keeps its first rating; later ones replace its content. */
static enum store_status rating_comment(struct store_txn *t, const struct store_change *c,
                                        const struct store_conversation *v)
{
    struct key k;
    MDB_val value;
    const struct event_record *found;
    struct str name, text;
    key_of(&k, SPACE_RATING, &v->rating_id);
    if (txn_get(t, SPACE_RATING, &k, &value) != STORE_OK ||
        !event_read(value, &found, &name, &text))
        return txn_fail(t, 0, "a rating's record");
    struct event_record r = *found;
    if ((c->fields & RATING_HAS_COMMENT) != 0)
        rating_write(t, &r, c->text);
    return t->error;
}

enum store_status rating_put(struct store_txn *t, const struct store_change *c,
                             struct store_answer *answer)
{
    struct store_conversation v;
    if (c->workspace != 0 || c->score < 1 || c->score > 5 || c->text.n > STORE_TEXT_MAX)
        return STORE_INVALID;
    enum store_status status = conversation_open(t, c, &v);
    if (status != STORE_OK)
        return status;
    if (v.rating != 0) {
        answer->first = v.rating_id;
        answer->code = v.rating;
        return rating_comment(t, c, &v);
    }
    if (txn_is_full(t))
        return STORE_FULL;
    if (!txn_ulid(t, &v.rating_id))
        return t->error;
    struct event_record r = event_new(t, &v, &v.rating_id);
    r.rating = (uint8_t)c->score;
    v.rating = (unsigned)c->score;
    rating_write(t, &r, c->text);
    event_list(t, true, LIST_ENTRY_RATING, &r);
    conversation_write(t, conversation_status(&v), &v);
    answer->first = v.rating_id;
    answer->code = v.rating;
    return STORE_OK;
}

/* ---- lists for operators ---- */

static const struct {
    enum list_entry_kind kind;
    enum space space;
} rows_of[] = {
    [ROWS_CONVERSATIONS] = {LIST_ENTRY_CONVERSATION, SPACE_CONVERSATION},
    [ROWS_LEADS] = {LIST_ENTRY_LEAD, SPACE_LEAD},
    [ROWS_EVENTS] = {LIST_ENTRY_EVENT, SPACE_EVENT},
    [ROWS_RATINGS] = {LIST_ENTRY_RATING, SPACE_RATING},
};

/* A record as it is shown. */
struct shown {
    struct store_row row;
    struct ulid agent, visitor;
    struct store_conversation conversation;
    struct store_lead lead;
    struct store_sender senders[LEAD_SENDERS_MAX];
    struct store_event_row event;
    struct store_rating rating;
};

static bool show_conversation(MDB_val value, struct shown *out)
{
    if (!schema_read_conversation(value, &out->conversation))
        return false;
    out->row.conversation = &out->conversation;
    out->agent = out->conversation.agent;
    out->visitor = out->conversation.visitor;
    return true;
}

static bool show_lead(MDB_val value, struct shown *out)
{
    if (!lead_read(value, out->senders, &out->lead))
        return false;
    out->row.lead = &out->lead;
    out->agent = out->lead.agent;
    out->visitor = out->senders[0].visitor;
    return true;
}

static bool show_event(MDB_val value, struct shown *out)
{
    const struct event_record *r;
    struct store_event_row *e = &out->event;
    if (!event_read(value, &r, &e->kind, &e->payload))
        return false;
    e->id = r->id;
    out->agent = e->agent = r->agent;
    out->visitor = e->visitor = r->visitor;
    e->conversation = r->conversation;
    e->created_at = r->created_at;
    e->at = r->at;
    out->row.event = e;
    return true;
}

static bool show_rating(MDB_val value, struct shown *out)
{
    const struct event_record *r;
    struct store_rating *rating = &out->rating;
    struct str none;
    if (!event_read(value, &r, &none, &rating->comment))
        return false;
    rating->id = r->id;
    out->agent = rating->agent = r->agent;
    out->visitor = rating->visitor = r->visitor;
    rating->conversation = r->conversation;
    rating->rating = r->rating;
    rating->created_at = r->created_at;
    rating->updated_at = r->at;
    out->row.rating = rating;
    return true;
}

static bool (*const show_of[])(MDB_val value, struct shown *out) = {
    [ROWS_CONVERSATIONS] = show_conversation,
    [ROWS_LEADS] = show_lead,
    [ROWS_EVENTS] = show_event,
    [ROWS_RATINGS] = show_rating,
};

bool rows_owners(enum store_rows rows, MDB_val value, struct ulid *agent, struct ulid *visitor)
{
    struct shown shown;
    if (!show_of[rows](value, &shown))
        return false;
    *agent = shown.agent;
    *visitor = shown.visitor;
    return true;
}

/*
 * The record of an entry; STORE_NOT_FOUND if its visitor or agent was deleted and the record waits
 * for its deletion.
 */
static enum store_status row_at(struct store *s, MDB_txn *txn, enum store_rows rows,
                                struct shown *out)
{
    struct key k;
    MDB_val v;
    struct store_agent a;
    out->row = (struct store_row){.id = out->row.id};
    key_of(&k, rows_of[rows].space, &out->row.id);
    enum store_status status = store_get(s, txn, rows_of[rows].space, &k, &v);
    if (status != STORE_OK || !show_of[rows](v, out))
        return store_corrupt(s, "a list of chat records");
    status = agent_read(s, txn, &out->agent, &a);
    return status == STORE_OK && !visitor_there(s, txn, &out->visitor) ? STORE_NOT_FOUND : status;
}

enum store_status rows_cursor(struct store *s, MDB_txn *txn, struct cursor *w, enum store_rows rows,
                              const struct store_rows_query *q, const struct ulid *visitor)
{
    const struct ulid scope = visitor != NULL        ? *visitor
                              : ulid_none(&q->agent) ? scope_of_workspace(q->workspace)
                                                     : q->agent;
    struct ulid below = q->after, until;
    struct store_agent a;
    struct key from;
    if (!ulid_none(&q->agent) &&
        (agent_read(s, txn, &q->agent, &a) != STORE_OK || a.workspace != q->workspace))
        return STORE_NOT_FOUND;
    if (q->until != 0) {
        ulid_floor(q->until, &until);
        if (ulid_none(&below) || memcmp(until.b, below.b, ULID_BYTES) < 0)
            below = until;
    }
    list_entry_prefix(&w->prefix, rows_of[rows].kind, &scope,
                      rows == ROWS_CONVERSATIONS && visitor == NULL ? q->class : 0);
    if (ulid_none(&below))
        return cursor_prefix(s, txn, w, DB_WIDGET, true);
    from.n = 0;
    key_bytes(&from, w->prefix.b, w->prefix.n);
    key_ulid(&from, &below);
    return cursor_below(s, txn, w, DB_WIDGET, &from);
}

/* Each entry costs a look-up, and a deleted agent may have a million of them. */
#define GONE_MAX 200

/*
 * The next entry to be shown, from the cursor's position; the cursor stays on it. STORE_AGAIN on
 * one of many deleted ones.
 */
static enum store_status rows_next(struct cursor *w, MDB_txn *txn, enum store_rows rows,
                                   const struct store_rows_query *q, unsigned *gone,
                                   struct shown *out)
{
    enum store_status status = STORE_OK;
    while (status == STORE_OK) {
        if (!list_entry_id(w, &out->row.id))
            return store_corrupt(w->s, "a list of chat records");
        if (ulid_ms(&out->row.id) < q->since)
            return STORE_NOT_FOUND;
        status = row_at(w->s, txn, rows, out);
        if (status != STORE_NOT_FOUND)
            return status;
        if (++*gone == GONE_MAX)
            return STORE_AGAIN;
        status = cursor_next(w);
    }
    return status;
}

void store_rows_each(struct store *s, enum store_rows rows, const struct store_rows_query *query,
                     store_row_fn *each, void *arg)
{
    MDB_txn *txn;
    struct cursor w = {0};
    struct shown shown;
    unsigned left = query->limit, gone = 0;
    enum store_status status = store_snapshot(s, &txn);
    if (status == STORE_OK)
        status = rows_cursor(s, txn, &w, rows, query, NULL);
    while (status == STORE_OK &&
           (status = rows_next(&w, txn, rows, query, &gone, &shown)) == STORE_OK && left > 0 &&
           each(arg, STORE_OK, &shown.row)) {
        left--;
        status = cursor_next(&w);
    }
    cursor_end(&w);
    if (status == STORE_AGAIN) {
        status = STORE_OK;
        each(arg, status, &(struct store_row){.id = shown.row.id});
    }
    each(arg, status, NULL);
}
