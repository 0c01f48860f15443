/*
 * Pages from several sorted runs, without a store, compared with one sorted array of all elements.
 */
#include "t/kit/store.h"

#include "store/index/select_internal.h"

#define COUNT(a) ((int)(sizeof(a) / sizeof(*(a))))

enum {
    RUNS_MAX = 24,
    ROWS_MAX = 3000,
    OWN_MAX = 400,
    URL_BYTES = 24,
    WANT = 5,
    SORTS = REPORT_BY_SCORE + 1
};

struct element {
    int64_t value;
    char url[URL_BYTES];
    uint64_t id;
};

/* A segment with the fields that select.c reads, and its matching rows. */
struct made {
    struct segment segment;
    struct segment_file file; /* its data: the offsets of the URLs, and the URLs */
    atomic_uchar
        verified[(ROWS_MAX + 1) * (URL_BYTES + sizeof(uint32_t)) / SEGMENT_BLOCK_BYTES + 1];
    struct ngram_block_head block_head;
    struct ngram_block block;
    uint32_t rows;
    bool *matches;
    struct element *all; /* by row */
};

static struct made made[RUNS_MAX];
static struct index_snapshot view;
static struct run runs[RUNS_MAX + 1];
static struct element *model;
static size_t run_count, model_count;
static unsigned sort;

static void setup(void)
{
    memset(made, 0, sizeof(made));
    memset(&view, 0, sizeof(view));
    run_count = model_count = 0;
    model = NULL;
}

static void free_runs(void)
{
    for (size_t i = 0; i < run_count; i++) {
        free((void *)(uintptr_t)runs[i].bits);
        free(runs[i].before);
        free((void *)(uintptr_t)runs[i].rows);
    }
    run_count = model_count = 0;
    free(model);
    model = NULL;
}

static void free_segments(void)
{
    for (int i = 0; i < RUNS_MAX; i++) {
        const struct segment *g = &made[i].segment;
        const void *all[] = {g->ids,      g->dates,     g->scores,           g->url.row,
                             g->date.row, g->score.row, made[i].block.offset};
        for (int j = 0; j < COUNT(all); j++)
            free((void *)(uintptr_t)all[j]);
        free(made[i].matches);
        free(made[i].all);
    }
    free(view.rows);
    buf_free(&view.text);
    buf_free(&view.offset);
}

static void teardown(void)
{
    free_runs();
    free_segments();
}

static void *room(size_t n, size_t size)
{
    void *p = calloc(n + 1, size);
    kit_assert(p != NULL);
    return p;
}

/* ---- kinds of runs ---- */

enum spread { MIXED, DISJOINT, EQUAL, FEW_VALUES, STEEP, BACKWARDS };

/*
 * Columns: distribution of values and ids; runs; rows of each run but the first, and of the first;
 * rows of the in-memory tail; one of how many rows matches.
 */
static const struct shape {
    enum spread spread;
    size_t runs;
    uint32_t rows, first_rows, own, one_in;
} shapes[] = {
    {MIXED, 1, 0, 300, 0, 1},        {MIXED, 5, 200, 200, 50, 1},
    {MIXED, 5, 200, 200, 50, 3},     {MIXED, 16, 40, 40, 300, 2},
    {MIXED, 3, 20, 3000, 10, 1},     {MIXED, 3, 20, 3000, 10, 40},
    {MIXED, 20, 2, 1, 0, 1},         {MIXED, 20, 30, 0, 3, 25},
    {DISJOINT, 6, 200, 200, 60, 1},  {DISJOINT, 6, 200, 200, 60, 4},
    {DISJOINT, 4, 10, 2500, 9, 2},   {BACKWARDS, 6, 200, 200, 60, 1},
    {BACKWARDS, 9, 90, 700, 0, 3},   {EQUAL, 6, 150, 150, 70, 1},
    {EQUAL, 6, 150, 150, 70, 5},     {EQUAL, 3, 5, 2000, 100, 1},
    {FEW_VALUES, 7, 150, 150, 9, 1}, {FEW_VALUES, 4, 30, 2000, 99, 2},
    {STEEP, 7, 150, 150, 90, 1},     {STEEP, 4, 12, 2500, 40, 1},
    {STEEP, 2, 2000, 2000, 0, 7},    {MIXED, 0, 0, 0, 300, 1},
    {MIXED, 0, 0, 0, 1, 1},          {MIXED, 4, 1, 1, 1, 1},
};

static int64_t value_of(const struct shape *shape, size_t run, uint32_t row, uint64_t *seed)
{
    uint64_t random = kit_random(seed);
    switch (shape->spread) {
    case DISJOINT:
        return (int64_t)(run * 10000 + row);
    case BACKWARDS:
        return (int64_t)((RUNS_MAX - run) * 10000 + random % 100);
    case EQUAL:
        return 7;
    case FEW_VALUES:
        return (int64_t)(random % 3);
    case STEEP:
        return (int64_t)((uint64_t)1 << random % 40) + (int64_t)run;
    default:
        return (int64_t)random;
    }
}

/* Ascending by row; runs of every other kind overlap. */
static uint64_t id_of(const struct shape *shape, size_t run, uint32_t row)
{
    return shape->spread == DISJOINT || shape->spread == BACKWARDS
               ? 1 + run * 10000 + row
               : 1 + row * (uint64_t)(RUNS_MAX + 1) + run;
}

static struct element element_of(const struct shape *shape, size_t run, uint32_t row,
                                 uint64_t *seed)
{
    struct element e = {.value = value_of(shape, run, row, seed), .id = id_of(shape, run, row)};
    snprintf(e.url, sizeof(e.url), "%llx", (unsigned long long)e.value);
    return e;
}

/* The sort key. */
static int64_t key_value(const struct element *e)
{
    return sort == REPORT_BY_GENERATED_AT ? e->value : sort == REPORT_BY_SCORE ? e->value % 101 : 0;
}

static int compare(const void *one, const void *other)
{
    const struct element *a = one, *b = other;
    int64_t x = key_value(a), y = key_value(b);
    int by = x != y ? (x < y ? -1 : 1) : sort == REPORT_BY_URL ? strcmp(a->url, b->url) : 0;
    return by != 0 ? by : a->id < b->id ? -1 : a->id > b->id;
}

static const struct element *of_rows;

static int compare_rows(const void *one, const void *other)
{
    return compare(&of_rows[*(const uint16_t *)one], &of_rows[*(const uint16_t *)other]);
}

static uint16_t *order_of(const struct made *m, unsigned by)
{
    uint16_t *order = room(m->rows, sizeof(*order));
    for (uint32_t i = 0; i < m->rows; i++)
        order[i] = (uint16_t)i;
    sort = by;
    of_rows = m->all;
    qsort(order, m->rows, sizeof(*order), compare_rows);
    return order;
}

static void make_segment(const struct shape *shape, size_t run, uint32_t rows, uint64_t *seed)
{
    struct made *m = &made[run];
    uint64_t *ids = room(rows, sizeof(*ids));
    int64_t *dates = room(rows, sizeof(*dates));
    int8_t *scores = room(rows, 1);
    uint32_t *offset = room(rows, sizeof(*offset) + URL_BYTES);
    char *text = (char *)(offset + rows + 1);
    *m = (struct made){.rows = rows,
                       .matches = room(rows, sizeof(bool)),
                       .all = room(rows, sizeof(struct element))};
    for (uint32_t i = 0; i < rows; i++) {
        struct element e = m->all[i] = element_of(shape, run, i, seed);
        m->matches[i] = kit_random(seed) % shape->one_in == 0;
        ids[i] = e.id;
        dates[i] = e.value;
        scores[i] = (int8_t)(e.value % 101);
        offset[i + 1] = offset[i] + (uint32_t)strlen(e.url) + 1;
        strcpy(text + offset[i], e.url);
    }
    memset(m->verified, 1, sizeof(m->verified));
    m->file = (struct segment_file){.data = (const uint8_t *)offset,
                                    .data_bytes = (size_t)(text - (char *)offset) + offset[rows],
                                    .verified = m->verified};
    m->block = (struct ngram_block){
        .head = &m->block_head, .offset = offset, .text = (const uint8_t *)text};
    m->segment = (struct segment){.file = &m->file,
                                  .rows = rows,
                                  .words = (rows + 63) / 64,
                                  .ngram_block_shift = NGRAM_BLOCK_ROWS_SHIFT,
                                  .ids = ids,
                                  .dates = dates,
                                  .scores = scores,
                                  .ngram_blocks = &m->block};
    m->segment.url.row = order_of(m, REPORT_BY_URL);
    m->segment.date.row = order_of(m, REPORT_BY_GENERATED_AT);
    m->segment.score.row = order_of(m, REPORT_BY_SCORE);
}

static struct element own[OWN_MAX];

static void make_tail(const struct shape *shape, uint64_t *seed)
{
    uint32_t at = 0;
    view.rows = room(shape->own, sizeof(*view.rows));
    view.row_count = shape->own;
    buf_add(&view.offset, &at, sizeof(at));
    for (uint32_t i = 0; i < shape->own; i++) {
        struct element e = own[i] = element_of(shape, shape->runs, i, seed);
        view.rows[i] =
            (struct tail_row){.id = e.id, .date = e.value, .score = (int8_t)(e.value % 101)};
        buf_add(&view.text, e.url, strlen(e.url) + 1);
        at = (uint32_t)view.text.n;
        buf_add(&view.offset, &at, sizeof(at));
    }
}

static void make(const struct shape *shape)
{
    uint64_t seed = 5;
    kit_assert(shape->runs <= RUNS_MAX && shape->own <= OWN_MAX && shape->first_rows <= ROWS_MAX);
    for (size_t i = 0; i < shape->runs; i++)
        make_segment(shape, i, i == 0 ? shape->first_rows : shape->rows, &seed);
    make_tail(shape, &seed);
}

/* ---- building runs, and the model ---- */

static void model_add(const struct element *e)
{
    model[model_count++] = *e;
}

static uint32_t row_at(const struct segment *g, uint32_t rank)
{
    return sort == REPORT_BY_URL            ? g->url.row[rank]
           : sort == REPORT_BY_GENERATED_AT ? g->date.row[rank]
           : sort == REPORT_BY_SCORE        ? g->score.row[rank]
                                            : rank;
}

/* ${few}: only its matching rows. */
static void run_segment(const struct made *m, bool few, struct run *run)
{
    uint64_t *bits = room(m->segment.words, sizeof(*bits));
    uint32_t *rows = room(m->rows, sizeof(*rows));
    *run = (struct run){.segment = &m->segment, .bits = bits, .rows = rows};
    for (uint32_t rank = 0; rank < m->rows; rank++) {
        uint32_t row = row_at(&m->segment, rank);
        if (!m->matches[row])
            continue;
        bit_set(bits, rank);
        rows[run->count++] = row;
        model_add(&m->all[row]);
    }
    if (few) {
        run->ranks = run->count;
        return;
    }
    free(rows);
    run->rows = NULL;
    run->words = run->count == 0 ? 0 : m->segment.words;
    run->ranks = run->count == 0 ? 0 : m->rows;
    run->before = room(m->segment.words, sizeof(*run->before));
    run_of_bits(run);
}

static void run_own(const struct shape *shape, struct run *run)
{
    uint32_t *rows = room(shape->own, sizeof(*rows));
    struct made m = {.rows = shape->own, .all = own};
    uint16_t *order = order_of(&m, sort);
    for (uint32_t i = 0; i < shape->own; i++) {
        rows[i] = order[i];
        model_add(&own[order[i]]);
    }
    free(order);
    *run = (struct run){.rows = rows, .ranks = shape->own, .count = shape->own};
}

static void begin_runs(const struct shape *shape, unsigned by, bool few)
{
    size_t rows = shape->own;
    for (size_t i = 0; i < shape->runs; i++)
        rows += made[i].rows;
    model = room(rows, sizeof(*model));
    sort = by;
    for (run_count = 0; run_count < shape->runs; run_count++)
        run_segment(&made[run_count], few && run_count % 3 != 0, &runs[run_count]);
    run_own(shape, &runs[run_count++]);
    qsort(model, model_count, sizeof(*model), compare);
}

/* ---- pages ---- */

static void page(size_t from, size_t want, uint64_t *ids)
{
    const struct selection s = {&view, runs, run_count, sort};
    select_page(&s, from, want, ids);
}

static void expect_page(size_t from)
{
    uint64_t ids[WANT];
    size_t want = model_count - from < WANT ? model_count - from : WANT;
    page(from, want, ids);
    for (size_t i = 0; i < want; i++)
        ck_assert_msg(ids[i] == model[from + i].id, "sort %u, the %zu-th from %zu: %llu, not %llu",
                      sort, i, from, (unsigned long long)ids[i],
                      (unsigned long long)model[from + i].id);
}

START_TEST(a_page_of_any_runs_equals_the_sorted_elements)
{
    const struct shape *shape = &shapes[_i];
    make(shape);
    for (unsigned by = 0; by < 2 * SORTS; by++) {
        begin_runs(shape, by / 2, by % 2 != 0);
        for (size_t from = 0; from + WANT<model_count; from += model_count> 500 ? 7 : 1)
            expect_page(from);
        for (size_t last = 0; last <= WANT && last <= model_count; last++)
            expect_page(model_count - last);
        free_runs();
    }
}
END_TEST

/* Only ids, of two runs longer than segments; their positions are uncorrelated. */
START_TEST(a_position_is_found_in_runs_of_any_length)
{
    enum { LONG = 1 << 20, SPARSE = 1 << 19 };
    struct segment longs[2] = {{.rows = LONG}, {.rows = LONG}};
    uint64_t *all = room(2 * LONG, sizeof(*all)), *bits = room(LONG / 64, sizeof(*bits)), ids[WANT];
    memset(bits, 0xff, LONG / 8);
    for (size_t i = 0; i < LONG; i++) {
        all[i] = 2 * i;                                                          /* even ones */
        all[LONG + i] = i < SPARSE ? 4 * i + 1 : 4 * (size_t)SPARSE + 2 * i + 1; /* some odd ones */
    }
    for (run_count = 0; run_count < 2; run_count++) {
        struct run *run = &runs[run_count];
        longs[run_count].ids = all + run_count * LONG;
        *run = (struct run){.segment = &longs[run_count],
                            .bits = bits,
                            .before = room(LONG / 64, sizeof(uint32_t)),
                            .words = LONG / 64,
                            .ranks = LONG};
        run_of_bits(run);
    }
    sort = REPORT_BY_ID;
    for (size_t from = 0; from + WANT < 2 * LONG; from += 4099) {
        uint32_t before = 0;
        page(from, WANT, ids);
        for (size_t r = 0; r < 2; r++) { /* that many are below the first of the page */
            size_t low = 0, high = LONG;
            while (low < high)
                if (all[r * LONG + (low + high) / 2] < ids[0])
                    low = (low + high) / 2 + 1;
                else
                    high = (low + high) / 2;
            before += (uint32_t)low;
        }
        ck_assert_uint_eq(before, from);
        for (size_t i = 1; i < WANT; i++)
            ck_assert_uint_gt(ids[i], ids[i - 1]);
    }
    runs[1].bits = NULL; /* both have the same */
    free_runs();
    free(all);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("store_selection");
    TCase *tc = tcase_create("select");
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_set_timeout(tc, 60);
    tcase_add_loop_test(tc, a_page_of_any_runs_equals_the_sorted_elements, 0, COUNT(shapes));
    tcase_add_test(tc, a_position_is_found_in_runs_of_any_length);
    suite_add_tcase(suite, tc);
    return kit_run(suite);
}
