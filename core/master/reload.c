#include "core/master/reload.h"

#include "core/base/log.h"
#include "core/master/descriptor_limits.h"
#include "core/master/systemd.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DRAINING_MAX 3 /* old generations, before the next reload */

/* a worker may have the sockets of all slots while others drain */
int reload_fit_descriptors(const struct master *m, struct conf *conf)
{
    size_t sockets = 0;
    for (size_t i = 0; i < m->listeners.count; i++)
        sockets += m->listeners.list[i].count;
    return descriptors_fit(conf, sockets);
}

void reload_publish(struct master *m)
{
    const struct conf *conf = master_conf(m);
    struct scoreboard *sb = m->shared.scoreboard;
    score_set(sb->generation, m->generations.newest->number);
    score_set(sb->workers, conf->workers);
    score_set(sb->auditors, conf->auditors);
}

static int check_connections(struct master *m, const struct conf *conf, FILE *mistakes)
{
    if (connection_table_reserve(m->shared.connection_table, conf->max_connections, conf->workers))
        return 0;
    fprintf(mistakes, "max_connections: raising it from %u to %u needs a restart\n",
            master_conf(m)->max_connections, conf->max_connections);
    return 1;
}

/* NULL: it cannot be used, and the log says why */
static struct conf *read_configuration(struct master *m)
{
    const struct master_options *o = m->options;
    struct conf *conf = NULL;
    char *text = NULL;
    size_t size = 0;
    FILE *mistakes = open_memstream(&text, &size);
    if (mistakes == NULL)
        return NULL;
    int wrong = conf_load(o->conf_path, o->conf_required, o->sets, o->set_count, mistakes, &conf);
    if (wrong == 0)
        wrong = conf_reload_refusals(master_conf(m), conf, mistakes);
    if (wrong == 0)
        wrong = check_connections(m, conf, mistakes);
    fclose(mistakes);
    if (wrong != 0) {
        for (char *line = strtok(text, "\n"); line != NULL; line = strtok(NULL, "\n"))
            log_error("reload refused: %s", line);
        conf_free(conf);
        conf = NULL;
    }
    free(text);
    return conf;
}

/* a new generation; on failure nothing has changed */
static bool add_generation(struct master *m)
{
    struct conf *conf = read_configuration(m);
    bool bound = conf != NULL && reuseport_bind(&m->reuseport, conf->workers) == 0;
    if (conf != NULL && !bound)
        log_error("reload refused: workers: cannot open sockets for %u workers: %s", conf->workers,
                  strerror(errno));
    if (bound && reload_fit_descriptors(m, conf) == 0 && generations_add(&m->generations, conf))
        return true;
    log_error("reload refused: the old configuration stays in force");
    reuseport_unbind(&m->reuseport);
    conf_free(conf);
    return false;
}

void reload(struct master *m)
{
    m->reload_pending = !m->ready || upgrade_in_progress(&m->upgrade) ||
                        children_in_transition(&m->children) ||
                        generations_draining(&m->generations) >= DRAINING_MAX;
    if (m->reload_pending || !add_generation(m))
        return;
    const struct conf *conf = master_conf(m);
    listeners_configure(&m->listeners, conf);
    reuseport_change(&m->reuseport, conf->workers);
    if (children_set_slots(&m->children) != 0) {
        log_error("reload failed: out of memory");
        return;
    }
    log_open("master", conf->log_level, conf->log_format);
    limiter_stats_publish(m->shared.limiters, conf->limits);
    reload_publish(m);
    children_replace(&m->children);
    m->reloading = true;
    systemd_reloading(clock_mono_ms());
    log_info("reloading: generation %u", m->generations.newest->number);
}
