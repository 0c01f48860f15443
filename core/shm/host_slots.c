#include "core/shm/host_slots.h"

#include <sys/random.h>
#include <time.h>

void host_slots_init(struct host_slots *places)
{
    struct timespec now;
    if (getrandom(&places->seed, sizeof(places->seed), GRND_NONBLOCK) == (ssize_t)sizeof(places->seed))
        return;
    clock_gettime(CLOCK_REALTIME, &now); /* early at boot */
    places->seed = (uint64_t)now.tv_nsec * 0x9E3779B97F4A7C15u ^ (uint64_t)now.tv_sec;
}

static _Atomic int32_t *cell_of(struct host_slots *places, const char *host)
{
    uint64_t h = places->seed;
    for (const char *p = host; *p != '\0'; p++) {
        h = (h ^ (uint8_t)*p) * 0x9E3779B97F4A7C15u;
        h ^= h >> 32;
    }
    return places->holder[h % PLACES_CELLS];
}

/* of the first ${count} places; the one that guests may take comes last */
static bool swap_one(_Atomic int32_t *cell, unsigned count, int32_t from, int32_t to)
{
    for (unsigned i = count; i-- > 0;) {
        int32_t expected = from;
        if (atomic_compare_exchange_strong(&cell[i], &expected, to))
            return true;
    }
    return false;
}

bool host_slots_take(struct host_slots *places, const char *host, pid_t pid)
{
    return swap_one(cell_of(places, host), PLACES_PER_HOST, 0, pid);
}

bool host_slots_take_as_guest(struct host_slots *places, const char *host, pid_t pid)
{
    return swap_one(cell_of(places, host), 1, 0, pid);
}

void host_slots_give(struct host_slots *places, const char *host, pid_t pid)
{
    swap_one(cell_of(places, host), PLACES_PER_HOST, pid, 0);
}

void host_slots_forget(struct host_slots *places, pid_t pid)
{
    for (unsigned i = 0; pid != 0 && i < PLACES_CELLS; i++)
        for (unsigned k = 0; k < PLACES_PER_HOST; k++) {
            int32_t expected = pid;
            if (atomic_load_explicit(&places->holder[i][k], memory_order_relaxed) == pid)
                atomic_compare_exchange_strong(&places->holder[i][k], &expected, 0);
        }
}
