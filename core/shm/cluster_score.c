#include "core/shm/cluster_score.h"

#define SET(member, value) atomic_store_explicit(&(member), (value), memory_order_relaxed)
#define GET(member) atomic_load_explicit(&(member), memory_order_relaxed)

void cluster_score_publish(struct cluster_score *c, const struct cluster_view *view)
{
    const uint64_t turn = GET(c->turn) + 1;
    struct cluster_copy *copy = &c->copies[turn & 1];
    /* who sees a word of this view also sees the turn before it, and reads again */
    atomic_thread_fence(memory_order_release);
    SET(copy->role, view->role);
    SET(copy->log, view->log);
    SET(copy->epoch, view->epoch);
    SET(copy->head, view->head);
    SET(copy->applied, view->applied);
    SET(copy->confirmed_us, view->confirmed_us);
    SET(copy->current_us, view->current_us);
    SET(copy->nodes, view->nodes);
    atomic_store_explicit(&c->turn, turn, memory_order_release);
}

uint64_t cluster_score_turn(const struct cluster_score *c)
{
    return atomic_load_explicit(&c->turn, memory_order_acquire);
}

uint64_t cluster_score_read(const struct cluster_score *c, struct cluster_view *out)
{
    uint64_t turn;
    do {
        turn = cluster_score_turn(c);
        const struct cluster_copy *copy = &c->copies[turn & 1];
        *out = (struct cluster_view){.role = GET(copy->role),
                                     .log = GET(copy->log),
                                     .epoch = GET(copy->epoch),
                                     .head = GET(copy->head),
                                     .applied = GET(copy->applied),
                                     .confirmed_us = GET(copy->confirmed_us),
                                     .current_us = GET(copy->current_us),
                                     .nodes = GET(copy->nodes)};
        atomic_thread_fence(memory_order_acquire);
    } while (GET(c->turn) != turn);
    return turn;
}

bool cluster_view_is_silent(const struct cluster_view *view, uint64_t now_us)
{
    return now_us >= view->confirmed_us + CLUSTER_SILENT_US;
}

bool cluster_log_is_away(const struct cluster_score *c, uint64_t now_us)
{
    struct cluster_view view;
    cluster_score_read(c, &view);
    return view.confirmed_us != 0 && cluster_view_is_silent(&view, now_us);
}

uint64_t cluster_view_lag_us(const struct cluster_view *view, uint64_t now_us)
{
    if (view->current_us == 0)
        return UINT64_MAX;
    return now_us > view->current_us ? now_us - view->current_us : 0;
}

uint64_t cluster_view_role(const struct cluster_view *view, uint64_t now_us)
{
    bool ended = now_us > view->confirmed_us + (uint64_t)CLUSTER_LEASE_MS * 1000;
    return view->role == CLUSTER_LEADS && ended ? CLUSTER_CONNECTS : view->role;
}

void cluster_score_begin(struct cluster_score *c, uint64_t entry)
{
    atomic_store(&c->begun, entry);
}

bool cluster_score_may_ask(struct cluster_score *c, uint64_t now_us, uint64_t interval_us)
{
    uint64_t asked_us = atomic_load(&c->asked_us);
    return now_us >= asked_us + interval_us &&
           atomic_compare_exchange_strong(&c->asked_us, &asked_us, now_us);
}

const char *cluster_role_name(uint64_t role)
{
    static const char *const names[] = {"none", "connects", "follows", "leads"};
    return role < sizeof(names) / sizeof(names[0]) ? names[role] : "unknown";
}
