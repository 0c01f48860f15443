#include "core/writer/leading.h"

#include "core/base/log.h"
#include "store/store.h"

#include <stdlib.h>
#include <unistd.h>

#define GIVE_UP_MS 3000 /* after the order to stop */

void leading_describe(const struct conf *conf, struct cluster_log_node *out)
{
    if (conf->cluster_name[0] != '\0')
        snprintf(out->name, sizeof(out->name), "%s", conf->cluster_name);
    else if (gethostname(out->name, sizeof(out->name) - 1) != 0)
        out->name[0] = '\0';
    snprintf(out->address, sizeof(out->address), "%s", conf->cluster_address);
    out->format = ROWS_FORMAT;
}

bool leading_start(struct leading *l)
{
    struct cluster_log_node node = {0};
    const struct conf *conf = l->process->conf;
    l->leads = conf->cluster_log[0] == '\0';
    if (l->leads)
        return true;
    enum store_status id = store_id(l->store, node.id),
                      known = store_position_get(l->store, &l->position);
    bool empty = store_is_empty(l->store);
    store_read_end(l->store);
    if (id != STORE_OK || (known != STORE_OK && known != STORE_NOT_FOUND)) {
        log_error("the position of the store in the log cannot be read: %s", store_why(l->store));
        return false;
    }
    leading_describe(conf, &node);
    store_follow(l->store, true);
    l->thread = log_thread_new(cluster_log_new(conf->cluster_log, node.name), &node,
                               known == STORE_OK ? &l->position : NULL, empty);
    if (l->thread != NULL)
        log_thread_trims(l->thread, conf->cluster_keep_ms, conf->cluster_away_ms);
    return l->thread != NULL;
}

bool leading_end(struct leading *l)
{
    return l->thread == NULL || log_thread_end(l->thread);
}

void leading_free(struct leading *l)
{
    log_thread_free(l->thread);
    buf_free(&l->rows);
}

void leading_begin(struct leading *l, const struct log_view *view)
{
    l->leads = true;
    l->at_ms = view->head.at_ms;
    l->position = view->position;
    store_follow(l->store, false);
    store_rows_collect(l->store, true);
}

int64_t leading_now_ms(const struct leading *l)
{
    int64_t now = clock_wall_ms();
    return now < l->at_ms ? l->at_ms : now;
}

static bool is_wanted(void *arg)
{
    struct process *p = arg;
    static uint64_t stopping_ms;
    process_heartbeat(p);
    if (!process_stopping)
        return true;
    if (stopping_ms == 0)
        stopping_ms = clock_mono_ms();
    return clock_mono_ms() - stopping_ms < GIVE_UP_MS;
}

enum store_status leading_log(struct leading *l, struct store_txn *t, bool several)
{
    buf_reset(&l->rows);
    store_position_set(t, &l->position); /* makes place for the next one */
    enum store_status status = store_rows_take(t, &l->rows);
    if (status != STORE_OK || store_rows_count(buf_view(&l->rows)) == 0)
        return status;
    if (several && l->rows.n > CLUSTER_LOG_ENTRY_BYTES)
        return STORE_TOO_MANY;
    l->at_ms = leading_now_ms(l);
    if (!log_thread_append(l->thread, buf_view(&l->rows), l->at_ms, is_wanted, l->process,
                           &l->position)) {
        log_warn("the cluster: the last entry may be in the log or not: the writer starts again");
        _exit(process_stopping ? EXIT_STOPPED : EXIT_RETRY);
    }
    store_position_set(t, &l->position);
    return store_txn_error(t);
}
