#include "core/master/announce.h"

#include "core/base/log.h"
#include "core/shm/request_stats.h"
#include "store/bytes.h"
#include "config.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* without -c the file need not exist: conf_load */
static bool has_file(const struct master_options *o)
{
    return o->conf_path != NULL && (o->conf_required || access(o->conf_path, F_OK) == 0);
}

static void add_listeners(const struct master *m, struct buf *line)
{
    for (size_t i = 0; i < m->listeners_count; i++)
        buf_printf(line, "%s%s%s", i == 0 ? "" : ", ", m->listeners[i].url,
                   m->listeners[i].internal ? " (internal)" : "");
}

void announce_start(const struct master *m)
{
    const struct master_options *o = m->options;
    const struct conf *conf = master_conf(m);
    struct buf line = {0};
    buf_printf(&line, "assayd " PACKAGE_VERSION " starts: configuration %s",
               has_file(o) ? o->conf_path : "built-in defaults");
    if (o->set_count > 0)
        buf_printf(&line, " and %zu --set", o->set_count);
    buf_printf(&line, ", pid %d, workers %u, auditors %u, listeners ", (int)getpid(), conf->workers,
               conf->auditors);
    add_listeners(m, &line);
    if (buf_ok(&line))
        log_info("%.*s", (int)line.n, line.p);
    buf_free(&line);
}

void announce_signal(struct master *m, int signo, pid_t from)
{
    const char *name = sigabbrev_np(signo);
    if (m->why[0] == '\0')
        snprintf(m->why, sizeof(m->why), "SIG%s from pid %d", name == NULL ? "?" : name, (int)from);
}

static uint64_t requests_of(const struct request_stats *t)
{
    uint64_t all = 0;
    for (unsigned worker = 0; t != NULL && worker < REQUEST_STATS_WORKERS; worker++) {
        struct request_stats_totals answered = request_stats_worker(t, worker);
        for (size_t i = 0; i < REQUEST_STATS_STATUSES; i++)
            all += answered.by_status[i];
    }
    return all;
}

void announce_end(const struct master *m, int status)
{
    log_info("assayd " PACKAGE_VERSION
             " ends: %s; exit status %d, uptime %llu s, %llu requests answered",
             m->why, status, (unsigned long long)(clock_mono_ms() - m->started_ms) / 1000,
             (unsigned long long)requests_of(m->request_stats));
}
