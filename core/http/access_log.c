#include "core/http/access_log.h"

#include "core/text/json_out.h"
#include "core/http/limit.h"
#include "core/text/redact.h"
#include "core/base/log.h"
#include "core/text/printable.h"
#include "core/shm/scoreboard.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define FLUSH_BYTES (64u << 10)
#define FLUSH_EVERY_MS 1000
#define TEXT_MAX 8192 /* longer texts are cut */

struct access_log {
    const struct conf *conf;
    int fd; /* -1: no access log */
    struct buf out;
    uint64_t flushed_ms;
    char scratch[3][TEXT_MAX + REDACT_MORE];
    bool incomplete; /* the last write ended within a line */
};

static int open_file(const struct conf *conf)
{
    if (conf->log_access[0] == '\0')
        return -1;
    if (strcmp(conf->log_access, "-") == 0)
        return dup(STDOUT_FILENO);
    int fd = open(conf->log_access, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0640);
    if (fd < 0)
        log_error("log.access %s: %s", conf->log_access, strerror(errno));
    return fd;
}

struct access_log *access_log_open(const struct conf *conf)
{
    struct access_log *log = calloc(1, sizeof(*log));
    if (log == NULL)
        return NULL;
    *log = (struct access_log){.conf = conf, .fd = open_file(conf)};
    return log;
}

/* The texts of a line, without secrets. */
struct line {
    struct str method, path, agent, ip;
    uint64_t took_us;
};

/* By the loop's clock, so in whole milliseconds. */
static uint64_t received_us(const struct request *r)
{
    const struct timeval *from = &r->h2o->timestamps.request_begin_at,
                         *to = &r->h2o->processed_at.at;
    int64_t us = ((int64_t)to->tv_sec - from->tv_sec) * 1000000 + to->tv_usec - from->tv_usec;
    return from->tv_sec == 0 || us < 0 ? 0 : (uint64_t)us;
}

static void add_times(struct buf *b, const struct request *r, uint64_t took_us)
{
    uint64_t answer_us = r->answered_us > r->started_us ? r->answered_us - r->started_us : 0;
    buf_printf(b, ",\"receive_us\":%llu,\"wait_us\":%llu,\"answer_us\":%llu,\"took_us\":%llu",
               (unsigned long long)received_us(r), (unsigned long long)r->wait.waited_us,
               (unsigned long long)answer_us, (unsigned long long)took_us);
}

static void add_json(struct buf *b, const struct request *r, const struct line *line)
{
    const char *limiter = limit_name(r);
    buf_adds(b, "{\"time\":");
    json_time(b, r->now_ms);
    buf_adds(b, ",\"request_id\":");
    json_string(b, r->id);
    buf_adds(b, ",\"ip\":");
    json_string(b, line->ip);
    buf_adds(b, ",\"method\":");
    json_string(b, line->method);
    buf_adds(b, ",\"path\":");
    json_string(b, line->path);
    buf_printf(b, ",\"route\":\"%s\",\"status\":%d,\"bytes\":%zu",
               r->route == NULL ? "" : r->route->path, r->status, r->sent_bytes);
    add_times(b, r, line->took_us);
    buf_printf(b, ",\"key\":%llu,\"limiter\":", (unsigned long long)r->key);
    json_text(b, str_of(limiter));
    buf_adds(b,
             r->limit.refused ? ",\"refused\":true,\"agent\":" : ",\"refused\":false,\"agent\":");
    json_string(b, line->agent);
    buf_adds(b, "}\n");
}

static void add_quoted(struct buf *b, struct str s)
{
    for (size_t i = 0; i < s.n; i++)
        if ((unsigned char)s.p[i] < 0x20 || s.p[i] == '"' || s.p[i] == '\\' ||
            (unsigned char)s.p[i] >= 0x7f)
            buf_printf(b, "\\x%02x", (unsigned char)s.p[i]);
        else
            buf_add(b, &s.p[i], 1);
}

static void add_combined(struct buf *b, const struct request *r, const struct line *line)
{
    char when[40];
    struct tm tm;
    time_t t = (time_t)(r->now_ms / 1000);
    gmtime_r(&t, &tm);
    strftime(when, sizeof(when), "%d/%b/%Y:%H:%M:%S +0000", &tm);
    buf_str(b, line->ip);
    if (r->key != 0)
        buf_printf(b, " - key-%llu [%s] \"", (unsigned long long)r->key, when);
    else
        buf_printf(b, " - - [%s] \"", when);
    add_quoted(b, line->method);
    buf_adds(b, " ");
    add_quoted(b, line->path);
    buf_printf(b, " HTTP/1.%d\" %d %zu \"-\" \"", r->h2o->version & 1, r->status, r->sent_bytes);
    add_quoted(b, line->agent);
    buf_adds(b, "\"\n");
}

static struct str without_secrets(struct access_log *log, unsigned i, h2o_iovec_t v)
{
    return redact((struct str){v.base, v.len < TEXT_MAX ? v.len : TEXT_MAX}, log->scratch[i]);
}

void access_log_add(struct access_log *log, const struct request *r, uint64_t took_us)
{
    if (log->fd < 0)
        return;
    char text[INET6_ADDRSTRLEN];
    ssize_t at = h2o_find_header(&r->h2o->headers, H2O_TOKEN_USER_AGENT, -1);
    ip_text(&r->client_ip, text);
    struct line line = {
        .method = without_secrets(log, 0, r->h2o->input.method),
        .path = without_secrets(log, 1, r->h2o->input.path),
        .agent = at < 0 ? STR("") : without_secrets(log, 2, r->h2o->headers.entries[at].value),
        .ip = str_of(text),
        .took_us = took_us};
    size_t from = log->out.n;
    (log->conf->log_format == LOG_FORMAT_JSON ? add_json : add_combined)(&log->out, r, &line);
    printable_escape(&log->out, from);
    if (log->out.n > FLUSH_BYTES)
        access_log_flush(log, true);
}

/* After a partial write, on a full disk, the next line starts with a newline. */
static bool write_all(struct access_log *log)
{
    size_t done = 0;
    if (log->incomplete && write(log->fd, "\n", 1) != 1)
        return false;
    log->incomplete = false;
    while (done < log->out.n) {
        ssize_t n = write(log->fd, log->out.p + done, log->out.n - done);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0) {
            log->incomplete = done > 0 && log->out.p[done - 1] != '\n';
            return false;
        }
        done += (size_t)n;
    }
    return true;
}

void access_log_flush(struct access_log *log, bool all)
{
    if (log->out.n == 0)
        return;
    uint64_t now = clock_mono_ms();
    if (!all && now - log->flushed_ms < FLUSH_EVERY_MS)
        return;
    log->flushed_ms = now;
    if (!write_all(log))
        log_error("log.access %s: cannot write; lines were lost: %s", log->conf->log_access,
                  strerror(errno));
    buf_reset(&log->out);
}

void access_log_reopen(struct access_log *log)
{
    access_log_flush(log, true);
    int fd = open_file(log->conf);
    if (fd < 0)
        return; /* keep the old file */
    close(log->fd);
    log->fd = fd;
    log->incomplete = false;
}

void access_log_close(struct access_log *log)
{
    if (log == NULL)
        return;
    access_log_flush(log, true);
    if (log->fd >= 0)
        close(log->fd);
    buf_free(&log->out);
    free(log);
}
