/*
 * Requests whose work is cut into slices: their order and their length.
 */
#include "00_store_kit.h"

#include "core/later.h"
#include "core/http/request.h"

#include <string.h>

static struct kit k;
static struct worker worker;
static char order[64];

/* where memory is short, which it is not here */
void reply_error(struct request *r, enum err err, const char *format, ...)
{
    (void)r;
    (void)format;
    ck_assert_int_eq(err, -1);
}

static void setup(void)
{
    kit_open(&k);
    worker.store = k.s;
}

static void teardown(void)
{
    later_free(&worker);
    kit_close(&k);
}

/* Its id and how many slices it takes are in ${state}. */
struct job {
    char name;
    unsigned slices;
};

static void work(struct request *r)
{
    struct job *job = r->state;
    order[strlen(order)] = job->name;
    if (--job->slices > 0)
        request_later(r, work);
}

static void run(void)
{
    for (int turns = 0; worker.later != NULL; turns++) {
        ck_assert_int_lt(turns, 100);
        ck_assert_int_eq(later_wait_ms(&worker, 250), 0);
        later_run(&worker);
    }
    ck_assert_int_eq(later_wait_ms(&worker, 250), 250);
}

START_TEST(what_goes_on_goes_on_to_its_end_and_the_next_is_who_asked_first)
{
    struct job jobs[] = {{'a', 4}, {'b', 3}, {'c', 1}, {'d', 2}};
    struct request requests[4] = {{0}};
    for (int i = 0; i < 4; i++) {
        requests[i].worker = &worker;
        requests[i].state = &jobs[i];
        request_slice(&requests[i], work);
    }
    ck_assert_str_eq(order, "abcd");
    run();
    ck_assert_str_eq(order, "abcd"
                            "aaa"
                            "bb"
                            "d");
}
END_TEST

START_TEST(work_that_does_not_end_gets_longer_slices)
{
    struct job job = {'a', 2};
    struct request r = {.worker = &worker, .state = &job};
    struct timespec now;
    request_slice(&r, work);
    uint64_t usual = r.slice_until_us;
    r.slices = 1000000;
    run();
    clock_gettime(CLOCK_MONOTONIC, &now);
    ck_assert_uint_gt(r.slice_until_us, usual + 1000000);
    ck_assert_uint_lt(r.slice_until_us, (uint64_t)now.tv_sec * 1000000 + 10 * 1000000); /* but they end */
    ck_assert(!request_pause(&r));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("later");
    TCase *tc = tcase_create("later");
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, what_goes_on_goes_on_to_its_end_and_the_next_is_who_asked_first);
    tcase_add_test(tc, work_that_does_not_end_gets_longer_slices);
    suite_add_tcase(suite, tc);
    return kit_run(suite);
}
