/*
 * Per-host slots: a host gets at most two connections at once, over all auditors. A connection is
 * opened by the process that holds one of the host's two slots, whatever the port, and also after a
 * redirect. A page that was redirected from another host may take only the first slot, so that
 * redirects from many hosts do not delay the host's own pages.
 *
 * The table is in shared memory. A slot is one word with the pid of its holder, so a killed process
 * leaves nothing half-written, and its parent frees what it held. Nothing blocks.
 */
#ifndef ASSAY_SHM_HOST_SLOTS_H
#define ASSAY_SHM_HOST_SLOTS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define HOST_SLOTS_CELLS 16383 /* with the seed, whole pages */
#define HOST_SLOTS_PER_HOST 2

struct host_slots {
    uint64_t seed; /* of host_hash.h */
    /* 0: free. Hosts with the same cell share its slots, and wait longer. */
    _Atomic int32_t holder[HOST_SLOTS_CELLS][HOST_SLOTS_PER_HOST];
};

/* host_slots_init(s): ${s} is zeroed; before another process has the table. */
void host_slots_init(struct host_slots *s);

/*
 * host_slots_take(s, host, pid): a slot of ${host} (lower case) for ${pid}; false: none is free.
 * host_slots_take_redirected: the same for a page that was redirected to ${host}.
 * host_slots_release: free one.
 */
bool host_slots_take(struct host_slots *s, const char *host, pid_t pid);
bool host_slots_take_redirected(struct host_slots *s, const char *host, pid_t pid);
void host_slots_release(struct host_slots *s, const char *host, pid_t pid);

/* host_slots_release_all(s, pid): ${pid} has died; free what it held. */
void host_slots_release_all(struct host_slots *s, pid_t pid);

#endif
