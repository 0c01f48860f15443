#include "store/records/message_log.h"

#include "store/engine/errors.h"
#include "store/engine/free_space.h"
#include "store/engine/snapshot.h"
#include "store/engine/txn.h"
#include "store/records/ulid_keys.h"

/*
 * Skip pointers (Myers, An applicative random-access stack, 1983): if the last two jumps are
 * equally long, the next jump is as long as both together plus one; otherwise it leads to the
 * previous message. Any place is reached in a logarithmic number of steps by taking the jump if it
 * is not too far. In an old conversation each step may be a read from the disk: a page of messages
 * costs at most as many reads as it has messages.
 */

static void message_key(struct key *k, const struct ulid *id)
{
    key_of(k, SPACE_MESSAGE, id);
}

static bool well_formed(MDB_val value)
{
    const struct message_record *r = value.mv_data;
    return value.mv_size >= sizeof(*r) && value.mv_size == sizeof(*r) + message_log_bytes(r) &&
           r->place != 0 && r->jump_place < r->place && r->role <= ROLE_OF_OPERATOR;
}

bool message_log_look(MDB_val k, MDB_val v, struct logged_message *out)
{
    if (k.mv_size != 1 + ULID_BYTES || !well_formed(v))
        return false;
    memcpy(out->id.b, (const uint8_t *)k.mv_data + 1, ULID_BYTES);
    out->record = v.mv_data;
    return true;
}

/* ---- reading ---- */

enum store_status message_log_get(struct store *s, MDB_txn *txn, const struct ulid *conversation,
                                  const struct ulid *id, struct logged_message *out)
{
    struct key k;
    MDB_val v;
    message_key(&k, id);
    enum store_status status = store_get(s, txn, SPACE_MESSAGE, &k, &v);
    if (status != STORE_OK)
        return status;
    if (!message_log_look(key_val(&k), v, out))
        return store_corrupt(s, "a message");
    return memcmp(out->record->conversation.b, conversation->b, ULID_BYTES) == 0 ? STORE_OK
                                                                                 : STORE_NOT_FOUND;
}

/*
 * Move to the message at ${place}, which ${at} names as ${id}. Its place is lower, so a damaged
 * store causes no endless loop.
 */
static enum store_status go(struct store *s, MDB_txn *txn, struct logged_message *at,
                            struct ulid id, uint64_t place)
{
    struct logged_message next;
    const struct ulid conversation = at->record->conversation;
    if (place == 0)
        return STORE_NOT_FOUND;
    enum store_status status = message_log_get(s, txn, &conversation, &id, &next);
    if (status == STORE_NOT_FOUND ||
        (status == STORE_OK &&
         (next.record->place != place || memcmp(id.b, at->id.b, ULID_BYTES) >= 0)))
        return store_corrupt(s, "the order of a conversation's messages");
    *at = next;
    return status;
}

enum store_status message_log_before(struct store *s, MDB_txn *txn, struct logged_message *at)
{
    return go(s, txn, at, at->record->before, at->record->place - 1);
}

static enum store_status jump(struct store *s, MDB_txn *txn, struct logged_message *at)
{
    return go(s, txn, at, at->record->jump, at->record->jump_place);
}

enum store_status message_log_at(struct store *s, MDB_txn *txn, struct logged_message *at,
                                 uint64_t place)
{
    enum store_status status = STORE_OK;
    while (status == STORE_OK && at->record->place > place)
        status =
            at->record->jump_place >= place ? jump(s, txn, at) : message_log_before(s, txn, at);
    return status;
}

enum store_status message_log_below(struct store *s, MDB_txn *txn, struct logged_message *at,
                                    const struct ulid *bound)
{
    enum store_status status = STORE_OK;
    while (status == STORE_OK && memcmp(at->id.b, bound->b, ULID_BYTES) >= 0) {
        bool far =
            at->record->jump_place == 0 || memcmp(at->record->jump.b, bound->b, ULID_BYTES) < 0;
        status = far ? message_log_before(s, txn, at) : jump(s, txn, at);
    }
    return status;
}

/* ---- changing ---- */

static bool read_one(struct store_txn *t, const struct ulid *conversation, const struct ulid *id,
                     uint64_t place, struct message_record *out)
{
    struct logged_message at;
    enum store_status status =
        t->error != STORE_OK ? t->error : message_log_get(t->s, t->mdb, conversation, id, &at);
    if (status == STORE_OK && (place == 0 || at.record->place == place))
        *out = *at.record;
    else
        txn_fail(t, 0, "the order of a conversation's messages");
    return t->error == STORE_OK;
}

static bool read_back(struct store_txn *t, struct message_log_end *end)
{
    const struct ulid conversation = end->last.conversation, jump = end->last.jump;
    end->back.place = 0;
    return end->last.jump_place == 0 ||
           read_one(t, &conversation, &jump, end->last.jump_place, &end->back);
}

bool message_log_end(struct store_txn *t, const struct ulid *conversation, const struct ulid *last,
                     struct message_log_end *out)
{
    out->id = *last;
    out->last = out->back = (struct message_record){.conversation = *conversation};
    return ulid_none(last) || (read_one(t, conversation, last, 0, &out->last) && read_back(t, out));
}

void message_log_next(const struct message_log_end *end, struct message_record *out)
{
    const struct message_record *a = &end->last, *b = &end->back;
    bool both = b->place != 0 && a->place - a->jump_place == a->jump_place - b->jump_place;
    *out = (struct message_record){.conversation = a->conversation,
                                   .before = end->id,
                                   .place = a->place + 1,
                                   .jump = both ? b->jump : end->id,
                                   .jump_place = both ? b->jump_place : a->place};
}

bool message_log_follow(struct store_txn *t, struct message_log_end *end, const struct ulid *id,
                        const struct message_record *r)
{
    const struct message_record before = end->last;
    end->id = *id;
    end->last = *r;
    if (r->jump_place != before.place)
        return read_back(t, end);
    end->back = before;
    return true;
}

char *message_log_put(struct store_txn *t, const struct ulid *id, const struct message_record *r)
{
    struct key k;
    message_key(&k, id);
    char *to = txn_reserve(t, SPACE_MESSAGE, &k, sizeof(*r) + message_log_bytes(r));
    if (to == NULL)
        return NULL;
    memcpy(to, r, sizeof(*r));
    return to + sizeof(*r);
}

/* Newest first, so that the rest stays complete. */
void message_log_remove(struct store_txn *t, struct store_conversation *c, uint64_t *left)
{
    while (*left > 0 && t->error == STORE_OK && !ulid_none(&c->last)) {
        struct logged_message at;
        struct key k;
        if (message_log_get(t->s, t->mdb, &c->id, &c->last, &at) != STORE_OK) {
            txn_fail(t, 0, "the order of a conversation's messages");
            return;
        }
        message_key(&k, &c->last);
        c->last = at.record->before;
        c->messages = at.record->place - 1;
        txn_del(t, SPACE_MESSAGE, &k);
        txn_spend(t, left);
    }
}
