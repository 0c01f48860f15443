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
#ifndef ASSAY_SHM_HOST_SLOTS_H
#define ASSAY_SHM_HOST_SLOTS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define PLACES_CELLS 16383 /* with the seed, whole pages */
#define PLACES_PER_HOST 2

struct host_slots {
    uint64_t seed;                                         /* of the hash, so that nobody can choose whom to share a cell with */
    _Atomic int32_t holder[PLACES_CELLS][PLACES_PER_HOST]; /* 0: free. Hosts of one cell share its places: they wait, no more */
};

/* host_slots_init(places): ${places}, which is all zero, gets its seed. By whoever makes the table, before anybody else has it. */
void host_slots_init(struct host_slots *places);

/* host_slots_take(places, host, pid): a place at ${host} (lower case) for ${pid}; false when there is none free. host_slots_give: one back. */
bool host_slots_take(struct host_slots *places, const char *host, pid_t pid);
bool host_slots_take_as_guest(struct host_slots *places, const char *host, pid_t pid);
void host_slots_give(struct host_slots *places, const char *host, pid_t pid);

/* host_slots_forget(places, pid): ${pid} has died: what it held is free. */
void host_slots_forget(struct host_slots *places, pid_t pid);

#endif
