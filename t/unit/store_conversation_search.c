/*
 * Search in conversations: its matches, its pages, and its continuation after stops, while the
 * store changes.
 */
#include "t/kit/store_widget.h"

static struct kit_stop stop;
static unsigned stops;

struct outcome {
    struct ulid ids[STORE_SEARCH_ROWS], last;
    size_t count;
    enum store_status status;
};

static bool take(void *arg, enum store_status status, const struct store_row *row)
{
    struct outcome *o = arg;
    if (row == NULL) {
        o->status = status;
        return true;
    }
    if (row->conversation != NULL && o->count == rows_most)
        return false;
    o->last = row->id;
    if (row->conversation != NULL)
        o->ids[o->count++] = row->id;
    return true;
}

static struct store_search search_for(const char *pattern, enum store_search_by by)
{
    return (struct store_search){.rows = {.workspace = workspace, .limit = STORE_SEARCH_ROWS},
                                 .by = by,
                                 .pattern = str_of(pattern),
                                 .budget = UINT64_MAX,
                                 .stop_arg = &stop};
}

/* Asked to stop at the ${at}-th check; 0: never. */
static struct outcome outcome_until(struct store_search *q, unsigned at)
{
    struct outcome o = {.count = 0};
    stop = (struct kit_stop){.at = at};
    store_conversation_search(kit.s, q, take, &o);
    store_read_end(kit.s);
    ck_assert_uint_eq(stop.asked, o.status == STORE_AGAIN ? at : stop.asked);
    stops += o.status == STORE_AGAIN;
    return o;
}

/* It is stopped ever later, until it ends; ${between}, unless NULL, runs after each stop. */
static struct outcome outcome_of(struct store_search *q, void (*between)(void))
{
    unsigned at = q->stop != NULL ? 1 : 0;
    struct outcome o = outcome_until(q, at);
    while (o.status == STORE_AGAIN) {
        at += between != NULL ? 1 : 1 + at / 4;
        if (between != NULL)
            between();
        o = outcome_until(q, at);
    }
    return o;
}

static struct outcome found(const char *pattern, enum store_search_by by)
{
    struct store_search q = search_for(pattern, by);
    return outcome_of(&q, NULL);
}

static void expect_one(struct outcome o, const struct ulid *id)
{
    ck_assert_int_eq(o.status, STORE_NOT_FOUND);
    ck_assert_uint_eq(o.count, 1);
    ck_assert(ulid_eq(&o.ids[0], id));
}

static void write_as_operator(enum store_change_kind kind, const struct ulid *conversation,
                              const char *body)
{
    ck_status(kit_status(
                  &kit, &(struct store_change){.kind = kind,
                                               .workspace = workspace,
                                               .id = 7,
                                               .conversation = *conversation,
                                               .name = kind == CHANGE_NOTE ? STR("Renée") : STR(""),
                                               .text = str_of(body)}),
              STORE_OK);
}

START_TEST(a_search_finds_text_of_every_author)
{
    struct visitor v = visitor_new(), w = visitor_new();
    post(&w, "nothing of it");
    post(&v, "Where is my ORDER, déjà payé? \xf0\x9f\x8e\x89 Straße ΣΊΣΥΦΟΣ");
    write_as_operator(CHANGE_MESSAGE_REPLY, &v.conversation, "under way");
    write_as_operator(CHANGE_NOTE, &v.conversation, "she is cross");
    static const char *const patterns[] = {"Where is my order, deja paye?",
                                           "ORDER",
                                           "er, D",
                                           "déjà",
                                           "\xf0\x9f\x8e\x89",
                                           "STRASSE",
                                           "σισυφος",
                                           "under Way",
                                           "She is CROSS",
                                           "renee",
                                           "w",
                                           "deja\xcc\x81"};
    for (size_t i = 0; i < sizeof(patterns) / sizeof(*patterns); i++) {
        struct outcome o = found(patterns[i], SEARCH_BY_TEXT);
        ck_assert_msg(o.count >= 1 && ulid_eq(&o.ids[o.count - 1], &v.conversation), "%s",
                      patterns[i]);
    }
    static const char *const others[] = {"orders", "her order", "order?", "way.", "walrus", "555"};
    for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++)
        ck_assert_msg(found(others[i], SEARCH_BY_TEXT).count == 0, "%s", others[i]);
    /* the assistant's text */
    ck_assert_uint_eq(found("found nothing", SEARCH_BY_TEXT).count, 2);
    /* an accent alone is not a letter to search for */
    struct outcome all = found("\xcc\x81", SEARCH_BY_TEXT);
    ck_assert_uint_eq(all.count, 2);
}
END_TEST

START_TEST(a_search_finds_a_visitor_by_text_and_id)
{
    struct visitor v = visitor_new(), w = visitor_new();
    lead(&v, "Ada@Example.com", "Ada Lovelace");
    lead(&w, "Ada@Example.com", "Grace Hopper");
    lead(&w, "grace@example.com", "Grace Hopper");
    expect_one(found("lovelace", SEARCH_BY_VISITOR), &v.conversation);
    expect_one(found("HOPPER", SEARCH_BY_VISITOR), &w.conversation);
    expect_one(found("grace@", SEARCH_BY_VISITOR), &w.conversation);
    ck_assert_uint_eq(found("ada@example", SEARCH_BY_VISITOR).count, 2);
    ck_assert_uint_eq(found("555-walrus", SEARCH_BY_VISITOR).count, 0);
    ck_assert_uint_eq(found("lovelace", SEARCH_BY_TEXT).count, 0);
    char id[ULID_TEXT + 1] = "";
    ulid_text(&v.id, id);
    expect_one(found(id, SEARCH_BY_VISITOR), &v.conversation);
    id[ULID_TEXT - 1] = '\0';
    ck_assert_uint_eq(found(id, SEARCH_BY_VISITOR).count, 0);
}
END_TEST

START_TEST(a_search_respects_its_filters)
{
    struct ulid other = agent_new(workspace), foreign = agent_new(kit_workspace(&kit, "other"));
    struct visitor v = visitor_new(), w = visitor_of(&other), x = visitor_of(&foreign);
    post(&v, "needle");
    kit.now += HOUR;
    struct visitor late = visitor_new();
    post(&late, "needle");
    post(&w, "needle");
    post(&x, "needle");
    set(&v, CONVERSATION_SET_HUMAN);
    ck_assert_uint_eq(found("needle", SEARCH_BY_TEXT).count, 3);
    struct store_search q = search_for("needle", SEARCH_BY_TEXT);
    q.rows.agent = other;
    expect_one(outcome_of(&q, NULL), &w.conversation);
    q = search_for("needle", SEARCH_BY_TEXT);
    q.rows.class = CONVERSATION_WAITING + 1;
    expect_one(outcome_of(&q, NULL), &v.conversation);
    q = search_for("needle", SEARCH_BY_TEXT);
    q.rows.until = kit.now;
    ck_assert_uint_eq(outcome_of(&q, NULL).count, 2);
    q = search_for("needle", SEARCH_BY_TEXT);
    q.rows.since = kit.now;
    expect_one(outcome_of(&q, NULL), &late.conversation);
    q = search_for("needle", SEARCH_BY_TEXT);
    q.rows.agent = foreign;
    ck_assert_uint_eq(outcome_of(&q, NULL).count, 0);
    char id[ULID_TEXT + 1] = "";
    ulid_text(&x.id, id);
    ck_assert_uint_eq(found(id, SEARCH_BY_VISITOR).count, 0);
    ulid_text(&v.id, id);
    q = search_for(id, SEARCH_BY_VISITOR);
    q.rows.agent = other;
    ck_assert_uint_eq(outcome_of(&q, NULL).count, 0);
    q = search_for(id, SEARCH_BY_VISITOR);
    q.rows.class = CONVERSATION_OPEN + 1;
    ck_assert_uint_eq(outcome_of(&q, NULL).count, 0);
}
END_TEST

/* ---- stops and pages ---- */

enum { CONVERSATIONS = 40, PER_CONVERSATION = 12 };
static struct visitor conversations[CONVERSATIONS];
static char all_text[CONVERSATIONS]
                    [600]; /* all its texts, separated by a byte that no pattern has */

static void fill(uint64_t seed)
{
    for (int i = 0; i < CONVERSATIONS; i++) {
        conversations[i] = visitor_new();
        all_text[i][0] = '\0';
        for (uint64_t k = kit_random(&seed) % PER_CONVERSATION; k > 0; k--) {
            char body[24];
            size_t n = 1 + kit_random(&seed) % 20;
            for (size_t c = 0; c < n; c++)
                body[c] = "aaabA"[kit_random(&seed) % 5];
            body[n] = '\0';
            write_as_operator(kit_random(&seed) % 3 == 0 ? CHANGE_NOTE : CHANGE_MESSAGE_REPLY,
                              &conversations[i].conversation, body);
            strcat(strcat(all_text[i], body), "|");
        }
        kit.now += (int64_t)(kit_random(&seed) % 3);
    }
}

/* Compared with a naive search. */
START_TEST(stopped_and_paged_searches_find_every_match)
{
    uint64_t seed = 42 + (uint64_t)_i;
    stops = 0;
    fill(seed);
    for (int round = 0; round < 12; round++) {
        char pattern[12];
        size_t n = 1 + kit_random(&seed) % 10, next = CONVERSATIONS;
        for (size_t c = 0; c < n; c++)
            pattern[c] = "aab"[kit_random(&seed) % 3];
        pattern[n] = '\0';
        struct store_search q = search_for(pattern, SEARCH_BY_TEXT);
        unsigned limit = round % 3 == 0 ? STORE_SEARCH_ROWS : 1 + (unsigned)(kit_random(&seed) % 5);
        for (bool more = true; more;) {
            struct ulid after = q.rows.after;
            q = search_for(pattern, SEARCH_BY_TEXT);
            q.rows.after = after;
            q.rows.limit = limit;
            q.budget = round % 2 == 0 ? UINT64_MAX : 1 + kit_random(&seed) % 60;
            q.stop = kit_stop; /* asked once per item read */
            struct outcome o = round % 4 < 2 ? outcome_of(&q, NULL) : outcome_until(&q, 0);
            for (size_t i = 0; i < o.count; i++) {
                do
                    next--;
                while (strcasestr(all_text[next], pattern) == NULL);
                ck_assert_msg(ulid_eq(&o.ids[i], &conversations[next].conversation), "%s: %s",
                              pattern, all_text[next]);
            }
            more = o.status == STORE_OK;
            ck_assert(!q.stopped || (more && stop.asked >= q.budget &&
                                     stop.asked <= q.budget + PER_CONVERSATION && o.count < limit));
            ck_assert(!more || q.stopped || o.count == limit);
            q.rows.after = o.last;
        }
        while (next-- > 0)
            ck_assert_msg(strcasestr(all_text[next], pattern) == NULL, "%s is missed in %s",
                          pattern, all_text[next]);
    }
    ck_assert_uint_gt(stops, 100);
}
END_TEST

static unsigned changes;

/* Each conversation but the oldest changes or is deleted while it is read. */
static void change_one(void)
{
    int i = CONVERSATIONS - 1 - (int)(++changes / 3);
    if (i <= 0 || changes % 3 != 0)
        return;
    if (i % 2 == 0)
        kit_apply(&kit, &(struct store_change){.kind = CHANGE_VISITOR_ERASE,
                                               .agent = agent,
                                               .visitor = conversations[i].id});
    else
        write_as_operator(CHANGE_MESSAGE_REPLY, &conversations[i].conversation, "b");
}

START_TEST(a_search_ends_while_the_store_changes)
{
    changes = 0;
    fill(7);
    write_as_operator(CHANGE_NOTE, &conversations[0].conversation, "the oldest");
    struct store_search q = search_for("the oldest", SEARCH_BY_TEXT);
    q.stop = kit_stop;
    expect_one(outcome_of(&q, change_one), &conversations[0].conversation);
    ck_assert_uint_gt(changes, CONVERSATIONS);
}
END_TEST

START_TEST(a_match_deleted_during_the_search_is_not_repeated)
{
    struct outcome o = {.count = 0};
    fill(7);
    write_as_operator(CHANGE_NOTE, &conversations[0].conversation, "the oldest");
    struct store_search q = search_for("the oldest", SEARCH_BY_TEXT);
    q.rows.limit = 1;
    q.stop = kit_stop;
    for (unsigned at = 1; o.count == 0; at++) {
        o = outcome_until(&q, at);
        ck_assert_int_eq(o.status, STORE_AGAIN);
    }
    kit_apply(&kit, &(struct store_change){.kind = CHANGE_VISITOR_ERASE,
                                           .agent = agent,
                                           .visitor = conversations[0].id});
    o = outcome_until(&q, 0);
    ck_assert(o.status != STORE_AGAIN && o.count == 0);
}
END_TEST

START_TEST(a_page_ends_before_a_refused_row)
{
    fill(3);
    for (int i = 0; i < CONVERSATIONS; i++)
        write_as_operator(CHANGE_NOTE, &conversations[i].conversation, "everywhere");
    struct store_search q = search_for("everywhere", SEARCH_BY_TEXT);
    for (size_t seen = 0; seen < CONVERSATIONS;) {
        struct ulid after = q.rows.after;
        q = search_for("everywhere", SEARCH_BY_TEXT);
        q.rows.after = after;
        rows_most = 2;
        struct outcome o = outcome_of(&q, NULL);
        rows_most = SIZE_MAX;
        ck_assert(o.count >= 1 && o.count < 10 &&
                  ulid_eq(&o.ids[0], &conversations[CONVERSATIONS - 1 - seen].conversation));
        seen += o.count;
        ck_assert_int_eq(o.status, seen < CONVERSATIONS ? STORE_OK : STORE_NOT_FOUND);
        q.rows.after = o.last;
    }
}
END_TEST

START_TEST(a_too_long_search_pattern_is_refused)
{
    char pattern[3 * STORE_PATTERN_CHARS + 2];
    memset(pattern, 'x', sizeof(pattern));
    pattern[3 * STORE_PATTERN_CHARS + 1] = '\0';
    ck_status(found(pattern, SEARCH_BY_TEXT).status, STORE_INVALID);
    pattern[3 * STORE_PATTERN_CHARS] = '\0';
    ck_status(found(pattern, SEARCH_BY_TEXT).status, STORE_NOT_FOUND);
    struct store_search q = search_for("x", SEARCH_BY_TEXT);
    q.rows.limit++;
    ck_status(outcome_of(&q, NULL).status, STORE_INVALID);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("store_conversation_search");
    TCase *tc = tcase_create("search");
    tcase_set_timeout(tc, 60);
    tcase_add_checked_fixture(tc, widget_begin, widget_end);
    tcase_add_test(tc, a_search_finds_text_of_every_author);
    tcase_add_test(tc, a_search_finds_a_visitor_by_text_and_id);
    tcase_add_test(tc, a_search_respects_its_filters);
    tcase_add_loop_test(tc, stopped_and_paged_searches_find_every_match, 0, 6);
    tcase_add_test(tc, a_search_ends_while_the_store_changes);
    tcase_add_test(tc, a_match_deleted_during_the_search_is_not_repeated);
    tcase_add_test(tc, a_page_ends_before_a_refused_row);
    tcase_add_test(tc, a_too_long_search_pattern_is_refused);
    suite_add_tcase(suite, tc);
    return kit_run(suite);
}
