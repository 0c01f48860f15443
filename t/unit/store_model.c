/*
 * Random changes compared with a simple model: an array of reports that is filtered and sorted for
 * each query. After every batch the store is consistent and answers as the model does. The seeds
 * are fixed, so a failure repeats.
 */
#include "t/kit/store.h"

#define WORKSPACES 3
#define PROJECTS 5
#define REPORTS 4000
#define BATCHES 60
#define PER_BATCH 40
#define GRADINGS 24 /* of a report, at most */

struct model_report {
    uint64_t id, version;
    uint32_t attempt;
    int workspace, project;
    bool there;
    enum report_status status;
    int score; /* -1: never done */
    int64_t generated_at;
    struct {
        uint32_t attempt;
        int score;
        int64_t at;
    } gradings[GRADINGS];
    size_t grading_count;
    uint32_t privacy;
    char url[1200];
};

static const char *const names[PROJECTS] = {"a.com", "b.org", "c.net", "dd.com", "e.io"};
static struct model_report *reports;
static size_t count;
static uint64_t workspaces[WORKSPACES];
static uint64_t projects[WORKSPACES][PROJECTS]; /* 0: not there */
static uint64_t seed;
static struct kit k;

static uint32_t pick(uint32_t below)
{
    seed = seed * 6364136223846793005ULL + 1442695040888963407ULL;
    return (uint32_t)(seed >> 33) % below;
}

/* ---- one random change, in the store and in the model ---- */

static void model_create(struct store_txn *t)
{
    struct store_answer a;
    struct model_report *r = &reports[count];
    if (count == REPORTS)
        return;
    r->workspace = (int)pick(WORKSPACES);
    r->project = (int)pick(PROJECTS);
    size_t pad = pick(10) == 0 ? 400 + pick(600) : 0;
    static const char *const words[] = {"shop", "Pricing", "blog", "about-us", "item"};
    int n = snprintf(r->url, sizeof(r->url), "https://%s/%s/%u", names[r->project], words[pick(5)],
                     pick(40));
    memset(r->url + n, 'x', pad);
    r->url[(size_t)n + pad] = '\0';
    struct store_change c = kit_create_change(workspaces[r->workspace], r->url, names[r->project]);
    store_apply(t, &c, k.now, &a);
    ck_status(a.status, STORE_OK);
    r->id = a.id;
    r->version = 1;
    r->attempt = 1;
    r->there = true;
    r->status = REPORT_PENDING;
    r->score = -1;
    r->generated_at = 0;
    r->grading_count = 0;
    r->privacy = 0;
    count++;
}

static struct model_report *any(void)
{
    for (int i = 0; i < 20 && count != 0; i++) {
        struct model_report *r = &reports[pick((uint32_t)count)];
        if (r->there)
            return r;
    }
    return NULL;
}

static void model_finish(struct store_txn *t)
{
    struct store_answer a;
    struct model_report *r = any();
    if (r == NULL)
        return;
    bool fails = pick(4) == 0;
    uint32_t attempt = r->attempt - (pick(8) == 0);
    int score = (int)pick(101);
    struct store_change c =
        fails ? kit_failed_change(r->id, attempt) : kit_done_change(r->id, attempt, score);
    store_apply(t, &c, k.now, &a);
    if (r->status != REPORT_PENDING || attempt != r->attempt) {
        ck_status(a.status, STORE_STALE);
        return;
    }
    ck_status(a.status, STORE_OK);
    r->version++;
    r->status = fails ? REPORT_FAILED : REPORT_DONE;
    if (!fails) {
        r->score = score;
        r->generated_at = k.now;
        ck_assert_uint_lt(r->grading_count, GRADINGS);
        r->gradings[r->grading_count].attempt = attempt;
        r->gradings[r->grading_count].score = score;
        r->gradings[r->grading_count++].at = k.now;
    }
}

static void model_update(struct store_txn *t)
{
    struct store_answer a;
    struct model_report *r = any();
    if (r == NULL)
        return;
    struct store_change c = {
        .kind = CHANGE_REPORT_UPDATE, .workspace = workspaces[r->workspace], .id = r->id};
    uint32_t privacy = pick(2);
    if (pick(2)) {
        c.fields |= CHANGE_HAS_PRIVACY;
        c.privacy = privacy;
    }
    if (pick(2))
        c.fields |= CHANGE_REGENERATE;
    store_apply(t, &c, k.now, &a);
    ck_status(a.status, STORE_OK);
    bool again = (c.fields & CHANGE_REGENERATE) && r->status != REPORT_PENDING;
    bool moved = (c.fields & CHANGE_HAS_PRIVACY) && privacy != r->privacy;
    r->version += again || moved;
    if (moved)
        r->privacy = privacy;
    if (again) {
        r->status = REPORT_PENDING;
        r->attempt++;
    }
    ck_assert_uint_eq(a.version, r->version);
}

static void model_delete(struct store_txn *t)
{
    struct store_answer a;
    struct model_report *r = any();
    if (r == NULL)
        return;
    struct store_change c = {
        .kind = CHANGE_REPORT_DELETE, .workspace = workspaces[r->workspace], .id = r->id};
    store_apply(t, &c, k.now, &a);
    ck_status(a.status, STORE_OK);
    r->there = false;
}

static void model_delete_project(struct store_txn *t)
{
    struct store_answer a;
    int w = (int)pick(WORKSPACES), p = (int)pick(PROJECTS);
    if (projects[w][p] == 0)
        return;
    struct store_change c = {
        .kind = CHANGE_PROJECT_DELETE, .workspace = workspaces[w], .id = projects[w][p]};
    store_apply(t, &c, k.now, &a);
    ck_status(a.status, STORE_OK);
    projects[w][p] = 0;
    for (size_t i = 0; i < count; i++)
        reports[i].there =
            reports[i].there && (reports[i].workspace != w || reports[i].project != p);
}

static void model_purge(struct store_txn *t)
{
    struct store_answer a;
    struct store_change c = {.kind = CHANGE_PURGE, .limit = 1 + pick(20)};
    for (uint32_t steps = pick(12); steps > 0; steps--) { /* of a merge as well */
        store_apply(t, &c, k.now, &a);
        ck_assert(a.status == STORE_OK || a.status == STORE_NOT_FOUND);
    }
}

/* The store lists the existing projects; the model lists the expected ones. */
static void learn_projects(void)
{
    for (int w = 0; w < WORKSPACES; w++) {
        for (int p = 0; p < PROJECTS; p++) {
            struct store_project got;
            bool there = kit_project(k.s, workspaces[w], names[p], &got) == STORE_OK;
            bool wanted = projects[w][p] != 0;
            for (size_t i = 0; i < count; i++)
                wanted = wanted ||
                         (reports[i].there && reports[i].workspace == w && reports[i].project == p);
            ck_assert_int_eq(there || !wanted, 1);
            ck_assert(projects[w][p] == 0 || (there && projects[w][p] == got.id));
            projects[w][p] = there ? got.id : 0;
        }
    }
}

/* Maintenance without work; it rests for a while after that. */
static void undone(void)
{
    struct store_txn *t;
    store_read_end(k.s);
    ck_status(store_begin(k.s, &t), STORE_OK);
    model_purge(t);
    store_abort(t);
    k.now += 60000;
}

static void batch(void)
{
    struct store_txn *t;
    store_read_end(k.s);
    if (pick(5) == 0)
        undone();
    if (pick(2))
        kit_maintain(&k, 1 + pick(30), pick(6));
    ck_status(store_begin(k.s, &t), STORE_OK);
    for (int i = 0; i < PER_BATCH; i++) {
        uint32_t dice = pick(100);
        k.now += pick(3);
        if (dice < 45)
            model_create(t);
        else if (dice < 75)
            model_finish(t);
        else if (dice < 87)
            model_update(t);
        else if (dice < 95)
            model_delete(t);
        else
            model_purge(t);
    }
    ck_status(store_commit(t), STORE_OK);
    learn_projects();
    if (pick(3) != 0)
        return;
    store_read_end(k.s);
    ck_status(store_begin(k.s, &t), STORE_OK);
    model_delete_project(t);
    ck_status(store_commit(t), STORE_OK);
}

/* ---- queries ---- */

static unsigned sort_by;
static bool ascending;

static int order(const void *a, const void *b)
{
    const struct model_report *x = &reports[*(const size_t *)a], *y = &reports[*(const size_t *)b];
    int64_t by = 0;
    if (sort_by == REPORT_BY_GENERATED_AT)
        by = x->generated_at - y->generated_at;
    if (sort_by == REPORT_BY_SCORE)
        by = x->score - y->score;
    if (sort_by == REPORT_BY_URL)
        by = strcmp(x->url, y->url);
    if (by == 0)
        by = x->id < y->id ? -1 : 1;
    return (by < 0) == ascending ? -1 : 1;
}

static enum report_result result_of(const struct model_report *r)
{
    return r->score < 0 ? RESULT_NONE : kit_result(r->score);
}

static void same(const struct store_report *got, const struct model_report *want)
{
    ck_assert_uint_eq(got->id, want->id);
    ck_assert_uint_eq(got->version, want->version);
    ck_assert_uint_eq(got->attempt, want->attempt);
    ck_assert_int_eq(got->status, want->status);
    ck_assert_int_eq(got->score, want->score);
    ck_assert_int_eq(got->result, result_of(want));
    ck_assert_int_eq(got->generated_at, want->generated_at);
    ck_assert_uint_eq(got->privacy, want->privacy);
    ck_assert(str_eq(got->url, str_of(want->url)));
}

static const char *const patterns[] = {
    "",  "",          "COM/s",         "xx",       "g/1",        "//e.io/shop/", "/",
    "3", "pricing/2", "no such thing", "https://", "ABOUT-us/39"};

static struct kit_stop stop;

/* It is stopped up to three times, at any time, and restarted. */
static struct kit_list answer_to(const struct store_list_query *q)
{
    struct kit_list l;
    for (uint32_t left = pick(2) ? pick(4) : 0;; left--) {
        stop = (struct kit_stop){.at = left > 0 ? 1 + pick(20) : 0};
        l = kit_reports(k.s, q);
        if (l.status != STORE_AGAIN || left == 0)
            return l;
        ck_assert_uint_eq(stop.asked, stop.at);
        store_read_end(k.s);
    }
}

static struct store_list_query any_query(int *w, int *p)
{
    *w = (int)pick(WORKSPACES);
    *p = (int)pick(PROJECTS + 3);
    struct store_list_query q = {.workspace = workspaces[*w],
                                 .sort = pick(4),
                                 .ascending = pick(2),
                                 .result = pick(2) ? pick(4) : 0,
                                 .status = pick(3) ? 0 : pick(4),
                                 .page = 1 + (pick(2) ? pick(4) : pick(40)),
                                 .per_page = 1 + pick(60),
                                 .search = str_of(patterns[pick(12)]),
                                 .stop = kit_stop,
                                 .stop_arg = &stop};
    if (*p < PROJECTS && projects[*w][*p] != 0)
        q.project = projects[*w][*p];
    return q;
}

static void query(void)
{
    static size_t matching[REPORTS];
    size_t matches = 0;
    int w, p;
    struct store_list_query q = any_query(&w, &p);
    for (size_t i = 0; i < count; i++) {
        const struct model_report *r = &reports[i];
        if (r->there && r->workspace == w && (q.project == 0 || r->project == p) &&
            (q.result == 0 || result_of(r) == q.result) &&
            (q.status == 0 || (unsigned)r->status == q.status - 1) &&
            strcasestr(r->url, q.search.p) != NULL)
            matching[matches++] = i;
    }
    sort_by = q.sort;
    ascending = q.ascending;
    qsort(matching, matches, sizeof(*matching), order);
    struct kit_list l = answer_to(&q);
    ck_status(l.status, STORE_OK);
    ck_assert_uint_eq(l.total, matches);
    size_t from = (size_t)(q.page - 1) * q.per_page, left = from < matches ? matches - from : 0;
    ck_assert_uint_eq(l.count, left < q.per_page ? left : q.per_page);
    for (size_t i = 0; i < l.count; i++)
        same(&l.reports[i], &reports[matching[from + i]]);
}

static void query_projects(void)
{
    for (int w = 0; w < WORKSPACES; w++) {
        struct store_workspace workspace;
        uint64_t all = 0, listed = 0;
        for (int p = 0; p < PROJECTS; p++) {
            struct store_project got;
            uint64_t wanted = 0, scored = 0, total = 0;
            for (size_t i = 0; i < count; i++) {
                const struct model_report *r = &reports[i];
                if (!r->there || r->workspace != w || r->project != p)
                    continue;
                wanted++;
                scored += r->score >= 0;
                total += r->score >= 0 ? (uint64_t)r->score : 0;
            }
            all += wanted;
            listed += projects[w][p] != 0;
            if (projects[w][p] == 0)
                continue;
            ck_status(kit_project(k.s, workspaces[w], names[p], &got), STORE_OK);
            ck_assert_uint_eq(got.reports, wanted);
            ck_assert_uint_eq(got.scored, scored);
            ck_assert_uint_eq(got.score_total, total);
        }
        ck_status(kit_get_workspace(k.s, workspaces[w], &workspace), STORE_OK);
        ck_assert_uint_eq(workspace.reports, all);
        ck_assert_uint_eq(workspace.projects, listed);
        struct store_list_query q = {.workspace = workspaces[w], .page = 1, .per_page = 50};
        ck_assert_uint_eq(kit_projects(k.s, &q).total, listed);
    }
}

static void query_gradings(const struct model_report *r)
{
    struct kit_gradings g =
        kit_gradings(k.s, workspaces[r->workspace], r->id, 0, STORE_GRADINGS_MAX);
    ck_status(g.status, r->there ? STORE_OK : STORE_NOT_FOUND);
    ck_assert_uint_eq(g.count, r->there ? r->grading_count : 0);
    for (size_t i = 0; i < g.count; i++) {
        size_t of = g.count - 1 - i;
        ck_assert_uint_eq(g.items[i].number, r->gradings[of].attempt);
        ck_assert_int_eq(g.items[i].score, r->gradings[of].score);
        ck_assert_int_eq(g.items[i].result, kit_result(r->gradings[of].score));
        ck_assert_int_eq(g.items[i].generated_at, r->gradings[of].at);
        ck_assert_uint_eq(g.items[i].facts.page_bytes, 5000);
    }
}

static void query_reports(void)
{
    size_t pending = 0;
    for (size_t i = 0; i < count; i++) {
        struct store_report got;
        enum store_status status =
            kit_report(k.s, workspaces[reports[i].workspace], reports[i].id, &got);
        ck_status(status, reports[i].there ? STORE_OK : STORE_NOT_FOUND);
        query_gradings(&reports[i]);
        if (!reports[i].there)
            continue;
        same(&got, &reports[i]);
        ck_assert_uint_eq(got.results.n != 0, reports[i].score >= 0);
        pending += reports[i].status == REPORT_PENDING;
    }
    ck_assert_uint_eq(kit_jobs(k.s), pending);
}

/*
 * Columns: rows of a segment, rows of a block as a power of two, tail length: small numbers, so
 * that merges are frequent.
 */
static const struct {
    uint32_t rows, shift, entries;
} sizes[] = {{40, 6, 15}, {150, 6, 40}, {600, 7, 25}, {0, 0, 0}};

START_TEST(random_changes_leave_a_clean_store_equal_to_the_model)
{
    seed = (uint64_t)_i * 7919 + 1;
    kit_segment_rows = sizes[_i % 4].rows;
    kit_ngram_block_shift = sizes[_i % 4].shift;
    kit_log_entries = sizes[_i % 4].entries;
    kit_small_rows = _i / 4 % 2 ? 60 : 0; /* small workspaces, and empty ones */
    count = 0;
    memset(projects, 0, sizeof(projects));
    reports = calloc(REPORTS, sizeof(*reports));
    kit_open(&k);
    for (int w = 0; w < WORKSPACES; w++) {
        char name[8];
        snprintf(name, sizeof(name), "w%d", w);
        workspaces[w] = kit_workspace(&k, name);
    }
    for (int i = 0; i < BATCHES; i++) {
        batch();
        for (int q = 0; q < 40; q++)
            query();
        if (i % 10 == 9) {
            query_projects();
            query_reports();
            kit_check_clean(k.s);
        }
        if (i % 20 == 19)
            kit_reopen(&k);
    }
    kit_purge(&k, 50);
    kit_check_clean(k.s);
    query_reports();
    kit_close(&k);
    free(reports);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("store_model");
    TCase *tc = tcase_create("model");
    tcase_set_timeout(tc, 120);
    tcase_add_loop_test(tc, random_changes_leave_a_clean_store_equal_to_the_model, 0, 8);
    suite_add_tcase(suite, tc);
    return kit_run(suite);
}
