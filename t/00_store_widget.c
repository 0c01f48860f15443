/* Visitors, conversations, messages, leads, events and ratings in the store: once only, isolated, in order, and erased to the last byte. */
#include "t/00_store_kit.h"

#include "../store/schema.h"

static struct kit kit;
static uint64_t workspace;
static struct ulid agent;

#define DAY ((int64_t)86400000)

static struct ulid agent_new(uint64_t of)
{
    struct store_answer a = kit_apply(
        &kit, &(struct store_change){
                  .kind = CHANGE_AGENT_CREATE, .workspace = of, .name = STR("Shop"), .data = STR("{}"), .fields = AGENT_PUBLISHED});
    ck_status(a.status, STORE_OK);
    return a.first;
}

static void begin(void)
{
    kit_open(&kit);
    workspace = kit_workspace(&kit, "acme");
    agent = agent_new(workspace);
}

static void end(void)
{
    kit_check_clean(kit.s);
    kit_close(&kit);
}

struct visitor {
    struct ulid agent, id, conversation;
    char secret[32];
};

static struct store_answer init_try(const struct ulid *of, const char *secret, char *next)
{
    memset(next, 0, 32);
    static unsigned made;
    snprintf(next, 32, "secret %u", ++made);
    return kit_apply(&kit, &(struct store_change){.kind = CHANGE_VISITOR_INIT,
                                                  .agent = *of,
                                                  .hash = {secret, secret == NULL ? 0 : 32},
                                                  .match = {next, 32},
                                                  .url = STR("https://shop.example/zebra"),
                                                  .data = STR("{\"locale\":\"zulu\"}"),
                                                  .expires_at = kit.now - DAY});
}

static struct visitor visitor_of(const struct ulid *of)
{
    struct visitor v = {.agent = *of};
    struct store_answer a = init_try(of, NULL, v.secret);
    ck_status(a.status, STORE_OK);
    ck_assert_uint_eq(a.code, 1);
    v.conversation = a.first;
    v.id = a.second;
    return v;
}

static struct visitor visitor_new(void)
{
    return visitor_of(&agent);
}

/* a change of ${v}'s */
#define OF(v) .agent = (v)->agent, .visitor = (v)->id, .conversation = (v)->conversation

static struct store_answer post(const struct visitor *v, const char *body)
{
    return kit_apply(&kit, &(struct store_change){
                               .kind = CHANGE_MESSAGE_POST, OF(v), .text = str_of(body), .answer = STR("found nothing"), .code = 200});
}

static struct store_answer set(const struct visitor *v, uint32_t fields)
{
    return kit_apply(&kit, &(struct store_change){.kind = CHANGE_CONVERSATION_SET, OF(v), .fields = fields});
}

static struct store_answer operate(uint64_t key, const struct ulid *conversation, uint32_t fields)
{
    return kit_apply(
        &kit, &(struct store_change){
                  .kind = CHANGE_CONVERSATION_SET, .workspace = workspace, .id = key, .conversation = *conversation, .fields = fields});
}

static struct store_answer lead(const struct visitor *v, const char *email, const char *name)
{
    char hash[32] = "";
    snprintf(hash, sizeof(hash), "%s", email);
    return kit_apply(&kit, &(struct store_change){.kind = CHANGE_LEAD,
                                                  OF(v),
                                                  .hash = {hash, 32},
                                                  .text = str_of(email),
                                                  .name = str_of(name),
                                                  .url = STR("555-walrus"),
                                                  .data = STR("{\"x\":1}")});
}

/* ---- what is there ---- */

struct texts {
    char text[64][320];
    struct ulid id[64];
    size_t count;
    enum store_status end;
};

static void note(struct texts *t, const struct ulid *id, struct str s)
{
    ck_assert_uint_lt(t->count, 64);
    snprintf(t->text[t->count], sizeof(t->text[0]), "%.*s", (int)s.n, s.p);
    t->id[t->count++] = *id;
}

static void note_message(void *arg, enum store_status status, const struct store_kept_message *m)
{
    struct texts *t = arg;
    if (m == NULL)
        t->end = status;
    else
        note(t, &m->id, m->json);
}

static struct texts messages(const struct ulid *conversation, const struct ulid *after, const struct ulid *before, bool newest,
                             unsigned limit)
{
    struct texts t = {.count = 0};
    struct store_messages_query q = {.conversation = *conversation, .newest = newest, .limit = limit};
    q.after = after == NULL ? q.after : *after;
    q.before = before == NULL ? q.before : *before;
    store_message_each(kit.s, &q, note_message, &t);
    store_read_end(kit.s);
    return t;
}

static void note_row(void *arg, enum store_status status, const struct ulid *id, struct str json)
{
    struct texts *t = arg;
    if (id == NULL)
        t->end = status;
    else
        note(t, id, json);
}

static struct texts rows(enum store_rows kind, struct store_rows_query q)
{
    struct texts t = {.count = 0};
    q.workspace = q.workspace == 0 ? workspace : q.workspace;
    q.limit = q.limit == 0 ? 50 : q.limit;
    store_rows_each(kit.s, kind, &q, note_row, &t);
    store_read_end(kit.s);
    return t;
}

static void note_conversation(void *arg, enum store_status status, const struct store_conversation *c)
{
    if (status == STORE_OK)
        *(struct store_conversation *)arg = *c;
    else
        *(struct store_conversation *)arg = (struct store_conversation){.version = 0};
}

static struct store_conversation conversation(const struct ulid *id)
{
    struct store_conversation c;
    store_conversation_get(kit.s, workspace, id, note_conversation, &c);
    store_read_end(kit.s);
    return c;
}

static void note_status(void *arg, enum store_status status, const struct store_agent *a, const struct store_conversation *c)
{
    ck_assert((status == STORE_OK) == (a != NULL && c != NULL));
    *(enum store_status *)arg = status;
}

static enum store_status session(const struct ulid *a, const struct ulid *v, const struct ulid *c)
{
    enum store_status status = STORE_INVALID;
    store_session_get(kit.s, a, v, c, note_status, &status);
    store_read_end(kit.s);
    return status;
}

/* ---- visitors ---- */

START_TEST(a_new_visitor_gets_a_conversation_of_its_own)
{
    struct visitor a = visitor_new(), b = visitor_new();
    ck_assert(!ulid_eq(&a.id, &b.id) && !ulid_eq(&a.conversation, &b.conversation));
    ck_status(session(&agent, &a.id, &a.conversation), STORE_OK);
    ck_status(session(&agent, &a.id, &b.conversation), STORE_NOT_FOUND);
    ck_status(session(&agent, &b.id, &a.conversation), STORE_NOT_FOUND);
    ck_status(session(&a.id, &a.id, &a.conversation), STORE_NOT_FOUND);
}
END_TEST

START_TEST(a_known_visitor_goes_on_for_a_day)
{
    char next[32];
    struct visitor v = visitor_new();
    struct store_conversation c = {.version = 0};
    kit.now += DAY - 1;
    struct store_answer a = init_try(&agent, v.secret, next);
    ck_assert(a.status == STORE_OK && a.code == 0 && ulid_eq(&a.first, &v.conversation) && ulid_eq(&a.second, &v.id));
    store_visitor_resume(kit.s, &agent, (const uint8_t *)v.secret, kit.now - DAY, note_conversation, &c);
    ck_assert(ulid_eq(&c.id, &v.conversation));
    kit.now += 1;
    store_visitor_resume(kit.s, &agent, (const uint8_t *)v.secret, kit.now - DAY, note_conversation, &c);
    ck_assert_uint_eq(c.version, 0);
    store_read_end(kit.s);
    a = init_try(&agent, v.secret, next);
    ck_assert(a.status == STORE_OK && a.code == 0 && !ulid_eq(&a.first, &v.conversation) && ulid_eq(&a.second, &v.id));
    struct store_answer again = init_try(&agent, v.secret, next);
    ck_assert(ulid_eq(&again.first, &a.first));
}
END_TEST

START_TEST(a_closed_conversation_is_not_gone_on_with)
{
    char next[32];
    struct visitor v = visitor_new();
    ck_status(set(&v, CONVERSATION_SET_CLOSED).status, STORE_OK);
    struct store_answer a = init_try(&agent, v.secret, next);
    ck_assert(a.code == 0 && ulid_eq(&a.second, &v.id) && !ulid_eq(&a.first, &v.conversation));
}
END_TEST

START_TEST(a_secret_is_good_for_its_own_agent_alone)
{
    char next[32];
    struct ulid other = agent_new(workspace);
    struct visitor v = visitor_new();
    struct store_answer a = init_try(&other, v.secret, next);
    ck_assert(a.code == 1 && !ulid_eq(&a.second, &v.id));
}
END_TEST

/* ---- messages ---- */

START_TEST(a_message_and_its_answer_are_kept_in_order)
{
    struct visitor v = visitor_new();
    struct store_answer a = post(&v, "one");
    ck_status(a.status, STORE_OK);
    kit.now -= 5000; /* a clock set back */
    struct store_answer b = post(&v, "two");
    ck_assert(memcmp(a.first.b, a.second.b, 16) < 0 && memcmp(a.second.b, b.first.b, 16) < 0 && memcmp(b.first.b, b.second.b, 16) < 0);
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
    ck_assert(between.count == 2 && ulid_eq(&between.id[0], &all.id[3]) && between.end == STORE_NOT_FOUND);
    between = messages(&v.conversation, &all.id[2], &all.id[5], true, 1);
    ck_assert(between.count == 1 && ulid_eq(&between.id[0], &all.id[4]) && between.end == STORE_OK);
}
END_TEST

START_TEST(a_page_ends_with_the_message_that_reaches_its_bytes_and_a_list_before_the_row_that_exceeds_them)
{
    struct visitor v = visitor_new();
    for (int i = 0; i < 5; i++)
        post(&v, "twenty bytes of text");
    struct texts all = messages(&v.conversation, NULL, NULL, false, 60);
    size_t first = strlen(all.text[0]), both = first + strlen(all.text[1]);
    const struct {
        size_t bytes, count;
    } pages[] = {{0, 10}, {1, 1}, {first, 1}, {first + 1, 2}, {both, 2}, {both + 1, 3}, {100000, 10}};
    for (size_t i = 0; i < sizeof(pages) / sizeof(pages[0]); i++) {
        struct texts t = {.count = 0};
        const struct store_messages_query q = {.conversation = v.conversation, .limit = 60, .bytes = pages[i].bytes};
        store_message_each(kit.s, &q, note_message, &t);
        ck_assert_uint_eq(t.count, pages[i].count);
        ck_assert_int_eq(t.end, t.count < 10 ? STORE_OK : STORE_NOT_FOUND);
    }
    store_read_end(kit.s);
    for (int i = 0; i < 3; i++)
        visitor_new();
    size_t row = strlen(rows(ROWS_CONVERSATIONS, (struct store_rows_query){.limit = 1}).text[0]);
    const size_t bounds[][2] = {{0, 4}, {1, 1}, {row, 1}, {2 * row - 1, 1}, {2 * row, 2}, {3 * row, 3}, {100000, 4}};
    for (size_t i = 0; i < sizeof(bounds) / sizeof(bounds[0]); i++) {
        struct texts t = rows(ROWS_CONVERSATIONS, (struct store_rows_query){.bytes = bounds[i][0]});
        ck_assert_uint_eq(t.count, bounds[i][1]);
        ck_assert_int_eq(t.end, t.count < 4 ? STORE_OK : STORE_NOT_FOUND);
    }
}
END_TEST

START_TEST(a_repeat_under_a_client_id_answers_as_the_first_did)
{
    struct visitor v = visitor_new(), other = visitor_new();
    struct store_change c = {
        .kind = CHANGE_MESSAGE_POST, OF(&v), .text = STR("one"), .client_id = STR("c-1"), .answer = STR("a"), .code = 200};
    struct store_answer first = kit_apply(&kit, &c);
    c.text = STR("another text");
    kit.now += 100 * DAY;
    struct store_answer again = kit_apply(&kit, &c);
    ck_assert(again.status == STORE_OK && again.replayed && ulid_eq(&again.first, &first.first) && ulid_eq(&again.second, &first.second));
    ck_assert_uint_eq(messages(&v.conversation, NULL, NULL, false, 10).count, 2);
    c = (struct store_change){
        .kind = CHANGE_MESSAGE_POST, OF(&other), .text = STR("one"), .client_id = STR("c-1"), .answer = STR("a"), .code = 200};
    ck_assert_uint_eq(kit_apply(&kit, &c).replayed, 0);
}
END_TEST

START_TEST(an_idempotency_key_is_good_for_a_day_and_one_body)
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
    ck_assert(again.status == STORE_OK && again.replayed && again.code == 200 && ulid_eq(&again.first, &first.first));
    c.idem_body.p = else_;
    ck_status(kit_status(&kit, &c), STORE_KEY_REUSED);
    ck_assert_uint_eq(messages(&v.conversation, NULL, NULL, false, 10).count, 2);
    kit.now += DAY + 1;
    again = kit_apply(&kit, &c);
    ck_assert(again.status == STORE_OK && !again.replayed && !ulid_eq(&again.first, &first.first));
}
END_TEST

START_TEST(nobody_answers_for_a_human)
{
    struct visitor v = visitor_new();
    ck_status(operate(7, &v.conversation, CONVERSATION_SET_CLAIMED).status, STORE_OK);
    struct store_answer a = post(&v, "hello");
    ck_assert(a.status == STORE_OK && ulid_none(&a.second));
    ck_status(operate(8, &v.conversation, CONVERSATION_SET_CLAIMED).status, STORE_EXISTS);
    ck_status(operate(7, &v.conversation, CONVERSATION_SET_CLAIMED).status, STORE_OK);
    struct store_answer reply = kit_apply(
        &kit, &(struct store_change){
                  .kind = CHANGE_MESSAGE_REPLY, .workspace = workspace, .id = 7, .conversation = v.conversation, .text = STR("hi")});
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
    } steps[] = {{CONVERSATION_SET_HUMAN, CONVERSATION_WAITING}, {CONVERSATION_SET_CLOSED, CONVERSATION_CLOSED}};
    struct visitor v = visitor_new();
    post(&v, "x");
    for (size_t i = 0; i < 2; i++) {
        struct store_answer a = set(&v, steps[i].fields), b = set(&v, steps[i].fields);
        ck_assert(a.status == STORE_OK && b.status == STORE_OK && a.version == b.version);
        for (unsigned s = 0; s < CONVERSATION_STATUSES; s++) {
            size_t want = s == (unsigned)steps[i].status;
            ck_assert_uint_eq(rows(ROWS_CONVERSATIONS, (struct store_rows_query){.class = s + 1}).count, want);
            ck_assert_uint_eq(rows(ROWS_CONVERSATIONS, (struct store_rows_query){.class = s + 1, .agent = agent}).count, want);
        }
        kit_check_clean(kit.s);
    }
    post(&v, "open again");
    ck_assert_int_eq(conversation_status(&(struct store_conversation){.human_requested = true}), CONVERSATION_WAITING);
    ck_assert_uint_eq(rows(ROWS_CONVERSATIONS, (struct store_rows_query){.class = CONVERSATION_CLOSED + 1}).count, 0);
    struct store_answer a = set(&v, CONVERSATION_SET_READ | CONVERSATION_SET_CLEARED);
    struct store_conversation c = conversation(&v.conversation);
    ck_assert(ulid_eq(&c.read, &c.last) && ulid_eq(&c.cleared, &c.last) && c.version == a.version);
}
END_TEST

/* ---- leads, events, ratings ---- */

START_TEST(an_address_makes_one_lead_an_agent)
{
    struct visitor v = visitor_new(), w = visitor_new();
    char next[32];
    struct store_answer a = lead(&v, "a@b", "Ann"), b = lead(&w, "a@b", ""), c = lead(&v, "c@b", "C");
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

static struct store_answer events(const struct visitor *v, const char *const *kinds)
{
    struct buf data = {0};
    for (; *kinds != NULL; kinds++)
        event_pack(&data, str_of(*kinds), STR("{\"p\":1}"), 5);
    struct store_answer a = kit_apply(&kit, &(struct store_change){.kind = CHANGE_EVENTS, OF(v), .data = buf_view(&data)});
    buf_free(&data);
    return a;
}

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
    ck_assert_uint_eq(rows(ROWS_EVENTS, (struct store_rows_query){.since = kit.now - 1000, .until = kit.now}).count, 2);
}
END_TEST

START_TEST(malformed_events_are_refused_whole)
{
    struct visitor v = visitor_new();
    ck_status(kit_status(&kit, &(struct store_change){.kind = CHANGE_EVENTS, OF(&v), .data = STR("too short")}), STORE_INVALID);
}
END_TEST

static struct store_answer rate(const struct visitor *v, int32_t score, const char *comment)
{
    return kit_apply(
        &kit, &(struct store_change){
                  .kind = CHANGE_RATING, OF(v), .score = score, .text = str_of(comment == NULL ? "" : comment), .fields = comment != NULL});
}

START_TEST(the_first_rating_stays_and_its_comment_changes)
{
    struct visitor v = visitor_new();
    struct store_answer a = rate(&v, 4, "good"), b = rate(&v, 1, NULL), c = rate(&v, 1, "less good");
    ck_assert(a.code == 4 && b.code == 4 && c.code == 4 && ulid_eq(&a.first, &b.first) && ulid_eq(&b.first, &c.first));
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
        ck_assert_uint_eq(rows((enum store_rows)kind, (struct store_rows_query){.limit = 9}).count, 1);
        ck_assert_uint_eq(rows((enum store_rows)kind, (struct store_rows_query){.workspace = other}).count, 0);
        ck_assert_uint_eq(rows((enum store_rows)kind, (struct store_rows_query){.workspace = other, .agent = agent}).count, 0);
    }
    store_conversation_get(kit.s, other, &v.conversation, note_conversation, &c);
    ck_assert_uint_eq(c.version, 0);
    store_read_end(kit.s);
    const enum store_change_kind kinds[] = {CHANGE_MESSAGE_REPLY, CHANGE_CONVERSATION_SET};
    for (size_t i = 0; i < 2; i++)
        ck_status(kit_status(&kit,
                             &(struct store_change){
                                 .kind = kinds[i], .workspace = other, .conversation = v.conversation, .text = STR("x"), .fields = 4}),
                  STORE_NOT_FOUND);
}
END_TEST

START_TEST(a_session_changes_its_own_conversation_alone)
{
    static const enum store_change_kind kinds[] = {CHANGE_MESSAGE_POST, CHANGE_CONVERSATION_SET, CHANGE_LEAD, CHANGE_EVENTS, CHANGE_RATING};
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

/* ---- erasure ---- */

static size_t bytes_found(const char *needle, size_t n)
{
    MDB_env *env;
    MDB_txn *txn;
    size_t found = 0;
    store_close(kit.s);
    ck_assert_int_eq(mdb_env_create(&env), 0);
    mdb_env_set_maxdbs(env, DB_COUNT);
    ck_assert_int_eq(mdb_env_open(env, kit.dir, MDB_RDONLY, 0600), 0);
    ck_assert_int_eq(mdb_txn_begin(env, NULL, MDB_RDONLY, &txn), 0);
    for (int db = 0; db < DB_COUNT; db++) {
        MDB_dbi dbi;
        MDB_cursor *cursor;
        MDB_val k, v;
        ck_assert_int_eq(mdb_dbi_open(txn, schema_db_names[db], 0, &dbi), 0);
        ck_assert_int_eq(mdb_cursor_open(txn, dbi, &cursor), 0);
        while (mdb_cursor_get(cursor, &k, &v, MDB_NEXT) == 0)
            found += (memmem(k.mv_data, k.mv_size, needle, n) != NULL) + (v.mv_size > 0 && memmem(v.mv_data, v.mv_size, needle, n) != NULL);
        mdb_cursor_close(cursor);
    }
    mdb_txn_abort(txn);
    mdb_env_close(env);
    kit.s = kit_store(kit.dir, STORE_WRITE, MAP_BYTES);
    return found;
}

/* what an operator sees of the only lead */
static const char *only_lead(void)
{
    static struct texts t;
    t = rows(ROWS_LEADS, (struct store_rows_query){.limit = 10});
    ck_assert_uint_eq(t.count, 1);
    return t.text[0];
}

START_TEST(a_shared_lead_tells_its_senders_apart)
{
    struct visitor v = visitor_new(), w = visitor_new();
    ck_assert_uint_eq(lead(&v, "a@b", "Ann").code, 201);
    ck_assert_uint_eq(lead(&w, "a@b", "Bea").code, 200);
    ck_assert_str_eq(only_lead(), "a@b Ann 555-walrus {\"x\":1}, a@b Bea 555-walrus {\"x\":1}");
    lead(&w, "a@b", "Cleo"); /* each changes what it said itself */
    ck_assert_str_eq(only_lead(), "a@b Ann 555-walrus {\"x\":1}, a@b Cleo 555-walrus {\"x\":1}");
    lead(&v, "a@b", "Anna");
    ck_assert_str_eq(only_lead(), "a@b Anna 555-walrus {\"x\":1}, a@b Cleo 555-walrus {\"x\":1}");
    kit_check_clean(kit.s);
}
END_TEST

START_TEST(a_shared_lead_loses_what_an_erased_sender_said)
{
    struct visitor both[] = {visitor_new(), visitor_new()};
    lead(&both[0], "a@b", "Ann");
    lead(&both[1], "a@b", "Bea");
    ck_status(kit_status(&kit, &(struct store_change){.kind = CHANGE_VISITOR_ERASE, OF(&both[_i])}), STORE_OK);
    ck_assert_str_eq(only_lead(), _i == 0 ? "a@b Bea 555-walrus {\"x\":1}" : "a@b Ann 555-walrus {\"x\":1}");
    ck_assert_uint_eq(bytes_found(_i == 0 ? "Ann" : "Bea", 3), 0);
    ck_assert_uint_eq(bytes_found((const char *)both[_i].id.b, ULID_BYTES), 0);
    kit_check_clean(kit.s);
    ck_status(kit_status(&kit, &(struct store_change){.kind = CHANGE_VISITOR_ERASE, OF(&both[1 - _i])}), STORE_OK);
    ck_assert_uint_eq(rows(ROWS_LEADS, (struct store_rows_query){.limit = 10}).count, 0);
    struct visitor next = visitor_new();
    ck_assert_uint_eq(lead(&next, "a@b", "Eve").code, 201);
    kit_check_clean(kit.s);
}
END_TEST

/* Put ${n} bytes in the place of the lead's record. */
static void lead_overwrite(const struct ulid *id, void *bytes, size_t n)
{
    MDB_env *env;
    MDB_txn *txn;
    MDB_dbi dbi;
    struct key k;
    MDB_val v = {n, bytes};
    store_close(kit.s);
    key_space(&k, SPACE_LEAD);
    key_bytes(&k, id->b, ULID_BYTES);
    MDB_val key = key_val(&k);
    ck_assert_int_eq(mdb_env_create(&env), 0);
    mdb_env_set_maxdbs(env, DB_COUNT);
    ck_assert_int_eq(mdb_env_open(env, kit.dir, 0, 0600), 0);
    ck_assert_int_eq(mdb_txn_begin(env, NULL, 0, &txn), 0);
    ck_assert_int_eq(mdb_dbi_open(txn, schema_db_names[schema_space_db[SPACE_LEAD]], 0, &dbi), 0);
    ck_assert_int_eq(mdb_put(txn, dbi, &key, &v, 0), 0);
    ck_assert_int_eq(mdb_txn_commit(txn), 0);
    mdb_env_close(env);
    kit.s = kit_store(kit.dir, STORE_WRITE, MAP_BYTES);
}

START_TEST(a_lead_of_the_form_of_before_is_read_and_goes_on)
{
    struct visitor v = visitor_new(), w = visitor_new();
    lead(&v, "a@b", "Ann");
    struct ulid id = lead(&w, "a@b", "Bea").first;
    struct PACKED {
        struct lead_record_2 r;
        struct ulid owners[2];
        char texts[16];
    } before = {.r = {.format = WIDGET_FORMAT,
                      .renderer = 1,
                      .id = id,
                      .agent = agent,
                      .visitor = w.id,
                      .conversation = w.conversation,
                      .workspace = workspace,
                      .hash = "a@b",
                      .owners_n = 2,
                      .email_n = 3,
                      .name_n = 3,
                      .phone_n = 1,
                      .fields_n = 2,
                      .json_n = 7},
                .owners = {v.id, w.id},
                .texts = "a@bBea5{}A JSON."};
    before.texts[15] = '.';
    for (size_t n = 0; n < sizeof(before); n++) { /* cut short anywhere it is no lead */
        lead_overwrite(&id, &before, n);
        ck_assert_uint_eq(rows(ROWS_LEADS, (struct store_rows_query){.limit = 10}).count, 0);
    }
    lead_overwrite(&id, &before, sizeof(before));
    ck_assert_str_eq(only_lead(), "A JSON.");
    kit_check_clean(kit.s);
    ck_assert_uint_eq(lead(&v, "a@b", "Ann").code, 200);
    ck_assert_str_eq(only_lead(), "a@b Bea 5 {}, a@b Ann 555-walrus {\"x\":1}");
    ck_status(kit_status(&kit, &(struct store_change){.kind = CHANGE_VISITOR_ERASE, OF(&w)}), STORE_OK);
    ck_assert_str_eq(only_lead(), "a@b Ann 555-walrus {\"x\":1}");
    kit_check_clean(kit.s);
}
END_TEST

START_TEST(many_senders_do_not_push_the_first_out)
{
    struct visitor first = visitor_new(), last = first;
    lead(&first, "a@b", "Ann");
    for (int i = 0; i < 20; i++) {
        char name[8];
        last = visitor_new();
        snprintf(name, sizeof(name), "n%d.", i);
        ck_assert_uint_eq(lead(&last, "a@b", name).code, 200);
    }
    const char *shown = only_lead();
    size_t senders = 0;
    for (const char *at = shown; (at = strstr(at, "a@b")) != NULL; at++)
        senders++;
    ck_assert_msg(strncmp(shown, "a@b Ann ", 8) == 0 && strstr(shown, " n19. ") && senders == 8, "%s", shown);
    kit_check_clean(kit.s);
    ck_status(kit_status(&kit, &(struct store_change){.kind = CHANGE_AGENT_DELETE, .agent = agent}), STORE_OK);
    kit_purge(&kit, 3);
    ck_assert_uint_eq(bytes_found("a@b", 3), 0);
}
END_TEST

/* A visitor who left something of everything. */
static struct visitor talkative(void)
{
    struct visitor v = visitor_new();
    char key[32] = "idem giraffe", body[32] = "idem body";
    struct store_change c = {.kind = CHANGE_MESSAGE_POST,
                             OF(&v),
                             .text = STR("I am a walrus"),
                             .client_id = STR("client-giraffe"),
                             .url = STR("https://shop.example/zebra"),
                             .data = STR("{\"title\":\"ocelot\"}"),
                             .answer = STR("dear walrus"),
                             .idem_key = {key, 32},
                             .idem_body = {body, 32}};
    ck_status(kit_status(&kit, &c), STORE_OK);
    lead(&v, "walrus@example.com", "Wally Walrus");
    events(&v, (const char *const[]){"page.walrus", NULL});
    rate(&v, 2, "walruses deserve better");
    const struct store_change stage = {.kind = CHANGE_COUPON_STAGE, OF(&v), .text = STR("walrus20"), .expires_at = kit.now + HOUR};
    ck_status(kit_status(&kit, &stage), STORE_OK);
    return v;
}

START_TEST(erasure_leaves_no_byte_of_the_visitor)
{
    static const char *const needles[] = {"walrus", "Walrus", "giraffe", "zebra", "zulu", "ocelot", "secret", "walrus20"};
    struct visitor v = talkative();
    kit.now += 2 * DAY;
    char next[32];
    struct store_answer second = init_try(&agent, v.secret, next); /* a second conversation of the same visitor */
    ck_assert(!ulid_eq(&second.first, &v.conversation));
    for (size_t i = 0; i < 8; i++)
        ck_assert_msg(bytes_found(needles[i], strlen(needles[i])) > 0, "%s was never there", needles[i]);
    const struct store_change erase = {.kind = CHANGE_VISITOR_ERASE, .agent = v.agent, .visitor = v.id};
    ck_status(kit_status(&kit, &erase), STORE_OK);
    for (size_t i = 0; i < 8; i++)
        ck_assert_msg(bytes_found(needles[i], strlen(needles[i])) == 0, "%s is still there", needles[i]);
    const struct ulid *ids[] = {&v.id, &v.conversation, &second.first};
    for (size_t i = 0; i < 3; i++)
        ck_assert_uint_eq(bytes_found((const char *)ids[i]->b, ULID_BYTES), i == 2 ? 1 : 0); /* the last id given is remembered as such */
    ck_status(session(&agent, &v.id, &v.conversation), STORE_NOT_FOUND);
    ck_status(kit_status(&kit, &erase), STORE_NOT_FOUND);
    for (int kind = ROWS_CONVERSATIONS; kind <= ROWS_RATINGS; kind++)
        ck_assert_uint_eq(rows((enum store_rows)kind, (struct store_rows_query){.limit = 9}).count, 0);
}
END_TEST

START_TEST(erasure_of_one_visitor_leaves_the_others_alone)
{
    struct visitor v = talkative(), w = visitor_new();
    post(&w, "an otter");
    lead(&w, "otter@example.com", "O");
    ck_status(kit_status(&kit, &(struct store_change){.kind = CHANGE_VISITOR_ERASE, OF(&v)}), STORE_OK);
    ck_status(session(&agent, &w.id, &w.conversation), STORE_OK);
    ck_assert_uint_eq(messages(&w.conversation, NULL, NULL, false, 9).count, 2);
    ck_assert_uint_eq(rows(ROWS_LEADS, (struct store_rows_query){.limit = 9}).count, 1);
    ck_status(kit_status(&kit, &(struct store_change){.kind = CHANGE_VISITOR_ERASE, .agent = w.id, .visitor = w.id}), STORE_NOT_FOUND);
}
END_TEST

START_TEST(a_talkative_visitor_is_invisible_at_once_and_goes_in_slices)
{
    struct visitor v = visitor_new();
    struct store_txn *t;
    struct store_answer a;
    store_read_end(kit.s);
    ck_status(store_begin(kit.s, &t), STORE_OK);
    for (int i = 0; i < 1500; i++) {
        store_apply(t, &(struct store_change){.kind = CHANGE_MESSAGE_POST, OF(&v), .text = STR("walrus"), .answer = STR("a")}, kit.now, &a);
        ck_status(a.status, STORE_OK);
    }
    ck_status(store_commit(t), STORE_OK);
    events(&v, (const char *const[]){"page.walrus", NULL});
    ck_status(kit_status(&kit, &(struct store_change){.kind = CHANGE_VISITOR_ERASE, OF(&v)}), STORE_OK);
    size_t count;
    const struct store_event *e = store_events(kit.s, &count);
    bool purge = false;
    for (size_t i = 0; i < count; i++)
        purge |= e[i].kind == EVENT_PURGE;
    ck_assert(purge);
    ck_assert_uint_eq(rows(ROWS_CONVERSATIONS, (struct store_rows_query){.limit = 9}).count, 0);
    ck_assert_uint_eq(rows(ROWS_EVENTS, (struct store_rows_query){.limit = 9}).count, 0);
    ck_assert_uint_eq(conversation(&v.conversation).version, 0);
    ck_status(session(&agent, &v.id, &v.conversation), STORE_NOT_FOUND);
    kit_check_clean(kit.s);
    ck_assert_uint_ge(kit_purge(&kit, 100), 15);
    ck_assert_uint_eq(bytes_found("walrus", 6), 0);
}
END_TEST

static bool pause_always(void *arg)
{
    (void)arg;
    return true;
}

START_TEST(an_erasure_is_whole_though_work_in_the_background_were_to_pause)
{
    struct visitor v = talkative();
    struct store_txn *t;
    struct store_answer a;
    store_read_end(kit.s);
    ck_status(store_begin(kit.s, &t), STORE_OK);
    store_txn_pause(t, pause_always, NULL);
    store_apply(t, &(struct store_change){.kind = CHANGE_VISITOR_ERASE, OF(&v)}, kit.now, &a);
    ck_status(a.status, STORE_OK);
    ck_status(store_commit(t), STORE_OK);
    ck_assert_uint_eq(bytes_found("walrus", 6), 0);
    ck_assert_uint_eq(kit_purge(&kit, 100), 0);
}
END_TEST

START_TEST(a_deleted_agent_takes_all_its_visitors_along)
{
    struct visitor v = talkative();
    struct ulid other = agent_new(workspace);
    struct visitor w = visitor_of(&other);
    ck_status(kit_status(&kit, &(struct store_change){.kind = CHANGE_AGENT_DELETE, .agent = agent}), STORE_OK);
    ck_status(session(&agent, &v.id, &v.conversation), STORE_NOT_FOUND);
    for (int kind = ROWS_LEADS; kind <= ROWS_RATINGS; kind++)
        ck_assert_uint_eq(rows((enum store_rows)kind, (struct store_rows_query){.limit = 9}).count, 0);
    kit_check_clean(kit.s);
    kit_purge(&kit, 3);
    ck_assert_uint_eq(bytes_found("walrus", 6), 0);
    ck_status(session(&other, &w.id, &w.conversation), STORE_OK);
}
END_TEST

START_TEST(a_deleted_workspace_leaves_nothing)
{
    talkative();
    ck_status(kit_status(&kit, &(struct store_change){.kind = CHANGE_WORKSPACE_DELETE, .id = workspace}), STORE_OK);
    kit_purge(&kit, 3);
    ck_assert_uint_eq(bytes_found("walrus", 6), 0);
    ck_assert_uint_eq(bytes_found((const char *)agent.b, ULID_BYTES), 0);
}
END_TEST

/* ---- retention ---- */

static unsigned retain(uint32_t what, int64_t before, uint64_t limit)
{
    unsigned slices = 0;
    enum store_status status;
    while ((status = kit_status(
                &kit, &(struct store_change){.kind = CHANGE_RETAIN, .fields = what, .expires_at = before, .limit = limit})) == STORE_OK)
        slices++;
    ck_status(status, STORE_NOT_FOUND);
    return slices;
}

START_TEST(what_is_older_than_kept_goes_in_slices_and_the_rest_stays)
{
    struct visitor old = talkative();
    for (int i = 0; i < 5; i++)
        events(&old, (const char *const[]){"a", "b", NULL});
    kit.now += 10 * DAY;
    struct visitor young = visitor_new();
    events(&young, (const char *const[]){"young", NULL});
    ck_assert_uint_ge(retain(RETAIN_EVENTS, kit.now - DAY, 3), 4);
    ck_assert_uint_eq(rows(ROWS_EVENTS, (struct store_rows_query){.limit = 20}).count, 1);
    ck_assert_uint_eq(rows(ROWS_CONVERSATIONS, (struct store_rows_query){.limit = 20}).count, 2);
    ck_assert_uint_ge(retain(RETAIN_CONVERSATIONS, kit.now - DAY, 2), 1);
    ck_assert_uint_eq(rows(ROWS_CONVERSATIONS, (struct store_rows_query){.limit = 20}).count, 1);
    ck_status(session(&agent, &young.id, &young.conversation), STORE_OK);
    ck_status(session(&agent, &old.id, &old.conversation), STORE_NOT_FOUND);
    /* a lead and a rating outlive the conversation, and their visitor goes on being known */
    ck_assert_uint_eq(rows(ROWS_LEADS, (struct store_rows_query){.limit = 20}).count, 1);
}
END_TEST

START_TEST(a_visitor_of_whom_nothing_is_kept_is_forgotten_wherever_the_slices_end)
{
    struct visitor v = visitor_new();
    char next[32];
    post(&v, "x");
    if (_i >= 2)
        events(&v, (const char *const[]){"a", "b", NULL});
    kit.now += 10 * DAY;
    retain(RETAIN_CONVERSATIONS, kit.now - DAY, _i % 2 == 0 ? 100 : 1);
    retain(RETAIN_EVENTS, kit.now - DAY, _i % 2 == 0 ? 100 : 1);
    ck_assert_uint_eq(bytes_found((const char *)v.id.b, ULID_BYTES), 0);
    ck_assert_uint_eq(init_try(&agent, v.secret, next).code, 1);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("store_widget");
    TCase *tc = tcase_create("widget");
    tcase_set_timeout(tc, 60);
    tcase_add_checked_fixture(tc, begin, end);
    tcase_add_test(tc, a_new_visitor_gets_a_conversation_of_its_own);
    tcase_add_test(tc, a_known_visitor_goes_on_for_a_day);
    tcase_add_test(tc, a_closed_conversation_is_not_gone_on_with);
    tcase_add_test(tc, a_secret_is_good_for_its_own_agent_alone);
    tcase_add_test(tc, a_message_and_its_answer_are_kept_in_order);
    tcase_add_test(tc, pages_of_messages_skip_and_repeat_nothing);
    tcase_add_test(tc, a_page_ends_with_the_message_that_reaches_its_bytes_and_a_list_before_the_row_that_exceeds_them);
    tcase_add_test(tc, a_repeat_under_a_client_id_answers_as_the_first_did);
    tcase_add_test(tc, an_idempotency_key_is_good_for_a_day_and_one_body);
    tcase_add_test(tc, nobody_answers_for_a_human);
    tcase_add_test(tc, changes_of_a_conversation_are_idempotent_and_listed_by_status);
    tcase_add_test(tc, an_address_makes_one_lead_an_agent);
    tcase_add_test(tc, a_shared_lead_tells_its_senders_apart);
    tcase_add_loop_test(tc, a_shared_lead_loses_what_an_erased_sender_said, 0, 2);
    tcase_add_test(tc, a_lead_of_the_form_of_before_is_read_and_goes_on);
    tcase_add_test(tc, many_senders_do_not_push_the_first_out);
    tcase_add_test(tc, events_are_listed_newest_first_by_agent_and_time);
    tcase_add_test(tc, malformed_events_are_refused_whole);
    tcase_add_test(tc, the_first_rating_stays_and_its_comment_changes);
    tcase_add_test(tc, nothing_crosses_workspaces);
    tcase_add_loop_test(tc, a_session_changes_its_own_conversation_alone, 0, 5);
    tcase_add_test(tc, erasure_leaves_no_byte_of_the_visitor);
    tcase_add_test(tc, erasure_of_one_visitor_leaves_the_others_alone);
    tcase_add_test(tc, a_talkative_visitor_is_invisible_at_once_and_goes_in_slices);
    tcase_add_test(tc, an_erasure_is_whole_though_work_in_the_background_were_to_pause);
    tcase_add_test(tc, a_deleted_agent_takes_all_its_visitors_along);
    tcase_add_test(tc, a_deleted_workspace_leaves_nothing);
    tcase_add_test(tc, what_is_older_than_kept_goes_in_slices_and_the_rest_stays);
    tcase_add_loop_test(tc, a_visitor_of_whom_nothing_is_kept_is_forgotten_wherever_the_slices_end, 0, 4);
    suite_add_tcase(suite, tc);
    return kit_run(suite);
}
