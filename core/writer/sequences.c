#include "core/writer/sequences.h"

#include "core/writer/grow.h"

#include <stdlib.h>
#include <string.h>

struct unconfirmed_answer {
    uint64_t sequence;
    struct store_answer answer;
};

/*
 * an earlier connection of the same sender that ended in this batch: its changes are not committed
 */
static struct client *earlier_of(const struct sequences *s, const struct client *client)
{
    const struct clients *c = s->clients;
    for (size_t i = 0; i < c->count; i++)
        if (c->list[i] != client && c->list[i]->id == client->id && c->list[i]->loaded)
            return c->list[i];
    return NULL;
}

static void take_over(struct client *client, struct client *earlier)
{
    buf_free(&client->unconfirmed);
    client->unconfirmed = earlier->unconfirmed;
    client->unconfirmed_committed = earlier->unconfirmed_committed;
    client->sequence = earlier->sequence;
    client->sequence_committed = earlier->sequence_committed;
    earlier->unconfirmed = (struct buf){0};
    earlier->unconfirmed_committed = 0;
    earlier->id = 0;
    /* no more of its changes are applied or saved */
    earlier->sequence = earlier->sequence_committed = UINT64_MAX;
}

/*
 * Were senders dropped since the first change that it repeats was sent? It may be one of them, and
 * what it repeats may be executed.
 */
static bool may_be_dropped(struct store_txn *txn, const struct client *client)
{
    struct str none;
    uint64_t dropped;
    return store_sender_get(txn, 0, &dropped, &none) == STORE_OK &&
           dropped > client->repeats.dropped;
}

void sequences_load(struct sequences *s, struct store_txn *txn, struct client *client)
{
    struct str answers;
    if (client->loaded)
        return;
    struct client *earlier = earlier_of(s, client);
    client->loaded = true;
    if (earlier != NULL)
        take_over(client, earlier);
    else if (store_sender_get(txn, client->id, &client->sequence, &answers) == STORE_OK) {
        buf_str(&client->unconfirmed, answers);
        client->unconfirmed_committed = client->unconfirmed.n / sizeof(struct unconfirmed_answer);
        client->sequence_committed = client->sequence;
    } else if (may_be_dropped(txn, client)) {
        client->sequence = client->sequence_committed = client->repeats.last;
    }
}

bool sequence_is_applied(const struct client *client, uint64_t sequence)
{
    return sequence <= client->sequence;
}

struct store_answer sequence_answer(const struct client *client, uint64_t sequence)
{
    const struct unconfirmed_answer *list = (const void *)client->unconfirmed.p;
    for (size_t i = 0; i < client->unconfirmed.n / sizeof(*list); i++)
        if (list[i].sequence == sequence)
            return list[i].answer;
    return (struct store_answer){.status = STORE_AWAY};
}

void sequence_record(struct client *client, uint64_t sequence, const struct store_answer *answer)
{
    struct unconfirmed_answer row = {sequence, *answer};
    client->sequence = sequence;
    buf_add(&client->unconfirmed, &row, sizeof(row));
}

void sequence_confirm(struct client *client, uint64_t sequence)
{
    struct unconfirmed_answer *list = (void *)client->unconfirmed.p;
    size_t count = client->unconfirmed.n / sizeof(*list), known = 0;
    while (known < client->unconfirmed_committed && list[known].sequence <= sequence)
        known++;
    if (known == 0)
        return;
    memmove(list, list + known, (count - known) * sizeof(*list));
    client->unconfirmed.n -= known * sizeof(*list);
    client->unconfirmed_committed -= known;
}

void sequences_save(struct sequences *s, struct store_txn *txn)
{
    for (size_t i = 0; i < s->clients->count; i++) {
        struct client *client = s->clients->list[i];
        if (client->sequence != client->sequence_committed)
            store_sender_note(txn, client->id, client->sequence, buf_view(&client->unconfirmed));
    }
    for (size_t i = 0; i < s->dropped_count; i++)
        if (!clients_has(s->clients, s->dropped[i])) /* it may have come back */
            store_sender_drop(txn, s->dropped[i]);
}

void sequences_settle(struct sequences *s, bool committed)
{
    for (size_t i = 0; i < s->clients->count; i++) {
        struct client *client = s->clients->list[i];
        if (committed) {
            client->sequence_committed = client->sequence;
            client->unconfirmed_committed =
                client->unconfirmed.n / sizeof(struct unconfirmed_answer);
        } else {
            client->sequence = client->sequence_committed;
            client->unconfirmed.n =
                client->unconfirmed_committed * sizeof(struct unconfirmed_answer);
        }
    }
    if (committed && s->dropped_count != 0) {
        s->dropped_count = 0;
        sequences_show(s);
    }
}

void sequences_show(struct sequences *s)
{
    uint64_t dropped;
    if (store_senders_dropped(s->store, &dropped) == STORE_OK)
        score_set(s->clients->process->scoreboard->senders_dropped, dropped);
    store_read_end(s->store);
}

bool sequences_pending(const struct sequences *s)
{
    return s->dropped_count != 0;
}

void sequences_depart(struct sequences *s, uint64_t id)
{
    s->departed =
        array_grow(s->departed, s->departed_count, &s->departed_room, sizeof(*s->departed));
    s->departed[s->departed_count++] = (struct departed_sender){id, clock_mono_ms()};
}

static void drop_unless_connected(void *arg, uint64_t id, uint64_t sequence)
{
    struct sequences *s = arg;
    (void)sequence;
    if (clients_has(s->clients, id))
        return;
    s->dropped = array_grow(s->dropped, s->dropped_count, &s->dropped_room, sizeof(*s->dropped));
    s->dropped[s->dropped_count++] = id;
}

void sequences_expire(struct sequences *s, uint64_t now_ms)
{
    size_t due = 0;
    for (; due < s->departed_count && now_ms - s->departed[due].at_ms >= SENDER_EXPIRY_MS; due++)
        drop_unless_connected(s, s->departed[due].id, 0);
    s->departed_count -= due;
    if (due != 0)
        memmove(s->departed, s->departed + due, s->departed_count * sizeof(*s->departed));
}

void sequences_expire_unknown(struct sequences *s)
{
    struct store_txn *txn;
    if (store_begin(s->store, &txn) != STORE_OK)
        return;
    store_sender_each(txn, drop_unless_connected, s);
    store_abort(txn);
}

void sequences_free(struct sequences *s)
{
    free(s->departed);
    free(s->dropped);
}
