#include "cmd/stats.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

/* the alternate screen without a cursor, and back */
#define ENTER "\033[?1049h\033[?25l"
#define LEAVE "\033[?25h\033[?1049l"

static volatile sig_atomic_t asked_to_stop, suspended, resized;
static bool entered, keys; /* on the alternate screen; standard input sends keys */
static struct termios before;
static sigset_t outside; /* the signal mask while screen_wait waits */

static void on_signal(int number)
{
    if (number == SIGWINCH)
        resized = 1;
    else if (number == SIGTSTP)
        suspended = 1;
    else
        asked_to_stop = 1;
}

/* Write without stdio, whose stream may be in an error state. */
static void say(const char *text)
{
    size_t n = strlen(text);
    while (n > 0) {
        ssize_t wrote = write(STDOUT_FILENO, text, n);
        if (wrote < 0 && errno != EINTR)
            return;
        text += wrote > 0 ? wrote : 0;
        n -= wrote > 0 ? (size_t)wrote : 0;
    }
}

static void enter(void)
{
    keys = isatty(STDIN_FILENO) != 0 && tcgetattr(STDIN_FILENO, &before) == 0;
    struct termios quiet = before;
    quiet.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
    quiet.c_cc[VMIN] = 0;
    quiet.c_cc[VTIME] = 0;
    keys = keys && tcsetattr(STDIN_FILENO, TCSANOW, &quiet) == 0;
    entered = true;
    say(ENTER);
}

void screen_open(bool terminal)
{
    static const int stops[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGWINCH, SIGTSTP};
    size_t count = terminal ? sizeof(stops) / sizeof(stops[0]) : 4;
    struct sigaction action = {.sa_handler = on_signal};
    sigset_t blocked;
    sigemptyset(&blocked);
    for (size_t i = 0; i < count; i++)
        sigaddset(&blocked, stops[i]);
    sigprocmask(SIG_BLOCK, &blocked, &outside);
    for (size_t i = 0; i < count; i++)
        sigaction(stops[i], &action, NULL);
    action.sa_handler = SIG_IGN;
    sigaction(SIGPIPE, &action, NULL); /* if the reader leaves, write fails and we end */
    if (terminal)
        enter();
}

void screen_close(void)
{
    if (!entered)
        return;
    entered = false;
    say(LEAVE);
    if (keys)
        tcsetattr(STDIN_FILENO, TCSAFLUSH, &before);
}

/* Ctrl-Z: leave the screen while stopped. */
static void suspend(void)
{
    suspended = 0;
    screen_close();
    raise(SIGSTOP);
    enter();
}

static uint64_t left_ms(uint64_t until_ms)
{
    uint64_t now = clock_mono_ms();
    return now < until_ms ? until_ms - now : 0;
}

int screen_wait(uint64_t until_ms)
{
    for (;;) {
        struct pollfd fds[2] = {{STDOUT_FILENO, 0, 0}, {STDIN_FILENO, POLLIN, 0}};
        uint64_t left = left_ms(until_ms);
        struct timespec most = {(time_t)(left / 1000), (long)(left % 1000) * 1000000};
        int ready = asked_to_stop ? 0 : ppoll(fds, keys ? 2 : 1, &most, &outside);
        char key;
        if (asked_to_stop || (ready > 0 && fds[0].revents != 0)) /* nobody reads standard output */
            return SCREEN_STOP;
        if (suspended)
            suspend();
        else if (ready > 0 && read(STDIN_FILENO, &key, 1) != 1)
            return SCREEN_STOP;
        else if (ready > 0)
            return (unsigned char)key;
        else if (ready == 0)
            return SCREEN_TIME;
        if (resized) {
            resized = 0;
            return SCREEN_RESIZED;
        }
    }
}

void screen_size(size_t *rows, size_t *columns)
{
    struct winsize size;
    bool known = ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_row > 0 && size.ws_col > 0;
    *rows = known ? size.ws_row : 24;
    *columns = known ? size.ws_col : 80;
}

bool screen_draw(struct str text)
{
    fputs("\033[H", stdout);
    for (size_t i = 0; i < text.n; i++) {
        bool last = i + 1 == text.n; /* a newline in the last row would scroll */
        if (text.p[i] == '\n')
            fputs(last ? "\033[K" : "\033[K\r\n", stdout);
        else
            putchar(text.p[i]);
    }
    fputs("\033[J", stdout);
    return fflush(stdout) == 0;
}
