#include "core/async/thread_jobs.h"

#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define TURN_MAX_US 1000 /* for completed jobs in one turn of the loop */

struct completion_queue {
    struct loop *loop;
    pthread_mutex_t lock;
    struct job_list jobs; /* under the lock */
    int event_fd;
    h2o_socket_t *socket;
};

void job_list_init(struct job_list *list)
{
    *list = (struct job_list){NULL, &list->first};
}

void job_list_add(struct job_list *list, struct thread_job *job)
{
    job->next = NULL;
    *list->end = job;
    list->end = &job->next;
}

struct thread_job *job_list_take(struct job_list *list)
{
    struct thread_job *job = list->first;
    if (job == NULL)
        return NULL;
    list->first = job->next;
    if (list->first == NULL)
        list->end = &list->first;
    return job;
}

/* Linked by next. */
static struct thread_job *job_list_take_all(struct job_list *list)
{
    struct thread_job *all = list->first;
    job_list_init(list);
    return all;
}

static struct thread_job *take_all(struct completion_queue *q)
{
    pthread_mutex_lock(&q->lock);
    struct thread_job *all = job_list_take_all(&q->jobs);
    pthread_mutex_unlock(&q->lock);
    return all;
}

static struct thread_job *take_one(struct completion_queue *q, bool *more)
{
    pthread_mutex_lock(&q->lock);
    struct thread_job *job = job_list_take(&q->jobs);
    *more = q->jobs.first != NULL;
    pthread_mutex_unlock(&q->lock);
    return job;
}

static void end_job(struct completion_queue *q, struct thread_job *job)
{
    struct waiter *w = job->pending.waiter;
    if (w != NULL)
        waiter_end(w);
    job->over(job, w);
    store_read_end(q->loop->store);
}

/* over() compresses responses, so the time for it in one turn is limited. */
static void on_completed(h2o_socket_t *socket, const char *err)
{
    struct completion_queue *q = socket->data;
    struct thread_job *job;
    eventfd_t count;
    bool more = true;
    (void)err;
    loop_read_clock(q->loop);
    eventfd_read(q->event_fd, &count);
    const uint64_t until_us = clock_mono_us() + TURN_MAX_US;
    while (more && clock_mono_us() < until_us && (job = take_one(q, &more)) != NULL)
        end_job(q, job);
    if (more)
        eventfd_write(q->event_fd, 1); /* the rest in the next turn */
}

void completion_queue_add(struct completion_queue *q, struct thread_job *job)
{
    pthread_mutex_lock(&q->lock);
    bool first = q->jobs.first == NULL;
    job_list_add(&q->jobs, job);
    pthread_mutex_unlock(&q->lock);
    if (first)
        eventfd_write(q->event_fd, 1);
}

struct completion_queue *completion_queue_new(struct loop *loop)
{
    struct completion_queue *q = calloc(1, sizeof(*q));
    if (q == NULL || (q->event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) < 0) {
        free(q);
        return NULL;
    }
    q->loop = loop;
    job_list_init(&q->jobs);
    pthread_mutex_init(&q->lock, NULL);
    q->socket = h2o_evloop_socket_create(loop->ctx.loop, q->event_fd, H2O_SOCKET_FLAG_DONT_READ);
    q->socket->data = q;
    h2o_socket_read_start(q->socket, on_completed);
    return q;
}

void thread_job_drop(struct thread_job *job)
{
    if (job->pending.waiter != NULL)
        job->pending.waiter->pending = NULL;
    job->over(job, NULL);
}

void completion_queue_free(struct completion_queue *q)
{
    if (q == NULL)
        return;
    for (struct thread_job *job = take_all(q), *next; job != NULL; job = next) {
        next = job->next;
        thread_job_drop(job);
    }
    h2o_socket_close(q->socket); /* and the descriptor */
    pthread_mutex_destroy(&q->lock);
    free(q);
}
