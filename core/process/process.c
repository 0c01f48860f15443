#include "core/process/process.h"

#include "core/base/log.h"
#include "core/base/sanitizer.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

volatile sig_atomic_t process_stopping, process_draining, process_reopen;

static struct {
    char *at;
    size_t capacity;
    char **environment; /* the copy of environ */
    char **texts;       /* its strings, to be freed */
} title;

extern char **environ;

void process_title_init(int argc, char **argv)
{
    /* the kernel shows the memory of argv and of the environment: free both for the title */
    char *end = argv[argc - 1] + strlen(argv[argc - 1]) + 1;
    size_t count = 0;
    while (environ[count] != NULL)
        count++;
    char **copy = calloc(count + 1, sizeof(*copy)), **texts = calloc(count + 1, sizeof(*texts));
    if (copy == NULL || texts == NULL) {
        free(copy);
        free(texts);
        return;
    }
    for (size_t i = 0; i < count; i++) {
        if (environ[i] == end)
            end += strlen(environ[i]) + 1;
        copy[i] = texts[i] = strdup(environ[i]);
        if (copy[i] == NULL) { /* out of memory: no title */
            while (i > 0)
                free(copy[--i]);
            free(copy);
            free(texts);
            return;
        }
    }
    title.texts = texts;
    environ = title.environment = copy;
    title.at = argv[0];
    title.capacity = (size_t)(end - argv[0]);
}

void process_title(const char *format, ...)
{
    char text[128];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    prctl(PR_SET_NAME, text);
    if (title.capacity == 0)
        return;
    size_t n = strlen(text) < title.capacity - 1 ? strlen(text) : title.capacity - 1;
    memset(title.at, 0, title.capacity);
    memcpy(title.at, text, n);
}

bool process_is_crash(int number)
{
    return number == SIGSEGV || number == SIGBUS || number == SIGABRT || number == SIGFPE ||
           number == SIGILL;
}

bool process_user(const struct conf *conf, uid_t *uid, gid_t *gid)
{
    if (geteuid() != 0 || conf->user == NULL || conf->user[0] == '\0')
        return false;
    errno = 0;
    const struct passwd *pw = getpwnam(conf->user);
    if (pw == NULL) {
        log_error("user: there is no user \"%s\" to run as; create the user, or set user to an "
                  "existing one (or to \"\" to stay root)",
                  conf->user);
        exit(EXIT_START);
    }
    if (pw->pw_uid == 0)
        return false;
    *uid = pw->pw_uid;
    *gid = pw->pw_gid;
    return true;
}

static void drop_privileges(const struct conf *conf)
{
    uid_t uid;
    gid_t gid;
    if (!process_user(conf, &uid, &gid))
        return;
    if (setgroups(0, NULL) != 0 || setresgid(gid, gid, gid) != 0 || setresuid(uid, uid, uid) != 0 ||
        setuid(0) == 0) {
        log_error("cannot become user \"%s\": %s", conf->user, strerror(errno));
        exit(EXIT_START);
    }
}

void process_disable_core_dumps(void)
{
    /* the limit alone does not stop systemd-coredump */
    setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
    if (!SANITIZED && prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) != 0)
        log_warn("core files cannot be turned off: %s", strerror(errno));
}

/* only what is ignored: sanitizers have installed handlers */
void process_default_signals(void)
{
    for (int number = 1; number < NSIG; number++) {
        struct sigaction action;
        if (sigaction(number, NULL, &action) == 0 && action.sa_handler == SIG_IGN)
            sigaction(number, &(struct sigaction){.sa_handler = SIG_DFL}, NULL);
    }
}

static void on_signal(int number)
{
    switch (number) {
    case SIGTERM:
        process_stopping = 1;
        break;
    case SIGQUIT:
        process_draining = 1;
        break;
    case SIGUSR1:
        process_reopen = 1;
        break;
    }
}

static void set_signals(void)
{
    static const int caught[] = {SIGTERM, SIGQUIT, SIGUSR1};
    static const int ignored[] = {SIGPIPE, SIGXFSZ, SIGINT, SIGHUP,
                                  SIGUSR2}; /* Ctrl-C reaches all; the master decides */
    sigset_t none;
    for (size_t i = 0; i < sizeof(caught) / sizeof(caught[0]); i++)
        sigaction(caught[i], &(struct sigaction){.sa_handler = on_signal}, NULL);
    for (size_t i = 0; i < sizeof(ignored) / sizeof(ignored[0]); i++)
        sigaction(ignored[i], &(struct sigaction){.sa_handler = SIG_IGN}, NULL);
    sigaction(SIGCHLD, &(struct sigaction){.sa_handler = SIG_DFL}, NULL);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
}

/*
 * Workers and the writer run as soon as they have something to do: a short slice lets a process
 * that wakes go before the running one (since Linux 6.12). Grading uses what the others leave.
 */
static void share_processor(enum role role)
{
    static const struct share {
        uint32_t policy;
        int32_t nice;
        uint64_t slice_ns; /* 0: the default */
    } shares[] = {
        [ROLE_WORKER] = {SCHED_OTHER, 0, 100000},
        [ROLE_WRITER] = {SCHED_OTHER, 0, 100000},
        [ROLE_AUDITOR] = {SCHED_BATCH, 10, 0},
    };
    int nice = getpriority(PRIO_PROCESS, 0) + shares[role].nice; /* added to the inherited one */
    struct { /* struct sched_attr, which glibc does not have yet */
        uint32_t size, policy;
        uint64_t flags;
        int32_t nice;
        uint32_t priority;
        uint64_t runtime, deadline, period;
    } attr = {sizeof(attr),
              shares[role].policy,
              0,
              nice < 19 ? nice : 19,
              0,
              shares[role].slice_ns,
              0,
              0};
    if (syscall(SYS_sched_setattr, 0, &attr, 0) != 0)
        log_warn("cannot set its share of the processor: %s", strerror(errno));
}

void process_child_init(struct process *p)
{
    char name[32];
    if (p->role == ROLE_WRITER)
        snprintf(name, sizeof(name), "%s", role_name(p->role));
    else
        snprintf(name, sizeof(name), "%s %u", role_name(p->role), p->index);
    process_title("assayd: %s", name);
    log_open(name, p->conf->log_level, p->conf->log_format);
    set_signals();
    share_processor(p->role);
    drop_privileges(p->conf);
    process_disable_core_dumps(); /* again: a change of ids resets it */
    /* last, since a change of ids clears it; then check that the master is still alive */
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != p->master)
        _exit(EXIT_STOPPED);
    score_set(p->score->pid, getpid());
    process_heartbeat(p);
}

void process_set_phase(struct process *p, enum phase phase)
{
    score_set(p->score->phase, phase);
    uint64_t one = 1;
    if (write(p->notify_fd, &one, sizeof(one)) != sizeof(one))
        log_debug("cannot notify the master of phase %s: %s", phase_name(phase),
                  strerror(errno)); /* it also looks every 250 ms */
}

void process_heartbeat(struct process *p)
{
    score_set(p->score->heartbeat_ms, clock_mono_ms());
}
