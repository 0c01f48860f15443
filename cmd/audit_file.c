#include "cmd/audit_file.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define READ_BYTES 65536

static int refuse(const char *path, const char *why)
{
    cmd_refuse("cannot write %s: %s", path, why);
    return AUDIT_FAILED;
}

/* ---- the file ---- */

/* Why the file cannot be written, so that no page is graded in vain; NULL: nothing is known. */
static const char *obstacle(const char *path)
{
    char copy[PATH_MAX], folder[PATH_MAX + 2];
    struct stat st;
    if ((size_t)snprintf(copy, sizeof(copy), "%s", path) >= sizeof(copy))
        return strerror(ENAMETOOLONG);
    snprintf(folder, sizeof(folder), "%s/.", dirname(copy));
    if (stat(path, &st) == 0 && !S_ISREG(st.st_mode))
        return S_ISDIR(st.st_mode) ? strerror(EISDIR) : "it is not a regular file";
    if (lstat(path, &st) == 0 && S_ISLNK(st.st_mode) && stat(path, &st) != 0)
        return "it is a symbolic link whose target does not exist";
    return access(folder, W_OK | X_OK) == 0 ? NULL : strerror(errno);
}

/* That of the file which is replaced, or that of a new file. */
static mode_t mode_of(const char *path)
{
    struct stat st;
    if (stat(path, &st) == 0)
        return st.st_mode & 0777;
    mode_t mask = umask(0);
    umask(mask);
    return 0666 & ~mask;
}

bool audit_file_write(int fd, struct str text)
{
    while (text.n > 0) {
        ssize_t n = write(fd, text.p, text.n);
        if (n < 0 && errno != EINTR)
            return false;
        text.p += n < 0 ? 0 : n;
        text.n -= n < 0 ? 0 : (size_t)n;
    }
    return true;
}

/* Write a file beside ${path} and rename it. False with errno: ${path} is unchanged. */
static bool replace(const char *path, struct str text)
{
    char *beside = NULL;
    if (asprintf(&beside, "%s.XXXXXX", path) < 0)
        return false;
    int fd = mkostemp(beside, O_CLOEXEC);
    bool done = fd >= 0 && fchmod(fd, mode_of(path)) == 0 && audit_file_write(fd, text) &&
                fsync(fd) == 0 && rename(beside, path) == 0;
    int error = errno;
    if (fd >= 0)
        close(fd);
    if (fd >= 0 && !done)
        unlink(beside);
    free(beside);
    errno = error;
    return done;
}

/* A symbolic link stays and its target is replaced. Signals wait, so that no part is left. */
static bool replace_target(const char *path, struct str text)
{
    char *target = realpath(path, NULL);
    sigset_t all, before;
    sigfillset(&all);
    sigprocmask(SIG_BLOCK, &all, &before);
    bool done = replace(target == NULL ? path : target, text);
    sigprocmask(SIG_SETMASK, &before, NULL);
    free(target);
    return done;
}

/* ---- the child process ---- */

/* A closed standard output, as of `| head`, does not end it: the page is written. */
static int run_child(struct cmd *cmd, pid_t parent, int html,
                     int (*grade)(struct cmd *cmd, int html))
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    signal(SIGPIPE, SIG_IGN);
    return getppid() == parent ? grade(cmd, html) : AUDIT_FAILED;
}

/* Read to the end. On an error ${out} is failed. */
static void read_all(int fd, struct buf *out)
{
    for (ssize_t n = 1; n != 0;) {
        char *to = buf_reserve(out, READ_BYTES);
        n = to == NULL ? 0 : read(fd, to, READ_BYTES);
        if (n < 0 && errno != EINTR) {
            out->failed = true;
            return;
        }
        out->n += n > 0 ? (size_t)n : 0;
    }
}

/* The exit status of the child process. */
static int wait_for(pid_t pid)
{
    int status;
    while (waitpid(pid, &status, 0) < 0)
        if (errno != EINTR)
            return AUDIT_FAILED;
    cmd_progress_end();
    if (!WIFSIGNALED(status))
        return WEXITSTATUS(status);
    cmd_refuse("signal %d (%s) ended the grading: no page was written", WTERMSIG(status),
               strsignal(WTERMSIG(status)));
    return -1;
}

/* What a page of ${status} leaves: no file if grading did not start or did not end. */
static int write_page(const char *path, const struct buf *html, int status)
{
    struct str text = buf_view(html);
    if (status < 0 || text.n == 0)
        return AUDIT_FAILED;
    if (!buf_ok(html))
        return refuse(path, "the page could not be received from the process that grades");
    if (strcmp(path, "-") == 0)
        fwrite(text.p, 1, text.n, stdout);
    else if (!replace_target(path, text))
        return refuse(path, strerror(errno));
    return status;
}

int audit_file(struct cmd *cmd, const char *path, int (*grade)(struct cmd *cmd, int html))
{
    struct buf html = {0};
    int ends[2];
    const char *why = strcmp(path, "-") == 0 ? NULL : obstacle(path);
    if (why != NULL)
        return refuse(path, why);
    if (pipe2(ends, O_CLOEXEC) != 0)
        return refuse(path, strerror(errno));
    fflush(NULL);
    pid_t parent = getpid(), pid = fork();
    if (pid == 0) {
        close(ends[0]);
        return run_child(cmd, parent, ends[1], grade);
    }
    close(ends[1]);
    if (pid > 0)
        read_all(ends[0], &html);
    int status = pid > 0 ? write_page(path, &html, wait_for(pid)) : refuse(path, strerror(errno));
    close(ends[0]);
    buf_free(&html);
    return status;
}
