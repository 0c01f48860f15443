#include "core/http/steps.h"

#include "core/http/access_log.h"
#include "core/http/cors_request.h"
#include "core/http/limit.h"
#include "core/http/pipeline.h"
#include "core/http/reply.h"
#include "core/conn/acceptor.h"

struct library_filter {
    h2o_filter_t super;
    struct http *http;
};
struct library_answer {
    h2o_ostream_t super;
    h2o_iovec_t body;
};

static void send_ours(h2o_ostream_t *self, h2o_req_t *req, h2o_iovec_t *bufs, size_t count, h2o_send_state_t state)
{
    struct library_answer *answer = (struct library_answer *)self;
    (void)bufs;
    (void)count;
    h2o_ostream_send_next(self, req, &answer->body, h2o_memis(req->input.method.base, req->input.method.len, H2O_STRLIT("HEAD")) ? 0 : 1,
                          state);
}

/* a request that never was in the pipeline: what the limiter needs of it */
static struct request *stranger(struct http *h, h2o_req_t *req)
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

/* errors before any handler (413, 417, a broken chunk) in the contract's shape */
static void on_library_answer(h2o_filter_t *self, h2o_req_t *req, h2o_ostream_t **slot)
{
    struct http *h = ((struct library_filter *)self)->http;
    if (h->replying) {
        h2o_setup_next_ostream(req, slot);
        return;
    }
    struct request *r = stranger(h, req);
    conn_linger(conn_of(req));
    bool admitted = limit_charge(r);
    struct buf body = {0};
    enum err err = admitted ? err_of_status(req->res.status) : ERR_RATE_LIMITED;
    if (!admitted) {
        req->res.status = err_row(err)->status;
        req->res.reason = err_row(err)->reason;
    }
    error_body(&body, err, err_row(err)->message);
    struct library_answer *answer = (struct library_answer *)h2o_add_ostream(req, sizeof(*answer), slot);
    answer->body = h2o_strdup(&req->pool, body.p, body.n);
    buf_free(&body);
    answer->super.do_send = send_ours;
    req->res.headers.size = 0;
    req->res.content_length = answer->body.len;
    struct str id = r->id = pipeline_request_id(h, req);
    r->status = req->res.status;
    r->sent_bytes = answer->body.len;
    r->answered_us = r->started_us;
    access_log_add(h->access_log, r, 0);
    h2o_add_header(&req->pool, &req->res.headers, H2O_TOKEN_CONTENT_TYPE, NULL, H2O_STRLIT("application/json"));
    h2o_add_header_by_str(&req->pool, &req->res.headers, H2O_STRLIT("x-request-id"), 0, NULL, id.p, id.n);
    reply_safety_headers(r);
    limit_headers(r);
    cors_headers(r);
    h2o_setup_next_ostream(req, &answer->super.next);
}

void library_answers_register(struct http *h, h2o_hostconf_t *host)
{
    struct library_filter *filter = (struct library_filter *)h2o_create_filter(&host->fallback_path, sizeof(*filter));
    filter->super.on_setup_ostream = on_library_answer;
    filter->http = h;
}
