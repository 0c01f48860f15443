/* Responses made in chunks, as fast as the client takes them: reply_chunked. */
#include "core/http/reply_internal.h"
#include "core/http/reply.h"

#include "core/conn/connection.h"

struct chunked_response {
    h2o_generator_t generator;
    struct request *r;
    reply_more_fn *more;
    struct buf out; /* the chunk being sent */
    size_t left;    /* bytes of the body after it */
};

static void chunks_dispose(void *arg)
{
    buf_free(&((struct chunked_response *)arg)->out);
}

static void send_next(struct chunked_response *c)
{
    struct request *r = c->r;
    buf_reset(&c->out);
    bool good = c->more(r, &c->out) && buf_ok(&c->out) && c->out.n > 0 && c->out.n <= c->left;
    store_read_end(r->store);
    if (!good) {
        reply_send(r, NULL, 0, H2O_SEND_STATE_ERROR);
        return;
    }
    c->left -= c->out.n;
    conn_response_memory(r->wait.conn, c->out.cap);
    h2o_iovec_t part = {c->out.p, c->out.n};
    reply_send(r, &part, 1, c->left == 0 ? H2O_SEND_STATE_FINAL : H2O_SEND_STATE_IN_PROGRESS);
}

static void on_proceed(h2o_generator_t *generator, h2o_req_t *req)
{
    (void)req;
    send_next((struct chunked_response *)generator);
}

void reply_chunked(struct request *r, int status, size_t length, reply_more_fn *more)
{
    struct chunked_response *c = h2o_mem_alloc_shared(&r->h2o->pool, sizeof(*c), chunks_dispose);
    *c = (struct chunked_response){
        .generator = {on_proceed, NULL}, .r = r, .more = more, .left = length};
    reply_begin(r, status, "application/json", length, &c->generator);
    if (r->is_head)
        reply_send(r, NULL, 0, H2O_SEND_STATE_FINAL);
    else
        send_next(c);
}
