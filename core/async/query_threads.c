#include "core/async/query_threads.h"

#include "core/base/log.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define TICK_MS 100
#define TIDY_MS 5000   /* between two times that a thread closes files that were deleted */
#define STUCK_MS 10000 /* beyond QUERY_RUN_MS: the query does not ask query_pause any more */

/* The queries of a workspace that wait, in order. */
struct turn {
    struct turn *next;
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
    struct query *running; /* under the lock, as what follows */
    bool idle, takes_searches;
    uint64_t tidy_at_ms; /* the thread's own; 0: no file is open */
    unsigned last; /* lane: they take turns, too */
};

struct queries {
    struct loop *loop;
    struct query_thread threads[CONF_QUERY_THREADS_MAX];
    unsigned count;
    struct finished *finished;
    pthread_mutex_t lock;
    /* under the lock */
    struct turn *lanes[LANES]; /* workspaces that have queries of a kind; the first one is next */
    size_t waiting;
    bool ending;
    /* the loop's own */
    uint64_t tick_at_ms;
    bool stuck;
};

bool query_pause(void *query)
{
    struct query *q = query;
    return atomic_load_explicit(&q->stopped, memory_order_relaxed) ||
           clock_mono_ms() >= q->until_ms;
}

/* ---- what waits ---- */

static struct turn *turn_of(struct turn *turn, uint64_t workspace)
{
    while (turn != NULL && turn->workspace != workspace)
        turn = turn->next;
    return turn;
}

static void lane_add(struct turn **end, struct turn *turn)
{
    while (*end != NULL)
        end = &(*end)->next;
    turn->next = NULL;
    *end = turn;
}

static struct turn *turn_new(struct turn **lane, uint64_t workspace)
{
    struct turn *turn = calloc(1, sizeof(*turn));
    if (turn == NULL)
        return NULL;
    turn->workspace = workspace;
    job_list_init(&turn->queries);
    lane_add(lane, turn);
    return turn;
}

/* False: too many wait, or memory is short. */
static bool put(struct queries *all, struct query *q)
{
    struct turn **lane = &all->lanes[q->search ? SEARCHES : LISTS];
    struct turn *turn = turn_of(*lane, q->workspace);
    if (all->waiting >= QUERIES_WAITING || (turn != NULL && turn->count >= QUERIES_OF_A_WORKSPACE))
        return false;
    if (turn == NULL && (turn = turn_new(lane, q->workspace)) == NULL)
        return false;
    job_list_add(&turn->queries, &q->job);
    turn->count++;
    all->waiting++;
    return true;
}

static struct query *take(struct queries *all, struct turn **lane)
{
    struct turn *turn = *lane;
    struct query *q = (struct query *)job_list_take(&turn->queries);
    *lane = turn->next;
    all->waiting--;
    if (--turn->count == 0)
        free(turn);
    else
        lane_add(lane, turn);
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

/* Deleted files that are open or mapped keep their disk space. */
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
            return take(all, &all->lanes[lane]);
        }
        wait_for_query(t);
    }
}

/* A query that is stopped for a change of the size of the map waits for it in its next snapshot. */
static void run_in(struct query *q, struct store *s)
{
    while (!query_pause(q) && !(q->done = q->run(q, s)))
        store_read_end(s);
    store_read_end(s);
}

/* A query whose wait was too long has its time for the run behind it. */
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
        finished_add(t->of->finished, &q->job);
    }
    pthread_mutex_unlock(&t->of->lock);
    return NULL;
}

/* ---- on the loop ---- */

/* The last thread that may take it: lists go to the thread without searches first. */
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
    bool there = put(all, q);
    if (there)
        wake_one(all, q->search);
    pthread_mutex_unlock(&all->lock);
    return there;
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

/* The loop knows when a client hung up. The thread sees it when the query next asks query_pause. */
static void stop_unwanted(struct query *q)
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
        stop_unwanted(q);
        all->stuck = all->stuck || (q != NULL && now > q->until_ms + STUCK_MS);
    }
    for (unsigned lane = 0; lane < LANES; lane++)
        for (struct turn *turn = all->lanes[lane]; turn != NULL; turn = turn->next)
            for (struct thread_job *job = turn->queries.first; job != NULL; job = job->next)
                stop_unwanted((struct query *)job);
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
    if (all == NULL || (all->finished = finished_new(loop)) == NULL) {
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
            thread_job_drop(&take(all, &all->lanes[lane])->job);
    finished_free(all->finished);
    pthread_mutex_destroy(&all->lock);
    free(all);
}
