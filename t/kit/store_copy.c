#include "t/kit/store_copy.h"

#include "t/kit/space_rows.h"

#include "store/maintenance.h"

#include <locale.h>
#include <time.h>

/* ---- the row sets of the first store ---- */

struct row_set row_sets[ROW_SETS_MAX];
size_t row_set_count, row_sets_applied;
struct kit copy;

/* The writer notes senders in the same transaction. */
static void take_set(struct kit *k, struct store_txn *t)
{
    ck_assert_uint_lt(row_set_count, ROW_SETS_MAX);
    if (k != &kit)
        return;
    store_sender_note(t, random_below(5), row_set_count, STR("an answer"));
    if (random_below(9) == 0)
        store_sender_drop(t, random_below(5));
    ck_status(store_rows_take(t, store_rows_formats.newest, &row_sets[row_set_count++].rows),
              STORE_OK);
}

void copy_take_events(const struct store *s, struct buf *out)
{
    size_t count;
    const struct store_event *events = store_events(s, &count);
    buf_reset(out);
    buf_add(out, events, count * sizeof(*events));
    ck_assert(buf_ok(out));
}

static void take_events(struct kit *k)
{
    if (k == &kit)
        copy_take_events(k->s, &row_sets[row_set_count - 1].events);
}

/* The second store merges at other times and has segments of other sizes. */
static void copy_options(void)
{
    kit_segment_rows = 20;
    kit_ngram_block_shift = 7;
    kit_log_entries = 3;
}

static void first_options(void)
{
    kit_segment_rows = 64;
    kit_ngram_block_shift = 6;
    kit_log_entries = 10;
}

static void copy_open(void)
{
    copy_options();
    kit_open(&copy);
    store_follow(copy.s, true);
    first_options();
}

void copy_begin(void)
{
    setlocale(LC_ALL, "C");
    kit_committing = take_set;
    kit_committed = take_events;
    kit_collects = true;
    memset(&copy, 0, sizeof(copy));
    row_set_count = row_sets_applied = 0;
    random_begin();
    kit_collects = false;
    copy_open();
}

void copy_end(void)
{
    kit_committing = NULL;
    kit_committed = NULL;
    for (size_t i = 0; i < row_set_count; i++) {
        buf_free(&row_sets[i].rows);
        buf_free(&row_sets[i].events);
    }
    kit_close(&copy);
    random_end();
}

void copy_reopen(uint64_t map_bytes)
{
    copy_options();
    store_close(copy.s);
    copy.s = kit_store(copy.dir, STORE_WRITE, map_bytes);
    store_follow(copy.s, true);
    first_options();
}

void copy_reopen_first(void)
{
    kit_collects = true;
    kit_reopen(&kit);
    kit_collects = false;
}

/* ---- applying ---- */

/* Up to ${most} row sets, in transactions of random length. */
void copy_apply(size_t most)
{
    setlocale(LC_ALL, "C.UTF-8");
    setenv("TZ", "Asia/Kathmandu", 1);
    tzset();
    for (; row_sets_applied < row_set_count && most > 0; most--) {
        struct store_txn *t;
        store_read_end(copy.s);
        ck_status(store_begin(copy.s, &t), STORE_OK);
        for (unsigned n = 1 + random_below(4); n > 0 && row_sets_applied < row_set_count; n--)
            ck_status(store_rows_apply(t, buf_view(&row_sets[row_sets_applied++].rows)), STORE_OK);
        ck_status(store_commit(t), STORE_OK);
    }
    unsetenv("TZ");
    setlocale(LC_ALL, "C");
}

/* Changes of local spaces alone: the first store deletes. */
static struct store_answer carry_local(void *arg, const struct store_change *change)
{
    ck_assert_int_ne(change->kind, CHANGE_PURGE_DELETED);
    return kit_apply(arg, change);
}

static bool never(void *arg)
{
    (void)arg;
    return false;
}

void copy_maintain(unsigned steps)
{
    char why[512];
    struct store *reader;
    store_read_end(copy.s);
    ck_status(store_share(copy.s, &reader, why, sizeof(why)), STORE_OK);
    struct maintenance *m = maintenance_new(reader, carry_local, never, &copy);
    for (; steps > 0 && maintenance_step(m, false) == MAINTENANCE_MORE; steps--)
        continue;
    maintenance_free(m);
    store_close(reader);
}

/* ---- comparing ---- */

void copy_expect_equal_rows(void)
{
    for (enum space space = 0; space < SPACE_COUNT; space++) {
        struct buf a = {0}, b = {0};
        if (!space_follows_log(space))
            continue;
        space_rows(kit.s, space, &a);
        space_rows(copy.s, space, &b);
        ck_assert_msg(str_eq(buf_view(&a), buf_view(&b)), "space %s: %zu and %zu bytes",
                      space_name(space), a.n, b.n);
        buf_free(&a);
        buf_free(&b);
    }
}

static void add_list(struct store *s, const struct store_list_query *q, struct buf *out)
{
    struct kit_list l = kit_reports(s, q);
    ck_status(l.status, STORE_OK);
    buf_add(out, &l.total, sizeof(l.total));
    for (size_t i = 0; i < l.count; i++) {
        const struct store_report *r = &l.reports[i];
        buf_printf(out, "%llu %llu %d %d %s;", (unsigned long long)r->id,
                   (unsigned long long)r->version, r->score, (int)r->status,
                   r->results.n == 0 ? "" : "graded");
        buf_str(out, r->url);
    }
    store_read_end(s);
}

static void add_lists(struct store *s, uint64_t of, struct buf *out)
{
    static const char *const patterns[] = {"", "host-1", "/9", "COM/1", "none"};
    for (unsigned i = 0; i < 40; i++) {
        struct store_list_query q = {.workspace = of,
                                     .sort = i % 4,
                                     .ascending = i % 3 == 0,
                                     .search = str_of(patterns[i % 5]),
                                     .status = i % 7 < 4 ? i % 7 : 0,
                                     .page = 1 + i % 2,
                                     .per_page = 30,
                                     .with_results = i % 8 == 0};
        add_list(s, &q, out);
    }
}

static void add_projects(struct store *s, uint64_t of, struct buf *out)
{
    for (unsigned sort = PROJECT_BY_CREATED_AT; sort <= PROJECT_BY_NAME; sort++) {
        struct store_list_query q = {.workspace = of, .sort = sort, .page = 1, .per_page = 50};
        struct kit_list l = kit_projects(s, &q);
        for (size_t i = 0; i < l.count; i++) {
            buf_printf(out, "%llu %llu;", (unsigned long long)l.projects[i].id,
                       (unsigned long long)l.projects[i].reports);
            buf_str(out, l.projects[i].name);
        }
        store_read_end(s);
    }
}

static void add_gradings(struct store *s, struct buf *out)
{
    for (uint64_t id = 1; id <= 60; id++) {
        struct kit_gradings g = kit_gradings(s, STORE_ANY_WORKSPACE, id, 0, STORE_GRADINGS_MAX);
        buf_printf(out, "%d:", (int)g.status);
        for (size_t i = 0; i < g.count; i++)
            buf_printf(out, "%u %d;", g.items[i].number, g.items[i].score);
        store_read_end(s);
    }
}

/* The readers of store_widget.h read ${kit}. */
static void add_chat(struct store *s, struct buf *out)
{
    struct store *first = kit.s;
    kit.s = s;
    for (unsigned kind = 0; kind <= ROWS_RATINGS; kind++)
        for (uint64_t w = 1; w <= 4; w++) {
            struct texts t = rows((enum store_rows)kind, (struct store_rows_query){.workspace = w});
            for (size_t i = 0; i < t.count; i++) {
                buf_add(out, &t.id[i], sizeof(t.id[i]));
                buf_adds(out, t.text[i]);
                if (kind != ROWS_CONVERSATIONS)
                    continue;
                struct texts m = messages(&t.id[i], NULL, NULL, true, 50);
                for (size_t j = 0; j < m.count; j++)
                    buf_adds(out, m.text[j]);
            }
        }
    kit.s = first;
}

static void take_found(void *arg, enum store_status status, const struct store_found *found)
{
    struct buf *out = arg;
    buf_printf(out, "answer %d:", (int)status);
    if (status != STORE_OK)
        return;
    uint64_t ids = 0;
    double shares = 0;
    for (size_t i = 0; i < found->count; i++) {
        ids += found->hits[i].document.id;
        shares += found->hits[i].share;
    }
    buf_printf(out, "%zu hits ", found->count);
    if (found->count < STORE_HITS_MAX)
        buf_printf(out, "%llu %.6f", (unsigned long long)ids, shares);
}

/*
 * The order of hits depends on the statistics of an answer file, and these on its past. So the hits
 * are compared as a set, if they are all.
 */
static void add_answers(struct store *s, struct buf *out)
{
    static const char *const questions[] = {"walrus", "the returns of a heron", "words", "nothing"};
    for (unsigned i = 0; i < 8; i++) {
        const struct store_question q = {.agent = *random_agent(i / 4),
                                         .text = str_of(questions[i % 4]),
                                         .language = STR("en"),
                                         .limit = STORE_HITS_MAX,
                                         .excerpt_bytes = 60};
        store_find(s, &q, take_found, out);
        store_read_end(s);
    }
}

static struct buf take_answers(struct store *s)
{
    struct buf out = {0};
    for (uint64_t w = 1; w <= 4; w++) {
        add_lists(s, w, &out);
        add_projects(s, w, &out);
    }
    add_gradings(s, &out);
    add_chat(s, &out);
    add_answers(s, &out);
    buf_printf(&out, "%zu jobs", kit_jobs(s));
    ck_assert(buf_ok(&out));
    return out;
}

/* With the answer files of both up to date. */
void copy_expect_equal(void)
{
    kit_follow(&kit, 1000);
    copy_apply(SIZE_MAX);
    kit_follow(&copy, 1000);
    copy_expect_equal_rows();
    kit_check_clean(kit.s);
    kit_check_clean(copy.s);
    struct buf a = take_answers(kit.s), b = take_answers(copy.s);
    ck_assert(str_eq(buf_view(&a), buf_view(&b)));
    buf_free(&a);
    buf_free(&b);
}
