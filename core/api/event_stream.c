#include "core/api/event_stream.h"

#include "core/api/api_internal.h"
#include "core/api/render_widget_internal.h"
#include "core/api/widget_internal.h"
#include "core/http/cluster_reads.h"
#include "core/http/reply.h"
#include "core/http/session.h"
#include "core/conn/connection.h"
#include "core/auth/signing_keys.h"
#include "core/shm/typing_table.h"
#include "core/http/http.h"
#include "core/text/json_out.h"

#include <stdlib.h>

#define BUCKETS 4096
/* A part ends with the message that reaches either limit. The next part has the rest. */
#define PART_MESSAGES 20
#define PART_BYTES (32u << 10) /* of texts, before JSON escapes them */
#define TICK_MS 100
#define CHECK_US 2000 /* for checking tokens, per turn of the loop */

struct stream {
    h2o_generator_t generator;
    struct request *r;
    struct http *http;
    struct stream *prev, *next; /* in its bucket */
    struct ulid last;           /* the last message sent */
    struct buf out;             /* the part being sent */
    uint64_t heartbeat_at_ms;
    uint64_t keys_generation; /* of the signing keys with which its token was checked last */
    bool sending, pending;    /* pending: read the store again when the part is sent */
    bool ended, open;         /* open: it is in its bucket */
    bool expired; /* its token is invalid, or may be: end after the part that is being sent */
    bool closed, typing; /* as sent last, like the claim */
    uint64_t claim;      /* claim_hash */
};

struct streams {
    struct stream bucket[BUCKETS]; /* by conversation; heads of circular lists */
    size_t count;
    uint64_t tick_at_ms;
    uint64_t keys_generation; /* of the signing keys with which tokens are being checked */
    size_t checked_buckets;   /* the first ones, by these keys */
};

struct streams *streams_new(void)
{
    struct streams *s = calloc(1, sizeof(*s));
    for (size_t i = 0; s != NULL && i < BUCKETS; i++)
        s->bucket[i].prev = s->bucket[i].next = &s->bucket[i];
    return s;
}

void streams_free(struct streams *s)
{
    free(s);
}

uint32_t streams_count(const struct streams *s)
{
    return (uint32_t)s->count;
}

static struct stream *head_of(struct streams *s, const struct ulid *conversation)
{
    uint64_t high, low;
    ulid_halves(conversation, &high, &low);
    return &s->bucket[(low ^ low >> 32) % BUCKETS];
}

/* Runs when the memory of the request is freed. */
static void stream_dispose(void *arg)
{
    struct stream *st = arg;
    if (st->open) {
        st->prev->next = st->next;
        st->next->prev = st->prev;
        st->http->streams->count--;
    }
    buf_free(&st->out);
}

/* ---- reading ---- */

/* Identifies a claim by its operator and name. 0: not claimed. */
static uint64_t claim_hash(const struct store_conversation *c)
{
    uint64_t hash = api_hash(API_HASH_START, &c->claimed_by, sizeof(c->claimed_by));
    return c->claimed_by == 0 ? 0 : api_hash(hash, c->claimed_name.p, c->claimed_name.n) | 1;
}

static void put_claim(struct buf *out, const struct store_conversation *c)
{
    const struct str name = {c->claimed_name.n > 0 ? c->claimed_name.p : NULL, c->claimed_name.n};
    buf_adds(out, "event: claimed\ndata: {\"operator_name\":");
    json_text(out, name);
    buf_adds(out, "}\n\n");
}

/* A close also releases the claim, so no released event is sent with it. */
static void put_state(struct stream *st, const struct store_conversation *c)
{
    bool closed = c->closed_at != 0;
    uint64_t claim = claim_hash(c);
    bool typing = widget_is_typing(st->r, &c->id, TYPIST_OPERATOR);
    if (closed != st->closed)
        buf_adds(&st->out,
                 closed ? "event: closed\ndata: {}\n\n" : "event: reopened\ndata: {}\n\n");
    if (claim != 0 && claim != st->claim)
        put_claim(&st->out, c);
    if (claim == 0 && st->claim != 0 && !closed)
        buf_adds(&st->out, "event: released\ndata: {}\n\n");
    if (typing != st->typing)
        buf_adds(&st->out, typing ? "event: typing\ndata: {\"typing\":true}\n\n"
                                  : "event: typing\ndata: {\"typing\":false}\n\n");
    st->claim = claim;
    st->closed = closed;
    st->typing = typing;
}

static void put_message(void *arg, enum store_status status, const struct store_message *m)
{
    struct stream *st = arg;
    char id[ULID_TEXT];
    if (m == NULL) {
        st->pending = status == STORE_OK;
        st->ended = st->ended || (status != STORE_OK && status != STORE_NOT_FOUND);
        return;
    }
    st->last = m->id;
    ulid_text(&m->id, id);
    buf_adds(&st->out, "id: ");
    buf_add(&st->out, id, sizeof(id));
    buf_adds(&st->out, "\nevent: message\ndata: "); /* rendered JSON has no line breaks */
    render_message(m, &st->out);
    buf_adds(&st->out, "\n\n");
}

static void session_found(void *arg, enum store_status status, const struct store_agent *agent,
                          const struct store_conversation *c)
{
    struct stream *st = arg;
    if (status != STORE_OK || !session_allows(st->r, agent)) {
        /* deleted, or the agent does not allow this page */
        st->ended = true;
        return;
    }
    const struct store_conversation now = *c;
    struct store_messages_query q = {
        .conversation = c->id, .after = st->last, .limit = PART_MESSAGES, .bytes = PART_BYTES};
    if (memcmp(q.after.b, c->cleared.b, ULID_BYTES) < 0)
        q.after = c->cleared;
    if (memcmp(q.after.b, c->last.b, ULID_BYTES) < 0)
        store_message_each(st->r->store, &q, put_message, st);
    put_state(st, &now);
}

/* ---- sending ---- */

static void send_part(struct stream *st)
{
    h2o_iovec_t part = {st->out.p, st->out.n};
    st->sending = true;
    st->heartbeat_at_ms = st->r->http->loop->now_ms + CONN_HEARTBEAT_MS;
    st->r->sent_bytes += part.len;
    conn_response_memory(st->r->wait.conn, st->out.cap);
    reply_send(st->r, &part, part.len > 0 ? 1 : 0,
               st->ended ? H2O_SEND_STATE_FINAL : H2O_SEND_STATE_IN_PROGRESS);
}

/* Sends what is new. If a part is being sent, does so after it. */
static void pump(struct stream *st)
{
    const struct session *session = &st->r->session;
    st->pending = true;
    if (st->sending || st->ended)
        return;
    st->pending = false;
    store_session_get(st->r->store, &session->agent, &session->visitor, &session->conversation,
                      session_found, st);
    if (!buf_ok(&st->out))
        st->ended = true;
    if (st->out.n > 0 || st->ended)
        send_part(st);
}

/* Sends a fixed text. While a part is being sent, no heartbeat is needed. */
static void send_text(struct stream *st, const char *text)
{
    if (st->sending)
        return;
    buf_adds(&st->out, text);
    send_part(st);
}

static void end_one(struct stream *st)
{
    st->ended = !st->sending;
    send_text(st, "");
}

/* The client reconnects, to another worker. */
static void drain_one(struct stream *st)
{
    if (st->sending || st->ended)
        return;
    st->ended = true;
    st->r->h2o->http1_is_persistent = 0;
    send_text(st, "event: reconnect\ndata: {}\n\n");
}

static void on_proceed(h2o_generator_t *generator, h2o_req_t *req)
{
    struct stream *st = (struct stream *)generator;
    (void)req;
    st->sending = false;
    buf_free(&st->out);
    conn_response_memory(st->r->wait.conn, 0);
    if (st->expired && !st->ended)
        end_one(st);
    else if (st->http->loop->draining)
        drain_one(st);
    else if (st->pending && !st->ended) {
        pump(st);
        store_read_end(st->r->store);
    }
}

static void on_stop(h2o_generator_t *generator, h2o_req_t *req)
{
    (void)req;
    ((struct stream *)generator)->ended = true;
}

void stream_open(struct request *r, const struct ulid *last)
{
    struct http *h = r->http;
    struct stream *st = h2o_mem_alloc_shared(&r->h2o->pool, sizeof(*st), stream_dispose);
    *st = (struct stream){.generator = {on_proceed, on_stop},
                          .r = r,
                          .http = h,
                          .last = *last,
                          .keys_generation = signing_keys_generation(h->keys)};
    reply_header(r, "cache-control", STR("no-store"));
    reply_header(r, "x-accel-buffering", STR("no")); /* nginx must not buffer parts */
    if (r->is_head || h->loop->draining) {
        reply_parts(r, 200, "text/event-stream", &STR("event: reconnect\ndata: {}\n\n"), 1);
        return;
    }
    struct stream *head = head_of(h->streams, &r->session.conversation);
    st->prev = head->prev;
    st->next = head;
    st->prev->next = st->next->prev = st;
    st->open = true;
    h->streams->count++;
    r->wait.conn->streaming = true;
    reply_begin(r, 200, "text/event-stream", SIZE_MAX, &st->generator);
    buf_adds(&st->out, ": here\n\n"); /* makes proxies pass on the head of the response at once */
    pump(st);
}

/* ---- events that wake streams ---- */

typedef void stream_fn(struct stream *st);

static void for_each(struct http *h, stream_fn *fn)
{
    for (size_t i = 0; h->streams->count > 0 && i < BUCKETS; i++)
        for (struct stream *st = h->streams->bucket[i].next, *next; st != &h->streams->bucket[i];
             st = next) {
            next = st->next;
            fn(st);
        }
    store_read_end(h->loop->store);
}

static void wake(struct http *h, const struct ulid *conversation)
{
    struct stream *head = head_of(h->streams, conversation);
    for (struct stream *st = head->next, *next; st != head; st = next) {
        next = st->next;
        if (ulid_eq(&st->r->session.conversation, conversation))
            pump(st);
    }
    store_read_end(h->loop->store);
}

void streams_on_event(struct http *h, const struct store_event *e)
{
    const struct ulid id = ulid_of_halves(e->id, e->value);
    if (h->streams->count == 0)
        return;
    if (e->kind == EVENT_CONVERSATION)
        wake(h, &id);
    else if (e->kind == EVENT_AGENT_CHANGED || e->kind == EVENT_WORKSPACE_DELETED ||
             e->kind == EVENT_FEED_BEGINS)
        for_each(h, pump);
}

static void tick_one(struct stream *st)
{
    struct http *h = st->r->http;
    const struct session *session = &st->r->session;
    if (st->ended)
        return;
    st->expired = st->expired || cluster_reads_are_stale(h) ||
                  session->expires_at <= (int64_t)h2o_now(h->loop->ctx.loop);
    if (st->expired)
        end_one(st);
    else if (widget_is_typing(st->r, &session->conversation, TYPIST_OPERATOR) != st->typing)
        pump(st);
    else if (h->loop->now_ms >= st->heartbeat_at_ms)
        send_text(st, ":\n\n");
}

/* Tokens signed with a removed key are invalid. */
static void check_token(struct stream *st)
{
    st->keys_generation = st->http->streams->keys_generation;
    st->expired = st->expired || !session_signed(st->r, (int64_t)h2o_now(st->http->loop->ctx.loop));
    if (st->expired && !st->ended)
        end_one(st);
}

/* False: ${until_us} was reached first. */
static bool check_bucket_tokens(struct streams *s, struct stream *head, uint64_t until_us)
{
    for (struct stream *st = head->next, *next; st != head; st = next) {
        next = st->next;
        if (st->keys_generation == s->keys_generation)
            continue;
        if (clock_mono_us() >= until_us)
            return false;
        check_token(st);
    }
    return true;
}

/* Checks tokens for up to CHECK_US. The next turns of the loop check the rest. */
static void check_tokens(struct http *h)
{
    struct streams *s = h->streams;
    uint64_t until_us = clock_mono_us() + CHECK_US;
    if (s->keys_generation != signing_keys_generation(h->keys)) {
        s->keys_generation = signing_keys_generation(h->keys);
        s->checked_buckets = 0;
    }
    while (s->checked_buckets < BUCKETS &&
           check_bucket_tokens(s, &s->bucket[s->checked_buckets], until_us))
        s->checked_buckets++;
}

int streams_wait_ms(const struct http *h, int most)
{
    return h->streams->count > 0 && h->streams->checked_buckets < BUCKETS ? 0 : most;
}

void streams_tick(struct http *h)
{
    if (h->streams->count > 0)
        check_tokens(h);
    if (h->streams->count == 0 || h->loop->now_ms < h->streams->tick_at_ms)
        return;
    h->streams->tick_at_ms = h->loop->now_ms + TICK_MS;
    for_each(h, tick_one);
}

void streams_drain(struct http *h)
{
    for_each(h, drain_one);
}
