#include "access_log.h"

#include "json_out.h"
#include "../log.h"
#include "../scoreboard.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define FLUSH_BYTES (64u << 10)
#define FLUSH_EVERY_MS 1000

struct access_log {
    const struct conf *conf;
    int fd; /* -1: no access log */
    struct buf out;
    uint64_t flushed_ms;
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

static struct str token(h2o_iovec_t v)
{
    return (struct str){v.base, v.len};
}

static void add_json(struct buf *b, const struct request *r, struct str agent, struct str ip, uint64_t took_us)
{
    buf_adds(b, "{\"time\":");
    json_time(b, r->now_ms);
    buf_adds(b, ",\"request_id\":");
    json_string(b, r->id);
    buf_adds(b, ",\"ip\":");
    json_string(b, ip);
    buf_adds(b, ",\"method\":");
    json_string(b, token(r->h2o->input.method));
    buf_adds(b, ",\"path\":");
    json_string(b, token(r->h2o->input.path));
    buf_printf(b, ",\"route\":\"%s\",\"status\":%d,\"bytes\":%zu,\"took_us\":%llu,\"key\":%llu,\"agent\":",
               r->route == NULL ? "" : r->route->path, r->status, r->sent_bytes, (unsigned long long)took_us, (unsigned long long)r->key);
    json_string(b, agent);
    buf_adds(b, "}\n");
}

static void add_quoted(struct buf *b, struct str s)
{
    for (size_t i = 0; i < s.n; i++)
        if ((unsigned char)s.p[i] < 0x20 || s.p[i] == '"' || s.p[i] == '\\' || (unsigned char)s.p[i] >= 0x7f)
            buf_printf(b, "\\x%02x", (unsigned char)s.p[i]);
        else
            buf_add(b, &s.p[i], 1);
}

static void add_combined(struct buf *b, const struct request *r, struct str agent, struct str ip)
{
    char when[40];
    struct tm tm;
    time_t t = (time_t)(r->now_ms / 1000);
    gmtime_r(&t, &tm);
    strftime(when, sizeof(when), "%d/%b/%Y:%H:%M:%S +0000", &tm);
    buf_str(b, ip);
    if (r->key != 0)
        buf_printf(b, " - key-%llu [%s] \"", (unsigned long long)r->key, when);
    else
        buf_printf(b, " - - [%s] \"", when);
    add_quoted(b, token(r->h2o->input.method));
    buf_adds(b, " ");
    add_quoted(b, token(r->h2o->input.path));
    buf_printf(b, " HTTP/1.%d\" %d %zu \"-\" \"", r->h2o->version & 1, r->status, r->sent_bytes);
    add_quoted(b, agent);
    buf_adds(b, "\"\n");
}

void access_log_add(struct access_log *log, const struct request *r, uint64_t took_us)
{
    if (log->fd < 0)
        return;
    char text[INET6_ADDRSTRLEN];
    ssize_t at = h2o_find_header(&r->h2o->headers, H2O_TOKEN_USER_AGENT, -1);
    struct str agent = at < 0 ? (struct str){"", 0} : token(r->h2o->headers.entries[at].value);
    ip_text(&r->client_ip, text);
    if (log->conf->log_format == LOG_FORMAT_JSON)
        add_json(&log->out, r, agent, str_of(text), took_us);
    else
        add_combined(&log->out, r, agent, str_of(text));
    if (log->out.n > FLUSH_BYTES)
        access_log_flush(log, true);
}

void access_log_flush(struct access_log *log, bool all)
{
    if (log->out.n == 0)
        return;
    uint64_t now = clock_mono_ms();
    if (!all && now - log->flushed_ms < FLUSH_EVERY_MS)
        return;
    log->flushed_ms = now;
    if (write(log->fd, log->out.p, log->out.n) != (ssize_t)log->out.n)
        log_error("log.access %s: lines were lost: %s", log->conf->log_access, strerror(errno));
    buf_reset(&log->out);
}

void access_log_reopen(struct access_log *log)
{
    access_log_flush(log, true);
    int fd = open_file(log->conf);
    if (fd < 0)
        return; /* the old file is better than none */
    close(log->fd);
    log->fd = fd;
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
