#include "store/engine/cursor.h"
#include "store/engine/snapshot.h"
#include "store/engine/txn.h"

#include <errno.h>

void store_sender_note(struct store_txn *t, uint64_t sender, uint64_t sequence, struct str answers)
{
    struct key k;
    key_id(&k, SPACE_SENDER, sender);
    char *to = txn_reserve(t, SPACE_SENDER, &k, sizeof(sequence) + answers.n);
    if (to == NULL)
        return;
    memcpy(to, &sequence, sizeof(sequence));
    if (answers.n != 0)
        memcpy(to + sizeof(sequence), answers.p, answers.n);
}

enum store_status store_sender_get(struct store_txn *t, uint64_t sender, uint64_t *sequence,
                                   struct str *answers)
{
    struct key k;
    MDB_val v;
    key_id(&k, SPACE_SENDER, sender);
    enum store_status status = txn_get(t, SPACE_SENDER, &k, &v);
    if (status != STORE_OK)
        return status;
    if (v.mv_size < sizeof(*sequence))
        return txn_fail(t, 0, "a sender's row");
    memcpy(sequence, v.mv_data, sizeof(*sequence));
    *answers =
        (struct str){(const char *)v.mv_data + sizeof(*sequence), v.mv_size - sizeof(*sequence)};
    return STORE_OK;
}

void store_sender_drop(struct store_txn *t, uint64_t sender)
{
    struct key k;
    struct str answers;
    uint64_t sequence, dropped = 0;
    if (store_sender_get(t, sender, &sequence, &answers) != STORE_OK)
        return;
    key_id(&k, SPACE_SENDER, sender);
    txn_drop(t, SPACE_SENDER, &k);
    store_sender_get(t, 0, &dropped, &answers);
    store_sender_note(t, 0, dropped + 1, (struct str){0});
}

enum store_status store_senders_dropped(struct store *s, uint64_t *out)
{
    struct key k;
    MDB_val v;
    MDB_txn *txn;
    enum store_status status = store_snapshot(s, &txn);
    *out = 0;
    key_id(&k, SPACE_SENDER, 0);
    if (status == STORE_OK)
        status = store_get(s, txn, SPACE_SENDER, &k, &v);
    if (status == STORE_OK && v.mv_size >= sizeof(*out))
        memcpy(out, v.mv_data, sizeof(*out));
    return status == STORE_NOT_FOUND ? STORE_OK : status;
}

/* Gather the keys first: the caller may drop senders in ${each}. */
void store_sender_each(struct store_txn *t, store_sender_fn *each, void *arg)
{
    struct cursor w = {0};
    struct buf rows = {0};
    if (t->error != STORE_OK)
        return;
    enum store_status status = cursor_begin(t->s, t->mdb, &w, SPACE_SENDER);
    for (; status == STORE_OK; status = cursor_next(&w)) {
        uint64_t row[2];
        if (w.v.mv_size < sizeof(row[1]) || !cursor_u64(&w, 0, &row[0])) {
            txn_fail(t, 0, "a sender's row");
            break;
        }
        memcpy(&row[1], w.v.mv_data, sizeof(row[1]));
        buf_add(&rows, row, sizeof(row));
    }
    cursor_end(&w);
    if (!buf_ok(&rows))
        txn_fail(t, ENOMEM, "list the senders");
    for (size_t at = 0; t->error == STORE_OK && at < rows.n; at += 2 * sizeof(uint64_t)) {
        uint64_t row[2];
        memcpy(row, rows.p + at, sizeof(row));
        if (row[0] != 0)
            each(arg, row[0], row[1]);
    }
    buf_free(&rows);
}
