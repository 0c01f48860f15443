/*
 * The typing table: a process reads what another one writes until it expires, also when the table
 * is full.
 */
#include "core/shm/typing_table.h"
#include "t/kit/suite.h"

#include <check.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#define NOW UINT64_C(1000000)

static struct typing_table *board;

static void begin(void)
{
    board = typing_table_new();
    ck_assert_ptr_nonnull(board);
}

static void end(void)
{
    typing_table_free(board);
}

static struct ulid id(uint64_t n)
{
    return ulid_of_halves(UINT64_C(1) << 40, n * UINT64_C(0x9E3779B97F4A7C15));
}

START_TEST(a_ping_expires_and_belongs_to_one_side)
{
    struct ulid a = id(1), b = id(2);
    ck_assert(!typing_table_is_typing(board, &a, TYPIST_VISITOR, NOW));
    typing_table_set(board, &a, TYPIST_VISITOR, NOW + TYPING_MS, NOW);
    ck_assert(typing_table_is_typing(board, &a, TYPIST_VISITOR, NOW + TYPING_MS - 1));
    ck_assert(!typing_table_is_typing(board, &a, TYPIST_VISITOR, NOW + TYPING_MS));
    ck_assert(!typing_table_is_typing(board, &a, TYPIST_OPERATOR, NOW) &&
              !typing_table_is_typing(board, &b, TYPIST_VISITOR, NOW));
    typing_table_set(board, &a, TYPIST_OPERATOR, NOW + 1, NOW);
    ck_assert(typing_table_is_typing(board, &a, TYPIST_OPERATOR, NOW) &&
              typing_table_is_typing(board, &a, TYPIST_VISITOR, NOW));
    typing_table_set(board, &a, TYPIST_VISITOR, 0, NOW);
    ck_assert(!typing_table_is_typing(board, &a, TYPIST_VISITOR, NOW) &&
              typing_table_is_typing(board, &a, TYPIST_OPERATOR, NOW));
}
END_TEST

START_TEST(another_process_sees_a_ping)
{
    struct ulid a = id(7);
    int status;
    pid_t child = fork();
    if (child == 0) {
        typing_table_set(board, &a, TYPIST_OPERATOR, NOW + 5, NOW);
        _exit(0);
    }
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert(typing_table_is_typing(board, &a, TYPIST_OPERATOR, NOW));
}
END_TEST

#define PINGS UINT64_C(200000) /* more than the table holds */

static void fill(void)
{
    for (uint64_t i = 0; i < PINGS; i++) {
        struct ulid a = id(i);
        typing_table_set(board, &a, TYPIST_VISITOR, NOW + i + 1, NOW);
        /* the newest ping always gets a slot */
        ck_assert(typing_table_is_typing(board, &a, TYPIST_VISITOR, NOW));
    }
}

static size_t count_typing(uint64_t first)
{
    size_t count = 0;
    for (uint64_t i = first; i < PINGS; i++) {
        struct ulid a = id(i);
        count += typing_table_is_typing(board, &a, TYPIST_VISITOR, NOW);
    }
    return count;
}

START_TEST(a_full_table_evicts_the_oldest_ping)
{
    fill();
    size_t kept = count_typing(PINGS - 10000);
    ck_assert_msg(kept > 9900, "%zu", kept);
}
END_TEST

START_TEST(a_stop_without_a_start_takes_no_slot)
{
    fill();
    size_t before = count_typing(0);
    for (uint64_t i = PINGS; i < 2 * PINGS; i++) {
        struct ulid a = id(i);
        typing_table_set(board, &a, TYPIST_VISITOR, 0, NOW);
    }
    ck_assert_uint_eq(count_typing(0), before);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("typing_table");
    TCase *tc = tcase_create("typing");
    tcase_add_checked_fixture(tc, begin, end);
    tcase_add_test(tc, a_ping_expires_and_belongs_to_one_side);
    tcase_add_test(tc, another_process_sees_a_ping);
    tcase_add_test(tc, a_full_table_evicts_the_oldest_ping);
    tcase_add_test(tc, a_stop_without_a_start_takes_no_slot);
    suite_add_tcase(suite, tc);
    return suite_run(suite);
}
