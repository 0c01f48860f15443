#include "core/master/announce.h"

#include "config.h"
#include "core/base/log.h"
#include "core/master/systemd.h"
#include "store/bytes.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* ---- the log ---- */

/* without -c the file need not exist: conf_load */
static bool has_file(const struct master_options *o)
{
    return o->conf_path != NULL && (o->conf_required || access(o->conf_path, F_OK) == 0);
}

static void add_listeners(const struct master *m, struct buf *line)
{
    for (size_t i = 0; i < m->listeners.count; i++)
        buf_printf(line, "%s%s%s", i == 0 ? "" : ", ", m->listeners.list[i].url,
                   m->listeners.list[i].internal ? " (internal)" : "");
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
    if (m->shutdown.reason[0] == '\0')
        shutdown_set_reason(&m->shutdown, "SIG%s from pid %d", name == NULL ? "?" : name,
                            (int)from);
}

static uint64_t requests_of(const struct request_stats *t)
{
    uint64_t all = 0;
    for (unsigned worker = 0; t != NULL && worker < REQUEST_STATS_WORKERS; worker++) {
        struct request_stats_totals totals = request_stats_worker(t, worker);
        for (size_t i = 0; i < REQUEST_STATS_STATUSES; i++)
            all += totals.by_status[i];
    }
    return all;
}

void announce_end(const struct master *m)
{
    log_info("assayd " PACKAGE_VERSION
             " ends: %s; exit status %d, uptime %llu s, %llu requests answered",
             m->shutdown.reason, m->shutdown.exit_status,
             (unsigned long long)(clock_mono_ms() - m->started_ms) / 1000,
             (unsigned long long)requests_of(m->shared.request_stats));
}

/* ---- standard output and the service manager ---- */

static bool all_ready(const struct children *c)
{
    return children_ready(c, ROLE_WRITER) && children_ready(c, ROLE_AUDITOR) &&
           children_ready(c, ROLE_WORKER);
}

void announce_ready(struct master *m)
{
    const struct conf *conf = master_conf(m);
    if (m->ready || upgrade_in_progress(&m->upgrade) || !all_ready(&m->children))
        return;
    m->ready = m->children.store_known = true;
    directories_write_pid(conf);
    for (size_t i = 0; i < m->listeners.count; i++)
        printf("ready %s workers=%u auditors=%u\n", m->listeners.list[i].url, conf->workers,
               conf->auditors);
    fflush(stdout);
    systemd_notify("READY=1");
}

void announce_reloaded(struct master *m)
{
    if (!m->reloading || children_in_transition(&m->children))
        return;
    m->reloading = false;
    systemd_notify("READY=1");
}

void announce_alive(struct master *m)
{
    uint64_t now = clock_mono_ms(), every = systemd_watchdog_ms(getpid());
    if (every == 0 || systemd_is_muted() || now < m->watchdog_at_ms ||
        !children_alive(&m->children, every))
        return;
    m->watchdog_at_ms = now + every / 2;
    systemd_notify("WATCHDOG=1");
}

void announce_delay(struct master *m)
{
    uint64_t now = clock_mono_ms();
    bool continues = m->shutdown.stopping
                         ? now < m->shutdown.deadline_ms
                         : !m->ready && children_alive(&m->children, 2 * ANNOUNCE_DELAY_MS);
    if (!continues || now < m->extend_at_ms)
        return;
    m->extend_at_ms = now + ANNOUNCE_DELAY_MS;
    systemd_notify("EXTEND_TIMEOUT_USEC=60000000");
}
