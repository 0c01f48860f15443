#include "core/process/bus_error.h"

#include "core/base/log.h"

#include <signal.h>
#include <unistd.h>

static struct store *watched;

/*
 * Logging is safe here: the address is in a segment file, and no code reads one while it holds a
 * lock of the C library. The file is derived: it is deleted, and the index is rebuilt. Then the
 * signal's default action ends the process.
 */
static void on_bus_error(int number, siginfo_t *info, void *context)
{
    char path[4096 + 64];
    (void)context;
    if (store_mapped_file(watched, info->si_addr, path, sizeof(path)))
        log_error(
            "%s cannot be read: it was cut short, or its disk fails; %s, this process ends, and "
            "the server rebuilds the index",
            path, unlink(path) == 0 ? "it is deleted" : "it stays");
    raise(number);
}

void bus_error_watch(struct store *store)
{
    struct sigaction action = {.sa_sigaction = on_bus_error,
                               .sa_flags = (int)(SA_SIGINFO | SA_RESETHAND)};
    watched = store;
    sigemptyset(&action.sa_mask);
    sigaction(SIGBUS, &action, NULL);
}
