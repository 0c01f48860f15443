/*
 * Errors that libh2o answers itself, before any handler (413, 417, a broken chunk): a filter gives
 * them the body, the headers and the log line of all errors.
 */
#include "core/http/steps_internal.h"

#include "core/http/access_log.h"
#include "core/http/cors_request.h"
#include "core/http/limit.h"
#include "core/http/pipeline.h"
#include "core/http/reply_internal.h"
#include "core/conn/connection.h"

struct library_filter {
    h2o_filter_t super;
    struct http *http;
};
struct library_error {
    h2o_ostream_t super;
    struct request *request;
    h2o_iovec_t body;
    bool waits; /* for the limiter */
    bool asked; /* libh2o wants to send, with ${state} */
    h2o_send_state_t state;
};

static void send_body(struct library_error *error)
{
    h2o_req_t *req = error->request->h2o;
    h2o_ostream_send_next(
        &error->super, req, &error->body,
        h2o_memis(req->input.method.base, req->input.method.len, H2O_STRLIT("HEAD")) ? 0 : 1,
        error->state);
}

static void send_error_body(h2o_ostream_t *self, h2o_req_t *req, h2o_iovec_t *bufs, size_t count,
                            h2o_send_state_t state)
{
    struct library_error *error = (struct library_error *)self;
    (void)req;
    (void)bufs;
    (void)count;
    error->state = state;
    error->asked = true;
    if (!error->waits)
        send_body(error);
}

static void on_request_end(void *arg)
{
    waiter_cancel(&((struct request *)arg)->wait);
}

/* What the limiter and the log need of a request that never was in the pipeline. */
static struct request *request_outside_pipeline(struct http *h, h2o_req_t *req)
{
    struct request *r = h2o_mem_alloc_shared(&req->pool, sizeof(*r), on_request_end);
    memset(r, 0, sizeof(*r));
    r->h2o = req;
    r->http = h;
    r->conf = h->loop->conf;
    r->now_ms = (int64_t)h2o_now(h->loop->ctx.loop);
    r->wait.conn = conn_of(req);
    r->started_us = clock_mono_us();
    step_find_client(r);
    return r;
}

/* The body, the headers and the log line, once the request was charged. */
static void make_response(struct library_error *error)
{
    struct request *r = error->request;
    h2o_req_t *req = r->h2o;
    bool admitted = limit_admits(r);
    struct buf body = {0};
    enum err code = admitted ? err_of_status(req->res.status) : limit_error(r);
    if (!admitted) {
        req->res.status = err_row(code)->status;
        req->res.reason = err_row(code)->reason;
    }
    error_body(&body, code, admitted ? err_row(code)->message : limit_message(r));
    error->body = h2o_strdup(&req->pool, body.p, body.n);
    buf_free(&body);
    req->res.headers.size = 0;
    req->res.content_length = error->body.len;
    struct str id = r->id = request_id_of(r->http, req);
    r->status = req->res.status;
    r->sent_bytes = error->body.len;
    r->answered_us = r->started_us;
    access_log_add(r->http->access_log, r, 0);
    h2o_add_header(&req->pool, &req->res.headers, H2O_TOKEN_CONTENT_TYPE, NULL,
                   H2O_STRLIT("application/json"));
    h2o_add_header_by_str(&req->pool, &req->res.headers, H2O_STRLIT("x-request-id"), 0, NULL, id.p,
                          id.n);
    reply_security_headers(r);
    limit_headers(r);
    cors_headers(r);
}

static void on_charged(struct request *r)
{
    struct library_error *error = r->state;
    error->waits = false;
    make_response(error);
    if (error->asked)
        send_body(error);
}

static void on_library_error(h2o_filter_t *self, h2o_req_t *req, h2o_ostream_t **slot)
{
    struct http *h = ((struct library_filter *)self)->http;
    if (h->replying) {
        h2o_setup_next_ostream(req, slot);
        return;
    }
    struct request *r = request_outside_pipeline(h, req);
    conn_linger(conn_of(req));
    struct library_error *error =
        (struct library_error *)h2o_add_ostream(req, sizeof(*error), slot);
    error->super.do_send = send_error_body;
    error->request = r;
    error->asked = false;
    r->state = error;
    error->waits = limit_charge(r, on_charged) == LIMIT_WAITS;
    if (!error->waits)
        make_response(error);
    h2o_setup_next_ostream(req, &error->super.next);
}

void library_errors_register(struct http *h, h2o_hostconf_t *host)
{
    struct library_filter *filter =
        (struct library_filter *)h2o_create_filter(&host->fallback_path, sizeof(*filter));
    filter->super.on_setup_ostream = on_library_error;
    filter->http = h;
}
