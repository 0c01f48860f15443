#include "core/shm/host_hash.h"

#include <sys/random.h>
#include <time.h>

#define MULTIPLIER 0x9E3779B97F4A7C15u

uint64_t host_hash_seed(void)
{
    uint64_t seed;
    if (getrandom(&seed, sizeof(seed), GRND_NONBLOCK) == (ssize_t)sizeof(seed))
        return seed;
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (uint64_t)now.tv_nsec * MULTIPLIER ^ (uint64_t)now.tv_sec;
}

uint64_t host_hash(uint64_t seed, const char *host, size_t size)
{
    uint64_t h = seed;
    for (size_t i = 0; i < size; i++) {
        h = (h ^ (uint8_t)host[i]) * MULTIPLIER;
        h ^= h >> 32;
    }
    return h;
}
