#include "check_parts.h"
#include "widget_parts.h"

/* ---- of store_check: the widget's records ---- */

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

static bool is_listed(struct check *c, enum listed_kind kind, const struct ulid *scope, unsigned class, const struct ulid *id)
{
    struct key k;
    MDB_val v;
    listed_prefix(&k, kind, scope, class);
    key_ulid(&k, id);
    return check_get(c, SPACE_LISTED, &k, &v);
}

/* No id may be above the last one given: the next would not be above all there are. */
static void check_id(struct check *c, const char *what, const struct ulid *id)
{
    struct key k;
    MDB_val v;
    key_space(&k, SPACE_META);
    key_bytes(&k, "u", 1);
    if (!check_get(c, SPACE_META, &k, &v) || v.mv_size != ULID_BYTES || memcmp(id->b, v.mv_data, ULID_BYTES) > 0)
        check_say(c, "%s %s has an id that was never given", what, id_text(id));
}

static bool own_key(const struct walk *w, const struct ulid *id)
{
    return w->k.mv_size == 1 + ULID_BYTES && memcmp((const uint8_t *)w->k.mv_data + 1, id->b, ULID_BYTES) == 0;
}

void check_agent(struct check *c, const struct walk *w)
{
    struct store_agent a;
    if (!schema_read_agent(w->v, &a) || !own_key(w, &a.id)) {
        check_say(c, "an agent's record is malformed");
        return;
    }
    struct ulid scope = scope_of_workspace(a.workspace);
    check_id(c, "agent", &a.id);
    if (!workspace_there(c, a.workspace))
        check_say(c, "agent %s belongs to workspace %llu, which is not there", id_text(&a.id), (unsigned long long)a.workspace);
    if (!is_listed(c, LISTED_AGENT, &scope, 0, &a.id))
        check_say(c, "agent %s is not in its workspace's list", id_text(&a.id));
}

static void check_owned(struct check *c, const char *what, enum listed_kind kind, uint64_t workspace, const struct ulid *agent,
                        const struct ulid *visitor, const struct ulid *id)
{
    const struct ulid scope = scope_of_workspace(workspace);
    check_id(c, what, id);
    if (!workspace_there(c, workspace))
        check_say(c, "%s %s belongs to workspace %llu, which is not there", what, id_text(id), (unsigned long long)workspace);
    if (!is_listed(c, kind, &scope, 0, id) || !is_listed(c, kind, agent, 0, id) || !is_listed(c, kind, visitor, 0, id))
        check_say(c, "%s %s is missing in a list of its workspace, agent or visitor", what, id_text(id));
}

void check_visitor(struct check *c, const struct walk *w)
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
    if (!is_listed(c, LISTED_VISITOR, &agent, 0, &id))
        check_say(c, "visitor %s is not in its agent's list", id_text(&id));
    key_of(&k, SPACE_VISITOR_SECRET, &agent);
    key_bytes(&k, r->secret, sizeof(r->secret));
    if (!check_get(c, SPACE_VISITOR_SECRET, &k, &v) || v.mv_size != ULID_BYTES || memcmp(v.mv_data, id.b, ULID_BYTES) != 0)
        check_say(c, "visitor %s cannot be found by its secret", id_text(&id));
    if (ulid_none(&conversation))
        check_say(c, "visitor %s never had a conversation", id_text(&id));
}

void check_visitor_secret(struct check *c, const struct walk *w)
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
        check_say(c, "the index of visitors by their secrets names one that is not there");
}

static uint64_t count_messages(struct check *c, const struct ulid *id, struct ulid *last)
{
    struct walk w = {0};
    uint64_t count = 0;
    key_of(&w.prefix, SPACE_MESSAGE, id);
    *last = (struct ulid){{0}};
    enum store_status status = walk_prefix(c->s, c->txn, &w, DB_WIDGET, false);
    for (; status == STORE_OK; status = walk_next(&w), count++)
        if (w.k.mv_size == 1 + 2 * ULID_BYTES)
            memcpy(last->b, (const uint8_t *)w.k.mv_data + 1 + ULID_BYTES, ULID_BYTES);
    walk_end(&w);
    return count;
}

void check_conversation(struct check *c, const struct walk *w)
{
    struct store_conversation v;
    struct ulid last;
    if (!schema_read_conversation(w->v, &v) || !own_key(w, &v.id)) {
        check_say(c, "a conversation's record is malformed");
        return;
    }
    const struct ulid scope = scope_of_workspace(v.workspace);
    unsigned class = 1 + (unsigned)conversation_status(&v);
    check_owned(c, "conversation", LISTED_CONVERSATION, v.workspace, &v.agent, &v.visitor, &v.id);
    if (!is_listed(c, LISTED_CONVERSATION, &scope, class, &v.id) || !is_listed(c, LISTED_CONVERSATION, &v.agent, class, &v.id))
        check_say(c, "conversation %s is missing in a list of its status", id_text(&v.id));
    uint64_t count = count_messages(c, &v.id, &last);
    bool purging = count < v.messages; /* one that is being erased loses its messages first */
    if (count > v.messages || (count != 0 && !ulid_eq(&last, &v.last)))
        check_say(c, "conversation %s counts %llu messages; there are %llu, or its last is another", id_text(&v.id),
                  (unsigned long long)v.messages, (unsigned long long)count);
    if (purging && visitor_there(c->s, c->txn, &v.visitor))
        check_say(c, "conversation %s counts %llu messages; there are %llu", id_text(&v.id), (unsigned long long)v.messages,
                  (unsigned long long)count);
}

/* A message, or what was done once, goes with its conversation. */
static void check_below(struct check *c, const struct walk *w, const char *what)
{
    struct key k;
    MDB_val v;
    struct ulid id;
    bool good = w->k.mv_size > 1 + ULID_BYTES;
    if (good) {
        memcpy(id.b, (const uint8_t *)w->k.mv_data + 1, ULID_BYTES);
        key_of(&k, SPACE_CONVERSATION, &id);
        good = check_get(c, SPACE_CONVERSATION, &k, &v);
    }
    if (!good)
        check_say(c, "%s belongs to a conversation that is not there", what);
}

void check_message(struct check *c, const struct walk *w)
{
    struct store_kept_message m;
    check_below(c, w, "a message");
    if (w->k.mv_size != 1 + 2 * ULID_BYTES || !schema_read_message(w->v, &m))
        check_say(c, "a message's record is malformed");
}

void check_once(struct check *c, const struct walk *w)
{
    check_below(c, w, "what was done once");
    if (w->v.mv_size != sizeof(struct once_record))
        check_say(c, "a row of what was done once is malformed");
}

void check_lead(struct check *c, const struct walk *w)
{
    struct lead_at lead;
    struct key k;
    MDB_val v;
    if (!lead_look(w->v, &lead) || !own_key(w, &lead.id)) {
        check_say(c, "a lead's record is malformed");
        return;
    }
    check_owned(c, "lead", LISTED_LEAD, lead.workspace, &lead.agent, &lead.visitor, &lead.id);
    key_of(&k, SPACE_LEAD_EMAIL, &lead.agent);
    key_bytes(&k, lead.hash, sizeof(lead.hash));
    if (!check_get(c, SPACE_LEAD_EMAIL, &k, &v) || v.mv_size != ULID_BYTES || memcmp(v.mv_data, lead.id.b, ULID_BYTES) != 0)
        check_say(c, "lead %s cannot be found by its address", id_text(&lead.id));
}

void check_lead_email(struct check *c, const struct walk *w)
{
    struct key k;
    MDB_val v;
    struct ulid id = {{0}};
    memcpy(id.b, w->v.mv_data, w->v.mv_size < ULID_BYTES ? w->v.mv_size : ULID_BYTES);
    key_of(&k, SPACE_LEAD, &id);
    if (!check_get(c, SPACE_LEAD, &k, &v))
        check_say(c, "the index of leads by their addresses names one that is not there");
}

static void check_kept(struct check *c, const struct walk *w, enum store_rows rows, enum listed_kind kind, const char *what)
{
    const struct kept_record *r = w->v.mv_data;
    struct ulid agent, visitor;
    struct str json;
    if (!rows_json(rows, w->v, &agent, &visitor, &json) || !own_key(w, &r->id))
        check_say(c, "a record of %s is malformed", what);
    else
        check_owned(c, what, kind, r->workspace, &agent, &visitor, &r->id);
}

void check_event(struct check *c, const struct walk *w)
{
    check_kept(c, w, ROWS_EVENTS, LISTED_EVENT, "event");
}

void check_rating(struct check *c, const struct walk *w)
{
    check_kept(c, w, ROWS_RATINGS, LISTED_RATING, "rating");
}

static const enum space space_of[LISTED_KINDS] = {
    [LISTED_AGENT] = SPACE_AGENT, [LISTED_VISITOR] = SPACE_VISITOR, [LISTED_CONVERSATION] = SPACE_CONVERSATION,
    [LISTED_LEAD] = SPACE_LEAD,   [LISTED_EVENT] = SPACE_EVENT,     [LISTED_RATING] = SPACE_RATING,
};

void check_listed_row(struct check *c, const struct walk *w)
{
    const uint8_t *key = w->k.mv_data;
    struct ulid id;
    struct key k;
    MDB_val v;
    if (!listed_id(w, &id) || key[1] == 0 || key[1] >= LISTED_KINDS) {
        check_say(c, "an entry of the widget's lists is malformed");
        return;
    }
    key_of(&k, space_of[key[1]], &id);
    if (!check_get(c, space_of[key[1]], &k, &v))
        check_say(c, "a list of the widget's records names %s, which is not there", id_text(&id));
}

void check_erasing(struct check *c, const struct walk *w)
{
    if (w->k.mv_size != 1 + ULID_BYTES)
        check_say(c, "a row of what is being erased is malformed");
}
