#include "core/shm/limiter_stats.h"

#include "core/shm/shm_file.h"
#include "ratelimit/ratelimit.h"

#include <errno.h>
#include <stdio.h>

#define MAGIC 0x41736c6du
#ifndef LIMITER_STATS_VERSION
#define LIMITER_STATS_VERSION 2u
#endif
_Static_assert(LIMITER_STATS_COUNTERS <= RATELIMIT_TAGS,
               "a row of the table has a tag for each counter");

#define WORKERS 64 /* rows of counters; more workers share them */

struct counters {
    _Atomic uint64_t of[LIMITER_COUNTS];
};

struct logged {
    _Atomic uint64_t interval; /* its number; in the low 16 bits, the lines logged in it */
    _Atomic uint64_t suppressed;
};

struct limiter_stats {
    _Atomic uint32_t magic, format;
    _Atomic uint64_t version; /* odd while ${limits} is being written */
    struct limiters limits;
    char names[LIMITER_STATS_COUNTERS][LIMITER_NAME_MAX + 1];
    struct logged logged[LIMITER_STATS_COUNTERS];
    struct counters counters[WORKERS][LIMITER_STATS_COUNTERS] __attribute__((aligned(64)));
};

/* ---- the file ---- */

struct limiter_stats *limiter_stats_create(const char *path, const struct limiters *limits)
{
    struct limiter_stats *stats = shm_file_create(path, sizeof(*stats), 0600);
    if (stats == NULL)
        return NULL;
    atomic_store(&stats->format, LIMITER_STATS_VERSION);
    limiter_stats_publish(stats, limits);
    atomic_store(&stats->magic, MAGIC);
    return stats;
}

const struct limiter_stats *limiter_stats_open(const char *path)
{
    struct limiter_stats *stats = shm_file_open(path, sizeof(*stats));
    if (stats == NULL || (atomic_load(&stats->magic) == MAGIC &&
                          atomic_load(&stats->format) == LIMITER_STATS_VERSION))
        return stats;
    limiter_stats_close(stats);
    errno = EPROTO;
    return NULL;
}

void limiter_stats_close(const struct limiter_stats *stats)
{
    shm_file_close(stats, sizeof(*stats));
}

/* ---- the limits ---- */

int limiter_stats_counter(const struct limiter_stats *stats, const char *name)
{
    for (int i = 0; i < LIMITER_STATS_COUNTERS; i++)
        if (strcmp(stats->names[i], name) == 0)
            return i;
    return -1;
}

/* reset a counter whose name no limiter has */
static unsigned reuse_counter(struct limiter_stats *stats, const struct limiters *limits)
{
    unsigned i = 0;
    while (stats->names[i][0] != '\0' && limiters_find(limits, stats->names[i]) != LIMITER_NONE)
        i++;
    for (unsigned w = 0; w < WORKERS; w++)
        for (unsigned k = 0; k < LIMITER_COUNTS; k++)
            atomic_store(&stats->counters[w][i].of[k], 0);
    return i;
}

static unsigned counter_for(struct limiter_stats *stats, const struct limiters *limits,
                            const char *name)
{
    int there = limiter_stats_counter(stats, name);
    if (there < 0)
        there = limiter_stats_counter(stats, ""); /* a free one */
    if (there < 0)
        there = (int)reuse_counter(stats, limits);
    snprintf(stats->names[there], sizeof(stats->names[there]), "%s", name);
    return (unsigned)there;
}

void limiter_stats_publish(struct limiter_stats *stats, const struct limiters *limits)
{
    uint64_t version = atomic_load(&stats->version);
    atomic_store(&stats->version, version + 1);
    atomic_thread_fence(memory_order_release);
    memcpy(&stats->limits, limits, sizeof(*limits));
    for (unsigned i = 1; i < limits->count; i++)
        stats->limits.rows[i].counter = counter_for(stats, limits, limits->rows[i].name);
    atomic_store_explicit(&stats->version, version + 2, memory_order_release);
}

uint64_t limiter_stats_version(const struct limiter_stats *stats)
{
    return atomic_load_explicit(&stats->version, memory_order_acquire);
}

bool limiter_stats_read(const struct limiter_stats *stats, struct limiters *out, uint64_t *version)
{
    for (int look = 0; look < 2; look++) {
        uint64_t before = limiter_stats_version(stats);
        if (before % 2 != 0)
            continue;
        memcpy(out, &stats->limits, sizeof(*out));
        atomic_thread_fence(memory_order_acquire);
        if (atomic_load_explicit(&stats->version, memory_order_relaxed) == before) {
            *version = before;
            return true;
        }
    }
    return false;
}

/* ---- counting ---- */

void limiter_stats_count(struct limiter_stats *stats, unsigned worker, unsigned counter,
                         enum limiter_count what)
{
    atomic_fetch_add_explicit(&stats->counters[worker % WORKERS][counter].of[what], 1,
                              memory_order_relaxed);
}

uint64_t limiter_stats_total(const struct limiter_stats *stats, unsigned counter,
                             enum limiter_count what)
{
    uint64_t total = 0;
    for (unsigned w = 0; w < WORKERS; w++)
        total += atomic_load_explicit(&stats->counters[w][counter].of[what], memory_order_relaxed);
    return total;
}

bool limiter_stats_may_log(struct limiter_stats *stats, unsigned counter, int64_t now)
{
    struct logged *logged = &stats->logged[counter];
    uint64_t interval = (uint64_t)(now / LIMITER_LOG_SECONDS) << 16,
             seen = atomic_load_explicit(&logged->interval, memory_order_relaxed);
    for (;;) {
        uint64_t next = seen >> 16 == interval >> 16 ? seen + 1 : interval + 1;
        if ((next & 0xffff) > LIMITER_LOG_LINES)
            break;
        if (atomic_compare_exchange_weak_explicit(&logged->interval, &seen, next,
                                                  memory_order_relaxed, memory_order_relaxed))
            return true;
    }
    atomic_fetch_add_explicit(&logged->suppressed, 1, memory_order_relaxed);
    return false;
}

uint64_t limiter_stats_suppressed(struct limiter_stats *stats, unsigned counter, int64_t now)
{
    struct logged *logged = &stats->logged[counter];
    uint64_t interval = (uint64_t)(now / LIMITER_LOG_SECONDS);
    if (atomic_load_explicit(&logged->suppressed, memory_order_relaxed) == 0 ||
        atomic_load_explicit(&logged->interval, memory_order_relaxed) >> 16 == interval)
        return 0;
    return atomic_exchange_explicit(&logged->suppressed, 0, memory_order_relaxed);
}
