#include "core/base/log.h"

#include "core/text/printable.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define LINE_MAX_BYTES 4096
#define MESSAGE_MAX_BYTES 2048

static const char *const level_names[] = {
    [LOG_LEVEL_ERROR] = "error",
    [LOG_LEVEL_WARN] = "warn",
    [LOG_LEVEL_INFO] = "info",
    [LOG_LEVEL_DEBUG] = "debug",
};

static char log_process[32] = "assayd";
static enum log_level log_threshold = LOG_LEVEL_INFO;
static enum log_format log_line_format = LOG_FORMAT_JSON;

void log_open(const char *process, enum log_level level, enum log_format format)
{
    snprintf(log_process, sizeof(log_process), "%s", process);
    log_threshold = level;
    log_line_format = format;
}

/*
 * A repeated message must not fill the disk: each call site, known by its format, may log
 * SITE_LINES lines in SITE_SECONDS. The number of suppressed lines is logged before its next line.
 */
#define SITES 256 /* more than there are call sites */
#define SITE_LINES 100
#define SITE_SECONDS 10

static struct site {
    const char *format;
    time_t from; /* CLOCK_MONOTONIC */
    unsigned lines, suppressed;
} sites[SITES];

static struct site *site_of(const char *format)
{
    size_t at = ((uintptr_t)format >> 3) % SITES;
    for (size_t i = 0; i < SITES; i++, at = (at + 1) % SITES)
        if (sites[at].format == NULL || sites[at].format == format)
            break;
    if (sites[at].format != format)
        sites[at] = (struct site){.format = format};
    return &sites[at];
}

/* *suppressed: lines suppressed before this one */
static bool may_write(const char *format, unsigned *suppressed)
{
    struct timespec now;
    struct site *site = site_of(format);
    clock_gettime(CLOCK_MONOTONIC, &now);
    *suppressed = 0;
    if (now.tv_sec - site->from >= SITE_SECONDS) {
        *suppressed = site->suppressed;
        *site = (struct site){.format = format, .from = now.tv_sec};
    }
    if (site->lines == SITE_LINES) {
        site->suppressed++;
        return false;
    }
    site->lines++;
    return true;
}

/* A line being built. Text that does not fit is left out, except the end of the line. */
struct line {
    char bytes[LINE_MAX_BYTES];
    size_t n;
};

#define LINE_END_BYTES 4

static void line_add(struct line *line, const char *p, size_t n)
{
    if (n <= sizeof(line->bytes) - LINE_END_BYTES - line->n) {
        memcpy(line->bytes + line->n, p, n);
        line->n += n;
    }
}

static void line_adds(struct line *line, const char *s)
{
    line_add(line, s, strlen(s));
}

static void line_end(struct line *line, const char *end)
{
    size_t n = strlen(end);
    memcpy(line->bytes + line->n, end, n);
    line->n += n;
}

/* ${quoted}: for a JSON string. Messages can contain text of callers. */
static void line_escaped(struct line *line, const char *text, bool quoted)
{
    struct printable next;
    for (struct str rest = str_of(text); rest.n > 0; rest.p += next.taken, rest.n -= next.taken) {
        printable_next(rest, &next);
        bool escaped = quoted && (next.code == '"' || next.code == '\\');
        if (escaped)
            line_add(line, (const char[]){'\\', (char)next.code}, 2);
        else
            line_add(line, next.shown, next.n);
    }
}

static void line_json(struct line *line, const char *time_text, enum log_level level,
                      const char *message)
{
    char head[128];
    int n =
        snprintf(head, sizeof(head), "{\"time\":\"%s\",\"level\":\"%s\",\"pid\":%ld,\"process\":\"",
                 time_text, level_names[level], (long)getpid());
    line_add(line, head, (size_t)n);
    line_escaped(line, log_process, true);
    line_adds(line, "\",\"message\":\"");
    line_escaped(line, message, true);
    line_end(line, "\"}\n");
}

static void line_text(struct line *line, const char *time_text, enum log_level level,
                      const char *message)
{
    char head[128];
    int n = snprintf(head, sizeof(head), "%s %s %s[%ld]: ", time_text, level_names[level],
                     log_process, (long)getpid());
    line_add(line, head, (size_t)n);
    line_escaped(line, message, false);
    line_end(line, "\n");
}

static void write_line(enum log_level level, const char *message)
{
    struct timespec now;
    struct tm utc;
    char seconds[24], time_text[32];
    clock_gettime(CLOCK_REALTIME, &now);
    gmtime_r(&now.tv_sec, &utc);
    strftime(seconds, sizeof(seconds), "%Y-%m-%dT%H:%M:%S", &utc);
    snprintf(time_text, sizeof(time_text), "%s.%03uZ", seconds,
             (unsigned)(now.tv_nsec / 1000000) % 1000);

    struct line line = {.n = 0};
    if (log_line_format == LOG_FORMAT_JSON)
        line_json(&line, time_text, level, message);
    else
        line_text(&line, time_text, level, message);
    /* one write, so that lines of several processes do not mix */
    ssize_t written = write(STDERR_FILENO, line.bytes, line.n);
    (void)written;
}

void log_write(enum log_level level, const char *format, ...)
{
    unsigned suppressed;
    if (level > log_threshold || !may_write(format, &suppressed))
        return;

    char message[MESSAGE_MAX_BYTES];
    if (suppressed > 0) {
        snprintf(message, sizeof(message), "%u messages like the next one were suppressed",
                 suppressed);
        write_line(level, message);
    }
    va_list args;
    va_start(args, format);
    vsnprintf(message, sizeof(message), format, args);
    va_end(args);
    write_line(level, message);
}
