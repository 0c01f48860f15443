#include "core/http/cluster_reads.h"

static const struct cluster_score *score_of(const struct http *h)
{
    return &h->loop->process->scoreboard->cluster;
}

static struct cluster_view view_of(const struct http *h)
{
    struct cluster_view view;
    cluster_score_read(score_of(h), &view);
    return view;
}

/* ---- a node that is behind ---- */

bool cluster_reads_are_stale(const struct http *h)
{
    if (h->log_waits == NULL || h->loop->conf->cluster_stale_reads)
        return false;
    const struct cluster_view view = view_of(h);
    return cluster_view_lag_us(&view, h->loop->now_ms * 1000) >
           (uint64_t)h->loop->conf->cluster_max_lag_ms * 1000;
}

bool cluster_reads_log_is_away(const struct http *h)
{
    return h->log_waits != NULL && cluster_log_is_away(score_of(h), clock_mono_us());
}

/* ---- the position of an answer ---- */

struct log_position cluster_reads_position(const struct http *h)
{
    if (h->log_waits == NULL)
        return (struct log_position){0};
    const struct cluster_view view = view_of(h);
    return (struct log_position){.log = view.log, .entry = atomic_load(&score_of(h)->begun)};
}

struct str cluster_reads_text(struct request *r)
{
    const struct log_position p = cluster_reads_position(r->http);
    if (p.log == 0 || r->route == NULL ||
        (r->route->flags & (ROUTE_PAGE | ROUTE_PUBLIC | ROUTE_INTERNAL)) != 0)
        return (struct str){NULL, 0};
    char *text = request_alloc(r, LOG_POSITION_SIZE);
    return (struct str){text, log_position_write(&p, text)};
}

/* ---- what is unknown here may be in the log ---- */

static bool needs_confirmation(const struct request *r)
{
    const struct cluster_view view = view_of(r->http);
    return view.role == CLUSTER_FOLLOWS && view.current_us <= r->started_us &&
           !cluster_view_is_silent(&view, clock_mono_us());
}

static void confirmed(struct waiter *w, enum log_verdict verdict)
{
    struct request *r = request_of(w);
    (void)verdict; /* late: the node answers from what it has */
    r->http->resume(r);
}

bool cluster_reads_confirm(struct request *r, unsigned steps)
{
    if (r->http->log_waits == NULL || r->confirmed || r->changed || r->route == NULL ||
        (r->route->flags & (ROUTE_PUBLIC | ROUTE_INTERNAL)) != 0 || !needs_confirmation(r))
        return false;
    if (!log_waits_add(r->http->log_waits, LOG_WAIT_HEAD, r->started_us, r->conf->cluster_wait_ms,
                       &r->wait, confirmed))
        return false;
    r->confirmed = true;
    r->step -= steps;
    r->key_looked_up = false;
    r->h2o->res.headers.size = 0;
    return true;
}
