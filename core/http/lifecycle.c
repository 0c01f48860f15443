#include "core/http/lifecycle.h"

#include "core/auth/credential.h"
#include "core/base/log.h"
#include "core/http/access_log.h"
#include "core/http/admission_queue.h"
#include "core/http/credential_cache.h"
#include "core/http/limit.h"
#include "core/http/pipeline.h"
#include "core/http/response_cache.h"
#include "core/http/session.h"

#include <errno.h>
#include <string.h>

/*
 * libh2o's timers use wall time and never fire; core/conn/timeouts.c replaces them. libh2o
 * subtracts a timeout from the time, and all timers fire if that is below zero: in a server that
 * starts with a clock of 1970 a timeout is shorter than that.
 */
#define NEVER_MS (10ll * 365 * 86400 * 1000)
static uint64_t never_ms(void)
{
    const int64_t half = clock_wall_ms() / 2;
    return (uint64_t)(half < NEVER_MS ? half : NEVER_MS);
}

static bool open_keys(struct http *h)
{
    char path[SECRETS_PATH], why[SECRETS_PATH + 256];
    signing_keys_path(h->loop->conf, path);
    h->keys = signing_keys_open(path, why, sizeof(why));
    if (h->keys == NULL)
        log_error("the worker cannot start: %s", why);
    return h->keys != NULL;
}

static void reload_keys(struct http *h)
{
    if (h->loop->now_ms < h->keys_at_ms)
        return;
    h->keys_at_ms = h->loop->now_ms + SECRETS_LOOK_MS;
    signing_keys_reload(h->keys);
}

/* OpenSSL reads its configuration at its first use; no request should wait for that. */
static bool initialize_openssl(void)
{
    uint8_t hash[CREDENTIAL_HASH];
    if (!credential_hash(str_of(""), hash))
        log_error("the worker cannot start: OpenSSL cannot hash");
    else
        return true;
    return false;
}

static void configure(struct http *h)
{
    struct loop *l = h->loop;
    h2o_config_init(&l->config);
    l->config.server_name = (h2o_iovec_t){NULL, 0};
    l->config.http1.req_timeout = never_ms();
    l->config.http1.upgrade_to_http2 = 0;
    l->config.handshake_timeout = never_ms();
    l->config.max_request_entity_size = pipeline_max_body(l->conf) + 1;
    h2o_hostconf_t *host =
        h2o_config_register_host(&l->config, h2o_iovec_init(H2O_STRLIT("default")), 65535);
    pipeline_register(h, host);
    h2o_context_init(&l->ctx, h2o_evloop_create(), &l->config);
}

static bool create_parts(struct http *h)
{
    h->responses = response_cache_new();
    h->pages = response_cache_new();
    h->credentials = credential_cache_new();
    h->limiter = request_limiter_new(h->loop);
    h->sessions = sessions_new();
    h->password_pool = thread_pool_new(h->loop);
    h->body_pool = thread_pool_new(h->loop);
    h->access_log = access_log_open(h->loop->conf);
    h->queries = queries_new(h->loop);
    bool cluster = h->loop->conf->cluster_log[0] != '\0';
    h->log_waits = cluster ? log_waits_new(h->loop) : NULL;
    return h->responses != NULL && h->pages != NULL && h->credentials != NULL &&
           h->limiter != NULL && h->sessions != NULL && h->password_pool != NULL &&
           h->body_pool != NULL && h->access_log != NULL && h->queries != NULL &&
           (h->log_waits != NULL || !cluster);
}

bool http_start(struct http *h, struct loop *loop)
{
    const struct process *p = loop->process;
    h->loop = loop;
    h->base_url = str_of(p->conf->base_url[0] != '\0' ? p->conf->base_url : p->listeners[0].url);
    if (deflateInit2(&h->gzip, 4, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) == Z_OK &&
        initialize_openssl() && open_keys(h)) {
        configure(h);
        if (create_parts(h))
            return true;
    }
    log_error("the worker cannot start: see the messages above; without one, memory is short (%s)",
              strerror(errno));
    return false;
}

void http_finish(struct http *h)
{
    thread_pool_free(h->password_pool);
    thread_pool_free(h->body_pool);
    queries_free(h->queries);
    log_waits_free(h->log_waits);
    access_log_close(h->access_log);
    signing_keys_free(h->keys);
    deflateEnd(&h->gzip);
    buf_free(&h->body);
    response_cache_free(h->responses);
    response_cache_free(h->pages);
    credential_cache_free(h->credentials);
    request_limiter_free(h->limiter);
    sessions_free(h->sessions);
}

void http_tick(struct http *h)
{
    reload_keys(h);
    admission_queue_tick(&h->admissions, h->loop->now_ms);
    queries_tick(h->queries);
    if (h->log_waits != NULL)
        log_waits_look(h->log_waits, h->writer);
    access_log_flush(h->access_log, false);
    request_limiter_tick(h->limiter, clock_wall_ms());
}

void http_flush(struct http *h)
{
    request_limiter_flush(h->limiter);
}

int http_wake_ms(const struct http *h, int most)
{
    return request_limiter_wake_ms(h->limiter, most);
}

bool http_may_serve(const struct http *h)
{
    return request_limiter_settled(h->limiter);
}

/* In a cluster the writer disconnects a worker with unanswered changes when the leader is lost. */
bool http_ready(const struct http *h)
{
    return (writer_client_connected(h->writer) || h->log_waits != NULL) &&
           scoreboard_writer_ready(h->loop->process->scoreboard) && !h->loop->draining;
}
