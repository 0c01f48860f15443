#include "core/writer/relays.h"

#include "core/base/log.h"
#include "core/writer/grow.h"

#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#define LOG_MS 5000   /* between two lines about lost connections */
#define RETRY_MS 1000 /* until an auditor without jobs, or notices, get another relay */

enum relay_of { RELAY_OF_SENDER, RELAY_OF_AUDITOR, RELAY_OF_NOTICES };

struct relay {
    enum relay_of of;
    struct client *client; /* the local sender or auditor; NULL: it is gone, or there is none */
    struct channel channel;
    char leader[NODE_TEXT]; /* its address */
    uint64_t connected_ms;
    bool blocked; /* the socket is full */
    bool lost;
    /* of an auditor */
    bool has_jobs;      /* it was given one */
    bool ends;          /* it is gone; until the leader knows */
    uint64_t told_ms;   /* when the leader was last told that this node lives */
    struct buf answers; /* struct deferred_answer, oldest first */
};

/* An answer whose entry this node has not applied. */
struct deferred_answer {
    uint64_t change, entry; /* sequences */
    struct store_answer answer;
};

bool relays_watch(struct relays *r, int epoll)
{
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = &r->ready};
    r->epoll = -1;
    if (r->leading->thread == NULL)
        return true;
    r->epoll = epoll_create1(EPOLL_CLOEXEC);
    return r->epoll >= 0 && epoll_ctl(epoll, EPOLL_CTL_ADD, r->epoll, &event) == 0;
}

static void relay_free(struct relay *relay)
{
    channel_close(&relay->channel);
    buf_free(&relay->answers);
    free(relay);
}

void relays_free(struct relays *r)
{
    for (size_t i = 0; i < r->count; i++)
        relay_free(r->list[i]);
    free(r->list);
    if (r->epoll >= 0)
        close(r->epoll);
}

/* ---- the connection ---- */

static void detach(struct relay *relay)
{
    if (relay->client != NULL)
        relay->client->relay = NULL;
    relay->client = NULL;
}

/* A sender repeats what was not answered. An auditor without jobs needs not be disconnected. */
static void lose(struct relays *r, struct relay *relay, const char *why)
{
    const uint64_t now = clock_mono_ms();
    struct client *client = relay->client;
    relay->lost = true;
    if (relay == r->notices) {
        r->notices = NULL;
        r->retry_ms = now + RETRY_MS;
    }
    if (client != NULL && relay->of == RELAY_OF_AUDITOR && !relay->has_jobs) {
        client->retry_ms = now + RETRY_MS;
        detach(relay);
    } else if (client != NULL) {
        client->gone = true;
    }
    if (why[0] == '\0' || now < r->logged_ms + LOG_MS)
        return;
    r->logged_ms = now;
    log_warn("the cluster: no connection to the leader at %s: %s", relay->leader, why);
}

static bool watch(const struct relays *r, struct relay *relay, int op)
{
    struct epoll_event event = {.events = EPOLLIN | (relay->blocked ? EPOLLOUT : 0),
                                .data.ptr = relay};
    return epoll_ctl(r->epoll, op, relay->channel.fd, &event) == 0;
}

static void flush(struct relays *r, struct relay *relay)
{
    int left = channel_flush(&relay->channel);
    if (left < 0) {
        lose(r, relay, channel_tls_why(&relay->channel));
    } else if (relay->blocked != (left == 1)) {
        relay->blocked = left == 1;
        watch(r, relay, EPOLL_CTL_MOD);
    }
}

static void send_first_frame(const struct relays *r, struct relay *relay)
{
    if (relay->of == RELAY_OF_AUDITOR)
        channel_put(&relay->channel, FRAME_AUDITOR, r->process->conf->audit_concurrency, 0,
                    (struct str){0});
    else if (relay->of == RELAY_OF_NOTICES)
        channel_put(&relay->channel, FRAME_NOTICES, 0, 0, (struct str){0});
    else
        channel_put(
            &relay->channel, FRAME_HELLO, relay->client->id, 0,
            (struct str){(const char *)&relay->client->repeats, sizeof(relay->client->repeats)});
}

static enum relay_of kind_of(const struct client *client)
{
    return client == NULL                 ? RELAY_OF_NOTICES
           : client->role == ROLE_AUDITOR ? RELAY_OF_AUDITOR
                                          : RELAY_OF_SENDER;
}

/* ${client} NULL: of typing notices. */
static struct relay *relay_new(struct relays *r, struct client *client)
{
    char why[256];
    struct relay *relay = calloc(1, sizeof(*relay));
    if (relay == NULL)
        return NULL;
    relay->client = client;
    relay->of = kind_of(client);
    relay->connected_ms = relay->told_ms = clock_mono_ms();
    snprintf(relay->leader, sizeof(relay->leader), "%s", r->leading->leader);
    r->list = array_grow(r->list, r->count, &r->capacity, sizeof(*r->list));
    r->list[r->count++] = relay;
    if (client != NULL)
        client->relay = relay;
    else
        r->notices = relay;
    if (!channel_tls_connect(r->nodes->tls, &relay->channel, relay->leader, why, sizeof(why))) {
        lose(r, relay, why);
        return relay;
    }
    relay->blocked = true; /* until it is connected */
    if (!watch(r, relay, EPOLL_CTL_ADD))
        lose(r, relay, "no descriptor can be watched");
    send_first_frame(r, relay);
    return relay;
}

bool relays_put(struct relays *r, struct client *client, const struct frame *frame)
{
    struct relay *relay = client->relay;
    if (r->leading->leader[0] == '\0')
        return false;
    if (relay == NULL)
        relay = relay_new(r, client);
    if (relay == NULL || relay->lost)
        client->gone = true;
    else
        channel_put(&relay->channel, (enum frame_type)frame->head.type, frame->head.a,
                    frame->head.b, frame->payload);
    return true;
}

/* ---- answers ---- */

static void pass_on(struct relays *r, struct relay *relay)
{
    const struct deferred_answer *list = (const void *)relay->answers.p;
    size_t count = relay->answers.n / sizeof(*list), due = 0;
    for (; due < count && list[due].entry <= r->leading->position.sequence; due++)
        client_answer(relay->client, list[due].change, list[due].entry, &list[due].answer);
    if (due == 0)
        return;
    relay->answers.n -= due * sizeof(*list);
    memmove(relay->answers.p, relay->answers.p + due * sizeof(*list), relay->answers.n);
}

static void hold(struct relays *r, struct relay *relay, const struct frame *f)
{
    struct deferred_answer deferred = {.change = f->head.a, .entry = f->head.b};
    if (f->payload.n != sizeof(deferred.answer) ||
        relay->answers.n >= CHANNEL_WINDOW * sizeof(deferred)) {
        lose(r, relay, "it sent an invalid frame");
        return;
    }
    memcpy(&deferred.answer, f->payload.p, sizeof(deferred.answer));
    buf_add(&relay->answers, &deferred, sizeof(deferred));
    if (!buf_ok(&relay->answers))
        lose(r, relay, "out of memory");
    if (deferred.entry > r->leading->position.sequence)
        log_thread_wake(r->leading->thread);
}

/* ---- auditors ---- */

void relays_pass(struct client *client, const struct frame *frame)
{
    client->draining =
        client->draining || (frame->head.type == FRAME_RETURNED && frame->head.a == 0);
    channel_put(&client->relay->channel, (enum frame_type)frame->head.type, frame->head.a,
                frame->head.b, frame->payload);
}

static void on_frame_for_auditor(struct relays *r, struct relay *relay, const struct frame *f)
{
    const uint32_t type = f->head.type;
    if (relay->client == NULL ||
        (type != FRAME_JOB && type != FRAME_WITHDRAW && type != FRAME_SLOT))
        return;
    relay->has_jobs = relay->has_jobs || type == FRAME_JOB;
    channel_put(&relay->client->channel, (enum frame_type)type, f->head.a, f->head.b, f->payload);
    client_flush(r->clients, relay->client); /* before the commit of this turn */
}

static bool wants_relay(const struct client *client, uint64_t now)
{
    return client->role == ROLE_AUDITOR && client->has_hello && !client->remote && !client->gone &&
           !client->draining && client->relay == NULL && now >= client->retry_ms;
}

static void connect_auditors(struct relays *r)
{
    const uint64_t now = clock_mono_ms();
    if (r->leading->leader[0] == '\0')
        return;
    for (size_t i = 0; i < r->clients->count; i++)
        if (wants_relay(r->clients->list[i], now))
            relay_new(r, r->clients->list[i]);
}

/* The leader takes an auditor for lost of whose node it hears nothing. */
static void tell(struct relays *r, struct relay *relay)
{
    const uint64_t now = clock_mono_ms();
    if (relay->client == NULL || relay->of != RELAY_OF_AUDITOR ||
        now < relay->told_ms + CHANNEL_AUDITOR_MS)
        return;
    relay->told_ms = now;
    send_first_frame(r, relay);
}

/* The auditor is gone: the leader is told why, and closes the connection. */
static void end_auditor(struct relays *r, struct relay *relay)
{
    const bool died = !relay->client->draining;
    relay->ends = !relay->lost && channel_tls_is_established(&relay->channel);
    detach(relay);
    if (!relay->ends)
        return;
    channel_put(&relay->channel, FRAME_ENDED, died, 0, (struct str){0});
    flush(r, relay);
}

/* ---- typing notices ---- */

static void connect_notices(struct relays *r)
{
    if (r->leading->leader[0] != '\0' && r->notices == NULL && clock_mono_ms() >= r->retry_ms)
        relay_new(r, NULL);
}

void relays_tell(struct relays *r, const struct typing_notice *notice)
{
    if (r->notices != NULL && channel_tls_is_established(&r->notices->channel))
        typing_notice_put(&r->notices->channel, notice);
}

static void on_notice(struct relays *r, struct relay *relay, const struct frame *f)
{
    struct typing_notice notice;
    if (f->head.type == FRAME_TYPING && typing_notice_get(f, &notice))
        typing_notices_show(r->process, &notice, clock_mono_ms());
    else
        lose(r, relay, "it sent an invalid frame");
}

/* ---- the turn ---- */

static void receive(struct relays *r, struct relay *relay)
{
    struct frame f;
    int got = channel_read(&relay->channel), next;
    while ((next = channel_next(&relay->channel, &f)) == 1)
        if (relay->of == RELAY_OF_NOTICES)
            on_notice(r, relay, &f);
        else if (f.head.type == FRAME_ANSWER && relay->of == RELAY_OF_SENDER)
            hold(r, relay, &f); /* events follow from the entries */
        else
            on_frame_for_auditor(r, relay, &f);
    if (got < 0 || next < 0)
        lose(r, relay, channel_tls_why(&relay->channel));
}

static void read_ready(struct relays *r)
{
    struct epoll_event events[64];
    int n = epoll_wait(r->epoll, events, 64, 0);
    r->ready = false;
    for (int i = 0; i < n; i++) {
        struct relay *relay = events[i].data.ptr;
        if (!relay->lost)
            receive(r, relay);
        if (!relay->lost)
            flush(r, relay);
    }
}

/* Another node leads, or the handshake takes too long. */
static bool is_obsolete(const struct relays *r, const struct relay *relay)
{
    return strcmp(relay->leader, r->leading->leader) != 0 ||
           (!channel_tls_is_established(&relay->channel) &&
            clock_mono_ms() - relay->connected_ms > CHANNEL_TLS_HANDSHAKE_MS);
}

void relays_step(struct relays *r)
{
    if (r->ready)
        read_ready(r);
    connect_auditors(r);
    connect_notices(r);
    for (size_t i = 0; i < r->count; i++) {
        struct relay *relay = r->list[i];
        if (relay->client != NULL && !relay->client->gone)
            pass_on(r, relay);
        if (!relay->lost && is_obsolete(r, relay))
            lose(r, relay, "");
        tell(r, relay);
        if (!relay->lost && !relay->blocked && channel_pending(&relay->channel) > 0)
            flush(r, relay);
    }
}

static bool is_over(const struct relay *relay)
{
    if (relay->client != NULL)
        return relay->client->gone;
    return relay->lost || (relay->of != RELAY_OF_NOTICES && !relay->ends);
}

void relays_remove_gone(struct relays *r)
{
    for (size_t i = 0; i < r->count;) {
        struct relay *relay = r->list[i];
        if (relay->client != NULL && relay->client->gone && relay->of == RELAY_OF_AUDITOR)
            end_auditor(r, relay);
        if (is_over(relay)) {
            detach(relay);
            relay_free(relay);
            r->list[i] = r->list[--r->count];
        } else {
            i++;
        }
    }
}
