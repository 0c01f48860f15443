#include "store/records/note.h"

#include "store/engine/cursor.h"
#include "store/engine/errors.h"
#include "store/engine/free_space.h"
#include "store/engine/snapshot.h"
#include "store/engine/txn.h"
#include "store/records/apply.h"
#include "store/records/conversation.h"
#include "store/records/once.h"
#include "store/records/ulid_keys.h"

/*
 * Notes of operators for each other. They have their own space and change nothing in the
 * conversation's record: no reader of messages can return one, and no version, count or event that
 * a visitor sees reveals one.
 */

static void note_key(struct key *k, const struct ulid *conversation, const struct ulid *id)
{
    key_of(k, SPACE_NOTE, conversation);
    key_ulid(k, id);
}

bool note_look(MDB_val k, MDB_val v, struct store_note *out)
{
    const struct note_record *r = v.mv_data;
    if (k.mv_size != 1 + 2 * ULID_BYTES || v.mv_size < sizeof(*r) ||
        v.mv_size != sizeof(*r) + (size_t)r->name_n + r->text_n)
        return false;
    const char *p = (const char *)(r + 1);
    *out = (struct store_note){.key = r->key,
                               .created_at = r->created_at,
                               .name = {p, r->name_n},
                               .text = {p + r->name_n, r->text_n}};
    memcpy(out->id.b, (const uint8_t *)k.mv_data + 1 + ULID_BYTES, ULID_BYTES);
    return true;
}

/* ---- reading ---- */

/* Move to the first note of the page: the newest below ${before}, or the oldest above ${after}. */
static enum store_status read_notes(struct store *s, const struct store_messages_query *q,
                                    struct cursor *w)
{
    MDB_txn *txn;
    struct key bound;
    enum store_status status = store_snapshot(s, &txn);
    key_of(&w->prefix, SPACE_NOTE, &q->conversation);
    if (status != STORE_OK)
        return status;
    note_key(&bound, &q->conversation, q->newest ? &q->before : &q->after);
    if (!q->newest) {
        key_bytes(&bound, "", 1); /* after that id */
        return cursor_from(s, txn, w, DB_WIDGET, &bound);
    }
    return ulid_none(&q->before) ? cursor_prefix(s, txn, w, DB_WIDGET, true)
                                 : cursor_below(s, txn, w, DB_WIDGET, &bound);
}

static bool is_within(const struct store_messages_query *q, const struct ulid *id)
{
    return memcmp(id->b, q->after.b, ULID_BYTES) > 0 &&
           (ulid_none(&q->before) || memcmp(id->b, q->before.b, ULID_BYTES) < 0);
}

void store_note_each(struct store *s, const struct store_messages_query *query, store_note_fn *each,
                     void *arg)
{
    struct cursor w = {0};
    struct store_note note;
    unsigned left = query->limit;
    enum store_status status = read_notes(s, query, &w);
    for (; status == STORE_OK; status = cursor_next(&w)) {
        if (!note_look(w.k, w.v, &note))
            status = store_corrupt(s, "a note");
        else if (!is_within(query, &note.id))
            status = STORE_NOT_FOUND;
        if (status != STORE_OK || left == 0)
            break;
        left--;
        each(arg, STORE_OK, &note);
    }
    cursor_end(&w);
    each(arg, status, NULL);
}

void store_note_get(struct store *s, const struct ulid *conversation, const struct ulid *id,
                    store_note_fn *done, void *arg)
{
    MDB_txn *txn;
    MDB_val v;
    struct key k;
    struct store_note note;
    note_key(&k, conversation, id);
    enum store_status status = store_snapshot(s, &txn);
    if (status == STORE_OK)
        status = store_get(s, txn, SPACE_NOTE, &k, &v);
    if (status == STORE_OK && !note_look(key_val(&k), v, &note))
        status = store_corrupt(s, "a note");
    done(arg, status, status == STORE_OK ? &note : NULL);
}

/* ---- changing ---- */

static bool well_formed(const struct store_change *c)
{
    return c->workspace != 0 && c->text.n > 0 && c->text.n <= STORE_TEXT_MAX &&
           c->name.n <= NAME_MAX_BYTES &&
           (c->idem_key.n == 0 || (c->idem_key.n == 32 && c->idem_body.n == 32));
}

static void note_put(struct store_txn *t, const struct store_change *c, const struct ulid *id,
                     struct str name)
{
    struct key k;
    const struct note_record r = {.key = c->id,
                                  .created_at = t->now,
                                  .name_n = (uint16_t)name.n,
                                  .text_n = (uint32_t)c->text.n};
    note_key(&k, &c->conversation, id);
    char *to = txn_reserve(t, SPACE_NOTE, &k, sizeof(r) + name.n + c->text.n);
    if (to == NULL)
        return;
    to = append_str(to, (struct str){(const char *)&r, sizeof(r)});
    append_str(append_str(to, name), c->text);
}

enum store_status note_post(struct store_txn *t, const struct store_change *c,
                            struct store_answer *answer)
{
    struct store_conversation v;
    if (!well_formed(c))
        return STORE_INVALID;
    enum store_status status = conversation_open(t, c, &v);
    if (status != STORE_OK)
        return status;
    status = once_look(t, c, ONCE_IDEMPOTENCY, answer);
    if (status != STORE_NOT_FOUND)
        return status;
    if (txn_is_full(t))
        return STORE_FULL;
    if (!txn_ulid(t, &answer->first))
        return t->error;
    bool claimed = v.claimed_by != 0 && v.claimed_by == c->id;
    note_put(t, c, &answer->first, c->name.n == 0 && claimed ? v.claimed_name : c->name);
    answer->code = c->code;
    once_put(t, c, ONCE_IDEMPOTENCY, answer);
    return t->error;
}
