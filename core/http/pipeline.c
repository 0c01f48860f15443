#include "core/http/pipeline.h"

#include "core/http/limit.h"
#include "core/http/response_cache.h"
#include "core/http/session.h"
#include "core/http/steps.h"
#include "core/http/event_stream.h"
#include "core/http/access_log.h"
#include "core/conn/acceptor.h"
#include "core/loop/writer_client.h"
#include "core/shm/request_stats.h"

#include <sys/random.h>

/* ---- limiter ---- */

static enum step expect_charge(struct request *r)
{
    limit_expect(r);
    return STEP_NEXT;
}

static enum step charge(struct request *r)
{
    if (limit_charge(r))
        return STEP_NEXT;
    reply_error(r, ERR_RATE_LIMITED, NULL);
    return STEP_DONE;
}

static enum step limit(struct request *r)
{
    return (r->route->flags & ROUTE_BODY_FIRST) != 0 ? STEP_NEXT : charge(r);
}

static enum step limit_by_body(struct request *r)
{
    return (r->route->flags & ROUTE_BODY_FIRST) != 0 ? charge(r) : STEP_NEXT;
}

static enum step handle(struct request *r)
{
    r->route->handler(r);
    return STEP_DONE;
}

/*
 * The pipeline, in the order of decisions (design: accept → client → head checks → route → credential → limiter → body → fields → handler).
 * Whatever is answered before the limiter is charged when it is sent (reply.c).
 */
static step_fn *const steps[] = {
    step_find_client,
    step_check_head,
    step_find_route,
    expect_charge,
    step_check_accept,
    step_find_credential,
    step_judge_credential,
    step_lead_back,
    limit,
    step_check_body,
    step_read_large,
    step_check_signature,
    step_inflate_body,
    step_parse_fields,
    step_find_agent,
    limit_by_body,
    handle,
};

void pipeline_resume(struct request *r)
{
    struct store *store = r->store;
    while (r->step < sizeof(steps) / sizeof(steps[0]))
        if (steps[r->step++](r) != STEP_NEXT)
            break;
    store_read_end(store);
}

/* ---- a request's beginning and end ---- */

static bool id_acceptable(struct str id)
{
    if (id.n == 0 || id.n > 128)
        return false;
    for (size_t i = 0; i < id.n; i++) {
        char c = id.p[i];
        if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' || c == '_' || c == '-'))
            return false;
    }
    return true;
}

static void hex(char *to, uint64_t v)
{
    for (int shift = 60; shift >= 0; shift -= 4)
        *to++ = "0123456789abcdef"[v >> shift & 15];
}

/* the hex number of ${n} digits, one more */
static void count_up(char *digits, size_t n)
{
    while (n-- > 0) {
        if (digits[n] != 'f') {
            digits[n] = digits[n] == '9' ? 'a' : (char)(digits[n] + 1);
            return;
        }
        digits[n] = '0';
    }
}

/* this worker's random prefix and a counter */
struct str pipeline_id(struct worker *w)
{
    count_up(w->id, sizeof(w->id));
    return (struct str){w->id, sizeof(w->id)};
}

/* the caller's, or a new one */
struct str pipeline_request_id(struct worker *w, h2o_req_t *req)
{
    for (size_t i = 0; i < req->headers.size; i++) {
        const h2o_header_t *h = &req->headers.entries[i];
        if (h->name->len != strlen("x-request-id") || memcmp(h->name->base, "x-request-id", h->name->len) != 0)
            continue;
        if (id_acceptable(view(h->value)))
            return view(h->value);
        break;
    }
    char *text = h2o_mem_alloc_pool(&req->pool, sizeof(w->id));
    memcpy(text, pipeline_id(w).p, sizeof(w->id));
    return (struct str){text, sizeof(w->id)};
}

bool pipeline_start(struct worker *w)
{
    uint64_t prefix;
    w->cache = response_cache_new();
    w->limiting = limiting_new(w);
    w->sessions = sessions_new();
    w->streams = streams_new();
    if (w->cache == NULL || w->sessions == NULL || w->streams == NULL || w->limiting == NULL || getrandom(&prefix, sizeof(prefix), 0) != sizeof(prefix))
        return false;
    hex(w->id, prefix);
    hex(w->id + sizeof(w->id) / 2, 0);
    return true;
}

void pipeline_finish(struct worker *w)
{
    buf_free(&w->body);
    response_cache_free(w->cache);
    limiting_free(w->limiting);
    sessions_free(w->sessions);
    streams_free(w->streams);
}

static void note_answer(struct request *r, bool streamed)
{
    const struct process *p = r->worker->process;
    uint64_t took_us = request_clock_us() - r->started_us;
    if (r->replied)
        request_stats_answered(p->request_stats, p->index, r->route == NULL ? routes_count : (size_t)(r->route - routes), r->status, streamed ? REQUEST_STATS_UNTIMED : took_us);
    access_log_add(r->worker->access_log, r, took_us);
}

static void on_request_end(void *arg)
{
    struct request *r = arg;
    struct conn *c = r->conn;
    if (r->pending != NULL)
        r->pending->request = NULL;
    c->request = NULL;
    c->requests++;
    c->since_ms = r->worker->now_ms;
    bool streamed = c->streaming;
    c->receiving = c->head_done = c->sending = c->streaming = false;
    conn_hold(c, 0);
    score_add(r->worker->process->score->requests, 1);
    note_answer(r, streamed);
}

struct pipeline_handler {
    h2o_handler_t super;
    struct worker *worker;
};

static int on_request(h2o_handler_t *self, h2o_req_t *req)
{
    struct worker *w = ((struct pipeline_handler *)self)->worker;
    struct request *r = h2o_mem_alloc_shared(&req->pool, sizeof(*r), on_request_end);
    memset(r, 0, offsetof(struct request, values)); /* fields_parse fills those, find_credential and others what is behind them */
    r->h2o = req;
    r->worker = w;
    r->conf = w->conf;
    r->store = w->store;
    r->now_ms = (int64_t)h2o_now(w->ctx.loop);
    r->conn = conn_of(req);
    r->conn->request = r;
    r->id = pipeline_request_id(w, req);
    r->started_us = request_clock_us();
    w->now_ms = r->started_us / 1000;
    h2o_vector_reserve(&req->pool, &req->res.headers, 12); /* what a limited report has, and more */
    pipeline_resume(r);
    return 0;
}

static void put_handler(struct worker *w, h2o_pathconf_t *path)
{
    struct pipeline_handler *handler = (struct pipeline_handler *)h2o_create_handler(path, sizeof(*handler));
    handler->super.on_req = on_request;
    handler->worker = w;
}

void pipeline_register(struct worker *w, h2o_hostconf_t *host)
{
    put_handler(w, h2o_config_register_path(host, "/", 0));
    put_handler(w, &host->fallback_path); /* absolute-form targets */
    library_answers_register(w, host);
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
