#include "master.h"

#include "channel.h"
#include "client.h"
#include "listen.h"
#include "log.h"
#include "process.h"
#include "tls.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#define LOOK_EVERY_MS 250
#define STUCK_MS 10000      /* a heartbeat older than this: killed and replaced */
#define SYNC_ALARM_MS 10000 /* the writer inside fsync this long: an alarm, once */
#define SHORT_LIFE_MS 5000  /* a child that died younger comes back with a delay */
#define DELAY_MIN_MS 100
#define DELAY_MAX_MS 5000
#define GIVE_UP_DEATHS 12 /* short lives in a row, of one seat */
#define DRAINING_GENERATIONS 3

/*
 * A seat is a place that must be filled: writer, auditor i, worker i. Who sits there may be of an older generation until the newer is
 * ready, so a child is apart from its seat.
 */
struct child {
    pid_t pid;
    struct process process;
    struct score *score;
    struct conf *conf; /* of its generation; shared, counted */
    uint64_t born_ms, told_ms;
    bool draining, stopping, alarmed;
    struct child *next;
};

struct seat {
    enum role role;
    unsigned index;
    struct child *child; /* the newest; NULL: empty */
    struct child *old;   /* still serving until ${child} is ready */
    uint64_t fill_at_ms;
    unsigned short_lives;
};

/* a configuration in use by children of one generation */
struct generation {
    struct conf *conf;
    struct tls tls;
    unsigned number, children;
    struct generation *next;
};

struct master {
    const struct master_options *options;
    struct generation *generation; /* newest first */
    struct scoreboard *scoreboard;
    struct listener listeners[LISTENERS_MAX];
    size_t listeners_count;
    struct seat *seats;
    size_t seats_count;
    struct child *children;
    char writer_path[108];
    int writer_fd, notify_fd, signal_fd, data_lock, run_lock;
    bool ready_said, hup_waits, stopping;
    int exit_status;
    uint64_t stop_at_ms;
};

static struct conf *conf_of(struct master *m)
{
    return m->generation->conf;
}

static int refuse(const char *what, const char *path, const char *reason)
{
    log_error("%s %s: %s", what, path, reason);
    return -1;
}

/* ---- what is made before the first fork ---- */

static int make_dir(const struct conf *conf, const char *what, const char *path, mode_t mode)
{
    uid_t uid;
    gid_t gid;
    struct stat st;
    bool made = mkdir(path, mode) == 0;
    if (!made && errno != EEXIST)
        return refuse(what, path, strerror(errno));
    if (made && process_user(conf, &uid, &gid) && chown(path, uid, gid) != 0)
        return refuse(what, path, strerror(errno));
    if (stat(path, &st) != 0 || !S_ISDIR(st.st_mode))
        return refuse(what, path, "is not a directory");
    return 0;
}

/* the lock outlives us and must be the user's: the command line takes it as data_dir's owner */
static int lock_dir(const struct conf *conf, const char *what, const char *path)
{
    uid_t uid;
    gid_t gid;
    int fd = data_lock(path);
    if (fd < 0)
        refuse(what, path, errno == EWOULDBLOCK ? "another assayd (or an assay command) uses it" : strerror(errno));
    else if (process_user(conf, &uid, &gid) && fchown(fd, uid, gid) != 0)
        log_warn("%s %s: its lock cannot be given to user \"%s\": %s", what, path, conf->user, strerror(errno));
    return fd;
}

static int give_file(struct master *m, const char *path)
{
    uid_t uid;
    gid_t gid;
    return process_user(conf_of(m), &uid, &gid) ? chown(path, uid, gid) : 0;
}

static int make_run_files(struct master *m)
{
    const struct conf *conf = conf_of(m);
    char path[4200];
    snprintf(path, sizeof(path), "%s/scoreboard", conf->run_dir);
    m->scoreboard = scoreboard_create(path);
    if (m->scoreboard == NULL || give_file(m, path) != 0)
        return refuse("run_dir", path, strerror(errno));
    score_set(m->scoreboard->workers, conf->workers);
    score_set(m->scoreboard->auditors, conf->auditors);
    snprintf(path, sizeof(path), "%s/writer.sock", conf->run_dir);
    if (strlen(path) >= sizeof(m->writer_path))
        return refuse("run_dir", conf->run_dir, "the path is too long for a socket in it (94 bytes at most)");
    strcpy(m->writer_path, path);
    m->writer_fd = channel_listen(path);
    if (m->writer_fd < 0 || give_file(m, path) != 0)
        return refuse("run_dir", path, strerror(errno));
    return 0;
}

static void raise_descriptors(const struct conf *conf)
{
    struct rlimit have;
    if (getrlimit(RLIMIT_NOFILE, &have) != 0)
        return;
    rlim_t want = (rlim_t)conf->max_connections + 1024;
    if (have.rlim_cur >= want)
        return;
    struct rlimit raised = {want, have.rlim_max < want ? want : have.rlim_max};
    if (setrlimit(RLIMIT_NOFILE, &raised) == 0)
        return;
    raised = (struct rlimit){have.rlim_max, have.rlim_max};
    if (setrlimit(RLIMIT_NOFILE, &raised) != 0 || have.rlim_max < want)
        log_warn("max_connections is %u, but only %llu descriptors may be open: raise RLIMIT_NOFILE", conf->max_connections,
                 (unsigned long long)have.rlim_max);
}

static int prepare(struct master *m)
{
    const struct conf *conf = conf_of(m);
    char why[512];
    sigset_t set;
    sigfillset(&set);
    sigdelset(&set, SIGSEGV);
    sigdelset(&set, SIGABRT);
    sigdelset(&set, SIGBUS);
    sigdelset(&set, SIGFPE);
    sigdelset(&set, SIGILL);
    sigprocmask(SIG_SETMASK, &set, NULL);
    m->signal_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    m->notify_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (m->signal_fd < 0 || m->notify_fd < 0)
        return refuse("cannot start", "signalfd", strerror(errno));
    if (make_dir(conf, "data_dir", conf->data_dir, 0700) != 0 || make_dir(conf, "run_dir", conf->run_dir, 0755) != 0)
        return -1;
    if ((m->data_lock = lock_dir(conf, "data_dir", conf->data_dir)) < 0 || (m->run_lock = lock_dir(conf, "run_dir", conf->run_dir)) < 0)
        return -1;
    if (listen_open(conf, m->listeners, &m->listeners_count, why, sizeof(why)) != 0) {
        log_error("%s", why);
        return -1;
    }
    raise_descriptors(conf);
    return make_run_files(m);
}

/* ---- generations, seats, children ---- */

/* takes over ${conf}; NULL, with the reasons logged, where it cannot be used: then it is still the caller's */
static struct generation *new_generation(struct master *m, struct conf *conf)
{
    char *said = NULL;
    size_t size = 0;
    FILE *mistakes = open_memstream(&said, &size);
    struct generation *g = calloc(1, sizeof(*g));
    bool ok = mistakes != NULL && g != NULL && tls_load(conf, &g->tls, mistakes) == 0;
    if (mistakes != NULL)
        fclose(mistakes);
    for (char *line = ok || said == NULL ? NULL : strtok(said, "\n"); line != NULL; line = strtok(NULL, "\n"))
        log_error("%s", line);
    free(said);
    if (!ok) {
        free(g);
        return NULL;
    }
    g->conf = conf;
    g->number = m->generation == NULL ? 0 : m->generation->number + 1;
    g->next = m->generation;
    m->generation = g;
    return g;
}

static void free_generation(struct generation *g)
{
    tls_free(&g->tls);
    conf_free(g->conf);
    free(g);
}

/* a configuration nobody runs any more is freed */
static void drop_unused(struct master *m)
{
    struct generation **at = &m->generation->next;
    while (*at != NULL) {
        struct generation *g = *at;
        if (g->children > 0) {
            at = &g->next;
            continue;
        }
        *at = g->next;
        free_generation(g);
    }
}

static int make_seats(struct master *m)
{
    const struct conf *conf = conf_of(m);
    size_t count = 1 + conf->auditors + conf->workers, at = 0;
    struct seat *seats = calloc(count, sizeof(*seats));
    if (seats == NULL)
        return -1;
    seats[at++] = (struct seat){.role = ROLE_WRITER};
    for (unsigned i = 0; i < conf->auditors; i++)
        seats[at++] = (struct seat){.role = ROLE_AUDITOR, .index = i};
    for (unsigned i = 0; i < conf->workers; i++)
        seats[at++] = (struct seat){.role = ROLE_WORKER, .index = i};
    /* whoever sits keeps the seat of the same name; the others have none and are told to go */
    for (size_t i = 0; i < count; i++)
        for (size_t k = 0; k < m->seats_count; k++)
            if (m->seats[k].role == seats[i].role && m->seats[k].index == seats[i].index) {
                seats[i] = m->seats[k];
                m->seats[k] = (struct seat){0};
            }
    for (size_t k = 0; k < m->seats_count; k++) {
        struct child *left[] = {m->seats[k].child, m->seats[k].old};
        for (size_t i = 0; i < 2; i++)
            if (left[i] != NULL && !left[i]->draining) {
                left[i]->draining = true;
                left[i]->told_ms = clock_mono_ms();
                kill(left[i]->pid, SIGQUIT);
            }
    }
    free(m->seats);
    m->seats = seats;
    m->seats_count = count;
    return 0;
}

static int run_child(struct process *p)
{
    process_enter(p);
    switch (p->role) {
    case ROLE_WRITER:
        return writer_run(p);
    case ROLE_AUDITOR:
        return auditor_run(p);
    default:
        return worker_run(p);
    }
}

/* in the child: nothing of the master's that it does not need stays open */
static void close_masters(struct master *m, enum role role)
{
    close(m->signal_fd);
    close(m->data_lock);
    close(m->run_lock);
    if (role != ROLE_WRITER)
        close(m->writer_fd);
    if (role != ROLE_WORKER)
        listen_close(m->listeners, m->listeners_count);
}

static struct child *fork_child(struct master *m, const struct seat *seat)
{
    struct child *c = calloc(1, sizeof(*c));
    uint64_t now = clock_mono_ms();
    if (c == NULL)
        return NULL;
    c->score = scoreboard_claim(m->scoreboard, seat->role, seat->index, m->generation->number, now);
    if (c->score == NULL) {
        free(c);
        return NULL;
    }
    c->born_ms = now;
    c->conf = conf_of(m);
    c->process = (struct process){.role = seat->role,
                                  .index = seat->index,
                                  .generation = m->generation->number,
                                  .conf = c->conf,
                                  .scoreboard = m->scoreboard,
                                  .score = c->score,
                                  .tls = &m->generation->tls,
                                  .listeners = m->listeners,
                                  .listeners_count = m->listeners_count,
                                  .writer_fd = m->writer_fd,
                                  .notify_fd = m->notify_fd,
                                  .master = getpid()};
    strcpy(c->process.writer_path, m->writer_path);
    c->next = m->children;
    m->children = c;
    fflush(NULL);
    c->pid = fork();
    if (c->pid < 0) {
        log_error("fork: %s", strerror(errno));
        m->children = c->next;
        scoreboard_release(m->scoreboard, c->score);
        free(c);
        return NULL;
    }
    if (c->pid == 0) {
        close_masters(m, seat->role);
        int status = run_child(&c->process);
        if (seat->role == ROLE_AUDITOR)
            _exit(status); /* it has nothing to flush, and its sandbox is no place for exit handlers */
        exit(status);
    }
    m->generation->children++;
    return c;
}

static void tell(struct child *c, int number)
{
    c->told_ms = clock_mono_ms();
    if (number == SIGQUIT)
        c->draining = true;
    else
        c->stopping = true;
    kill(c->pid, number);
}

static bool is_ready(const struct child *c)
{
    return c != NULL && score_get(c->score->phase) == PHASE_READY;
}

static bool all_ready(const struct master *m, enum role role)
{
    for (size_t i = 0; i < m->seats_count; i++)
        if (m->seats[i].role == role && !(is_ready(m->seats[i].child) || (role == ROLE_WRITER && m->seats[i].child != NULL &&
                                                                          score_get(m->seats[i].child->score->phase) == PHASE_SYNCING)))
            return false;
    return true;
}

/* the store must be there before anybody reads it */
static bool may_fill(const struct master *m, const struct seat *seat)
{
    return seat->role == ROLE_WRITER || m->ready_said || all_ready(m, ROLE_WRITER);
}

static void fill_seats(struct master *m)
{
    uint64_t now = clock_mono_ms();
    for (size_t i = 0; i < m->seats_count; i++) {
        struct seat *s = &m->seats[i];
        if (s->child == NULL && now >= s->fill_at_ms && may_fill(m, s))
            s->child = fork_child(m, s);
    }
}

/* a worker of the new generation serves: the old one of its seat may go */
static void relieve(struct master *m)
{
    for (size_t i = 0; i < m->seats_count; i++) {
        struct seat *s = &m->seats[i];
        if (s->old != NULL && is_ready(s->child)) {
            tell(s->old, SIGQUIT);
            s->old = NULL;
        }
    }
}

/* sd_notify(3): one datagram to the socket systemd named */
static void tell_systemd(const char *state)
{
    const char *path = getenv("NOTIFY_SOCKET");
    struct sockaddr_un sa = {.sun_family = AF_UNIX};
    if (path == NULL || (path[0] != '/' && path[0] != '@') || strlen(path) >= sizeof(sa.sun_path))
        return;
    memcpy(sa.sun_path, path, strlen(path));
    if (path[0] == '@')
        sa.sun_path[0] = '\0';
    socklen_t len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + strlen(path));
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || sendto(fd, state, strlen(state), MSG_NOSIGNAL, (struct sockaddr *)&sa, len) < 0)
        log_warn("systemd was not told %s: %s", state, strerror(errno));
    if (fd >= 0)
        close(fd);
}

static void say_ready(struct master *m)
{
    if (m->ready_said || !all_ready(m, ROLE_WRITER) || !all_ready(m, ROLE_AUDITOR) || !all_ready(m, ROLE_WORKER))
        return;
    m->ready_said = true;
    for (size_t i = 0; i < m->listeners_count; i++)
        printf("ready %s workers=%u auditors=%u\n", m->listeners[i].url, conf_of(m)->workers, conf_of(m)->auditors);
    fflush(stdout);
    tell_systemd("READY=1");
}

/* ---- deaths ---- */

static void describe_death(const struct child *c, int status)
{
    const char *role = role_name(c->process.role);
    if (WIFSIGNALED(status))
        log_warn("%s %u (pid %d) was killed by signal %d (%s)", role, c->process.index, c->pid, WTERMSIG(status),
                 strsignal(WTERMSIG(status)));
    else
        log_warn("%s %u (pid %d) ended with status %d", role, c->process.index, c->pid, WEXITSTATUS(status));
}

static void seat_emptied(struct master *m, struct seat *s, const struct child *c, int status)
{
    uint64_t now = clock_mono_ms(), delay = 0;
    s->child = NULL; /* an old one goes on serving until there is a new one */
    if (m->stopping)
        return;
    if (s->old != NULL)
        log_error("%s %u of generation %u did not start: the one of the generation before goes on, and it is tried again", role_name(s->role),
                  s->index, c->process.generation);
    /* an auditor ends of itself when its writer is gone */
    bool expected = c->stopping || (c->process.role == ROLE_AUDITOR && WIFEXITED(status) && WEXITSTATUS(status) == EXIT_STOPPED);
    if (!expected) {
        describe_death(c, status);
        score_add(m->scoreboard->restarts, 1);
        s->short_lives = now - c->born_ms < SHORT_LIFE_MS ? s->short_lives + 1 : 0;
    }
    /* the first comes back at once */
    for (unsigned i = 1; i < s->short_lives; i++)
        delay = delay == 0 ? DELAY_MIN_MS : delay * 2 < DELAY_MAX_MS ? delay * 2 : DELAY_MAX_MS;
    s->fill_at_ms = now + delay;
    bool cannot_start = WIFEXITED(status) && WEXITSTATUS(status) == EXIT_START && !m->ready_said;
    /* without auditors or a writer (a dead disk) the server still serves what it has */
    if (cannot_start || (s->role == ROLE_WORKER && s->old == NULL && s->short_lives >= GIVE_UP_DEATHS)) {
        log_error(cannot_start ? "cannot start: the %s said why" : "giving up: the %s keeps dying", role_name(c->process.role));
        m->exit_status = cannot_start ? EXIT_START : EXIT_GAVE_UP;
        m->stopping = true;
        m->stop_at_ms = now + conf_of(m)->drain_timeout_ms;
    }
}

static void unserve(struct master *m, pid_t pid)
{
    for (size_t i = 0; i < SCOREBOARD_LISTENER_SLOTS; i++) {
        int32_t served_by = pid;
        if (atomic_load(&m->scoreboard->listener[i].pid) != pid)
            continue;
        score_set(m->scoreboard->listener[i].unserved_since_ms, clock_mono_ms());
        atomic_compare_exchange_strong(&m->scoreboard->listener[i].pid, &served_by, 0);
    }
}

static void bury(struct master *m, struct child *c, int status)
{
    unserve(m, c->pid);
    for (size_t i = 0; i < m->seats_count; i++) {
        if (m->seats[i].child == c)
            seat_emptied(m, &m->seats[i], c, status);
        else if (m->seats[i].old == c)
            m->seats[i].old = NULL;
    }
    for (struct generation *g = m->generation; g != NULL; g = g->next)
        if (g->number == c->process.generation)
            g->children--;
    scoreboard_release(m->scoreboard, c->score);
    struct child **at = &m->children;
    while (*at != c)
        at = &(*at)->next;
    *at = c->next;
    free(c);
}

static void reap(struct master *m)
{
    int status;
    pid_t pid;
    while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
        for (struct child *c = m->children; c != NULL; c = c->next)
            if (c->pid == pid) {
                bury(m, c, status);
                break;
            }
    drop_unused(m);
}

/* ---- what goes on too long ---- */

static void watch_one(struct master *m, struct child *c, uint64_t now)
{
    uint64_t beat = score_get(c->score->heartbeat_ms), busy = score_get(c->score->busy_since_ms);
    bool syncing = c->process.role == ROLE_WRITER && score_get(c->score->phase) == PHASE_SYNCING;
    if (c->draining && now - c->told_ms > c->conf->drain_timeout_ms + 1000u) {
        log_warn("%s %u (pid %d) did not drain in time: killed", role_name(c->process.role), c->process.index, c->pid);
        kill(c->pid, SIGKILL);
    } else if (syncing && busy != 0 && now > busy && now - busy > SYNC_ALARM_MS) {
        if (!c->alarmed)
            log_error("the disk has kept the writer waiting for over %d s: no write is answered until it does its work",
                      SYNC_ALARM_MS / 1000);
        c->alarmed = true;
    } else if (!syncing && now > beat && now - beat > STUCK_MS && now - c->born_ms > STUCK_MS) {
        log_error("%s %u (pid %d) has not moved for over %d s: killed, to be replaced", role_name(c->process.role), c->process.index,
                  c->pid, STUCK_MS / 1000);
        kill(c->pid, SIGKILL);
    } else
        c->alarmed = c->alarmed && syncing;
    (void)m;
}

static void watch(struct master *m)
{
    uint64_t now = clock_mono_ms();
    for (struct child *c = m->children; c != NULL; c = c->next)
        watch_one(m, c, now);
}

/* ---- signals ---- */

static unsigned draining_generations(const struct master *m)
{
    unsigned count = 0;
    for (const struct generation *g = m->generation->next; g != NULL; g = g->next)
        count += g->children > 0;
    return count;
}

/* somebody of the newest generation is just starting; one that failed and waits for its next try does not count, so that a mended configuration gets in */
static bool changing(const struct master *m)
{
    for (size_t i = 0; i < m->seats_count; i++)
        if (m->seats[i].child != NULL && !is_ready(m->seats[i].child))
            return true;
    return false;
}

/* the new generation sits down; writer and auditors change places one after the other, workers side by side */
static void succeed(struct master *m)
{
    for (size_t i = 0; i < m->seats_count; i++) {
        struct seat *s = &m->seats[i];
        s->short_lives = 0;
        s->fill_at_ms = 0;
        if (s->child == NULL || s->child->process.generation == m->generation->number)
            continue;
        if (s->role == ROLE_WORKER) {
            s->old = s->child;
            s->child = NULL;
        } else
            tell(s->child, SIGTERM);
    }
}

static struct conf *read_again(struct master *m)
{
    struct conf *conf = NULL;
    char *said = NULL;
    size_t size = 0;
    FILE *mistakes = open_memstream(&said, &size);
    if (mistakes == NULL)
        return NULL;
    const struct master_options *o = m->options;
    int wrong = conf_load(o->conf_path, o->conf_required, o->sets, o->set_count, mistakes, &conf);
    if (wrong == 0)
        wrong = conf_reload_refusals(conf_of(m), conf, mistakes);
    fclose(mistakes);
    if (wrong != 0) {
        for (char *line = strtok(said, "\n"); line != NULL; line = strtok(NULL, "\n"))
            log_error("reload refused: %s", line);
        conf_free(conf);
        conf = NULL;
    }
    free(said);
    return conf;
}

static void reload(struct master *m)
{
    if (!m->ready_said || changing(m) || draining_generations(m) >= DRAINING_GENERATIONS) {
        m->hup_waits = true;
        return;
    }
    m->hup_waits = false;
    struct conf *conf = read_again(m);
    if (conf == NULL)
        return;
    for (size_t i = 0; i < m->listeners_count; i++)
        if (listen_grow(&m->listeners[i], m->listeners[i].shared ? 1 : conf->workers) != 0) {
            log_error("reload refused: no sockets for %u workers: %s", conf->workers, strerror(errno));
            conf_free(conf);
            return;
        }
    if (new_generation(m, conf) == NULL) {
        log_error("reload refused: see above; the old configuration goes on");
        conf_free(conf);
        return;
    }
    if (make_seats(m) != 0) {
        log_error("reload failed: out of memory");
        return;
    }
    log_open("master", conf->log_level, conf->log_format);
    score_set(m->scoreboard->generation, m->generation->number);
    score_set(m->scoreboard->workers, conf->workers);
    score_set(m->scoreboard->auditors, conf->auditors);
    succeed(m);
    log_info("reloading: generation %u", m->generation->number);
}

static void stop(struct master *m, bool at_once)
{
    bool again = m->stopping;
    m->stopping = true;
    tell_systemd("STOPPING=1");
    for (struct child *c = m->children; c != NULL; c = c->next)
        if (at_once || again)
            kill(c->pid, SIGKILL);
        else if (c->process.role == ROLE_WORKER && !c->stopping)
            tell(c, SIGTERM);
    m->stop_at_ms = clock_mono_ms() + conf_of(m)->drain_timeout_ms;
}

static void on_signals(struct master *m)
{
    struct signalfd_siginfo info;
    bool died = false;
    while (read(m->signal_fd, &info, sizeof(info)) == sizeof(info))
        switch (info.ssi_signo) {
        case SIGCHLD:
            died = true;
            break;
        case SIGTERM:
        case SIGQUIT:
            stop(m, false);
            break;
        case SIGINT:
            stop(m, true);
            break;
        case SIGHUP:
            m->hup_waits = true;
            break;
        case SIGUSR1:
            for (struct child *c = m->children; c != NULL; c = c->next)
                kill(c->pid, SIGUSR1);
            break;
        }
    if (died)
        reap(m);
}

/* workers first, since they need the others to answer; then auditors and the writer */
static void stop_rest(struct master *m)
{
    bool late = clock_mono_ms() > m->stop_at_ms;
    for (struct child *c = m->children; c != NULL; c = c->next)
        if (c->process.role == ROLE_WORKER && !late) {
            if (!c->stopping)
                tell(c, SIGTERM);
            return;
        }
    for (struct child *c = m->children; c != NULL; c = c->next)
        if (late && clock_mono_ms() > m->stop_at_ms + 5000)
            kill(c->pid, SIGKILL);
        else if (!c->stopping)
            tell(c, SIGTERM);
}

static void wait_for_something(struct master *m)
{
    struct pollfd fds[2] = {{m->signal_fd, POLLIN, 0}, {m->notify_fd, POLLIN, 0}};
    uint64_t count;
    poll(fds, 2, LOOK_EVERY_MS);
    if ((fds[1].revents & POLLIN) != 0 && read(m->notify_fd, &count, sizeof(count)) < 0)
        log_debug("eventfd: %s", strerror(errno));
}

static void tidy(struct master *m)
{
    listen_remove(m->listeners, m->listeners_count);
    listen_close(m->listeners, m->listeners_count);
    if (m->writer_fd >= 0) {
        close(m->writer_fd);
        unlink(m->writer_path);
    }
    while (m->generation != NULL) {
        struct generation *g = m->generation;
        m->generation = g->next;
        free_generation(g);
    }
    scoreboard_close(m->scoreboard);
    free(m->seats);
    int fds[] = {m->signal_fd, m->notify_fd, m->data_lock, m->run_lock};
    for (size_t i = 0; i < sizeof(fds) / sizeof(fds[0]); i++)
        if (fds[i] >= 0)
            close(fds[i]);
}

/* The life of the server: bind → map → fork → reap → stop. */
int master_run(const struct master_options *options)
{
    struct master m = {.options = options, .writer_fd = -1, .notify_fd = -1, .signal_fd = -1, .data_lock = -1, .run_lock = -1};
    process_title("assayd: master");
    log_open("master", options->conf->log_level, options->conf->log_format);
    if (new_generation(&m, options->conf) == NULL || prepare(&m) != 0 || make_seats(&m) != 0) {
        tidy(&m);
        return EXIT_START;
    }
    while (!m.stopping || m.children != NULL) {
        if (!m.stopping)
            fill_seats(&m);
        wait_for_something(&m);
        on_signals(&m);
        if (m.stopping) {
            stop_rest(&m);
            continue;
        }
        relieve(&m);
        say_ready(&m);
        watch(&m);
        if (m.hup_waits)
            reload(&m);
    }
    tidy(&m);
    return m.exit_status;
}
