#include "store/engine/errors.h"
#include "store/engine/free_space.h"
#include "store/engine/snapshot.h"
#include "store/engine/txn.h"
#include "store/records/apply.h"
#include "store/records/conversation.h"
#include "store/records/message_log.h"
#include "store/records/once.h"
#include "store/records/ulid_keys.h"

#include <errno.h>

#define HASH_BYTES 32
#define ONCE_KEY_MAX 256
/* For an Idempotency-Key. A client_message_id is kept as long as its conversation. */
#define ONCE_FOR_MS ((int64_t)24 * 60 * 60 * 1000)

static void message_of(const struct logged_message *at, struct store_message *out)
{
    const struct message_record *r = at->record;
    const char *p = (const char *)(r + 1);
    *out = (struct store_message){.id = at->id,
                                  .role = r->role,
                                  .created_at = r->created_at,
                                  .low_confidence = r->low_confidence != 0};
    out->text = taken(&p, r->text_n);
    out->citations = taken(&p, r->citations_n);
    out->client_id = taken(&p, r->client_n);
    out->page_url = taken(&p, r->url_n);
    out->page_context = taken(&p, r->context_n);
}

/* ---- reading ---- */

struct page {
    struct store *s;
    MDB_txn *txn;
    const struct store_messages_query *q;
    unsigned left;
    size_t bytes_left;
    store_message_fn *each;
    void *arg;
};

static bool is_done(const struct page *p)
{
    return p->left == 0 || p->bytes_left == 0;
}

static void show(struct page *p, const struct logged_message *at)
{
    struct store_message m;
    size_t bytes = message_log_bytes(at->record);
    message_of(at, &m);
    p->left--;
    p->bytes_left -= bytes < p->bytes_left ? bytes : p->bytes_left;
    p->each(p->arg, STORE_OK, &m);
}

/* Newest first, from ${at} on; STORE_NOT_FOUND when there are no more. */
static enum store_status each_backward(struct page *p, struct logged_message *at)
{
    enum store_status status = STORE_OK;
    while (status == STORE_OK && memcmp(at->id.b, p->q->after.b, ULID_BYTES) > 0) {
        if (is_done(p))
            return STORE_OK;
        show(p, at);
        status = message_log_before(p->s, p->txn, at);
    }
    return status == STORE_OK ? STORE_NOT_FOUND : status;
}

#define BLOCK 32 /* messages that are found before they are shown */

/* ${count} messages from ${place} on; ${end} is not before them. */
static enum store_status gather(const struct page *p, const struct logged_message *end,
                                uint64_t place, size_t count, struct logged_message *block)
{
    struct logged_message at = *end;
    enum store_status status = message_log_at(p->s, p->txn, &at, place + count - 1);
    for (size_t i = count; status == STORE_OK && i-- > 0;) {
        block[i] = at;
        status = i == 0 ? STORE_OK : message_log_before(p->s, p->txn, &at);
    }
    return status;
}

/* Oldest first, from ${place} to ${end}. */
static enum store_status each_forward(struct page *p, const struct logged_message *end,
                                      uint64_t place)
{
    struct logged_message block[BLOCK];
    enum store_status status = STORE_OK;
    while (status == STORE_OK && place <= end->record->place && !is_done(p)) {
        uint64_t there = end->record->place - place + 1;
        size_t most = p->left < BLOCK ? p->left : BLOCK,
               count = there < most ? (size_t)there : most;
        status = gather(p, end, place, count, block);
        for (size_t i = 0; status == STORE_OK && i < count && !is_done(p); i++, place++)
            show(p, &block[i]);
    }
    return status == STORE_OK && place > end->record->place ? STORE_NOT_FOUND : status;
}

/* The place of the first message above ${after}. */
static enum store_status place_above(const struct page *p, const struct logged_message *end,
                                     const struct ulid *after, uint64_t *out)
{
    struct logged_message at = *end;
    uint64_t high, low;
    ulid_halves(after, &high, &low);
    const struct ulid next = ulid_of_halves(high + (low == UINT64_MAX), low + 1);
    enum store_status status = memcmp(after->b, end->id.b, ULID_BYTES) < 0
                                   ? message_log_below(p->s, p->txn, &at, &next)
                                   : STORE_OK;
    *out = status == STORE_OK ? at.record->place + 1 : 1;
    return status == STORE_NOT_FOUND ? STORE_OK : status;
}

/* The newest message below ${before}. */
static enum store_status newest(struct store *s, MDB_txn *txn, const struct store_messages_query *q,
                                struct logged_message *out)
{
    struct key k;
    MDB_val v;
    struct store_conversation c;
    key_of(&k, SPACE_CONVERSATION, &q->conversation);
    enum store_status status = store_get(s, txn, SPACE_CONVERSATION, &k, &v);
    *out = (struct logged_message){.record = NULL};
    if (status == STORE_OK && !schema_read_conversation(v, &c))
        return store_corrupt(s, "a conversation's record");
    if (status == STORE_OK)
        status = ulid_none(&c.last) ? STORE_NOT_FOUND
                                    : message_log_get(s, txn, &q->conversation, &c.last, out);
    return status != STORE_OK || ulid_none(&q->before) ? status
                                                       : message_log_below(s, txn, out, &q->before);
}

void store_message_each(struct store *s, const struct store_messages_query *query,
                        store_message_fn *each, void *arg)
{
    struct page p = {.s = s,
                     .q = query,
                     .left = query->limit,
                     .bytes_left = query->bytes == 0 ? SIZE_MAX : query->bytes,
                     .each = each,
                     .arg = arg};
    struct logged_message end;
    uint64_t place;
    enum store_status status = store_snapshot(s, &p.txn);
    if (status == STORE_OK)
        status = newest(s, p.txn, query, &end);
    if (status == STORE_OK && query->newest)
        status = each_backward(&p, &end);
    else if (status == STORE_OK &&
             (status = place_above(&p, &end, &query->after, &place)) == STORE_OK)
        status = each_forward(&p, &end, place);
    each(arg, status, NULL);
}

static enum store_status message_get(struct store *s, const struct ulid *conversation,
                                     const struct ulid *id, struct store_message *out)
{
    MDB_txn *txn;
    struct logged_message at;
    enum store_status status = store_snapshot(s, &txn);
    if (status == STORE_OK)
        status = message_log_get(s, txn, conversation, id, &at);
    if (status == STORE_OK)
        message_of(&at, out);
    return status;
}

void store_message_get(struct store *s, const struct ulid *conversation, const struct ulid *id,
                       store_message_fn *done, void *arg)
{
    struct store_message m;
    enum store_status status = message_get(s, conversation, id, &m);
    done(arg, status, status == STORE_OK ? &m : NULL);
}

/* ---- client keys ---- */

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

enum store_status once_look(struct store_txn *t, const struct store_change *c, enum once_kind kind,
                            struct store_answer *answer)
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

void once_put(struct store_txn *t, const struct store_change *c, enum once_kind kind,
              const struct store_answer *answer)
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

/* Add a message to ${v} as its last one. */
static bool message_write(struct store_txn *t, struct store_conversation *v,
                          const struct message_log_end *end, struct store_message *m,
                          struct message_record *r)
{
    m->created_at = t->now;
    if (!txn_ulid(t, &m->id))
        return false;
    message_log_next(end, r);
    r->role = (uint8_t)m->role;
    r->low_confidence = m->low_confidence;
    r->created_at = m->created_at;
    r->text_n = (uint32_t)m->text.n;
    r->citations_n = (uint32_t)m->citations.n;
    r->client_n = (uint16_t)m->client_id.n;
    r->url_n = (uint16_t)m->page_url.n;
    r->context_n = (uint32_t)m->page_context.n;
    v->last = m->id;
    v->messages++;
    char *to = message_log_put(t, &m->id, r);
    if (to == NULL)
        return false;
    to = append_str(append_str(append_str(to, m->text), m->citations), m->client_id);
    append_str(append_str(to, m->page_url), m->page_context);
    return true;
}

static bool well_formed(const struct store_change *c)
{
    return c->text.n > 0 && c->text.n <= STORE_TEXT_MAX && c->data.n <= STORE_TEXT_MAX &&
           c->url.n <= URL_MAX_BYTES && c->client_id.n <= ONCE_KEY_MAX &&
           c->answer.n <= STORE_TEXT_MAX && c->citations.n <= STORE_TEXT_MAX &&
           (c->idem_key.n == 0 || (c->idem_key.n == HASH_BYTES && c->idem_body.n == HASH_BYTES));
}

/* Checks that both kinds of messages share. */
static enum store_status message_begin(struct store_txn *t, const struct store_change *c,
                                       struct store_conversation *out, struct store_answer *answer)
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

static void message_end(struct store_txn *t, const struct store_change *c,
                        enum conversation_status before, struct store_conversation *v,
                        struct store_answer *answer)
{
    conversation_write(t, before, v);
    answer->code = c->code;
    answer->version = v->version;
    once_put(t, c, ONCE_IDEMPOTENCY, answer);
    once_put(t, c, ONCE_CLIENT_ID, answer);
}

enum store_status message_post(struct store_txn *t, const struct store_change *c,
                               struct store_answer *answer)
{
    struct store_conversation v;
    struct message_log_end end;
    struct message_record r;
    enum store_status status = c->workspace != 0 ? STORE_INVALID : message_begin(t, c, &v, answer);
    if (status != STORE_OK || answer->replayed)
        return status;
    enum conversation_status before = conversation_status(&v);
    struct store_message m = {.role = ROLE_OF_VISITOR,
                              .text = c->text,
                              .client_id = c->client_id,
                              .page_url = c->url,
                              .page_context = c->data};
    if (!message_log_end(t, &v.id, &v.last, &end) || !message_write(t, &v, &end, &m, &r))
        return t->error;
    answer->first = v.read = m.id;
    v.closed_at = 0; /* a new message reopens it */
    v.closed_by = 0;
    if (v.claimed_by == 0) {
        if (!message_log_follow(t, &end, &m.id, &r))
            return t->error;
        m = (struct store_message){.role = ROLE_OF_ASSISTANT,
                                   .text = c->answer,
                                   .citations = c->citations,
                                   .low_confidence = (c->fields & MESSAGE_LOW_CONFIDENCE) != 0};
        if (!message_write(t, &v, &end, &m, &r))
            return t->error;
        answer->second = m.id;
    }
    message_end(t, c, before, &v, answer);
    return STORE_OK;
}

enum store_status message_reply(struct store_txn *t, const struct store_change *c,
                                struct store_answer *answer)
{
    struct store_conversation v;
    struct message_log_end end;
    struct message_record r;
    enum store_status status = c->workspace == 0 ? STORE_INVALID : message_begin(t, c, &v, answer);
    if (status != STORE_OK || answer->replayed)
        return status;
    enum conversation_status before = conversation_status(&v);
    struct store_message m = {.role = ROLE_OF_OPERATOR, .text = c->text};
    if (!message_log_end(t, &v.id, &v.last, &end) || !message_write(t, &v, &end, &m, &r))
        return t->error;
    answer->first = m.id;
    message_end(t, c, before, &v, answer);
    return STORE_OK;
}
