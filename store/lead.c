#include "widget_parts.h"

#include <errno.h>

#define HASH_BYTES 32
#define OWNERS_MAX 64 /* visitors that sent one address; beyond them the lead goes to the last ones */

/* A lead with what its record has beside what is rendered. */
struct lead {
    struct store_lead l;
    uint64_t workspace;
    uint8_t hash[HASH_BYTES];
    struct ulid owners[OWNERS_MAX];
    size_t owners_n;
};

static bool lead_read(MDB_val value, struct lead *out, struct str *json)
{
    const struct lead_record *r = value.mv_data;
    if (value.mv_size < sizeof(*r) || r->format != STORE_FORMAT_VERSION || r->owners_n == 0 || r->owners_n > OWNERS_MAX ||
        value.mv_size != sizeof(*r) + (size_t)r->owners_n * ULID_BYTES + r->email_n + r->name_n + r->phone_n + r->fields_n + r->json_n)
        return false;
    const char *p = (const char *)(r + 1) + (size_t)r->owners_n * ULID_BYTES;
    out->l = (struct store_lead){
        .id = r->id,
        .agent = r->agent,
        .visitor = r->visitor,
        .conversation = r->conversation,
        .created_at = r->created_at,
        .updated_at = r->updated_at,
        .email = {p, r->email_n},
        .name = {p + r->email_n, r->name_n},
        .phone = {p + r->email_n + r->name_n, r->phone_n},
        .fields = {p + r->email_n + r->name_n + r->phone_n, r->fields_n},
    };
    *json = (struct str){p + r->email_n + r->name_n + r->phone_n + r->fields_n, r->json_n};
    out->workspace = r->workspace;
    memcpy(out->hash, r->hash, HASH_BYTES);
    out->owners_n = r->owners_n;
    memcpy(out->owners, r + 1, (size_t)r->owners_n * ULID_BYTES);
    return true;
}

bool lead_json(MDB_val value, struct ulid *agent, struct ulid *visitor, struct str *out)
{
    struct lead lead;
    if (!lead_read(value, &lead, out))
        return false;
    *agent = lead.l.agent;
    *visitor = lead.l.visitor;
    return true;
}

/* A copy in t->copy; STORE_NOT_FOUND without one. */
static enum store_status lead_load(struct store_txn *t, const struct ulid *id, struct lead *out)
{
    struct key k;
    MDB_val v;
    struct str json;
    key_of(&k, SPACE_LEAD, id);
    enum store_status status = txn_get(t, SPACE_LEAD, &k, &v);
    if (status != STORE_OK)
        return status;
    buf_reset(&t->copy);
    buf_add(&t->copy, v.mv_data, v.mv_size);
    if (!buf_ok(&t->copy))
        return txn_fail(t, ENOMEM, "hold a lead");
    return lead_read((MDB_val){t->copy.n, t->copy.p}, out, &json) ? STORE_OK : txn_fail(t, 0, "a lead's record");
}

static void lead_write(struct store_txn *t, struct lead *lead)
{
    const struct store_lead *l = &lead->l;
    struct key k;
    buf_reset(&t->json);
    t->s->renderer->widget.lead(l, &t->json);
    if (!buf_ok(&t->json)) {
        txn_fail(t, ENOMEM, "render a lead");
        return;
    }
    struct lead_record r = {
        .format = STORE_FORMAT_VERSION,
        .renderer = t->s->renderer->version,
        .id = l->id,
        .agent = l->agent,
        .visitor = l->visitor,
        .conversation = l->conversation,
        .workspace = lead->workspace,
        .created_at = l->created_at,
        .updated_at = l->updated_at,
        .owners_n = (uint16_t)lead->owners_n,
        .email_n = (uint16_t)l->email.n,
        .name_n = (uint16_t)l->name.n,
        .phone_n = (uint16_t)l->phone.n,
        .fields_n = (uint32_t)l->fields.n,
        .json_n = (uint32_t)t->json.n,
    };
    memcpy(r.hash, lead->hash, HASH_BYTES);
    const struct str owners = {(const char *)lead->owners, lead->owners_n * ULID_BYTES};
    key_of(&k, SPACE_LEAD, &l->id);
    char *to = txn_reserve(t, SPACE_LEAD, &k, sizeof(r) + owners.n + l->email.n + l->name.n + l->phone.n + l->fields.n + t->json.n);
    if (to == NULL)
        return;
    to = append_str(to, (struct str){(const char *)&r, sizeof(r)});
    to = append_str(to, owners);
    to = append_str(to, l->email);
    to = append_str(to, l->name);
    to = append_str(to, l->phone);
    to = append_str(to, l->fields);
    append_str(to, buf_view(&t->json));
}

static void email_key(struct key *k, const struct ulid *agent, const void *hash)
{
    key_of(k, SPACE_LEAD_EMAIL, agent);
    key_bytes(k, hash, HASH_BYTES);
}

/* Who sends an address is one of those whose erasure takes the lead along. */
static void add_owner(struct store_txn *t, struct lead *lead, const struct ulid *visitor)
{
    for (size_t i = 0; i < lead->owners_n; i++)
        if (ulid_eq(&lead->owners[i], visitor))
            return;
    if (lead->owners_n == OWNERS_MAX) {
        listed_drop(t, LISTED_LEAD, &lead->owners[0], 0, &lead->l.id);
        memmove(&lead->owners[0], &lead->owners[1], (OWNERS_MAX - 1) * sizeof(lead->owners[0]));
        lead->owners_n--;
    }
    lead->owners[lead->owners_n++] = *visitor;
    listed_put(t, LISTED_LEAD, visitor, 0, &lead->l.id);
}

static bool well_formed(const struct store_change *c)
{
    return c->workspace == 0 && c->hash.n == HASH_BYTES && c->text.n > 0 && c->text.n <= NAME_MAX_BYTES &&
           c->name.n <= 2 * NAME_MAX_BYTES && c->url.n <= NAME_MAX_BYTES && c->data.n <= STORE_TEXT_MAX &&
           (c->idem_key.n == 0 || (c->idem_key.n == HASH_BYTES && c->idem_body.n == HASH_BYTES));
}

/* The lead with that address, or a new one. */
static enum store_status lead_for(struct store_txn *t, const struct store_change *c, const struct store_conversation *v, struct lead *out,
                                  bool *made)
{
    struct key k;
    MDB_val value;
    email_key(&k, &c->agent, c->hash.p);
    enum store_status status = txn_get(t, SPACE_LEAD_EMAIL, &k, &value);
    *made = status == STORE_NOT_FOUND;
    if (status == STORE_OK) {
        struct ulid id;
        if (value.mv_size != ULID_BYTES)
            return txn_fail(t, 0, "the index of leads");
        memcpy(id.b, value.mv_data, ULID_BYTES);
        status = lead_load(t, &id, out);
        return status == STORE_NOT_FOUND ? txn_fail(t, 0, "the index of leads") : status;
    }
    if (status != STORE_NOT_FOUND)
        return status;
    if (txn_is_full(t))
        return STORE_FULL;
    *out = (struct lead){.l = {.agent = v->agent, .created_at = t->now}, .workspace = v->workspace};
    memcpy(out->hash, c->hash.p, HASH_BYTES);
    if (!txn_ulid(t, &out->l.id))
        return t->error;
    txn_put(t, SPACE_LEAD_EMAIL, &k, &out->l.id, ULID_BYTES);
    const struct ulid scope = scope_of_workspace(v->workspace);
    listed_put(t, LISTED_LEAD, &scope, 0, &out->l.id);
    listed_put(t, LISTED_LEAD, &v->agent, 0, &out->l.id);
    return STORE_OK;
}

/* The conversation, and its visitor, are known to have left an address. */
static void note_captured(struct store_txn *t, const struct store_change *c)
{
    struct store_conversation v;
    visitor_mark_lead(t, &c->visitor);
    if (conversation_open(t, c, &v) != STORE_OK || v.lead_captured)
        return;
    v.lead_captured = true;
    conversation_write(t, conversation_status(&v), &v);
}

enum store_status lead_put(struct store_txn *t, const struct store_change *c, struct store_answer *answer)
{
    struct store_conversation v;
    struct lead lead;
    bool made;
    if (!well_formed(c))
        return STORE_INVALID;
    enum store_status status = conversation_open(t, c, &v);
    if (status == STORE_OK)
        status = once_look(t, c, ONCE_IDEMPOTENCY, answer);
    if (status != STORE_NOT_FOUND || answer->replayed)
        return status;
    status = conversation_open(t, c, &v);
    if (status == STORE_OK)
        status = lead_for(t, c, &v, &lead, &made);
    if (status != STORE_OK)
        return status;
    lead.l.visitor = c->visitor;
    lead.l.conversation = c->conversation;
    lead.l.updated_at = t->now;
    lead.l.email = c->text;
    lead.l.name = c->name.n > 0 ? c->name : lead.l.name;
    lead.l.phone = c->url.n > 0 ? c->url : lead.l.phone;
    lead.l.fields = c->data.n > 0 ? c->data : lead.l.fields;
    add_owner(t, &lead, &c->visitor);
    lead_write(t, &lead);
    note_captured(t, c);
    answer->first = lead.l.id;
    answer->code = made ? 201 : 200;
    once_put(t, c, ONCE_IDEMPOTENCY, answer);
    return STORE_OK;
}

void lead_remove(struct store_txn *t, const struct ulid *id)
{
    struct lead lead;
    struct key k;
    if (lead_load(t, id, &lead) != STORE_OK) {
        txn_fail(t, 0, "a list of leads");
        return;
    }
    const struct ulid scope = scope_of_workspace(lead.workspace);
    listed_drop(t, LISTED_LEAD, &scope, 0, id);
    listed_drop(t, LISTED_LEAD, &lead.l.agent, 0, id);
    for (size_t i = 0; i < lead.owners_n; i++)
        listed_drop(t, LISTED_LEAD, &lead.owners[i], 0, id);
    email_key(&k, &lead.l.agent, lead.hash);
    txn_del(t, SPACE_LEAD_EMAIL, &k);
    key_of(&k, SPACE_LEAD, id);
    txn_del(t, SPACE_LEAD, &k);
}
