/* The widget's records under a newer renderer: as it renders them at once, and rendered again in slices that may be cut off anywhere. */
#include "t/00_store_kit.h"

#include <sys/wait.h>

enum { VISITORS = 40, MESSAGES = 30 };

static struct kit kit;
static uint64_t workspace;
static struct ulid agent, visitors[VISITORS], conversations[VISITORS];

/* ---- the newer renderer ---- */

static unsigned renders, dies_at;

static void note(void)
{
    if (++renders == dies_at)
        _exit(7);
}

static void agent_2(const struct store_agent *a, struct buf *out)
{
    note();
    buf_adds(out, "v2 ");
    buf_str(out, a->name);
}

static void conversation_2(const struct store_conversation *c, struct buf *out)
{
    note();
    buf_printf(out, "v2 %llu ", (unsigned long long)c->messages);
    buf_str(out, c->page_url);
}

static void message_2(const struct store_message *m, struct buf *out, size_t *result_at, size_t *result_n)
{
    buf_adds(out, "v2 ");
    *result_at = out->n;
    *result_n = m->text.n;
    buf_str(out, m->text);
}

static void lead_2(const struct store_lead *l, struct buf *out)
{
    note();
    buf_adds(out, "v2 ");
    buf_str(out, l->senders[0].email);
}

static void event_2(const struct store_event_row *e, struct buf *out)
{
    buf_adds(out, "v2 ");
    buf_str(out, e->kind);
}

static void rating_2(const struct store_rating *r, struct buf *out)
{
    buf_adds(out, "v2 ");
    buf_str(out, r->comment);
}

static bool again_2(struct str json, struct buf *out)
{
    note();
    buf_adds(out, "v2 ");
    buf_str(out, json);
    return true;
}

/* one of them cannot be read */
static bool message_again_2(enum message_role role, struct str json, struct buf *out, size_t *result_at, size_t *result_n)
{
    (void)role;
    if (memmem(json.p, json.n, "unreadable", 10) != NULL) {
        buf_adds(out, "half");
        return false;
    }
    *result_at = out->n + 3;
    *result_n = json.n;
    return again_2(json, out);
}

static const struct store_renderer newer = {
    .version = 2,
    .widget = {.agent = agent_2,
               .conversation = conversation_2,
               .message = message_2,
               .lead = lead_2,
               .event = event_2,
               .rating = rating_2,
               .message_again = message_again_2,
               .event_again = again_2,
               .rating_again = again_2},
};

static struct store *open_newer(enum store_mode mode)
{
    char why[512];
    struct store *s;
    const struct store_options o = {.dir = kit.dir, .map_size = 64 << 20, .max_readers = 16, .mode = mode, .renderer = &newer};
    enum store_status status = store_open(&o, &s, why, sizeof(why));
    ck_assert_msg(status == STORE_OK, "%s", why);
    return s;
}

/* ---- records as the older renderer leaves them ---- */

static struct store_answer must(const struct store_change *c)
{
    struct store_answer a = kit_apply(&kit, c);
    ck_status(a.status, STORE_OK);
    return a;
}

static void visit(unsigned i)
{
    char secret[32] = {0}, hash[32] = {0}, email[32];
    struct buf rows = {0};
    snprintf(secret, sizeof(secret), "secret %u", i);
    snprintf(hash, sizeof(hash), "hash %u", i);
    snprintf(email, sizeof(email), "%u@v.example", i);
    struct store_answer a = must(&(struct store_change){
        .kind = CHANGE_VISITOR_INIT, .agent = agent, .match = {secret, 32}, .url = STR("https://shop.example/"), .data = STR("{}")});
    conversations[i] = a.first;
    visitors[i] = a.second;
#define MINE .agent = agent, .visitor = visitors[i], .conversation = conversations[i]
    for (unsigned k = 0; k < MESSAGES / 2; k++)
        must(&(struct store_change){.kind = CHANGE_MESSAGE_POST,
                                    MINE,
                                    .text = i == 3 && k == 1 ? STR("unreadable") : STR("hello"),
                                    .answer = STR("nothing"),
                                    .code = 200});
    must(&(struct store_change){.kind = CHANGE_LEAD, MINE, .hash = {hash, 32}, .text = str_of(email)});
    event_pack(&rows, STR("opened"), STR("{}"), 0);
    must(&(struct store_change){.kind = CHANGE_EVENTS, MINE, .data = buf_view(&rows)});
    must(&(struct store_change){.kind = CHANGE_RATING, MINE, .score = 4, .text = STR("fine"), .fields = RATING_HAS_COMMENT});
    buf_free(&rows);
}

static void fill(void)
{
    kit_open(&kit);
    workspace = kit_workspace(&kit, "acme");
    agent =
        must(&(struct store_change){
                 .kind = CHANGE_AGENT_CREATE, .workspace = workspace, .name = STR("Shop"), .data = STR("{}"), .fields = AGENT_PUBLISHED})
            .first;
    for (unsigned i = 0; i < VISITORS; i++)
        visit(i);
}

static void end(void)
{
    kit_close(&kit);
}

/* ---- what readers see ---- */

static unsigned seen, old;

static void see(struct str json)
{
    seen++;
    old += json.n < 3 || memcmp(json.p, "v2 ", 3) != 0;
}

static void see_message(void *arg, enum store_status status, const struct store_kept_message *m)
{
    (void)arg;
    (void)status;
    if (m == NULL)
        return;
    see(m->json);
    if (memcmp(m->json.p, "v2 ", 3) == 0)
        ck_assert(m->result.p == m->json.p + 3 && m->result.n == m->json.n - 3);
}

static void see_row(void *arg, enum store_status status, const struct ulid *id, struct str json)
{
    (void)arg;
    (void)status;
    if (id != NULL)
        see(json);
}

static void see_agent(void *arg, enum store_status status, const struct store_agent *a)
{
    (void)arg;
    if (a != NULL)
        see(a->json);
    else
        ck_assert(status == STORE_OK || status == STORE_NOT_FOUND);
}

static void see_conversation(void *arg, enum store_status status, const struct store_conversation *c)
{
    (void)arg;
    ck_status(status, STORE_OK);
    see(c->json);
}

static void see_session(void *arg, enum store_status status, const struct store_agent *a, const struct store_conversation *c)
{
    see_agent(arg, status, a);
    see_conversation(arg, status, c);
}

/* Every reader there is, of everything: all but that one message by the newer renderer. */
static void all_is_new(struct store *s)
{
    char secret[32] = "secret 0";
    struct ulid last = {{0}};
    seen = old = 0;
    store_agent_get(s, &agent, see_agent, NULL);
    store_agent_each(s, workspace, see_agent, NULL);
    for (unsigned i = 0; i < VISITORS; i++) {
        struct store_messages_query q = {.conversation = conversations[i], .newest = i % 2 == 0, .limit = 100};
        store_message_each(s, &q, see_message, NULL);
        store_session_get(s, &agent, &visitors[i], &conversations[i], see_session, NULL);
        store_conversation_get(s, workspace, &conversations[i], see_conversation, NULL);
    }
    store_visitor_resume(s, &agent, (const uint8_t *)secret, 0, see_conversation, NULL);
    for (enum store_rows rows = ROWS_CONVERSATIONS; rows <= ROWS_RATINGS; rows++)
        store_rows_each(s, rows, &(struct store_rows_query){.workspace = workspace, .limit = 100, .after = last}, see_row, NULL);
    store_read_end(s);
    ck_assert_uint_eq(seen, 2 + VISITORS * (MESSAGES + 3) + 1 + 4 * VISITORS);
    ck_assert_uint_eq(old, 1);
}

static void readers_see_new(void)
{
    struct store *s = open_newer(STORE_READ);
    all_is_new(s);
    store_close(s);
}

static bool renders_some(void)
{
    return kit_status(&kit, &(struct store_change){.kind = CHANGE_PURGE, .limit = 1}) == STORE_OK;
}

START_TEST(a_newer_renderer_answers_at_once_and_renders_all_again_in_slices_cut_off_anywhere)
{
    enum { RECORDS = 1 + VISITORS * (1 + MESSAGES + 3) - 1 };
    fill();
    store_close(kit.s);
    readers_see_new();
    for (unsigned dies = 20; dies < RECORDS; dies += 300) {
        int status;
        pid_t pid = fork();
        if (pid == 0) {
            kit.s = open_newer(STORE_WRITE);
            renders = 0;
            dies_at = dies;
            while (renders_some())
                ;
            _exit(0);
        }
        ck_assert_int_eq(waitpid(pid, &status, 0), pid);
        ck_assert(WIFEXITED(status) && (WEXITSTATUS(status) == 7 || dies > 20));
        readers_see_new();
    }
    kit.s = open_newer(STORE_WRITE);
    while (renders_some())
        ;
    renders = 0;
    all_is_new(kit.s);
    ck_assert_uint_eq(renders, 0); /* they lie there as they are served */
    kit_check_clean(kit.s);
}
END_TEST

START_TEST(it_ends_and_renders_each_once)
{
    enum { RECORDS = 1 + VISITORS * (1 + MESSAGES + 3) - 1 };
    fill();
    store_close(kit.s);
    kit.s = open_newer(STORE_WRITE);
    must(&(struct store_change){.kind = CHANGE_MESSAGE_POST,
                                .agent = agent,
                                .visitor = visitors[5],
                                .conversation = conversations[5],
                                .text = STR("new"),
                                .answer = STR("new"),
                                .code = 200});
    renders = 0;
    unsigned steps = 0;
    while (renders_some())
        steps++;
    ck_assert_uint_eq(renders, RECORDS - 1); /* a conversation was new */
    ck_assert_uint_ge(steps, 6);
    ck_assert_uint_le(steps, 12);
    store_close(kit.s);
    kit.s = open_newer(STORE_WRITE);
    renders = 0;
    ck_assert(!renders_some());
    ck_assert_uint_eq(renders, 0);
}
END_TEST

static bool pause_always(void *arg)
{
    (void)arg;
    return true;
}

START_TEST(it_renders_one_a_step_where_a_pause_is_always_due)
{
    struct store_txn *t;
    struct store_answer a;
    fill();
    store_close(kit.s);
    kit.s = open_newer(STORE_WRITE);
    renders = 0;
    do {
        unsigned before = renders;
        ck_status(store_begin(kit.s, &t), STORE_OK);
        store_txn_pause(t, pause_always, NULL);
        store_apply(t, &(struct store_change){.kind = CHANGE_PURGE, .limit = 100}, kit.now, &a);
        ck_status(store_commit(t), STORE_OK);
        ck_assert_uint_le(renders, before + 1);
    } while (a.status == STORE_OK);
    ck_status(a.status, STORE_NOT_FOUND);
    renders = 0;
    all_is_new(kit.s);
    ck_assert_uint_eq(renders, 0);
    kit_check_clean(kit.s);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("store again");
    TCase *tc = tcase_create("again");
    suite_add_tcase(suite, tc);
    tcase_set_timeout(tc, 30);
    tcase_add_checked_fixture(tc, NULL, end);
    tcase_add_test(tc, a_newer_renderer_answers_at_once_and_renders_all_again_in_slices_cut_off_anywhere);
    tcase_add_test(tc, it_ends_and_renders_each_once);
    tcase_add_test(tc, it_renders_one_a_step_where_a_pause_is_always_due);
    return kit_run(suite);
}
