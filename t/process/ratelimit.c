/*
 * The limiter's table between real processes on one mapping: exact under load, at the change of a
 * window, with clocks that lag, with a full table, and with processes killed at any instruction.
 * Shared memory counts the admitted requests by key and window. RATELIMIT_TIMES multiplies the
 * rounds of most tests, up to 10.
 */
#include "ratelimit/ratelimit.h"
#include "t/kit/suite.h"

#include <check.h>
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define NOW 1800000000
#define PROCESSES 6
#define KEYS 512
#define WINDOWS 64

/* shared by the test's processes */
struct shared {
    uint64_t go;              /* number of the round that may start */
    uint64_t here[PROCESSES]; /* rounds that each process has finished */
    int64_t now;              /* the test's clock */
    uint64_t stop, new_keys;
    uint64_t began[PROCESSES], ended[PROCESSES]; /* requests per process */
    uint32_t admitted[WINDOWS][KEYS], requested[WINDOWS][KEYS];
};

static char dir[64];
static struct ratelimit *rl;
static struct shared *shared;
static pid_t pids[PROCESSES];

static void setup(void)
{
    enum ratelimit_made made;
    strcpy(dir, "/tmp/assay-ratelimit-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(dir));
    ck_assert_int_eq(ratelimit_open(dir, 4096, &made, &rl), 0);
    shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ck_assert_ptr_ne(shared, MAP_FAILED);
}

static void teardown(void)
{
    char path[128];
    munmap(shared, sizeof(*shared));
    ratelimit_close(rl);
    snprintf(path, sizeof(path), "%s/limits-2", dir);
    unlink(path);
    rmdir(dir);
}

/* ${rounds}, times RATELIMIT_TIMES */
static unsigned times(unsigned rounds)
{
    const char *wanted = getenv("RATELIMIT_TIMES");
    return rounds * (wanted == NULL ? 1 : (unsigned)strtoul(wanted, NULL, 10));
}

static uint64_t get(const uint64_t *at)
{
    return __atomic_load_n(at, __ATOMIC_ACQUIRE);
}

static void add(uint64_t *at)
{
    __atomic_fetch_add(at, 1, __ATOMIC_ACQ_REL);
}

static uint64_t chance(uint64_t *state, uint64_t below)
{
    *state ^= *state << 13, *state ^= *state >> 7, *state ^= *state << 17;
    return (*state >> 11) % below;
}

static struct ratelimit_window key_window(const uint64_t *key, uint32_t limit, uint32_t seconds)
{
    return (struct ratelimit_window){
        .salt = 5, .seconds = seconds, .limit = limit, .key = key, .key_size = sizeof(*key)};
}

/* the test's clock needs no second reading unless it steps or a process sleeps for seconds */
static int take(const struct ratelimit_window *w, int64_t now, struct ratelimit_state *out)
{
    int got;
    while ((got = ratelimit_take(rl, w, 1, (struct ratelimit_time){ratelimit_token(rl), now},
                                 out)) < 0)
        ;
    return got;
}

/* one request at ${now}, counted by its reported window */
static bool request(uint64_t key, uint32_t limit, uint32_t seconds, int64_t now)
{
    struct ratelimit_window w = key_window(&key, limit, seconds);
    struct ratelimit_state state;
    bool admitted = take(&w, now, &state) == 0;
    size_t window = (size_t)((state.reset - NOW) / seconds) % WINDOWS;
    __atomic_fetch_add(&shared->requested[window][key % KEYS], 1, __ATOMIC_RELAXED);
    if (admitted)
        __atomic_fetch_add(&shared->admitted[window][key % KEYS], 1, __ATOMIC_RELAXED);
    return admitted;
}

typedef void body_fn(unsigned self);

static void spawn(unsigned self, body_fn *body)
{
    pids[self] = fork();
    ck_assert_int_ge(pids[self], 0);
    if (pids[self] == 0) {
        body(self);
        _exit(0);
    }
}

static void spawn_all(body_fn *body, unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        spawn(i, body);
}

static void wait_all(unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        int status;
        ck_assert_int_eq(waitpid(pids[i], &status, 0), pids[i]);
        ck_assert_msg(WIFEXITED(status) && WEXITSTATUS(status) == 0, "process %u: status %x", i,
                      (unsigned)status);
    }
}

/* ---- many keys, many windows ---- */

#define HAMMER_LIMIT 40
#define HAMMER_WINDOWS 20

/* each process requests each key 10 times per window, in its own order */
static void hammer(unsigned self)
{
    uint64_t luck = self + 77;
    for (int64_t w = 0; w < HAMMER_WINDOWS; w++)
        for (unsigned i = 0; i < 10; i++) {
            uint64_t from = chance(&luck, 64);
            for (uint64_t k = 0; k < 64; k++)
                request((from + k) % 64, HAMMER_LIMIT, 60,
                        NOW + w * 60 + (int64_t)chance(&luck, 60));
        }
}

START_TEST(admitted_requests_are_the_minimum_of_limit_and_requested)
{
    spawn_all(hammer, PROCESSES);
    wait_all(PROCESSES);
    /*
     * Processes are in different windows by chance. A window that one process has left belongs to
     * the first one that charges the next.
     */
    for (unsigned w = 1; w <= HAMMER_WINDOWS; w++)
        for (unsigned k = 0; k < 64; k++) {
            uint32_t requested = shared->requested[w][k], admitted = shared->admitted[w][k];
            ck_assert_msg(admitted >= (requested < HAMMER_LIMIT ? requested : HAMMER_LIMIT),
                          "window %u key %u: %u of %u admitted", w, k, admitted, requested);
        }
}
END_TEST

#define ONE_WINDOW_LIMIT 500 /* each key is requested about 700 times */

static void hammer_one_window(unsigned self)
{
    uint64_t luck = self + 77;
    for (unsigned i = 0; i < times(60000); i++)
        request(chance(&luck, KEYS), ONE_WINDOW_LIMIT, 60, NOW + (int64_t)chance(&luck, 60));
}

START_TEST(the_limit_is_never_exceeded)
{
    spawn_all(hammer_one_window, PROCESSES);
    wait_all(PROCESSES);
    for (unsigned k = 0; k < KEYS; k++) {
        uint32_t requested = shared->requested[1][k];
        ck_assert_uint_eq(shared->admitted[1][k],
                          requested < ONE_WINDOW_LIMIT ? requested : ONE_WINDOW_LIMIT);
    }
}
END_TEST

/* ---- concurrent first requests ---- */

#define MEETINGS 2000

/* waits until the other processes are ready */
static void wait_for_others(unsigned self, uint64_t number)
{
    __atomic_store_n(&shared->here[self], number, __ATOMIC_RELEASE);
    for (unsigned i = 0; i < PROCESSES; i++)
        while (get(&shared->here[i]) < number)
            sched_yield();
}

static void request_new_keys(unsigned self)
{
    for (uint64_t m = 1; m <= times(MEETINGS); m++) {
        wait_for_others(self, m);
        for (unsigned i = 0; i < 3; i++)
            request(m * KEYS + m % KEYS, 7, 60, NOW + (int64_t)(m / KEYS) * 60);
    }
}

START_TEST(all_processes_charge_a_new_key_at_once)
{
    spawn_all(request_new_keys, PROCESSES);
    wait_all(PROCESSES);
    for (uint64_t m = 1; m <= times(MEETINGS); m++)
        ck_assert_uint_eq(shared->admitted[m / KEYS + 1][m % KEYS], 7);
}
END_TEST

/*
 * Each process has its own clock, up to two seconds behind the first one's. Every clock passes
 * window changes.
 */
static void turn_windows(unsigned self)
{
    for (uint64_t m = 1; m <= WINDOWS - 2; m++)
        for (int64_t second = 0; second < 10; second++) {
            wait_for_others(self, m * 10 + (uint64_t)second);
            for (unsigned i = 0; i < 20; i++)
                request(i % 4, 30, 10, NOW + (int64_t)m * 10 + second - (int64_t)(self % 3));
        }
}

START_TEST(lagging_processes_get_nothing_extra_at_window_changes)
{
    spawn_all(turn_windows, PROCESSES);
    wait_all(PROCESSES);
    for (unsigned w = 2; w < WINDOWS - 1; w++)
        for (unsigned k = 0; k < 4; k++) /* each window gets far more requests than its limit */
            ck_assert_msg(shared->admitted[w][k] == 30, "window %u key %u: %u admitted", w, k,
                          shared->admitted[w][k]);
}
END_TEST

/* ---- a full table ---- */

#define COLD_KEYS 20000 /* per process: far more than the table has slots */

static void fill_table(unsigned self)
{
    uint64_t luck = self + 5;
    for (unsigned i = 0; i < times(COLD_KEYS); i++) {
        uint64_t cold = ((uint64_t)(self + 1) << 32) + i;
        struct ratelimit_window w = key_window(&cold, 1000, 60);
        struct ratelimit_state state;
        take(&w, NOW, &state);
        if (i % 3 == 0) /* keys 0 to 63: always warm, so their slots are kept */
            request(chance(&luck, 64), 50, 60, NOW);
    }
}

START_TEST(a_full_table_never_overadmits_a_key_with_a_slot)
{
    struct ratelimit_usage usage;
    for (uint64_t k = 0; k < 64; k++)
        for (unsigned i = 0; i < 20; i++)
            request(k, 50, 60, NOW);
    spawn_all(fill_table, PROCESSES);
    wait_all(PROCESSES);
    for (unsigned k = 0; k < 64; k++)
        ck_assert_uint_eq(shared->admitted[1][k], 50);
    ratelimit_usage(rl, NOW, &usage);
    ck_assert_uint_gt(usage.evicted_alive, PROCESSES * times(COLD_KEYS) / 2);
}
END_TEST

/* ---- kill -9 ---- */

#define KILLS 500
#define VICTIMS 3 /* processes at a time: the machine schedules the kills */

/*
 * One request by the test's clock, which can move. ${yields}: other processes run between reading
 * the clock and the request. *end: the end of the reported window.
 */
static bool request_by_clock(uint64_t key, uint32_t limit, bool yields, int64_t *end)
{
    struct ratelimit_window w = key_window(&key, limit, 60);
    struct ratelimit_state state;
    struct ratelimit_time time;
    int got;
    do {
        time.token = ratelimit_token(rl);
        time.now = __atomic_load_n(&shared->now, __ATOMIC_ACQUIRE);
        if (yields)
            sched_yield();
    } while ((got = ratelimit_take(rl, &w, 1, time, &state)) < 0);
    *end = state.reset;
    return got == 0;
}

/* mostly new keys, so that usually a slot is being created; sometimes a counted key */
static void request_until_killed(unsigned self)
{
    uint64_t luck = (uint64_t)getpid() * 2654435761u + self;
    while (get(&shared->stop) == 0) {
        bool counted = chance(&luck, 40) == 0;
        int64_t end;
        uint64_t key = counted ? chance(&luck, 64) : KEYS + chance(&luck, get(&shared->new_keys));
        add(&shared->began[self]);
        if (request_by_clock(key, counted ? 100000 : 1000, false, &end) && counted)
            __atomic_fetch_add(&shared->admitted[(end - NOW) / 60 % WINDOWS][key], 1,
                               __ATOMIC_RELAXED);
        add(&shared->ended[self]);
    }
}

static void kill_one(unsigned self)
{
    int status;
    ck_assert_int_eq(kill(pids[self], SIGKILL), 0);
    ck_assert_int_eq(waitpid(pids[self], &status, 0), pids[self]);
}

/*
 * A later process can use every key up to its limit: no slot is stuck, no bucket is unusable, no
 * claim is left.
 */
static void use_everything(int64_t now)
{
    for (uint64_t key = 1000000; key < 1003000; key++) {
        struct ratelimit_window w = key_window(&key, 3, 60);
        struct ratelimit_state state;
        unsigned admitted = 0;
        for (unsigned i = 0; i < 5; i++)
            admitted += take(&w, now, &state) == 0;
        ck_assert_uint_eq(admitted, 3);
    }
}

/*
 * Columns: name; number of other keys (more than the table has slots, or fewer); seconds that the
 * clock advances after each ten kills.
 */
static const struct {
    const char *what;
    uint64_t new_keys;
    int64_t step;
} kill_plans[] = {
    {"slots are made by evicting", 1000000, 0},
    {"slots are made where windows have ended", 3000, 63},
};

/* to a later window whose counters are cleared before any process uses them */
static void go_on(int64_t step)
{
    int64_t next = shared->now + step;
    if (step > 0)
        memset(shared->admitted[((next - NOW) / 60 + 1) % WINDOWS], 0, sizeof(shared->admitted[0]));
    __atomic_store_n(&shared->now, next, __ATOMIC_RELEASE);
}

START_TEST(a_killed_process_loses_at_most_its_own_charge)
{
    uint64_t luck = 12345, killed = 0, counted = 0, reported = 0, window;
    int64_t end;
    shared->now = NOW;
    shared->new_keys = kill_plans[_i].new_keys;
    /* the counted keys are warmer than the others, so they are not evicted */
    for (uint64_t key = 0; key < 64; key++)
        for (unsigned i = 0; i < 100; i++)
            shared->admitted[1][key] += request_by_clock(key, 100000, false, &end);
    spawn_all(request_until_killed, VICTIMS);
    for (unsigned i = 1; i <= times(KILLS); i++) {
        unsigned self = (unsigned)chance(&luck, VICTIMS);
        for (unsigned spin = 0, most = (unsigned)chance(&luck, 30000); spin < most; spin++)
            __asm__ volatile("");
        kill_one(self);
        killed++;
        spawn(self, request_until_killed);
        if (i % 10 == 0)
            go_on(kill_plans[_i].step);
    }
    __atomic_store_n(&shared->stop, 1, __ATOMIC_RELEASE);
    wait_all(VICTIMS);
    /*
     * for the counted keys, the table equals the reported counts, except for requests killed
     * between the two
     */
    window = (uint64_t)(shared->now - NOW) / 60 + 1;
    for (uint64_t key = 0; key < 64; key++) {
        struct ratelimit_window w = key_window(&key, 100000, 60);
        struct ratelimit_state state;
        ratelimit_peek(rl, &w, 1, shared->now, &state);
        counted += 100000 - state.remaining;
        reported += shared->admitted[window % WINDOWS][key];
    }
    ck_assert_msg(counted >= reported && counted - reported <= killed,
                  "%s: %llu counted, %llu reported, %llu killed", kill_plans[_i].what,
                  (unsigned long long)counted, (unsigned long long)reported,
                  (unsigned long long)killed);
    use_everything(shared->now + 600);
}
END_TEST

/* ---- the clock ---- */

#define STEPPERS 3
#define FILLERS 2

/*
 * Columns: name; limit of the counted keys (small where other keys fill the table, so that one
 * request makes a counted key warmer); whether new keys keep the table full; whether processes are
 * killed after each step.
 */
static const struct {
    const char *what;
    uint32_t limit;
    bool full_table, kill;
} step_plans[] = {
    {"alone", 25, false, false},
    {"in a full table, with kills", 3, true, true},
};
static uint32_t step_limit;

static void request_through_steps(unsigned self)
{
    int64_t end;
    while (get(&shared->stop) == 0) {
        add(&shared->began[self]);
        for (uint64_t key = 0; key < 8; key++)
            if (request_by_clock(key, step_limit, self % 2 == 0, &end))
                __atomic_fetch_add(&shared->admitted[0][key], 1, __ATOMIC_RELAXED);
        add(&shared->ended[self]);
    }
}

static void fill_table_through_steps(unsigned self)
{
    uint64_t luck = self + 99;
    int64_t end;
    while (get(&shared->stop) == 0)
        request_by_clock(KEYS + chance(&luck, 1000000), 1000, false, &end);
}

/* every process has started and finished requests since */
static void let_all_request(void)
{
    for (unsigned i = 0; i < STEPPERS; i++)
        for (uint64_t since = get(&shared->ended[i]); get(&shared->ended[i]) < since + 4;)
            sched_yield();
}

static const int64_t clock_steps[] = {1,   -1,   3,     -3,    59,     -59,         61,
                                      -61, 3600, -3600, 86400, -86400, 400 * 86400, -400 * 86400,
                                      2,   -2,   30,    -30,   7200,   -7190};

static void copy_admitted(uint32_t out[8])
{
    for (unsigned k = 0; k < 8; k++)
        out[k] = __atomic_load_n(&shared->admitted[0][k], __ATOMIC_ACQUIRE);
}

START_TEST(a_clock_step_gives_at_most_one_window)
{
    uint32_t before[8], after[8];
    uint64_t luck = 4711;
    unsigned processes = STEPPERS + (step_plans[_i].full_table ? FILLERS : 0);
    step_limit = step_plans[_i].limit;
    shared->now = NOW + 30;
    for (unsigned i = 0; i < processes; i++)
        spawn(i, i < STEPPERS ? request_through_steps : fill_table_through_steps);
    let_all_request();
    for (size_t i = 0; i < sizeof(clock_steps) / sizeof(clock_steps[0]); i++) {
        copy_admitted(before);
        __atomic_fetch_add(&shared->now, clock_steps[i], __ATOMIC_ACQ_REL);
        for (unsigned k = 0; step_plans[_i].kill && k < 20; k++) {
            unsigned victim = (unsigned)chance(&luck, processes);
            kill_one(victim);
            spawn(victim, victim < STEPPERS ? request_through_steps : fill_table_through_steps);
        }
        let_all_request();
        copy_admitted(after);
        for (unsigned k = 0; k < 8; k++)
            ck_assert_msg(after[k] - before[k] <= step_limit, "%s, step %lld: %u admitted",
                          step_plans[_i].what, (long long)clock_steps[i], after[k] - before[k]);
    }
    /* a minute later every key has its budget again */
    copy_admitted(before);
    __atomic_fetch_add(&shared->now, 62, __ATOMIC_ACQ_REL);
    let_all_request();
    copy_admitted(after);
    for (unsigned k = 0; k < 8; k++)
        ck_assert_uint_ge(after[k] - before[k], step_limit);
    __atomic_store_n(&shared->stop, 1, __ATOMIC_RELEASE);
    wait_all(processes);
    use_everything(shared->now + 600);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("ratelimit");
    TCase *t = tcase_create("processes");
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_set_timeout(t, 240);
    tcase_add_test(t, admitted_requests_are_the_minimum_of_limit_and_requested);
    tcase_add_test(t, the_limit_is_never_exceeded);
    tcase_add_test(t, all_processes_charge_a_new_key_at_once);
    tcase_add_test(t, lagging_processes_get_nothing_extra_at_window_changes);
    tcase_add_test(t, a_full_table_never_overadmits_a_key_with_a_slot);
    tcase_add_loop_test(t, a_killed_process_loses_at_most_its_own_charge, 0,
                        sizeof(kill_plans) / sizeof(kill_plans[0]));
    tcase_add_loop_test(t, a_clock_step_gives_at_most_one_window, 0,
                        sizeof(step_plans) / sizeof(step_plans[0]));
    suite_add_tcase(s, t);
    return suite_run(s);
}
