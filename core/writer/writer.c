/*
 * The writer: the only process that changes the store.
 *
 *   sockets → frames → a batch (all that waits, of everybody) → one transaction → commit, fsync → answers, events → jobs out → loop
 *
 * While it syncs, the next batch gathers in the sockets. A batch that fails half-way is undone and applied again one change at a time, so
 * that a change that fails undoes only itself.
 */
#include "core/writer/writer_internal.h"

#include "core/base/log.h"
#include "core/writer/concurrent_callers.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#define GATHER_MAX_US 2000
#define TRAVEL_US 16 /* a caller's answer there and its next change back, workers and callers on the cores beside */
#define SMALL_BATCH 4
#define IDLE_US 250000

/* what is ready within ${timeout_us}; false: nothing is */
static bool read_ready(struct writer *w, uint64_t timeout_us)
{
    struct epoll_event events[64];
    struct timespec most = {(time_t)(timeout_us / 1000000), (long)(timeout_us % 1000000) * 1000};
    struct pollfd ready = {w->epoll, POLLIN, 0};
    if (timeout_us > 0 && ppoll(&ready, 1, &most, NULL) <= 0) /* epoll_wait knows milliseconds only */
        return false;
    int n = epoll_wait(w->epoll, events, 64, 0);
    for (int i = 0; i < n; i++) {
        struct client *p = events[i].data.ptr;
        if (events[i].data.ptr == &w->threads_wait) {
            w->threads_wait = true;
            continue;
        }
        if (p == NULL)
            clients_accept(w);
        else if (!p->gone && (events[i].events & EPOLLOUT) != 0)
            client_flush(w, p);
        if (p != NULL && !p->gone && (events[i].events & (EPOLLIN | EPOLLHUP | EPOLLERR)) != 0)
            client_read(w, p);
    }
    return n > 0;
}

/* those of the last batch, and those who came while it was committed */
static void count_callers(struct writer *w)
{
    w->callers = concurrent_callers_next(w->callers, w->last_size + w->batch_count);
    w->last_size = 0;
}

static void wait_and_read(struct writer *w)
{
    score_set(w->process->score->busy_since_ms, 0);
    read_ready(w, 0);
    if (w->last_size > 0)
        count_callers(w);
    if (w->batch_count == 0 && !deferred_is_due(w) && !writer_maintenance_is_due(w))
        read_ready(w, IDLE_US);
    process_beat(w->process);
}

/*
 * Who waits for an answer sends nothing, so a commit that takes everybody leaves the workers idle, and then waits for them itself. With half
 * of the callers in it, the other half travels meanwhile. That costs a second commit, so it pays where a commit of next to nothing is
 * quicker than the travel it hides; on a slower disk everybody shares one. A lone caller never waits for others.
 */
static size_t batch_wanted(const struct writer *w)
{
    return w->small_commit_us > w->callers * TRAVEL_US ? w->callers : (w->callers + 1) / 2;
}

/* for no longer than a commit takes; what comes is applied meanwhile */
static void gather(struct writer *w)
{
    size_t wanted = batch_wanted(w);
    uint64_t until = clock_mono_us() + (w->commit_us < GATHER_MAX_US ? w->commit_us : GATHER_MAX_US), now;
    while (w->batch_count > 0 && w->batch_count < wanted && (now = clock_mono_us()) < until) {
        batch_apply_arrived(w);
        if (!read_ready(w, until - now))
            break;
    }
}

static void work(struct writer *w)
{
    size_t size = w->batch_count;
    uint64_t began = clock_mono_us();
    batch_apply(w);
    if (size == 0)
        return;
    w->commit_us = clock_mono_us() - began;
    if (size <= SMALL_BATCH) /* one that had to wait for a core or a busy disk says little */
        w->small_commit_us =
            w->commit_us < w->small_commit_us ? w->commit_us : w->small_commit_us + (w->commit_us - w->small_commit_us) / 8;
    w->last_size = size;
}

static bool start_threads(struct writer *w)
{
    w->answers_thread = answers_thread_new(w->store);
    w->merge_thread = w->answers_thread == NULL ? NULL : merge_thread_new(w->store);
    return w->merge_thread != NULL;
}

static bool watch(struct writer *w, const struct background_thread *t)
{
    struct epoll_event waits = {.events = EPOLLIN, .data.ptr = &w->threads_wait};
    return epoll_ctl(w->epoll, EPOLL_CTL_ADD, t->event_fd, &waits) == 0;
}

int writer_run(struct process *p)
{
    startup_wait(p);
    struct writer w = {.process = p,
                       .store = startup_store(p),
                       .queue = queue_new(p->conf->auditors, p->conf->audit_concurrency),
                       .epoll = epoll_create1(EPOLL_CLOEXEC),
                       .upkeep = "",
                       .purging = true};
    struct epoll_event listen = {.events = EPOLLIN, .data.ptr = NULL};
    if (!start_threads(&w))
        return EXIT_START;
    if (w.queue == NULL || w.epoll < 0 ||
        epoll_ctl(w.epoll, EPOLL_CTL_ADD, p->writer_fd, &listen) != 0 ||
        !watch(&w, answers_thread_loop(w.answers_thread)) || !watch(&w, merge_thread_loop(w.merge_thread))) {
        log_error("the writer cannot start: %s", strerror(errno));
        return EXIT_START;
    }
    writer_jobs_sweep(&w);
    writer_maintenance_begin(&w);
    process_phase(p, PHASE_READY);
    while (!process_stopping) {
        wait_and_read(&w);
        writer_maintenance_on_time(&w);
        deferred_retry(&w);
        gather(&w);
        work(&w);
        writer_jobs_hand_out(&w);
        clients_flush(&w);
        writer_maintenance_step(&w);
        writer_maintenance_tell(&w);
        clients_flush(&w);
        clients_remove_gone(&w);
    }
    if (!answers_thread_end(w.answers_thread) || !merge_thread_end(w.merge_thread))
        _exit(EXIT_STOPPED); /* what they were making has no name yet */
    answers_thread_free(w.answers_thread);
    merge_thread_free(w.merge_thread);
    /* not answered is not lost: senders ask the next writer */
    for (size_t i = 0; i < w.clients_count; i++)
        client_free(w.clients[i]);
    free(w.clients);
    free(w.batch);
    deferred_free(&w);
    free(w.left);
    free(w.dropped);
    queue_free(w.queue);
    close(w.epoll);
    store_close(w.store);
    return EXIT_STOPPED;
}
