/*
 * What one decision of the limiter costs, as ratios to what the memory allows, in pairs taken in turn:
 *
 *   run_decide DIR [PAIRS]     DIR: where the table is made (a memory file system, as run_dir is); prints a line for each row of `rows`
 *
 * Columns: what | measured | ratio (least-most) | target | verdict. Exit status 1 when a target is missed.
 */
#include "ratelimit/ratelimit.h"

#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define NOW 1800000000
#define SLOTS 1048576 /* the default */
#define KEYS 1000000
#define ROUND 2000000     /* decisions in a pair's half */
#define HOT_ROUND 5000000 /* of each of two processes */
#define FLOOD 50000000
#define HEAVY 1000 /* keys that must keep their counts in the flood */
#define PAIRS_MAX 99

static struct ratelimit *rl;
static struct ratelimit_usage usage; /* of the empty table */
static uint64_t luck = 88172645463325252u;
static unsigned pairs = 15;
static int missed;

static double now_ns(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (double)ts.tv_sec * 1e9 + (double)ts.tv_nsec;
}

static inline uint64_t chance(void)
{
    luck ^= luck << 13, luck ^= luck >> 7, luck ^= luck << 17;
    return luck;
}

/* the 16 bytes of an address */
struct key {
    uint64_t network, host;
};

static inline int decide(uint64_t n, uint32_t limit)
{
    struct key key = {0x20010db8, n};
    struct ratelimit_window w = {.salt = 1, .seconds = 3600, .limit = limit, .key = &key, .key_size = sizeof(key)};
    struct ratelimit_time time = {ratelimit_token(rl), NOW};
    struct ratelimit_state state;
    return ratelimit_take(rl, &w, 1, time, &state);
}

/* ---- rows ---- */

struct pairs {
    double ours[PAIRS_MAX], peer[PAIRS_MAX];
};

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

static void row(const char *what, const char *peer, struct pairs *p, double target)
{
    double ratio[PAIRS_MAX];
    for (unsigned i = 0; i < pairs; i++)
        ratio[i] = p->ours[i] / p->peer[i];
    double middle = median(ratio), low = ratio[0], high = ratio[pairs - 1];
    const char *verdict = high <= target ? "met" : low > target ? "missed" : "inconclusive";
    char measured[80], spread[40];
    snprintf(measured, sizeof(measured), "%.1f ns, %s %.1f ns (%u pairs)", median(p->ours), peer, median(p->peer), pairs);
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
 * A server decides once in thousands of instructions, so what a decision costs is the time from its beginning to its end: each of a round
 * begins when the one before has ended, since its number depends on that one's result. Beside it the free-running loop, in which a
 * processor may work on several at once: it tells how small the code is, and depends on how much of it fits the processor's window.
 */

/* inlined with a constant ${chained}: a condition on it would chain both */
#define ROUND_LOOP static inline __attribute__((always_inline)) double

ROUND_LOOP decisions(uint64_t keys, uint32_t limit, bool chained)
{
    double began = now_ns();
    uint64_t before = 0;
    for (unsigned i = 0; i < ROUND; i++) {
        uint64_t result = (uint64_t)decide((chance() + before) % keys, limit);
        if (chained)
            before = result >> 1; /* 0, but not known to be until it is there */
    }
    return (now_ns() - began) / ROUND;
}

ROUND_LOOP xadds(char *memory, uint64_t lines, bool chained)
{
    double began = now_ns();
    uint64_t before = 0;
    for (unsigned i = 0; i < ROUND; i++) {
        uint64_t *at = (uint64_t *)(void *)(memory + (chance() + before) % lines * 64);
        uint64_t result = __atomic_fetch_add(at, 1, __ATOMIC_SEQ_CST);
        if (chained)
            before = result >> 40;
    }
    return (now_ns() - began) / ROUND;
}

static double time_decisions(uint64_t keys, uint32_t limit)
{
    return decisions(keys, limit, true);
}

static double time_free_decisions(uint64_t keys, uint32_t limit)
{
    return decisions(keys, limit, false);
}

static double time_xadd(char *memory, uint64_t lines)
{
    return xadds(memory, lines, true);
}

static double time_free_xadd(char *memory, uint64_t lines)
{
    return xadds(memory, lines, false);
}

static void bench_many_keys(const char *dir)
{
    struct pairs known, free, refused;
    char path[4100];
    snprintf(path, sizeof(path), "%s/xadd", dir);
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
    for (uint64_t k = 0; k < KEYS; k++)
        decide(k, RATELIMIT_COUNT_MAX);
    time_xadd(memory, usage.bytes / 64);
    for (unsigned i = 0; i < pairs; i++) {
        known.peer[i] = time_xadd(memory, usage.bytes / 64);
        known.ours[i] = time_decisions(KEYS, RATELIMIT_COUNT_MAX);
        free.peer[i] = time_free_xadd(memory, usage.bytes / 64);
        free.ours[i] = time_free_decisions(KEYS, RATELIMIT_COUNT_MAX);
        refused.peer[i] = time_decisions(KEYS, RATELIMIT_COUNT_MAX);
        refused.ours[i] = time_decisions(KEYS, 1); /* all have used one */
    }
    row("one decision, 1 M keys / lock xadd", "xadd", &known, 2.5);
    row("  the same, free-running", "xadd", &free, 2.5);
    row("a refused decision / an admitted one", "admitted", &refused, 1);
    munmap(memory, usage.bytes);
}

/* ---- two processes, one word ---- */

struct start {
    uint64_t there, go;
    double ns[2];
};
typedef void hot_fn(uint64_t *word);

static void hot_word(uint64_t *word)
{
    for (unsigned i = 0; i < HOT_ROUND; i++) {
        uint64_t is = __atomic_load_n(word, __ATOMIC_ACQUIRE);
        while (!__atomic_compare_exchange_n(word, &is, is + 1, false, __ATOMIC_SEQ_CST, __ATOMIC_ACQUIRE))
            ;
    }
}

/* a caller that comes again and again keeps its key's hash */
static void hot_key(uint64_t *word)
{
    struct key key = {1, 1};
    struct ratelimit_window w = {.salt = 2, .seconds = 3600, .limit = RATELIMIT_COUNT_MAX, .key = &key, .key_size = sizeof(key)};
    struct ratelimit_state state;
    (void)word;
    w.hash = ratelimit_hash(rl, &w);
    for (unsigned i = 0; i < HOT_ROUND; i++) {
        struct ratelimit_time time = {ratelimit_token(rl), NOW};
        ratelimit_take(rl, &w, 1, time, &state);
    }
}

static double time_two(struct start *start, uint64_t *word, hot_fn *loop)
{
    pid_t pids[2];
    start->there = start->go = 0;
    for (int i = 0; i < 2; i++)
        if ((pids[i] = fork()) == 0) {
            cpu_set_t cpu;
            CPU_ZERO(&cpu);
            CPU_SET((size_t)i, &cpu);
            sched_setaffinity(0, sizeof(cpu), &cpu);
            __atomic_fetch_add(&start->there, 1, __ATOMIC_SEQ_CST);
            while (__atomic_load_n(&start->there, __ATOMIC_ACQUIRE) < 2)
                ;
            double began = now_ns();
            loop(word);
            start->ns[i] = (now_ns() - began) / HOT_ROUND;
            _exit(0);
        }
    for (int i = 0; i < 2; i++)
        waitpid(pids[i], NULL, 0);
    return (start->ns[0] + start->ns[1]) / 2;
}

static void bench_hot_key(void)
{
    struct pairs p;
    char *shared = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    struct start *start = (struct start *)(void *)shared;
    uint64_t *word = (uint64_t *)(void *)(shared + 4096);
    for (unsigned i = 0; i < pairs; i++) {
        p.peer[i] = time_two(start, word, hot_word);
        p.ours[i] = time_two(start, word, hot_key);
    }
    row("two processes, one key / one word", "swap loop", &p, 1.5);
    munmap(shared, 8192);
}

/* ---- a flood of new keys ---- */

static double time_new_keys(uint64_t from, uint64_t count)
{
    double began = now_ns();
    for (uint64_t i = 0; i < count; i++)
        decide(from + i, 1000);
    return (now_ns() - began) / (double)count;
}

static void bench_flood(void)
{
    struct pairs p;
    struct ratelimit_usage after;
    uint64_t flood = 1u << 30, kept = 0, slice = FLOOD / pairs;
    for (uint64_t k = 0; k < HEAVY; k++)
        for (unsigned i = 0; i < 500; i++)
            decide((1ull << 40) + k, 1000);
    for (unsigned i = 0; i < pairs; i++) {
        p.peer[i] = time_decisions(KEYS, RATELIMIT_COUNT_MAX); /* unloaded: keys that are there */
        p.ours[i] = time_new_keys(flood + i * slice, slice);
        for (uint64_t k = 0; k < KEYS; k++) /* the known ones, which the flood took the place of */
            decide(k, RATELIMIT_COUNT_MAX);
    }
    for (uint64_t k = 0; k < HEAVY; k++)
        for (unsigned i = 0; i <= 500; i++)
            kept += decide((1ull << 40) + k, 1000) == 0;
    ratelimit_usage(rl, NOW, &after);
    row("flood of 50 M new keys / known keys", "known", &p, 3);
    printf("%-42s | %llu of %u heavy keys' counts exact; file %llu bytes before, %llu after; %llu evicted alive\n", "  what the flood left",
           (unsigned long long)(kept == HEAVY * 500ull ? HEAVY : 0), HEAVY, (unsigned long long)usage.bytes,
           (unsigned long long)after.bytes, (unsigned long long)after.evicted_alive);
    missed |= kept != HEAVY * 500ull || after.bytes != usage.bytes;
}

int main(int argc, char **argv)
{
    enum ratelimit_made made;
    char path[4100];
    if (argc < 2 || (argc > 2 && ((pairs = (unsigned)atoi(argv[2])) < 1 || pairs > PAIRS_MAX))) {
        fprintf(stderr, "usage: run_decide DIR [PAIRS]\n");
        return 2;
    }
    int error = ratelimit_open(argv[1], SLOTS, &made, &rl);
    if (error != 0 || made != RATELIMIT_NEW) {
        fprintf(stderr, "run_decide: %s: %s\n", argv[1], error != 0 ? strerror(error) : "there is a table already");
        return 2;
    }
    ratelimit_usage(rl, NOW, &usage);
    printf("%-42s | %-58s | %-22s | %-12s | %s\n", "what", "measured", "ratio (min-max)", "target", "verdict");
    bench_many_keys(argv[1]);
    bench_hot_key();
    bench_flood();
    ratelimit_close(rl);
    snprintf(path, sizeof(path), "%s/limits-1", argv[1]);
    unlink(path);
    return missed;
}
