/*
 * Places at hosts: a connection to a host is opened by whoever holds one of its two places, over
 * all auditors, their generations, ports and redirects. A page that was redirected to another host
 * is a guest there, and may take only the first of the two places: redirects from many hosts do not
 * delay the host's own pages.
 *
 * The table lies in shared memory; a place is one word with its holder's pid, so that a process
 * killed at any instruction leaves nothing half-taken, and its parent frees what it held. Any
 * process that maps the table; nothing blocks.
 */
#ifndef ASSAY_PLACES_H
#define ASSAY_PLACES_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define PLACES_CELLS 16383 /* with the seed, whole pages */
#define PLACES_PER_HOST 2

struct places {
    uint64_t seed;                                         /* of the hash, so that nobody can choose whom to share a cell with */
    _Atomic int32_t holder[PLACES_CELLS][PLACES_PER_HOST]; /* 0: free. Hosts of one cell share its places: they wait, no more */
};

/* places_init(places): ${places}, which is all zero, gets its seed. By whoever makes the table, before anybody else has it. */
void places_init(struct places *places);

/* places_take(places, host, pid): a place at ${host} (lower case) for ${pid}; false when there is none free. places_give: one back. */
bool places_take(struct places *places, const char *host, pid_t pid);
bool places_take_as_guest(struct places *places, const char *host, pid_t pid);
void places_give(struct places *places, const char *host, pid_t pid);

/* places_forget(places, pid): ${pid} has died: what it held is free. */
void places_forget(struct places *places, pid_t pid);

#endif
