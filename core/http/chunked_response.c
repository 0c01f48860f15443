/* Answers that are made while their clients take them. See request.h. */
#include "core/http/reply.h"

#include "core/conn/acceptor.h"

struct pieces {
    h2o_generator_t generator;
    struct request *r;
    reply_more_fn *more;
    struct buf out; /* on its way */
    size_t left;    /* bytes of the body behind it */
};

/* with the request's memory */
static void chunks_dispose(void *arg)
{
    buf_free(&((struct pieces *)arg)->out);
}

static void send_next(struct pieces *p)
{
    struct request *r = p->r;
    buf_reset(&p->out);
    bool good = p->more(r, &p->out) && buf_ok(&p->out) && p->out.n > 0 && p->out.n <= p->left;
    store_read_end(r->store);
    if (!good) {
        reply_send(r, NULL, 0, H2O_SEND_STATE_ERROR);
        return;
    }
    p->left -= p->out.n;
    conn_hold(r->wait.conn, p->out.cap);
    h2o_iovec_t part = {p->out.p, p->out.n};
    reply_send(r, &part, 1, p->left == 0 ? H2O_SEND_STATE_FINAL : H2O_SEND_STATE_IN_PROGRESS);
}

static void on_proceed(h2o_generator_t *generator, h2o_req_t *req)
{
    (void)req;
    send_next((struct pieces *)generator);
}

void reply_chunked(struct request *r, int status, size_t length, reply_more_fn *more)
{
    struct pieces *p = h2o_mem_alloc_shared(&r->h2o->pool, sizeof(*p), chunks_dispose);
    *p = (struct pieces){.generator = {on_proceed, NULL}, .r = r, .more = more, .left = length};
    reply_begin(r, status, "application/json", length, &p->generator);
    if (r->is_head)
        reply_send(r, NULL, 0, H2O_SEND_STATE_FINAL);
    else
        send_next(p);
}
