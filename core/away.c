#include "core/away.h"

#include "core/credential.h"
#include "core/http/request.h"

#include <stdlib.h>

struct away {
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t more;
    struct job_list todo; /* under the lock */
    bool ending;          /* under the lock */
    size_t waiting;       /* the loop's own count */
    struct finished *finished;
};

static struct away_job *next_job(struct away *a)
{
    while (a->todo.first == NULL && !a->ending)
        pthread_cond_wait(&a->more, &a->lock);
    return a->ending ? NULL : (struct away_job *)job_list_take(&a->todo);
}

static void *work(void *arg)
{
    struct away *a = arg;
    struct away_job *job;
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

void request_away(struct request *r, struct away_job *job)
{
    away_send(r->worker->reader, job, r);
}

static void over(struct thread_job *job, struct request *r)
{
    struct away_job *done = (struct away_job *)job;
    done->of->waiting--;
    done->over(done, r);
}

void away_send(struct away *a, struct away_job *job, struct request *r)
{
    job->job = (struct thread_job){.pending = {r}, .over = over};
    job->of = a;
    request_wait(r, &job->job.pending);
    a->waiting++;
    pthread_mutex_lock(&a->lock);
    job_list_add(&a->todo, &job->job);
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
    if (a == NULL || (a->finished = finished_new(w)) == NULL) {
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

void away_free(struct away *a)
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
