#include "core/shm/host_slots.h"

#include "core/shm/host_hash.h"

#include <string.h>

void host_slots_init(struct host_slots *s)
{
    s->seed = host_hash_seed();
}

static _Atomic int32_t *cell_of(struct host_slots *s, const char *host)
{
    return s->holder[host_hash(s->seed, host, strlen(host)) % HOST_SLOTS_CELLS];
}

/* among the first ${count} slots; the first, which redirected pages may take, is tried last */
static bool swap_one(_Atomic int32_t *cell, unsigned count, int32_t from, int32_t to)
{
    for (unsigned i = count; i-- > 0;) {
        int32_t expected = from;
        if (atomic_compare_exchange_strong(&cell[i], &expected, to))
            return true;
    }
    return false;
}

bool host_slots_take(struct host_slots *s, const char *host, pid_t pid)
{
    return swap_one(cell_of(s, host), HOST_SLOTS_PER_HOST, 0, pid);
}

bool host_slots_take_redirected(struct host_slots *s, const char *host, pid_t pid)
{
    return swap_one(cell_of(s, host), 1, 0, pid);
}

void host_slots_release(struct host_slots *s, const char *host, pid_t pid)
{
    swap_one(cell_of(s, host), HOST_SLOTS_PER_HOST, pid, 0);
}

void host_slots_release_all(struct host_slots *s, pid_t pid)
{
    for (unsigned i = 0; pid != 0 && i < HOST_SLOTS_CELLS; i++)
        for (unsigned k = 0; k < HOST_SLOTS_PER_HOST; k++) {
            int32_t expected = pid;
            if (atomic_load_explicit(&s->holder[i][k], memory_order_relaxed) == pid)
                atomic_compare_exchange_strong(&s->holder[i][k], &expected, 0);
        }
}
