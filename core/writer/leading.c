#include "config.h"

#include "core/writer/leading.h"

#include "core/base/log.h"
#include "store/store.h"

#include <endian.h>
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
    snprintf(out->version, sizeof(out->version), "%s", PACKAGE_VERSION);
    out->format = store_rows_formats.newest;
}

/* ---- what workers see ---- */

static struct cluster_score *score_of(const struct leading *l)
{
    return &l->process->scoreboard->cluster;
}

static uint64_t log_number(const struct store_position *p)
{
    uint64_t first;
    memcpy(&first, p->log, sizeof(first));
    return be64toh(first);
}

/* The state that an earlier writer of this server published is still valid for the same log. */
static void show_start(struct leading *l)
{
    struct cluster_view before;
    cluster_score_read(score_of(l), &before);
    if (before.log == log_number(&l->position))
        l->shown = before;
    l->shown.role = CLUSTER_CONNECTS;
    l->shown.log = log_number(&l->position);
    cluster_score_begin(score_of(l), l->position.sequence);
    leading_show(l, NULL);
    cluster_score_publish(score_of(l), &l->shown); /* also where nothing follows */
}

static void take_news(struct cluster_view *shown, const struct log_view *view)
{
    static const enum cluster_role roles[] = {[LOG_CONNECTS] = CLUSTER_CONNECTS,
                                              [LOG_FOLLOWS] = CLUSTER_FOLLOWS,
                                              [LOG_LEADS] = CLUSTER_LEADS,
                                              [LOG_LOST] = CLUSTER_CONNECTS};
    shown->role = roles[view->state];
    shown->log = log_number(&view->position);
    if (view->nodes > 0)
        shown->nodes = view->nodes;
    if (view->confirmed_us == 0)
        return;
    shown->epoch = view->head.epoch;
    shown->head = view->head.sequence;
    shown->confirmed_us = view->confirmed_us;
}

uint64_t leading_show(struct leading *l, const struct log_view *view)
{
    struct cluster_view *v = &l->shown;
    const struct cluster_view before = *v;
    if (view != NULL)
        take_news(v, view);
    if (view != NULL && view->confirmed_us != 0)
        score_set(score_of(l)->clock_offset_ms, view->clock_offset_ms);
    v->applied = l->position.sequence;
    if (v->head <= v->applied) {
        v->head = v->applied;
        v->current_us = v->confirmed_us;
    }
    if (memcmp(&before, v, sizeof(before)) != 0)
        cluster_score_publish(score_of(l), v);
    return cluster_score_turn(score_of(l));
}

/* ---- start and end ---- */

static uint64_t growth_bytes(struct store *s)
{
    struct store_space space;
    enum store_status status = store_space(s, &space);
    store_read_end(s);
    return status == STORE_OK ? space.growth_bytes : 0;
}

/* After that time a node answers 503, also to HAProxy, and admits nothing. */
static int64_t admits_ms(const struct conf *conf)
{
    return conf->cluster_stale_reads ? INT64_MAX
                                     : (int64_t)conf->cluster_max_lag_ms + CLUSTER_LOG_LEASE_MS;
}

static bool is_unreadable(struct leading *l, enum store_status status)
{
    if (status == STORE_OK || status == STORE_NOT_FOUND)
        return false;
    log_error("the position of the store in the log cannot be read: %s", store_why(l->store));
    return true;
}

/* Without a cluster only this server changes the store, which then fits no log. */
static bool leave_log(struct leading *l)
{
    struct store_txn *t;
    enum store_status known = store_position_get(l->store, &l->position);
    store_read_end(l->store);
    if (known == STORE_NOT_FOUND || is_unreadable(l, known))
        return known == STORE_NOT_FOUND;
    enum store_status status = store_begin(l->store, &t);
    if (status == STORE_OK) {
        store_position_forget(t);
        status = store_commit(t);
    }
    if (status != STORE_OK)
        log_error("the store cannot leave the log of its cluster: %s", store_why(l->store));
    else
        log_warn("the store left the log of its cluster, since cluster.log is not set; to follow "
                 "the log again, replace the store by `assay cluster join --replace`");
    return status == STORE_OK;
}

bool leading_start(struct leading *l)
{
    struct cluster_log_node node = {0};
    const struct conf *conf = l->process->conf;
    l->leads = conf->cluster_log[0] == '\0';
    if (l->leads)
        return leave_log(l);
    enum store_status id = store_id(l->store, node.id),
                      known = store_position_get(l->store, &l->position);
    bool empty = store_is_empty(l->store);
    store_read_end(l->store);
    if (is_unreadable(l, id) || is_unreadable(l, known))
        return false;
    memcpy(l->node, node.id, sizeof(l->node));
    node.free_bytes = growth_bytes(l->store);
    leading_describe(conf, &node);
    store_follow(l->store, true);
    show_start(l);
    l->thread = log_thread_new(cluster_log_new(conf->cluster_log, node.name), &node,
                               known == STORE_OK ? &l->position : NULL, empty);
    if (l->thread == NULL)
        return false;
    log_thread_trims(l->thread, conf->cluster_keep_ms, conf->cluster_away_ms);
    log_thread_counts(l->thread, admits_ms(conf));
    return true;
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

static enum store_status take_rows(struct leading *l, struct store_txn *t)
{
    buf_reset(&l->rows);
    store_position_set(t, &l->position); /* makes place for the next one */
    return store_rows_take(t, l->format, &l->rows);
}

static enum store_status append(struct leading *l, struct store_txn *t)
{
    l->at_ms = leading_now_ms(l);
    const struct cluster_log_entry entry = {
        .at_ms = l->at_ms, .format = l->format, .rows = buf_view(&l->rows)};
    const uint64_t began_us = clock_mono_us();
    if (!log_thread_append(l->thread, &entry, is_wanted, l->process, &l->position)) {
        log_warn(
            "the cluster: it is unknown whether the log has the last entry: restarting the writer");
        _exit(process_stopping ? EXIT_STOPPED : EXIT_RETRY);
    }
    l->logged = true;
    score_add(score_of(l)->appends, 1);
    score_add(score_of(l)->append_us, clock_mono_us() - began_us);
    cluster_score_begin(score_of(l), l->position.sequence);
    store_position_set(t, &l->position);
    store_mark_in_log(t);
    return store_txn_error(t);
}

enum store_status leading_log(struct leading *l, struct store_txn *t, bool several)
{
    enum store_status status = take_rows(l, t);
    if (status != STORE_OK || store_rows_count(buf_view(&l->rows)) == 0)
        return status;
    if (several && l->rows.n > CLUSTER_LOG_ENTRY_BYTES)
        return STORE_TOO_MANY;
    return append(l, t);
}

void leading_settle(struct leading *l, enum store_status status)
{
    if (l->logged && status != STORE_OK) {
        log_error("the cluster: entry %llu is in the log and cannot be committed: %s: restarting "
                  "the writer",
                  (unsigned long long)l->position.sequence, store_why(l->store));
        _exit(EXIT_RETRY);
    }
    l->logged = false;
}

bool leading_mark(struct leading *l)
{
    struct store_txn *t;
    enum store_status status = store_begin(l->store, &t);
    if (status == STORE_OK && (status = take_rows(l, t)) != STORE_OK)
        store_abort(t);
    if (status != STORE_OK) {
        log_warn("the cluster: no verification: %s: %s", store_status_text(status),
                 store_why(l->store));
        return false;
    }
    status = append(l, t);
    leading_settle(l, status == STORE_OK ? store_commit(t) : status);
    return true;
}
