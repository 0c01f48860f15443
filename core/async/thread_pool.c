#include "core/async/thread_pool.h"

#include "core/auth/credential.h"

#include <stdlib.h>

struct thread_pool {
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t more;
    struct job_list todo; /* under the lock */
    bool ending;          /* under the lock */
    size_t waiting;       /* the loop's own count */
    struct finished *finished;
};

static struct pool_job *next_job(struct thread_pool *a)
{
    while (a->todo.first == NULL && !a->ending)
        pthread_cond_wait(&a->more, &a->lock);
    return a->ending ? NULL : (struct pool_job *)job_list_take(&a->todo);
}

static void *work(void *arg)
{
    struct thread_pool *a = arg;
    struct pool_job *job;
    pthread_mutex_lock(&a->lock);
    while ((job = next_job(a)) != NULL) {
        pthread_mutex_unlock(&a->lock);
        bool more = job->work(job);
        if (!more)
            finished_add(a->finished, &job->job);
        pthread_mutex_lock(&a->lock);
        if (more)
            job_list_add(&a->todo, &job->job);
    }
    pthread_mutex_unlock(&a->lock);
    credential_hash_end();
    return NULL;
}

static void over(struct thread_job *job, struct waiter *w)
{
    struct pool_job *done = (struct pool_job *)job;
    done->of->waiting--;
    done->over(done, w);
}

void thread_pool_send(struct thread_pool *a, struct pool_job *job, struct waiter *w)
{
    job->job = (struct thread_job){.pending = {w}, .over = over};
    job->of = a;
    waiter_begin(w, &job->job.pending);
    a->waiting++;
    pthread_mutex_lock(&a->lock);
    job_list_add(&a->todo, &job->job);
    pthread_cond_signal(&a->more);
    pthread_mutex_unlock(&a->lock);
}

size_t thread_pool_waiting(const struct thread_pool *a)
{
    return a->waiting;
}

struct thread_pool *thread_pool_new(struct loop *loop)
{
    struct thread_pool *a = calloc(1, sizeof(*a));
    if (a == NULL || (a->finished = finished_new(loop)) == NULL) {
        free(a);
        return NULL;
    }
    job_list_init(&a->todo);
    pthread_mutex_init(&a->lock, NULL);
    pthread_cond_init(&a->more, NULL);
    if (thread_start(&a->thread, work, a) == 0)
        return a;
    finished_free(a->finished);
    free(a);
    return NULL;
}

void thread_pool_free(struct thread_pool *a)
{
    if (a == NULL)
        return;
    pthread_mutex_lock(&a->lock);
    a->ending = true;
    pthread_cond_signal(&a->more);
    pthread_mutex_unlock(&a->lock);
    pthread_join(a->thread, NULL);
    for (struct thread_job *job; (job = job_list_take(&a->todo)) != NULL;)
        thread_job_drop(job);
    finished_free(a->finished);
    pthread_cond_destroy(&a->more);
    pthread_mutex_destroy(&a->lock);
    free(a);
}
