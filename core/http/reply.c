#include "core/http/reply_internal.h"

#include "core/http/accept.h"
#include "core/http/cluster_reads.h"
#include "core/http/http.h"
#include "core/http/cors_request.h"
#include "core/http/error_html.h"
#include "core/http/etag.h"
#include "core/text/form.h"
#include "core/text/json_out.h"
#include "core/http/limit.h"
#include "core/http/reply.h"
#include "core/http/response_cache.h"
#include "core/conn/connection.h"
#include "core/base/log.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>

/*
 * Responses of this size may be compressed: smaller ones gain nothing, larger ones block the loop.
 */
#define GZIP_MIN 1024
#define GZIP_MAX (64u << 10)
#define GZIP_CACHED_MAX (256u << 10) /* compressed once for many responses */

static const struct {
    int status;
    const char *reason;
} reasons[] = {{200, "OK"},         {201, "Created"},   {202, "Accepted"},
               {204, "No Content"}, {303, "See Other"}, {304, "Not Modified"}};

static const char *reason_of(int status)
{
    for (size_t i = 0; i < sizeof(reasons) / sizeof(reasons[0]); i++)
        if (reasons[i].status == status)
            return reasons[i].reason;
    return err_row(err_of_status(status))->reason;
}

/* ---- errors as JSON or pages ---- */

void error_body(struct buf *out, enum err err, const char *message)
{
    buf_adds(out, "{\"error\":{\"code\":\"");
    buf_adds(out, err_row(err)->code);
    buf_adds(out, "\",\"message\":");
    json_string(out, str_of(message));
    buf_adds(out, "}}");
}

/* Seconds of Retry-After; 0: the response has none. */
static unsigned retry_after_s(struct request *r)
{
    const h2o_headers_t *headers = &r->h2o->res.headers;
    ssize_t at = h2o_find_header(headers, H2O_TOKEN_RETRY_AFTER, -1);
    uint64_t seconds = 0;
    if (!limit_admits(r))
        return limit_retry_s(r);
    if (at >= 0 &&
        !number_parse((struct str){headers->entries[at].value.base, headers->entries[at].value.len},
                      UINT32_MAX, &seconds))
        return 0;
    return (unsigned)seconds;
}

static bool append_page(struct request *r, enum err err, const char *message, struct buf *out)
{
    if (!error_page(r, err, message, retry_after_s(r), out))
        return false;
    if (h2o_find_header(&r->h2o->res.headers, H2O_TOKEN_CACHE_CONTROL, -1) < 0)
        reply_token(r, H2O_TOKEN_CACHE_CONTROL, STR("no-store"));
    return true;
}

/* Append the body of the error that Accept asks for; returns its media type. */
static const char *negotiate_error(struct request *r, enum err err, const char *message,
                                   struct buf *out)
{
    if (error_may_be_page(r))
        reply_token(r, H2O_TOKEN_VARY, STR("accept"));
    if (error_is_page(r) && append_page(r, err, message, out))
        return "text/html; charset=utf-8";
    buf_reset(out);
    error_body(out, err, message);
    return "application/json";
}

/* Replace the response by 429 or 503, for a request that was charged only now. */
static h2o_iovec_t refusal_body(struct request *r)
{
    struct buf body = {0};
    r->h2o->res.headers.size = 0;
    r->etag = (struct str){NULL, 0};
    const char *type = negotiate_error(r, limit_error(r), limit_message(r), &body);
    h2o_iovec_t copy = h2o_strdup(&r->h2o->pool, body.p, body.n);
    buf_free(&body);
    reply_token(r, H2O_TOKEN_CONTENT_TYPE, str_of(type));
    return copy;
}

static void put_position(struct request *r)
{
    static h2o_iovec_t name = {H2O_STRLIT("x-assay-position")};
    const struct str position = cluster_reads_text(r);
    if (position.p != NULL)
        reply_push(r, &name, NULL, position);
}

/* ${length}: of the body; SIZE_MAX: unknown, or no body. */
static void start_response(struct request *r, int status, size_t length, h2o_generator_t *generator)
{
    static h2o_iovec_t request_id = {H2O_STRLIT("x-request-id")};
    h2o_req_t *req = r->h2o;
    req->res.status = status;
    req->res.reason = reason_of(status);
    req->res.content_length = length;
    reply_push(r, &request_id, NULL, r->id);
    reply_security_headers(r);
    if (r->etag.p != NULL)
        reply_token(r, H2O_TOKEN_ETAG, r->etag);
    limit_headers(r);
    cors_headers(r);
    if (r->http->log_waits != NULL)
        put_position(r);
    if (r->http->loop->draining)
        req->http1_is_persistent = 0;
    if (r->conf->log_access[0] != '\0')
        r->answered_us = clock_mono_us();
    r->replied = true;
    r->status = status;
    r->sent_bytes = r->is_head || length == SIZE_MAX ? 0 : length;
    conn_begin_response(r->wait.conn);
    r->http->replying = true;
    h2o_start_response(req, generator);
    r->http->replying = false;
}

void reply_send(struct request *r, h2o_iovec_t *body, size_t count, h2o_send_state_t state)
{
    r->http->loop->sent = true;
    h2o_send(r->h2o, body, count, state);
}

/* A response that waits for the decision of the limiter; in the request's memory. */
struct deferred_response {
    int status;
    size_t length;
    bool has_body;
    h2o_iovec_t body;
};

static void send_now(struct request *r, int status, size_t length, h2o_iovec_t *body)
{
    static h2o_generator_t nothing_more = {NULL, NULL};
    start_response(r, status, length, &nothing_more);
    reply_send(r, body, body != NULL && !r->is_head ? 1 : 0, H2O_SEND_STATE_FINAL);
}

static void send_refusal(struct request *r)
{
    h2o_iovec_t body = refusal_body(r);
    send_now(r, err_row(limit_error(r))->status, body.len, &body);
}

static void send_deferred(struct request *r)
{
    struct deferred_response *deferred = r->limit.deferred;
    if (limit_admits(r))
        send_now(r, deferred->status, deferred->length,
                 deferred->has_body ? &deferred->body : NULL);
    else
        send_refusal(r);
}

static void defer(struct request *r, int status, size_t length, const h2o_iovec_t *body)
{
    r->limit.deferred = request_alloc(r, sizeof(*r->limit.deferred));
    *r->limit.deferred = (struct deferred_response){status, length, body != NULL,
                                                    body != NULL ? *body : h2o_iovec_init(NULL, 0)};
}

static void send_response(struct request *r, int status, size_t length, h2o_iovec_t *body)
{
    enum limit_outcome outcome = r->limit.charged ? LIMIT_ADMITTED : limit_charge(r, send_deferred);
    if (outcome == LIMIT_ADMITTED)
        send_now(r, status, length, body);
    else if (outcome == LIMIT_REFUSED)
        send_refusal(r);
    else
        defer(r, status, length, body);
}

void reply_begin(struct request *r, int status, const char *type, size_t length,
                 h2o_generator_t *generator)
{
    reply_token(r, H2O_TOKEN_CONTENT_TYPE, str_of(type));
    start_response(r, status, length, generator);
}

/* gzip in Accept-Encoding, without q=0 (RFC 9110 §12.5.3) */
static bool accepts_gzip(struct request *r)
{
    struct str header;
    return request_token_header(r, H2O_TOKEN_ACCEPT_ENCODING, &header) &&
           accept_quality(header, STR("gzip"), STR("*")) > 0;
}

static bool compress_body(struct request *r, h2o_iovec_t *body)
{
    z_stream *z = &r->http->gzip;
    size_t bound = deflateBound(z, body->len);
    char *out = request_alloc(r, bound);
    z->next_in = (Bytef *)body->base;
    z->avail_in = (uInt)body->len;
    z->next_out = (Bytef *)out;
    z->avail_out = (uInt)bound;
    bool ok = deflate(z, Z_FINISH) == Z_STREAM_END;
    *body = ok ? h2o_iovec_init(out, bound - z->avail_out) : *body;
    deflateReset(z);
    return ok;
}

/* The body is compressed: its headers and ETag. */
static void mark_gzip(struct request *r)
{
    reply_token(r, H2O_TOKEN_CONTENT_ENCODING, STR("gzip"));
    if (r->etag.p != NULL)
        r->etag = etag_compressed(r->etag, request_alloc(r, ETAG_SIZE));
}

/* True: ${body} is compressed, in the request's memory. */
static bool negotiate_gzip(struct request *r, h2o_iovec_t *body, size_t max)
{
    if (body->len < GZIP_MIN || body->len > max)
        return false;
    reply_token(r, H2O_TOKEN_VARY, STR("accept-encoding"));
    if (!accepts_gzip(r) || !compress_body(r, body))
        return false;
    mark_gzip(r);
    return true;
}

void reply_parts(struct request *r, int status, const char *type, const struct str *parts,
                 size_t count)
{
    h2o_iovec_t body = {NULL, 0};
    for (size_t i = 0; i < count; i++)
        body.len += parts[i].n;
    char *to = body.base = request_alloc(r, body.len);
    for (size_t i = 0; i < count; i++) {
        assert(parts[i].n == 0 || parts[i].p != NULL);
        if (parts[i].n > 0)
            memcpy(to, parts[i].p, parts[i].n);
        to += parts[i].n;
    }
    reply_token(r, H2O_TOKEN_CONTENT_TYPE, str_of(type));
    conn_response_memory(r->wait.conn, body.len);
    negotiate_gzip(r, &body, GZIP_MAX);
    send_response(r, status, body.len, &body);
}

void reply_json(struct request *r, int status, const struct str *parts, size_t count)
{
    reply_parts(r, status, "application/json", parts, count);
}

void reply_cached(struct request *r, int status, const char *type, struct response_cache *cache,
                  struct cached_report *entry)
{
    h2o_iovec_t body = entry->body;
    reply_token(r, H2O_TOKEN_CONTENT_TYPE, str_of(type));
    if (entry->gzip.base != NULL && accepts_gzip(r)) {
        reply_token(r, H2O_TOKEN_VARY, STR("accept-encoding"));
        body = entry->gzip;
        mark_gzip(r);
    } else if (negotiate_gzip(r, &body, GZIP_CACHED_MAX)) {
        response_cache_compress(cache, entry, (struct str){body.base, body.len});
        send_response(r, status, body.len, &body);
        return;
    }
    h2o_mem_link_shared(&r->h2o->pool, body.base);
    send_response(r, status, body.len, &body);
}

void reply_fixed(struct request *r, const char *type, struct str body, struct str gzip)
{
    bool packed = accepts_gzip(r);
    h2o_iovec_t sent = {(char *)(uintptr_t)(packed ? gzip : body).p, (packed ? gzip : body).n};
    reply_token(r, H2O_TOKEN_CONTENT_TYPE, str_of(type));
    reply_token(r, H2O_TOKEN_VARY, STR("accept-encoding"));
    if (packed)
        mark_gzip(r);
    send_response(r, 200, sent.len, &sent);
}

void reply_empty(struct request *r, int status)
{
    send_response(r, status, SIZE_MAX, NULL);
}

void reply_redirect(struct request *r, struct str location)
{
    reply_header(r, "location", location);
    reply_header(r, "cache-control", STR("no-store"));
    send_response(r, 303, 0, NULL);
}

/* As vsnprintf. Text that does not fit is cut between two characters. */
static void print_message(char *to, size_t size, const char *format, va_list args)
{
    int n = vsnprintf(to, size, format, args);
    if (n >= (int)size)
        to[utf8_length(str_of(to))] = '\0';
}

/* In a cluster the record may be in the log: the last step runs again. */
static bool is_to_be_confirmed(struct request *r, enum err err)
{
    return (err == ERR_NOT_FOUND || err == ERR_AGENT_NOT_FOUND) && r->http->log_waits != NULL &&
           r->route != NULL && r->route->body != BODY_SYNC && cluster_reads_confirm(r, 1);
}

void reply_error(struct request *r, enum err err, const char *format, ...)
{
    struct buf body = {0};
    char message[512];
    va_list args;
    r->etag = (struct str){NULL, 0};
    if (is_to_be_confirmed(r, err))
        return;
    if (format != NULL) {
        va_start(args, format);
        print_message(message, sizeof(message), format, args);
        va_end(args);
    }
    const char *type =
        negotiate_error(r, err, format == NULL ? err_row(err)->message : message, &body);
    struct str part = buf_view(&body);
    reply_parts(r, err_row(err)->status, type, &part, 1);
    buf_free(&body);
}

#define LOG_EVERY_MS 10000

/* The caller learns only the status; the log has the reason for the operator. */
static void log_store_error(enum store_status status, const char *why)
{
    static uint64_t logged_ms;
    uint64_t now = clock_mono_ms();
    if ((status != STORE_CORRUPT && status != STORE_IO) || why[0] == '\0' ||
        (logged_ms != 0 && now - logged_ms < LOG_EVERY_MS))
        return;
    logged_ms = now;
    log_error("cannot answer requests from the store: %s", why);
}

void reply_store_failure(struct request *r, enum store_status status, const char *why)
{
    log_store_error(status, why);
    reply_error(r, err_of_store(status), NULL);
}

void reply_store_error(struct request *r, enum store_status status)
{
    reply_store_failure(r, status, r->store == NULL ? "" : store_why(r->store));
}

void reply_retry(struct request *r, const char *message)
{
    reply_header(r, "retry-after", STR("1"));
    reply_error(r, ERR_UNAVAILABLE, "%s", message);
}

void reply_stale(struct request *r)
{
    reply_retry(r, "This node is behind the log of its cluster for longer than cluster.max_lag, "
                   "and does not know whether the credential is still valid. Retry later.");
}
