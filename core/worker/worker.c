#include "core/worker/worker.h"

#include "core/conn/acceptor.h"
#include "core/loop/thread_pool.h"
#include "core/process/bus_error.h"
#include "core/auth/credential.h"
#include "core/audit/plain_text.h"
#include "core/loop/writer_client.h"
#include "core/base/log.h"
#include "core/loop/query_threads.h"
#include "core/auth/signing_keys.h"
#include "core/conn/tls.h"
#include "core/http/admission_queue.h"
#include "core/http/access_log.h"
#include "core/http/limit.h"
#include "core/http/pipeline.h"
#include "core/http/event_stream.h"

#include <errno.h>
#include <locale.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>

#define TICK_MS 250
/* libh2o's own timers run on wall time: ours are used instead, so theirs never fire */
#define NEVER_MS (uint64_t)(10ull * 365 * 86400 * 1000)

static void open_store(struct worker *w)
{
    char why[512];
    struct store_options options = {.dir = w->conf->data_dir,
                                    .map_size = w->conf->store_map_size,
                                    .mapped_bytes = w->conf->store_index_map_size,
                                    .max_readers = CONF_STORE_READERS,
                                    .mode = STORE_READ};
    if (store_open(&options, &w->store, why, sizeof(why)) != STORE_OK) {
        log_error("data_dir: %s", why);
        exit(EXIT_START);
    }
    bus_error_watch(w->store);
}

static void configure(struct worker *w)
{
    h2o_config_init(&w->config);
    w->config.server_name = (h2o_iovec_t){NULL, 0};
    w->config.http1.req_timeout = NEVER_MS;
    w->config.http1.upgrade_to_http2 = 0;
    w->config.handshake_timeout = NEVER_MS;
    w->config.max_request_entity_size = pipeline_max_body(w->conf) + 1;
    h2o_hostconf_t *host = h2o_config_register_host(&w->config, h2o_iovec_init(H2O_STRLIT("default")), 65535);
    pipeline_register(w, host);
    h2o_context_init(&w->ctx, h2o_evloop_create(), &w->config);
}

static void fail(const char *what)
{
    log_error("the worker cannot start: %s", what);
    exit(EXIT_START);
}

static void open_tls(struct process *p)
{
    char *said = NULL;
    size_t size = 0;
    FILE *mistakes = open_memstream(&said, &size);
    if (mistakes == NULL)
        fail("out of memory");
    int wrong = tls_open(p->conf, p->tls, mistakes);
    fclose(mistakes);
    if (wrong > 0)
        fail(said);
    free(said);
}

static void open_secrets(struct worker *w)
{
    char path[SECRETS_PATH], why[SECRETS_PATH + 256];
    signing_keys_path(w->conf, path);
    w->secrets = signing_keys_open(path, why, sizeof(why));
    if (w->secrets == NULL)
        fail(why);
}

/* a rotation must reach every worker within a second */
static void look_at_secrets(struct worker *w)
{
    if (w->now_ms < w->secrets_at_ms)
        return;
    w->secrets_at_ms = w->now_ms + SECRETS_LOOK_MS;
    signing_keys_look(w->secrets);
}

/* At its first use OpenSSL reads its configuration and gathers what it can do, for which no request is to wait. */
static void wake_openssl(void)
{
    uint8_t hash[CREDENTIAL_HASH];
    if (!credential_hash(str_of(""), hash))
        fail("OpenSSL cannot hash");
}

static void start(struct worker *w, struct process *p)
{
    *w = (struct worker){.process = p, .conf = p->conf, .now_ms = clock_mono_ms()};
    w->base_url = str_of(p->conf->base_url[0] != '\0' ? p->conf->base_url : p->listeners[0].url);
    if (setlocale(LC_CTYPE, "C.UTF-8") == NULL) /* libcurl's IDN goes by it */
        log_warn("the locale C.UTF-8 is missing: international domain names are refused");
    if (!pipeline_start(w))
        fail(strerror(errno));
    if (deflateInit2(&w->gzip, 4, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) != Z_OK)
        fail("out of memory");
    wake_openssl();
    open_store(w);
    open_secrets(w);
    configure(w);
    open_tls(p);
    w->writer = writer_client_new(w);
    plain_text_start();
    w->password_pool = thread_pool_new(w);
    w->body_pool = thread_pool_new(w);
    w->queries = queries_new(w);
    w->acceptor = acceptor_new(w);
    w->access_log = access_log_open(w->conf);
    if (w->writer == NULL || w->password_pool == NULL || w->body_pool == NULL || w->queries == NULL ||
        w->acceptor == NULL || w->access_log == NULL)
        fail("see above, or out of memory");
}

static void begin_drain(struct worker *w, bool stopping)
{
    if (!w->draining) {
        w->draining = true;
        w->ctx.shutdown_requested = 1;
        process_phase(w->process, PHASE_DRAINING);
        acceptor_close(w->acceptor);
    }
    w->stopping = w->stopping || stopping;
    writer_client_release(w->writer);
    streams_drain(w);
}

/* That what was sent has left is told by the loop's next turn, and until then nothing more is read from that connection or sent to it. */
static int wait_ms(const struct worker *w)
{
    int most = w->sent ? 0 : w->draining ? TICK_MS / 10 : TICK_MS;
    return streams_wait_ms(w, writer_client_wake_ms(w->writer, acceptor_wake_ms(w->acceptor, most)));
}

static void turn(struct worker *w)
{
    struct score *score = w->process->score;
    if (!queries_stuck(w->queries))
        process_beat(w->process);
    score_set(score->busy_since_ms, 0);
    loop_time_turn(&w->loop_time, score, h2o_now(w->ctx.loop)); /* the one that ends here */
    if (h2o_evloop_run(w->ctx.loop, wait_ms(w)) != 0 && errno != EINTR)
        log_error("epoll: %s", strerror(errno));
    w->sent = false;
    worker_look_at_clock(w);
    store_read_end(w->store);
    look_at_secrets(w);
    writer_client_tick(w->writer);
    admission_queue_tick(w);
    queries_tick(w->queries);
    acceptor_tick(w->acceptor);
    streams_tick(w);
    writer_client_flush(w->writer);
    access_log_flush(w->access_log, false);
    limiting_tick(w->limiting, clock_wall_ms());
    score_set(score->connections, acceptor_connections(w->acceptor));
    score_set(score->pending, writer_client_waiting(w->writer));
    score_set(score->streams, streams_open(w->streams));
}

static void finish(struct worker *w)
{
    writer_client_free(w->writer);
    thread_pool_free(w->password_pool);
    thread_pool_free(w->body_pool);
    queries_free(w->queries);
    acceptor_free(w->acceptor);
    access_log_close(w->access_log);
    store_close(w->store);
    signing_keys_free(w->secrets);
    deflateEnd(&w->gzip);
    pipeline_finish(w);
    h2o_evloop_t *loop = w->ctx.loop;
    h2o_context_dispose(&w->ctx);
    h2o_config_dispose(&w->config);
    h2o_evloop_destroy(loop);
}

bool worker_ready(const struct worker *w)
{
    return writer_client_connected(w->writer) && scoreboard_writer_there(w->process->scoreboard) && !w->draining;
}

/* at once, or when the server that we succeed has handed over */
static void begin_serving(struct worker *w)
{
    if (w->open || w->draining || score_get(w->process->scoreboard->shut) != 0)
        return;
    w->open = true;
    acceptor_open(w->acceptor);
    process_phase(w->process, PHASE_READY);
}

/* The life of a worker: open store → loop → drain. */
int worker_run(struct process *p)
{
    static struct worker w; /* libh2o keeps pointers into it */
    start(&w, p);
    process_phase(p, PHASE_WAITING);
    loop_time_start(&w.loop_time);
    while (!w.draining || acceptor_connections(w.acceptor) > 0) {
        begin_serving(&w);
        turn(&w);
        if ((process_stopping && !w.stopping) || (process_draining && !w.draining))
            begin_drain(&w, process_stopping != 0);
        if (process_reopen) {
            process_reopen = 0;
            access_log_reopen(w.access_log);
        }
    }
    writer_client_flush(w.writer);
    finish(&w);
    return EXIT_STOPPED;
}
