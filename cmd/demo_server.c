/* assayd as a child process: start it, wait until it is ready, stop it. */
#include "cmd/cmd.h"
#include "cmd/demo.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define READY_MS 30000

static int64_t now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* In the child process. In a process group of its own, so that Ctrl-C reaches only the demo. */
static void become_server(const char *program, const char *const *sets, size_t set_count,
                          const char *log_path, int out, pid_t parent)
{
    const char **argv = calloc(2 * set_count + 4, sizeof(*argv));
    int log = open(log_path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    sigset_t none;
    size_t argc = 0;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (argv == NULL || log < 0 || getppid() != parent || dup2(out, STDOUT_FILENO) < 0 ||
        dup2(log, STDERR_FILENO) < 0)
        _exit(127);
    argv[argc++] = program;
    argv[argc++] = "-c";
    argv[argc++] = "/dev/null"; /* the built-in defaults */
    for (size_t i = 0; i < set_count; i++) {
        argv[argc++] = "--set";
        argv[argc++] = sets[i];
    }
    execv(program, (char *const *)argv);
    dprintf(STDERR_FILENO, "%s cannot be run: %s\n", program, strerror(errno));
    _exit(127);
}

static void show_log(const char *log_path)
{
    char line[1024];
    FILE *log = fopen(log_path, "re");
    if (log == NULL)
        return;
    while (fgets(line, sizeof(line), log) != NULL)
        fputs(line, stderr);
    fclose(log);
}

/* Read until "ready URL …". False if assayd ended, took too long, or Ctrl-C was pressed. */
static bool await_ready(int fd, char *url, size_t size)
{
    char text[1024];
    size_t n = 0;
    for (int64_t end = now_ms() + READY_MS;
         now_ms() < end && !demo_pending() && n < sizeof(text) - 1;) {
        struct pollfd wait = {.fd = fd, .events = POLLIN};
        if (poll(&wait, 1, 100) <= 0)
            continue;
        ssize_t got = read(fd, text + n, sizeof(text) - 1 - n);
        if (got <= 0)
            return false;
        n += (size_t)got;
        text[n] = '\0';
        const char *ready = strstr(text, "ready ");
        if (ready != NULL && strchr(ready, '\n') != NULL) {
            snprintf(url, size, "%.*s", (int)strcspn(ready + 6, " \n"), ready + 6);
            return true;
        }
    }
    return false;
}

int demo_server_start(const char *const *sets, size_t set_count, const char *log_path,
                      struct demo_server *server)
{
    char program[PATH_MAX];
    int out[2];
    *server = (struct demo_server){.pid = -1};
    if (!cmd_program_beside("assayd", program, sizeof(program)) || pipe2(out, O_CLOEXEC) != 0)
        return cmd_refuse("assayd cannot be started: %s", strerror(errno)), -1;
    fflush(NULL);
    pid_t parent = getpid();
    server->pid = fork();
    if (server->pid == 0)
        become_server(program, sets, set_count, log_path, out[1], parent);
    close(out[1]);
    bool ready = server->pid > 0 && await_ready(out[0], server->url, sizeof(server->url));
    close(out[0]);
    if (ready)
        return 0;
    if (server->pid > 0)
        demo_server_stop(server);
    if (!demo_pending()) {
        cmd_refuse("assayd did not become ready; its log, %s, says:", log_path);
        show_log(log_path);
    }
    return -1;
}

int demo_server_stop(struct demo_server *server)
{
    int status = 0;
    if (server->pid <= 0)
        return 0;
    kill(server->pid, SIGTERM);
    while (waitpid(server->pid, &status, 0) < 0 && errno == EINTR)
        ;
    server->pid = -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
