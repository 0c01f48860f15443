/*
 * The writer's loop. README.md has the parts and the way of a change through them.
 */
#include "core/writer/writer.h"

#include "core/base/log.h"
#include "core/writer/commit.h"
#include "core/writer/following.h"
#include "core/writer/frames.h"
#include "core/writer/group_commit.h"
#include "core/writer/startup.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#define IDLE_US 250000

/* the parts; each has pointers to those that it uses */
struct writer {
    struct process *process;
    struct store *store;
    int epoll;
    unsigned first_event;
    struct job_queue *queue;
    struct clients clients;
    struct sequences sequences;
    struct batch batch;
    struct frames frames;
    struct deferred_results deferred;
    struct writer_jobs jobs;
    struct writer_threads threads;
    struct writer_maintenance maintenance;
    struct change_feed change_feed;
    struct committer committer;
    struct group_commit group_commit;
    struct leading leading;
    struct following following;
    struct nodes nodes;
    struct relays relays;
    struct copies copies;
    struct verifier verifier;
    struct remote_auditors remote_auditors;
    struct shared_keys keys;
};

static void connect_parts(struct writer *w)
{
    w->clients = (struct clients){.process = w->process, .epoll = w->epoll};
    w->sequences = (struct sequences){.clients = &w->clients, .store = w->store};
    w->batch = (struct batch){.process = w->process,
                              .store = w->store,
                              .sequences = &w->sequences,
                              .queue = w->queue,
                              .epoll = w->epoll,
                              .leading = &w->leading};
    w->frames = (struct frames){.process = w->process,
                                .store = w->store,
                                .clients = &w->clients,
                                .sequences = &w->sequences,
                                .queue = w->queue,
                                .batch = &w->batch,
                                .leading = &w->leading,
                                .relays = &w->relays,
                                .remote_auditors = &w->remote_auditors,
                                .copies = &w->copies};
    w->copies = (struct copies){.store = w->store, .epoll = w->epoll};
    w->jobs = (struct writer_jobs){.process = w->process,
                                   .store = w->store,
                                   .clients = &w->clients,
                                   .queue = w->queue,
                                   .deferred = &w->deferred};
    w->maintenance = (struct writer_maintenance){.process = w->process,
                                                 .store = w->store,
                                                 .batch = &w->batch,
                                                 .sequences = &w->sequences,
                                                 .jobs = &w->jobs,
                                                 .threads = &w->threads,
                                                 .deferred = &w->deferred,
                                                 .progress = "",
                                                 .leading = &w->leading};
    w->change_feed = (struct change_feed){.process = w->process,
                                          .store = w->store,
                                          .clients = &w->clients,
                                          .jobs = &w->jobs,
                                          .threads = &w->threads,
                                          .maintenance = &w->maintenance,
                                          .leading = &w->leading,
                                          .keys = &w->keys};
    w->committer = (struct committer){.process = w->process,
                                      .store = w->store,
                                      .batch = &w->batch,
                                      .clients = &w->clients,
                                      .sequences = &w->sequences,
                                      .deferred = &w->deferred,
                                      .change_feed = &w->change_feed,
                                      .maintenance = &w->maintenance,
                                      .leading = &w->leading};
    w->leading = (struct leading){.process = w->process, .store = w->store};
    w->following = (struct following){.process = w->process,
                                      .store = w->store,
                                      .leading = &w->leading,
                                      .change_feed = &w->change_feed,
                                      .clients = &w->clients,
                                      .sequences = &w->sequences,
                                      .verifier = &w->verifier};
    w->verifier = (struct verifier){.store = w->store};
    w->nodes = (struct nodes){
        .process = w->process, .clients = &w->clients, .leading = &w->leading, .fd = -1};
    w->relays = (struct relays){.process = w->process,
                                .nodes = &w->nodes,
                                .clients = &w->clients,
                                .leading = &w->leading,
                                .epoll = -1};
    w->remote_auditors =
        (struct remote_auditors){.leading = &w->leading, .clients = &w->clients, .queue = w->queue};
    w->keys = (struct shared_keys){
        .process = w->process, .store = w->store, .batch = &w->batch, .changed = true};
}

/* Events of parts carry a flag, those of clients the client. */
static bool is_flag(const struct writer *w, const void *p)
{
    return p == &w->threads.change_waits || p == &w->following.told || p == &w->nodes.arrived ||
           p == &w->relays.ready;
}

/* Other nodes, whose senders may be many. */
static bool waits_for_batch(const struct writer *w, const struct client *client)
{
    return client->role == ROLE_NODE && batch_is_full(&w->batch);
}

/* Returns whether nothing was read because the batch is full. */
static bool serve(struct writer *w, struct client *client, uint32_t events)
{
    if (!client->gone && (events & EPOLLOUT) != 0)
        client_flush(&w->clients, client);
    if (client->gone || (events & (EPOLLIN | EPOLLHUP | EPOLLERR)) == 0)
        return false;
    if (waits_for_batch(w, client))
        return true;
    frames_read(&w->frames, client);
    return false;
}

static bool handle(struct writer *w, const struct epoll_event *event)
{
    void *of = event->data.ptr;
    if (of != NULL && !is_flag(w, of))
        return serve(w, of, event->events);
    if (of != NULL)
        *(bool *)of = true;
    else
        clients_accept(&w->clients);
    return false;
}

/* In turn, beginning with the first one that waits since the last time. */
static void handle_all(struct writer *w, const struct epoll_event *events, unsigned count)
{
    const unsigned first = w->first_event;
    w->first_event = 0;
    for (unsigned i = 0; i < count; i++) {
        const unsigned at = (first + i) % count;
        if (handle(w, &events[at]) && w->first_event == 0)
            w->first_event = at;
    }
}

/* handle what is ready within ${timeout_us}; false: nothing is */
static bool read_ready(struct writer *w, uint64_t timeout_us)
{
    struct epoll_event events[64];
    struct timespec most = {(time_t)(timeout_us / 1000000), (long)(timeout_us % 1000000) * 1000};
    struct pollfd ready = {w->epoll, POLLIN, 0};
    /* ppoll, since epoll_wait knows only milliseconds */
    if (timeout_us > 0 && ppoll(&ready, 1, &most, NULL) <= 0)
        return false;
    int n = epoll_wait(w->epoll, events, 64, 0);
    if (n > 0)
        handle_all(w, events, (unsigned)n);
    return n > 0;
}

static void wait_and_read(struct writer *w)
{
    score_set(w->process->score->busy_since_ms, 0);
    bool ready = read_ready(w, 0);
    group_commit_count(&w->group_commit, w->batch.count);
    if (!ready && w->batch.count == 0 && !deferred_is_due(&w->deferred) &&
        !writer_maintenance_is_due(&w->maintenance))
        read_ready(w, IDLE_US);
    process_heartbeat(w->process);
}

/* wait for changes of more callers, and apply those that arrive */
static void gather(struct writer *w)
{
    size_t wanted = group_commit_size(&w->group_commit);
    uint64_t until = clock_mono_us() + group_commit_wait_us(&w->group_commit), now;
    while (w->batch.count > 0 && w->batch.count < wanted && !batch_is_full(&w->batch) &&
           (now = clock_mono_us()) < until) {
        batch_apply_arrived(&w->batch);
        if (!read_ready(w, until - now))
            break;
    }
}

static void commit_callers(struct writer *w)
{
    size_t size = w->batch.count;
    uint64_t began = clock_mono_us();
    commit_batch(&w->committer);
    if (size > 0)
        group_commit_note(&w->group_commit, size, clock_mono_us() - began);
}

/* in a transaction of its own, after the callers are answered */
static void commit_maintenance(struct writer *w)
{
    struct score *score = w->process->score;
    writer_maintenance_add(&w->maintenance);
    if (w->batch.count == 0)
        return;
    uint64_t began = clock_mono_us(), cpu = clock_thread_us();
    commit_batch(&w->committer);
    score_raise(&score->longest_us, clock_mono_us() - began);
    score_raise(&score->longest_cpu_us, clock_thread_us() - cpu);
}

/* from now on this writer executes changes */
static void lead(struct writer *w)
{
    writer_jobs_sweep(&w->jobs);
    writer_maintenance_start(&w->maintenance);
    writer_threads_wake_merge(&w->threads);
}

/* in a cluster */
static void take_part(struct writer *w)
{
    if (w->leading.thread == NULL)
        return;
    if (following_step(&w->following)) {
        lead(w);
        shared_keys_offer(&w->keys);
    }
    if (w->nodes.arrived)
        nodes_accept(&w->nodes);
    nodes_end_slow(&w->nodes);
    remote_auditors_end_silent(&w->remote_auditors);
    frames_release_deferred(&w->frames);
    relays_step(&w->relays);
    copies_step(&w->copies);
    verifier_step(&w->verifier);
    shared_keys_step(&w->keys);
    change_feed_position(&w->change_feed);
}

static struct job_queue *queue_of(const struct conf *conf)
{
    const bool alone = conf->cluster_log[0] == '\0';
    return job_queue_new(conf->auditors, conf->audit_concurrency,
                         alone ? conf->auditors : JOB_QUEUE_AUDITORS);
}

static bool start(struct writer *w, struct process *p)
{
    startup_lock(p);
    *w = (struct writer){.process = p,
                         .store = startup_store(p),
                         .queue = queue_of(p->conf),
                         .epoll = epoll_create1(EPOLL_CLOEXEC)};
    connect_parts(w);
    sequences_show(&w->sequences);
    if (!writer_threads_start(&w->threads, w->store) || !leading_start(&w->leading))
        return false;
    if (w->queue == NULL || w->epoll < 0 || !clients_listen(&w->clients) ||
        !writer_threads_watch(&w->threads, w->epoll) || !following_watch(&w->following, w->epoll) ||
        !relays_watch(&w->relays, w->epoll) || !remote_auditors_start(&w->remote_auditors)) {
        log_error("the writer cannot start: %s", strerror(errno));
        return false;
    }
    if (!nodes_start(&w->nodes, w->epoll))
        return false;
    if (w->leading.leads)
        lead(w);
    process_set_phase(p, PHASE_READY);
    return true;
}

/* senders of changes that are not answered send them again to the next writer */
static void end(struct writer *w)
{
    if (!copies_end(&w->copies) || !verifier_end(&w->verifier) ||
        !writer_threads_end(&w->threads) || !leading_end(&w->leading))
        _exit(EXIT_STOPPED);
    writer_threads_free(&w->threads);
    leading_free(&w->leading);
    relays_free(&w->relays);
    remote_auditors_free(&w->remote_auditors);
    nodes_free(&w->nodes);
    deferred_changes_free(&w->frames.deferred);
    clients_free(&w->clients);
    batch_free(&w->batch);
    deferred_free(&w->deferred);
    sequences_free(&w->sequences);
    job_queue_free(w->queue);
    close(w->epoll);
    store_close(w->store);
}

int writer_run(struct process *p)
{
    struct writer w;
    if (!start(&w, p))
        return EXIT_START;
    while (!process_stopping) {
        wait_and_read(&w);
        take_part(&w);
        writer_maintenance_on_time(&w.maintenance);
        deferred_retry(&w.deferred, &w.batch);
        gather(&w);
        commit_callers(&w);
        writer_jobs_dispatch(&w.jobs);
        clients_flush(&w.clients);
        commit_maintenance(&w);
        writer_maintenance_publish(&w.maintenance);
        clients_flush(&w.clients);
        frames_remove_gone(&w.frames);
    }
    end(&w);
    return EXIT_STOPPED;
}
