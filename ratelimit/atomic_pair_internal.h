/*
 * Two words in shared memory that change together. Inline assembly on purpose: libatomic's fallback for 16 bytes is a lock private to each
 * process. ratelimit_open refuses a processor without the instruction (pair_supported).
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

/* where a test lets another process go on; nothing in the product */
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
 * word_swap(at, is, next): where *at is ${is}, make it ${next} and return true. Of a pair's state alone, where it does not matter that the
 * key beside it may have changed: it costs half of what a swap of both does.
 */
static inline bool word_swap(uint64_t *at, uint64_t is, uint64_t next)
{
    RATELIMIT_STEP();
    return __atomic_compare_exchange_n(at, &is, next, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
}

/* pair_swap(at, is, next): where *at is *is, make it ${next} and return true; else *is becomes what it is, read as one. */
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
    /* CASP takes pairs of registers that begin at an even one */
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
 * pair_give_way(): after a swap that another process was quicker than: a moment in which that one may do some hundreds while the line is
 * its own, instead of the two taking it from each other for each. About 5 us; at most 8, where a pause takes longest.
 */
static inline void pair_give_way(void)
{
    for (unsigned i = 0; i < 128; i++) {
#if defined(__x86_64__)
        __asm__ volatile("pause");
#else
        __asm__ volatile("yield");
#endif
    }
}

/* pair_fetch(at): have the cache line fetched, for itself, while other things are done; nothing waits for it. */
static inline void pair_fetch(const struct pair *at)
{
#if defined(__x86_64__)
    __asm__ volatile("prefetchw %0" : : "m"(*at)); /* compilers make a read's of it without flags for one processor */
#else
    __builtin_prefetch(at, 1);
#endif
}

/* pair_read(at): both words as one. It needs the cache line for itself, as a change does. */
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
