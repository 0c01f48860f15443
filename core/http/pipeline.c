#include "core/http/pipeline.h"

#include "core/http/limit.h"
#include "core/http/response_cache.h"
#include "core/http/session.h"
#include "core/http/steps_internal.h"
#include "core/http/access_log.h"
#include "core/conn/connection.h"
#include "core/async/writer_client.h"
#include "core/shm/request_stats.h"

/* ---- limiter ---- */

static enum step prefetch_limit(struct request *r)
{
    limit_prefetch(r);
    return STEP_NEXT;
}

static void on_charged(struct request *r)
{
    if (limit_admits(r))
        pipeline_resume(r);
    else
        reply_error(r, limit_error(r), "%s", limit_message(r));
}

static enum step charge(struct request *r)
{
    switch (limit_charge(r, on_charged)) {
    case LIMIT_ADMITTED:
        return STEP_NEXT;
    case LIMIT_WAITS:
        return STEP_WAIT;
    default:
        reply_error(r, limit_error(r), "%s", limit_message(r));
        return STEP_DONE;
    }
}

static enum step limit(struct request *r)
{
    return (r->route->flags & ROUTE_BODY_FIRST) != 0 ? STEP_NEXT : charge(r);
}

static enum step limit_after_body(struct request *r)
{
    return (r->route->flags & ROUTE_BODY_FIRST) != 0 ? charge(r) : STEP_NEXT;
}

static enum step handle(struct request *r)
{
    r->route->handler(r);
    return STEP_DONE;
}

/*
 * In order. If a step before the limiter answers, reply.c charges the request. Columns: the step;
 * whether only a node of a cluster has it. Some steps run again: cluster_reads_confirm.
 */
static const struct {
    step_fn *run;
    bool cluster;
} rows[] = {
    {step_find_client, false},     {step_check_head, false},
    {step_find_route, false},      {prefetch_limit, false},
    {step_check_accept, false},    {step_check_lag, true},
    {step_await_position, true},   {step_await_token, true},
    {step_find_credential, false}, {step_check_credential, false},
    {step_reply_unrouted, false},  {limit, false},
    {step_check_body, false},      {step_read_large_body, false},
    {step_check_signature, false}, {step_inflate_body, false},
    {step_parse_fields, false},    {step_find_agent, false},
    {limit_after_body, false},     {handle, false},
};

/* Those of this server; NULL ends them. */
static step_fn *steps[sizeof(rows) / sizeof(rows[0]) + 1];

static void choose_steps(bool cluster)
{
    size_t count = 0;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        if (cluster || !rows[i].cluster)
            steps[count++] = rows[i].run; /* cppcheck-suppress AssignmentAddressToInteger */
    steps[count] = NULL;
}

void pipeline_resume(struct request *r)
{
    struct store *store = r->store;
    while (steps[r->step] != NULL)
        if (steps[r->step++](r) != STEP_NEXT)
            break;
    store_read_end(store);
}

/* ---- start and end of a request ---- */

static void record_response(struct request *r, bool streamed)
{
    const struct process *p = r->http->loop->process;
    uint64_t took_us = clock_mono_us() - r->started_us;
    if (r->replied)
        request_stats_count_request(p->request_stats, p->index,
                                    r->route == NULL ? routes_count : (size_t)(r->route - routes),
                                    r->status, streamed ? REQUEST_STATS_UNTIMED : took_us);
    access_log_add(r->http->access_log, r, took_us);
}

static void on_request_end(void *arg)
{
    struct request *r = arg;
    struct conn *c = r->wait.conn;
    waiter_cancel(&r->wait);
    bool streamed = c->streaming;
    conn_end_request(c);
    score_add(r->http->loop->process->score->requests, 1);
    record_response(r, streamed);
}

struct pipeline_handler {
    h2o_handler_t super;
    struct http *http;
};

static int on_request(h2o_handler_t *self, h2o_req_t *req)
{
    struct http *h = ((struct pipeline_handler *)self)->http;
    struct request *r = h2o_mem_alloc_shared(&req->pool, sizeof(*r), on_request_end);
    memset(r, 0, offsetof(struct request, values)); /* the steps fill in the rest */
    r->h2o = req;
    r->http = h;
    r->conf = h->loop->conf;
    r->store = h->loop->store;
    r->now_ms = (int64_t)h2o_now(h->loop->ctx.loop);
    r->wait.conn = conn_of(req);
    r->wait.conn->request = r;
    r->id = request_id_of(h, req);
    r->started_us = clock_mono_us();
    h->loop->now_ms = r->started_us / 1000;
    h2o_vector_reserve(&req->pool, &req->res.headers, 12); /* enough for most responses */
    pipeline_resume(r);
    return 0;
}

static void add_handler(struct http *h, h2o_pathconf_t *path)
{
    struct pipeline_handler *handler =
        (struct pipeline_handler *)h2o_create_handler(path, sizeof(*handler));
    handler->super.on_req = on_request;
    handler->http = h;
}

void pipeline_register(struct http *h, h2o_hostconf_t *host)
{
    h->resume = pipeline_resume;
    choose_steps(h->loop->conf->cluster_log[0] != '\0');
    add_handler(h, h2o_config_register_path(host, "/", 0));
    add_handler(h, &host->fallback_path); /* absolute-form targets */
    library_errors_register(h, host);
}

size_t pipeline_max_body(const struct conf *conf)
{
    size_t max = 0;
    for (size_t i = 0; i < routes_count; i++) {
        size_t bytes = step_max_body(&routes[i], conf);
        max = bytes > max ? bytes : max;
    }
    return max;
}
