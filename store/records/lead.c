#include "store/records/lead.h"

#include "store/engine/free_space.h"
#include "store/engine/txn.h"
#include "store/records/apply.h"
#include "store/records/conversation.h"
#include "store/records/list_entries.h"
#include "store/records/once.h"
#include "store/records/ulid_keys.h"
#include "store/records/visitor.h"

#include <errno.h>

#define HASH_BYTES LEAD_HASH_BYTES
/* When full, the first sender stays, so that others cannot displace it; the oldest other goes. */
#define SENDERS_MAX LEAD_SENDERS_MAX

/* A lead and its internal columns. */
struct lead {
    struct store_lead l;
    struct lead_at at;
    struct store_sender senders[SENDERS_MAX];
};

static bool lead_decode(MDB_val value, struct lead *out)
{
    const struct lead_record *r = value.mv_data;
    struct sender_record senders[SENDERS_MAX];
    if (value.mv_size < sizeof(*r))
        return false;
    size_t all = sizeof(*r) + (size_t)r->senders_n * sizeof(senders[0]), n = all;
    if (r->senders_n == 0 || r->senders_n > SENDERS_MAX || value.mv_size < all)
        return false;
    memcpy(senders, r + 1, r->senders_n * sizeof(senders[0]));
    for (size_t i = 0; i < r->senders_n; i++)
        n += (size_t)senders[i].email_n + senders[i].name_n + senders[i].phone_n +
             senders[i].fields_n;
    if (value.mv_size != n)
        return false;
    const char *at = (const char *)value.mv_data + all;
    for (size_t i = 0; i < r->senders_n; i++) {
        const struct sender_record *from = &senders[i];
        out->senders[i] = (struct store_sender){.visitor = from->visitor,
                                                .conversation = from->conversation,
                                                .created_at = from->created_at,
                                                .updated_at = from->updated_at,
                                                .email = taken(&at, from->email_n),
                                                .name = taken(&at, from->name_n),
                                                .phone = taken(&at, from->phone_n),
                                                .fields = taken(&at, from->fields_n)};
    }
    out->l = (struct store_lead){
        .id = r->id, .agent = r->agent, .senders = out->senders, .senders_n = r->senders_n};
    out->at = (struct lead_at){.agent = r->agent, .workspace = r->workspace};
    memcpy(out->at.hash, r->hash, HASH_BYTES);
    return true;
}

bool lead_look(MDB_val value, struct lead_at *out)
{
    struct lead lead;
    if (!lead_decode(value, &lead))
        return false;
    *out = lead.at;
    out->id = lead.l.id;
    out->visitor = lead.senders[0].visitor;
    return true;
}

bool lead_read(MDB_val value, struct store_sender senders[LEAD_SENDERS_MAX], struct store_lead *out)
{
    struct lead lead;
    if (!lead_decode(value, &lead))
        return false;
    memcpy(senders, lead.senders, sizeof(lead.senders));
    *out = lead.l;
    out->senders = senders;
    return true;
}

bool lead_said(MDB_val value, const struct ulid *visitor, struct str *email, struct str *name)
{
    struct lead lead;
    size_t i = 0;
    if (!lead_decode(value, &lead))
        return false;
    while (i < lead.l.senders_n && !ulid_eq(&lead.senders[i].visitor, visitor))
        i++;
    if (i == lead.l.senders_n)
        return false;
    *email = lead.senders[i].email;
    *name = lead.senders[i].name;
    return true;
}

/* A copy in t->copy; STORE_NOT_FOUND. */
static enum store_status lead_load(struct store_txn *t, const struct ulid *id, struct lead *out)
{
    struct key k;
    MDB_val v;
    key_of(&k, SPACE_LEAD, id);
    enum store_status status = txn_get_copy(t, SPACE_LEAD, &k, &v);
    if (status != STORE_OK)
        return status;
    return lead_decode(v, out) ? STORE_OK : txn_fail(t, 0, "a lead's record");
}

static size_t size_of(const struct store_sender *s)
{
    return s->email.n + s->name.n + s->phone.n + s->fields.n;
}

static char *put_sender(char *to, const struct store_sender *s)
{
    const struct sender_record r = {.visitor = s->visitor,
                                    .conversation = s->conversation,
                                    .created_at = s->created_at,
                                    .updated_at = s->updated_at,
                                    .email_n = (uint16_t)s->email.n,
                                    .name_n = (uint16_t)s->name.n,
                                    .phone_n = (uint16_t)s->phone.n,
                                    .fields_n = (uint32_t)s->fields.n};
    return append_str(to, (struct str){(const char *)&r, sizeof(r)});
}

static void lead_write(struct store_txn *t, const struct lead *lead)
{
    const struct store_lead *l = &lead->l;
    struct key k;
    struct lead_record r = {.id = l->id,
                            .agent = l->agent,
                            .workspace = lead->at.workspace,
                            .senders_n = (uint16_t)l->senders_n};
    memcpy(r.hash, lead->at.hash, HASH_BYTES);
    size_t n = sizeof(r);
    for (size_t i = 0; i < l->senders_n; i++)
        n += sizeof(struct sender_record) + size_of(&lead->senders[i]);
    key_of(&k, SPACE_LEAD, &l->id);
    char *to = txn_reserve(t, SPACE_LEAD, &k, n);
    if (to == NULL)
        return;
    to = append_str(to, (struct str){(const char *)&r, sizeof(r)});
    for (size_t i = 0; i < l->senders_n; i++)
        to = put_sender(to, &lead->senders[i]);
    for (size_t i = 0; i < l->senders_n; i++) {
        const struct store_sender *s = &lead->senders[i];
        to = append_str(append_str(append_str(append_str(to, s->email), s->name), s->phone),
                        s->fields);
    }
}

static void email_key(struct key *k, const struct ulid *agent, const void *hash)
{
    key_of(k, SPACE_LEAD_EMAIL, agent);
    key_bytes(k, hash, HASH_BYTES);
}

static void drop_sender(struct store_txn *t, struct lead *lead, size_t i)
{
    list_entry_drop(t, LIST_ENTRY_LEAD, &lead->senders[i].visitor, 0, &lead->l.id);
    lead->l.senders_n--;
    memmove(&lead->senders[i], &lead->senders[i + 1],
            (lead->l.senders_n - i) * sizeof(lead->senders[0]));
}

/* The index of that visitor among the senders; senders_n: none. */
static size_t sender_at(const struct lead *lead, const struct ulid *visitor)
{
    size_t i = 0;
    while (i < lead->l.senders_n && !ulid_eq(&lead->senders[i].visitor, visitor))
        i++;
    return i;
}

/* What that visitor sent before, or an empty sender. */
static struct store_sender *sender_for(struct store_txn *t, struct lead *lead,
                                       const struct ulid *visitor)
{
    size_t i = sender_at(lead, visitor);
    if (i < lead->l.senders_n)
        return &lead->senders[i];
    if (lead->l.senders_n == SENDERS_MAX)
        drop_sender(t, lead, 1);
    list_entry_put(t, LIST_ENTRY_LEAD, visitor, 0, &lead->l.id);
    lead->senders[lead->l.senders_n] =
        (struct store_sender){.visitor = *visitor, .created_at = t->now};
    return &lead->senders[lead->l.senders_n++];
}

static bool well_formed(const struct store_change *c)
{
    return c->workspace == 0 && c->hash.n == HASH_BYTES && c->text.n > 0 &&
           c->text.n <= NAME_MAX_BYTES && c->name.n <= 2 * NAME_MAX_BYTES &&
           c->url.n <= NAME_MAX_BYTES && c->data.n <= STORE_TEXT_MAX &&
           (c->idem_key.n == 0 || (c->idem_key.n == HASH_BYTES && c->idem_body.n == HASH_BYTES));
}

/* The lead of that address, or a new one. */
static enum store_status lead_for(struct store_txn *t, const struct store_change *c,
                                  const struct store_conversation *v, struct lead *out, bool *made)
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
    *out = (struct lead){.l = {.agent = v->agent, .senders = out->senders},
                         .at = {.agent = v->agent, .workspace = v->workspace}};
    memcpy(out->at.hash, c->hash.p, HASH_BYTES);
    if (!txn_ulid(t, &out->l.id))
        return t->error;
    txn_put(t, SPACE_LEAD_EMAIL, &k, &out->l.id, ULID_BYTES);
    const struct ulid scope = scope_of_workspace(v->workspace);
    list_entry_put(t, LIST_ENTRY_LEAD, &scope, 0, &out->l.id);
    list_entry_put(t, LIST_ENTRY_LEAD, &v->agent, 0, &out->l.id);
    return STORE_OK;
}

/* Mark the conversation and its visitor: they left an address. */
static void note_captured(struct store_txn *t, const struct store_change *c)
{
    struct store_conversation v;
    visitor_mark_lead(t, &c->visitor);
    if (conversation_open(t, c, &v) != STORE_OK || v.lead_captured)
        return;
    v.lead_captured = true;
    conversation_write(t, conversation_status(&v), &v);
}

enum store_status lead_put(struct store_txn *t, const struct store_change *c,
                           struct store_answer *answer)
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
    struct store_sender *said = sender_for(t, &lead, &c->visitor);
    said->conversation = c->conversation;
    said->updated_at = t->now;
    said->email = c->text;
    said->name = c->name.n > 0 ? c->name : said->name;
    said->phone = c->url.n > 0 ? c->url : said->phone;
    said->fields = c->data.n > 0 ? c->data : said->fields;
    lead_write(t, &lead);
    note_captured(t, c);
    answer->first = lead.l.id;
    answer->code = made ? 201 : 200;
    once_put(t, c, ONCE_IDEMPOTENCY, answer);
    return STORE_OK;
}

static void remove_whole(struct store_txn *t, struct lead *lead)
{
    struct key k;
    const struct ulid scope = scope_of_workspace(lead->at.workspace);
    list_entry_drop(t, LIST_ENTRY_LEAD, &scope, 0, &lead->l.id);
    list_entry_drop(t, LIST_ENTRY_LEAD, &lead->l.agent, 0, &lead->l.id);
    while (lead->l.senders_n > 0)
        drop_sender(t, lead, lead->l.senders_n - 1);
    email_key(&k, &lead->l.agent, lead->at.hash);
    txn_del(t, SPACE_LEAD_EMAIL, &k);
    key_of(&k, SPACE_LEAD, &lead->l.id);
    txn_del(t, SPACE_LEAD, &k);
}

void lead_remove(struct store_txn *t, const struct ulid *id, const struct ulid *scope)
{
    struct lead lead;
    if (lead_load(t, id, &lead) != STORE_OK) {
        txn_fail(t, 0, "a list of leads");
        return;
    }
    size_t i = sender_at(&lead, scope);
    if (i == lead.l.senders_n || lead.l.senders_n == 1) {
        remove_whole(t, &lead);
        return;
    }
    drop_sender(t, &lead, i);
    lead_write(t, &lead);
}
