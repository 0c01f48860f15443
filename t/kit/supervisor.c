#include "t/kit/supervisor.h"
#include "t/kit/wait.h"

#include <arpa/inet.h>
#include <check.h>
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <grp.h>
#include <poll.h>
#include <pwd.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { WORDS_MAX = 48, PROCESSES_MAX = 4096, KILL_MS = 10000 };

/* ---- processes ---- */

struct process {
    pid_t pid, parent;
    char state;
    bool descends;
};

/* False: it is gone. */
static bool read_process(pid_t pid, struct process *out)
{
    char path[64], line[512] = "";
    snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
    FILE *file = fopen(path, "r");
    if (!file)
        return false;
    const char *rest = fgets(line, sizeof(line), file) ? strrchr(line, ')') : NULL;
    int parent = 0;
    bool ok = rest && sscanf(rest + 1, " %c %d", &out->state, &parent) == 2;
    fclose(file);
    out->pid = pid;
    out->parent = parent;
    out->descends = false;
    return ok && out->state != 'Z' && out->state != 'X';
}

static struct process all[PROCESSES_MAX];

static size_t read_processes(void)
{
    DIR *proc = opendir("/proc");
    size_t count = 0;
    ck_assert_ptr_nonnull(proc);
    for (struct dirent *entry; (entry = readdir(proc)) != NULL && count < PROCESSES_MAX;)
        if (isdigit((unsigned char)entry->d_name[0]))
            count += read_process((pid_t)atoi(entry->d_name), &all[count]);
    closedir(proc);
    return count;
}

static bool has_parent(size_t count, pid_t ancestor, pid_t parent)
{
    bool found = parent == ancestor;
    for (size_t i = 0; i < count && !found; i++)
        found = all[i].descends && all[i].pid == parent;
    return found;
}

/* Descendants of ${ancestor}, moved to the front of ${all}; how many there are. */
static size_t descendants(pid_t ancestor)
{
    size_t count = read_processes(), found = 0;
    for (size_t before = SIZE_MAX; before != found;) {
        before = found;
        for (size_t i = found; i < count; i++)
            if (has_parent(found, ancestor, all[i].parent)) {
                struct process it = all[i];
                it.descends = true;
                all[i] = all[found];
                all[found++] = it;
            }
    }
    return found;
}

static bool is_stopped(void *arg)
{
    struct process p;
    return !read_process(*(pid_t *)arg, &p) || p.state == 'T';
}

void process_stop(pid_t pid)
{
    ck_assert_msg(kill(pid, SIGSTOP) == 0, "SIGSTOP to %d: %s", (int)pid, strerror(errno));
    ck_assert_msg(wait_until(is_stopped, &pid, KILL_MS), "%d does not stop", (int)pid);
}

/*
 * SIGKILL, SIGSTOP or SIGCONT. A stopped server forks nothing, so that the list is complete. The
 * server comes last, so that no child sees its end.
 */
static void signal_descendants(pid_t ancestor, pid_t server, int signal)
{
    if (server > 0 && signal != SIGCONT)
        kill(server, SIGSTOP);
    size_t count = descendants(ancestor);
    while (count > 0)
        kill(all[--count].pid, signal);
}

/* ---- the supervisor's process ---- */

_Noreturn static void become(const struct supervisor *s, pid_t parent, int in, int out,
                             char *const *argv)
{
    char *path = text("%s/log", s->dir);
    int log = open(path, O_WRONLY | O_APPEND | O_CLOEXEC);
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    signal(SIGCHLD, SIG_DFL);
    signal(SIGPIPE, SIG_DFL);
    in = in >= 0 ? in : open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (dup2(in, 0) < 0 || dup2(out >= 0 ? out : log, 1) < 0 || dup2(log, 2) < 0)
        _exit(127);
    close_range(3, ~0u, CLOSE_RANGE_CLOEXEC);
    if (geteuid() == 0 && (setgroups(0, NULL) || setgid(s->gid) || setuid(s->uid)))
        _exit(127);
    prctl(PR_SET_PDEATHSIG, SIGKILL); /* after setuid, which clears it */
    if (getppid() != parent || chdir(s->dir))
        _exit(127);
    setenv("LC_ALL", "C", 1);
    execv(argv[0], argv);
    dprintf(2, "%s: %s\n", argv[0], strerror(errno));
    _exit(127);
}

static void launch(struct supervisor *s)
{
    char *argv[WORDS_MAX + 1] = {NULL};
    size_t count = 0;
    for (char *word = s->program; *word && count < WORDS_MAX; word += strlen(word) + 1)
        argv[count++] = word;
    pid_t self = getpid(), pid = fork();
    if (pid == 0)
        become(s, self, -1, -1, argv);
    s->server = pid > 0 ? pid : 0;
    s->starts++;
}

static void reap(struct supervisor *s)
{
    int status;
    for (pid_t pid; (pid = waitpid(-1, &status, WNOHANG)) > 0;)
        if (pid == s->server) {
            s->status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
            s->server = 0;
        }
}

static int remove_entry(const char *path, const struct stat *st, int flag, struct FTW *ftw)
{
    (void)st;
    (void)flag;
    (void)ftw;
    return remove(path);
}

_Noreturn static void end(struct supervisor *s)
{
    do
        signal_descendants(getpid(), s->server, SIGKILL);
    while (waitpid(-1, NULL, 0) > 0);
    if (s->before_removal)
        s->before_removal(s->dir);
    nftw(s->dir, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
    _exit(0);
}

static void child_ended(int signal)
{
    (void)signal; /* interrupts ppoll */
}

/* Commands are bytes: 's' starts the server. Any other byte or the end of file ends all. */
_Noreturn static void supervise(struct supervisor *s, int commands)
{
    sigset_t none, child;
    sigemptyset(&none);
    sigemptyset(&child);
    sigaddset(&child, SIGCHLD);
    sigprocmask(SIG_BLOCK, &child, NULL);
    sigaction(SIGCHLD, &(struct sigaction){.sa_handler = child_ended}, NULL);
    for (;;) {
        struct pollfd p = {.fd = commands, .events = POLLIN};
        char command = 0;
        int ready = ppoll(&p, 1, NULL, &none);
        reap(s);
        if (ready <= 0)
            continue;
        if (read(commands, &command, 1) != 1 || command != 's')
            end(s);
        launch(s);
    }
}

/*
 * Signals of a terminal do not reach a session of its own. As a subreaper it is the parent of every
 * process whose parent has ended.
 */
_Noreturn static void supervisor_life(struct supervisor *s, int commands)
{
    static const int ignored[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGPIPE};
    int null = open("/dev/null", O_RDWR);
    setsid();
    for (size_t i = 0; i < sizeof(ignored) / sizeof(ignored[0]); i++)
        signal(ignored[i], SIG_DFL);
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    s->self = getpid();
    if (dup2(null, 0) < 0 || dup2(null, 1) < 0 || dup2(commands, 3) < 0)
        _exit(1);
    close_range(4, ~0u, 0);
    supervise(s, 3);
}

/* ---- for the tests ---- */

static void choose_user(struct supervisor *s, const char *user)
{
    s->uid = getuid();
    s->gid = getgid();
    if (geteuid() != 0)
        return;
    const struct passwd *entry = getpwnam(user);
    entry = entry ? entry : getpwnam("nobody");
    ck_assert_msg(entry != NULL, "neither user %s nor nobody exists", user);
    s->uid = entry->pw_uid;
    s->gid = entry->pw_gid;
}

static void make_directory(struct supervisor *s, const char *name)
{
    const char *parent = getenv("TMPDIR");
    int size = snprintf(s->dir, sizeof(s->dir), "%s/assay-%s-XXXXXX",
                        parent && *parent ? parent : "/tmp", name);
    ck_assert_msg(size < (int)sizeof(s->dir), "TMPDIR is too long: %s", parent);
    ck_assert_msg(mkdtemp(s->dir) != NULL, "%s: %s", s->dir, strerror(errno));
    char *path = text("%s/log", s->dir);
    int log = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    ck_assert_msg(log >= 0, "%s: %s", path, strerror(errno));
    ck_assert_int_eq(chown(s->dir, s->uid, s->gid), 0);
    close(log);
    free(path);
}

struct supervisor *supervisor_new(const char *name, const char *user,
                                  void (*before_removal)(const char *dir))
{
    int fds[2];
    struct supervisor *s =
        mmap(NULL, sizeof(*s), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ck_assert(s != MAP_FAILED);
    s->before_removal = before_removal;
    choose_user(s, user);
    make_directory(s, name);
    ck_assert_int_eq(pipe2(fds, O_CLOEXEC), 0);
    fflush(NULL);
    pid_t pid = fork();
    ck_assert_int_ge(pid, 0);
    if (pid == 0)
        supervisor_life(s, fds[0]);
    s->self = pid;
    close(fds[0]);
    s->commands = fds[1];
    return s;
}

void supervisor_free(struct supervisor *s)
{
    if (!s)
        return;
    if (write(s->commands, "e", 1) == 1)
        waitpid(s->self, NULL, 0);
    close(s->commands);
    munmap(s, sizeof(*s));
}

struct start {
    const struct supervisor *s;
    unsigned before;
};

static bool has_started(void *arg)
{
    const struct start *start = arg;
    return start->s->starts != start->before;
}

void supervisor_start(struct supervisor *s, const char *path, ...)
{
    struct start start = {s, s->starts};
    size_t size = 0;
    va_list args;
    ck_assert_int_eq(s->server, 0);
    va_start(args, path);
    for (const char *word = path; word; word = va_arg(args, const char *)) {
        ck_assert_uint_lt(size + strlen(word) + 2, sizeof(s->program));
        size += (size_t)sprintf(s->program + size, "%s", word) + 1;
    }
    va_end(args);
    s->program[size] = '\0';
    ck_assert_int_eq(write(s->commands, "s", 1), 1);
    ck_assert_msg(wait_until(has_started, &start, KILL_MS), "the supervisor does not start %s",
                  path);
}

char *supervisor_log(const struct supervisor *s)
{
    char *path = text("%s/log", s->dir), *out = NULL;
    size_t size = 0;
    FILE *file = fopen(path, "r");
    if (!file || getdelim(&out, &size, '\0', file) < 0)
        out = text("(%s is empty)", path);
    if (file)
        fclose(file);
    free(path);
    return out;
}

pid_t supervisor_server(const struct supervisor *s)
{
    return s->server;
}

void supervisor_signal(const struct supervisor *s, int signal)
{
    pid_t pid = s->server;
    ck_assert_msg(pid > 0, "the server does not run:\n%s", supervisor_log(s));
    ck_assert_msg(kill(pid, signal) == 0, "signal %d: %s", signal, strerror(errno));
}

static bool has_ended(void *arg)
{
    return ((const struct supervisor *)arg)->server == 0;
}

int supervisor_wait(const struct supervisor *s, int within_ms)
{
    return wait_until(has_ended, (void *)s, within_ms) ? s->status : -1;
}

static bool none_is_left(void *arg)
{
    return descendants(((const struct supervisor *)arg)->self) == 0;
}

static bool all_are_stopped(void *arg)
{
    size_t count = descendants(((const struct supervisor *)arg)->self);
    bool stopped = true;
    for (size_t i = 0; i < count; i++)
        stopped &= all[i].state == 'T';
    return stopped;
}

void supervisor_signal_all(const struct supervisor *s, int signal)
{
    signal_descendants(s->self, s->server, signal);
    if (signal == SIGKILL) {
        ck_assert_msg(wait_until(none_is_left, (void *)s, KILL_MS), "processes survive SIGKILL");
        ck_assert_int_ne(supervisor_wait(s, KILL_MS), -1);
    }
    if (signal == SIGSTOP)
        ck_assert_msg(wait_until(all_are_stopped, (void *)s, KILL_MS), "processes do not stop");
}

void supervisor_run(struct supervisor *s, int in, int out, const char *path, ...)
{
    char *argv[WORDS_MAX + 1] = {(char *)path};
    size_t count = 1;
    int status = -1;
    va_list args;
    va_start(args, path);
    for (char *word; (word = va_arg(args, char *)) != NULL && count < WORDS_MAX;)
        argv[count++] = word;
    va_end(args);
    pid_t self = getpid(), pid = fork();
    ck_assert_int_ge(pid, 0);
    if (pid == 0)
        become(s, self, in, out, argv);
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert_msg(status == 0, "%s failed:\n%s", path, supervisor_log(s));
}

/* No test beside this one gets the port until this process ends. */
static bool reserve(uint16_t port)
{
    struct flock byte = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = port, .l_len = 1};
    char *path = text("/tmp/assay-test-ports-%u", (unsigned)geteuid());
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    ck_assert_msg(fd >= 0, "%s: %s", path, strerror(errno));
    free(path);
    if (fcntl(fd, F_OFD_SETLK, &byte) == 0)
        return true; /* it stays open, and the byte locked */
    close(fd);
    return false;
}

uint16_t loopback_port(void)
{
    for (;;) {
        uint16_t port = (uint16_t)(10000 + arc4random() % 22000);
        struct sockaddr_in at = {.sin_family = AF_INET,
                                 .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
                                 .sin_port = htons(port)};
        int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        ck_assert_int_ge(fd, 0);
        bool is_free = reserve(port) && bind(fd, (struct sockaddr *)&at, sizeof(at)) == 0;
        close(fd);
        if (is_free)
            return port;
    }
}
