#include "core/async/query_threads.h"

#include "core/base/log.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define TICK_MS 100
#define TIDY_MS 5000   /* how often a thread closes deleted files */
#define STUCK_MS 10000 /* beyond QUERY_RUN_MS: the query ignores query_must_stop */

/* The queued queries of a workspace, in order. */
struct workspace_queue {
    struct workspace_queue *next;
    uint64_t workspace;
    struct job_list queries;
    size_t count;
};

enum { LISTS, SEARCHES, LANES };

struct query_thread {
    struct queries *of;
    pthread_t id;
    pthread_cond_t wake;
    struct store *store;
    struct query *running; /* under the lock, as the next two */
    bool idle, takes_searches;
    uint64_t tidy_at_ms; /* the thread's alone; 0: no file is open */
    unsigned last;       /* lane of the last query: lanes alternate */
};

struct queries {
    struct loop *loop;
    struct query_thread threads[CONF_QUERY_THREADS_MAX];
    unsigned count;
    struct completion_queue *completed;
    pthread_mutex_t lock;
    /* under the lock */
    struct workspace_queue *lanes[LANES]; /* workspaces with queued queries, next first */
    size_t waiting;
    bool ending;
    /* the loop's alone */
    uint64_t tick_at_ms;
    bool stuck;
};

bool query_must_stop(void *query)
{
    struct query *q = query;
    return atomic_load_explicit(&q->stopped, memory_order_relaxed) ||
           clock_mono_ms() >= q->until_ms;
}

/* ---- queues ---- */

static struct workspace_queue *queue_of(struct workspace_queue *queue, uint64_t workspace)
{
    while (queue != NULL && queue->workspace != workspace)
        queue = queue->next;
    return queue;
}

static void lane_add(struct workspace_queue **end, struct workspace_queue *queue)
{
    while (*end != NULL)
        end = &(*end)->next;
    queue->next = NULL;
    *end = queue;
}

static struct workspace_queue *queue_new(struct workspace_queue **lane, uint64_t workspace)
{
    struct workspace_queue *queue = calloc(1, sizeof(*queue));
    if (queue == NULL)
        return NULL;
    queue->workspace = workspace;
    job_list_init(&queue->queries);
    lane_add(lane, queue);
    return queue;
}

/* False: the queue is full, or memory is short. */
static bool enqueue(struct queries *all, struct query *q)
{
    struct workspace_queue **lane = &all->lanes[q->search ? SEARCHES : LISTS];
    struct workspace_queue *queue = queue_of(*lane, q->workspace);
    if (all->waiting >= QUERIES_QUEUED_MAX ||
        (queue != NULL && queue->count >= QUERIES_PER_WORKSPACE_MAX))
        return false;
    if (queue == NULL && (queue = queue_new(lane, q->workspace)) == NULL)
        return false;
    job_list_add(&queue->queries, &q->job);
    queue->count++;
    all->waiting++;
    return true;
}

static struct query *dequeue(struct queries *all, struct workspace_queue **lane)
{
    struct workspace_queue *queue = *lane;
    struct query *q = (struct query *)job_list_take(&queue->queries);
    *lane = queue->next;
    all->waiting--;
    if (--queue->count == 0)
        free(queue);
    else
        lane_add(lane, queue);
    return q;
}

/* ---- in a thread ---- */

static bool has_work(const struct queries *all, const struct query_thread *t, unsigned lane)
{
    return all->lanes[lane] != NULL && (lane == LISTS || t->takes_searches);
}

static void wait_for_query(struct query_thread *t)
{
    t->idle = true;
    if (t->tidy_at_ms != 0)
        thread_wait(&t->wake, &t->of->lock, t->tidy_at_ms);
    else
        pthread_cond_wait(&t->wake, &t->of->lock);
    t->idle = false;
}

/* Deleted files that are open or mapped still take disk space. */
static void tidy(struct query_thread *t)
{
    if (t->tidy_at_ms == 0 || clock_mono_ms() < t->tidy_at_ms)
        return;
    pthread_mutex_unlock(&t->of->lock);
    t->tidy_at_ms = store_tidy(t->store) ? clock_mono_ms() + TIDY_MS : 0;
    pthread_mutex_lock(&t->of->lock);
}

static struct query *next_query(struct query_thread *t)
{
    struct queries *all = t->of;
    for (;;) {
        tidy(t);
        if (all->ending)
            return NULL;
        unsigned other = t->last == LISTS ? SEARCHES : LISTS;
        unsigned lane = has_work(all, t, other) ? other : t->last;
        if (has_work(all, t, lane)) {
            t->last = lane;
            return dequeue(all, &all->lanes[lane]);
        }
        wait_for_query(t);
    }
}

/* A run that stopped for a resize of the LMDB map starts over: the next snapshot waits for that. */
static void run_in(struct query *q, struct store *s)
{
    while (!query_must_stop(q) && !(q->done = q->run(q, s)))
        store_read_end(s);
    store_read_end(s);
}

/* A query that waited too long gets no time to run. */
static void begin(struct query_thread *t, struct query *q)
{
    uint64_t now = clock_mono_ms();
    q->until_ms = now < q->until_ms ? now + QUERY_RUN_MS : now;
    t->running = q;
}

static void *work(void *arg)
{
    struct query_thread *t = arg;
    struct query *q;
    pthread_setname_np(pthread_self(), "query");
    pthread_mutex_lock(&t->of->lock);
    while ((q = next_query(t)) != NULL) {
        begin(t, q);
        pthread_mutex_unlock(&t->of->lock);
        run_in(q, t->store);
        pthread_mutex_lock(&t->of->lock);
        t->running = NULL;
        if (t->tidy_at_ms == 0)
            t->tidy_at_ms = clock_mono_ms() + TIDY_MS;
        completion_queue_add(t->of->completed, &q->job);
    }
    pthread_mutex_unlock(&t->of->lock);
    return NULL;
}

/* ---- on the loop ---- */

/* The last idle thread: lists prefer the thread that takes no searches. */
static void wake_one(struct queries *all, bool search)
{
    for (unsigned i = all->count; i-- > 0;) {
        struct query_thread *t = &all->threads[i];
        if (!t->idle || (search && !t->takes_searches))
            continue;
        t->idle = false;
        pthread_cond_signal(&t->wake);
        return;
    }
}

static void over(struct thread_job *job, struct waiter *w)
{
    struct query *q = (struct query *)job;
    q->over(q, w);
}

static bool send_to_threads(struct queries *all, struct query *q)
{
    q->until_ms = clock_mono_ms() + QUERY_WAIT_MS;
    pthread_mutex_lock(&all->lock);
    bool queued = enqueue(all, q);
    if (queued)
        wake_one(all, q->search);
    pthread_mutex_unlock(&all->lock);
    return queued;
}

bool queries_send(struct queries *all, struct query *q, struct waiter *w)
{
    if (all->count == 0) {
        q->until_ms = clock_mono_ms() + QUERY_RUN_MS;
        run_in(q, all->loop->store);
        q->over(q, w);
        return true;
    }
    q->job = (struct thread_job){.pending = {w}, .over = over};
    if (send_to_threads(all, q)) {
        waiter_begin(w, &q->job.pending);
        return true;
    }
    q->over(q, NULL);
    return false;
}

/* Only the loop knows that a client hung up; the thread sees it at the next query_must_stop. */
static void stop_if_unwanted(struct query *q)
{
    if (q != NULL && waiter_is_unwanted(q->job.pending.waiter))
        atomic_store_explicit(&q->stopped, true, memory_order_relaxed);
}

void queries_tick(struct queries *all)
{
    const uint64_t now = all->loop->now_ms;
    if (now < all->tick_at_ms)
        return;
    if (all->count == 0) {
        all->tick_at_ms = now + TIDY_MS;
        store_tidy(all->loop->store);
        return;
    }
    all->tick_at_ms = now + TICK_MS;
    all->stuck = false;
    pthread_mutex_lock(&all->lock);
    for (unsigned i = 0; i < all->count; i++) {
        struct query *q = all->threads[i].running;
        stop_if_unwanted(q);
        all->stuck = all->stuck || (q != NULL && now > q->until_ms + STUCK_MS);
    }
    for (unsigned lane = 0; lane < LANES; lane++)
        for (struct workspace_queue *queue = all->lanes[lane]; queue != NULL; queue = queue->next)
            for (struct thread_job *job = queue->queries.first; job != NULL; job = job->next)
                stop_if_unwanted((struct query *)job);
    pthread_mutex_unlock(&all->lock);
}

bool queries_stuck(const struct queries *all)
{
    return all->stuck;
}

/* ---- life ---- */

static bool add_thread(struct queries *all, unsigned i)
{
    struct query_thread *t = &all->threads[i];
    char why[512];
    t->of = all;
    t->takes_searches = i == 0 || i + 1 < all->loop->conf->query_threads;
    if (store_share(all->loop->store, &t->store, why, sizeof(why)) != STORE_OK) {
        log_error("data_dir: %s", why);
        return false;
    }
    thread_condition(&t->wake);
    int failed = thread_start(&t->id, work, t);
    if (failed == 0)
        return true;
    log_error("a query thread cannot start: %s", strerror(failed));
    pthread_cond_destroy(&t->wake);
    store_close(t->store);
    return false;
}

struct queries *queries_new(struct loop *loop)
{
    struct queries *all = calloc(1, sizeof(*all));
    if (all == NULL || (all->completed = completion_queue_new(loop)) == NULL) {
        log_error("query threads cannot start: %s", strerror(errno));
        free(all);
        return NULL;
    }
    all->loop = loop;
    pthread_mutex_init(&all->lock, NULL);
    while (all->count < loop->conf->query_threads && add_thread(all, all->count))
        all->count++;
    if (all->count == loop->conf->query_threads)
        return all;
    queries_free(all);
    return NULL;
}

static void stop_threads(struct queries *all)
{
    pthread_mutex_lock(&all->lock);
    all->ending = true;
    for (unsigned i = 0; i < all->count; i++) {
        if (all->threads[i].running != NULL)
            atomic_store(&all->threads[i].running->stopped, true);
        pthread_cond_signal(&all->threads[i].wake);
    }
    pthread_mutex_unlock(&all->lock);
    for (unsigned i = 0; i < all->count; i++) {
        pthread_join(all->threads[i].id, NULL);
        pthread_cond_destroy(&all->threads[i].wake);
        store_close(all->threads[i].store);
    }
}

void queries_free(struct queries *all)
{
    if (all == NULL)
        return;
    stop_threads(all);
    for (unsigned lane = 0; lane < LANES; lane++)
        while (all->lanes[lane] != NULL)
            thread_job_drop(&dequeue(all, &all->lanes[lane])->job);
    completion_queue_free(all->completed);
    pthread_mutex_destroy(&all->lock);
    free(all);
}
