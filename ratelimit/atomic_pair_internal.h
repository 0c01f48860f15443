/*
 * Two 64-bit words in shared memory, swapped atomically as a pair. Inline assembly, because
 * libatomic's fallback for 16 bytes is a lock that is private to each process. ratelimit_open
 * refuses a processor without the instruction (pair_supported).
 */
#ifndef ASSAY_RATELIMIT_ATOMIC_PAIR_INTERNAL_H
#define ASSAY_RATELIMIT_ATOMIC_PAIR_INTERNAL_H

#include <stdbool.h>
#include <stdint.h>

#if defined(__x86_64__)
#include <cpuid.h>
#elif defined(__aarch64__)
#include <asm/hwcap.h>
#include <sys/auxv.h>
#else
#error "this processor has no 16-byte compare-and-swap that we know"
#endif

/* a hook for tests that interleave processes; empty in the product */
#ifndef RATELIMIT_STEP
#define RATELIMIT_STEP() ((void)0)
#endif

struct pair {
    uint64_t key, state;
} __attribute__((aligned(16)));

static inline uint64_t word_load(const uint64_t *at)
{
    RATELIMIT_STEP();
    return __atomic_load_n(at, __ATOMIC_ACQUIRE);
}

/*
 * word_swap(at, is, next): compare and swap of one word. Used for a pair's state when the key
 * beside it may change: half the cost of pair_swap.
 */
static inline bool word_swap(uint64_t *at, uint64_t is, uint64_t next)
{
    RATELIMIT_STEP();
    return __atomic_compare_exchange_n(at, &is, next, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
}

/*
 * pair_swap(at, is, next): if *at equals *is, set it to ${next} and return true; else set *is to
 * the current value, read atomically.
 */
static inline bool pair_swap(struct pair *at, struct pair *is, struct pair next)
{
    RATELIMIT_STEP();
#if defined(__x86_64__)
    bool done;
    __asm__ volatile("lock cmpxchg16b %1"
                     : "=@ccz"(done), "+m"(*at), "+a"(is->key), "+d"(is->state)
                     : "b"(next.key), "c"(next.state)
                     : "memory");
    return done;
#else
    /* CASP needs register pairs that begin at an even register */
    register uint64_t key __asm__("x0");
    register uint64_t state __asm__("x1");
    register uint64_t next_key __asm__("x2");
    register uint64_t next_state __asm__("x3");
    key = is->key, state = is->state, next_key = next.key, next_state = next.state;
    __asm__ volatile(".arch_extension lse\n\tcaspal %0, %1, %3, %4, %2"
                     : "+r"(key), "+r"(state), "+Q"(*at)
                     : "r"(next_key), "r"(next_state)
                     : "memory");
    bool done = key == is->key && state == is->state;
    *is = (struct pair){key, state};
    return done;
#endif
}

/*
 * pair_back_off(): wait a moment after a lost race. Meanwhile the winner can do hundreds of swaps
 * on the cache line, instead of both taking it from each other for each swap. About 5 us, at most
 * 8.
 */
static inline void pair_back_off(void)
{
    for (unsigned i = 0; i < 128; i++) {
#if defined(__x86_64__)
        __asm__ volatile("pause");
#else
        __asm__ volatile("yield");
#endif
    }
}

/* pair_prefetch(at): start loading the cache line for writing; does not wait. */
static inline void pair_prefetch(const struct pair *at)
{
#if defined(__x86_64__)
    /* without flags for one processor, compilers emit a prefetch for reading */
    __asm__ volatile("prefetchw %0" : : "m"(*at));
#else
    __builtin_prefetch(at, 1);
#endif
}

/*
 * pair_read(at): read both words atomically. Needs exclusive access to the cache line, like a swap.
 */
static inline struct pair pair_read(struct pair *at)
{
    struct pair is = {0, 0};
    pair_swap(at, &is, is);
    return is;
}

static inline bool pair_supported(void)
{
#if defined(__x86_64__)
    unsigned a, b, c, d;
    return __get_cpuid(1, &a, &b, &c, &d) != 0 && (c & bit_CMPXCHG16B) != 0;
#else
    return (getauxval(AT_HWCAP) & HWCAP_ATOMICS) != 0;
#endif
}

#endif
