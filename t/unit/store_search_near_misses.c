/*
 * Searches over texts that nearly match at each character. Each takes long, so a list checks
 * between texts whether to stop. A search that starts again after a stop has the same result.
 */
#include "store/engine/environment.h"
#include "store/index/context_internal.h"
#include "store/index/match_cache_internal.h"
#include "t/kit/store.h"

/*
 * How many rows with that many letters can be read in one step: of a block or the tail, and of rows
 * read one by one. It checks at the verification of each segment and before a read.
 */
enum { LETTERS = 80, ROWS = 100, OTHERS = 600, AT_ONCE = 4, FEW_AT_ONCE = 16, SEGMENTS = 2 };

static struct kit k;
static uint64_t w;
static char near[1024], pattern[2 * LETTERS + 3];
static struct kit_stop stop;

static void setup(void)
{
    kit_segment_rows = 1024;
    kit_ngram_block_shift = 10;
    kit_log_entries = 512;
    kit_open(&k);
    w = kit_workspace(&k, "acme");
    strcpy(near, "https://a.test/");
    pattern[0] = '\0';
    for (int i = 0; i < LETTERS; i++) {
        strcat(near, "%d0%b1");
        strcat(pattern, "\xD0\xB1");
    }
    strcat(pattern, "\xD0\xB0");
    stop = (struct kit_stop){0};
}

static void teardown(void)
{
    kit_close(&k);
    kit_segment_rows = kit_ngram_block_shift = kit_log_entries = 0;
}

/*
 * Every other row has the pattern; the others have a letter between a near match and its last
 * letter.
 */
static uint64_t create_near(unsigned i, const char *project)
{
    char url[1100];
    snprintf(url, sizeof(url), "%s%s/%u", near, i % 2 == 0 ? "%d0%90" : "/%d0%90", i);
    return kit_create(&k, w, url, project);
}

static struct store_list_query query(void)
{
    return (struct store_list_query){.workspace = w,
                                     .sort = REPORT_BY_ID,
                                     .page = 1,
                                     .per_page = 1,
                                     .search = str_of(pattern),
                                     .stop = kit_stop,
                                     .stop_arg = &stop};
}

/* Asked to stop at the ${at}-th check; 0: never. */
static struct kit_list list_until(const struct store_list_query *q, bool projects, unsigned at)
{
    stop = (struct kit_stop){.at = at};
    struct kit_list l = projects ? kit_projects(k.s, q) : kit_reports(k.s, q);
    store_read_end(k.s);
    return l;
}

/* How often the list, of that total, checks whether to stop. */
static unsigned checks_of(const struct store_list_query *q, bool projects, uint64_t total)
{
    struct kit_list l = list_until(q, projects, 0);
    ck_status(l.status, STORE_OK);
    ck_assert_uint_eq(l.total, total);
    return stop.asked;
}

/* The first time it stops at any check, at once, and returns the same rows when it restarts. */
static void expect_stops(const struct store_list_query *q, bool projects, uint64_t total)
{
    match_cache_free(k.s);
    for (unsigned at = 1; list_until(q, projects, at).status == STORE_AGAIN; at += 1 + at / 8) {
        ck_assert_uint_eq(stop.asked, at);
        checks_of(q, projects, total);
        match_cache_free(k.s);
    }
    ck_assert_uint_lt(stop.asked, stop.at);
    checks_of(q, projects, total);
}

/* Columns: one of how many rows nearly matches; with one in two, all rows of the block are read. */
static const unsigned one_in[] = {6, 2, 1};

START_TEST(a_search_stops_within_a_block_and_finds_every_match_later)
{
    unsigned among = one_in[_i];
    for (unsigned i = 0; i < ROWS * among; i++)
        if (i % among == 0)
            create_near(i / among, "a.test");
        else
            kit_create(&k, w, "https://a.test/other", "a.test");
    for (unsigned i = ROWS * among; i < OTHERS; i++)
        kit_create(&k, w, "https://a.test/other", "a.test");
    kit_purge(&k, 1000);
    struct store_list_query q = query();
    ck_assert_uint_ge(checks_of(&q, false, ROWS / 2), ROWS / AT_ONCE);
    ck_assert_uint_eq(checks_of(&q, false, ROWS / 2), SEGMENTS);
    expect_stops(&q, false, ROWS / 2);
}
END_TEST

/* The map must be resized from the ${at}-th check on. */
static bool map_is_to_change(void *arg)
{
    struct kit_stop *s = arg;
    if (++s->asked == s->at)
        atomic_store(&k.s->shared->waiting, 1);
    return false;
}

START_TEST(a_search_releases_its_snapshot_for_a_map_resize)
{
    for (unsigned i = 0; i < ROWS; i++)
        create_near(i, "a.test");
    for (unsigned i = ROWS; i < OTHERS; i++)
        kit_create(&k, w, "https://a.test/other", "a.test");
    kit_purge(&k, 1000);
    struct store_list_query q = query();
    checks_of(&q, false, ROWS / 2); /* which opens the segment */
    match_cache_free(k.s);
    unsigned checks = checks_of(&q, false, ROWS / 2);
    ck_assert_uint_gt(checks, ROWS / AT_ONCE);
    q.stop = map_is_to_change;
    for (unsigned at = 1; at < checks; at++) {
        match_cache_free(k.s);
        ck_status(list_until(&q, false, at).status, STORE_AGAIN);
        ck_assert_uint_eq(stop.asked, at);
        atomic_store(&k.s->shared->waiting, 0);
        checks_of(&q, false, ROWS / 2);
    }
}
END_TEST

static void few_among_others(bool graded)
{
    for (unsigned i = 0; i < ROWS; i++) {
        uint64_t id = create_near(i, "few.test");
        if (graded)
            kit_done(&k, id, 1, 100);
    }
    for (unsigned i = 0; i < OTHERS; i++)
        kit_create(&k, w, "https://a.test/other", "a.test");
    kit_purge(&k, 1000);
}

START_TEST(a_search_stops_within_a_small_project)
{
    struct store_project p;
    few_among_others(false);
    ck_status(kit_project(k.s, w, "few.test", &p), STORE_OK);
    struct store_list_query q = query();
    q.project = p.id;
    for (q.sort = REPORT_BY_ID; q.sort <= REPORT_BY_SCORE; q.sort++) {
        ck_assert_uint_ge(checks_of(&q, false, ROWS / 2), ROWS / FEW_AT_ONCE);
        expect_stops(&q, false, ROWS / 2);
    }
    q.sort = REPORT_BY_ID;
    q.project = 0; /* the cached matches of these rows must not exclude others */
    expect_stops(&q, false, ROWS / 2);
    q.project = p.id; /* and the whole segment need not be read again */
    ck_assert_uint_eq(checks_of(&q, false, ROWS / 2), SEGMENTS);
    q.stop = NULL;
    checks_of(&q, false, ROWS / 2);
}
END_TEST

START_TEST(a_search_stops_within_few_filtered_rows)
{
    few_among_others(true);
    struct store_list_query q = query();
    q.result = RESULT_GOOD;
    ck_assert_uint_ge(checks_of(&q, false, ROWS / 2), ROWS / FEW_AT_ONCE);
    expect_stops(&q, false, ROWS / 2);
}
END_TEST

START_TEST(a_search_stops_within_the_tail_and_keeps_its_matches)
{
    struct store_list_query q = query();
    for (unsigned i = 0; i < ROWS; i++)
        create_near(i, "a.test");
    ck_assert_uint_ge(checks_of(&q, false, ROWS / 2), ROWS / AT_ONCE);
    ck_assert_uint_eq(checks_of(&q, false, ROWS / 2), 0);
    expect_stops(&q, false, ROWS / 2);
    for (unsigned i = 0; i < 2; i++)
        create_near(i, "a.test");
    /* for their tail records, and their order */
    ck_assert_uint_le(checks_of(&q, false, ROWS / 2 + 1), 4);
    struct store_change c = {.kind = CHANGE_REPORT_DELETE, .workspace = w, .id = 1};
    ck_status(kit_status(&k, &c), STORE_OK);
    checks_of(&q, false, ROWS / 2);
    for (unsigned i = 0; i < OTHERS; i++) /* it becomes a segment, and others take its position */
        kit_create(&k, w, "https://a.test/other", "a.test");
    kit_purge(&k, 1000);
    for (unsigned i = 0; i < 2; i++)
        create_near(i, "a.test");
    checks_of(&q, false, ROWS / 2 + 1);
}
END_TEST

START_TEST(a_project_search_stops_within_long_names)
{
    enum { PROJECTS = 300, LONG = 240, HALF = 100 };
    char name[LONG + 32];
    for (unsigned i = 0; i < PROJECTS; i++) {
        memset(name, 'a', LONG);
        for (unsigned at = HALF - 1; i % 2 == 0 && at < LONG; at += HALF)
            name[at] = 'b'; /* nearly */
        snprintf(name + LONG, sizeof(name) - LONG, "%u", i);
        kit_create(&k, w, "https://a.test/", name);
    }
    memset(pattern, 'a', HALF);
    pattern[HALF] = '\0';
    struct store_list_query q = query();
    q.sort = PROJECT_BY_NAME;
    q.stop = NULL;
    q.search = STR("nothing"); /* it reads every row */
    checks_of(&q, true, 0);
    q.stop = kit_stop;
    q.search = str_of(pattern);
    ck_assert_uint_ge(checks_of(&q, true, PROJECTS / 2), PROJECTS * LONG * HALF >> 19);
    ck_assert_uint_eq(checks_of(&q, true, PROJECTS / 2), 0);
    expect_stops(&q, true, PROJECTS / 2);
    name[0] = 'c';
    kit_create(&k, w, "https://a.test/", name);
    checks_of(&q, true, PROJECTS / 2 + 1);
}
END_TEST

START_TEST(a_tail_extended_by_one_transaction_is_read_in_parts)
{
    enum { CHANGES = 400, RECORD = 64 << 10 };
    struct store_txn *t;
    struct store_answer a;
    struct store_list_query q = query();
    struct store_change c = kit_create_change(w, near, "a.test");
    ck_status(store_begin(k.s, &t), STORE_OK);
    for (unsigned i = 0; i < CHANGES; i++) {
        store_apply(t, &c, k.now, &a);
        ck_status(a.status, STORE_OK);
    }
    ck_status(store_commit(t), STORE_OK);
    q.search.n = 0;
    ck_assert_uint_gt(checks_of(&q, false, CHANGES), CHANGES * strlen(near) / RECORD);
    kit_check_clean(k.s);
}
END_TEST

START_TEST(the_match_cache_is_bounded_and_drops_deleted_rows)
{
    enum { NEEDLES = 700, MOST = 512, ROUNDS = 40, AT_ONCE_CREATED = 300 };
    char text[16];
    size_t bytes = 0, before = 0, drops = 0;
    struct store_list_query q = {.workspace = w,
                                 .sort = PROJECT_BY_NAME,
                                 .page = 1,
                                 .per_page = 10,
                                 .search = STR("a.test")};
    kit_log_entries = 64;
    kit_reopen(&k);
    for (unsigned round = 0; round < ROUNDS; round++) {
        for (unsigned i = 0; i < AT_ONCE_CREATED; i++)
            kit_create(&k, w, "https://a.test/", "a.test");
        kit_purge(&k, 1000);
        q.sort = REPORT_BY_ID;
        checks_of(&q, false, (round + 1) * AT_ONCE_CREATED);
        drops += k.s->index->match_cache->count < before;
        before = k.s->index->match_cache->count;
    }
    ck_assert_uint_ge(drops, 2); /* each round adds a segment, and some are merged */
    for (unsigned i = 0; i < NEEDLES; i++) {
        snprintf(text, sizeof(text), "%u", i);
        q.sort = PROJECT_BY_NAME;
        q.search = str_of(text);
        checks_of(&q, true, 0);
    }
    size_t count = 0;
    for (const struct match_cache_entry *f = k.s->index->match_cache; f != NULL;
         f = f->next, count++)
        bytes += f->bytes;
    ck_assert_uint_eq(count, MOST);
    ck_assert_uint_eq(k.s->index->match_cache_count, MOST);
    ck_assert_uint_eq(k.s->index->match_cache_bytes, bytes);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("store_search_near_misses");
    TCase *tc = tcase_create("stops");
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_set_timeout(tc, 60);
    tcase_add_loop_test(tc, a_search_stops_within_a_block_and_finds_every_match_later, 0,
                        (int)(sizeof(one_in) / sizeof(*one_in)));
    tcase_add_test(tc, a_search_releases_its_snapshot_for_a_map_resize);
    tcase_add_test(tc, a_search_stops_within_a_small_project);
    tcase_add_test(tc, a_search_stops_within_few_filtered_rows);
    tcase_add_test(tc, a_search_stops_within_the_tail_and_keeps_its_matches);
    tcase_add_test(tc, a_project_search_stops_within_long_names);
    tcase_add_test(tc, a_tail_extended_by_one_transaction_is_read_in_parts);
    tcase_add_test(tc, the_match_cache_is_bounded_and_drops_deleted_rows);
    suite_add_tcase(suite, tc);
    return kit_run(suite);
}
