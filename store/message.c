#include "widget_parts.h"

#include <errno.h>

#define HASH_BYTES 32
#define ONCE_KEY_MAX 256
#define ONCE_FOR_MS                                                                                                                        \
    ((int64_t)24 * 60 * 60 * 1000) /* Idempotency-Key, api.md §2; a client_message_id stays for as long as its conversation */

static void message_key(struct key *k, const struct ulid *conversation, const struct ulid *id)
{
    key_of(k, SPACE_MESSAGE, conversation);
    key_ulid(k, id);
}

bool schema_read_message(MDB_val value, struct store_kept_message *out)
{
    const struct message_record *r = value.mv_data;
    if (value.mv_size < sizeof(*r) || r->format != STORE_FORMAT_VERSION || value.mv_size != sizeof(*r) + r->json_n ||
        r->role > ROLE_OF_OPERATOR || r->result_at > r->json_n || r->result_n > r->json_n - r->result_at)
        return false;
    const char *p = (const char *)(r + 1);
    out->role = r->role;
    out->renderer = r->renderer;
    out->json = (struct str){p, r->json_n};
    out->result = (struct str){p + r->result_at, r->result_n};
    return true;
}

/* ---- reading ---- */

static enum store_status message_at(const struct walk *w, struct store_kept_message *out)
{
    if (w->k.mv_size != 1 + 2 * ULID_BYTES || !schema_read_message(w->v, out))
        return store_corrupt(w->s, "a message");
    memcpy(out->id.b, (const uint8_t *)w->k.mv_data + 1 + ULID_BYTES, ULID_BYTES);
    return render_read_message(w->s, out);
}

static bool within(const struct ulid *id, const struct store_messages_query *q)
{
    return (ulid_none(&q->after) || memcmp(id->b, q->after.b, ULID_BYTES) > 0) &&
           (ulid_none(&q->before) || memcmp(id->b, q->before.b, ULID_BYTES) < 0);
}

static enum store_status messages_walk(struct store *s, MDB_txn *txn, struct walk *w, const struct store_messages_query *q)
{
    struct key from;
    key_of(&w->prefix, SPACE_MESSAGE, &q->conversation);
    if (q->newest && !ulid_none(&q->before)) {
        message_key(&from, &q->conversation, &q->before);
        return walk_below(s, txn, w, DB_WIDGET, &from);
    }
    if (q->newest || ulid_none(&q->after))
        return walk_prefix(s, txn, w, DB_WIDGET, q->newest);
    message_key(&from, &q->conversation, &q->after);
    enum store_status status = walk_from(s, txn, w, DB_WIDGET, &from);
    /* the first is ${after} itself, while it is there */
    bool itself = status == STORE_OK && w->k.mv_size == from.n && memcmp(w->k.mv_data, from.b, from.n) == 0;
    return itself ? walk_next(w) : status;
}

void store_message_each(struct store *s, const struct store_messages_query *query, store_message_fn *each, void *arg)
{
    MDB_txn *txn;
    struct walk w = {0};
    struct store_kept_message m;
    unsigned left = query->limit;
    size_t room = query->bytes == 0 ? SIZE_MAX : query->bytes;
    enum store_status status = store_snapshot(s, &txn);
    if (status == STORE_OK)
        status = messages_walk(s, txn, &w, query);
    for (; status == STORE_OK && left > 0 && room > 0; status = walk_next(&w)) {
        status = message_at(&w, &m);
        if (status == STORE_OK && !within(&m.id, query))
            status = STORE_NOT_FOUND;
        if (status != STORE_OK)
            break;
        left--;
        room -= m.json.n < room ? m.json.n : room;
        each(arg, STORE_OK, &m);
    }
    if (status == STORE_OK && (message_at(&w, &m) != STORE_OK || !within(&m.id, query)))
        status = STORE_NOT_FOUND;
    walk_end(&w);
    each(arg, status, NULL);
}

static enum store_status message_get(struct store *s, const struct ulid *conversation, const struct ulid *id,
                                     struct store_kept_message *out)
{
    MDB_txn *txn;
    struct key k;
    MDB_val v;
    enum store_status status = store_snapshot(s, &txn);
    if (status != STORE_OK)
        return status;
    message_key(&k, conversation, id);
    status = store_get(s, txn, SPACE_MESSAGE, &k, &v);
    out->id = *id;
    if (status == STORE_OK)
        status = schema_read_message(v, out) ? render_read_message(s, out) : store_corrupt(s, "a message");
    return status;
}

void store_message_get(struct store *s, const struct ulid *conversation, const struct ulid *id, store_message_fn *done, void *arg)
{
    struct store_kept_message m;
    enum store_status status = message_get(s, conversation, id, &m);
    done(arg, status, status == STORE_OK ? &m : NULL);
}

/* ---- once ---- */

static struct str once_given(const struct store_change *c, enum once_kind kind)
{
    return kind == ONCE_CLIENT_ID ? c->client_id : c->idem_key;
}

static void once_key(struct key *k, const struct store_change *c, enum once_kind kind)
{
    uint8_t byte = (uint8_t)kind;
    key_of(k, SPACE_ONCE, &c->conversation);
    key_bytes(k, &byte, 1);
    key_str(k, once_given(c, kind));
}

enum store_status once_look(struct store_txn *t, const struct store_change *c, enum once_kind kind, struct store_answer *answer)
{
    struct key k;
    MDB_val v;
    const struct once_record *r;
    if (once_given(c, kind).n == 0)
        return STORE_NOT_FOUND;
    once_key(&k, c, kind);
    enum store_status status = txn_get(t, SPACE_ONCE, &k, &v);
    if (status != STORE_OK)
        return status;
    if ((r = store_record(v, sizeof(*r))) == NULL)
        return txn_fail(t, 0, "a row of what was done once");
    if (r->expires_at != 0 && r->expires_at <= t->now)
        return STORE_NOT_FOUND;
    if (kind == ONCE_IDEMPOTENCY && memcmp(r->body, c->idem_body.p, HASH_BYTES) != 0)
        return STORE_KEY_REUSED;
    answer->replayed = kind == ONCE_IDEMPOTENCY ? 1 : 2;
    answer->code = r->code;
    answer->first = r->first;
    answer->second = r->second;
    return STORE_OK;
}

void once_put(struct store_txn *t, const struct store_change *c, enum once_kind kind, const struct store_answer *answer)
{
    struct key k;
    struct once_record r = {.first = answer->first, .second = answer->second, .code = answer->code};
    if (once_given(c, kind).n == 0)
        return;
    if (kind == ONCE_IDEMPOTENCY) {
        r.expires_at = t->now + ONCE_FOR_MS;
        memcpy(r.body, c->idem_body.p, HASH_BYTES);
    }
    once_key(&k, c, kind);
    txn_put(t, SPACE_ONCE, &k, &r, sizeof(r));
}

/* ---- changing ---- */

/* What was rendered into t->json, under ${k}. */
static bool message_put(struct store_txn *t, struct key *k, enum message_role role, size_t result_at, size_t result_n)
{
    const struct message_record r = {.format = STORE_FORMAT_VERSION,
                                     .role = (uint8_t)role,
                                     .renderer = t->s->renderer->version,
                                     .json_n = (uint32_t)t->json.n,
                                     .result_at = (uint32_t)result_at,
                                     .result_n = (uint32_t)result_n};
    if (!buf_ok(&t->json)) {
        txn_fail(t, ENOMEM, "render a message");
        return false;
    }
    char *to = txn_reserve(t, SPACE_MESSAGE, k, sizeof(r) + t->json.n);
    if (to == NULL)
        return false;
    to = append_str(to, (struct str){(const char *)&r, sizeof(r)});
    append_str(to, buf_view(&t->json));
    return true;
}

static bool message_write(struct store_txn *t, const struct ulid *conversation, struct store_message *m)
{
    size_t at = 0, n = 0;
    struct key k;
    m->created_at = t->now;
    if (!txn_ulid(t, &m->id))
        return false;
    buf_reset(&t->json);
    t->s->renderer->widget.message(m, &t->json, &at, &n);
    message_key(&k, conversation, &m->id);
    return message_put(t, &k, m->role, at, n);
}

void message_again(struct store_txn *t, struct key *k, MDB_val copy)
{
    size_t at = 0, n = 0;
    struct store_kept_message m;
    if (!schema_read_message(copy, &m)) {
        txn_fail(t, 0, "a message");
        return;
    }
    buf_reset(&t->json);
    if (render_is_stale(t->s, m.renderer) && t->s->renderer->widget.message_again(m.role, m.json, &t->json, &at, &n))
        message_put(t, k, m.role, at, n);
}

static bool well_formed(const struct store_change *c)
{
    return c->text.n > 0 && c->text.n <= STORE_TEXT_MAX && c->data.n <= STORE_TEXT_MAX && c->url.n <= URL_MAX_BYTES &&
           c->client_id.n <= ONCE_KEY_MAX && c->answer.n <= STORE_TEXT_MAX && c->citations.n <= STORE_TEXT_MAX &&
           (c->idem_key.n == 0 || (c->idem_key.n == HASH_BYTES && c->idem_body.n == HASH_BYTES));
}

/* What both kinds of message have in common before they are written. */
static enum store_status message_begin(struct store_txn *t, const struct store_change *c, struct store_conversation *out,
                                       struct store_answer *answer)
{
    if (!well_formed(c))
        return STORE_INVALID;
    enum store_status status = conversation_open(t, c, out);
    if (status != STORE_OK)
        return status;
    status = once_look(t, c, ONCE_IDEMPOTENCY, answer);
    if (status == STORE_NOT_FOUND)
        status = once_look(t, c, ONCE_CLIENT_ID, answer);
    if (status != STORE_NOT_FOUND || answer->replayed)
        return status;
    return txn_is_full(t) ? STORE_FULL : STORE_OK;
}

static void message_end(struct store_txn *t, const struct store_change *c, enum conversation_status before, struct store_conversation *v,
                        struct store_answer *answer)
{
    conversation_write(t, before, v);
    answer->code = c->code;
    answer->version = v->version;
    once_put(t, c, ONCE_IDEMPOTENCY, answer);
    once_put(t, c, ONCE_CLIENT_ID, answer);
}

enum store_status message_post(struct store_txn *t, const struct store_change *c, struct store_answer *answer)
{
    struct store_conversation v;
    enum store_status status = c->workspace != 0 ? STORE_INVALID : message_begin(t, c, &v, answer);
    if (status != STORE_OK || answer->replayed)
        return status;
    enum conversation_status before = conversation_status(&v);
    struct store_message m = {
        .role = ROLE_OF_VISITOR, .text = c->text, .client_id = c->client_id, .page_url = c->url, .page_context = c->data};
    if (!message_write(t, &v.id, &m))
        return t->error;
    answer->first = v.last = v.read = m.id;
    v.messages++;
    v.closed_at = 0; /* who writes again opens it again */
    if (v.claimed_by == 0) {
        m = (struct store_message){.role = ROLE_OF_ASSISTANT,
                                   .text = c->answer,
                                   .citations = c->citations,
                                   .low_confidence = (c->fields & MESSAGE_LOW_CONFIDENCE) != 0};
        if (!message_write(t, &v.id, &m))
            return t->error;
        answer->second = v.last = m.id;
        v.messages++;
    }
    message_end(t, c, before, &v, answer);
    return STORE_OK;
}

enum store_status message_reply(struct store_txn *t, const struct store_change *c, struct store_answer *answer)
{
    struct store_conversation v;
    enum store_status status = c->workspace == 0 ? STORE_INVALID : message_begin(t, c, &v, answer);
    if (status != STORE_OK || answer->replayed)
        return status;
    enum conversation_status before = conversation_status(&v);
    struct store_message m = {.role = ROLE_OF_OPERATOR, .text = c->text};
    if (!message_write(t, &v.id, &m))
        return t->error;
    answer->first = v.last = m.id;
    v.messages++;
    message_end(t, c, before, &v, answer);
    return STORE_OK;
}
