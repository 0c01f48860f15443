#include "t/kit/log_double.h"

#include "t/kit/wait.h"

#include "core/shm/scoreboard.h"

#include <check.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

static struct {
    struct cluster_log log;
    pthread_mutex_t lock;
    pthread_cond_t released;
    struct cluster_log_head head; /* its lease_ms is unused */
    int64_t lease_until;
    int64_t ahead_ms; /* the clock of the log */
    uint64_t first;
    struct cluster_log_entry entries[LOG_DOUBLE_ENTRIES + 1];
    struct {
        unsigned calls, failures, waiting;
        enum cluster_log_status status;
        bool holds;
    } kinds[CALL_KINDS];
    bool appends_too, taken;
    struct cluster_log_node node, other, stopped;
    unsigned notes, stops;
} d;

/* A call begins, with the lock. */
static enum cluster_log_status enter(enum log_double_call call)
{
    pthread_mutex_lock(&d.lock);
    d.kinds[call].calls++;
    d.kinds[call].waiting++;
    while (d.kinds[call].holds)
        pthread_cond_wait(&d.released, &d.lock);
    d.kinds[call].waiting--;
    if (d.kinds[call].failures == 0)
        return CLUSTER_LOG_OK;
    d.kinds[call].failures--;
    return d.kinds[call].status;
}

static enum cluster_log_status leave(enum cluster_log_status status)
{
    pthread_mutex_unlock(&d.lock);
    return status;
}

/* With the lock. */
static struct cluster_log_head head_now(void)
{
    struct cluster_log_head head = d.head;
    head.lease_ms = d.lease_until - now_ms();
    head.clock_ms = clock_wall_ms() + d.ahead_ms;
    return head;
}

static void add(const struct cluster_log_entry *e)
{
    ck_assert_uint_lt(e->sequence, LOG_DOUBLE_ENTRIES);
    struct cluster_log_entry *to = &d.entries[e->sequence];
    *to = *e;
    to->rows.p = strndup(e->rows.p, e->rows.n);
    d.head.sequence = e->sequence;
    d.head.at_ms = e->at_ms;
    d.head.format = e->format;
    memcpy(d.head.chain, e->chain, sizeof(e->chain));
}

/* ---- calls ---- */

static const char *why(const struct cluster_log *l)
{
    (void)l;
    return "a fault of the test";
}

static enum cluster_log_status lead(struct cluster_log *l, const uint8_t node[NODE_BYTES],
                                    uint64_t epoch, unsigned lease_ms, struct cluster_log_head *out)
{
    (void)l;
    enum cluster_log_status status = enter(CALL_LEAD);
    bool own = memcmp(d.head.leader, node, NODE_BYTES) == 0;
    if (status != CLUSTER_LOG_OK)
        return leave(status);
    if (epoch == 0 ? !own && d.lease_until > now_ms() : !own || epoch != d.head.epoch)
        return leave(CLUSTER_LOG_LED);
    d.head.epoch += epoch == 0;
    memcpy(d.head.leader, node, NODE_BYTES);
    d.lease_until = now_ms() + lease_ms;
    *out = head_now();
    return leave(CLUSTER_LOG_OK);
}

static enum cluster_log_status append(struct cluster_log *l, const struct cluster_log_entry *e)
{
    (void)l;
    enum cluster_log_status status = enter(CALL_APPEND);
    bool fits = e->epoch == d.head.epoch && e->sequence == d.head.sequence + 1 &&
                memcmp(e->before, d.head.chain, sizeof(e->before)) == 0;
    if (fits && (status == CLUSTER_LOG_OK || d.appends_too))
        add(e);
    return leave(status == CLUSTER_LOG_OK && !fits ? CLUSTER_LOG_LED : status);
}

static enum cluster_log_status read_entries(struct cluster_log *l, uint64_t after,
                                            cluster_log_entry_fn *each, void *arg)
{
    (void)l;
    bool more = true;
    enum cluster_log_status status = enter(CALL_READ);
    if (status != CLUSTER_LOG_OK)
        return leave(status);
    uint64_t i = after + 1 < d.first ? d.first : after + 1;
    if (i > d.head.sequence)
        return leave(CLUSTER_LOG_NONE);
    for (uint64_t end = i + 3; i <= d.head.sequence && i < end && more; i++)
        more = each(arg, &d.entries[i]);
    return leave(CLUSTER_LOG_OK);
}

static enum cluster_log_status position(struct cluster_log *l, const struct cluster_log_node *node,
                                        struct cluster_log_head *out)
{
    (void)l;
    enum cluster_log_status status = enter(CALL_POSITION);
    bool notes = status == CLUSTER_LOG_OK && node != NULL && !d.taken;
    d.notes += notes;
    if (notes)
        d.node = *node;
    *out = head_now();
    out->taken = node != NULL && d.taken;
    snprintf(out->taken_name, NODE_TEXT, "first");
    snprintf(out->taken_address, NODE_TEXT, "127.0.0.1:1");
    return leave(status);
}

static enum cluster_log_status chain(struct cluster_log *l, uint64_t sequence,
                                     uint8_t out[STORE_CHAIN_BYTES])
{
    (void)l;
    pthread_mutex_lock(&d.lock);
    if (sequence < d.first || sequence > d.head.sequence)
        return leave(CLUSTER_LOG_NONE);
    memcpy(out, d.entries[sequence].chain, STORE_CHAIN_BYTES);
    return leave(CLUSTER_LOG_OK);
}

static enum cluster_log_status nodes(struct cluster_log *l, cluster_log_node_fn *each, void *arg)
{
    (void)l;
    pthread_mutex_lock(&d.lock);
    each(arg, &d.node);
    each(arg, &d.other);
    return leave(CLUSTER_LOG_OK);
}

static enum cluster_log_status stop(struct cluster_log *l, const struct cluster_log_node *node)
{
    (void)l;
    pthread_mutex_lock(&d.lock);
    d.stopped = *node;
    d.stops++;
    return leave(CLUSTER_LOG_OK);
}

static void wait_for(struct cluster_log *l, int wake, unsigned ms)
{
    (void)l;
    struct pollfd fd = {wake, POLLIN, 0};
    const int64_t until = now_ms() + ms;
    enter(CALL_WAIT);
    const uint64_t before = d.head.sequence;
    while (d.head.sequence == before && now_ms() < until) {
        pthread_mutex_unlock(&d.lock);
        int ready = poll(&fd, 1, 2);
        pthread_mutex_lock(&d.lock);
        if (ready > 0)
            break;
    }
    leave(CLUSTER_LOG_OK);
}

static void end(struct cluster_log *l)
{
    ck_assert_ptr_eq(l, &d.log);
}

static const struct cluster_log_engine engine = {.why = why,
                                                 .lead = lead,
                                                 .append = append,
                                                 .read = read_entries,
                                                 .position = position,
                                                 .chain = chain,
                                                 .nodes = nodes,
                                                 .stop = stop,
                                                 .wait = wait_for,
                                                 .free = end};

/* ---- for the test ---- */

void log_double_new(void)
{
    memset(&d, 0, sizeof(d));
    pthread_mutex_init(&d.lock, NULL);
    pthread_cond_init(&d.released, NULL);
    d.log.engine = &engine;
    d.head.log[0] = 1;
    d.first = 1;
    log_double_other(1 << 20, 0);
}

void log_double_free(void)
{
    for (size_t i = 0; i <= LOG_DOUBLE_ENTRIES; i++)
        free((void *)d.entries[i].rows.p);
}

struct cluster_log *log_double(void)
{
    return &d.log;
}

void log_double_add(const char *rows)
{
    log_double_add_in(store_rows_formats.newest, rows);
}

void log_double_add_in(uint32_t format, const char *rows)
{
    pthread_mutex_lock(&d.lock);
    struct cluster_log_entry e = {.sequence = d.head.sequence + 1,
                                  .epoch = d.head.epoch,
                                  .at_ms = d.head.at_ms + 1,
                                  .format = format,
                                  .rows = {rows, strlen(rows)}};
    ck_assert(chain_next(d.head.chain, e.sequence, e.epoch, e.format, e.rows, e.chain));
    add(&e);
    leave(CLUSTER_LOG_OK);
}

void log_double_take(int64_t lease_ms)
{
    pthread_mutex_lock(&d.lock);
    d.head.epoch++;
    memset(d.head.leader, 9, NODE_BYTES);
    d.lease_until = now_ms() + lease_ms;
    leave(CLUSTER_LOG_OK);
}

void log_double_trim(uint64_t before)
{
    pthread_mutex_lock(&d.lock);
    d.first = before;
    leave(CLUSTER_LOG_OK);
}

void log_double_other(uint64_t free_bytes, int64_t seen_ms)
{
    pthread_mutex_lock(&d.lock);
    d.other = (struct cluster_log_node){.id = {9},
                                        .name = "other",
                                        .format = store_rows_formats.newest,
                                        .free_bytes = free_bytes,
                                        .seen_ms = seen_ms};
    leave(CLUSTER_LOG_OK);
}

void log_double_other_knows(uint32_t format)
{
    pthread_mutex_lock(&d.lock);
    d.other.format = format;
    leave(CLUSTER_LOG_OK);
}

void log_double_ahead(int64_t ms)
{
    pthread_mutex_lock(&d.lock);
    d.ahead_ms = ms;
    leave(CLUSTER_LOG_OK);
}

void log_double_fail(enum log_double_call call, enum cluster_log_status status, unsigned times)
{
    pthread_mutex_lock(&d.lock);
    d.kinds[call].status = status;
    d.kinds[call].failures = times;
    leave(CLUSTER_LOG_OK);
}

void log_double_append_too(void)
{
    pthread_mutex_lock(&d.lock);
    d.appends_too = true;
    leave(CLUSTER_LOG_OK);
}

void log_double_hold(enum log_double_call call, bool holds)
{
    pthread_mutex_lock(&d.lock);
    d.kinds[call].holds = holds;
    pthread_cond_broadcast(&d.released);
    leave(CLUSTER_LOG_OK);
}

bool log_double_is_held(enum log_double_call call)
{
    pthread_mutex_lock(&d.lock);
    bool held = d.kinds[call].waiting > 0;
    leave(CLUSTER_LOG_OK);
    return held;
}

unsigned log_double_calls(enum log_double_call call)
{
    pthread_mutex_lock(&d.lock);
    unsigned calls = d.kinds[call].calls;
    leave(CLUSTER_LOG_OK);
    return calls;
}

struct cluster_log_node log_double_node(void)
{
    pthread_mutex_lock(&d.lock);
    struct cluster_log_node node = d.node;
    leave(CLUSTER_LOG_OK);
    return node;
}

unsigned log_double_notes(void)
{
    pthread_mutex_lock(&d.lock);
    unsigned notes = d.notes;
    leave(CLUSTER_LOG_OK);
    return notes;
}

struct cluster_log_node log_double_stopped(unsigned *stops)
{
    pthread_mutex_lock(&d.lock);
    struct cluster_log_node node = d.stopped;
    *stops = d.stops;
    leave(CLUSTER_LOG_OK);
    return node;
}

void log_double_taken(bool taken)
{
    pthread_mutex_lock(&d.lock);
    d.taken = taken;
    leave(CLUSTER_LOG_OK);
}

struct cluster_log_head log_double_head(void)
{
    pthread_mutex_lock(&d.lock);
    struct cluster_log_head head = head_now();
    leave(CLUSTER_LOG_OK);
    return head;
}

char *log_double_rows(uint64_t sequence)
{
    pthread_mutex_lock(&d.lock);
    char *rows = text("%.*s", (int)d.entries[sequence].rows.n, d.entries[sequence].rows.p);
    leave(CLUSTER_LOG_OK);
    return rows;
}

uint32_t log_double_format(uint64_t sequence)
{
    pthread_mutex_lock(&d.lock);
    uint32_t format = d.entries[sequence].format;
    leave(CLUSTER_LOG_OK);
    return format;
}
