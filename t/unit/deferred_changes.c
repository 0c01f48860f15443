/* Changes that wait for a node that leads: their order, and how much of them is kept. */
#include "core/writer/deferred_changes.h"
#include "t/kit/suite.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

enum { LARGE = DEFERRED_BYTES / 2 };

static struct deferred_changes deferred;
static struct client sender, other;
static char *bytes;

static void setup(void)
{
    bytes = calloc(1, LARGE);
    ck_assert_ptr_nonnull(bytes);
}

static void teardown(void)
{
    deferred_changes_free(&deferred);
    deferred = (struct deferred_changes){0};
    sender.gone = false;
    free(bytes);
}

static void add(struct client *client, uint64_t number, size_t size)
{
    const struct frame frame = {.head = {.a = number, .payload = (uint32_t)size},
                                .payload = {bytes, size}};
    deferred_changes_add(&deferred, client, &frame);
}

static void expect(size_t i, uint64_t number, bool refused)
{
    ck_assert_uint_lt(i, deferred.count);
    ck_assert_uint_eq(deferred.list[i].head.a, number);
    ck_assert_int_eq(deferred_change_is_refused(&deferred.list[i]), refused);
}

/* What is refused keeps its place, since answers come in the order of the changes. */
START_TEST(a_change_above_the_limit_is_refused_in_its_turn)
{
    add(&sender, 1, LARGE);
    add(&sender, 2, LARGE);
    add(&sender, 3, 1);
    add(&sender, 4, 0);
    expect(0, 1, false);
    expect(1, 2, false);
    expect(2, 3, true);
    expect(3, 4, false);
    deferred_changes_drop(&deferred, 1);
    add(&sender, 5, 1);
    expect(0, 2, false);
    expect(3, 5, false);
    ck_assert_uint_eq(deferred_change_frame(&deferred.list[3]).payload.n, 1);
}
END_TEST

START_TEST(changes_of_a_disconnected_sender_are_forgotten)
{
    add(&sender, 1, LARGE);
    add(&other, 1, LARGE);
    add(&sender, 2, LARGE);
    sender.gone = true;
    deferred_changes_forget(&deferred);
    ck_assert_uint_eq(deferred.count, 1);
    ck_assert_ptr_eq(deferred.list[0].client, &other);
    add(&other, 2, LARGE);
    expect(1, 2, false);
    ck_assert_uint_eq(deferred.bytes, DEFERRED_BYTES);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("deferred_changes");
    TCase *tcase = tcase_create("deferred_changes");
    suite_add_tcase(suite, tcase);
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, a_change_above_the_limit_is_refused_in_its_turn);
    tcase_add_test(tcase, changes_of_a_disconnected_sender_are_forgotten);
    return suite_run(suite);
}
