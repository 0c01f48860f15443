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
    h2o_iovec_t body;
};

static void send_error_body(h2o_ostream_t *self, h2o_req_t *req, h2o_iovec_t *bufs, size_t count,
                            h2o_send_state_t state)
{
    struct library_error *error = (struct library_error *)self;
    (void)bufs;
    (void)count;
    h2o_ostream_send_next(
        self, req, &error->body,
        h2o_memis(req->input.method.base, req->input.method.len, H2O_STRLIT("HEAD")) ? 0 : 1,
        state);
}

/* What the limiter and the log need of a request that never was in the pipeline. */
static struct request *request_outside_pipeline(struct http *h, h2o_req_t *req)
{
    struct request *r = h2o_mem_alloc_pool(&req->pool, sizeof(*r));
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

static void on_library_error(h2o_filter_t *self, h2o_req_t *req, h2o_ostream_t **slot)
{
    struct http *h = ((struct library_filter *)self)->http;
    if (h->replying) {
        h2o_setup_next_ostream(req, slot);
        return;
    }
    struct request *r = request_outside_pipeline(h, req);
    conn_linger(conn_of(req));
    bool admitted = limit_charge(r);
    struct buf body = {0};
    enum err code = admitted ? err_of_status(req->res.status) : ERR_RATE_LIMITED;
    if (!admitted) {
        req->res.status = err_row(code)->status;
        req->res.reason = err_row(code)->reason;
    }
    error_body(&body, code, err_row(code)->message);
    struct library_error *error =
        (struct library_error *)h2o_add_ostream(req, sizeof(*error), slot);
    error->body = h2o_strdup(&req->pool, body.p, body.n);
    buf_free(&body);
    error->super.do_send = send_error_body;
    req->res.headers.size = 0;
    req->res.content_length = error->body.len;
    struct str id = r->id = request_id_of(h, req);
    r->status = req->res.status;
    r->sent_bytes = error->body.len;
    r->answered_us = r->started_us;
    access_log_add(h->access_log, r, 0);
    h2o_add_header(&req->pool, &req->res.headers, H2O_TOKEN_CONTENT_TYPE, NULL,
                   H2O_STRLIT("application/json"));
    h2o_add_header_by_str(&req->pool, &req->res.headers, H2O_STRLIT("x-request-id"), 0, NULL, id.p,
                          id.n);
    reply_security_headers(r);
    limit_headers(r);
    cors_headers(r);
    h2o_setup_next_ostream(req, &error->super.next);
}

void library_errors_register(struct http *h, h2o_hostconf_t *host)
{
    struct library_filter *filter =
        (struct library_filter *)h2o_create_filter(&host->fallback_path, sizeof(*filter));
    filter->super.on_setup_ostream = on_library_error;
    filter->http = h;
}
