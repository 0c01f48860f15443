#include "t/kit/harness.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/wait.h>

enum { WORDS_MAX = 24, SAY_MS = 15000, END_MS = 15000 };

/* Signals wait until the handlers of Check, which kill the whole test, are none of its. */
static _Noreturn void become(const char *dir, int out, bool terminal, const char *const *argv,
                             const sigset_t *signals)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (int number = 1; number < NSIG; number++)
        signal(number, SIG_DFL);
    sigprocmask(SIG_SETMASK, signals, NULL);
    /* a session of its own, whose terminal it is: sizes and Ctrl-C come by signals */
    if (terminal) {
        setsid();
        ioctl(out, TIOCSCTTY, 0);
        dup2(out, STDIN_FILENO);
        dup2(out, STDERR_FILENO);
    }
    dup2(out, STDOUT_FILENO);
    if (!dir || chdir(dir) == 0)
        execv(argv[0], (char *const *)(uintptr_t)argv);
    _exit(127);
}

static int terminal_new(struct watched *w)
{
    w->from = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
    ck_assert(w->from >= 0 && grantpt(w->from) == 0 && unlockpt(w->from) == 0);
    int terminal = open(ptsname(w->from), O_RDWR | O_NOCTTY | O_CLOEXEC);
    ck_assert_int_ge(terminal, 0);
    ck_assert_int_eq(tcgetattr(terminal, &w->before), 0);
    return terminal;
}

struct watched *watch_start(enum watch_by by, const char *dir, const char *path, ...)
{
    struct watched *w = calloc(1, sizeof(*w));
    const char *argv[WORDS_MAX] = {realpath(path, NULL)};
    int ends[2] = {-1, -1};
    va_list words;
    ck_assert_msg(w && argv[0], "%s is not there", path);
    va_start(words, path);
    for (size_t n = 1; (argv[n] = va_arg(words, const char *)) != NULL; n++)
        ck_assert_uint_lt(n, WORDS_MAX - 1);
    va_end(words);
    w->terminal = by == BY_TERMINAL ? terminal_new(w) : -1;
    if (by == BY_PIPE) {
        ck_assert_int_eq(pipe2(ends, O_CLOEXEC), 0);
        w->from = ends[0];
    } else {
        watch_resize(w, 40, 160);
    }
    sigset_t all, before;
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, &before);
    w->pid = fork();
    if (w->pid == 0)
        become(dir, by == BY_TERMINAL ? w->terminal : ends[1], by == BY_TERMINAL, argv, &before);
    sigprocmask(SIG_SETMASK, &before, NULL);
    ck_assert_int_gt(w->pid, 0);
    if (by == BY_PIPE)
        close(ends[1]);
    return w;
}

/* What is there by now; false where nothing can come any more. */
static bool take(struct watched *w, int within_ms)
{
    struct pollfd fd = {w->from, POLLIN, 0};
    if (w->from < 0)
        return false;
    if (poll(&fd, 1, within_ms) <= 0)
        return true;
    ck_assert_uint_lt(w->size, sizeof(w->said) - 1);
    ssize_t n = read(w->from, w->said + w->size, sizeof(w->said) - 1 - w->size);
    if (n <= 0)
        return false;
    w->size += (size_t)n;
    w->said[w->size] = '\0';
    return true;
}

bool watch_until(struct watched *w, watched_fn *holds, const char *arg)
{
    for (int64_t deadline = now_ms() + SAY_MS; now_ms() < deadline;)
        if (holds(w, arg) || !take(w, 100))
            return holds(w, arg);
    return false;
}

bool watch_has_said(const struct watched *w, const char *words)
{
    return strstr(w->said, words) != NULL;
}

void watch_expect(struct watched *w, const char *words)
{
    ck_assert_msg(watch_until(w, watch_has_said, words), "never said: %s\n%s", words, w->said);
}

void watch_forget(struct watched *w)
{
    w->size = 0;
    w->said[0] = '\0';
}

void watch_type(struct watched *w, const char *keys)
{
    ck_assert_int_eq(write(w->from, keys, strlen(keys)), (ssize_t)strlen(keys));
}

void watch_resize(struct watched *w, unsigned short rows, unsigned short columns)
{
    ck_assert_int_eq(
        ioctl(w->from, TIOCSWINSZ, &(struct winsize){.ws_row = rows, .ws_col = columns}), 0);
}

int watch_wait(struct watched *w)
{
    int status = -1;
    for (int64_t deadline = now_ms() + END_MS; now_ms() < deadline;) {
        if (waitpid(w->pid, &status, WNOHANG) == w->pid) {
            while (w->from >= 0 && poll(&(struct pollfd){w->from, POLLIN, 0}, 1, 0) > 0 &&
                   take(w, 0))
                ;
            return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
        }
        if (!take(w, 5)) /* the end of its output must be taken for it to go on */
            poll(NULL, 0, 5);
    }
    kill(w->pid, SIGKILL);
    waitpid(w->pid, &status, 0);
    ck_abort_msg("it did not end\n%s", w->said);
    return -1;
}

void watch_close(struct watched *w)
{
    if (w->from >= 0)
        close(w->from);
    if (w->terminal >= 0)
        close(w->terminal);
    w->from = w->terminal = -1;
}
