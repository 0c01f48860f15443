/*
 * Typing notices between the writers of a cluster's nodes: their frames, who may send them, how
 * many, and to whom the leader sends them.
 */
#include "core/writer/typing_notices.h"
#include "t/kit/suite.h"

#include <check.h>

#define NOW UINT64_C(1000000)

static const struct ulid id = {.b = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16}};

static struct frame frame_of(uint64_t left_ms, uint64_t who, size_t bytes)
{
    static const char payload[ULID_BYTES * 2] = "0123456789abcdef";
    return (struct frame){{(uint32_t)bytes, FRAME_TYPING, left_ms, who}, {payload, bytes}};
}

/* ---- frames ---- */

START_TEST(a_notice_arrives_as_it_was_sent)
{
    static const unsigned lasting[] = {0, 1, TYPING_MS};
    struct channel out = {.fd = -1};
    struct frame frame;
    for (unsigned i = 0; i < 6; i++) {
        const struct typing_notice sent = {id, (enum typist)(i % TYPISTS), lasting[i / TYPISTS]};
        struct typing_notice got;
        typing_notice_put(&out, &sent);
        ck_assert_int_eq(channel_next(&(struct channel){.in = out.out}, &frame), 1);
        ck_assert_uint_eq(frame.head.type, FRAME_TYPING);
        ck_assert(typing_notice_get(&frame, &got));
        ck_assert(ulid_eq(&got.conversation, &id) && got.who == sent.who);
        ck_assert_uint_eq(got.left_ms, sent.left_ms);
        buf_reset(&out.out);
    }
    buf_free(&out.out);
}
END_TEST

static const struct {
    uint64_t left_ms, who;
    size_t bytes;
} invalid[] = {
    {TYPING_MS + 1, 0, ULID_BYTES},
    {UINT64_MAX, 0, ULID_BYTES},
    {UINT64_C(1) << 32, 0, ULID_BYTES},
    {TYPING_MS, TYPISTS, ULID_BYTES},
    {TYPING_MS, UINT64_C(1) << 32, ULID_BYTES},
    {TYPING_MS, UINT64_MAX, ULID_BYTES},
    {TYPING_MS, 0, 0},
    {TYPING_MS, 0, ULID_BYTES - 1},
    {TYPING_MS, 0, ULID_BYTES + 1},
    {TYPING_MS, 0, ULID_BYTES * 2},
};

START_TEST(an_invalid_notice_is_refused)
{
    struct typing_notice got;
    struct client worker = {.role = ROLE_WORKER};
    struct frame frame = frame_of(invalid[_i].left_ms, invalid[_i].who, invalid[_i].bytes);
    ck_assert(!typing_notices_get(&worker, &frame, &got));
}
END_TEST

static const struct {
    struct client client;
    bool may;
} senders[] = {
    {{.role = ROLE_WORKER}, true},
    {{.role = ROLE_NODE, .wants_notices = true}, true},
    {{.role = ROLE_NODE}, false},
    {{.role = ROLE_COMMAND}, false},
};

START_TEST(workers_and_connections_for_notices_may_send_them)
{
    struct typing_notice got;
    const struct frame frame = frame_of(TYPING_MS, TYPIST_VISITOR, ULID_BYTES);
    ck_assert_int_eq(typing_notices_get(&senders[_i].client, &frame, &got), senders[_i].may);
}
END_TEST

/* ---- bounds ---- */

START_TEST(notices_for_a_slow_reader_are_dropped)
{
    const struct typing_notice notice = {id, TYPIST_OPERATOR, TYPING_MS};
    struct channel slow = {.fd = -1};
    for (int i = 0; i < 100000; i++)
        typing_notice_put(&slow, &notice);
    ck_assert_uint_ge(channel_pending(&slow), TYPING_NOTICE_PENDING);
    ck_assert_uint_lt(channel_pending(&slow), TYPING_NOTICE_PENDING + 100);
    buf_free(&slow.out);
}
END_TEST

static size_t admitted(struct client *client, uint64_t now_ms, size_t sent)
{
    size_t n = 0;
    for (size_t i = 0; i < sent; i++)
        n += typing_notices_count(client, now_ms);
    return n;
}

START_TEST(a_client_sends_so_many_a_second)
{
    struct client client = {0};
    ck_assert_uint_eq(admitted(&client, NOW, NOTICES_A_SECOND - 1), NOTICES_A_SECOND - 1);
    ck_assert_uint_eq(admitted(&client, NOW + 999, 100000), 1);
    ck_assert_uint_eq(admitted(&client, NOW + 1000, 100000), NOTICES_A_SECOND);
    ck_assert_uint_eq(admitted(&client, NOW + 1999, 10), 0);
    ck_assert_uint_eq(admitted(&client, NOW + 5000, 10), 10);
}
END_TEST

/* ---- tables and nodes ---- */

START_TEST(a_notice_shows_until_its_time_is_over)
{
    struct process process = {.typing = typing_table_new()};
    struct typing_notice notice = {id, TYPIST_OPERATOR, 300};
    ck_assert_ptr_nonnull(process.typing);
    typing_notices_show(&process, &notice, NOW);
    ck_assert(typing_table_is_typing(process.typing, &id, TYPIST_OPERATOR, NOW + 299));
    ck_assert(!typing_table_is_typing(process.typing, &id, TYPIST_OPERATOR, NOW + 300));
    ck_assert(!typing_table_is_typing(process.typing, &id, TYPIST_VISITOR, NOW));
    notice.left_ms = 0;
    typing_notices_show(&process, &notice, NOW + 1);
    ck_assert(!typing_table_is_typing(process.typing, &id, TYPIST_OPERATOR, NOW + 1));
    typing_table_free(process.typing);
}
END_TEST

START_TEST(the_leader_tells_every_other_node_once)
{
    struct client from = {.role = ROLE_NODE, .wants_notices = true}, node = from, gone = from,
                  sender = {.role = ROLE_NODE}, worker = {.role = ROLE_WORKER};
    struct client *list[] = {&worker, &from, &sender, &gone, &node};
    struct clients clients = {.list = list, .count = 5};
    const struct typing_notice notice = {id, TYPIST_VISITOR, TYPING_MS};
    struct frame frame;
    gone.gone = true;
    typing_notices_tell(&clients, &from, &notice);
    for (size_t i = 0; i < 4; i++)
        ck_assert_uint_eq(channel_pending(&list[i]->channel), 0);
    node.channel.in = node.channel.out;
    ck_assert_int_eq(channel_next(&node.channel, &frame), 1);
    ck_assert_uint_eq(frame.head.type, FRAME_TYPING);
    ck_assert_int_eq(channel_next(&node.channel, &frame), 0);
    buf_free(&node.channel.out);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("typing_notices");
    TCase *tcase = tcase_create("notices");
    tcase_add_test(tcase, a_notice_arrives_as_it_was_sent);
    tcase_add_loop_test(tcase, an_invalid_notice_is_refused, 0,
                        (int)(sizeof(invalid) / sizeof(invalid[0])));
    tcase_add_loop_test(tcase, workers_and_connections_for_notices_may_send_them, 0,
                        (int)(sizeof(senders) / sizeof(senders[0])));
    tcase_add_test(tcase, notices_for_a_slow_reader_are_dropped);
    tcase_add_test(tcase, a_client_sends_so_many_a_second);
    tcase_add_test(tcase, a_notice_shows_until_its_time_is_over);
    tcase_add_test(tcase, the_leader_tells_every_other_node_once);
    suite_add_tcase(suite, tcase);
    return suite_run(suite);
}
