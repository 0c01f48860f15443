#include "config.h"

#include "cmd/cmd.h"
#include "core/text/printable.h"
#include "core/shm/scoreboard.h"

#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <unistd.h>
#include <wchar.h>

const char *cmd_value(const struct cmd *cmd, const char *name)
{
    for (size_t i = cmd->given_count; i-- > 0;)
        if (strcmp(cmd->given[i].name, name) == 0)
            return cmd->given[i].value;
    return NULL;
}

bool cmd_has(const struct cmd *cmd, const char *name)
{
    for (size_t i = 0; i < cmd->given_count; i++)
        if (strcmp(cmd->given[i].name, name) == 0)
            return true;
    return false;
}

/* Print a line on standard error. It may contain untrusted text, which is escaped. */
static void say(const char *before, const char *format, va_list args)
{
    char *text = NULL;
    cmd_progress_end();
    if (vasprintf(&text, format, args) < 0)
        abort();
    fputs(before, stderr);
    cmd_print_plain(stderr, str_of(text), SIZE_MAX);
    fputc('\n', stderr);
    free(text);
}

int cmd_refuse(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    say("assay: ", format, args);
    va_end(args);
    return CMD_REFUSED;
}

int cmd_misuse(const struct cmd *cmd, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    say("assay: ", format, args);
    va_end(args);
    fprintf(stderr, "assay: try assay %s%s-h\n", cmd->row == NULL ? "" : cmd->row->name,
            cmd->row == NULL ? "" : " ");
    return CMD_USAGE;
}

void cmd_say(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    say("", format, args);
    va_end(args);
}

bool cmd_name_valid(const char *text)
{
    size_t count = 0;
    struct printable next;
    for (struct str rest = str_of(text); rest.n > 0; rest.p += next.taken, rest.n -= next.taken) {
        printable_next(rest, &next);
        if (!next.as_itself)
            return false;
        count++;
    }
    return count >= 1 && count <= 100;
}

int cmd_name_check(const char *text)
{
    if (cmd_name_valid(text))
        return CMD_DONE;
    return cmd_refuse("a name must have 1 to 100 characters of UTF-8, without control characters");
}

size_t cmd_print_plain(FILE *out, struct str text, size_t max)
{
    struct printable next;
    size_t columns = 0;
    for (; text.n > 0; text.p += next.taken, text.n -= next.taken) {
        printable_next(text, &next);
        /* wcwidth is -1 for characters that the system does not know yet: assume 1 */
        bool escaped = !next.as_itself && next.code != 0xfffd;
        int width = escaped ? (int)next.n : wcwidth((wchar_t)next.code);
        if (columns + (width < 0 ? 1 : (size_t)width) > max)
            break;
        columns += width < 0 ? 1 : (size_t)width;
        if (out != NULL)
            fwrite(next.shown, 1, next.n, out);
    }
    return columns;
}

void cmd_print_json(struct buf *json)
{
    printable_escape(json, 0);
    if (!buf_ok(json))
        abort();
    fwrite(json->p, 1, json->n, stdout);
}

bool cmd_program_beside(const char *name, char *out, size_t size)
{
    char own[PATH_MAX];
    ssize_t n = readlink("/proc/self/exe", own, sizeof(own) - 1);
    if (n <= 0)
        return false;
    own[n] = '\0';
    char *slash = strrchr(own, '/');
    if (slash == NULL)
        return false;
    *slash = '\0';
    return (size_t)snprintf(out, size, "%s/%s", own, name) < size;
}

/* ---- long work ---- */

static bool progress_shown;

void cmd_progress(const char *what, uint64_t done, uint64_t total)
{
    static uint64_t drawn_ms;
    uint64_t now = clock_mono_ms();
    if (!isatty(fileno(stderr)) || (progress_shown && now - drawn_ms < 100))
        return;
    drawn_ms = now;
    progress_shown = true;
    if (total == 0)
        fprintf(stderr, "\r\033[K%s: %" PRIu64, what, done);
    else
        fprintf(stderr, "\r\033[K%s: %" PRIu64 " of %" PRIu64 " (%u %%)", what, done, total,
                (unsigned)(done >= total ? 100 : done * 100 / total));
    fflush(stderr);
}

void cmd_progress_end(void)
{
    if (progress_shown)
        fputs("\r\033[K", stderr);
    progress_shown = false;
}

static volatile sig_atomic_t interrupted;

static void on_interrupt(int number)
{
    (void)number;
    interrupted = 1;
}

void cmd_catch_interrupts(void)
{
    struct sigaction action = {.sa_handler = on_interrupt};
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
}

bool cmd_interrupted(void)
{
    return interrupted != 0;
}
