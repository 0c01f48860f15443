#include "config.h"

#include "cmd.h"

#include <inttypes.h>
#include <limits.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
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

static void say(const char *format, va_list args)
{
    cmd_progress_end();
    fputs("assay: ", stderr);
    vfprintf(stderr, format, args);
    fputc('\n', stderr);
}

int cmd_refuse(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    say(format, args);
    va_end(args);
    return CMD_REFUSED;
}

int cmd_misuse(const struct cmd *cmd, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    say(format, args);
    va_end(args);
    fprintf(stderr, "assay: try assay %s%s-h\n", cmd->row == NULL ? "" : cmd->row->name, cmd->row == NULL ? "" : " ");
    return CMD_USAGE;
}

void cmd_say(const char *format, ...)
{
    va_list args;
    cmd_progress_end();
    va_start(args, format);
    vfprintf(stderr, format, args);
    va_end(args);
    fputc('\n', stderr);
}

/* The code point at ${p} and its length; 0 for bytes that are not UTF-8 (RFC 3629). */
static size_t code_point(const unsigned char *p, size_t left, uint32_t *out)
{
    static const uint32_t least[5] = {0, 0, 0x80, 0x800, 0x10000};
    size_t n = p[0] < 0x80 ? 1 : (p[0] & 0xe0) == 0xc0 ? 2 : (p[0] & 0xf0) == 0xe0 ? 3 : (p[0] & 0xf8) == 0xf0 ? 4 : 0;
    if (n == 0 || n > left)
        return 0;
    uint32_t c = n == 1 ? p[0] : p[0] & (0x7fu >> n);
    for (size_t i = 1; i < n; i++) {
        if ((p[i] & 0xc0) != 0x80)
            return 0;
        c = c << 6 | (p[i] & 0x3f);
    }
    if (c < least[n] || c > 0x10ffff || (c >= 0xd800 && c <= 0xdfff))
        return 0;
    *out = c;
    return n;
}

/* Characters that steer: C0, DEL, C1, and those that reorder text. */
static bool steers(uint32_t c)
{
    return c < 0x20 || (c >= 0x7f && c <= 0x9f) || (c >= 0x202a && c <= 0x202e) || (c >= 0x2066 && c <= 0x2069) || c == 0x200e ||
           c == 0x200f || c == 0x2028 || c == 0x2029;
}

bool cmd_name_valid(const char *text)
{
    size_t left = strlen(text), count = 0;
    uint32_t c = 0;
    for (const unsigned char *p = (const unsigned char *)text; left > 0; count++) {
        size_t n = code_point(p, left, &c);
        if (n == 0 || steers(c))
            return false;
        p += n;
        left -= n;
    }
    return count >= 1 && count <= 100;
}

size_t cmd_print_plain(FILE *out, struct str text, size_t max)
{
    const unsigned char *p = (const unsigned char *)text.p;
    size_t left = text.n, columns = 0;
    while (left > 0) {
        uint32_t c = 0;
        size_t n = code_point(p, left, &c);
        bool plain = n > 0 && !steers(c);
        int width = plain ? wcwidth((wchar_t)c) : 1;
        size_t next = columns + (width < 0 ? 1 : (size_t)width); /* of a character newer than the system 1 is as good a guess as any */
        if (next > max)
            break;
        columns = next;
        n = n == 0 ? 1 : n;
        if (out != NULL)
            fwrite(plain ? (const char *)p : "\xef\xbf\xbd", 1, plain ? n : 3, out);
        p += n;
        left -= n;
    }
    return columns;
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

/* ---- progress ---- */

static bool progress_shown;

static int64_t now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

void cmd_progress(const char *what, uint64_t done, uint64_t total)
{
    static int64_t drawn_ms;
    int64_t now = now_ms();
    if (!isatty(STDERR_FILENO) || (progress_shown && now - drawn_ms < 100))
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
