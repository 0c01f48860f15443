/*
 * The chain of a log: each entry has a hash of itself and of the hash before it. Two stores with
 * the same chain have applied the same entries. Pure functions.
 */
#ifndef ASSAY_CLUSTER_CHAIN_H
#define ASSAY_CLUSTER_CHAIN_H

#include "store/rows.h"

/*
 * chain_next(before, sequence, epoch, format, rows, out): SHA-256 of the chain before the entry,
 * its numbers and its rows. False: no memory. ${out} may be ${before}.
 */
bool chain_next(const uint8_t before[STORE_CHAIN_BYTES], uint64_t sequence, uint64_t epoch,
                uint32_t format, struct str rows, uint8_t out[STORE_CHAIN_BYTES])
    __attribute__((warn_unused_result));

#endif
