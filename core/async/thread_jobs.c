#include "core/async/thread_jobs.h"

#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define TURN_US 1000 /* for finished jobs, of a turn of the loop */

struct finished {
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

struct thread_job *job_list_take_all(struct job_list *list)
{
    struct thread_job *all = list->first;
    job_list_init(list);
    return all;
}

static struct thread_job *take_all(struct finished *f)
{
    pthread_mutex_lock(&f->lock);
    struct thread_job *all = job_list_take_all(&f->jobs);
    pthread_mutex_unlock(&f->lock);
    return all;
}

static struct thread_job *take_one(struct finished *f, bool *more)
{
    pthread_mutex_lock(&f->lock);
    struct thread_job *job = job_list_take(&f->jobs);
    *more = f->jobs.first != NULL;
    pthread_mutex_unlock(&f->lock);
    return job;
}

static void end_job(struct finished *f, struct thread_job *job)
{
    struct waiter *w = job->pending.waiter;
    if (w != NULL)
        waiter_end(w);
    job->over(job, w);
    store_read_end(f->loop->store);
}

/* Answers are compressed here, so that many at once would make the loop's turn long. */
static void on_finished(h2o_socket_t *socket, const char *err)
{
    struct finished *f = socket->data;
    struct thread_job *job;
    eventfd_t count;
    bool more = true;
    (void)err;
    loop_look_at_clock(f->loop);
    eventfd_read(f->event_fd, &count);
    const uint64_t until_us = clock_mono_us() + TURN_US;
    while (more && clock_mono_us() < until_us && (job = take_one(f, &more)) != NULL)
        end_job(f, job);
    if (more)
        eventfd_write(f->event_fd, 1); /* in the next turn */
}

void finished_add(struct finished *f, struct thread_job *job)
{
    pthread_mutex_lock(&f->lock);
    bool first = f->jobs.first == NULL;
    job_list_add(&f->jobs, job);
    pthread_mutex_unlock(&f->lock);
    if (first)
        eventfd_write(f->event_fd, 1);
}

struct finished *finished_new(struct loop *loop)
{
    struct finished *f = calloc(1, sizeof(*f));
    if (f == NULL || (f->event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) < 0) {
        free(f);
        return NULL;
    }
    f->loop = loop;
    job_list_init(&f->jobs);
    pthread_mutex_init(&f->lock, NULL);
    f->socket = h2o_evloop_socket_create(loop->ctx.loop, f->event_fd, H2O_SOCKET_FLAG_DONT_READ);
    f->socket->data = f;
    h2o_socket_read_start(f->socket, on_finished);
    return f;
}

void thread_job_drop(struct thread_job *job)
{
    if (job->pending.waiter != NULL)
        job->pending.waiter->pending = NULL;
    job->over(job, NULL);
}

void finished_free(struct finished *f)
{
    if (f == NULL)
        return;
    for (struct thread_job *job = take_all(f), *next; job != NULL; job = next) {
        next = job->next;
        thread_job_drop(job);
    }
    h2o_socket_close(f->socket); /* closes the descriptor */
    pthread_mutex_destroy(&f->lock);
    free(f);
}
