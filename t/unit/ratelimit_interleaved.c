/*
 * Several callers of the table in one process, interleaved at every access to shared memory by a
 * seed. This gives far more interleavings than processes on two cores. Each caller is a coroutine;
 * RATELIMIT_STEP switches to another caller, sometimes for long. A caller can be stopped for ever
 * (a killed process). Invariants after every run: A key has at most one slot. At most the limit was
 * admitted for a key in each window, plus the limit again for each evicted slot. The use equals the
 * admitted requests in both windows of a request that has two, or is at most that if slots were
 * evicted. When all live callers have ended, every requested key can be requested again.
 * RATELIMIT_TIMES multiplies the number of seeds; .ci/run takes three times as many.
 */
#include <stdint.h>

static void step(void);
#define RATELIMIT_STEP() step()
#include "ratelimit/ratelimit.c"
#include "ratelimit/table.c"
#include "ratelimit/file.c"
#include "ratelimit/hash.c"
#include "t/kit/suite.h"

#include <check.h>
#ifndef __has_feature
#define __has_feature(name) 0
#endif
#if defined(__SANITIZE_ADDRESS__) || __has_feature(address_sanitizer)
#include <sanitizer/asan_interface.h>
#else
#define ASAN_UNPOISON_MEMORY_REGION(at, size) ((void)(at), (void)(size))
#endif
#if !defined(__x86_64__)
#include <ucontext.h>
#endif

#define NOW 1800000000
#define FIRST (NOW - 3600) /* no test clock steps back further */
#define CALLERS 4
#define STACK 65536

/*
 * Switches stacks. context_start(p, stack, size, run): start ${run}, which never returns.
 * context_switch(from, to): continue at ${to}; continuing at ${from} returns here. Assembly:
 * swapcontext sets the signal mask by a system call at every step, which took most of the tests'
 * time.
 */
#if defined(__x86_64__)
struct fiber {
    void **sp;
};

void context_swap(struct fiber *from, void **to);
__asm__(".text\n"
        ".type context_swap, @function\n"
        "context_swap:\n\t"
        "pushq %rbp\n\tpushq %rbx\n\tpushq %r12\n\tpushq %r13\n\tpushq %r14\n\tpushq %r15\n\t"
        "movq %rsp, (%rdi)\n\t"
        "movq %rsi, %rsp\n\t"
        "popq %r15\n\tpopq %r14\n\tpopq %r13\n\tpopq %r12\n\tpopq %rbx\n\tpopq %rbp\n\t"
        "ret\n"
        ".size context_swap, . - context_swap\n");

static void context_switch(struct fiber *from, const struct fiber *to)
{
    context_swap(from, to->sp);
}

static void context_start(struct fiber *p, char *stack, size_t size, void (*run)(void))
{
    /* six registers, the address to continue at, and an unused return address */
    p->sp = (void **)(void *)(stack + size) - 8;
    memset(p->sp, 0, 8 * sizeof(*p->sp));
    p->sp[6] = (void *)(uintptr_t)run;
}
#else
struct fiber {
    ucontext_t context;
};

static void context_switch(struct fiber *from, const struct fiber *to)
{
    swapcontext(&from->context, &to->context);
}

static void context_start(struct fiber *p, char *stack, size_t size, void (*run)(void))
{
    getcontext(&p->context);
    p->context.uc_stack.ss_sp = stack;
    p->context.uc_stack.ss_size = size;
    p->context.uc_link = NULL;
    makecontext(&p->context, run, 0);
}
#endif

struct caller {
    struct ratelimit rl; /* as in a process: the mapping is shared */
    struct fiber fiber;
    char stack[STACK] __attribute__((aligned(16)));
    bool ended;
    /* the earliest turn in which it continues; NEVER: it has ended or is killed */
    unsigned wakes_at;
};
#define NEVER UINT32_MAX

/*
 * Columns: requests per caller, their keys (the smallest table has 32 slots), limit, whether some
 * are killed, runs, step of the clock.
 */
struct plan {
    const char *what;
    unsigned requests, keys, limit;
    bool kill;
    unsigned runs;
    int64_t clock_step;
    unsigned wide; /* a second window, which all keys share, with this limit; 0: none */
    /* turns per second, with windows of 4 s; 0: the clock stands still and windows are of 60 s */
    unsigned second;
    unsigned resets; /* per thousand requests, how many are followed by a reset of their key */
};

static struct caller callers[CALLERS];
static struct fiber scheduler;
static struct caller *running;
static uint64_t chance_state;
static char dir[64];
static struct ratelimit *rl;

#define KEYS_MAX 64
#define WINDOWS 4096
static const struct plan *plan;
static unsigned taken[KEYS_MAX], in_window[KEYS_MAX][WINDOWS], resets[KEYS_MAX];

static uint64_t chance(uint64_t below)
{
    chance_state ^= chance_state << 13, chance_state ^= chance_state >> 7,
        chance_state ^= chance_state << 17;
    return (chance_state >> 11) % below;
}

static void step(void)
{
    if (running != NULL)
        context_switch(&running->fiber, &scheduler);
}

static int64_t clock_now; /* steps once in a run, at any moment, if the plan says so */

static struct ratelimit_window key_window(const uint64_t *key, uint32_t limit)
{
    return (struct ratelimit_window){.salt = 1,
                                     .seconds = plan->second > 0 ? 4 : 60,
                                     .limit = limit,
                                     .key = key,
                                     .key_size = sizeof(*key)};
}

static struct ratelimit_window wide_window(uint32_t limit)
{
    return (struct ratelimit_window){
        .salt = 2, .seconds = RATELIMIT_SECONDS_MAX, .limit = limit, .key = "", .key_size = 0};
}

/* one request; its clock reading can be as old as its caller sleeps */
static bool request(struct ratelimit *own, uint64_t key)
{
    struct ratelimit_window w[2] = {key_window(&key, plan->limit), wide_window(plan->wide)};
    struct ratelimit_state state;
    struct ratelimit_time time;
    int got;
    do {
        time.token = ratelimit_token(own);
        time.now = clock_now;
        step();
    } while ((got = ratelimit_take(own, w, plan->wide > 0 ? 2 : 1, time, &state)) < 0);
    if (got != 0)
        return false;
    taken[key]++;
    if (plan->wide == 0) {
        int64_t window = (state.reset - FIRST) / w[0].seconds;
        if (window >= WINDOWS)
            ck_abort_msg("%s: the clock advanced too far", plan->what);
        in_window[key][window]++;
    }
    return true;
}

static void call(void)
{
    struct caller *self = running;
    for (unsigned i = 0; i < plan->requests; i++) {
        uint64_t key = chance(plan->keys);
        request(&self->rl, key);
        if (chance(1000) < plan->resets) {
            struct ratelimit_window w = key_window(&key, plan->limit);
            resets[key]++; /* before: others can use what it refunds before it has ended */
            ratelimit_reset(&self->rl, &w, clock_now);
        }
    }
    self->ended = true;
    running = NULL;
    context_switch(&self->fiber, &scheduler);
}

static void start(void)
{
    for (unsigned i = 0; i < CALLERS; i++) {
        struct caller *c = &callers[i];
        c->rl = *rl;
        c->ended = false;
        c->wakes_at = 0;
        ASAN_UNPOISON_MEMORY_REGION(c->stack, STACK); /* a killed caller left its frames */
        context_start(&c->fiber, c->stack, STACK, call);
    }
}

/*
 * The next caller: a random one of those awake, and time advances by what all need for one step. If
 * all sleep, by what one needs to wake. NULL: none is left. *alive: their number.
 */
static struct caller *next_caller(unsigned *turn, unsigned *living)
{
    struct caller *awake[CALLERS], *first = NULL;
    unsigned count = 0;
    *living = 0;
    for (unsigned i = 0; i < CALLERS; i++) {
        struct caller *c = &callers[i];
        if (c->wakes_at == NEVER)
            continue;
        ++*living;
        if (first == NULL || c->wakes_at < first->wakes_at)
            first = c;
        if (c->wakes_at <= *turn)
            awake[count++] = c;
    }
    if (count == 0) {
        *turn = first != NULL ? first->wakes_at : *turn;
        return first;
    }
    *turn += CALLERS / count;
    return awake[chance(count)];
}

/* the clock between turns */
static void pass_time(unsigned from, unsigned to, unsigned steps_at)
{
    if (from <= steps_at && steps_at < to)
        clock_now += plan->clock_step;
    if (plan->second > 0)
        clock_now += to / plan->second - from / plan->second;
}

/* until all have ended or are killed; false: they never do */
static bool run(void)
{
    unsigned steps_at = (unsigned)chance(600), turn = 0, before, living;
    clock_now = NOW + 30;
    while ((before = turn) < 2000000) {
        struct caller *c = next_caller(&turn, &living);
        if (c == NULL)
            return true;
        pass_time(before, turn, steps_at);
        running = c;
        context_switch(&scheduler, &c->fiber);
        running = NULL;
        uint64_t luck = chance(1000);
        if (c->ended || (plan->kill && luck == 999 && living > 1))
            c->wakes_at = NEVER;
        else if (luck < 60) /* long enough for the others to make many whole requests */
            c->wakes_at = turn + CALLERS * (unsigned)chance(400);
    }
    return false;
}

/* how many slots a key has, without void and other reservations */
static unsigned slots_of(uint64_t key)
{
    struct ratelimit_window w = key_window(&key, plan->limit);
    uint64_t hash = ratelimit_hash(rl, &w);
    unsigned count = 0;
    for (uint64_t i = 0; i < (rl->mask + 1) * BUCKET_SLOTS; i++)
        count += rl->slots[i].key == hash && !state_reserved(rl->slots[i].state);
    return count;
}

static void forget(void)
{
    memset(rl->slots, 0, (rl->mask + 1) * BUCKET_SLOTS * sizeof(struct pair));
    memset(rl->claims, 0, CLAIMS * sizeof(struct pair));
    memset(taken, 0, sizeof(taken));
    memset(in_window, 0, plan->keys * sizeof(in_window[0]));
    memset(resets, 0, sizeof(resets));
    rl->header->evicted[0] = rl->header->clock = 0;
    /* the seed also decides the keys' positions */
    rl->header->seed[0] = chance_state;
    rl->header->seed[1] = 0;
    hash_keys_make(&rl->hash_keys, hash_kind_here(), rl->header->seed);
}

static void setup(void)
{
    enum ratelimit_made made;
    strcpy(dir, "/tmp/assay-turns-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(dir));
    ck_assert_int_eq(ratelimit_open(dir, 1, &made, &rl), 0);
}

static void teardown(void)
{
    char path[128];
    ratelimit_close(rl);
    snprintf(path, sizeof(path), "%s/limits-2", dir);
    unlink(path);
    rmdir(dir);
}

static const struct plan plans[] = {
    {"one new key met by all", 3, 1, 5, false, 6000, 0, 0, 0, 0},
    {"few keys, used up", 12, 3, 9, false, 1600, 0, 0, 0, 0},
    {"room for all", 10, 16, 2, false, 1600, 0, 0, 0, 0},
    {"more keys than slots", 30, 64, 3, false, 500, 0, 0, 0, 0},
    {"one key, the clock steps back an hour", 40, 1, 5, false, 4000, -3600, 0, 0, 0},
    {"one key, the clock steps back three seconds", 40, 1, 5, false, 2000, -33, 0, 0, 0},
    {"few keys, the clock advances by an hour", 40, 3, 5, true, 4000, 3600, 0, 0, 0},
    {"several keys, the clock steps back an hour", 20, 8, 3, true, 2000, -3600, 0, 0, 0},
    {"one new key, some killed", 3, 1, 5, true, 6000, 0, 0, 0, 0},
    {"room for all, some killed", 10, 16, 2, true, 3000, 0, 0, 0, 0},
    {"more keys than slots, some killed", 30, 64, 3, true, 500, 0, 0, 0, 0},
    {"two windows, the wide one refuses first", 12, 3, 12, false, 3000, 0, 20, 0, 0},
    {"two windows, the narrow one refuses first", 12, 3, 4, false, 3000, 0, 100, 0, 0},
    {"two windows, some killed", 12, 3, 6, true, 3000, 0, 15, 0, 0},
    {"windows end", 40, 2, 3, false, 2400, 0, 0, 60, 0},
    {"windows end, some killed", 40, 8, 2, true, 1600, 0, 0, 100, 0},
    {"two windows, windows end", 30, 3, 3, false, 1600, 0, 50, 60, 0},
    {"keys are reset", 30, 3, 5, false, 2000, 0, 0, 0, 100},
    {"keys that use little of a large limit", 40, 16, 60, false, 400, 0, 0, 0, 0},
    {"keys that use little of a large limit, some killed", 40, 16, 60, true, 400, 0, 0, 0, 0},
    {"large limits used up", 60, 3, 25, false, 400, 0, 0, 0, 0},
    {"large limits, windows end", 60, 3, 16, false, 600, 0, 0, 60, 0},
    {"large limits, the clock steps back an hour", 60, 3, 16, false, 600, -3600, 0, 0, 0},
    {"more keys than slots, large limits", 60, 64, 40, false, 500, 0, 0, 0, 0},
    {"more keys than slots, large limits, some killed", 60, 64, 40, true, 500, 0, 0, 0, 0},
    {"keys are reset and windows end", 30, 3, 3, false, 1600, 0, 0, 60, 100},
};

static void check_key(unsigned seed, unsigned key)
{
    /* one extra for the step, and for each reset */
    unsigned windows = 1 + (plan->clock_step != 0) + resets[key];
    if (slots_of(key) > 1)
        ck_abort_msg("%s, seed %u: key %u has %u slots", plan->what, seed, key, slots_of(key));
    /* and for each slot, including one that a killed caller took without counting */
    if (rl->header->evicted[0] != 0)
        windows += (unsigned)rl->header->evicted[0] + (plan->kill ? CALLERS - 1 : 0);
    if (plan->second == 0 && taken[key] > plan->limit * windows)
        ck_abort_msg("%s, seed %u: key %u: %u of %u admitted", plan->what, seed, key, taken[key],
                     plan->limit * windows);
    for (unsigned w = 0; w < WINDOWS; w++)
        if (in_window[key][w] > plan->limit * windows)
            ck_abort_msg("%s, seed %u: key %u, window %u: %u of %u admitted", plan->what, seed, key,
                         w, in_window[key][w], plan->limit * windows);
}

/* the table's count of a window */
static unsigned used_of(struct ratelimit_window w)
{
    struct ratelimit_state state;
    w.limit = RATELIMIT_COUNT_MAX;
    ratelimit_peek(rl, &w, 1, clock_now, &state);
    return w.limit - state.remaining;
}

/* a charge can be another key's if its own key has lost its slot, but it is one key's */
static void check_used_in_all(unsigned seed)
{
    unsigned used = 0, reported = 0;
    for (uint64_t key = 0; key < plan->keys; key++) {
        used += used_of(key_window(&key, plan->limit));
        reported += taken[key];
    }
    if (used > reported + (plan->kill ? CALLERS - 1 : 0))
        ck_abort_msg("%s, seed %u: %u used in all, %u admitted", plan->what, seed, used, reported);
}

/* admitted requests, and those of killed callers that were not reported */
static void check_used(unsigned seed, struct ratelimit_window w, unsigned reported)
{
    unsigned used = used_of(w);
    if (used < reported || used - reported > (plan->kill ? CALLERS - 1 : 0))
        ck_abort_msg("%s, seed %u: %u used of a window of %u s, %u admitted", plan->what, seed,
                     used, w.seconds, reported);
}

/*
 * everything requested, up to the limits: nobody was refused wrongly, and killed callers lost at
 * most their own charge
 */
static void check_the_rest(unsigned seed)
{
    unsigned total = 0, narrow = 0, all = 0;
    for (uint64_t key = 0; key < plan->keys; key++) {
        check_used(seed, key_window(&key, plan->limit), taken[key]);
        narrow += taken[key];
    }
    if (plan->wide > 0)
        check_used(seed, wide_window(plan->wide), narrow);
    for (uint64_t key = 0; key < plan->keys; key++) {
        unsigned before = taken[key];
        while (request(rl, key))
            ;
        unsigned lost = plan->limit - taken[key];
        if (taken[key] > plan->limit || (plan->wide == 0 && lost > (plan->kill ? CALLERS - 1 : 0)))
            ck_abort_msg("%s, seed %u: key %u: %u admitted, then %u, of %u", plan->what, seed,
                         (unsigned)key, before, taken[key] - before, plan->limit);
        total += taken[key];
        all += plan->limit;
    }
    unsigned room = plan->wide > 0 && plan->wide < all ? plan->wide : all;
    if (total > room || room - total > (plan->kill ? CALLERS - 1 : 0))
        ck_abort_msg("%s, seed %u: %u admitted in all, of %u", plan->what, seed, total, room);
}

static unsigned seeds(void)
{
    const char *times = getenv("RATELIMIT_TIMES");
    return plan->runs / 3 * (times == NULL ? 1 : (unsigned)strtoul(times, NULL, 10));
}

START_TEST(any_order_of_steps_keeps_the_invariants)
{
    plan = &plans[_i];
    for (unsigned seed = 1; seed <= seeds(); seed++) {
        chance_state = seed * 0x9e3779b97f4a7c15u;
        forget();
        start();
        if (!run())
            ck_abort_msg("%s, seed %u: no end", plan->what, seed);
        for (unsigned key = 0; key < plan->keys; key++)
            check_key(seed, key);
        if (plan->keys <= 16 && plan->clock_step == 0 && plan->second == 0 && plan->resets == 0 &&
            rl->header->evicted[0] == 0)
            check_the_rest(seed);
        if (rl->header->evicted[0] != 0 && plan->clock_step == 0 && plan->second == 0 &&
            plan->resets == 0)
            check_used_in_all(seed);
        if (plan->wide > 0 && plan->second > 0) {
            unsigned total = 0;
            for (unsigned key = 0; key < plan->keys; key++)
                total += taken[key];
            check_used(seed, wide_window(plan->wide), total);
        }
    }
}
END_TEST

/* a window that ended between a charge and its refund gets no refund */
START_TEST(only_the_charged_window_is_refunded)
{
    uint64_t key = 1;
    plan = &plans[0];
    struct ratelimit_window w = key_window(&key, plan->limit);
    uint64_t hash = ratelimit_hash(rl, &w);
    clock_now = NOW + 30;
    ck_assert(request(rl, key));
    clock_now = NOW + 60;
    ck_assert(request(rl, key) && request(rl, key));
    ck_assert(!give_back(rl, hash, &w, NOW + 60, false));
    check_used(0, w, 2);
    ck_assert(give_back(rl, hash, &w, NOW + 120, false));
    check_used(0, w, 1);
}
END_TEST

/*
 * Every decision updates the heat by the use, from which a full table chooses whom to keep, and
 * logs a key that has just reached half or all of its limit, also under an earlier limit.
 */
START_TEST(every_charge_updates_heat_and_reports_keys_near_their_limit)
{
    static const struct plan one = {.what = "heat", .requests = 1, .keys = 1, .limit = 1};
    const uint32_t limit = (uint32_t)_i;
    plan = &one;
    for (uint32_t first = 1; first <= 40; first++) {
        uint64_t key = first;
        struct ratelimit_window w = key_window(&key, first);
        struct ratelimit_state state;
        for (uint32_t used = 1; used <= limit; used++) {
            w.limit = used <= limit / 3 ? first : limit;
            if (ratelimit_take(rl, &w, 1, (struct ratelimit_time){ratelimit_token(rl), NOW + 30},
                               &state) != 0)
                break; /* the first limit was lower */
            struct pair *slot = table_find(rl, ratelimit_hash(rl, &w));
            ck_assert_uint_eq(state_used(slot->state), used);
            ck_assert_uint_eq(state_level(slot->state), level_of(used, w.limit));
            ck_assert_uint_eq(state.near, is_near(&w, used));
            ck_assert_uint_eq(state.remaining, w.limit - used);
        }
    }
}
END_TEST

/*
 * Columns: name; limit of the key that is requested three times: its decisions take other paths as
 * it nears the limit.
 */
static const struct plan slot_plans[] = {
    {"a key that has used little", 1, 1, 12, false, 0, 0, 0, 0, 0},
    {"a key that has used some", 1, 1, 4, false, 0, 0, 0, 0, 0},
    {"a key that has used most", 1, 1, 3, false, 0, 0, 0, 0, 0},
};

static void look_on(struct caller *c, unsigned looks)
{
    while (looks-- > 0 && !c->ended) {
        running = c;
        context_switch(&scheduler, &c->fiber);
        running = NULL;
    }
}

/*
 * another caller charges the key after that many reads, and the key loses its slot after more;
 * false: there was no such read
 */
static bool request_between(unsigned charged_at, unsigned lost_at)
{
    struct caller *c = &callers[0];
    chance_state = 4711;
    forget();
    clock_now = NOW + 30;
    ck_assert(request(rl, 0));
    start();
    look_on(c, charged_at);
    ck_assert(request(rl, 0));
    look_on(c, lost_at - charged_at);
    bool ended = c->ended;
    for (uint64_t key = 1; slots_of(0) > 0 || key % KEYS_MAX != 0; key++)
        while (key % KEYS_MAX != 0 && request(rl, key % KEYS_MAX))
            ;
    look_on(c, UINT32_MAX);
    ck_assert_msg(taken[0] == 3,
                  "%s: refused when charged before read %u with its slot lost before read %u",
                  plan->what, charged_at, lost_at);
    return !ended;
}

/*
 * A caller sleeps between any two reads of the table. In between, its key's slot becomes that of
 * another, exhausted key. The caller is not refused for that key's use: its own key has lost its
 * count and starts again.
 */
START_TEST(a_slot_taken_by_a_full_key_refuses_no_other_key)
{
    bool continues = true;
    plan = &slot_plans[_i];
    for (unsigned lost_at = 0; continues; lost_at++) {
        continues = false;
        for (unsigned charged_at = 0; charged_at <= lost_at; charged_at++)
            continues |= request_between(charged_at, lost_at);
    }
}
END_TEST

/*
 * Columns: name; limit; a second window, which all keys share, with this limit; requests by the
 * successor; seconds by which its clock is ahead of the caller's.
 */
static const struct {
    struct plan plan;
    unsigned requests;
    int64_t ahead;
} successors[] = {
    {{"a successor that has used little", 1, 1, 12, false, 0, 0, 0, 0, 0}, 1, 0},
    {{"a successor with a clock ahead", 1, 1, 12, false, 0, 0, 0, 0, 0}, 1, 1},
    {{"a successor that is used up", 1, 1, 3, false, 0, 0, 0, 0, 0}, 3, 0},
    {{"a successor that is used up, with a clock ahead", 1, 1, 3, false, 0, 0, 0, 0, 0}, 3, 1},
    {{"a successor that has used little, two windows", 1, 1, 12, false, 0, 0, 50, 0, 0}, 1, 0},
    {{"a successor that is used up, two windows", 1, 1, 3, false, 0, 0, 50, 0, 0}, 3, 0},
};

/* the first key after 0 that the table searches at the position of key 0 */
static uint64_t successor_of_the_first(void)
{
    uint64_t first = 0, key = 1;
    struct ratelimit_window w = key_window(&first, plan->limit), of = key_window(&key, plan->limit);
    while (bucket_first(rl, ratelimit_hash(rl, &of)) != bucket_first(rl, ratelimit_hash(rl, &w)))
        key++;
    ck_assert_uint_lt(key, KEYS_MAX);
    return key;
}

/*
 * a caller's key has a slot of an ended window, which becomes another key's after that many reads;
 * false: there was no such read
 */
static bool request_beside_successor(unsigned requests, int64_t ahead, unsigned lost_at)
{
    struct caller *c = &callers[0];
    chance_state = 4711;
    forget();
    uint64_t successor = successor_of_the_first();
    clock_now = NOW + 30;
    ck_assert(request(rl, 0));
    clock_now = NOW + 63 - ahead; /* ended by the successor's clock, but not by one that lags */
    rl->header->clock = (uint64_t)clock_now << 32;
    start();
    look_on(c, lost_at);
    bool ended = c->ended;
    clock_now += ahead;
    for (unsigned i = 0; i < requests; i++)
        ck_assert(request(rl, successor));
    look_on(c, UINT32_MAX);
    if (taken[0] != 2 || used_of(key_window(&(uint64_t){0}, plan->limit)) != 1 ||
        used_of(key_window(&successor, plan->limit)) != requests)
        ck_abort_msg("%s, at read %u: %u admitted, %u used; the successor %u of %u", plan->what,
                     lost_at, taken[0], used_of(key_window(&(uint64_t){0}, plan->limit)),
                     used_of(key_window(&successor, plan->limit)), requests);
    if (plan->wide > 0)
        check_used(lost_at, wide_window(plan->wide), taken[0] + taken[successor]);
    return !ended;
}

/*
 * A caller sleeps between any two reads. In between, its key's slot, whose window has ended,
 * becomes another key's. Each key is charged its own requests, and nobody is refused.
 */
START_TEST(a_slot_taken_by_a_successor_is_charged_for_no_other_key)
{
    unsigned looks = 0;
    plan = &successors[_i].plan;
    while (request_beside_successor(successors[_i].requests, successors[_i].ahead, looks))
        looks++;
    ck_assert_uint_gt(looks, 5);
}
END_TEST

/* every slot belongs to another key, which has used 5 of 100 */
static void fill_with_others(void)
{
    struct ratelimit_state state;
    for (uint64_t key = 0; key < 200; key++)
        for (unsigned i = 0; i < 5; i++) {
            struct ratelimit_window w = {
                .salt = 3, .seconds = 60, .limit = 100, .key = &key, .key_size = sizeof(key)};
            ck_assert_int_ge(ratelimit_take(rl, &w, 1,
                                            (struct ratelimit_time){ratelimit_token(rl), clock_now},
                                            &state),
                             0);
        }
    for (uint64_t i = 0; i < (rl->mask + 1) * BUCKET_SLOTS; i++)
        ck_assert_uint_eq(state_used(rl->slots[i].state), 5);
}

/*
 * A caller reads a slot of another key, which has used more than its own smaller limit. Then
 * another process gives the slot to the caller's key. The caller is not refused for the use it read
 * before.
 */
START_TEST(a_slot_left_by_a_full_key_refuses_no_other_key)
{
    static const struct plan small = {
        .what = "a key of a small limit", .requests = 1, .keys = 1, .limit = 3};
    struct caller *c = &callers[0];
    uint64_t key = 0;
    bool ended = false;
    plan = &small;
    struct ratelimit_window w = key_window(&key, plan->limit);
    for (unsigned made_at = 0; !ended; made_at++) {
        chance_state = 4711;
        forget();
        clock_now = NOW + 30;
        rl->header->clock = (uint64_t)clock_now << 32;
        fill_with_others();
        struct pair *slot = table_bucket(rl, bucket_first(rl, ratelimit_hash(rl, &w)));
        slot->state--; /* it has used the least, so it is evicted */
        start();
        look_on(c, made_at);
        ended = c->ended;
        ck_assert(request(rl, key));
        ck_assert_msg(table_find(rl, ratelimit_hash(rl, &w)) == slot, "another key was evicted");
        look_on(c, UINT32_MAX);
        ck_assert_msg(taken[key] == 2, "refused when its slot was created before read %u", made_at);
    }
}
END_TEST

START_TEST(heat_is_the_used_quarters_of_the_limit)
{
    for (uint32_t limit = 1; limit <= 40; limit++)
        for (uint32_t used = 0; used <= 2 * limit; used++)
            ck_assert_uint_eq(level_of(used, limit), used >= limit ? LEVEL_FULL : 4 * used / limit);
    ck_assert_uint_eq(level_of(RATELIMIT_COUNT_MAX - 1, RATELIMIT_COUNT_MAX), 3);
    ck_assert_uint_eq(level_of(RATELIMIT_COUNT_MAX, RATELIMIT_COUNT_MAX), LEVEL_FULL);
}
END_TEST

/*
 * a window that ended by one clock continues by another that lags: no other key takes the slot in
 * between
 */
START_TEST(a_slot_is_kept_for_lagging_clocks)
{
    static const struct plan lag = {.what = "lag", .requests = 1, .keys = 1, .limit = 3};
    plan = &lag;
    chance_state = 4711;
    forget();
    uint64_t successor = successor_of_the_first();
    clock_now = NOW + 30;
    while (request(rl, 0))
        ;
    for (int64_t ahead = 0; ahead < RATELIMIT_LATE_SECONDS; ahead++) {
        clock_now = NOW + 60 + ahead;
        ck_assert(request(rl, successor));
        clock_now = NOW + 59;
        ck_assert(!request(rl, 0));
    }
}
END_TEST

int main(void)
{
    Suite *s = suite_create("ratelimit_interleaved");
    TCase *t = tcase_create("turns");
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_set_timeout(t, 120);
    tcase_add_loop_test(t, any_order_of_steps_keeps_the_invariants, 0,
                        sizeof(plans) / sizeof(plans[0]));
    tcase_add_test(t, only_the_charged_window_is_refunded);
    tcase_add_loop_test(t, every_charge_updates_heat_and_reports_keys_near_their_limit, 1, 41);
    tcase_add_loop_test(t, a_slot_taken_by_a_full_key_refuses_no_other_key, 0,
                        sizeof(slot_plans) / sizeof(slot_plans[0]));
    tcase_add_test(t, heat_is_the_used_quarters_of_the_limit);
    tcase_add_test(t, a_slot_is_kept_for_lagging_clocks);
    tcase_add_test(t, a_slot_left_by_a_full_key_refuses_no_other_key);
    tcase_add_loop_test(t, a_slot_taken_by_a_successor_is_charged_for_no_other_key, 0,
                        sizeof(successors) / sizeof(successors[0]));
    suite_add_tcase(s, t);
    return suite_run(s);
}
