#include "core/api/event_stream.h"
#include "core/api/render_widget.h"

#include "core/http/reply.h"
#include "core/http/session.h"
#include "core/conn/connection.h"
#include "core/process/process.h"
#include "core/auth/signing_keys.h"
#include "core/shm/typing_table.h"
#include "core/http/http.h"
#include "core/text/json_out.h"

#include <stdlib.h>

#define BUCKETS 4096
/* of one part, which ends with the message that reaches either; what is left comes with the next */
#define PART_MESSAGES 20
#define PART_BYTES (32u << 10) /* of their texts, before JSON escapes them */
#define TICK_MS 100
#define JUDGE_US 2000 /* for looking at tokens, a turn of the loop */

struct stream {
    h2o_generator_t generator;
    struct request *r;
    struct http *http;
    struct stream *prev, *next; /* of its bucket */
    struct ulid last;           /* message told last */
    struct buf out;             /* on its way; empty while nothing is */
    uint64_t beat_at_ms;
    uint64_t secrets; /* the generation that its token was looked at with */
    bool sending, again /* something may have come meanwhile */, ended, open;
    bool over;                    /* its token is: it ends once the part on its way is taken */
    bool closed, typing; /* as told */
    uint64_t claim;      /* likewise; 0: nobody has it */
};

struct streams {
    struct stream bucket[BUCKETS]; /* heads of rings */
    size_t count;
    uint64_t tick_at_ms, typing_seen;
    uint64_t secrets; /* the generation that tokens are looked at with, */
    size_t judged;    /* and so many buckets were, from the first on */
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

uint32_t streams_open(const struct streams *s)
{
    return (uint32_t)s->count;
}

static struct stream *head_of(struct streams *s, const struct ulid *conversation)
{
    uint64_t high, low;
    ulid_halves(conversation, &high, &low);
    return &s->bucket[(low ^ low >> 32) % BUCKETS];
}

/* with the request's memory */
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

/* ---- what is to be told ---- */

static uint64_t fnv(uint64_t hash, const void *p, size_t n)
{
    for (size_t i = 0; i < n; i++)
        hash = (hash ^ ((const uint8_t *)p)[i]) * UINT64_C(0x100000001b3);
    return hash;
}

/* Tells one claim from another: by whom, and under which name. */
static uint64_t claim_of(const struct store_conversation *c)
{
    uint64_t hash = fnv(UINT64_C(0xcbf29ce484222325), &c->claimed_by, sizeof(c->claimed_by));
    return c->claimed_by == 0 ? 0 : fnv(hash, c->claimed_name.p, c->claimed_name.n) | 1;
}

static void put_claim(struct buf *out, const struct store_conversation *c)
{
    const struct str name = {c->claimed_name.n > 0 ? c->claimed_name.p : NULL, c->claimed_name.n};
    buf_adds(out, "event: claimed\ndata: {\"operator_name\":");
    json_text(out, name);
    buf_adds(out, "}\n\n");
}

/* The close tells of the release that comes with it. */
static void put_state(struct stream *st, const struct store_conversation *c)
{
    bool closed = c->closed_at != 0;
    uint64_t claim = claim_of(c);
    bool typing = typing_table_is_typing(st->r->http->loop->process->typing, &c->id, TYPIST_OPERATOR, st->r->http->loop->now_ms);
    if (closed != st->closed)
        buf_adds(&st->out, closed ? "event: closed\ndata: {}\n\n" : "event: reopened\ndata: {}\n\n");
    if (claim != 0 && claim != st->claim)
        put_claim(&st->out, c);
    if (claim == 0 && st->claim != 0 && !closed)
        buf_adds(&st->out, "event: released\ndata: {}\n\n");
    if (typing != st->typing)
        buf_adds(&st->out, typing ? "event: typing\ndata: {\"typing\":true}\n\n" : "event: typing\ndata: {\"typing\":false}\n\n");
    st->claim = claim;
    st->closed = closed;
    st->typing = typing;
}

static void put_message(void *arg, enum store_status status, const struct store_message *m)
{
    struct stream *st = arg;
    char id[ULID_TEXT];
    if (m == NULL) {
        st->again = status == STORE_OK;
        st->ended = st->ended || (status != STORE_OK && status != STORE_NOT_FOUND);
        return;
    }
    st->last = m->id;
    ulid_text(&m->id, id);
    buf_adds(&st->out, "id: ");
    buf_add(&st->out, id, sizeof(id));
    buf_adds(&st->out, "\nevent: message\ndata: "); /* JSON as it is rendered has no line breaks */
    render_message(m, &st->out);
    buf_adds(&st->out, "\n\n");
}

static void gather(void *arg, enum store_status status, const struct store_agent *agent, const struct store_conversation *c)
{
    struct stream *st = arg;
    if (status != STORE_OK || !session_allows(st->r, agent)) {
        st->ended = true; /* the visitor, the agent or the workspace is gone, or the agent is not for this page any more */
        return;
    }
    const struct store_conversation now = *c;
    struct store_messages_query q = {.conversation = c->id, .after = st->last, .limit = PART_MESSAGES, .bytes = PART_BYTES};
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
    st->beat_at_ms = st->r->http->loop->now_ms + CONN_HEARTBEAT_MS;
    st->r->sent_bytes += part.len;
    conn_response_memory(st->r->wait.conn, st->out.cap);
    reply_send(st->r, &part, part.len > 0 ? 1 : 0, st->ended ? H2O_SEND_STATE_FINAL : H2O_SEND_STATE_IN_PROGRESS);
}

/* Look what there is, and send it; where a part is on its way, look again when it is taken. */
static void pump(struct stream *st)
{
    const struct session *session = &st->r->session;
    st->again = true;
    if (st->sending || st->ended)
        return;
    st->again = false;
    store_session_get(st->r->store, &session->agent, &session->visitor, &session->conversation, gather, st);
    if (!buf_ok(&st->out))
        st->ended = true;
    if (st->out.n > 0 || st->ended)
        send_part(st);
}

/* what nobody has to look up; a reader with a part on its way needs no heartbeat */
static void say(struct stream *st, const char *text)
{
    if (st->sending)
        return;
    buf_adds(&st->out, text);
    send_part(st);
}

static void end_one(struct stream *st)
{
    st->ended = !st->sending;
    say(st, "");
}

/* whoever comes again finds another worker */
static void drain_one(struct stream *st)
{
    if (st->sending || st->ended)
        return;
    st->ended = true;
    st->r->h2o->http1_is_persistent = 0;
    say(st, "event: reconnect\ndata: {}\n\n");
}

static void on_proceed(h2o_generator_t *generator, h2o_req_t *req)
{
    struct stream *st = (struct stream *)generator;
    (void)req;
    st->sending = false;
    buf_free(&st->out);
    conn_response_memory(st->r->wait.conn, 0);
    if (st->over && !st->ended)
        end_one(st);
    else if (st->http->loop->draining)
        drain_one(st);
    else if (st->again && !st->ended) {
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
    *st = (struct stream){.generator = {on_proceed, on_stop}, .r = r, .http = h, .last = *last, .secrets = signing_keys_generation(h->keys)};
    reply_header(r, "cache-control", STR("no-store"));
    reply_header(r, "x-accel-buffering", STR("no")); /* proxies hold back no part */
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
    buf_adds(&st->out, ": here\n\n"); /* so that the client has the head, whatever is between */
    pump(st);
}

/* ---- what wakes them ---- */

typedef void each_fn(struct stream *st);

static void each_of(struct http *h, each_fn *fn)
{
    for (size_t i = 0; h->streams->count > 0 && i < BUCKETS; i++)
        for (struct stream *st = h->streams->bucket[i].next, *next; st != &h->streams->bucket[i]; st = next) {
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

void streams_event(struct http *h, const struct store_event *e)
{
    const struct ulid id = ulid_of_halves(e->id, e->value);
    if (h->streams->count == 0)
        return;
    if (e->kind == EVENT_CONVERSATION)
        wake(h, &id);
    else if (e->kind == EVENT_AGENT_CHANGED || e->kind == EVENT_WORKSPACE_DELETED || e->kind == EVENT_FEED_BEGINS)
        each_of(h, pump);
}

static void tick_one(struct stream *st)
{
    struct http *h = st->r->http;
    const struct session *session = &st->r->session;
    if (st->ended)
        return;
    st->over = st->over || session->expires_at <= (int64_t)h2o_now(h->loop->ctx.loop);
    if (st->over)
        end_one(st);
    else if (typing_table_is_typing(h->loop->process->typing, &session->conversation, TYPIST_OPERATOR, h->loop->now_ms) != st->typing)
        pump(st);
    else if (h->loop->now_ms >= st->beat_at_ms)
        say(st, ":\n\n");
}

/* a secret that is gone takes the tokens with it that it signed */
static void judge_one(struct stream *st)
{
    st->secrets = st->http->streams->secrets;
    st->over = st->over || !session_signed(st->r, (int64_t)h2o_now(st->http->loop->ctx.loop));
    if (st->over && !st->ended)
        end_one(st);
}

/* False: ${until_us} came first. */
static bool judge_bucket(struct streams *s, struct stream *head, uint64_t until_us)
{
    for (struct stream *st = head->next, *next; st != head; st = next) {
        next = st->next;
        if (st->secrets == s->secrets)
            continue;
        if (clock_mono_us() >= until_us)
            return false;
        judge_one(st);
    }
    return true;
}

/* as many as a turn of the loop may take; the others in those that follow at once */
static void judge_some(struct http *h)
{
    struct streams *s = h->streams;
    uint64_t until_us = clock_mono_us() + JUDGE_US;
    if (s->secrets != signing_keys_generation(h->keys)) {
        s->secrets = signing_keys_generation(h->keys);
        s->judged = 0;
    }
    while (s->judged < BUCKETS && judge_bucket(s, &s->bucket[s->judged], until_us))
        s->judged++;
}

int streams_wait_ms(const struct http *h, int most)
{
    return h->streams->count > 0 && h->streams->judged < BUCKETS ? 0 : most;
}

void streams_tick(struct http *h)
{
    if (h->streams->count > 0)
        judge_some(h);
    if (h->streams->count == 0 || h->loop->now_ms < h->streams->tick_at_ms)
        return;
    h->streams->tick_at_ms = h->loop->now_ms + TICK_MS;
    each_of(h, tick_one);
}

void streams_drain(struct http *h)
{
    each_of(h, drain_one);
}
