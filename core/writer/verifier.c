#include "core/writer/verifier.h"

#include "core/base/log.h"
#include "core/base/thread.h"
#include "core/shm/scoreboard.h"
#include "core/writer/background_thread.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define NICE 19
#define SNAPSHOT_MS 1000 /* that the loop waits for the snapshot */
#define END_MS 2000

struct verifying {
    struct store *store; /* of the thread */
    struct log_thread *log;
    struct store_position position;
    pthread_t id;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool snapshot; /* is taken, or failed; under the lock */
    atomic_bool ending, ended;
};

static bool is_ending(void *arg)
{
    struct verifying *v = arg;
    return atomic_load(&v->ending);
}

static void tell_loop(struct verifying *v)
{
    pthread_mutex_lock(&v->lock);
    v->snapshot = true;
    pthread_cond_signal(&v->changed);
    pthread_mutex_unlock(&v->lock);
}

/* The snapshot must be at the entry. A late thread would have a later position. */
static bool take_snapshot(struct verifying *v)
{
    struct store_position at;
    enum store_status status = store_position_get(v->store, &at);
    tell_loop(v);
    return status == STORE_OK && at.sequence == v->position.sequence;
}

static void hash(struct verifying *v)
{
    uint8_t out[STORE_HASH_BYTES];
    const unsigned long long at = v->position.sequence;
    if (!take_snapshot(v)) {
        log_warn("the cluster: no snapshot of entry %llu for the verification; ask again", at);
        return;
    }
    background_thread_configure("verifier", NICE);
    const uint64_t began_ms = clock_mono_ms();
    enum store_status status = store_rows_hash(v->store, is_ending, v, out);
    if (status == STORE_OK) {
        const uint64_t took_ms = clock_mono_ms() - began_ms;
        log_thread_hash(v->log, v->position.sequence, out, took_ms);
        log_info("the cluster: hashed all records at entry %llu in %llu ms", at,
                 (unsigned long long)took_ms);
    } else if (!is_ending(v)) {
        log_warn("the cluster: no verification at entry %llu: %s: %s", at,
                 store_status_text(status), store_why(v->store));
    }
}

static void *run(void *arg)
{
    struct verifying *v = arg;
    hash(v);
    store_read_end(v->store);
    atomic_store(&v->ended, true);
    return NULL;
}

static void verifying_free(struct verifying *v)
{
    store_close(v->store);
    pthread_cond_destroy(&v->changed);
    pthread_mutex_destroy(&v->lock);
    free(v);
}

static void wait_for_snapshot(struct verifying *v)
{
    const uint64_t until = clock_mono_ms() + SNAPSHOT_MS;
    pthread_mutex_lock(&v->lock);
    while (!v->snapshot && thread_wait(&v->changed, &v->lock, until))
        ;
    pthread_mutex_unlock(&v->lock);
}

static struct verifying *verifying_new(struct verifier *all, struct log_thread *log,
                                       const struct store_position *position)
{
    char why[512] = "out of memory";
    struct verifying *v = calloc(1, sizeof(*v));
    if (v == NULL || store_share(all->store, &v->store, why, sizeof(why)) != STORE_OK) {
        log_error("the cluster: the verification cannot start: %s", why);
        free(v);
        return NULL;
    }
    v->log = log;
    v->position = *position;
    pthread_mutex_init(&v->lock, NULL);
    thread_condition(&v->changed);
    return v;
}

void verifier_start(struct verifier *v, struct log_thread *log,
                    const struct store_position *position)
{
    verifier_step(v);
    if (v->running != NULL) {
        log_warn("the cluster: no verification at entry %llu: the one before it has not ended",
                 (unsigned long long)position->sequence);
        return;
    }
    struct verifying *new = verifying_new(v, log, position);
    if (new == NULL)
        return;
    int error = thread_start(&new->id, run, new);
    if (error != 0) {
        log_error("the cluster: the verification cannot start: %s", strerror(error));
        verifying_free(new);
        return;
    }
    v->running = new;
    wait_for_snapshot(new);
}

void verifier_step(struct verifier *v)
{
    if (v->running == NULL || !atomic_load(&v->running->ended))
        return;
    pthread_join(v->running->id, NULL);
    verifying_free(v->running);
    v->running = NULL;
}

bool verifier_end(struct verifier *v)
{
    if (v->running != NULL)
        atomic_store(&v->running->ending, true);
    for (unsigned ms = 0; v->running != NULL && ms < END_MS; ms += 10) {
        verifier_step(v);
        if (v->running != NULL)
            usleep(10000);
    }
    return v->running == NULL;
}
