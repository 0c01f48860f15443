#include "core/shm/scoreboard.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define MAGIC 0x41535359u

static struct scoreboard *map(int fd, int prot)
{
    void *p = mmap(NULL, sizeof(struct scoreboard), prot, MAP_SHARED, fd, 0);
    return p == MAP_FAILED ? NULL : p;
}

struct scoreboard *scoreboard_create(const char *path)
{
    /* a new inode: whoever still maps the old one keeps reading the old one */
    if (unlink(path) != 0 && errno != ENOENT)
        return NULL;
    int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    if (fd < 0)
        return NULL;
    /* all its room is taken now: a page that a full file system cannot give later kills whoever writes to it */
    struct scoreboard *sb = NULL;
    int error = posix_fallocate(fd, 0, sizeof(struct scoreboard));
    if (error == 0 && (sb = map(fd, PROT_READ | PROT_WRITE)) == NULL)
        error = errno;
    close(fd);
    if (sb == NULL) {
        unlink(path);
        errno = error;
        return NULL;
    }
    score_set(sb->version, SCOREBOARD_VERSION);
    score_set(sb->master_pid, getpid());
    score_set(sb->started_at_s, (uint64_t)(clock_wall_ms() / 1000));
    host_slots_init(&sb->places);
    atomic_store(&sb->magic, MAGIC);
    return sb;
}

const struct scoreboard *scoreboard_open(const char *path)
{
    struct stat st;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return NULL;
    struct scoreboard *sb = NULL;
    if (fstat(fd, &st) == 0 && st.st_size >= (off_t)sizeof(*sb))
        sb = map(fd, PROT_READ);
    else
        errno = EPROTO;
    close(fd);
    if (sb != NULL && (atomic_load(&sb->magic) != MAGIC || score_get(sb->version) != SCOREBOARD_VERSION)) {
        munmap(sb, sizeof(*sb));
        errno = EPROTO;
        return NULL;
    }
    return sb;
}

void scoreboard_close(const struct scoreboard *sb)
{
    if (sb != NULL)
        munmap((void *)(uintptr_t)sb, sizeof(*sb));
}

struct score *scoreboard_claim(struct scoreboard *sb, enum role role, unsigned index, unsigned generation, uint64_t now_ms)
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
        score_set(s->upkeep, 0);
        score_set(s->stretch_us, 0);
        score_set(s->stretch_cpu_us, 0);
        score_set(s->slots, 0);
        score_set(s->streams, 0);
        return s;
    }
    return NULL;
}

void scoreboard_release(struct scoreboard *sb, struct score *slot)
{
    if (slot >= sb->auditor_slot) {
        /* not the pid in its slot, into which it may have written another's */
        host_slots_forget(&sb->places, atomic_exchange(&sb->auditor_pid[slot - sb->auditor_slot], 0));
    }
    score_set(slot->pid, 0);
    score_set(slot->role, ROLE_NONE);
}

const struct score *scoreboard_at(const struct scoreboard *sb, size_t i)
{
    if (i < SCOREBOARD_SLOTS)
        return &sb->slot[i];
    return i - SCOREBOARD_SLOTS < SCOREBOARD_AUDITORS ? &sb->auditor_slot[i - SCOREBOARD_SLOTS] : NULL;
}

void scoreboard_narrow(struct scoreboard *sb)
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

bool scoreboard_writer_there(const struct scoreboard *sb)
{
    for (size_t i = 0; i < SCOREBOARD_SLOTS; i++)
        if (score_get(sb->slot[i].role) == ROLE_WRITER && score_get(sb->slot[i].phase) != PHASE_STARTING)
            return true;
    return false;
}

const char *role_name(enum role role)
{
    static const char *const names[] = {"none", "master", "worker", "writer", "auditor", "command"};
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
