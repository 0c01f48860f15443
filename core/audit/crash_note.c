#include "config.h"

#include "core/audit/crash_note_internal.h"
#include "core/base/sanitizer.h"

#include <signal.h>
#include <stddef.h>
#include <unistd.h>

#define STACK_BYTES ((size_t)64 * 1024) /* separate, since the fault may be a stack overflow */

static volatile uint64_t page;
static void (*volatile write_note)(uint64_t id);

/*
 * SA_RESETHAND has restored the default action, which ends the process when the signal is raised
 * again.
 */
static void on_signal(int number)
{
    uint64_t id = page;
    page = 0;
    if (id != 0)
        write_note(id);
    if (raise(number) != 0)
        _exit(128 + number);
}

void crash_note_install(void (*write)(uint64_t id))
{
    static const int numbers[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT, SIGALRM};
    static char stack[STACK_BYTES];
    struct sigaction action = {.sa_handler = on_signal,
                               .sa_flags = (int)(SA_RESETHAND | SA_ONSTACK | SA_NODEFER)};
    if (SANITIZED)
        return;
    write_note = write;
    sigemptyset(&action.sa_mask);
    if (sigaltstack(&(stack_t){.ss_sp = stack, .ss_size = sizeof(stack)}, NULL) != 0)
        return;
    for (size_t i = 0; i < sizeof(numbers) / sizeof(*numbers); i++)
        sigaction(numbers[i], &action, NULL);
}

bool crash_note_installed(void)
{
    return write_note != NULL;
}

void crash_note_set_page(uint64_t id)
{
    page = id;
}
