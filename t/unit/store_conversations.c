/*
 * Visitors, conversations, messages, leads, events and ratings in the store: each once, isolated by
 * workspace, in order. Notes are in store_notes.c.
 */
#include "t/kit/store_widget.h"

#include "store/records/ulid_keys.h"

/* ---- visitors ---- */

START_TEST(a_new_visitor_gets_a_new_conversation)
{
    struct visitor a = visitor_new(), b = visitor_new();
    ck_assert(!ulid_eq(&a.id, &b.id) && !ulid_eq(&a.conversation, &b.conversation));
    ck_status(session(&agent, &a.id, &a.conversation), STORE_OK);
    ck_status(session(&agent, &a.id, &b.conversation), STORE_NOT_FOUND);
    ck_status(session(&agent, &b.id, &a.conversation), STORE_NOT_FOUND);
    ck_status(session(&a.id, &a.id, &a.conversation), STORE_NOT_FOUND);
}
END_TEST

START_TEST(a_known_visitor_continues_for_a_day)
{
    char next[32];
    struct visitor v = visitor_new();
    struct store_conversation c = {.version = 0};
    kit.now += DAY - 1;
    struct store_answer a = init_try(&agent, v.secret, next);
    ck_assert(a.status == STORE_OK && a.code == 0 && ulid_eq(&a.first, &v.conversation) &&
              ulid_eq(&a.second, &v.id));
    store_visitor_resume(kit.s, &agent, (const uint8_t *)v.secret, kit.now - DAY, note_conversation,
                         &c);
    ck_assert(ulid_eq(&c.id, &v.conversation));
    kit.now += 1;
    store_visitor_resume(kit.s, &agent, (const uint8_t *)v.secret, kit.now - DAY, note_conversation,
                         &c);
    ck_assert_uint_eq(c.version, 0);
    store_read_end(kit.s);
    a = init_try(&agent, v.secret, next);
    ck_assert(a.status == STORE_OK && a.code == 0 && !ulid_eq(&a.first, &v.conversation) &&
              ulid_eq(&a.second, &v.id));
    struct store_answer again = init_try(&agent, v.secret, next);
    ck_assert(ulid_eq(&again.first, &a.first));
}
END_TEST

START_TEST(a_visitor_does_not_continue_a_conversation_it_closed)
{
    char next[32];
    struct visitor v = visitor_new();
    ck_status(set(&v, CONVERSATION_SET_CLOSED).status, STORE_OK);
    struct store_answer a = init_try(&agent, v.secret, next);
    ck_assert(a.code == 0 && ulid_eq(&a.second, &v.id) && !ulid_eq(&a.first, &v.conversation));
}
END_TEST

START_TEST(a_visitor_continues_a_conversation_an_operator_closed)
{
    char next[32];
    struct visitor v = visitor_new();
    ck_status(operate(7, &v.conversation, CONVERSATION_SET_CLOSED).status, STORE_OK);
    struct store_answer a = init_try(&agent, v.secret, next);
    ck_assert(a.code == 0 && ulid_eq(&a.first, &v.conversation));
    ck_assert_uint_eq(conversation(&v.conversation).closed_by, 7);
    ck_status(set(&v, CONVERSATION_SET_CLOSED).status, STORE_OK);
    a = init_try(&agent, v.secret, next);
    ck_assert(!ulid_eq(&a.first, &v.conversation));
}
END_TEST

START_TEST(a_secret_is_valid_for_its_agent_only)
{
    char next[32];
    struct ulid other = agent_new(workspace);
    struct visitor v = visitor_new();
    struct store_answer a = init_try(&other, v.secret, next);
    ck_assert(a.code == 1 && !ulid_eq(&a.second, &v.id));
}
END_TEST

/* ---- messages ---- */

START_TEST(a_message_and_its_answer_are_stored_in_order)
{
    struct visitor v = visitor_new();
    struct store_answer a = post(&v, "one");
    ck_status(a.status, STORE_OK);
    kit.now -= 5000; /* a clock set back */
    struct store_answer b = post(&v, "two");
    ck_assert(memcmp(a.first.b, a.second.b, 16) < 0 && memcmp(a.second.b, b.first.b, 16) < 0 &&
              memcmp(b.first.b, b.second.b, 16) < 0);
    struct texts t = messages(&v.conversation, NULL, NULL, false, 10);
    ck_assert_uint_eq(t.count, 4);
    ck_assert_str_eq(t.text[0], "message 0 one");
    ck_assert_str_eq(t.text[1], "message 1 found nothing");
    ck_assert_str_eq(t.text[2], "message 0 two");
    struct store_conversation c = conversation(&v.conversation);
    ck_assert(c.messages == 4 && ulid_eq(&c.last, &b.second) && c.version == 3);
}
END_TEST

START_TEST(pages_of_messages_skip_and_repeat_nothing)
{
    struct visitor v = visitor_new(), other = visitor_new();
    for (int i = 0; i < 5; i++) {
        post(&v, "mine");
        post(&other, "not mine");
    }
    struct texts all = messages(&v.conversation, NULL, NULL, false, 60);
    ck_assert(all.count == 10 && all.end == STORE_NOT_FOUND);
    for (unsigned size = 1; size <= 11; size++) {
        struct ulid at = {{0}};
        size_t seen = 0;
        enum store_status more = STORE_OK;
        while (more == STORE_OK) {
            struct texts page = messages(&v.conversation, &at, NULL, false, size);
            for (size_t i = 0; i < page.count; i++)
                ck_assert(ulid_eq(&page.id[i], &all.id[seen++]));
            at = all.id[seen - 1];
            more = page.end;
        }
        ck_assert_uint_eq(seen, 10);
        struct ulid *before = NULL;
        for (seen = 10, more = STORE_OK; more == STORE_OK;) {
            struct texts page = messages(&v.conversation, NULL, before, true, size);
            for (size_t i = 0; i < page.count; i++)
                ck_assert(ulid_eq(&page.id[i], &all.id[--seen]));
            before = &all.id[seen];
            more = page.end;
        }
        ck_assert_uint_eq(seen, 0);
    }
    struct texts between = messages(&v.conversation, &all.id[2], &all.id[5], false, 60);
    ck_assert(between.count == 2 && ulid_eq(&between.id[0], &all.id[3]) &&
              between.end == STORE_NOT_FOUND);
    between = messages(&v.conversation, &all.id[2], &all.id[5], true, 1);
    ck_assert(between.count == 1 && ulid_eq(&between.id[0], &all.id[4]) && between.end == STORE_OK);
}
END_TEST

START_TEST(a_page_includes_the_message_at_its_byte_limit_and_a_list_excludes_it)
{
    struct visitor v = visitor_new();
    for (int i = 0; i < 5; i++)
        post(&v, "twenty bytes of text");
    struct texts all = messages(&v.conversation, NULL, NULL, false, 60);
    size_t first = strlen("twenty bytes of text"),
           both = first + strlen(all.text[1]) - strlen("message 1 ");
    const struct {
        size_t bytes, count;
    } pages[] = {{0, 10},   {1, 1},        {first, 1},  {first + 1, 2},
                 {both, 2}, {both + 1, 3}, {100000, 10}};
    for (size_t i = 0; i < sizeof(pages) / sizeof(pages[0]); i++) {
        struct texts t = {.count = 0};
        const struct store_messages_query q = {
            .conversation = v.conversation, .limit = 60, .bytes = pages[i].bytes};
        store_message_each(kit.s, &q, note_message, &t);
        ck_assert_uint_eq(t.count, pages[i].count);
        ck_assert_int_eq(t.end, t.count < 10 ? STORE_OK : STORE_NOT_FOUND);
    }
    store_read_end(kit.s);
    for (int i = 0; i < 3; i++)
        visitor_new();
    for (size_t most = 0; most <= 5; most++) {
        rows_most = most;
        struct texts t = rows(ROWS_CONVERSATIONS, (struct store_rows_query){.limit = 50});
        ck_assert_uint_eq(t.count, most < 4 ? most : 4);
        ck_assert_int_eq(t.end, t.count < 4 ? STORE_OK : STORE_NOT_FOUND);
    }
    rows_most = SIZE_MAX;
}
END_TEST

START_TEST(a_repeated_client_id_gets_the_first_answer)
{
    struct visitor v = visitor_new(), other = visitor_new();
    struct store_change c = {.kind = CHANGE_MESSAGE_POST,
                             OF(&v),
                             .text = STR("one"),
                             .client_id = STR("c-1"),
                             .answer = STR("a"),
                             .code = 200};
    struct store_answer first = kit_apply(&kit, &c);
    c.text = STR("another text");
    kit.now += 100 * DAY;
    struct store_answer again = kit_apply(&kit, &c);
    ck_assert(again.status == STORE_OK && again.replayed && ulid_eq(&again.first, &first.first) &&
              ulid_eq(&again.second, &first.second));
    ck_assert_uint_eq(messages(&v.conversation, NULL, NULL, false, 10).count, 2);
    c = (struct store_change){.kind = CHANGE_MESSAGE_POST,
                              OF(&other),
                              .text = STR("one"),
                              .client_id = STR("c-1"),
                              .answer = STR("a"),
                              .code = 200};
    ck_assert_uint_eq(kit_apply(&kit, &c).replayed, 0);
}
END_TEST

START_TEST(an_idempotency_key_is_valid_for_a_day_and_one_body)
{
    struct visitor v = visitor_new();
    char key[32] = "key", body[32] = "body", else_[32] = "another";
    struct store_change c = {.kind = CHANGE_MESSAGE_POST,
                             OF(&v),
                             .text = STR("one"),
                             .answer = STR("a"),
                             .code = 200,
                             .idem_key = {key, 32},
                             .idem_body = {body, 32}};
    struct store_answer first = kit_apply(&kit, &c), again = kit_apply(&kit, &c);
    ck_assert(again.status == STORE_OK && again.replayed && again.code == 200 &&
              ulid_eq(&again.first, &first.first));
    c.idem_body.p = else_;
    ck_status(kit_status(&kit, &c), STORE_KEY_REUSED);
    ck_assert_uint_eq(messages(&v.conversation, NULL, NULL, false, 10).count, 2);
    kit.now += DAY + 1;
    again = kit_apply(&kit, &c);
    ck_assert(again.status == STORE_OK && !again.replayed && !ulid_eq(&again.first, &first.first));
}
END_TEST

START_TEST(the_agent_is_silent_during_a_claim)
{
    struct visitor v = visitor_new();
    ck_status(operate(7, &v.conversation, CONVERSATION_SET_CLAIMED).status, STORE_OK);
    struct store_answer a = post(&v, "hello");
    ck_assert(a.status == STORE_OK && ulid_none(&a.second));
    ck_status(operate(8, &v.conversation, CONVERSATION_SET_CLAIMED).status, STORE_EXISTS);
    ck_status(operate(7, &v.conversation, CONVERSATION_SET_CLAIMED).status, STORE_OK);
    struct store_answer reply =
        kit_apply(&kit, &(struct store_change){.kind = CHANGE_MESSAGE_REPLY,
                                               .workspace = workspace,
                                               .id = 7,
                                               .conversation = v.conversation,
                                               .text = STR("hi")});
    ck_status(reply.status, STORE_OK);
    ck_status(operate(8, &v.conversation, CONVERSATION_SET_RELEASED).status, STORE_OK);
    a = post(&v, "again");
    ck_assert(!ulid_none(&a.second));
    struct texts t = messages(&v.conversation, NULL, NULL, false, 10);
    ck_assert_uint_eq(t.count, 4);
    ck_assert_str_eq(t.text[1], "message 2 hi");
}
END_TEST

START_TEST(changes_of_a_conversation_are_idempotent_and_listed_by_status)
{
    static const struct {
        uint32_t fields;
        enum conversation_status status;
    } steps[] = {{CONVERSATION_SET_HUMAN, CONVERSATION_WAITING},
                 {CONVERSATION_SET_CLOSED, CONVERSATION_CLOSED}};
    struct visitor v = visitor_new();
    post(&v, "x");
    for (size_t i = 0; i < 2; i++) {
        struct store_answer a = set(&v, steps[i].fields), b = set(&v, steps[i].fields);
        ck_assert(a.status == STORE_OK && b.status == STORE_OK && a.version == b.version);
        for (unsigned s = 0; s < CONVERSATION_STATUSES; s++) {
            size_t want = s == (unsigned)steps[i].status;
            ck_assert_uint_eq(
                rows(ROWS_CONVERSATIONS, (struct store_rows_query){.class = s + 1}).count, want);
            ck_assert_uint_eq(
                rows(ROWS_CONVERSATIONS, (struct store_rows_query){.class = s + 1, .agent = agent})
                    .count,
                want);
        }
        kit_check_clean(kit.s);
    }
    post(&v, "open again");
    ck_assert_int_eq(conversation_status(&(struct store_conversation){.human_requested = true}),
                     CONVERSATION_WAITING);
    ck_assert_uint_eq(
        rows(ROWS_CONVERSATIONS, (struct store_rows_query){.class = CONVERSATION_CLOSED + 1}).count,
        0);
    struct store_answer a = set(&v, CONVERSATION_SET_READ | CONVERSATION_SET_CLEARED);
    struct store_conversation c = conversation(&v.conversation);
    ck_assert(ulid_eq(&c.read, &c.last) && ulid_eq(&c.cleared, &c.last) && c.version == a.version);
}
END_TEST

START_TEST(a_claim_has_an_operator_name_until_it_ends)
{
    struct visitor v = visitor_new();
    char longest[401] = "";
    memset(longest, 'x', 400);
    ck_status(claim(7, &v, str_of(longest)).status, STORE_OK);
    ck_assert_uint_eq(conversation(&v.conversation).claimed_name.n, 400);
    ck_status(claim(7, &v, (struct str){longest, 401}).status, STORE_INVALID);
    ck_status(claim(7, &v, STR("Anna")).status, STORE_OK);
    post(&v, "what else is written keeps it");
    uint64_t version = conversation(&v.conversation).version;
    ck_status(claim(7, &v, STR("")).status, STORE_OK);
    ck_status(claim(7, &v, STR("Anna")).status, STORE_OK);
    ck_status(claim(8, &v, STR("Eve")).status, STORE_EXISTS);
    struct store_conversation c = conversation(&v.conversation);
    ck_assert(str_eq(c.claimed_name, STR("Anna")) && c.version == version);
    ck_assert(str_eq(c.page_url, STR("https://shop.example/zebra")));
    ck_status(operate(8, &v.conversation, CONVERSATION_SET_CLOSED).status, STORE_OK);
    c = conversation(&v.conversation);
    ck_assert(c.claimed_by == 0 && c.claimed_name.n == 0 && c.closed_by == 8 &&
              conversation_status(&c) == CONVERSATION_CLOSED);
    ck_status(claim(8, &v, STR("")).status, STORE_OK);
    c = conversation(&v.conversation);
    ck_assert(c.claimed_by == 8 && c.claimed_name.n == 0 && c.closed_by == 0 &&
              conversation_status(&c) == CONVERSATION_CLAIMED);
}
END_TEST

/* ---- leads, events, ratings ---- */

START_TEST(an_address_makes_one_lead_per_agent)
{
    struct visitor v = visitor_new(), w = visitor_new();
    char next[32];
    struct store_answer a = lead(&v, "a@b", "Ann"), b = lead(&w, "a@b", ""),
                        c = lead(&v, "c@b", "C");
    ck_assert(a.code == 201 && b.code == 200 && ulid_eq(&a.first, &b.first) && c.code == 201);
    struct texts t = rows(ROWS_LEADS, (struct store_rows_query){.limit = 10});
    ck_assert_uint_eq(t.count, 2);
    ck_assert_str_eq(t.text[1], "a@b Ann 555-walrus {\"x\":1}, a@b  555-walrus {\"x\":1}");
    ck_assert(conversation(&w.conversation).lead_captured);
    kit.now += 2 * DAY;
    struct store_answer later = init_try(&agent, w.secret, next);
    ck_assert(conversation(&later.first).lead_captured);
}
END_TEST

START_TEST(events_are_listed_newest_first_by_agent_and_time)
{
    struct ulid other = agent_new(workspace);
    struct visitor v = visitor_new(), w = visitor_of(&other);
    ck_assert_uint_eq(events(&v, (const char *const[]){"a", "b", NULL}).id, 2);
    kit.now += 1000;
    ck_assert_uint_eq(events(&w, (const char *const[]){"c", NULL}).id, 1);
    struct texts t = rows(ROWS_EVENTS, (struct store_rows_query){.limit = 2});
    ck_assert(t.count == 2 && t.end == STORE_OK);
    ck_assert_str_eq(t.text[0], "c{\"p\":1}");
    ck_assert_str_eq(t.text[1], "b{\"p\":1}");
    t = rows(ROWS_EVENTS, (struct store_rows_query){.after = t.id[1]});
    ck_assert(t.count == 1 && t.end == STORE_NOT_FOUND);
    ck_assert_uint_eq(rows(ROWS_EVENTS, (struct store_rows_query){.agent = agent}).count, 2);
    ck_assert_uint_eq(rows(ROWS_EVENTS, (struct store_rows_query){.since = kit.now}).count, 1);
    ck_assert_uint_eq(rows(ROWS_EVENTS, (struct store_rows_query){.until = kit.now}).count, 2);
    ck_assert_uint_eq(
        rows(ROWS_EVENTS, (struct store_rows_query){.since = kit.now - 1000, .until = kit.now})
            .count,
        2);
}
END_TEST

START_TEST(a_malformed_event_refuses_its_batch)
{
    struct visitor v = visitor_new();
    ck_status(
        kit_status(&kit,
                   &(struct store_change){.kind = CHANGE_EVENTS, OF(&v), .data = STR("too short")}),
        STORE_INVALID);
}
END_TEST

START_TEST(the_first_rating_stays_and_its_comment_changes)
{
    struct visitor v = visitor_new();
    struct store_answer a = rate(&v, 4, "good"), b = rate(&v, 1, NULL),
                        c = rate(&v, 1, "less good");
    ck_assert(a.code == 4 && b.code == 4 && c.code == 4 && ulid_eq(&a.first, &b.first) &&
              ulid_eq(&b.first, &c.first));
    struct texts t = rows(ROWS_RATINGS, (struct store_rows_query){.limit = 5});
    ck_assert_uint_eq(t.count, 1);
    ck_assert_str_eq(t.text[0], "4 less good");
    ck_assert_uint_eq(conversation(&v.conversation).rating, 4);
    ck_status(rate(&v, 6, NULL).status, STORE_INVALID);
}
END_TEST

/* ---- isolation ---- */

START_TEST(nothing_crosses_workspaces)
{
    uint64_t other = kit_workspace(&kit, "other");
    struct visitor v = visitor_new();
    struct store_conversation c;
    post(&v, "x");
    lead(&v, "a@b", "Ann");
    rate(&v, 3, NULL);
    events(&v, (const char *const[]){"a", NULL});
    for (int kind = ROWS_CONVERSATIONS; kind <= ROWS_RATINGS; kind++) {
        ck_assert_uint_eq(rows((enum store_rows)kind, (struct store_rows_query){.limit = 9}).count,
                          1);
        ck_assert_uint_eq(
            rows((enum store_rows)kind, (struct store_rows_query){.workspace = other}).count, 0);
        ck_assert_uint_eq(rows((enum store_rows)kind,
                               (struct store_rows_query){.workspace = other, .agent = agent})
                              .count,
                          0);
    }
    store_conversation_get(kit.s, other, &v.conversation, note_conversation, &c);
    ck_assert_uint_eq(c.version, 0);
    store_read_end(kit.s);
    const enum store_change_kind kinds[] = {CHANGE_MESSAGE_REPLY, CHANGE_CONVERSATION_SET};
    for (size_t i = 0; i < 2; i++)
        ck_status(kit_status(&kit, &(struct store_change){.kind = kinds[i],
                                                          .workspace = other,
                                                          .conversation = v.conversation,
                                                          .text = STR("x"),
                                                          .fields = 4}),
                  STORE_NOT_FOUND);
}
END_TEST

START_TEST(a_session_changes_only_its_conversation)
{
    static const enum store_change_kind kinds[] = {CHANGE_MESSAGE_POST, CHANGE_CONVERSATION_SET,
                                                   CHANGE_LEAD, CHANGE_EVENTS, CHANGE_RATING};
    struct visitor v = visitor_new(), w = visitor_new();
    char hash[32] = "h";
    struct store_change c = {.kind = kinds[_i],
                             .agent = v.agent,
                             .visitor = v.id,
                             .conversation = w.conversation,
                             .fields = 4,
                             .score = 3,
                             .text = STR("x"),
                             .hash = {hash, 32}};
    ck_status(kit_status(&kit, &c), STORE_NOT_FOUND);
    ck_assert_uint_eq(conversation(&w.conversation).version, 1);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("store_conversations");
    TCase *tc = tcase_create("widget");
    tcase_set_timeout(tc, 60);
    tcase_add_checked_fixture(tc, widget_begin, widget_end);
    tcase_add_test(tc, a_new_visitor_gets_a_new_conversation);
    tcase_add_test(tc, a_known_visitor_continues_for_a_day);
    tcase_add_test(tc, a_visitor_does_not_continue_a_conversation_it_closed);
    tcase_add_test(tc, a_visitor_continues_a_conversation_an_operator_closed);
    tcase_add_test(tc, a_claim_has_an_operator_name_until_it_ends);
    tcase_add_test(tc, a_secret_is_valid_for_its_agent_only);
    tcase_add_test(tc, a_message_and_its_answer_are_stored_in_order);
    tcase_add_test(tc, pages_of_messages_skip_and_repeat_nothing);
    tcase_add_test(tc, a_page_includes_the_message_at_its_byte_limit_and_a_list_excludes_it);
    tcase_add_test(tc, a_repeated_client_id_gets_the_first_answer);
    tcase_add_test(tc, an_idempotency_key_is_valid_for_a_day_and_one_body);
    tcase_add_test(tc, the_agent_is_silent_during_a_claim);
    tcase_add_test(tc, changes_of_a_conversation_are_idempotent_and_listed_by_status);
    tcase_add_test(tc, an_address_makes_one_lead_per_agent);
    tcase_add_test(tc, events_are_listed_newest_first_by_agent_and_time);
    tcase_add_test(tc, a_malformed_event_refuses_its_batch);
    tcase_add_test(tc, the_first_rating_stays_and_its_comment_changes);
    tcase_add_test(tc, nothing_crosses_workspaces);
    tcase_add_loop_test(tc, a_session_changes_only_its_conversation, 0, 5);
    suite_add_tcase(suite, tc);
    return kit_run(suite);
}
