/*
 * A change that is sent again is executed once, also after the store has dropped its sender. Each
 * client here is one connection of sender 7.
 */
#include "core/writer/sequences.h"
#include "t/kit/store.h"
#include "t/kit/suite.h"

enum { SENDER = 7, OTHER = 9 };

static struct kit k;
static uint64_t w;
static struct scoreboard scoreboard;
static struct process process = {.scoreboard = &scoreboard};
static struct client *list[1];
static struct clients clients = {.process = &process, .list = list};
static struct sequences sequences;

static void setup(void)
{
    kit_open(&k);
    w = kit_workspace(&k, "acme");
    clients.count = 0;
    sequences = (struct sequences){.clients = &clients, .store = k.s};
    scoreboard.senders_dropped = 0;
}

static void teardown(void)
{
    sequences_free(&sequences);
    kit_close(&k);
}

static void connect_as(struct client *client, uint64_t id, struct frame_repeats repeats)
{
    *client = (struct client){.id = id, .repeats = repeats};
    list[0] = client;
    clients.count = 1;
}

static void disconnect(struct client *client)
{
    clients.count = 0;
    buf_free(&client->unconfirmed);
}

/* A transaction with this change, as in core/writer/batch.c. */
static struct store_answer try(struct client *client, uint64_t sequence, bool commits)
{
    struct store_txn *t;
    struct store_answer answer = {0};
    const struct store_change change = kit_create_change(w, "https://a.com/", "a.com");
    ck_status(store_begin(k.s, &t), STORE_OK);
    sequences_load(&sequences, t, client);
    if (sequence_is_applied(client, sequence)) {
        answer = sequence_answer(client, sequence);
    } else {
        store_apply(t, &change, k.now, &answer);
        sequence_record(client, sequence, &answer);
    }
    sequences_save(&sequences, t);
    if (commits)
        ck_status(store_commit(t), STORE_OK);
    else
        store_abort(t);
    sequences_settle(&sequences, commits);
    return answer;
}

static enum store_status execute(struct client *client, uint64_t sequence)
{
    return try(client, sequence, true).status;
}

/* A minute after it left. */
static void drop(uint64_t id)
{
    struct store_txn *t;
    sequences_depart(&sequences, id);
    sequences_expire(&sequences, clock_mono_ms() + SENDER_EXPIRY_MS);
    ck_assert(sequences_pending(&sequences));
    ck_status(store_begin(k.s, &t), STORE_OK);
    sequences_save(&sequences, t);
    ck_status(store_commit(t), STORE_OK);
    sequences_settle(&sequences, true);
}

static uint64_t dropped(void)
{
    uint64_t count;
    ck_status(store_senders_dropped(k.s, &count), STORE_OK);
    store_read_end(k.s);
    ck_assert_uint_eq(count, scoreboard.senders_dropped);
    return count;
}

static uint64_t executed(void)
{
    struct store_usage u;
    ck_status(store_usage(k.s, &u), STORE_OK);
    store_read_end(k.s);
    return u.reports;
}

START_TEST(a_repeat_gets_the_same_answer_while_its_sender_is_known)
{
    struct client client;
    connect_as(&client, SENDER, (struct frame_repeats){0});
    const struct store_answer first = try(&client, 1, true);
    disconnect(&client);
    connect_as(&client, SENDER, (struct frame_repeats){1, 0});
    const struct store_answer again = try(&client, 1, true);
    ck_status(again.status, STORE_OK);
    ck_assert_uint_eq(again.id, first.id);
    ck_assert_uint_eq(executed(), 1);
    disconnect(&client);
}
END_TEST

START_TEST(a_repeat_is_not_executed_after_its_sender_was_dropped)
{
    struct client client;
    connect_as(&client, SENDER, (struct frame_repeats){0});
    ck_status(execute(&client, 1), STORE_OK);
    disconnect(&client);
    drop(SENDER);
    ck_assert_uint_eq(dropped(), 1);
    connect_as(&client, SENDER, (struct frame_repeats){1, 0});
    ck_status(execute(&client, 1), STORE_AWAY);
    ck_assert_uint_eq(executed(), 1);
    ck_status(execute(&client, 2), STORE_OK); /* it is new */
    ck_assert_uint_eq(executed(), 2);
    disconnect(&client);
}
END_TEST

/* The connection is lost after the first of two changes that it repeats. */
START_TEST(no_repeat_is_executed_on_the_next_connection_either)
{
    struct client client;
    const struct frame_repeats repeats = {2, 0};
    connect_as(&client, SENDER, (struct frame_repeats){0});
    ck_status(execute(&client, 1), STORE_OK);
    ck_status(execute(&client, 2), STORE_OK);
    disconnect(&client);
    drop(SENDER);
    for (int i = 0; i < 2; i++) {
        connect_as(&client, SENDER, repeats);
        ck_status(execute(&client, 1), STORE_AWAY);
        disconnect(&client);
    }
    connect_as(&client, SENDER, repeats);
    ck_status(execute(&client, 2), STORE_AWAY);
    ck_assert_uint_eq(executed(), 2);
    disconnect(&client);
}
END_TEST

START_TEST(no_repeat_is_executed_after_a_transaction_that_failed)
{
    struct client client;
    connect_as(&client, SENDER, (struct frame_repeats){0});
    ck_status(execute(&client, 1), STORE_OK);
    disconnect(&client);
    drop(SENDER);
    connect_as(&client, SENDER, (struct frame_repeats){1, 0});
    try(&client, 1, false);
    try(&client, 2, false);
    ck_status(execute(&client, 1), STORE_AWAY);
    ck_assert_uint_eq(executed(), 1);
    disconnect(&client);
}
END_TEST

/* The leader before has died with it: others were dropped before it was sent, and none since. */
START_TEST(a_repeat_of_an_unknown_sender_is_executed_if_none_was_dropped_since)
{
    struct client client;
    connect_as(&client, OTHER, (struct frame_repeats){0});
    ck_status(execute(&client, 1), STORE_OK);
    disconnect(&client);
    drop(OTHER);
    connect_as(&client, SENDER, (struct frame_repeats){1, dropped()});
    ck_status(execute(&client, 1), STORE_OK);
    ck_assert_uint_eq(executed(), 2);
    disconnect(&client);
}
END_TEST

START_TEST(a_sender_that_changed_nothing_is_not_counted)
{
    drop(SENDER);
    ck_assert_uint_eq(dropped(), 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("sequences");
    TCase *tcase = tcase_create("sequences");
    suite_add_tcase(suite, tcase);
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, a_repeat_gets_the_same_answer_while_its_sender_is_known);
    tcase_add_test(tcase, a_repeat_is_not_executed_after_its_sender_was_dropped);
    tcase_add_test(tcase, no_repeat_is_executed_on_the_next_connection_either);
    tcase_add_test(tcase, no_repeat_is_executed_after_a_transaction_that_failed);
    tcase_add_test(tcase, a_repeat_of_an_unknown_sender_is_executed_if_none_was_dropped_since);
    tcase_add_test(tcase, a_sender_that_changed_nothing_is_not_counted);
    return suite_run(suite);
}
