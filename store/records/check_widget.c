#include "store/engine/check.h"
#include "store/engine/cursor.h"
#include "store/records/agent.h"
#include "store/records/checks.h"
#include "store/records/conversation.h"
#include "store/records/events_and_ratings.h"
#include "store/records/lead.h"
#include "store/records/list_entries.h"
#include "store/records/message_log.h"
#include "store/records/note.h"
#include "store/records/ulid_keys.h"
#include "store/records/visitor.h"

/* ---- checks of the chat's records ---- */

static const char *id_text(const struct ulid *u)
{
    static char text[ULID_TEXT + 1];
    ulid_text(u, text);
    return text;
}

static bool workspace_there(struct check *c, uint64_t workspace)
{
    struct key k;
    MDB_val v;
    key_id(&k, SPACE_WORKSPACE, workspace);
    return check_get(c, SPACE_WORKSPACE, &k, &v);
}

static bool is_listed(struct check *c, enum list_entry_kind kind, const struct ulid *scope,
                      unsigned class, const struct ulid *id)
{
    struct key k;
    MDB_val v;
    list_entry_prefix(&k, kind, scope, class);
    key_ulid(&k, id);
    return check_get(c, SPACE_LIST_ENTRY, &k, &v);
}

/* No id may be above the last one given: the next id must be above all. */
static void check_id(struct check *c, const char *what, const struct ulid *id)
{
    struct key k;
    MDB_val v;
    key_meta(&k, 'u');
    if (!check_get(c, SPACE_META, &k, &v) || v.mv_size != ULID_BYTES ||
        memcmp(id->b, v.mv_data, ULID_BYTES) > 0)
        check_say(c, "%s %s has an id that was never given", what, id_text(id));
}

static bool own_key(const struct cursor *w, const struct ulid *id)
{
    return w->k.mv_size == 1 + ULID_BYTES &&
           memcmp((const uint8_t *)w->k.mv_data + 1, id->b, ULID_BYTES) == 0;
}

void check_agent(struct check *c, const struct cursor *w)
{
    struct store_agent a;
    if (!schema_read_agent(w->v, &a) || !own_key(w, &a.id)) {
        check_say(c, "an agent's record is malformed");
        return;
    }
    struct ulid scope = scope_of_workspace(a.workspace);
    check_id(c, "agent", &a.id);
    if (!workspace_there(c, a.workspace))
        check_say(c, "agent %s belongs to workspace %llu, which does not exist", id_text(&a.id),
                  (unsigned long long)a.workspace);
    if (!is_listed(c, LIST_ENTRY_AGENT, &scope, 0, &a.id))
        check_say(c, "agent %s is not in its workspace's list", id_text(&a.id));
}

/* Records of a deleted agent may outlive their workspace until its erasure reaches them. */
static bool owner_there(struct check *c, uint64_t workspace, const struct ulid *agent)
{
    struct key k;
    MDB_val v;
    key_of(&k, SPACE_ERASING, agent);
    return workspace_there(c, workspace) || check_get(c, SPACE_ERASING, &k, &v);
}

static void check_owned(struct check *c, const char *what, enum list_entry_kind kind,
                        uint64_t workspace, const struct ulid *agent, const struct ulid *visitor,
                        const struct ulid *id)
{
    const struct ulid scope = scope_of_workspace(workspace);
    check_id(c, what, id);
    if (!owner_there(c, workspace, agent))
        check_say(c, "%s %s belongs to workspace %llu, which does not exist", what, id_text(id),
                  (unsigned long long)workspace);
    if (!is_listed(c, kind, &scope, 0, id) || !is_listed(c, kind, agent, 0, id) ||
        !is_listed(c, kind, visitor, 0, id))
        check_say(c, "%s %s is missing in a list of its workspace, agent or visitor", what,
                  id_text(id));
}

void check_visitor(struct check *c, const struct cursor *w)
{
    const struct visitor_record *r;
    struct key k;
    MDB_val v;
    if (!schema_read_visitor(w->v, &r) || !own_key(w, &r->id)) {
        check_say(c, "a visitor's record is malformed");
        return;
    }
    const struct ulid id = r->id, agent = r->agent, conversation = r->conversation;
    check_id(c, "visitor", &id);
    if (!is_listed(c, LIST_ENTRY_VISITOR, &agent, 0, &id))
        check_say(c, "visitor %s is not in its agent's list", id_text(&id));
    key_of(&k, SPACE_VISITOR_SECRET, &agent);
    key_bytes(&k, r->secret, sizeof(r->secret));
    if (!check_get(c, SPACE_VISITOR_SECRET, &k, &v) || v.mv_size != ULID_BYTES ||
        memcmp(v.mv_data, id.b, ULID_BYTES) != 0)
        check_say(c, "visitor %s cannot be found by its secret", id_text(&id));
    if (ulid_none(&conversation))
        check_say(c, "visitor %s never had a conversation", id_text(&id));
}

void check_visitor_secret(struct check *c, const struct cursor *w)
{
    struct key k;
    MDB_val v;
    struct ulid id;
    bool good = w->v.mv_size == ULID_BYTES && w->k.mv_size == 1 + ULID_BYTES + 32;
    if (good) {
        memcpy(id.b, w->v.mv_data, ULID_BYTES);
        key_of(&k, SPACE_VISITOR, &id);
        good = check_get(c, SPACE_VISITOR, &k, &v);
    }
    if (!good)
        check_say(c, "the index of visitors by their secrets names one that does not exist");
}

/*
 * Compare the number of messages with the place of the last one. Each message is compared with the
 * one before it in its own turn.
 */
static void check_last(struct check *c, const struct store_conversation *v)
{
    struct logged_message last;
    uint64_t place = 0;
    bool there =
        !ulid_none(&v->last) && message_log_get(c->s, c->txn, &v->id, &v->last, &last) == STORE_OK;
    if (there)
        place = last.record->place;
    if (place != v->messages || there == ulid_none(&v->last))
        check_say(c, "conversation %s counts %llu messages, and its last is number %llu",
                  id_text(&v->id), (unsigned long long)v->messages, (unsigned long long)place);
}

static bool conversation_there(struct check *c, const struct ulid *id,
                               struct store_conversation *out)
{
    struct key k;
    MDB_val v;
    key_of(&k, SPACE_CONVERSATION, id);
    return check_get(c, SPACE_CONVERSATION, &k, &v) && schema_read_conversation(v, out);
}

void check_conversation(struct check *c, const struct cursor *w)
{
    struct store_conversation v;
    if (!schema_read_conversation(w->v, &v) || !own_key(w, &v.id)) {
        check_say(c, "a conversation's record is malformed");
        return;
    }
    const struct ulid scope = scope_of_workspace(v.workspace);
    unsigned class = 1 + (unsigned)conversation_status(&v);
    check_owned(c, "conversation", LIST_ENTRY_CONVERSATION, v.workspace, &v.agent, &v.visitor,
                &v.id);
    if (!is_listed(c, LIST_ENTRY_CONVERSATION, &scope, class, &v.id) ||
        !is_listed(c, LIST_ENTRY_CONVERSATION, &v.agent, class, &v.id))
        check_say(c, "conversation %s is missing in a list of its status", id_text(&v.id));
    if (v.closed_at != 0 ? v.claimed_by != 0 || v.human_requested : v.closed_by != 0)
        check_say(c, "conversation %s is both closed and open", id_text(&v.id));
    check_last(c, &v);
}

/* A message that ${m} names, and its expected place; place 0: it names none. */
static bool names(struct check *c, const struct logged_message *m, struct ulid id, uint64_t place)
{
    struct logged_message back;
    const struct ulid conversation = m->record->conversation;
    if (place == 0)
        return ulid_none(&id);
    return message_log_get(c->s, c->txn, &conversation, &id, &back) == STORE_OK &&
           back.record->place == place && memcmp(id.b, m->id.b, ULID_BYTES) < 0;
}

void check_message(struct check *c, const struct cursor *w)
{
    struct logged_message m, at;
    struct store_conversation v;
    if (!message_log_look(w->k, w->v, &m)) {
        check_say(c, "a message's record is malformed");
        return;
    }
    const struct message_record *r = m.record;
    const struct ulid conversation = r->conversation;
    check_id(c, "message", &m.id);
    if (!conversation_there(c, &conversation, &v)) {
        check_say(c, "a message belongs to a conversation that does not exist");
        return;
    }
    bool found = message_log_get(c->s, c->txn, &conversation, &v.last, &at) == STORE_OK &&
                 at.record->place >= r->place &&
                 message_log_at(c->s, c->txn, &at, r->place) == STORE_OK && ulid_eq(&at.id, &m.id);
    if (!found || !names(c, &m, r->before, r->place - 1) || !names(c, &m, r->jump, r->jump_place))
        check_say(c, "message %s is not at its place in its conversation", id_text(&m.id));
}

void check_note(struct check *c, const struct cursor *w)
{
    struct store_note note;
    struct store_conversation v;
    struct ulid conversation;
    if (!note_look(w->k, w->v, &note)) {
        check_say(c, "a note's record is malformed");
        return;
    }
    check_id(c, "note", &note.id);
    memcpy(conversation.b, (const uint8_t *)w->k.mv_data + 1, ULID_BYTES);
    if (!conversation_there(c, &conversation, &v))
        check_say(c, "note %s belongs to a conversation that does not exist", id_text(&note.id));
}

void check_once(struct check *c, const struct cursor *w)
{
    struct ulid id = {{0}};
    struct store_conversation v;
    if (w->k.mv_size > 1 + ULID_BYTES)
        memcpy(id.b, (const uint8_t *)w->k.mv_data + 1, ULID_BYTES);
    if (!conversation_there(c, &id, &v))
        check_say(c, "a client key belongs to a conversation that does not exist");
    if (w->v.mv_size != sizeof(struct once_record))
        check_say(c, "a row of client keys is malformed");
}

void check_lead(struct check *c, const struct cursor *w)
{
    struct lead_at lead;
    struct key k;
    MDB_val v;
    if (!lead_look(w->v, &lead) || !own_key(w, &lead.id)) {
        check_say(c, "a lead's record is malformed");
        return;
    }
    check_owned(c, "lead", LIST_ENTRY_LEAD, lead.workspace, &lead.agent, &lead.visitor, &lead.id);
    key_of(&k, SPACE_LEAD_EMAIL, &lead.agent);
    key_bytes(&k, lead.hash, sizeof(lead.hash));
    if (!check_get(c, SPACE_LEAD_EMAIL, &k, &v) || v.mv_size != ULID_BYTES ||
        memcmp(v.mv_data, lead.id.b, ULID_BYTES) != 0)
        check_say(c, "lead %s cannot be found by its address", id_text(&lead.id));
}

void check_lead_email(struct check *c, const struct cursor *w)
{
    struct key k;
    MDB_val v;
    struct ulid id = {{0}};
    memcpy(id.b, w->v.mv_data, w->v.mv_size < ULID_BYTES ? w->v.mv_size : ULID_BYTES);
    key_of(&k, SPACE_LEAD, &id);
    if (!check_get(c, SPACE_LEAD, &k, &v))
        check_say(c, "the index of leads by their addresses names one that does not exist");
}

static void check_event_or_rating(struct check *c, const struct cursor *w, enum store_rows rows,
                                  enum list_entry_kind kind, const char *what)
{
    const struct event_record *r = w->v.mv_data;
    struct ulid agent, visitor;
    if (!rows_owners(rows, w->v, &agent, &visitor) || !own_key(w, &r->id))
        check_say(c, "a record of %s is malformed", what);
    else
        check_owned(c, what, kind, r->workspace, &agent, &visitor, &r->id);
}

void check_event(struct check *c, const struct cursor *w)
{
    check_event_or_rating(c, w, ROWS_EVENTS, LIST_ENTRY_EVENT, "event");
}

void check_rating(struct check *c, const struct cursor *w)
{
    check_event_or_rating(c, w, ROWS_RATINGS, LIST_ENTRY_RATING, "rating");
}

static const enum space space_of[LIST_ENTRY_KINDS] = {
    [LIST_ENTRY_AGENT] = SPACE_AGENT,
    [LIST_ENTRY_VISITOR] = SPACE_VISITOR,
    [LIST_ENTRY_CONVERSATION] = SPACE_CONVERSATION,
    [LIST_ENTRY_LEAD] = SPACE_LEAD,
    [LIST_ENTRY_EVENT] = SPACE_EVENT,
    [LIST_ENTRY_RATING] = SPACE_RATING,
};

void check_list_entry(struct check *c, const struct cursor *w)
{
    const uint8_t *key = w->k.mv_data;
    struct ulid id;
    struct key k;
    MDB_val v;
    if (!list_entry_id(w, &id) || key[1] == 0 || key[1] >= LIST_ENTRY_KINDS) {
        check_say(c, "an entry of the lists of chat records is malformed");
        return;
    }
    key_of(&k, space_of[key[1]], &id);
    if (!check_get(c, space_of[key[1]], &k, &v))
        check_say(c, "a list of chat records names %s, which does not exist", id_text(&id));
}

void check_erasing(struct check *c, const struct cursor *w)
{
    if (w->k.mv_size != 1 + ULID_BYTES)
        check_say(c, "a row of pending erasures is malformed");
}
