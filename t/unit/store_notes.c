/* Notes in the store: operators see them, visitors do not. */
#include "t/kit/store_widget.h"
#include "store/records/ulid_keys.h"

/* ---- notes ---- */

static struct store_answer note(uint64_t key, const struct visitor *v, const char *body,
                                const char *name)
{
    return kit_apply(&kit, &(struct store_change){.kind = CHANGE_NOTE,
                                                  .workspace = workspace,
                                                  .id = key,
                                                  .conversation = v->conversation,
                                                  .text = str_of(body),
                                                  .name = str_of(name)});
}

static void note_note(void *arg, enum store_status status, const struct store_note *n)
{
    struct texts *t = arg;
    if (n == NULL) {
        t->end = status;
        return;
    }
    snprintf(t->text[t->count], sizeof(t->text[0]), "%llu %.*s: %.*s", (unsigned long long)n->key,
             (int)n->name.n, n->name.p, (int)n->text.n, n->text.p);
    t->id[t->count++] = n->id;
}

static struct texts notes(struct store_messages_query q)
{
    struct texts t = {.count = 0};
    store_note_each(kit.s, &q, note_note, &t);
    store_read_end(kit.s);
    return t;
}

START_TEST(a_note_is_invisible_to_the_visitor)
{
    struct visitor v = visitor_new(), other = visitor_new();
    post(&v, "hello");
    struct store_conversation before = conversation(&v.conversation);
    struct store_txn *t;
    struct store_answer a;
    size_t events;
    ck_status(store_begin(kit.s, &t), STORE_OK);
    store_apply(t,
                &(struct store_change){.kind = CHANGE_NOTE,
                                       .workspace = workspace,
                                       .id = 7,
                                       .conversation = v.conversation,
                                       .text = STR("dear")},
                kit.now, &a);
    ck_status(a.status, STORE_OK);
    ck_status(store_commit(t), STORE_OK);
    store_events(kit.s, &events);
    ck_assert_uint_eq(events, 0);
    ck_status(note(8, &other, "another's", "").status, STORE_OK);
    struct store_conversation after = conversation(&v.conversation);
    ck_assert(after.version == before.version && after.messages == 2 &&
              ulid_eq(&after.last, &before.last));
    ck_assert_int_eq(after.updated_at, before.updated_at);
    ck_assert_uint_eq(messages(&v.conversation, NULL, NULL, false, 10).count, 2);
    ck_assert_uint_eq(messages(&v.conversation, NULL, &a.first, true, 10).count, 2);
    struct texts all =
        notes((struct store_messages_query){.conversation = v.conversation, .limit = 10});
    ck_assert(all.count == 1 && all.end == STORE_NOT_FOUND);
    ck_assert_str_eq(all.text[0], "7 : dear");
}
END_TEST

START_TEST(pages_of_notes_skip_and_repeat_nothing)
{
    struct visitor v = visitor_new();
    struct ulid ids[9];
    struct texts t = {.count = 0};
    for (unsigned i = 0; i < 9; i++) {
        char body[2] = {(char)('a' + i), 0};
        ids[i] = note(7, &v, body, "Anna").first;
        kit.now += i % 2;
    }
    for (unsigned limit = 1; limit <= 10; limit++) {
        struct store_messages_query q = {.conversation = v.conversation, .limit = limit};
        for (unsigned seen = 0; seen < 9; seen += (unsigned)t.count) {
            t = notes(q);
            ck_assert(t.count == (limit < 9 - seen ? limit : 9 - seen) &&
                      ulid_eq(&t.id[0], &ids[seen]));
            ck_assert_int_eq(t.end, seen + t.count < 9 ? STORE_OK : STORE_NOT_FOUND);
            q.after = t.id[t.count - 1];
        }
        q = (struct store_messages_query){
            .conversation = v.conversation, .limit = limit, .newest = true};
        for (unsigned seen = 0; seen < 9; seen += (unsigned)t.count) {
            t = notes(q);
            ck_assert(t.count == (limit < 9 - seen ? limit : 9 - seen) &&
                      ulid_eq(&t.id[0], &ids[8 - seen]));
            q.before = t.id[t.count - 1];
        }
    }
    t = notes((struct store_messages_query){
        .conversation = v.conversation, .limit = 9, .after = ids[1], .before = ids[4]});
    ck_assert(t.count == 2 && ulid_eq(&t.id[0], &ids[2]) && t.end == STORE_NOT_FOUND);
}
END_TEST

START_TEST(a_note_is_stored_once_with_its_author)
{
    struct visitor v = visitor_new();
    char key[32] = "key", body[32] = "body", other[32] = "other";
    struct store_change c = {.kind = CHANGE_NOTE,
                             .workspace = workspace,
                             .id = 7,
                             .conversation = v.conversation,
                             .text = STR("once"),
                             .idem_key = {key, 32},
                             .idem_body = {body, 32},
                             .code = 201};
    claim(7, &v, STR("Anna"));
    struct store_answer first = kit_apply(&kit, &c), again = kit_apply(&kit, &c);
    ck_assert(again.status == STORE_OK && again.replayed == 1 &&
              ulid_eq(&first.first, &again.first));
    c.idem_body.p = other;
    ck_status(kit_status(&kit, &c), STORE_KEY_REUSED);
    ck_status(note(7, &v, "as another", "Berta").status, STORE_OK);
    ck_status(note(8, &v, "without a claim", "").status, STORE_OK);
    ck_status(note(8, &v, "", "").status, STORE_INVALID);
    struct texts t =
        notes((struct store_messages_query){.conversation = v.conversation, .limit = 10});
    ck_assert_uint_eq(t.count, 3);
    ck_assert_str_eq(t.text[0], "7 Anna: once");
    ck_assert_str_eq(t.text[1], "7 Berta: as another");
    ck_assert_str_eq(t.text[2], "8 : without a claim");
}
END_TEST

START_TEST(the_check_finds_a_note_without_a_conversation)
{
    struct visitor v = visitor_new();
    note(7, &v, "lost", "Anna");
    struct store_txn *t;
    struct key k;
    ck_status(store_begin(kit.s, &t), STORE_OK);
    key_of(&k, SPACE_NOTE, &v.conversation);
    k.b[1] ^= 1;
    key_bytes(&k, v.id.b, ULID_BYTES);
    txn_put(t, SPACE_NOTE, &k, _i == 0 ? "x" : "\7\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\1\0\0\0x",
            _i == 0 ? 1 : 23);
    ck_status(store_commit(t), STORE_OK);
    ck_assert_uint_eq(kit_problems(kit.s), 1);
    ck_assert_msg(strstr(kit_problem, _i == 0 ? "malformed" : "does not exist") != NULL, "%s",
                  kit_problem);
    ck_status(store_begin(kit.s, &t), STORE_OK);
    txn_del(t, SPACE_NOTE, &k);
    ck_status(store_commit(t), STORE_OK);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("store_notes");
    TCase *tc = tcase_create("widget");
    tcase_set_timeout(tc, 60);
    tcase_add_checked_fixture(tc, widget_begin, widget_end);
    tcase_add_test(tc, a_note_is_invisible_to_the_visitor);
    tcase_add_test(tc, pages_of_notes_skip_and_repeat_nothing);
    tcase_add_test(tc, a_note_is_stored_once_with_its_author);
    tcase_add_loop_test(tc, the_check_finds_a_note_without_a_conversation, 0, 2);
    suite_add_tcase(suite, tc);
    return kit_run(suite);
}
