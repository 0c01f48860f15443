/*
 * The scoreboard: what every process is doing, in a file of run_dir that all of them map, and
 * `assay stats` read-only.
 *
 * The master makes it before it forks and gives each child a slot. The child writes its slot; the
 * master clears it when it has reaped the child. Every member is one atomic word, so a killed
 * process leaves nothing half-written. Times are milliseconds of CLOCK_MONOTONIC.
 */
#ifndef ASSAY_SHM_SCOREBOARD_H
#define ASSAY_SHM_SCOREBOARD_H

#include "core/shm/cluster_score.h"
#include "core/shm/host_slots.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#ifndef SCOREBOARD_VERSION
#define SCOREBOARD_VERSION 1
#endif
#define SCOREBOARD_SLOTS 1984
#define SCOREBOARD_AUDITORS 64
#define SCOREBOARD_LISTENER_SLOTS 512

enum role {
    ROLE_NONE,
    ROLE_MASTER,
    ROLE_WORKER,
    ROLE_WRITER,
    ROLE_AUDITOR,
    ROLE_COMMAND,
    ROLE_NODE, /* a sender of another node of the cluster */
};
enum phase { PHASE_STARTING, PHASE_READY, PHASE_SYNCING, PHASE_DRAINING, PHASE_WAITING };

struct score {
    _Atomic int32_t pid; /* 0: free */
    _Atomic uint32_t role, index, generation, phase;
    _Atomic uint64_t started_ms, heartbeat_ms;
    _Atomic uint64_t busy_since_ms; /* 0: idle */
    _Atomic uint64_t connections;   /* open */
    _Atomic uint64_t requests; /* worker: answered; writer: changes applied; auditor: pages ended */
    _Atomic uint64_t batches;  /* writer: commits; auditor: pages that failed */
    _Atomic uint64_t pending;  /* worker: waiting requests; writer: queued jobs; auditor: pages */
    _Atomic uint64_t maintenance_left; /* writer: records that background work still has to do */
    /*
     * Wall time and CPU time. worker: the longest turn of its loop (loop_time.h); writer: the
     * longest transaction of background work.
     */
    _Atomic uint64_t longest_us, longest_cpu_us;
    _Atomic uint64_t redis_away_ms; /* worker: since when Redis does not answer; 0: it does */
    _Atomic uint32_t slots;   /* it has copies of the sockets of the first so many worker slots */
    _Atomic uint32_t streams; /* worker: open event streams */
} __attribute__((aligned(128)));

struct scoreboard {
    _Atomic uint32_t magic, version;
    _Atomic int32_t master_pid;
    _Atomic uint32_t generation;
    _Atomic uint32_t workers, auditors;
    _Atomic uint32_t restarts;        /* children replaced after an unexpected death */
    _Atomic uint64_t started_at_s;    /* wall clock, seconds since the epoch */
    _Atomic uint32_t listener_slots;  /* worker slots in use: workers close the other sockets */
    _Atomic uint32_t accept_paused;   /* workers wait until the old master hands over */
    _Atomic uint64_t senders_dropped; /* from the store, or fewer: core/writer/sequences.h */
    struct cluster_score cluster;
    /* the worker that serves listener slot i: its pid; 0: none, since unserved_since_ms */
    struct {
        _Atomic int32_t pid;
        _Atomic uint64_t unserved_since_ms;
    } listener[SCOREBOARD_LISTENER_SLOTS];
    /*
     * Live auditors, written by the master. An auditor unmaps everything before auditor_slot, so it
     * cannot claim to be another process.
     */
    _Atomic int32_t auditor_pid[SCOREBOARD_AUDITORS];
    struct score slot[SCOREBOARD_SLOTS];
    struct score auditor_slot[SCOREBOARD_AUDITORS] __attribute__((aligned(4096)));
    struct host_slots host_slots; /* of all auditors */
};

/*
 * scoreboard_create(path): a new file, mapped; NULL with errno. scoreboard_open(path): map it
 * read-only; NULL with errno, EPROTO: another version.
 */
struct scoreboard *scoreboard_create(const char *path);
const struct scoreboard *scoreboard_open(const char *path);
void scoreboard_close(const struct scoreboard *sb);

/*
 * The master's calls. scoreboard_claim(sb, role, index, generation, now_ms): before the fork, a
 * free slot, prepared; NULL: none. scoreboard_release: after the child was reaped; also frees the
 * host slots that an auditor held.
 */
struct score *scoreboard_claim(struct scoreboard *sb, enum role role, unsigned index,
                               unsigned generation, uint64_t now_ms);
void scoreboard_release(struct scoreboard *sb, struct score *slot);

/* scoreboard_at(sb, i): the i-th slot, the auditors' after the others; NULL past the end. */
const struct score *scoreboard_at(const struct scoreboard *sb, size_t i);

/* scoreboard_unmap_private(sb): an auditor's call: unmap everything before auditor_slot. */
void scoreboard_unmap_private(struct scoreboard *sb);

/* scoreboard_role_of(sb, pid): the role of a live child; ROLE_NONE: it is none. */
enum role scoreboard_role_of(const struct scoreboard *sb, pid_t pid);

/* scoreboard_writer_ready(sb): does a writer have the store open? */
bool scoreboard_writer_ready(const struct scoreboard *sb);

const char *role_name(enum role role);
const char *phase_name(enum phase phase);

/*
 * clock_mono_*: CLOCK_MONOTONIC. clock_wall_*: real time. clock_thread_us: this thread's CPU time.
 */
uint64_t clock_mono_ms(void);
uint64_t clock_mono_us(void);
int64_t clock_wall_ms(void);
int64_t clock_wall_us(void);
uint64_t clock_thread_us(void);

/* Relaxed stores and loads: nothing relies on their order. */
#define score_set(member, value) atomic_store_explicit(&(member), (value), memory_order_relaxed)
#define score_get(member) atomic_load_explicit(&(member), memory_order_relaxed)
#define score_add(member, value) atomic_fetch_add_explicit(&(member), (value), memory_order_relaxed)

/* score_raise(member, value): keep the larger; for the only process that writes it. */
static inline void score_raise(_Atomic uint64_t *member, uint64_t value)
{
    if (value > score_get(*member))
        score_set(*member, value);
}

#endif
