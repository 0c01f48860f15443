/* The number of connections while processes start, end and are killed. */
#include "core/shm/connection_table.h"
#include "t/kit/suite.h"

#include <check.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define ADDRESS "192.0.2.1"
#define OTHER "192.0.2.22"

static struct connection_table *connection_table;

static void begin(void)
{
    connection_table = connection_table_new(1000, 4);
    ck_assert_ptr_nonnull(connection_table);
}

static void end(void)
{
    connection_table_free(connection_table);
}

static bool arrives(unsigned slot, const char *address, size_t most, uint32_t *share)
{
    return connection_table_add_address(connection_table, slot, address, strlen(address), most,
                                        share);
}

START_TEST(the_limit_holds_over_all_processes)
{
    connection_table_open_slot(connection_table, 0);
    connection_table_open_slot(connection_table, 7);
    ck_assert(connection_table_add(connection_table, 0, 3) &&
              connection_table_add(connection_table, 7, 3) &&
              connection_table_add(connection_table, 7, 3));
    ck_assert(!connection_table_add(connection_table, 0, 3) &&
              !connection_table_add(connection_table, 7, 3));
    ck_assert_uint_eq(connection_table_count(connection_table), 3);
    connection_table_remove(connection_table, 7);
    ck_assert(connection_table_add(connection_table, 0, 3));
    ck_assert(connection_table_add(connection_table, 0, 4));
}
END_TEST

START_TEST(the_table_grows_to_its_capacity_in_workers)
{
    ck_assert(connection_table_reserve(connection_table, 1024, 400));
    ck_assert(!connection_table_reserve(connection_table, 1000000, 4));
    uint32_t share;
    /* one address, in more processes than four workers have */
    for (unsigned slot = 0; slot < 600; slot++) {
        connection_table_open_slot(connection_table, slot);
        ck_assert(arrives(slot, ADDRESS, 600, &share) && share != 0);
    }
    connection_table_open_slot(connection_table, 600);
    ck_assert(!arrives(600, ADDRESS, 600, &share));
}
END_TEST

START_TEST(a_dead_process_releases_its_connections)
{
    uint32_t share;
    connection_table_open_slot(connection_table, 0);
    connection_table_open_slot(connection_table, 1);
    for (int i = 0; i < 5; i++)
        ck_assert(connection_table_add(connection_table, 1, 5) && arrives(1, ADDRESS, 5, &share));
    ck_assert(!connection_table_add(connection_table, 0, 5) && !arrives(0, ADDRESS, 5, &share));
    connection_table_close_slot(connection_table, 1);
    ck_assert_uint_eq(connection_table_count(connection_table), 0);
    ck_assert(connection_table_add(connection_table, 0, 1) && arrives(0, ADDRESS, 1, &share));
    connection_table_open_slot(connection_table,
                               1); /* its successor starts without its connections */
    ck_assert(!connection_table_add(connection_table, 1, 1) && !arrives(1, ADDRESS, 1, &share));
    ck_assert(connection_table_add(connection_table, 1, 2) && arrives(1, ADDRESS, 2, &share));
}
END_TEST

START_TEST(addresses_are_counted_separately_over_all_processes)
{
    uint32_t first, second, other;
    connection_table_open_slot(connection_table, 0);
    connection_table_open_slot(connection_table, 1);
    ck_assert(arrives(0, ADDRESS, 2, &first) && arrives(1, ADDRESS, 2, &second));
    ck_assert(!arrives(0, ADDRESS, 2, &other) && other == 0);
    ck_assert(arrives(0, OTHER, 2, &other));
    /* a refused connection is not counted */
    ck_assert_uint_eq(connection_table_address_count(connection_table, first), 1);
    connection_table_remove_address(connection_table, second);
    ck_assert(arrives(0, ADDRESS, 2, &second));
    ck_assert_uint_eq(connection_table_address_count(connection_table, second), 2);
    ck_assert(!arrives(1, ADDRESS, 2, &first));
    ck_assert(arrives(1, ADDRESS, 0, &first)); /* without a limit it is counted as well */
    ck_assert(!arrives(0, ADDRESS, 2, &first));
}
END_TEST

START_TEST(addresses_without_connections_leave_no_entry)
{
    enum { AT_ONCE = 1000, ROUNDS = 50 };
    static uint32_t shares[AT_ONCE];
    connection_table_open_slot(connection_table, 0);
    connection_table_open_slot(connection_table, 1);
    for (int round = 0; round < ROUNDS; round++) {
        for (uint32_t i = 0; i < AT_ONCE; i++) {
            uint32_t address[4] = {(uint32_t)round, i};
            ck_assert(connection_table_add_address(connection_table, i % 2, address,
                                                   sizeof(address), 1, &shares[i]));
            ck_assert_msg(shares[i] != 0, "no slot for address %u of round %d", i, round);
        }
        if (round % 3 == 0) { /* a process that dies releases them, too */
            connection_table_close_slot(connection_table, 0);
            connection_table_open_slot(connection_table, 0);
        }
        for (uint32_t i = 0; i < AT_ONCE; i++)
            if (i % 2 == 1 || round % 3 != 0)
                connection_table_remove_address(connection_table, shares[i]);
    }
}
END_TEST

/*
 * Processes connect and disconnect as fast as they can, and are killed one after the other: never
 * more than the limit at a time, and the full limit at the end. A process with a connection sets
 * its bit, so that one read shows all that have one at the same time.
 */
enum { CHILDREN = 4, MOST = 3, MOST_OF_ADDRESS = 2, KILLS = 60 };
struct connected {
    _Atomic uint64_t rounds;
    struct {
        _Atomic unsigned open, address; /* of whom */
    } by;
    _Atomic bool too_many;
};

static void has_one(struct connected *connected, _Atomic unsigned *by, unsigned me, int most)
{
    if (__builtin_popcount(atomic_fetch_or(by, 1u << me) | 1u << me) > most)
        atomic_store(&connected->too_many, true);
}

static void has_none(_Atomic unsigned *by, unsigned me)
{
    atomic_fetch_and(by, ~(1u << me));
}

static void connect_and_disconnect(struct connected *connected, unsigned me)
{
    for (;;) {
        uint32_t share = 0;
        if (connection_table_add(connection_table, me, MOST)) {
            has_one(connected, &connected->by.open, me, MOST);
            if (arrives(me, ADDRESS, MOST_OF_ADDRESS, &share)) {
                has_one(connected, &connected->by.address, me, MOST_OF_ADDRESS);
                has_none(&connected->by.address, me);
                connection_table_remove_address(connection_table, share);
            }
            has_none(&connected->by.open, me);
            connection_table_remove(connection_table, me);
        }
        atomic_fetch_add(&connected->rounds, 1);
    }
}

static pid_t child_new(struct connected *connected, unsigned slot)
{
    connection_table_open_slot(connection_table, slot);
    pid_t pid = fork();
    if (pid == 0)
        connect_and_disconnect(connected, slot);
    return pid;
}

/* It clears its bits first: after it has disconnected, others can have its slots. */
static void child_kill(struct connected *connected, unsigned slot, pid_t pid)
{
    kill(pid, SIGKILL);
    ck_assert_int_eq(waitpid(pid, NULL, 0), pid);
    has_none(&connected->by.address, slot);
    has_none(&connected->by.open, slot);
    connection_table_close_slot(connection_table, slot);
}

START_TEST(a_process_killed_at_any_instruction_leaves_no_entry)
{
    struct connected *connected =
        mmap(NULL, sizeof(*connected), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pid_t pids[CHILDREN];
    ck_assert(connected != MAP_FAILED);
    for (unsigned i = 0; i < CHILDREN; i++)
        pids[i] = child_new(connected, i);
    for (int k = 0; k < KILLS; k++) {
        unsigned i = (unsigned)k % CHILDREN;
        uint64_t from = atomic_load(&connected->rounds);
        while (atomic_load(&connected->rounds) < from + 200)
            poll(NULL, 0, 1);
        child_kill(connected, i, pids[i]);
        pids[i] = child_new(connected, i);
    }
    for (unsigned i = 0; i < CHILDREN; i++)
        child_kill(connected, i, pids[i]);
    ck_assert(!atomic_load(&connected->too_many));
    ck_assert_uint_eq(connection_table_count(connection_table), 0);
    uint32_t share;
    connection_table_open_slot(connection_table, 9);
    for (int i = 0; i < MOST; i++)
        ck_assert(connection_table_add(connection_table, 9, MOST) &&
                  arrives(9, ADDRESS, MOST, &share));
    ck_assert(!connection_table_add(connection_table, 9, MOST) &&
              !arrives(9, ADDRESS, MOST, &share));
    munmap(connected, sizeof(*connected));
}
END_TEST

START_TEST(an_eviction_request_is_served_once_by_another_process)
{
    ck_assert(!connection_table_eviction_requested(connection_table, 0));
    connection_table_request_eviction(connection_table, 0);
    ck_assert(!connection_table_eviction_requested(connection_table, 0) &&
              connection_table_eviction_requested(connection_table, 1) &&
              connection_table_eviction_requested(connection_table, 2));
    ck_assert(connection_table_take_eviction(connection_table) &&
              !connection_table_take_eviction(connection_table));
    ck_assert(!connection_table_eviction_requested(connection_table, 1));
    connection_table_request_eviction(connection_table, 2);
    connection_table_cancel_eviction(connection_table, 1);
    ck_assert(connection_table_eviction_requested(connection_table, 0));
    connection_table_cancel_eviction(connection_table, 2);
    ck_assert(!connection_table_eviction_requested(connection_table, 0) &&
              !connection_table_take_eviction(connection_table));
}
END_TEST

START_TEST(every_process_has_its_share)
{
    for (unsigned i = 0; i < 3; i++)
        connection_table_open_slot(connection_table, i);
    for (int i = 0; i < 7; i++) /* of 9, three each */
        ck_assert(connection_table_add(connection_table, i < 4 ? 0 : 1, 9));
    ck_assert_int_eq(connection_table_compare_share(connection_table, 0, 9), 1);
    ck_assert_int_eq(connection_table_compare_share(connection_table, 1, 9), 0);
    ck_assert_int_eq(connection_table_compare_share(connection_table, 2, 9), -1);
    connection_table_close_slot(connection_table, 2);
    ck_assert_int_eq(connection_table_compare_share(connection_table, 0, 9),
                     -1); /* rounded up: five */
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("connection_table");
    TCase *tcase = tcase_create("one table");
    tcase_add_checked_fixture(tcase, begin, end);
    tcase_set_timeout(tcase, 60);
    tcase_add_test(tcase, the_limit_holds_over_all_processes);
    tcase_add_test(tcase, the_table_grows_to_its_capacity_in_workers);
    tcase_add_test(tcase, a_dead_process_releases_its_connections);
    tcase_add_test(tcase, addresses_are_counted_separately_over_all_processes);
    tcase_add_test(tcase, addresses_without_connections_leave_no_entry);
    tcase_add_test(tcase, a_process_killed_at_any_instruction_leaves_no_entry);
    tcase_add_test(tcase, an_eviction_request_is_served_once_by_another_process);
    tcase_add_test(tcase, every_process_has_its_share);
    suite_add_tcase(suite, tcase);
    return suite_run(suite);
}
