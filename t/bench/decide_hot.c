/* The part "hot" of run_decide: two processes that decide on one key. */
#include "t/bench/decide_internal.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

/*
 * Two processes with a processor each run two loops in slices, one loop and then the other, so that
 * other load on the machine affects both loops alike. Both processes begin a slice together. It
 * ends for both when the first of them has done its decisions: only the time in which both run
 * counts. A slice during which the kernel gave a processor to another process is repeated, because
 * a process that runs alone does not pay for the other. If too few slices are undisturbed, all
 * count, and the row says so.
 */
#define HOT_SLICE 20000 /* decisions of the quicker process in a slice */
#define HOT_SLICES 100  /* of each loop, in a pair, that count */
#define HOT_TRIES 40    /* times as many slices, at most */

struct meeting {
    uint64_t there;
    struct hot_side {
        uint64_t through; /* the slice that this process ended first */
        uint64_t done;    /* in the last slice */
        double ns;
        uint64_t switches; /* of contexts, in the last slice */
    } sides[2] __attribute__((aligned(64)));
};

struct hot {
    struct meeting *meeting;
    uint64_t *word;
    unsigned self;
    uint64_t slice;
    double ns[2], done[2]; /* of a loop, both processes together */
    unsigned counted[2], tries;
};
typedef uint64_t hot_fn(struct hot *hot);

/* Whether the other process has ended the slice; checked at every 64th decision. */
static inline bool is_through(struct hot *hot, uint64_t done)
{
    return done % 64 == 0 && __atomic_load_n(&hot->meeting->sides[1 - hot->self].through,
                                             __ATOMIC_ACQUIRE) == hot->slice;
}

static uint64_t hot_word(struct hot *hot)
{
    uint64_t done = 0;
    for (; done < HOT_SLICE && !is_through(hot, done); done++) {
        uint64_t is = __atomic_load_n(hot->word, __ATOMIC_ACQUIRE);
        while (!__atomic_compare_exchange_n(hot->word, &is, is + 1, false, __ATOMIC_SEQ_CST,
                                            __ATOMIC_ACQUIRE))
            ;
    }
    return done;
}

/*
 * A caller with many requests keeps the hash of its key. Each slice has its own key, which stays
 * far below its limit: a refused decision writes nothing and would cost too little.
 */
static uint64_t hot_key(struct hot *hot)
{
    struct key of = {2, hot->slice % 1024};
    struct ratelimit_window w = {.salt = 2,
                                 .seconds = 3600,
                                 .limit = RATELIMIT_COUNT_MAX,
                                 .key = &of,
                                 .key_size = sizeof(of)};
    struct ratelimit_state state;
    uint64_t done = 0;
    w.hash = ratelimit_hash(rl, &w);
    for (; done < HOT_SLICE && !is_through(hot, done); done++)
        if (ratelimit_take(rl, &w, 1, (struct ratelimit_time){token, NOW}, &state) != 0)
            _exit(1);
    return done;
}

static void meet(struct meeting *meeting, uint64_t number)
{
    __atomic_fetch_add(&meeting->there, 1, __ATOMIC_SEQ_CST);
    while (__atomic_load_n(&meeting->there, __ATOMIC_ACQUIRE) < 2 * number)
        ;
}

static uint64_t switches(void)
{
    struct rusage spent;
    getrusage(RUSAGE_SELF, &spent);
    return (uint64_t)(spent.ru_nvcsw + spent.ru_nivcsw);
}

/* One slice of loop ${kind}. Returns whether both processes kept their processors. */
static bool run_slice(struct hot *hot, unsigned kind)
{
    static hot_fn *const loops[2] = {hot_word, hot_key};
    struct hot_side *sides = hot->meeting->sides, *own = &sides[hot->self];
    hot->slice++;
    uint64_t before = switches();
    meet(hot->meeting, 2 * hot->slice - 1);
    double began = now_ns();
    own->done = loops[kind](hot);
    own->ns = now_ns() - began;
    __atomic_store_n(&own->through, hot->slice, __ATOMIC_RELEASE);
    own->switches = switches() - before;
    meet(hot->meeting, 2 * hot->slice);
    return sides[0].switches + sides[1].switches == 0;
}

/* Until enough slices count; both processes decide the same. */
static void run_slices(struct hot *hot)
{
    struct hot_side *sides = hot->meeting->sides;
    while (hot->counted[0] + hot->counted[1] < 2 * HOT_SLICES) {
        unsigned kind = hot->counted[1] < hot->counted[0];
        bool calm = run_slice(hot, kind);
        if (!calm && hot->tries++ < HOT_TRIES * 2 * HOT_SLICES)
            continue;
        hot->counted[kind]++;
        hot->ns[kind] += sides[0].ns + sides[1].ns;
        hot->done[kind] += (double)(sides[0].done + sides[1].done);
    }
}

static void take_processor(unsigned number)
{
    cpu_set_t cpu;
    CPU_ZERO(&cpu);
    CPU_SET(number, &cpu);
    sched_setaffinity(0, sizeof(cpu), &cpu);
}

/* The other process is a child. This one restores its affinity. */
static void time_two(struct hot *hot)
{
    cpu_set_t before;
    int status;
    sched_getaffinity(0, sizeof(before), &before);
    pid_t pid = fork();
    hot->self = pid == 0;
    take_processor(hot->self);
    run_slices(hot);
    if (pid == 0)
        _exit(0);
    waitpid(pid, &status, 0);
    sched_setaffinity(0, sizeof(before), &before);
    if (status != 0) {
        fprintf(stderr, "run_decide: a hot key was refused\n");
        exit(2);
    }
}

void bench_hot_key(const char *dir)
{
    struct pairs p;
    unsigned disturbed = 0, enough = 0;
    (void)dir;
    char *shared = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    for (unsigned i = 0; i < pairs; i++) {
        struct hot hot = {.meeting = (struct meeting *)(void *)shared,
                          .word = (uint64_t *)(void *)(shared + 4096)};
        memset(shared, 0, 8192);
        time_two(&hot);
        p.peer[i] = hot.ns[0] / hot.done[0];
        p.ours[i] = hot.ns[1] / hot.done[1];
        disturbed += hot.tries;
        enough += hot.tries <= HOT_TRIES * 2 * HOT_SLICES;
    }
    row("two processes, one key / one word", "swap loop", &p, 1.5);
    printf("%-42s | %u slices of %u were disturbed and repeated%s\n", "  how calm it was",
           disturbed, disturbed + pairs * 2 * HOT_SLICES,
           enough == pairs ? "" : "; then the others counted, too: ask again on a calm machine");
    munmap(shared, 8192);
}
