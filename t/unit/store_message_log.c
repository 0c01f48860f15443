/*
 * The message log: messages are stored in order of arrival and found by conversation, position and
 * id, with few pages a commit and few steps a page.
 */
#include "t/kit/store.h"

#include "store/engine/snapshot.h"
#include "store/records/message_log.h"
#include "store/records/ulid_keys.h"

#define CONVERSATIONS 64
#define LONG 3000 /* messages in the longest one */

static struct kit kit;
static uint64_t workspace;
static struct ulid agent;
static struct talk {
    struct ulid visitor, id;
} talks[CONVERSATIONS];

static void begin(void)
{
    kit_open(&kit);
    workspace = kit_workspace(&kit, "acme");
    agent = kit_agent(&kit, workspace, "{}");
    for (int i = 0; i < CONVERSATIONS; i++) {
        char secret[32] = {(char)(1 + i)};
        struct store_answer a =
            kit_apply(&kit, &(struct store_change){.kind = CHANGE_VISITOR_INIT,
                                                   .agent = agent,
                                                   .match = {secret, sizeof(secret)}});
        ck_status(a.status, STORE_OK);
        talks[i] = (struct talk){a.second, a.first};
    }
}

static void end(void)
{
    kit_check_clean(kit.s);
    kit_close(&kit);
}

/* one message, and an answer unless it is claimed */
static struct store_answer post(struct store_txn *t, int i, struct str text)
{
    struct store_answer a;
    const struct store_change c = {.kind = CHANGE_MESSAGE_POST,
                                   .agent = agent,
                                   .visitor = talks[i].visitor,
                                   .conversation = talks[i].id,
                                   .text = text,
                                   .answer = STR("nothing was found of that")};
    store_apply(t, &c, kit.now, &a);
    ck_status(a.status, STORE_OK);
    return a;
}

/* ---- finding ---- */

static struct ulid ids[LONG];

static void fill(void)
{
    struct store_txn *t;
    for (int i = 0; i < LONG / 2;) {
        kit.now += 7;
        ck_status(store_begin(kit.s, &t), STORE_OK);
        for (int n = 0; n < 100; n++, i++) {
            struct store_answer a = post(t, 0, STR("mine"));
            ids[2 * i] = a.first;
            ids[2 * i + 1] = a.second;
            post(t, 1 + n % 3, STR("not mine"));
        }
        ck_status(store_commit(t), STORE_OK);
    }
}

struct seen {
    struct ulid id[LONG];
    size_t count;
    enum store_status end;
};

static void see(void *arg, enum store_status status, const struct store_message *m)
{
    struct seen *seen = arg;
    if (m == NULL) {
        seen->end = status;
        return;
    }
    ck_assert_uint_lt(seen->count, LONG);
    seen->id[seen->count++] = m->id;
}

/* An id of the conversation, one between two, one above or below all, or none. */
static struct ulid some_id(uint64_t *seed)
{
    uint64_t high, low, how = kit_random(seed) % 10;
    struct ulid id = ids[kit_random(seed) % LONG];
    ulid_halves(&id, &high, &low);
    if (how < 2)
        return ulid_of_halves(how == 0 ? 0 : UINT64_MAX, UINT64_MAX);
    return how == 2  ? (struct ulid){{0}}
           : how < 5 ? ulid_of_halves(high, low + 1)
           : how < 7 ? ulid_of_halves(high, low - 1)
                     : id;
}

static bool within(const struct ulid *id, const struct store_messages_query *q)
{
    return memcmp(id->b, q->after.b, ULID_BYTES) > 0 &&
           (ulid_none(&q->before) || memcmp(id->b, q->before.b, ULID_BYTES) < 0);
}

/* The result of a full walk. */
static void expect(const struct store_messages_query *q, const struct seen *seen)
{
    size_t room = q->bytes == 0 ? SIZE_MAX : q->bytes, all = 0, shown = 0;
    for (size_t n = 0; n < LONG; n++) {
        size_t i = q->newest ? LONG - 1 - n : n,
               bytes = strlen(i % 2 == 0 ? "mine" : "nothing was found of that");
        bool in = within(&ids[i], q);
        all += in;
        if (!in || shown == q->limit || room == 0)
            continue;
        ck_assert_uint_lt(shown, seen->count);
        ck_assert(ulid_eq(&ids[i], &seen->id[shown++]));
        room -= bytes < room ? bytes : room;
    }
    ck_assert_uint_eq(shown, seen->count);
    ck_assert_int_eq(seen->end, shown == all ? STORE_NOT_FOUND : STORE_OK);
}

START_TEST(any_page_equals_a_full_walk)
{
    static struct seen seen;
    uint64_t seed = 4711;
    fill();
    for (int i = 0; i < 4000; i++) {
        const unsigned limits[] = {1, 20, 31, 32, 33, 100, LONG};
        const struct store_messages_query q = {.conversation = talks[0].id,
                                               .after = some_id(&seed),
                                               .before = some_id(&seed),
                                               .newest = i % 2,
                                               .limit = limits[kit_random(&seed) % 7],
                                               .bytes =
                                                   i % 5 == 0 ? 1 + kit_random(&seed) % 1000 : 0};
        seen.count = 0;
        store_message_each(kit.s, &q, see, &seen);
        expect(&q, &seen);
    }
    store_read_end(kit.s);
}
END_TEST

static void note_status(void *arg, enum store_status status, const struct store_message *m)
{
    *(enum store_status *)arg = status;
    ck_assert((status == STORE_OK) == (m != NULL));
}

START_TEST(a_message_is_found_only_in_its_conversation)
{
    struct store_txn *t;
    enum store_status status = STORE_INVALID;
    ck_status(store_begin(kit.s, &t), STORE_OK);
    struct store_answer a = post(t, 0, STR("mine"));
    ck_status(store_commit(t), STORE_OK);
    store_message_get(kit.s, &talks[0].id, &a.second, note_status, &status);
    ck_status(status, STORE_OK);
    store_message_get(kit.s, &talks[1].id, &a.second, note_status, &status);
    ck_status(status, STORE_NOT_FOUND);
    store_read_end(kit.s);
}
END_TEST

/* As the message log walks, but counted. */
static unsigned steps_to(MDB_txn *txn, struct logged_message at, uint64_t place)
{
    unsigned steps = 0;
    for (; at.record->place > place; steps++) {
        const struct message_record *r = at.record;
        struct ulid next = r->jump_place >= place ? r->jump : r->before;
        ck_status(message_log_get(kit.s, txn, &talks[0].id, &next, &at), STORE_OK);
    }
    ck_assert_uint_eq(at.record->place, place);
    ck_assert(ulid_eq(&at.id, &ids[place - 1]));
    return steps;
}

START_TEST(any_position_in_a_long_conversation_takes_few_steps)
{
    MDB_txn *txn;
    struct logged_message last;
    unsigned most = 0;
    fill();
    ck_status(store_snapshot(kit.s, &txn), STORE_OK);
    ck_status(message_log_get(kit.s, txn, &talks[0].id, &ids[LONG - 1], &last), STORE_OK);
    for (uint64_t place = 1; place <= LONG; place++) {
        unsigned steps = steps_to(txn, last, place);
        most = steps > most ? steps : most;
    }
    store_read_end(kit.s);
    ck_assert_msg(most <= 36, "%u steps", most); /* 3 × log2(3000) */
}
END_TEST

/* ---- few pages ---- */

/*
 * The pages of a commit while a snapshot pins everything that earlier ones freed: all are new, at
 * the end.
 */
static uint64_t pages_of(int posts, struct str text)
{
    MDB_envinfo before, after;
    struct store_txn *t;
    mdb_env_info(kit.s->env, &before);
    kit.now += 7;
    ck_status(store_begin(kit.s, &t), STORE_OK);
    for (int i = 0; i < posts; i++)
        post(t, i % CONVERSATIONS, text);
    ck_status(store_commit(t), STORE_OK);
    mdb_env_info(kit.s->env, &after);
    return after.me_last_pgno - before.me_last_pgno;
}

START_TEST(a_commit_of_messages_of_many_conversations_changes_few_pages)
{
    MDB_txn *txn;
    uint64_t pages = 0, records = 0;
    for (int i = 0; i < 50; i++)
        pages_of(CONVERSATIONS, STR("Where is my order of 00004711, please?"));
    ck_status(store_snapshot(kit.s, &txn), STORE_OK);
    for (int i = 0; i < 20; i++)
        pages = pages_of(CONVERSATIONS, STR("Where is my order of 00004711, please?"));
    store_read_end(kit.s);
    records = CONVERSATIONS * 2 * (sizeof(struct message_record) + 64) / 4096;
    /* their heads, and the branch pages above them; 64 and more per conversation */
    ck_assert_msg(pages <= records + 24, "%llu pages", (unsigned long long)pages);
}
END_TEST

/* ---- damage ---- */

static void overwrite(const struct ulid *id, void (*spoil)(struct message_record *r))
{
    MDB_txn *txn;
    struct key k;
    struct logged_message at;
    char copy[1024];
    MDB_val v;
    key_of(&k, SPACE_MESSAGE, id);
    MDB_val key = key_val(&k);
    ck_assert_int_eq(mdb_txn_begin(kit.s->env, NULL, 0, &txn), 0);
    ck_assert_int_eq(mdb_get(txn, kit.s->dbi[DB_WIDGET], &key, &v), 0);
    ck_assert(message_log_look(key, v, &at) && v.mv_size < sizeof(copy));
    memcpy(copy, v.mv_data, v.mv_size);
    spoil((struct message_record *)(void *)copy);
    v.mv_data = copy;
    ck_assert_int_eq(mdb_put(txn, kit.s->dbi[DB_WIDGET], &key, &v, 0), 0);
    ck_assert_int_eq(mdb_txn_commit(txn), 0);
}

static void its_position(struct message_record *r)
{
    r->place++;
}

static void its_conversation(struct message_record *r)
{
    r->conversation = talks[5].id;
}

static void the_previous_one(struct message_record *r)
{
    r->before = ids[0];
}

static void its_jump(struct message_record *r)
{
    r->jump = ids[0];
    r->jump_place = 3;
}

static void a_position_before_it(struct message_record *r)
{
    r->jump_place = r->place;
}

static void (*const spoils[])(struct message_record *r) = {
    its_position, its_conversation, the_previous_one, its_jump, a_position_before_it};

START_TEST(the_check_finds_a_misplaced_message)
{
    static struct seen seen;
    struct message_record saved;
    struct logged_message at;
    MDB_txn *txn;
    fill();
    ck_status(store_snapshot(kit.s, &txn), STORE_OK);
    ck_status(message_log_get(kit.s, txn, &talks[0].id, &ids[100], &at), STORE_OK);
    saved = *at.record;
    ck_assert_uint_gt(saved.jump_place, 3);
    store_read_end(kit.s);
    overwrite(&ids[100], spoils[_i]);
    ck_assert_uint_ge(kit_problems(kit.s), 1);
    const struct store_messages_query q = {
        .conversation = talks[0].id, .limit = LONG, .newest = true};
    seen.count = 0;
    store_message_each(kit.s, &q, see, &seen); /* a walk through it ends */
    store_read_end(kit.s);
    kit_close(&kit);
    begin();
}
END_TEST

static bool is_erasing(int i)
{
    MDB_txn *txn;
    struct key k;
    MDB_val v;
    key_of(&k, SPACE_ERASING, &talks[i].visitor);
    ck_status(store_snapshot(kit.s, &txn), STORE_OK);
    enum store_status status = store_get(kit.s, txn, SPACE_ERASING, &k, &v);
    store_read_end(kit.s);
    return status == STORE_OK;
}

START_TEST(a_damaged_conversation_does_not_block_other_erasures)
{
    struct store_txn *t;
    fill();
    ck_status(store_begin(kit.s, &t), STORE_OK);
    for (int i = 0; i < 200; i++)
        post(t, 1 + i % 2, STR("mine"));
    ck_status(store_commit(t), STORE_OK);
    overwrite(&ids[LONG - 200], its_conversation);
    for (int i = 0; i < 3; i++) {
        ck_status(kit_status(&kit, &(struct store_change){.kind = CHANGE_VISITOR_ERASE,
                                                          .agent = agent,
                                                          .visitor = talks[i].visitor}),
                  STORE_OK);
        ck_assert(is_erasing(i));
    }
    for (int i = 0; i < 1000 && (is_erasing(1) || is_erasing(2)); i++)
        kit_status(&kit, &(struct store_change){.kind = CHANGE_PURGE, .limit = 50});
    ck_assert(is_erasing(0) && !is_erasing(1) && !is_erasing(2));
    kit_close(&kit);
    begin();
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("store_message_log");
    TCase *tc = tcase_create("message log");
    tcase_add_checked_fixture(tc, begin, end);
    tcase_set_timeout(tc, 60);
    tcase_add_test(tc, any_page_equals_a_full_walk);
    tcase_add_test(tc, a_message_is_found_only_in_its_conversation);
    tcase_add_test(tc, any_position_in_a_long_conversation_takes_few_steps);
    tcase_add_test(tc, a_commit_of_messages_of_many_conversations_changes_few_pages);
    tcase_add_loop_test(tc, the_check_finds_a_misplaced_message, 0,
                        sizeof(spoils) / sizeof(spoils[0]));
    tcase_add_test(tc, a_damaged_conversation_does_not_block_other_erasures);
    suite_add_tcase(suite, tc);
    return kit_run(suite);
}
