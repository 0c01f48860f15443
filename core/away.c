#include "away.h"

#include "credential.h"
#include "http/request.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

struct job_list {
    struct away_job *first, **end;
};

struct away {
    struct worker *worker;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t more;
    struct job_list todo, ready; /* under the lock */
    size_t waiting;              /* the loop's own count */
    bool ending;                 /* under the lock */
    int event_fd;
    h2o_socket_t *socket;
};

static void push(struct job_list *list, struct away_job *job)
{
    job->next = NULL;
    *list->end = job;
    list->end = &job->next;
}

static struct away_job *take_all(struct job_list *list)
{
    struct away_job *all = list->first;
    *list = (struct job_list){NULL, &list->first};
    return all;
}

static struct away_job *next_job(struct away *a)
{
    while (a->todo.first == NULL && !a->ending)
        pthread_cond_wait(&a->more, &a->lock);
    struct away_job *job = a->ending ? NULL : a->todo.first;
    if (job != NULL) {
        a->todo.first = job->next;
        if (a->todo.first == NULL)
            a->todo.end = &a->todo.first;
    }
    return job;
}

static void *work(void *arg)
{
    struct away *a = arg;
    struct away_job *job;
    pthread_mutex_lock(&a->lock);
    while ((job = next_job(a)) != NULL) {
        pthread_mutex_unlock(&a->lock);
        bool more = job->work(job);
        pthread_mutex_lock(&a->lock);
        push(more ? &a->todo : &a->ready, job);
        if (!more)
            eventfd_write(a->event_fd, 1);
    }
    pthread_mutex_unlock(&a->lock);
    credential_hash_end();
    return NULL;
}

void request_away(struct request *r, struct away_job *job)
{
    away_send(r->worker->reader, job, r);
}

static void on_ready(h2o_socket_t *socket, const char *err)
{
    struct away *a = socket->data;
    eventfd_t count;
    (void)err;
    worker_look_at_clock(a->worker);
    eventfd_read(a->event_fd, &count);
    pthread_mutex_lock(&a->lock);
    struct away_job *job = take_all(&a->ready);
    pthread_mutex_unlock(&a->lock);
    while (job != NULL) {
        struct away_job *next = job->next;
        struct request *r = job->pending.request;
        a->waiting--;
        if (r != NULL)
            request_go_on(r);
        job->over(job, r);
        store_read_end(a->worker->store);
        job = next;
    }
}

void away_send(struct away *a, struct away_job *job, struct request *r)
{
    job->pending.request = r;
    request_wait(r, &job->pending);
    a->waiting++;
    pthread_mutex_lock(&a->lock);
    push(&a->todo, job);
    pthread_cond_signal(&a->more);
    pthread_mutex_unlock(&a->lock);
}

size_t away_waiting(const struct away *a)
{
    return a->waiting;
}

struct away *away_new(struct worker *w)
{
    struct away *a = calloc(1, sizeof(*a));
    sigset_t all, before;
    if (a == NULL || (a->event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) < 0) {
        free(a);
        return NULL;
    }
    a->worker = w;
    a->todo.end = &a->todo.first;
    a->ready.end = &a->ready.first;
    pthread_mutex_init(&a->lock, NULL);
    pthread_cond_init(&a->more, NULL);
    /* signals are the loop's */
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int failed = pthread_create(&a->thread, NULL, work, a);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (failed != 0) {
        close(a->event_fd);
        free(a);
        return NULL;
    }
    a->socket = h2o_evloop_socket_create(w->ctx.loop, a->event_fd, H2O_SOCKET_FLAG_DONT_READ);
    a->socket->data = a;
    h2o_socket_read_start(a->socket, on_ready);
    return a;
}

static void end_jobs(struct away_job *job)
{
    while (job != NULL) {
        struct away_job *next = job->next;
        if (job->pending.request != NULL)
            job->pending.request->pending = NULL;
        job->over(job, NULL);
        job = next;
    }
}

void away_free(struct away *a)
{
    if (a == NULL)
        return;
    pthread_mutex_lock(&a->lock);
    a->ending = true;
    pthread_cond_signal(&a->more);
    pthread_mutex_unlock(&a->lock);
    pthread_join(a->thread, NULL);
    end_jobs(take_all(&a->todo));
    end_jobs(take_all(&a->ready));
    h2o_socket_close(a->socket); /* closes the descriptor */
    pthread_cond_destroy(&a->more);
    pthread_mutex_destroy(&a->lock);
    free(a);
}
