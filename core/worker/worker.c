#include "core/worker/worker.h"

#include "core/api/event_stream.h"
#include "core/audit/plain_text.h"
#include "core/base/log.h"
#include "core/conn/acceptor.h"
#include "core/conn/tls.h"
#include "core/http/access_log.h"
#include "core/http/lifecycle.h"
#include "core/loop/loop_time.h"
#include "core/process/bus_error.h"

#include <errno.h>
#include <locale.h>
#include <stdlib.h>
#include <string.h>

#define TICK_MS 250

struct worker {
    struct loop loop;
    struct http http;
    struct acceptor *acceptor;
    struct loop_time loop_time;
    bool open; /* accepts connections */
};

static void open_store(struct loop *l)
{
    char why[512];
    struct store_options options = {.dir = l->conf->data_dir,
                                    .map_size = l->conf->store_map_size,
                                    .mapped_bytes = l->conf->store_index_map_size,
                                    .max_readers = CONF_STORE_READERS,
                                    .mode = STORE_READ};
    if (store_open(&options, &l->store, why, sizeof(why)) != STORE_OK) {
        log_error("data_dir: %s", why);
        exit(EXIT_START);
    }
    bus_error_watch(l->store);
}

static void fail(const char *what)
{
    log_error("the worker cannot start: %s", what);
    exit(EXIT_START);
}

static void open_tls(struct process *p)
{
    char *text = NULL;
    size_t size = 0;
    FILE *mistakes = open_memstream(&text, &size);
    if (mistakes == NULL)
        fail("out of memory");
    int wrong = tls_open(p->conf, p->tls, mistakes);
    fclose(mistakes);
    if (wrong > 0)
        fail(text);
    free(text);
}

static void on_event(void *arg, const struct store_event *e)
{
    struct http *h = arg;
    if (e->kind != EVENT_POSITION)
        streams_on_event(h, e);
    else if (h->log_waits != NULL)
        log_waits_look(h->log_waits, h->writer);
}

static void start(struct worker *w, struct process *p)
{
    struct http *h = &w->http;
    *w = (struct worker){.loop = {.process = p, .conf = p->conf, .now_ms = clock_mono_ms()}};
    if (setlocale(LC_CTYPE, "C.UTF-8") == NULL) /* for international domain names in libcurl */
        log_warn("the locale C.UTF-8 is missing: install it to grade pages with international "
                 "domain names");
    plain_text_start();
    open_store(&w->loop);
    if (!loop_start_ids(&w->loop))
        fail(strerror(errno));
    if (!http_start(h, &w->loop))
        exit(EXIT_START);
    open_tls(p);
    h->streams = streams_new();
    h->writer = writer_client_new(&w->loop, on_event, h);
    w->acceptor = acceptor_new(&w->loop);
    if (h->streams == NULL || h->writer == NULL || w->acceptor == NULL)
        fail("out of memory");
}

static void begin_drain(struct worker *w, bool stopping)
{
    struct loop *l = &w->loop;
    if (!l->draining) {
        l->draining = true;
        l->ctx.shutdown_requested = 1;
        process_set_phase(l->process, PHASE_DRAINING);
        acceptor_close(w->acceptor);
    }
    l->stopping = l->stopping || stopping;
    writer_client_end_waits(w->http.writer);
    streams_drain(&w->http);
}

/*
 * No sleep after a send: libh2o completes a write in the next turn, and until then neither reads
 * from nor writes to that connection.
 */
static int wait_ms(const struct worker *w)
{
    int most = w->loop.sent ? 0 : w->loop.draining ? TICK_MS / 10 : TICK_MS;
    if (w->http.log_waits != NULL)
        most = log_waits_wake_ms(w->http.log_waits, most);
    most = writer_client_wake_ms(w->http.writer, acceptor_wake_ms(w->acceptor, most));
    return http_wake_ms(&w->http, streams_wait_ms(&w->http, most));
}

static void update_score(struct worker *w)
{
    struct score *score = w->loop.process->score;
    score_set(score->connections, acceptor_connections(w->acceptor));
    const struct log_waits *waits = w->http.log_waits;
    score_set(score->pending,
              writer_client_waiting(w->http.writer) + (waits == NULL ? 0 : log_waits_count(waits)));
    score_set(score->streams, streams_count(w->http.streams));
}

static void turn(struct worker *w)
{
    struct loop *l = &w->loop;
    struct score *score = l->process->score;
    if (!queries_stuck(w->http.queries))
        process_heartbeat(l->process);
    score_set(score->busy_since_ms, 0);
    loop_time_turn(&w->loop_time, score, h2o_now(l->ctx.loop)); /* of the turn that ends here */
    if (h2o_evloop_run(l->ctx.loop, wait_ms(w)) != 0 && errno != EINTR)
        log_error("epoll: %s", strerror(errno));
    l->sent = false;
    loop_read_clock(l);
    store_read_end(l->store);
    writer_client_tick(w->http.writer);
    http_tick(&w->http);
    acceptor_tick(w->acceptor);
    streams_tick(&w->http);
    writer_client_flush(w->http.writer);
    http_flush(&w->http);
    update_score(w);
}

static void finish(struct worker *w)
{
    h2o_evloop_t *loop = w->loop.ctx.loop;
    writer_client_free(w->http.writer);
    http_finish(&w->http);
    acceptor_free(w->acceptor);
    streams_free(w->http.streams);
    store_close(w->loop.store);
    h2o_context_dispose(&w->loop.ctx);
    h2o_config_dispose(&w->loop.config);
    h2o_evloop_destroy(loop);
}

/* At the start, or during an upgrade when the old master has handed over. */
static void begin_serving(struct worker *w)
{
    struct process *p = w->loop.process;
    if (w->open || w->loop.draining || score_get(p->scoreboard->accept_paused) != 0 ||
        !http_may_serve(&w->http))
        return;
    w->open = true;
    acceptor_open(w->acceptor);
    process_set_phase(p, PHASE_READY);
}

int worker_run(struct process *p)
{
    static struct worker w; /* libh2o keeps pointers into it */
    start(&w, p);
    process_set_phase(p, PHASE_WAITING);
    loop_time_start(&w.loop_time);
    while (!w.loop.draining || acceptor_connections(w.acceptor) > 0) {
        begin_serving(&w);
        turn(&w);
        if ((process_stopping && !w.loop.stopping) || (process_draining && !w.loop.draining))
            begin_drain(&w, process_stopping != 0);
        if (process_reopen) {
            process_reopen = 0;
            access_log_reopen(w.http.access_log);
        }
    }
    writer_client_flush(w.http.writer);
    finish(&w);
    return EXIT_STOPPED;
}
