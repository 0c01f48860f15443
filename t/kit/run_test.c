/*
 * run_test PROGRAM [ARGUMENT]...: runs a test with the signal dispositions and the signal mask of a
 * login shell. `make check` starts every test with it. A signal that the parent ignores or blocks
 * (nohup, a background job of a shell, many CI runners) stays ignored or blocked across exec, and a
 * shell cannot undo that. A test or its server would then not get that signal.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    sigset_t none;
    if (argc < 2) {
        fputs("usage: run_test PROGRAM [ARGUMENT]...\n", stderr);
        return 99;
    }
    for (int number = 1; number < NSIG; number++)
        /* fails for KILL, STOP and the C library's own, which stay as is */
        signal(number, SIG_DFL);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    execvp(argv[1], argv + 1);
    fprintf(stderr, "run_test: %s: %s\n", argv[1], strerror(errno));
    return 99; /* a hard error to Automake */
}
