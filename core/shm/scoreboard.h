/*
 * The scoreboard: what every process is doing, in a file of run_dir mapped by all of them (and, read-only, by `assay stats`).
 *
 * The master makes it before it forks and gives each child one slot; a slot is written by its own process, and cleared by the master when
 * that process has been reaped. Every member is one atomic word, so that a process killed at any instruction leaves nothing half-written.
 * Times are milliseconds of CLOCK_MONOTONIC.
 */
#ifndef ASSAY_SHM_SCOREBOARD_H
#define ASSAY_SHM_SCOREBOARD_H

#include "core/shm/host_slots.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#ifndef SCOREBOARD_VERSION
#define SCOREBOARD_VERSION 4
#endif
#define SCOREBOARD_SLOTS 1984
#define SCOREBOARD_AUDITORS 64
#define SCOREBOARD_LISTENER_SLOTS 512

enum role { ROLE_NONE, ROLE_MASTER, ROLE_WORKER, ROLE_WRITER, ROLE_AUDITOR, ROLE_COMMAND };
enum phase { PHASE_STARTING, PHASE_READY, PHASE_SYNCING, PHASE_DRAINING, PHASE_WAITING };

struct score {
    _Atomic int32_t pid; /* 0: free */
    _Atomic uint32_t role, index, generation, phase;
    _Atomic uint64_t started_ms, heartbeat_ms;
    _Atomic uint64_t busy_since_ms; /* 0: waiting for something to do */
    _Atomic uint64_t connections;   /* open now */
    _Atomic uint64_t requests;      /* worker: answered; writer: changes applied; auditor: pages ended */
    _Atomic uint64_t batches;       /* writer: commits; auditor: pages that failed */
    _Atomic uint64_t pending;       /* worker: held requests; writer: queued jobs; auditor: pages running */
    _Atomic uint64_t upkeep;        /* writer: records left of what it does in the background */
    /*
     * Wall time and CPU time. worker: the longest turn of its loop (loop_time.h); writer: the
     * longest transaction of background work.
     */
    _Atomic uint64_t stretch_us, stretch_cpu_us;
    _Atomic uint32_t slots;         /* worker slots whose sockets it has a copy of: the first */
    _Atomic uint32_t streams;       /* worker: event streams that are open */
} __attribute__((aligned(128)));

struct scoreboard {
    _Atomic uint32_t magic, version;
    _Atomic int32_t master_pid;
    _Atomic uint32_t generation;
    _Atomic uint32_t workers, auditors;
    _Atomic uint32_t restarts;     /* children replaced after an unexpected death */
    _Atomic uint64_t started_at_s; /* wall clock, seconds since the epoch */
    _Atomic uint32_t listener_slots; /* worker slots whose sockets are in use: a worker lets go of the others' */
    _Atomic uint32_t shut; /* workers have come up and wait, until the server that they succeed hands over */
    /* which worker serves listener slot i: its pid, or 0, and since when nobody does */
    struct {
        _Atomic int32_t pid;
        _Atomic uint64_t unserved_since_ms;
    } listener[SCOREBOARD_LISTENER_SLOTS];
    /*
     * live auditors, written by the master: an auditor gives up its mapping of all that stands before auditor_slot, so it cannot pass for
     * anybody else
     */
    _Atomic int32_t auditor_pid[SCOREBOARD_AUDITORS];
    struct score slot[SCOREBOARD_SLOTS];
    struct score auditor_slot[SCOREBOARD_AUDITORS] __attribute__((aligned(4096)));
    struct host_slots places; /* of all auditors; what a dead one held is freed with its slot */
};

/*
 * scoreboard_create(path): make the file anew and map it; NULL with errno. scoreboard_open(path): map an existing one read-only; NULL with
 * errno, EPROTO where it is another version's.
 */
struct scoreboard *scoreboard_create(const char *path);
const struct scoreboard *scoreboard_open(const char *path);
void scoreboard_close(const struct scoreboard *sb);

/* scoreboard_claim(sb, role, index, generation): a free slot, prepared; NULL when all are taken. The master's call, before the fork. */
struct score *scoreboard_claim(struct scoreboard *sb, enum role role, unsigned index, unsigned generation, uint64_t now_ms);
void scoreboard_release(struct scoreboard *sb, struct score *slot);

/* scoreboard_at(sb, i): the i-th slot of all, auditors' included; NULL past the end. */
const struct score *scoreboard_at(const struct scoreboard *sb, size_t i);

/* scoreboard_narrow(sb): unmap everything but the auditors' slots and places; an auditor's call, before it reads a page. */
void scoreboard_narrow(struct scoreboard *sb);

/* scoreboard_role_of(sb, pid): the role of a live child; ROLE_NONE for a stranger. */
enum role scoreboard_role_of(const struct scoreboard *sb, pid_t pid);

/* scoreboard_writer_there(sb): a writer is up and has the store open. */
bool scoreboard_writer_there(const struct scoreboard *sb);

const char *role_name(enum role role);
const char *phase_name(enum phase phase);

/*
 * clock_mono_*(), clock_wall_*(): the two clocks of core. clock_thread_us(): CPU time of the calling
 * thread; it is a system call.
 */
uint64_t clock_mono_ms(void);
uint64_t clock_mono_us(void);
int64_t clock_wall_ms(void);
int64_t clock_wall_us(void);
uint64_t clock_thread_us(void);

/* score_set(member, value), score_get(member): relaxed stores and loads; nothing orders on them. */
#define score_set(member, value) atomic_store_explicit(&(member), (value), memory_order_relaxed)
#define score_get(member) atomic_load_explicit(&(member), memory_order_relaxed)
#define score_add(member, value) atomic_fetch_add_explicit(&(member), (value), memory_order_relaxed)

/* score_raise(member, value): keep the largest; for the only process that writes it. */
static inline void score_raise(_Atomic uint64_t *member, uint64_t value)
{
    if (value > score_get(*member))
        score_set(*member, value);
}

#endif
