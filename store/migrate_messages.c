#include "chain.h"
#include "migrate.h"

#include <errno.h>

/*
 * Format 2 kept messages under 'm', conversation, id, so that each conversation had a page of its own that changed with every message. Each
 * is put where chain.h says and its old row goes, conversation by conversation; how far that is lies in the store and is committed with it.
 */
#define TAG_2 'm'

struct PACKED moving {
    struct ulid conversation, last; /* the one under way, or done; its newest message that was moved */
    uint64_t messages;              /* of it that were */
};

static void moving_key(struct key *k)
{
    key_space(k, SPACE_META);
    key_bytes(k, "z", 1);
}

/* Did the walk arrive? One that failed says nothing of what is there, and what is not moved goes in the end. */
static bool arrived(struct store_txn *t, enum store_status status)
{
    if (status != STORE_OK && status != STORE_NOT_FOUND && t->error == STORE_OK)
        t->error = status;
    return status == STORE_OK && t->error == STORE_OK;
}

/* The oldest message of ${conversation} that was not moved: its key, and in t->copy its record. */
static bool old_first(struct store_txn *t, const struct ulid *conversation, struct key *k)
{
    struct walk w = {0};
    key_tag(&w.prefix, TAG_2);
    key_ulid(&w.prefix, conversation);
    bool found = t->error == STORE_OK && arrived(t, walk_prefix(t->s, t->mdb, &w, DB_WIDGET, false));
    k->n = 0;
    buf_reset(&t->copy);
    if (found) {
        key_bytes(k, w.k.mv_data, w.k.mv_size);
        buf_add(&t->copy, w.v.mv_data, w.v.mv_size);
    }
    walk_end(&w);
    if (found && !buf_ok(&t->copy))
        txn_fail(t, ENOMEM, "hold a message");
    return found && t->error == STORE_OK;
}

static void move_one(struct store_txn *t, struct moving *m, struct key *k)
{
    const struct message_record_2 *old = (const void *)t->copy.p;
    struct message_record r;
    struct chain_end end;
    struct ulid id;
    bool good = k->n == 1 + 2 * ULID_BYTES && t->copy.n >= sizeof(*old) && old->format == 2 && t->copy.n == sizeof(*old) + old->json_n;
    if (!good) {
        txn_fail(t, 0, "a message");
        return;
    }
    memcpy(id.b, k->b + 1 + ULID_BYTES, ULID_BYTES);
    if (!chain_end(t, &m->conversation, &m->last, &end))
        return;
    chain_next(&end, &r);
    r.role = old->role;
    r.renderer = old->renderer;
    r.json_n = old->json_n;
    r.result_at = old->result_at;
    r.result_n = old->result_n;
    char *to = chain_put(t, &id, &r);
    if (to == NULL)
        return;
    memcpy(to, old + 1, r.json_n);
    txn_del(t, SPACE_MESSAGE, k);
    m->last = id;
    m->messages = r.place;
}

static bool next_conversation(struct store_txn *t, struct moving *m)
{
    struct walk w = {0};
    struct key behind;
    key_space(&w.prefix, SPACE_CONVERSATION);
    key_of(&behind, SPACE_CONVERSATION, &m->conversation);
    key_bytes(&behind, "", 1);
    bool found = arrived(t, walk_from(t->s, t->mdb, &w, DB_WIDGET, &behind));
    if (found && w.k.mv_size != 1 + ULID_BYTES) {
        txn_fail(t, 0, "a conversation");
        found = false;
    }
    *m = (struct moving){.messages = 0};
    if (found)
        memcpy(m->conversation.b, (const uint8_t *)w.k.mv_data + 1, ULID_BYTES);
    walk_end(&w);
    return found;
}

/* Messages of no conversation: nobody could ever see them. */
static void drop_strays(struct store_txn *t)
{
    struct walk w = {0};
    struct key k = {.n = 1};
    key_tag(&w.prefix, TAG_2);
    while (k.n != 0 && t->error == STORE_OK) {
        k.n = 0;
        if (arrived(t, walk_prefix(t->s, t->mdb, &w, DB_WIDGET, false)))
            key_bytes(&k, w.k.mv_data, w.k.mv_size);
        walk_end(&w);
        if (k.n != 0)
            txn_del(t, SPACE_MESSAGE, &k);
    }
}

/* One that was half erased counts what is left from here on. */
static bool move_slice(struct store_txn *t, struct moving *m, size_t *count)
{
    struct key k;
    bool more = true;
    for (*count = 0; more && *count < MIGRATE_SLICE && t->error == STORE_OK; ++*count) {
        if (!ulid_none(&m->conversation) && old_first(t, &m->conversation, &k)) {
            move_one(t, m, &k);
            continue;
        }
        if (!ulid_none(&m->conversation))
            conversation_recount(t, &m->conversation, &m->last, m->messages);
        more = next_conversation(t, m);
    }
    moving_key(&k);
    if (more)
        txn_put(t, SPACE_META, &k, m, sizeof(*m));
    else
        txn_drop(t, SPACE_META, &k);
    return more;
}

static uint64_t records_about(struct store *s)
{
    MDB_txn *txn;
    MDB_stat stat = {0};
    if (store_snapshot(s, &txn) == STORE_OK)
        mdb_stat(txn, s->dbi[DB_WIDGET], &stat);
    store_read_end(s);
    return stat.ms_entries;
}

/* What was rendered up to some old key begins again: what is of this renderer already is passed over. */
static void end_step(struct store_txn *t, struct format_record *f)
{
    drop_strays(t);
    f->widget_pass = f->widget_after_n = 0;
    migrate_note_step(t, f, 3);
}

enum store_status migrate_messages(struct store *s, const struct store_options *o, struct format_record *f)
{
    uint64_t done = 0, total = records_about(s);
    for (bool more = true; more;) {
        struct store_txn *t;
        struct moving m = {.messages = 0};
        struct key k;
        MDB_val v = {0, NULL};
        size_t count;
        enum store_status status = store_begin(s, &t);
        if (status != STORE_OK)
            return status;
        moving_key(&k);
        if (txn_get(t, SPACE_META, &k, &v) == STORE_OK && v.mv_size == sizeof(m))
            memcpy(&m, v.mv_data, sizeof(m));
        else if (t->error == STORE_OK && v.mv_size != 0)
            txn_fail(t, 0, "the record of what was moved");
        more = move_slice(t, &m, &count);
        if (!more)
            end_step(t, f);
        status = store_commit(t);
        done += count;
        if (status != STORE_OK || (more && !migrate_go_on(s, o, done, total)))
            return status != STORE_OK ? status : STORE_IO;
    }
    return STORE_OK;
}
