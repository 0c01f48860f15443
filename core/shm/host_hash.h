/* A keyed hash of host names: nobody can choose a name that collides with another's. */
#ifndef ASSAY_SHM_HOST_HASH_H
#define ASSAY_SHM_HOST_HASH_H

#include <stddef.h>
#include <stdint.h>

/* host_hash_seed(): a random key; from the clock early at boot, when there is no entropy. */
uint64_t host_hash_seed(void);

uint64_t host_hash(uint64_t seed, const char *host, size_t size);

#endif
