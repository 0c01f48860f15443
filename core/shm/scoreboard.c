#include "core/shm/scoreboard.h"

#include "core/shm/shm_file.h"

#include <errno.h>
#include <stddef.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define MAGIC 0x41535359u

struct scoreboard *scoreboard_create(const char *path)
{
    struct scoreboard *sb = shm_file_create(path, sizeof(*sb), 0644);
    if (sb == NULL)
        return NULL;
    score_set(sb->version, SCOREBOARD_VERSION);
    score_set(sb->master_pid, getpid());
    score_set(sb->started_at_s, (uint64_t)(clock_wall_ms() / 1000));
    score_set(sb->cluster.started_us, clock_mono_us());
    host_slots_init(&sb->host_slots);
    atomic_store(&sb->magic, MAGIC);
    return sb;
}

const struct scoreboard *scoreboard_open(const char *path)
{
    struct scoreboard *sb = shm_file_open(path, sizeof(*sb));
    if (sb == NULL ||
        (atomic_load(&sb->magic) == MAGIC && score_get(sb->version) == SCOREBOARD_VERSION))
        return sb;
    scoreboard_close(sb);
    errno = EPROTO;
    return NULL;
}

void scoreboard_close(const struct scoreboard *sb)
{
    shm_file_close(sb, sizeof(*sb));
}

struct score *scoreboard_claim(struct scoreboard *sb, enum role role, unsigned index,
                               unsigned generation, uint64_t now_ms)
{
    struct score *from = role == ROLE_AUDITOR ? sb->auditor_slot : sb->slot;
    size_t count = role == ROLE_AUDITOR ? SCOREBOARD_AUDITORS : SCOREBOARD_SLOTS;
    for (size_t i = 0; i < count; i++) {
        struct score *s = &from[i];
        if (score_get(s->role) != ROLE_NONE)
            continue;
        score_set(s->role, role);
        score_set(s->index, index);
        score_set(s->generation, generation);
        score_set(s->phase, PHASE_STARTING);
        score_set(s->started_ms, now_ms);
        score_set(s->heartbeat_ms, now_ms);
        score_set(s->busy_since_ms, 0);
        score_set(s->connections, 0);
        score_set(s->requests, 0);
        score_set(s->batches, 0);
        score_set(s->pending, 0);
        score_set(s->maintenance_left, 0);
        score_set(s->longest_us, 0);
        score_set(s->longest_cpu_us, 0);
        score_set(s->slots, 0);
        score_set(s->streams, 0);
        return s;
    }
    return NULL;
}

void scoreboard_release(struct scoreboard *sb, struct score *slot)
{
    if (slot >= sb->auditor_slot) {
        /* not slot->pid, which the auditor itself can write */
        host_slots_release_all(&sb->host_slots,
                               atomic_exchange(&sb->auditor_pid[slot - sb->auditor_slot], 0));
    }
    score_set(slot->pid, 0);
    score_set(slot->role, ROLE_NONE);
}

const struct score *scoreboard_at(const struct scoreboard *sb, size_t i)
{
    if (i < SCOREBOARD_SLOTS)
        return &sb->slot[i];
    return i - SCOREBOARD_SLOTS < SCOREBOARD_AUDITORS ? &sb->auditor_slot[i - SCOREBOARD_SLOTS]
                                                      : NULL;
}

void scoreboard_unmap_private(struct scoreboard *sb)
{
    munmap(sb, offsetof(struct scoreboard, auditor_slot));
}

enum role scoreboard_role_of(const struct scoreboard *sb, pid_t pid)
{
    for (size_t i = 0; i < SCOREBOARD_AUDITORS; i++)
        if (score_get(sb->auditor_pid[i]) == pid)
            return ROLE_AUDITOR;
    for (size_t i = 0; i < SCOREBOARD_SLOTS; i++)
        if (score_get(sb->slot[i].pid) == pid)
            return (enum role)score_get(sb->slot[i].role);
    return ROLE_NONE;
}

bool scoreboard_writer_ready(const struct scoreboard *sb)
{
    for (size_t i = 0; i < SCOREBOARD_SLOTS; i++)
        if (score_get(sb->slot[i].role) == ROLE_WRITER &&
            score_get(sb->slot[i].phase) != PHASE_STARTING)
            return true;
    return false;
}

const char *role_name(enum role role)
{
    static const char *const names[] = {"none",    "master",  "worker", "writer",
                                        "auditor", "command", "node"};
    return (size_t)role < sizeof(names) / sizeof(names[0]) ? names[role] : "unknown";
}

const char *phase_name(enum phase phase)
{
    static const char *const names[] = {"starting", "ready", "syncing", "draining", "waiting"};
    return (size_t)phase < sizeof(names) / sizeof(names[0]) ? names[phase] : "unknown";
}

static struct timespec clock_of(clockid_t clock)
{
    struct timespec ts;
    clock_gettime(clock, &ts);
    return ts;
}

static uint64_t us_of(struct timespec ts)
{
    return (uint64_t)ts.tv_sec * 1000000 + (uint64_t)ts.tv_nsec / 1000;
}

uint64_t clock_mono_ms(void)
{
    struct timespec ts = clock_of(CLOCK_MONOTONIC);
    return (uint64_t)ts.tv_sec * 1000 + (uint64_t)ts.tv_nsec / 1000000;
}

uint64_t clock_mono_us(void)
{
    return us_of(clock_of(CLOCK_MONOTONIC));
}

uint64_t clock_thread_us(void)
{
    return us_of(clock_of(CLOCK_THREAD_CPUTIME_ID));
}

int64_t clock_wall_us(void)
{
    return (int64_t)us_of(clock_of(CLOCK_REALTIME));
}

int64_t clock_wall_ms(void)
{
    struct timespec ts = clock_of(CLOCK_REALTIME);
    return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}
