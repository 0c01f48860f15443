#include "cmd/guard.h"

#include "core/process/process.h"
#include "core/base/sanitizer.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define STEP_BYTES 128

static char *step; /* what the child is doing; shared memory */
static volatile sig_atomic_t child;

/* PR_SET_PDEATHSIG is set again at each step: a change of user ids, on opening, clears it. */
void guard_at(void *arg, const char *what)
{
    (void)arg;
    if (step == NULL)
        return;
    snprintf(step, STEP_BYTES, "%s", what);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
}

static void forward_signal(int number)
{
    if (child > 0)
        kill((pid_t)child, number);
}

/*
 * The C library's messages about a corrupted heap or stack go to /dev/null, and only our messages
 * to standard error. Sanitizers keep standard error for their reports.
 */
static void silence_library(void)
{
    int words = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1),
        nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);
    FILE *out = SANITIZED || words < 0 ? NULL : fdopen(words, "w");
    if (out != NULL && nowhere >= 0) {
        setvbuf(out, NULL, _IONBF, 0);
        stderr = out;
        dup2(nowhere, STDERR_FILENO);
    }
    if (nowhere >= 0)
        close(nowhere);
}

static void run_child(struct cmd *cmd, int (*work)(struct cmd *cmd), pid_t parent,
                      const sigset_t *mask)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(CMD_REFUSED);
    signal(SIGINT, SIG_DFL);
    signal(SIGTERM, SIG_DFL);
    sigprocmask(SIG_SETMASK, mask, NULL);
    process_disable_core_dumps();
    silence_library();
    int status = work(cmd);
    if (fflush(stdout) != 0)
        status = cmd_refuse("cannot write to standard output");
    exit(status);
}

static int report_crash(struct cmd *cmd, const struct guard *guard, int number)
{
    const char *name = sigabbrev_np(number);
    cmd_progress_end();
    if (guard->tidy != NULL)
        guard->tidy(cmd);
    if (process_is_crash(number))
        return cmd_refuse("%s: %s is damaged. Reading it ended in a crash (SIG%s) at %s. %s",
                          guard->refused, guard->path, name, step, guard->advice);
    if (number != SIGINT && number != SIGTERM)
        return cmd_refuse("%s: signal %d (%s) ended the process at %s", guard->refused, number,
                          strsignal(number), step);
    signal(number, SIG_DFL);
    raise(number);
    return CMD_REFUSED;
}

int guard_run(struct cmd *cmd, const struct guard *guard, int (*work)(struct cmd *cmd))
{
    sigset_t stop, before;
    pid_t parent = getpid(), pid;
    int status;
    step = mmap(NULL, STEP_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (step == MAP_FAILED)
        return cmd_refuse("out of memory");
    strcpy(step, "the opening of the store");
    fflush(NULL);
    sigemptyset(&stop);
    sigaddset(&stop, SIGINT);
    sigaddset(&stop, SIGTERM);
    sigprocmask(SIG_BLOCK, &stop, &before);
    pid = fork();
    if (pid == 0)
        run_child(cmd, work, parent, &before);
    child = pid;
    sigaction(SIGINT, &(struct sigaction){.sa_handler = forward_signal}, NULL);
    sigaction(SIGTERM, &(struct sigaction){.sa_handler = forward_signal}, NULL);
    sigprocmask(SIG_SETMASK, &before, NULL);
    while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    child = 0;
    if (pid < 0)
        return cmd_refuse("cannot create a process: %s", strerror(errno));
    return WIFSIGNALED(status) ? report_crash(cmd, guard, WTERMSIG(status)) : WEXITSTATUS(status);
}
