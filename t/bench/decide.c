/*
 * The cost of one decision of the limiter, as a ratio to what the memory allows, in alternating
 * pairs:
 *
 *   run_decide DIR [PAIRS [keys|hot|flood]...]
 *
 * DIR: where the table is created (a memory file system, like run_dir). Without a part: all parts.
 *
 * Columns: what | measured | ratio (least-most) | target | verdict. Exit status 1 when a target is
 * missed.
 */
#include "ratelimit/atomic_pair_internal.h"
#include "ratelimit/siphash.h"
#include "t/bench/decide_internal.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define SLOTS 1048576 /* the default */
#define KEYS 1000000
#define ROUND 2000000 /* decisions in a pair's half */
#define FLOOD 50000000
#define HEAVY 1000 /* keys that must keep their counts in the flood */

struct ratelimit *rl;
static struct ratelimit_usage usage; /* of the empty table */
static uint64_t luck = 88172645463325252u;
unsigned pairs = 15;
static int missed;

double now_ns(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (double)ts.tv_sec * 1e9 + (double)ts.tv_nsec;
}

/* CPU time of this process */
static double cpu_ns(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
    return (double)ts.tv_sec * 1e9 + (double)ts.tv_nsec;
}

static inline uint64_t chance(void)
{
    luck ^= luck << 13, luck ^= luck >> 7, luck ^= luck << 17;
    return luck;
}

/*
 * Maps ${x}, a random 64-bit number, to one of ${count}. The instructions are the same for a
 * constant and a variable ${count}, so both sides pay the same.
 */
static inline uint64_t among(uint64_t x, uint64_t count)
{
    return (uint64_t)((unsigned __int128)x * count >> 64);
}

static struct key key = {0x20010db8, 0};

/*
 * As in a worker: the window of a limiter, and a token of the table's clock, which a worker reads
 * from time to time.
 */
static struct ratelimit_window window = {
    .salt = 1, .seconds = 3600, .key = &key, .key_size = sizeof(key)};
uint64_t token;

static inline int decide(uint64_t n, uint32_t limit, struct ratelimit_state *state)
{
    key.host = n;
    window.limit = limit;
    return ratelimit_take(rl, &window, 1, (struct ratelimit_time){token, NOW}, state);
}

static int decide_only(uint64_t n, uint32_t limit)
{
    struct ratelimit_state state;
    return decide(n, limit, &state);
}

/*
 * ---- the peer, beside the bare instruction ----
 *
 * The simplest possible table: open addressing, SipHash of the key, one compare-and-swap of 16
 * bytes. It never frees a slot and is no limiter: two processes may create two slots for one key,
 * and the table fills up.
 */
static struct pair *naive;
static uint64_t naive_mask;

static inline uint64_t decide_naive(uint64_t n)
{
    static const uint64_t seed[2] = {0x0706050403020100, 0x0f0e0d0c0b0a0908};
    struct key of = {0x20010db8, n};
    uint64_t hash = siphash(SIPHASH_1_3, seed, &of, sizeof(of));
    for (uint64_t at = hash & naive_mask;; at = (at + 1) & naive_mask) {
        struct pair is = {word_load(&naive[at].key), word_load(&naive[at].state)};
        while (is.key == hash || is.key == 0) {
            struct pair next = {
                hash, (is.state >> 32 == NOW / 3600 ? is.state : (uint64_t)(NOW / 3600) << 32) + 1};
            if (pair_swap(&naive[at], &is, next))
                return next.state;
        }
    }
}

/* ---- rows ---- */

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *v)
{
    qsort(v, pairs, sizeof(*v), by_value);
    return v[pairs / 2];
}

void row(const char *what, const char *peer, struct pairs *p, double target)
{
    double ratio[PAIRS_MAX];
    for (unsigned i = 0; i < pairs; i++)
        ratio[i] = p->ours[i] / p->peer[i];
    double middle = median(ratio), low = ratio[0], high = ratio[pairs - 1];
    const char *verdict = high <= target ? "met" : low > target ? "missed" : "inconclusive";
    char measured[80], spread[40];
    snprintf(measured, sizeof(measured), "%.1f ns, %s %.1f ns (%u pairs)", median(p->ours), peer,
             median(p->peer), pairs);
    snprintf(spread, sizeof(spread), "%.2f (%.2f-%.2f)", middle, low, high);
    if (target == 0)
        verdict = "-";
    printf("%-42s | %-58s | %-22s | <= %-9g | %s\n", what, measured, spread, target, verdict);
    fflush(stdout);
    missed |= strcmp(verdict, "missed") == 0;
}

/*
 * ---- one process, many keys ----
 *
 * Both sides draw their numbers in the timed loop and by the same instructions; the xadd's mapping
 * is as large as the table's file, in the same file system and touched as a whole before. Three
 * kinds of loop, and both sides in each:
 *
 * Chained: each decision begins when the one before has ended, since its number depends on what
 * that one found. It is what the line is judged by: what one decision costs who waits for
 * it, as a server does, which decides once in thousands of instructions and needs the answer before
 * it goes on.
 *
 * Expected: the key is told of when it is known (ratelimit_prefetch), and decided on later, as the
 * pipeline does where it goes by addresses. The loop runs freely. It is judged by the same line.
 *
 * Free-running and not expected, as nothing in the product does it: a processor works on as many
 * decisions at once as it has room for (some 320 instructions), so what counts is how many
 * instructions there are from one look at memory to the next: 20 for an xadd, which leaves as many
 * looks under way as memory takes, over 100 for a decision. That is 2 or 3 under way, whichever way
 * it swaps: without any swap it is no faster. Its instructions alone, with memory out of the way,
 * are the row of a thousand keys.
 */

/* inlined with constants: a condition on ${chained} would chain both */
#define ROUND_LOOP static inline __attribute__((always_inline)) double

ROUND_LOOP decisions(uint64_t keys, uint32_t limit, bool chained)
{
    double began = cpu_ns();
    uint64_t before = 0;
    token = ratelimit_token(rl);
    for (unsigned i = 0; i < ROUND; i++) {
        struct ratelimit_state state;
        decide(among(chance() + before, keys), limit, &state);
        if (chained)
            /* 0, but not known to be until the slot is read */
            before = (uint64_t)state.reset >> 40;
    }
    return (cpu_ns() - began) / ROUND;
}

/*
 * In the pipeline the key is known a microsecond before it is decided on: the credential is judged
 * meanwhile. Here that is AHEAD decisions, half as long.
 */
#define AHEAD 16

ROUND_LOOP decisions_ahead(uint64_t keys)
{
    struct key of[AHEAD];
    struct ratelimit_window expected[AHEAD];
    struct ratelimit_state state;
    for (unsigned i = 0; i < AHEAD; i++) {
        of[i] = (struct key){key.network, among(chance(), keys)};
        expected[i] = window;
        expected[i].key = &of[i];
        ratelimit_prefetch(rl, &expected[i]);
    }
    double began = cpu_ns();
    token = ratelimit_token(rl);
    for (unsigned i = 0; i < ROUND; i++) {
        struct ratelimit_window *w = &expected[i % AHEAD];
        ratelimit_take(rl, w, 1, (struct ratelimit_time){token, NOW}, &state);
        of[i % AHEAD].host = among(chance(), keys);
        w->hash = 0;
        ratelimit_prefetch(rl, w);
    }
    return (cpu_ns() - began) / ROUND;
}

ROUND_LOOP xadds_ahead(char *memory, uint64_t lines)
{
    uint64_t *expected[AHEAD], sum = 0;
    for (unsigned i = 0; i < AHEAD; i++)
        expected[i] = (uint64_t *)(void *)(memory + among(chance(), lines) * 64);
    double began = cpu_ns();
    for (unsigned i = 0; i < ROUND; i++) {
        uint64_t **at = &expected[i % AHEAD];
        sum += __atomic_fetch_add(*at, 1, __ATOMIC_SEQ_CST);
        *at = (uint64_t *)(void *)(memory + among(chance(), lines) * 64);
        __builtin_prefetch(*at, 1);
    }
    __asm__ volatile("" : : "r"(sum));
    return (cpu_ns() - began) / ROUND;
}

ROUND_LOOP naive_decisions(bool chained)
{
    double began = cpu_ns();
    uint64_t before = 0;
    for (unsigned i = 0; i < ROUND; i++) {
        uint64_t state = decide_naive(among(chance() + before, KEYS));
        if (chained)
            before = state >> 60;
    }
    return (cpu_ns() - began) / ROUND;
}

ROUND_LOOP xadds(char *memory, uint64_t lines, bool chained)
{
    double began = cpu_ns();
    uint64_t before = 0, sum = 0;
    for (unsigned i = 0; i < ROUND; i++) {
        uint64_t *at = (uint64_t *)(void *)(memory + among(chance() + before, lines) * 64);
        uint64_t result = __atomic_fetch_add(at, 1, __ATOMIC_SEQ_CST);
        if (chained)
            before = result >> 40;
        sum += result; /* used, or it would be no xadd */
    }
    __asm__ volatile("" : : "r"(sum));
    return (cpu_ns() - began) / ROUND;
}

/* each a function of its own, so that no loop is compiled into another */
#define ALONE static __attribute__((noinline)) double

ALONE chained_decisions(uint64_t keys, uint32_t limit)
{
    return decisions(keys, limit, true);
}

ALONE free_decisions(uint64_t keys, uint32_t limit)
{
    return decisions(keys, limit, false);
}

ALONE early_decisions(uint64_t keys)
{
    window.limit = RATELIMIT_COUNT_MAX;
    return decisions_ahead(keys);
}

ALONE early_xadds(char *memory, uint64_t lines)
{
    return xadds_ahead(memory, lines);
}

ALONE chained_naive(void)
{
    return naive_decisions(true);
}

ALONE free_naive(void)
{
    return naive_decisions(false);
}

ALONE chained_xadds(char *memory, uint64_t lines)
{
    return xadds(memory, lines, true);
}

ALONE free_xadds(char *memory, uint64_t lines)
{
    return xadds(memory, lines, false);
}

/* as the table has it: a file of its size in the same directory, all its room taken */
static char *map_as_large(const char *dir)
{
    char path[4100];
    snprintf(path, sizeof(path), "%s/beside", dir);
    int fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
    if (fd < 0 || posix_fallocate(fd, 0, (off_t)usage.bytes) != 0) {
        perror(path);
        exit(2);
    }
    char *memory = mmap(NULL, usage.bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    unlink(path);
    if (memory == MAP_FAILED) {
        perror("mmap");
        exit(2);
    }
    return memory;
}

static void bench_many_keys(const char *dir)
{
    struct pairs chained, free, early, both_early, plain, plain_free, refused, refused_free, cached;
    uint64_t lines = usage.bytes / 64;
    char *memory = map_as_large(dir);
    naive = (struct pair *)(void *)map_as_large(dir);
    for (naive_mask = 1; (naive_mask * 2 + 1) * sizeof(struct pair) < usage.bytes;)
        naive_mask = naive_mask * 2 + 1;
    for (uint64_t k = 0; k < KEYS; k++) {
        decide_only(k, RATELIMIT_COUNT_MAX);
        decide_naive(k);
    }
    chained_xadds(memory, lines);
    for (unsigned i = 0; i < pairs; i++) {
        plain.peer[i] = chained.peer[i] = chained_xadds(memory, lines);
        refused.peer[i] = chained.ours[i] = chained_decisions(KEYS, RATELIMIT_COUNT_MAX);
        refused.ours[i] = chained_decisions(KEYS, 1); /* all have used one */
        plain.ours[i] = chained_naive();
        early.peer[i] = plain_free.peer[i] = free.peer[i] = free_xadds(memory, lines);
        refused_free.peer[i] = free.ours[i] = free_decisions(KEYS, RATELIMIT_COUNT_MAX);
        refused_free.ours[i] = free_decisions(KEYS, 1);
        plain_free.ours[i] = free_naive();
        cached.peer[i] = free.peer[i];
        cached.ours[i] = free_decisions(1000, RATELIMIT_COUNT_MAX);
        early.ours[i] = both_early.ours[i] = early_decisions(KEYS);
        both_early.peer[i] = early_xadds(memory, lines);
    }
    row("one decision, 1 M keys / lock xadd", "xadd", &chained, 2.5);
    row("  a naive table's", "xadd", &plain, 0);
    row("  refused / admitted", "admitted", &refused, 1);
    row("expected before, free-running", "xadd", &early, 2.5);
    row("  the same / xadd fetched before, too", "xadd", &both_early, 0);
    row("free-running, not expected", "xadd", &free, 2.5);
    row("  a naive table's", "xadd", &plain_free, 0);
    row("  refused / admitted", "admitted", &refused_free, 1);
    row("  of 1,000 keys, / xadd as above", "xadd", &cached, 0);
    puts("  The first row is the issue's line: one decision, and somebody who waits for it. The "
         "product decides by the first and the second\n"
         "  row, by the third nowhere: it shows how little of its own a processor can do ahead of "
         "a decision.");
    munmap(memory, usage.bytes);
    munmap(naive, usage.bytes);
}

/* ---- a flood of new keys ---- */

static double time_new_keys(uint64_t from, uint64_t count)
{
    double began = cpu_ns();
    for (uint64_t i = 0; i < count; i++)
        decide_only(from + i, 1000);
    return (cpu_ns() - began) / (double)count;
}

static void bench_flood(const char *dir)
{
    struct pairs p;
    (void)dir;
    struct ratelimit_usage after;
    uint64_t flood = 1u << 30, kept = 0, slice = FLOOD / pairs;
    for (uint64_t k = 0; k < HEAVY; k++)
        for (unsigned i = 0; i < 500; i++)
            decide_only((1ull << 40) + k, 1000);
    for (unsigned i = 0; i < pairs; i++) {
        /* without the flood: existing keys */
        p.peer[i] = chained_decisions(KEYS, RATELIMIT_COUNT_MAX);
        p.ours[i] = time_new_keys(flood + i * slice, slice);
        for (uint64_t k = 0; k < KEYS; k++) /* the known ones, which the flood evicted */
            decide_only(k, RATELIMIT_COUNT_MAX);
    }
    for (uint64_t k = 0; k < HEAVY; k++)
        for (unsigned i = 0; i <= 500; i++)
            kept += decide_only((1ull << 40) + k, 1000) == 0;
    ratelimit_usage(rl, NOW, &after);
    row("flood of 50 M new keys / known keys", "known", &p, 3);
    printf("%-42s | %llu of %u heavy keys' counts exact; file %llu bytes before, %llu after; %llu "
           "evicted alive\n",
           "  what the flood left", (unsigned long long)(kept == HEAVY * 500ull ? HEAVY : 0), HEAVY,
           (unsigned long long)usage.bytes, (unsigned long long)after.bytes,
           (unsigned long long)after.evicted_alive);
    missed |= kept != HEAVY * 500ull || after.bytes != usage.bytes;
}

static const struct {
    const char *name;
    void (*run)(const char *dir);
} parts[] = {{"keys", bench_many_keys}, {"hot", bench_hot_key}, {"flood", bench_flood}};

static bool is_wanted(const char *part, int argc, char **argv)
{
    for (int i = 3; i < argc; i++)
        if (strcmp(argv[i], part) == 0)
            return true;
    return argc <= 3;
}

int main(int argc, char **argv)
{
    enum ratelimit_made made;
    char path[4100];
    if (argc < 2 || (argc > 2 && ((pairs = (unsigned)atoi(argv[2])) < 1 || pairs > PAIRS_MAX))) {
        fprintf(stderr, "usage: run_decide DIR [PAIRS [keys|hot|flood]...]\n");
        return 2;
    }
    int error = ratelimit_open(argv[1], SLOTS, &made, &rl);
    if (error != 0 || made != RATELIMIT_NEW) {
        fprintf(stderr, "run_decide: %s: %s\n", argv[1],
                error != 0 ? strerror(error) : "there is a table already");
        return 2;
    }
    ratelimit_usage(rl, NOW, &usage);
    token = ratelimit_token(rl);
    while (decide_only(0, 1) < 0) /* this process sets the table's clock */
        token = ratelimit_token(rl);
    token = ratelimit_token(rl);
    printf("%-42s | %-58s | %-22s | %-12s | %s\n", "what", "measured", "ratio (min-max)", "target",
           "verdict");
    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
        if (is_wanted(parts[i].name, argc, argv))
            parts[i].run(argv[1]);
    ratelimit_close(rl);
    snprintf(path, sizeof(path), "%s/limits-2", argv[1]);
    unlink(path);
    return missed;
}
