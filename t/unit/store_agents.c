/* ULIDs, and agents in the store. */
#include "t/kit/store.h"

static struct kit kit;
static uint64_t workspace;

static void begin(void)
{
    kit_open(&kit);
    workspace = kit_workspace(&kit, "acme");
}

static void end(void)
{
    kit_check_clean(kit.s);
    kit_close(&kit);
}

/* ---- ULIDs ---- */

START_TEST(an_id_parses_back_from_its_text)
{
    /* the specification's own example: 01ARZ3NDEKTSV4RRFFQ69G5FAV */
    static const struct ulid known = {{0x01, 0x56, 0x3e, 0x3a, 0xb5, 0xd3, 0xd6, 0x76, 0x4c, 0x61,
                                       0xef, 0xb9, 0x93, 0x02, 0xbd, 0x5b}};
    char text[ULID_TEXT + 1] = "";
    struct ulid back;
    ulid_text(&known, text);
    ck_assert_str_eq(text, "01ARZ3NDEKTSV4RRFFQ69G5FAV");
    ck_assert(ulid_parse(STR("01arz3ndektsv4rrffq69g5fav"), &back) && ulid_eq(&back, &known));
    ck_assert_int_eq(ulid_ms(&known), 1469922850259);
}
END_TEST

static const char *const no_ids[] = {
    "",
    "01ARZ3NDEKTSV4RRFFQ69G5FA",
    "01ARZ3NDEKTSV4RRFFQ69G5FAVV",
    "81ARZ3NDEKTSV4RRFFQ69G5FAV",
    "01ARZ3NDEKTSV4RRFFQ69G5FAU",
    "01ARZ3NDEKTSV4RRFFQ69G5FAI",
    "01ARZ3NDEKTSV4RRFFQ69G5FA-",
};

START_TEST(a_malformed_id_is_refused)
{
    struct ulid out;
    ck_assert_msg(!ulid_parse(str_of(no_ids[_i]), &out), "%s", no_ids[_i]);
}
END_TEST

START_TEST(ids_grow_when_the_clock_goes_back)
{
    static const int64_t clock[] = {NOW, NOW, NOW + 1, NOW - 100000, NOW - 1, NOW + 1, 0, NOW + 2};
    struct ulid last = {{0}}, next;
    for (size_t i = 0; i < 8000; i++) {
        ulid_next(clock[i / 1000], &last, (uint64_t[]){(uint64_t)rand(), (uint64_t)rand() << 32},
                  &next);
        ck_assert_int_lt(memcmp(last.b, next.b, ULID_BYTES), 0);
        last = next;
    }
    ck_assert_int_eq(ulid_ms(&last), NOW + 2);
}
END_TEST

START_TEST(an_id_overflow_takes_the_next_millisecond)
{
    struct ulid next, last = ulid_of_halves((uint64_t)NOW << 16 | 0xffff, UINT64_MAX);
    ulid_next(NOW, &last, (uint64_t[]){0, 0}, &next);
    ck_assert_int_lt(memcmp(last.b, next.b, ULID_BYTES), 0);
    ck_assert_int_eq(ulid_ms(&next), NOW + 1);
}
END_TEST

/* ---- agents ---- */

struct seen {
    enum store_status status;
    size_t count;
    struct store_agent agent;
};

static void see(void *arg, enum store_status status, const struct store_agent *agent)
{
    struct seen *seen = arg;
    seen->status = status;
    if (agent == NULL)
        return;
    seen->agent = *agent;
    seen->count++;
}

static enum store_status get(const struct ulid *id, struct store_agent *out)
{
    struct seen seen = {0};
    store_agent_get(kit.s, id, see, &seen);
    *out = seen.agent;
    return seen.status;
}

static size_t count(uint64_t of)
{
    struct seen seen = {0};
    store_agent_each(kit.s, of, see, &seen);
    ck_status(seen.status, STORE_NOT_FOUND);
    store_read_end(kit.s);
    return seen.count;
}

static struct store_change create_change(void)
{
    return (struct store_change){.kind = CHANGE_AGENT_CREATE,
                                 .workspace = workspace,
                                 .name = STR("Shop"),
                                 .text = STR("https://a.example\n"),
                                 .data = STR("\"theme\":{}"),
                                 .fields = AGENT_PUBLISHED};
}

static struct ulid create(void)
{
    struct store_change c = create_change();
    struct store_answer a = kit_apply(&kit, &c);
    ck_status(a.status, STORE_OK);
    ck_assert_uint_eq(a.version, 1);
    ck_assert(!ulid_none(&a.first));
    return a.first;
}

START_TEST(an_agent_reads_back_as_created)
{
    struct store_agent a;
    struct ulid id = create();
    kit_reopen(&kit);
    ck_status(get(&id, &a), STORE_OK);
    ck_assert(str_eq(a.name, STR("Shop")) && str_eq(a.origins, STR("https://a.example\n")) &&
              str_eq(a.settings, STR("\"theme\":{}")));
    ck_assert(a.is_published && !a.require_lead && a.workspace == workspace && a.created_at == NOW);
    ck_assert(str_eq(a.name, STR("Shop")) && a.version == 1);
    ck_assert_uint_eq(count(workspace), 1);
}
END_TEST

START_TEST(an_update_changes_the_sent_fields_and_notifies_workers)
{
    struct store_agent a;
    struct ulid id = create();
    size_t events;
    kit.now += 1000;
    ck_status(kit_status(&kit, &(struct store_change){.kind = CHANGE_AGENT_UPDATE,
                                                      .agent = id,
                                                      .fields = AGENT_HAS_PUBLISHED}),
              STORE_OK);
    const struct store_event *e = store_events(kit.s, &events);
    uint64_t high, low;
    ulid_halves(&id, &high, &low);
    ck_assert(events == 1 && e->kind == EVENT_AGENT_CHANGED && e->workspace == workspace &&
              e->id == high && e->value == low);
    ck_status(get(&id, &a), STORE_OK);
    ck_assert(!a.is_published && a.version == 2 && a.created_at == NOW &&
              a.updated_at == NOW + 1000 && str_eq(a.name, STR("Shop")));
    store_read_end(kit.s);
    ck_status(kit_status(&kit, &(struct store_change){.kind = CHANGE_AGENT_UPDATE,
                                                      .agent = id,
                                                      .fields = AGENT_HAS_NAME | AGENT_HAS_ORIGINS |
                                                                AGENT_HAS_LEAD | AGENT_LEAD,
                                                      .name = STR("New")}),
              STORE_OK);
    ck_status(get(&id, &a), STORE_OK);
    ck_assert(str_eq(a.name, STR("New")) && a.origins.n == 0 && a.require_lead &&
              str_eq(a.settings, STR("\"theme\":{}")));
    ck_assert(str_eq(a.name, STR("New")) && a.version == 3);
}
END_TEST

START_TEST(an_update_of_another_version_is_refused)
{
    struct ulid id = create();
    uint64_t version = 7;
    struct store_change c = {
        .kind = CHANGE_AGENT_UPDATE, .agent = id, .fields = AGENT_HAS_NAME, .name = STR("New")};
    c.match = (struct str){(const char *)&version, sizeof(version)};
    ck_status(kit_status(&kit, &c), STORE_PRECONDITION);
    version = 1;
    ck_status(kit_status(&kit, &c), STORE_OK);
}
END_TEST

START_TEST(another_workspaces_agent_is_not_found)
{
    struct ulid id = create();
    uint64_t other = kit_workspace(&kit, "other");
    ck_assert_uint_eq(count(other), 0);
    ck_assert_uint_eq(count(0), 1);
    ck_status(kit_status(&kit, &(struct store_change){.kind = CHANGE_AGENT_UPDATE,
                                                      .workspace = other,
                                                      .agent = id}),
              STORE_NOT_FOUND);
    ck_status(kit_status(&kit, &(struct store_change){.kind = CHANGE_AGENT_DELETE,
                                                      .workspace = other,
                                                      .agent = id}),
              STORE_NOT_FOUND);
}
END_TEST

START_TEST(a_deleted_agent_stays_deleted)
{
    struct store_agent a;
    struct ulid id = create();
    const struct store_change c = {.kind = CHANGE_AGENT_DELETE, .agent = id};
    ck_status(kit_status(&kit, &c), STORE_OK);
    ck_status(get(&id, &a), STORE_NOT_FOUND);
    ck_assert_uint_eq(count(workspace), 0);
    ck_status(kit_status(&kit, &c), STORE_NOT_FOUND);
    ck_assert_uint_ge(kit_purge(&kit, 1), 1);
}
END_TEST

START_TEST(deleting_a_workspace_deletes_its_agents)
{
    struct store_agent a;
    struct ulid ids[3];
    for (int i = 0; i < 3; i++)
        ids[i] = create();
    ck_status(
        kit_status(&kit, &(struct store_change){.kind = CHANGE_WORKSPACE_DELETE, .id = workspace}),
        STORE_OK);
    ck_status(get(&ids[0], &a), STORE_NOT_FOUND);
    ck_status(
        kit_status(&kit, &(struct store_change){.kind = CHANGE_AGENT_UPDATE, .agent = ids[0]}),
        STORE_NOT_FOUND);
    ck_assert_uint_ge(kit_purge(&kit, 1), 4);
    ck_assert_uint_eq(count(0), 0);
}
END_TEST

static const struct store_change malformed[] = {
    {.name = {"", 0}, .data = {"\"a\":1", 5}},
    {.name = {"x", 1}, .data = {"", 0}},
    {.name = {"x", 1}, .data = {"\"a\":1", 5}, .text = {"https://no.end", 14}},
};

START_TEST(a_malformed_agent_is_refused)
{
    struct store_change c = malformed[_i];
    c.kind = CHANGE_AGENT_CREATE;
    c.workspace = workspace;
    ck_status(kit_status(&kit, &c), STORE_INVALID);
    ck_assert_uint_eq(count(0), 0);
}
END_TEST

START_TEST(an_agent_needs_a_living_workspace)
{
    struct store_change c = create_change();
    c.workspace = 99;
    ck_status(kit_status(&kit, &c), STORE_NOT_FOUND);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("store_agents");
    TCase *tc = tcase_create("agents");
    tcase_add_checked_fixture(tc, begin, end);
    tcase_add_test(tc, an_id_parses_back_from_its_text);
    tcase_add_loop_test(tc, a_malformed_id_is_refused, 0,
                        (int)(sizeof(no_ids) / sizeof(no_ids[0])));
    tcase_add_test(tc, ids_grow_when_the_clock_goes_back);
    tcase_add_test(tc, an_id_overflow_takes_the_next_millisecond);
    tcase_add_test(tc, an_agent_reads_back_as_created);
    tcase_add_test(tc, an_update_changes_the_sent_fields_and_notifies_workers);
    tcase_add_test(tc, an_update_of_another_version_is_refused);
    tcase_add_test(tc, another_workspaces_agent_is_not_found);
    tcase_add_test(tc, a_deleted_agent_stays_deleted);
    tcase_add_test(tc, deleting_a_workspace_deletes_its_agents);
    tcase_add_loop_test(tc, a_malformed_agent_is_refused, 0,
                        (int)(sizeof(malformed) / sizeof(malformed[0])));
    tcase_add_test(tc, an_agent_needs_a_living_workspace);
    suite_add_tcase(suite, tc);
    return kit_run(suite);
}
