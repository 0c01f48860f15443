/* Lists of projects: by date or name, with a search, and while projects change. */
#include "t/kit/store_fixtures.h"

static void expect_projects(const struct store_list_query *q, const char *names)
{
    char got[1024] = "";
    struct kit_list l = kit_projects(k.s, q);
    ck_status(l.status, STORE_OK);
    for (size_t i = 0; i < l.count; i++) {
        size_t n = strlen(got);
        snprintf(got + n, sizeof(got) - n, "%s%.*s", i == 0 ? "" : " ", (int)l.projects[i].name.n,
                 l.projects[i].name.p);
    }
    ck_assert_str_eq(got, names);
    ck_assert_uint_eq(l.total, l.count);
    store_read_end(k.s);
}

START_TEST(projects_are_listed_by_date_or_by_name_and_searched)
{
    static const char *const names[] = {"m.com", "b.org", "z.com", "ab.com"};
    for (int i = 0; i < 4; i++) {
        kit_create(&k, w, "https://x/", names[i]);
        k.now += i == 1 ? 0 : 1000; /* the second and the third at the same time */
    }
    struct store_list_query q = query(PROJECT_BY_CREATED_AT, true);
    expect_projects(&q, "m.com b.org z.com ab.com");
    q.ascending = false;
    expect_projects(&q, "ab.com z.com b.org m.com");
    q.sort = PROJECT_BY_NAME;
    expect_projects(&q, "z.com m.com b.org ab.com");
    q.ascending = true;
    expect_projects(&q, "ab.com b.org m.com z.com");
    q.search = STR("B.");
    expect_projects(&q, "ab.com b.org");
    q.search = STR("nothing");
    expect_projects(&q, "");
    q.search = (struct str){NULL, 0};
    q.per_page = 2;
    q.page = 2;
    struct kit_list l = kit_projects(k.s, &q);
    ck_assert_uint_eq(l.count, 2);
    ck_assert_uint_eq(l.total, 4);
    ck_assert(str_eq(l.projects[0].name, STR("m.com")));
    q.page = 3;
    l = kit_projects(k.s, &q);
    ck_assert_uint_eq(l.count, 0);
    ck_assert_uint_eq(l.total, 4);
}
END_TEST

/* ---- projects that are created and deleted ---- */

#define MODEL_PROJECTS 4000
static struct model_project {
    char name[32];
    uint64_t id; /* 0: not there */
    int64_t created_at;
} model[MODEL_PROJECTS];
static uint32_t model_seed;
static unsigned model_sort;

static uint32_t pick(uint32_t below)
{
    model_seed = model_seed * 1664525 + 1013904223;
    return (model_seed >> 8) % below;
}

/*
 * Create ${count} missing projects in one transaction, in another workspace as well. The clock
 * sometimes steps back.
 */
static void make_projects(unsigned count, uint64_t other)
{
    struct store_txn *t;
    struct store_answer a;
    k.now += (int64_t)pick(3000) - 1000;
    ck_status(store_begin(k.s, &t), STORE_OK);
    for (unsigned i = 0; i < count; i++) {
        struct model_project *p = &model[pick(MODEL_PROJECTS)];
        if (p->id != 0)
            continue;
        struct store_change c = kit_create_change(w, "https://x/", p->name);
        store_apply(t, &c, k.now, &a);
        ck_status(a.status, STORE_OK);
        p->id = 1; /* the test asks below which one it is */
        p->created_at = k.now;
        c = kit_create_change(other, "https://x/", p->name);
        store_apply(t, &c, k.now, &a);
        ck_status(a.status, STORE_OK);
    }
    ck_status(store_commit(t), STORE_OK);
    for (size_t i = 0; i < MODEL_PROJECTS; i++) {
        struct store_project p;
        if (model[i].id != 1)
            continue;
        ck_status(kit_project(k.s, w, model[i].name, &p), STORE_OK);
        model[i].id = p.id;
    }
    store_read_end(k.s);
}

static bool purge_step(void)
{
    return kit_status(&k, &(struct store_change){.kind = CHANGE_PURGE, .limit = 10}) == STORE_OK;
}

static void delete_projects(unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        struct model_project *p = &model[pick(MODEL_PROJECTS)];
        if (p->id == 0)
            continue;
        ck_status(kit_status(&k, &(struct store_change){.kind = CHANGE_PROJECT_DELETE,
                                                        .workspace = w,
                                                        .id = p->id}),
                  STORE_OK);
        p->id = 0;
    }
    purge_step();
}

static int model_order(const void *a, const void *b)
{
    const struct model_project *x = *(struct model_project *const *)a,
                               *y = *(struct model_project *const *)b;
    if (model_sort == PROJECT_BY_NAME)
        return strcmp(x->name, y->name);
    if (x->created_at != y->created_at)
        return x->created_at < y->created_at ? -1 : 1;
    return x->id < y->id ? -1 : x->id > y->id;
}

static void expect_model(const struct store_list_query *q, const struct kit_list *l)
{
    static struct model_project *there[MODEL_PROJECTS];
    size_t count = 0, from = (size_t)(q->page - 1) * q->per_page;
    for (size_t i = 0; i < MODEL_PROJECTS; i++)
        if (model[i].id != 0 && (q->search.n == 0 || strstr(model[i].name, q->search.p) != NULL))
            there[count++] = &model[i];
    model_sort = q->sort;
    qsort(there, count, sizeof(*there), model_order);
    ck_assert_uint_eq(l->total, count);
    ck_assert_uint_eq(l->count, from >= count                ? 0
                                : count - from < q->per_page ? count - from
                                                             : q->per_page);
    for (size_t i = 0; i < l->count; i++)
        ck_assert_uint_eq(l->projects[i].id,
                          there[q->ascending ? from + i : count - 1 - from - i]->id);
}

START_TEST(a_project_list_is_exact_while_projects_change)
{
    static const char *const sought[] = {"", "", "7", "p1", ".net", "nothing"};
    uint64_t other = kit_workspace(&k, "other");
    unsigned again = 0;
    model_seed = (uint32_t)_i + 1;
    for (unsigned i = 0; i < MODEL_PROJECTS; i++)
        snprintf(model[i].name, sizeof(model[i].name), "p%u.%s", i * 7919 % 100003,
                 i % 3 ? "com" : "net");
    make_projects(2500, other);
    for (int round = 0; round < 40; round++) {
        struct kit_stop stop = {0};
        struct store_list_query q = {.workspace = w,
                                     .sort = pick(2),
                                     .ascending = pick(2),
                                     .search = str_of(sought[pick(6)]),
                                     .page = 1 + pick(5),
                                     .per_page = 1 + pick(100),
                                     .stop = pick(4) ? kit_stop : NULL,
                                     .stop_arg = &stop};
        unsigned every = 1 + pick(4);
        struct kit_list l;
        for (unsigned turns = 0;; again++, turns++) {
            stop = (struct kit_stop){.at = (turns + 1) * every};
            l = kit_projects(k.s, &q);
            if (l.status != STORE_AGAIN)
                break;
            ck_assert_uint_lt(turns, 1000);
            ck_assert_uint_eq(stop.asked, stop.at);
            store_read_end(k.s);
            if (turns < 20)
                make_projects(pick(4), other);
            if (turns < 20 && pick(2))
                delete_projects(pick(3));
        }
        ck_status(l.status, STORE_OK);
        expect_model(&q, &l);
        store_read_end(k.s);
        make_projects(pick(3) == 0 ? pick(1500) : pick(3), other);
        delete_projects(pick(3));
    }
    ck_assert_uint_gt(again, 20);
    kit_check_clean(k.s);
}
END_TEST

START_TEST(a_project_list_can_stop_while_projects_change)
{
    enum { TURNS = 60, STEP = 16 }; /* that many keys of an index are read at once */
    uint64_t other = kit_workspace(&k, "other");
    struct kit_stop stop;
    struct store_list_query q = {
        .workspace = w, .page = 1, .per_page = 10, .stop = kit_stop, .stop_arg = &stop};
    model_seed = 7;
    for (unsigned i = 0; i < MODEL_PROJECTS; i++)
        snprintf(model[i].name, sizeof(model[i].name), "p%u.com", i * 7919 % 100003);
    make_projects(2 * MODEL_PROJECTS, other);
    struct kit_list l;
    for (unsigned turn = 1; turn <= TURNS; turn++) {
        stop = (struct kit_stop){.at = turn * 5};
        ck_status(kit_projects(k.s, &q).status, STORE_AGAIN);
        ck_assert_uint_eq(stop.asked, stop.at);
        store_read_end(k.s);
        make_projects(2, other);
        delete_projects(2);
    }
    stop = (struct kit_stop){0};
    l = kit_projects(k.s, &q);
    ck_assert_uint_ge(stop.asked, 2 * (l.total / STEP) + l.count / 8);
    expect_model(&q, &l);
    store_read_end(k.s);
    uint64_t before = l.total;
    make_projects(3000, other);
    stop = (struct kit_stop){0};
    l = kit_projects(k.s, &q);
    /* new ones arrive in steps as well */
    ck_assert_uint_ge(stop.asked, (l.total - before) / STEP + l.count / 8);
    expect_model(&q, &l);
    store_read_end(k.s);
    struct model_project *newest = model;
    for (size_t i = 0; i < MODEL_PROJECTS; i++)
        newest = model[i].id > newest->id ? &model[i] : newest;
    ck_status(kit_status(&k, &(struct store_change){.kind = CHANGE_PROJECT_DELETE,
                                                    .workspace = w,
                                                    .id = newest->id}),
              STORE_OK);
    newest->id = 0;
    q = (struct store_list_query){.workspace = w,
                                  .sort = PROJECT_BY_NAME,
                                  .search = str_of(newest->name),
                                  .page = 1,
                                  .per_page = 10};
    l = kit_projects(k.s, &q);
    ck_status(l.status, STORE_OK);
    expect_model(&q, &l); /* the last one of one order is anywhere in the other */
    store_read_end(k.s);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("store_project_lists");
    TCase *tc = tcase_create("projects");
    tcase_add_checked_fixture(tc, workspace_setup, store_teardown);
    tcase_set_timeout(tc, 60);
    tcase_add_test(tc, projects_are_listed_by_date_or_by_name_and_searched);
    tcase_add_loop_test(tc, a_project_list_is_exact_while_projects_change, 0, 4);
    tcase_add_test(tc, a_project_list_can_stop_while_projects_change);
    suite_add_tcase(suite, tc);
    return kit_run(suite);
}
