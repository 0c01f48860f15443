/* The steps of a node of a cluster (log_waits): its lag, and the positions of requests. */
#include "core/http/cluster_reads.h"
#include "core/http/session.h"
#include "core/http/steps_internal.h"

enum step step_check_lag(struct request *r)
{
    if (r->http->log_waits == NULL || r->route == NULL || r->route->auth == AUTH_NONE ||
        !cluster_reads_are_stale(r->http))
        return STEP_NEXT;
    reply_stale(r);
    return STEP_DONE;
}

enum placed { PLACED_READY, PLACED_WAITS, PLACED_ELSEWHERE, PLACED_UNKNOWN };

/* Is this node there? With PLACED_WAITS ${done} is called later. */
static enum placed place(struct request *r, const struct log_position *p, log_wait_done_fn *done)
{
    struct cluster_view view;
    cluster_score_read(&r->http->loop->process->scoreboard->cluster, &view);
    if (p->log != view.log)
        return view.role >= CLUSTER_FOLLOWS ? PLACED_ELSEWHERE : PLACED_UNKNOWN;
    if (p->entry <= view.applied)
        return PLACED_READY;
    return log_waits_add(r->http->log_waits, p->entry, r->started_us, r->conf->cluster_wait_ms,
                         &r->wait, done)
               ? PLACED_WAITS
               : PLACED_UNKNOWN;
}

static void reply_late(struct request *r)
{
    reply_retry(r, "This node does not have the entry of X-Assay-Position or of the token yet. "
                   "Retry in a second.");
}

static void reply_elsewhere(struct request *r)
{
    reply_error(r, ERR_BAD_REQUEST,
                "The cluster's log does not have the entry of X-Assay-Position. Send the request "
                "without it.");
}

static void position_waited(struct waiter *w, enum log_verdict verdict)
{
    struct request *r = request_of(w);
    if (verdict == LOG_REACHED)
        r->http->resume(r);
    else if (verdict == LOG_ABOVE_HEAD)
        reply_elsewhere(r);
    else
        reply_late(r);
}

enum step step_await_position(struct request *r)
{
    struct str text;
    struct log_position position;
    if (r->http->log_waits == NULL || r->route == NULL || (r->route->flags & ROUTE_INTERNAL) != 0 ||
        !request_header(r, "x-assay-position", &text))
        return STEP_NEXT;
    if (request_header_twice(r, "x-assay-position")) {
        reply_error(r, ERR_BAD_REQUEST,
                    "The request has two X-Assay-Position headers. Send the greater one.");
        return STEP_DONE;
    }
    if (!log_position_read(text, &position)) {
        reply_error(r, ERR_BAD_REQUEST,
                    "X-Assay-Position is malformed. Send the value of an earlier response.");
        return STEP_DONE;
    }
    switch (place(r, &position, position_waited)) {
    case PLACED_READY:
        return STEP_NEXT;
    case PLACED_WAITS:
        return STEP_WAIT;
    case PLACED_ELSEWHERE:
        reply_elsewhere(r);
        return STEP_DONE;
    default:
        reply_late(r);
        return STEP_DONE;
    }
}

/* It is as invalid as a token of another server. */
static void refuse_token(struct request *r)
{
    reply_header(r, "www-authenticate", STR("Bearer realm=\"assay\", error=\"invalid_token\""));
    reply_error(r, ERR_UNAUTHORIZED,
                "This visitor's token is of an entry that the cluster's log does not have. Get "
                "another one with POST /api/v1/widget/init.");
}

static void token_waited(struct waiter *w, enum log_verdict verdict)
{
    struct request *r = request_of(w);
    if (verdict == LOG_REACHED)
        r->http->resume(r);
    else if (verdict == LOG_ABOVE_HEAD)
        refuse_token(r);
    else
        reply_late(r);
}

enum step step_await_token(struct request *r)
{
    struct str token;
    struct log_position position;
    if (r->http->log_waits == NULL || r->route == NULL || r->route->auth != AUTH_JWT ||
        !request_bearer(r, &token) || !session_position(r, token, &position) || position.log == 0)
        return STEP_NEXT;
    switch (place(r, &position, token_waited)) {
    case PLACED_READY:
        return STEP_NEXT;
    case PLACED_WAITS:
        return STEP_WAIT;
    case PLACED_ELSEWHERE:
        refuse_token(r);
        return STEP_DONE;
    default:
        reply_late(r);
        return STEP_DONE;
    }
}
