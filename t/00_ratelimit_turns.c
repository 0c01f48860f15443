/*
 * Several callers of the table in one process, interleaved at every access to shared memory as a seed says: far more meetings than
 * processes on two cores ever have. Each caller is a coroutine; RATELIMIT_STEP lets any other go on, for long if chance will have it, and
 * a caller may be stopped for ever in the middle (a killed process).
 *
 * Invariants, after every run: a key has one slot at most; no more than the limit was admitted of a key whose slot lived; and when all who
 * live have ended, every key that was asked for can be asked for again.
 */
#include <stdint.h>

static void step(void);
#define RATELIMIT_STEP() step()
#include "ratelimit/ratelimit.c"
#include "ratelimit/table.c"
#include "ratelimit/file.c"

#include <check.h>
#include <ucontext.h>

#define NOW 1800000000
#define CALLERS 4
#define STACK 65536

struct caller {
    ucontext_t context;
    char stack[STACK];
    bool ended;
    unsigned asleep; /* turns that others get first; UINT32_MAX: killed */
    unsigned asks, keys;
};

static struct caller callers[CALLERS];
static ucontext_t scheduler;
static struct caller *running;
static uint64_t chance_state;
static char dir[64];
static struct ratelimit *rl;

#define KEYS_MAX 64
static unsigned taken[KEYS_MAX], limit;

static uint64_t chance(uint64_t below)
{
    chance_state ^= chance_state << 13, chance_state ^= chance_state >> 7, chance_state ^= chance_state << 17;
    return (chance_state >> 11) % below;
}

static void step(void)
{
    if (running != NULL)
        swapcontext(&running->context, &scheduler);
}

static int64_t clock_now; /* steps once in a run, at any moment, where the plan says so */

/* what a caller asks: keys by chance; its reading of the clock may be as old as chance has it sleep */
static void call(void)
{
    struct caller *self = running;
    for (unsigned i = 0; i < self->asks; i++) {
        uint64_t key = chance(self->keys);
        struct ratelimit_window w = {.salt = 1, .seconds = 60, .limit = limit, .key = &key, .key_size = sizeof(key)};
        struct ratelimit_state state;
        struct ratelimit_time time;
        int got;
        do {
            time.token = ratelimit_token(rl);
            time.now = clock_now;
            step();
        } while ((got = ratelimit_take(rl, &w, 1, time, &state)) < 0);
        if (got == 0)
            taken[key]++;
    }
    self->ended = true;
    running = NULL;
    setcontext(&scheduler);
}

static void start(unsigned asks, unsigned keys)
{
    for (unsigned i = 0; i < CALLERS; i++) {
        struct caller *c = &callers[i];
        getcontext(&c->context);
        c->context.uc_stack.ss_sp = c->stack;
        c->context.uc_stack.ss_size = STACK;
        c->context.uc_link = NULL;
        c->ended = false;
        c->asleep = 0;
        c->asks = asks;
        c->keys = keys;
        makecontext(&c->context, call, 0);
    }
}

/* until all have ended or are killed; false: they never do */
static bool run(bool kill, int64_t clock_step)
{
    unsigned steps_at = (unsigned)chance(600);
    clock_now = NOW + 30;
    for (unsigned turn = 0; turn < 2000000; turn++) {
        if (turn == steps_at)
            clock_now += clock_step;
        unsigned alive = 0;
        for (unsigned i = 0; i < CALLERS; i++)
            alive += !callers[i].ended && callers[i].asleep != UINT32_MAX;
        if (alive == 0)
            return true;
        struct caller *c = &callers[chance(CALLERS)];
        if (c->ended || c->asleep == UINT32_MAX)
            continue;
        if (c->asleep > 0) {
            c->asleep--;
            continue;
        }
        running = c;
        swapcontext(&scheduler, &c->context);
        running = NULL;
        if (c->ended)
            continue;
        uint64_t luck = chance(1000);
        if (luck < 60)
            c->asleep = (unsigned)chance(400); /* long enough for the others to do many whole requests */
        else if (kill && luck == 999 && alive > 1)
            c->asleep = UINT32_MAX;
    }
    return false;
}

/* how many slots a key has, void and other reservations left out */
static unsigned slots_of(uint64_t key)
{
    struct ratelimit_window w = {.salt = 1, .seconds = 60, .limit = limit, .key = &key, .key_size = sizeof(key)};
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
    memset(&rl->last, 0, sizeof(rl->last));
    rl->header->evicted = rl->header->clock = 0;
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
    snprintf(path, sizeof(path), "%s/limits-1", dir);
    unlink(path);
    rmdir(dir);
}

/*
 * Columns: requests of each caller, keys they ask for (the least table has 32 slots), limit, whether some are killed, runs, step of the
 * clock.
 */
static const struct {
    const char *what;
    unsigned asks, keys, limit;
    bool kill;
    unsigned runs;
    int64_t clock_step;
} plans[] = {
    {"one new key met by all", 3, 1, 5, false, 3000, 0},
    {"few keys, used up", 12, 3, 9, false, 800, 0},
    {"room for all", 10, 16, 2, false, 800, 0},
    {"more keys than slots", 30, 64, 3, false, 250, 0},
    {"one key, the clock goes back an hour", 40, 1, 5, false, 2000, -3600},
    {"one key, the clock goes back three seconds", 40, 1, 5, false, 1000, -33},
    {"few keys, the clock goes on by a day", 40, 3, 5, true, 2000, 86400},
    {"one new key, some killed", 3, 1, 5, true, 3000, 0},
    {"room for all, some killed", 10, 16, 2, true, 1500, 0},
    {"more keys than slots, some killed", 30, 64, 3, true, 250, 0},
};

START_TEST(any_order_of_steps_keeps_the_invariants)
{
    limit = plans[_i].limit;
    for (unsigned seed = 1; seed <= plans[_i].runs; seed++) {
        chance_state = seed * 0x9e3779b97f4a7c15u;
        forget();
        start(plans[_i].asks, plans[_i].keys);
        if (!run(plans[_i].kill, plans[_i].clock_step))
            ck_abort_msg("%s, seed %u: it does not end", plans[_i].what, seed);
        bool evicted = rl->header->evicted != 0;
        for (unsigned key = 0; key < plans[_i].keys; key++) {
            if (slots_of(key) > 1)
                ck_abort_msg("%s, seed %u: key %u has %u slots", plans[_i].what, seed, key, slots_of(key));
            unsigned windows = plans[_i].clock_step != 0 ? 2 : 1; /* one extra for the step */
            if (taken[key] > limit * windows && !evicted)
                ck_abort_msg("%s, seed %u: %u of %u admitted", plans[_i].what, seed, taken[key], limit);
        }
        /* all that was asked, up to the limit: nobody was refused for nothing, and killed ones lost their own charge at most */
        for (unsigned key = 0; key < plans[_i].keys && !evicted && plans[_i].keys <= 16 && plans[_i].clock_step == 0; key++) {
            uint64_t id = key;
            struct ratelimit_window w = {.salt = 1, .seconds = 60, .limit = limit, .key = &id, .key_size = sizeof(id)};
            struct ratelimit_state state;
            unsigned before = taken[key];
            while (ratelimit_take(rl, &w, 1, (struct ratelimit_time){ratelimit_token(rl), NOW + 30}, &state) == 0)
                taken[key]++;
            unsigned lost = limit - taken[key];
            if (taken[key] > limit || lost > (plans[_i].kill ? CALLERS - 1 : 0))
                ck_abort_msg("%s, seed %u: key %u: %u admitted, then %u, of %u", plans[_i].what, seed, key, before, taken[key] - before,
                             limit);
        }
    }
}
END_TEST

int main(void)
{
    Suite *s = suite_create("ratelimit turns");
    TCase *t = tcase_create("turns");
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_set_timeout(t, 120);
    tcase_add_loop_test(t, any_order_of_steps_keeps_the_invariants, 0, sizeof(plans) / sizeof(plans[0]));
    suite_add_tcase(s, t);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_ENV);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed == 0 ? 0 : 1;
}
