#include "core/async/thread_pool.h"

#include "core/auth/credential.h"

#include <stdlib.h>

struct thread_pool {
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t more;
    struct job_list todo; /* under the lock */
    bool ending;          /* under the lock */
    size_t waiting;       /* the loop's alone: jobs that are not over */
    struct completion_queue *completed;
};

static struct pool_job *next_job(struct thread_pool *pool)
{
    while (pool->todo.first == NULL && !pool->ending)
        pthread_cond_wait(&pool->more, &pool->lock);
    return pool->ending ? NULL : (struct pool_job *)job_list_take(&pool->todo);
}

static void *work(void *arg)
{
    struct thread_pool *pool = arg;
    struct pool_job *job;
    pthread_mutex_lock(&pool->lock);
    while ((job = next_job(pool)) != NULL) {
        pthread_mutex_unlock(&pool->lock);
        bool more = job->work(job);
        if (!more)
            completion_queue_add(pool->completed, &job->job);
        pthread_mutex_lock(&pool->lock);
        if (more)
            job_list_add(&pool->todo, &job->job);
    }
    pthread_mutex_unlock(&pool->lock);
    credential_hash_end();
    return NULL;
}

static void over(struct thread_job *job, struct waiter *w)
{
    struct pool_job *done = (struct pool_job *)job;
    done->pool->waiting--;
    done->over(done, w);
}

void thread_pool_send(struct thread_pool *pool, struct pool_job *job, struct waiter *w)
{
    job->job = (struct thread_job){.pending = {w}, .over = over};
    job->pool = pool;
    waiter_begin(w, &job->job.pending);
    pool->waiting++;
    pthread_mutex_lock(&pool->lock);
    job_list_add(&pool->todo, &job->job);
    pthread_cond_signal(&pool->more);
    pthread_mutex_unlock(&pool->lock);
}

size_t thread_pool_waiting(const struct thread_pool *pool)
{
    return pool->waiting;
}

struct thread_pool *thread_pool_new(struct loop *loop)
{
    struct thread_pool *pool = calloc(1, sizeof(*pool));
    if (pool == NULL || (pool->completed = completion_queue_new(loop)) == NULL) {
        free(pool);
        return NULL;
    }
    job_list_init(&pool->todo);
    pthread_mutex_init(&pool->lock, NULL);
    pthread_cond_init(&pool->more, NULL);
    if (thread_start(&pool->thread, work, pool) == 0)
        return pool;
    completion_queue_free(pool->completed);
    free(pool);
    return NULL;
}

void thread_pool_free(struct thread_pool *pool)
{
    if (pool == NULL)
        return;
    pthread_mutex_lock(&pool->lock);
    pool->ending = true;
    pthread_cond_signal(&pool->more);
    pthread_mutex_unlock(&pool->lock);
    pthread_join(pool->thread, NULL);
    for (struct thread_job *job; (job = job_list_take(&pool->todo)) != NULL;)
        thread_job_drop(job);
    completion_queue_free(pool->completed);
    pthread_cond_destroy(&pool->more);
    pthread_mutex_destroy(&pool->lock);
    free(pool);
}
