/* Which pages of a file are free, beside a model as simple as can be: a byte for each page. */
#include "t/00_store_kit.h"

#include "../store/spare.h"

#define PAGES 2000
#define FIRST 1

static bool in_use[PAGES];
static struct spare p;

static void setup(void)
{
    memset(in_use, 0, sizeof(in_use));
    p = (struct spare){.end = FIRST};
}

static void teardown(void)
{
    spare_free(&p);
}

/* Every page before the end is in use or in a run; runs ascend and none touches the next. */
static void expect_as_the_model(void)
{
    uint64_t at = FIRST;
    for (size_t i = 0; i < p.count; i++) {
        kit_assert(p.runs[i].count > 0);
        kit_assert(i == 0 ? p.runs[0].page >= FIRST : p.runs[i].page > at);
        for (; at < p.runs[i].page; at++)
            kit_assert(in_use[at]);
        for (; at < p.runs[i].page + p.runs[i].count; at++)
            kit_assert(!in_use[at]);
    }
    for (; at < p.end; at++)
        kit_assert(in_use[at]); /* else it is lost */
    for (; at < PAGES; at++)
        kit_assert(!in_use[at]);
}

/* How many pages the shortest free run has that fits; 0: none does. */
static uint64_t best(uint64_t count)
{
    uint64_t least = 0;
    for (size_t i = 0; i < p.count; i++)
        if (p.runs[i].count >= count && (least == 0 || p.runs[i].count < least))
            least = p.runs[i].count;
    return least;
}

static uint64_t run_at(uint64_t page)
{
    for (size_t i = 0; i < p.count; i++)
        if (p.runs[i].page == page)
            return p.runs[i].count;
    return 0;
}

static void mark(struct page_run run, bool now)
{
    kit_assert(run.page >= FIRST && run.page + run.count <= PAGES);
    for (uint64_t i = run.page; i < run.page + run.count; i++) {
        kit_assert(in_use[i] != now); /* not twice */
        in_use[i] = now;
    }
}

static struct page_run take(uint64_t count)
{
    uint64_t want = best(count), end = p.end;
    static struct page_run before[PAGES];
    size_t runs = p.count;
    if (runs != 0)
        memcpy(before, p.runs, runs * sizeof(*before));
    struct page_run run = {spare_take(&p, count), count};
    if (want == 0)
        ck_assert_uint_eq(run.page, end);
    for (size_t i = 0; i < runs && want != 0; i++)
        if (before[i].page == run.page)
            kit_assert(before[i].count == want);
    kit_assert(want == 0 || p.end == end);
    mark(run, true);
    return run;
}

static void give(struct page_run run)
{
    spare_give(&p, run);
    mark(run, false);
}

START_TEST(what_is_taken_is_nobody_elses_and_what_is_given_joins_what_it_touches)
{
    enum { HELD = 60 };
    struct page_run held[HELD];
    size_t count = 0;
    uint64_t seed = 11 + (uint64_t)_i;
    for (int i = 0; i < 4000; i++) {
        if (count < HELD && kit_random(&seed) % 2) {
            held[count++] = take(1 + kit_random(&seed) % (kit_random(&seed) % 4 == 0 ? 20 : 3));
        } else if (count != 0) {
            size_t at = kit_random(&seed) % count;
            uint64_t part = kit_random(&seed) % 3 == 0 ? kit_random(&seed) % held[at].count : 0;
            if (part != 0) { /* its end alone */
                give((struct page_run){held[at].page + held[at].count - part, part});
                held[at].count -= part;
            } else {
                give(held[at]);
                held[at] = held[--count];
            }
        }
        expect_as_the_model();
    }
    while (count != 0)
        give(held[--count]);
    ck_assert_uint_eq(p.count, 1);
    ck_assert_uint_eq(p.runs[0].page, FIRST);
    ck_assert_uint_eq(p.runs[0].page + p.runs[0].count, p.end);
}
END_TEST

/* Columns: what is given in that order, in the end one run. */
static const struct page_run joined[][3] = {
    {{5, 2}, {7, 3}, {10, 1}},
    {{10, 1}, {7, 3}, {5, 2}},
    {{5, 2}, {10, 1}, {7, 3}},
};

START_TEST(runs_that_touch_become_one_on_either_side_or_on_both)
{
    p.end = 20;
    spare_give(&p, (struct page_run){1, 2});
    spare_give(&p, (struct page_run){15, 2});
    for (int i = 0; i < 3; i++)
        spare_give(&p, joined[_i][i]);
    ck_assert_uint_eq(p.count, 3);
    ck_assert_uint_eq(run_at(5), 6);
    ck_assert_uint_eq(run_at(1), 2);
    ck_assert_uint_eq(run_at(15), 2);
}
END_TEST

START_TEST(the_shortest_run_that_fits_is_taken_from_and_the_end_grows_only_where_none_does)
{
    p.end = 100;
    spare_give(&p, (struct page_run){10, 9});
    spare_give(&p, (struct page_run){30, 4});
    spare_give(&p, (struct page_run){50, 5});
    ck_assert_uint_eq(spare_take(&p, 4), 30);
    ck_assert_uint_eq(spare_take(&p, 4), 50);
    ck_assert_uint_eq(run_at(54), 1);
    ck_assert_uint_eq(spare_take(&p, 10), 100);
    ck_assert_uint_eq(p.end, 110);
    ck_assert_uint_eq(spare_take(&p, 9), 10);
    ck_assert_uint_eq(spare_take(&p, 1), 54);
    ck_assert_uint_eq(p.count, 0);
    ck_assert_uint_eq(spare_take(&p, 1), 110);
}
END_TEST

START_TEST(the_rest_is_all_that_no_run_has_whatever_their_order)
{
    uint64_t seed = 5 + (uint64_t)_i;
    for (int round = 0; round < 50; round++) {
        struct page_run used[100];
        size_t count = 0;
        memset(in_use, 0, sizeof(in_use));
        uint64_t last = FIRST;
        for (uint64_t at = FIRST + kit_random(&seed) % 3; count < (size_t)round * 2 && at < PAGES - 40; at += kit_random(&seed) % 4) {
            used[count] = (struct page_run){at, 1 + kit_random(&seed) % 9};
            mark(used[count], true);
            last = at += used[count++].count;
        }
        for (size_t i = count; i > 1; i--) {
            size_t other = kit_random(&seed) % i;
            struct page_run swap = used[i - 1];
            used[i - 1] = used[other];
            used[other] = swap;
        }
        ck_assert(spare_rest(&p, FIRST, used, count)); /* in place of what was known */
        ck_assert_uint_eq(p.end, last);
        expect_as_the_model();
    }
}
END_TEST

START_TEST(the_rest_of_runs_that_lie_over_each_other_is_what_none_has)
{
    struct page_run used[] = {{10, 4}, {3, 2}, {11, 1}, {12, 5}, {3, 2}};
    ck_assert(spare_rest(&p, FIRST, used, 5));
    ck_assert_uint_eq(p.count, 2);
    ck_assert_uint_eq(run_at(1), 2);
    ck_assert_uint_eq(run_at(5), 5);
    ck_assert_uint_eq(p.end, 17);
}
END_TEST

START_TEST(without_any_run_nothing_is_free_before_the_end)
{
    spare_give(&p, (struct page_run){3, 4});
    ck_assert(spare_rest(&p, FIRST, NULL, 0));
    ck_assert_uint_eq(p.count, 0);
    ck_assert_uint_eq(spare_take(&p, 7), FIRST);
    ck_assert_uint_eq(p.end, FIRST + 7);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("store spare");
    TCase *tc = tcase_create("spare");
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_loop_test(tc, what_is_taken_is_nobody_elses_and_what_is_given_joins_what_it_touches, 0, 3);
    tcase_add_loop_test(tc, runs_that_touch_become_one_on_either_side_or_on_both, 0, 3);
    tcase_add_test(tc, the_shortest_run_that_fits_is_taken_from_and_the_end_grows_only_where_none_does);
    tcase_add_loop_test(tc, the_rest_is_all_that_no_run_has_whatever_their_order, 0, 3);
    tcase_add_test(tc, the_rest_of_runs_that_lie_over_each_other_is_what_none_has);
    tcase_add_test(tc, without_any_run_nothing_is_free_before_the_end);
    suite_add_tcase(suite, tc);
    return kit_run(suite);
}
