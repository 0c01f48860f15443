#include "core/api/render_widget_internal.h"
#include "core/text/json_out.h"

static void member_id(struct buf *out, const char *name, const struct ulid *id)
{
    char text[ULID_TEXT];
    ulid_text(id, text);
    buf_adds(out, name);
    buf_adds(out, "\"");
    buf_add(out, text, sizeof(text));
    buf_adds(out, "\"");
}

static void member_bool(struct buf *out, const char *name, bool value)
{
    buf_adds(out, name);
    buf_adds(out, value ? "true" : "false");
}

void render_agent(const struct store_agent *a, struct buf *out)
{
    member_id(out, "{\"id\":", &a->id);
    buf_adds(out, ",\"name\":");
    json_string(out, a->name);
    member_bool(out, ",\"is_published\":", a->is_published);
    buf_adds(out, ",");
    buf_str(out, a->settings);
    member_bool(out, ",\"require_lead_before_chat\":", a->require_lead);
    buf_adds(out, "}");
}

static const char *const statuses[CONVERSATION_STATUSES] = {"open", "waiting", "claimed", "closed"};
static const char *const roles[] = {[ROLE_OF_VISITOR] = "visitor",
                                    [ROLE_OF_ASSISTANT] = "assistant",
                                    [ROLE_OF_OPERATOR] = "operator"};

const char *conversation_status_name(enum conversation_status status)
{
    return statuses[status];
}

static void member_text(struct buf *out, const char *name, struct str text)
{
    buf_adds(out, name);
    if (text.n == 0)
        buf_adds(out, "null");
    else
        json_string(out, text);
}

static void member_json(struct buf *out, const char *name, struct str json, const char *otherwise)
{
    buf_adds(out, name);
    if (json.n == 0)
        buf_adds(out, otherwise);
    else
        buf_str(out, json);
}

static void member_time(struct buf *out, const char *name, int64_t ms)
{
    buf_adds(out, name);
    json_time(out, ms);
}

static void member_number(struct buf *out, const char *name, uint64_t number)
{
    buf_adds(out, name);
    if (number == 0)
        buf_adds(out, "null");
    else
        buf_u64(out, number);
}

void render_conversation_members(const struct store_conversation *c, struct buf *out)
{
    member_id(out, "\"id\":", &c->id);
    member_id(out, ",\"agent_id\":", &c->agent);
    member_id(out, ",\"visitor_id\":", &c->visitor);
    buf_adds(out, ",\"status\":\"");
    buf_adds(out, statuses[conversation_status(c)]);
    member_bool(out, "\",\"is_claimed\":", c->claimed_by != 0);
    member_number(out, ",\"claimed_by\":", c->claimed_by);
    member_text(out, ",\"claimed_name\":", c->claimed_name);
    member_bool(out, ",\"human_requested\":", c->human_requested);
    member_bool(out, ",\"lead_captured\":", c->lead_captured);
    member_number(out, ",\"rating\":", c->rating);
    buf_adds(out, ",\"messages_count\":");
    buf_u64(out, c->messages);
    if (ulid_none(&c->last))
        buf_adds(out, ",\"last_message_id\":null");
    else
        member_id(out, ",\"last_message_id\":", &c->last);
    member_text(out, ",\"page_url\":", c->page_url);
    member_time(out, ",\"created_at\":", c->created_at);
    member_time(out, ",\"updated_at\":", c->updated_at);
    member_time(out, ",\"closed_at\":", c->closed_at);
    member_number(out, ",\"closed_by\":", c->closed_by);
}

void render_conversation(const struct store_conversation *c, struct buf *out)
{
    buf_adds(out, "{");
    render_conversation_members(c, out);
    buf_adds(out, "}");
}

void render_message_result(const struct store_message *m, struct buf *out)
{
    buf_adds(out, "\"content\":");
    json_string(out, m->text);
    if (m->role == ROLE_OF_ASSISTANT) {
        member_json(out, ",\"citations\":", m->citations, "[]");
        member_bool(out, ",\"low_confidence\":", m->low_confidence);
    }
}

void render_message(const struct store_message *m, struct buf *out)
{
    member_id(out, "{\"id\":", &m->id);
    buf_adds(out, ",\"role\":\"");
    buf_adds(out, roles[m->role]);
    buf_adds(out, "\",");
    render_message_result(m, out);
    if (m->role == ROLE_OF_VISITOR) {
        member_text(out, ",\"client_message_id\":", m->client_id);
        member_text(out, ",\"page_url\":", m->page_url);
        member_json(out, ",\"page_context\":", m->page_context, "null");
    }
    member_time(out, ",\"created_at\":", m->created_at);
    buf_adds(out, "}");
}

void render_note(const struct store_note *n, struct buf *out)
{
    member_id(out, "{\"id\":", &n->id);
    buf_adds(out, ",\"role\":\"note\",\"content\":");
    json_string(out, n->text);
    member_number(out, ",\"author_id\":", n->key);
    member_text(out, ",\"author_name\":", n->name);
    member_time(out, ",\"created_at\":", n->created_at);
    buf_adds(out, "}");
}

/* The first members of every record of a visitor. */
static void member_source(struct buf *out, const struct ulid *id, const struct ulid *agent,
                          const struct ulid *visitor, const struct ulid *conversation)
{
    member_id(out, "{\"id\":", id);
    member_id(out, ",\"agent_id\":", agent);
    member_id(out, ",\"visitor_id\":", visitor);
    member_id(out, ",\"conversation_id\":", conversation);
}

static void sender_members(struct buf *out, const struct store_sender *s)
{
    member_text(out, "\"email\":", s->email);
    member_text(out, ",\"name\":", s->name);
    member_text(out, ",\"phone\":", s->phone);
    member_json(out, ",\"fields\":", s->fields, "{}");
    member_time(out, ",\"created_at\":", s->created_at);
    member_time(out, ",\"updated_at\":", s->updated_at);
}

void render_lead(const struct store_lead *l, struct buf *out)
{
    const struct store_sender *first = &l->senders[0];
    member_source(out, &l->id, &l->agent, &first->visitor, &first->conversation);
    buf_adds(out, ",");
    sender_members(out, first);
    buf_adds(out, ",\"others\":[");
    for (size_t i = 1; i < l->senders_n; i++) {
        const struct store_sender *s = &l->senders[i];
        member_id(out, i == 1 ? "{\"visitor_id\":" : ",{\"visitor_id\":", &s->visitor);
        member_id(out, ",\"conversation_id\":", &s->conversation);
        buf_adds(out, ",");
        sender_members(out, s);
        buf_adds(out, "}");
    }
    buf_adds(out, "]}");
}

void render_event(const struct store_event_row *e, struct buf *out)
{
    member_source(out, &e->id, &e->agent, &e->visitor, &e->conversation);
    member_text(out, ",\"kind\":", e->kind);
    member_json(out, ",\"payload\":", e->payload, "null");
    member_time(out, ",\"at\":", e->at);
    member_time(out, ",\"created_at\":", e->created_at);
    buf_adds(out, "}");
}

void render_rating(const struct store_rating *r, struct buf *out)
{
    member_source(out, &r->id, &r->agent, &r->visitor, &r->conversation);
    member_number(out, ",\"rating\":", r->rating);
    member_text(out, ",\"comment\":", r->comment);
    member_time(out, ",\"created_at\":", r->created_at);
    member_time(out, ",\"updated_at\":", r->updated_at);
    buf_adds(out, "}");
}
