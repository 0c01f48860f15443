#include "hasher.h"

#include "link.h"
#include "http/password.h"
#include "http/request.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

struct hash_job {
    struct pending pending;
    struct hash_job *next;
    request_hash_fn *done;
    char hash[PASSWORD_HASH_SIZE];
    bool ok;
    size_t size;
    char password[];
};

struct hash_list {
    struct hash_job *first, **end;
};

struct hasher {
    struct worker *worker;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t more;
    struct hash_list todo, ready; /* under the lock */
    size_t waiting;               /* the loop's own count */
    bool ending;                  /* under the lock */
    int event_fd;
    h2o_socket_t *socket;
};

static void push(struct hash_list *list, struct hash_job *job)
{
    job->next = NULL;
    *list->end = job;
    list->end = &job->next;
}

static struct hash_job *take_all(struct hash_list *list)
{
    struct hash_job *all = list->first;
    *list = (struct hash_list){NULL, &list->first};
    return all;
}

static struct hash_job *next_job(struct hasher *h)
{
    while (h->todo.first == NULL && !h->ending)
        pthread_cond_wait(&h->more, &h->lock);
    struct hash_job *job = h->ending ? NULL : h->todo.first;
    if (job != NULL) {
        h->todo.first = job->next;
        if (h->todo.first == NULL)
            h->todo.end = &h->todo.first;
    }
    return job;
}

static void *work(void *arg)
{
    struct hasher *h = arg;
    struct hash_job *job;
    pthread_mutex_lock(&h->lock);
    while ((job = next_job(h)) != NULL) {
        pthread_mutex_unlock(&h->lock);
        job->ok = password_hash((struct str){job->password, job->size}, job->hash);
        explicit_bzero(job->password, job->size);
        pthread_mutex_lock(&h->lock);
        push(&h->ready, job);
        eventfd_write(h->event_fd, 1);
    }
    pthread_mutex_unlock(&h->lock);
    return NULL;
}

static void on_ready(h2o_socket_t *socket, const char *err)
{
    struct hasher *h = socket->data;
    eventfd_t count;
    (void)err;
    eventfd_read(h->event_fd, &count);
    pthread_mutex_lock(&h->lock);
    struct hash_job *job = take_all(&h->ready);
    pthread_mutex_unlock(&h->lock);
    while (job != NULL) {
        struct hash_job *next = job->next;
        struct request *r = job->pending.request;
        h->waiting--;
        if (r != NULL) {
            request_go_on(r);
            job->done(r, job->ok ? str_of(job->hash) : (struct str){0});
            store_read_end(h->worker->store);
        }
        free(job);
        job = next;
    }
}

void request_hash(struct request *r, struct str password, request_hash_fn *done)
{
    struct hasher *h = r->worker->hasher;
    struct hash_job *job = h->waiting >= HASHER_QUEUE ? NULL : malloc(sizeof(*job) + password.n);
    if (job == NULL) {
        done(r, (struct str){0});
        return;
    }
    *job = (struct hash_job){.pending = {r}, .done = done, .size = password.n};
    memcpy(job->password, password.p, password.n);
    request_wait(r, &job->pending);
    h->waiting++;
    pthread_mutex_lock(&h->lock);
    push(&h->todo, job);
    pthread_cond_signal(&h->more);
    pthread_mutex_unlock(&h->lock);
}

struct hasher *hasher_new(struct worker *w)
{
    struct hasher *h = calloc(1, sizeof(*h));
    sigset_t all, before;
    if (h == NULL || (h->event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) < 0) {
        free(h);
        return NULL;
    }
    h->worker = w;
    h->todo.end = &h->todo.first;
    h->ready.end = &h->ready.first;
    pthread_mutex_init(&h->lock, NULL);
    pthread_cond_init(&h->more, NULL);
    /* signals are the loop's */
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int failed = pthread_create(&h->thread, NULL, work, h);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (failed != 0) {
        close(h->event_fd);
        free(h);
        return NULL;
    }
    h->socket = h2o_evloop_socket_create(w->ctx.loop, h->event_fd, H2O_SOCKET_FLAG_DONT_READ);
    h->socket->data = h;
    h2o_socket_read_start(h->socket, on_ready);
    return h;
}

static void free_jobs(struct hash_job *job)
{
    while (job != NULL) {
        struct hash_job *next = job->next;
        free(job);
        job = next;
    }
}

void hasher_free(struct hasher *h)
{
    if (h == NULL)
        return;
    pthread_mutex_lock(&h->lock);
    h->ending = true;
    pthread_cond_signal(&h->more);
    pthread_mutex_unlock(&h->lock);
    pthread_join(h->thread, NULL);
    free_jobs(take_all(&h->todo));
    free_jobs(take_all(&h->ready));
    h2o_socket_close(h->socket); /* closes the descriptor */
    pthread_cond_destroy(&h->more);
    pthread_mutex_destroy(&h->lock);
    free(h);
}
