#include "t/kit/api_doubles.h"
#include "core/api/render_internal.h"
#include "core/api/widget_internal.h"
#include "core/api/wp_internal.h"
#include "core/audit/audit.h"
#include "core/audit/url.h"
#include "core/async/thread_pool.h"
#include "core/async/query_threads.h"
#include "core/http/cluster_reads.h"
#include "core/http/fields.h"
#include "core/http/lifecycle.h"
#include "core/http/response_cache.h"

#include <check.h>
#include <stdarg.h>
#include <stdlib.h>

struct played played;

static h2o_req_t h2o;
static struct loop loop;
static struct http http = {.loop = &loop}; /* its cache is all a handler uses */
static struct conf conf;

void played_begin(void)
{
    memset(&played, 0, sizeof(played));
    memset(&h2o, 0, sizeof(h2o));
    h2o_mem_init_pool(&h2o.pool);
    conf = (struct conf){.reports_wait_ms = 10000};
    played.workspace = (struct store_workspace){.id = 7, .version = 21};
    played.answer = (struct store_answer){.status = STORE_OK};
    http.responses = response_cache_new();
}

void played_end(void)
{
    h2o_mem_clear_pool(&h2o.pool);
    response_cache_free(http.responses);
    buf_free(&played.body);
}

const char *played_header(const char *name)
{
    for (size_t i = 0; i < played.headers_count; ++i)
        if (strcmp(played.headers[i].name, name) == 0)
            return played.headers[i].value;
    /* those that were pushed */
    ssize_t at = h2o_find_header_by_str(&h2o.res.headers, name, strlen(name), -1);
    return at < 0 ? NULL
                  : h2o_strdup(&h2o.pool, h2o.res.headers.entries[at].value.base,
                               h2o.res.headers.entries[at].value.len)
                        .base;
}

/* ---- a request ---- */

static const struct route *route_find(const char *method, const char *path)
{
    for (size_t i = 0; i < routes_count; ++i)
        if (strcmp(routes[i].method, method) == 0 && strcmp(routes[i].path, path) == 0)
            return &routes[i];
    ck_abort_msg("no route %s %s", method, path);
}

void played_send(const char *method, const char *path, const char *const *args, const char *input,
                 const char *const *headers)
{
    struct request *r = &played.request;
    h2o.headers = h2o.res.headers = (h2o_headers_t){NULL, 0, 0};
    for (; headers != NULL && *headers != NULL; headers += 2)
        h2o_add_header_by_str(&h2o.pool, &h2o.headers, headers[0], strlen(headers[0]), 1, NULL,
                              headers[1], strlen(headers[1]));
    h2o.path_normalized = h2o_iovec_init(path, strlen(path));
    h2o.entity = h2o_iovec_init(input, strlen(input));
    *r = (struct request){.h2o = &h2o,
                          .conf = &conf,
                          .route = route_find(method, path),
                          .http = &http,
                          .key = 3,
                          .workspace = 7};
    for (int i = 0; args != NULL && i < PATH_ARGS_MAX; ++i)
        r->args[i] = str_of(args[i]);
    if (r->route->body == BODY_NONE)
        r->query = str_of(input);
    played.replies = 0;
    played.headers_count = 0;
    buf_reset(&played.body);
    if (fields_parse(r, str_of(input)))
        r->route->handler(r);
    ck_assert_uint_eq(played.replies, 1);
}

/* ---- the pipeline ---- */

void *request_alloc(struct request *r, size_t size)
{
    return h2o_mem_alloc_pool(&r->h2o->pool, size);
}

struct str request_printf(struct request *r, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    char *text = request_alloc(r, 8192);
    int n = vsnprintf(text, 8192, format, args);
    va_end(args);
    ck_assert_int_lt(n, 8192);
    return (struct str){text, (size_t)n};
}

bool request_header(struct request *r, const char *name, struct str *value)
{
    ssize_t at = h2o_find_header_by_str(&r->h2o->headers, name, strlen(name), -1);
    if (at < 0)
        return false;
    *value =
        (struct str){r->h2o->headers.entries[at].value.base, r->h2o->headers.entries[at].value.len};
    return true;
}

struct str request_base_url(struct request *r)
{
    ck_assert_ptr_eq(r, &played.request);
    return STR("https://api.example.com");
}

struct str request_base_path(struct request *r)
{
    ck_assert_ptr_eq(r, &played.request);
    return STR("");
}

bool request_is_tls(struct request *r)
{
    ck_assert_ptr_eq(r, &played.request);
    return true;
}

void reply_header(struct request *r, const char *name, struct str value)
{
    ck_assert_ptr_eq(r, &played.request);
    ck_assert_ptr_null(played_header(name));
    struct played_header *h = &played.headers[played.headers_count++];
    h->name = name;
    snprintf(h->value, sizeof(h->value), "%.*s", (int)value.n, value.p);
}

void reply_parts(struct request *r, int status, const char *type, const struct str *parts,
                 size_t count)
{
    ck_assert_ptr_eq(r, &played.request);
    ck_assert_str_eq(type, "application/json");
    ck_assert(status < 400 || r->etag.p == NULL); /* an error has no tag */
    played.replies++;
    played.status = status;
    for (size_t i = 0; i < count; ++i)
        buf_str(&played.body, parts[i]);
    buf_add(&played.body, "", 1);
}

void reply_json(struct request *r, int status, const struct str *parts, size_t count)
{
    reply_parts(r, status, "application/json", parts, count);
}

void reply_cached(struct request *r, int status, const char *type, struct response_cache *cache,
                  struct cached_report *entry)
{
    ck_assert_ptr_eq(cache, r->http->responses);
    reply_parts(r, status, type, &(struct str){entry->body.base, entry->body.len}, 1);
}

void reply_fixed(struct request *r, const char *type, struct str body, struct str gzip)
{
    (void)gzip;
    ck_assert_ptr_eq(r, &played.request);
    ck_assert_str_eq(type, "text/javascript; charset=utf-8");
    played.replies++;
    played.status = 200;
    buf_str(&played.body, body);
}

/* every look finds a store that has moved on, so nothing remembered is believed unasked */
uint64_t store_version(struct store *s)
{
    static uint64_t commits;
    (void)s;
    return ++commits;
}

enum store_status store_space(struct store *s, struct store_space *out)
{
    (void)s;
    *out = (struct store_space){0};
    return STORE_OK;
}

enum store_status store_answers_unindexed(struct store *s, uint64_t *out)
{
    (void)s;
    *out = 0;
    return STORE_OK;
}

uint64_t store_snapshot_version(const struct store *s)
{
    (void)s;
    return 1;
}

void reply_empty(struct request *r, int status)
{
    reply_parts(r, status, "application/json", NULL, 0);
}

/* In place of the contract's body just code and message, which is what the handler has a say in. */
void reply_error(struct request *r, enum err err, const char *format, ...)
{
    char text[1024];
    va_list args;
    int n = snprintf(text, sizeof(text), "%s: ", err_row(err)->code);
    va_start(args, format);
    if (format == NULL)
        n += snprintf(text + n, sizeof(text) - (size_t)n, "%s", err_row(err)->message);
    else
        n += vsnprintf(text + n, sizeof(text) - (size_t)n, format, args);
    va_end(args);
    struct str part = {text, (size_t)n};
    r->etag = (struct str){NULL, 0};
    reply_json(r, err_row(err)->status, &part, 1);
}

void reply_store_error(struct request *r, enum store_status status)
{
    reply_error(r, err_of_store(status), NULL);
}

void reply_retry(struct request *r, const char *message)
{
    reply_header(r, "retry-after", STR("1"));
    reply_error(r, ERR_UNAVAILABLE, "%s", message);
}

void reply_store_failure(struct request *r, enum store_status status, const char *why)
{
    (void)why;
    reply_store_error(r, status);
}

void request_change(struct request *r, const struct store_change *change, request_change_fn *done)
{
    struct store_answer answer = played.answer;
    played.changes++;
    played.change = *change;
    if (played.on_change != NULL)
        played.on_change();
    done(r, &answer);
}

void request_await(struct request *r, uint64_t report, unsigned timeout_ms, request_fn *done)
{
    played.awaits++;
    played.awaited = report;
    played.await_ms = timeout_ms;
    if (played.on_await != NULL)
        played.on_await();
    done(r);
}

void request_run_in_pool(struct request *r, struct pool_job *job)
{
    while (job->work(job))
        continue;
    job->over(job, &r->wait);
}

void request_query(struct request *r, struct query *q)
{
    if (played.queries_full) {
        q->over(q, NULL);
        reply_error(r, ERR_UNAVAILABLE, NULL);
        return;
    }
    while (!played.query_late && !(q->done = q->run(q, NULL)))
        played.laters++;
    q->over(q, &r->wait);
}

bool query_must_stop(void *q)
{
    return q == NULL;
}

void writer_client_send_local(struct writer_client *l, const struct store_change *change)
{
    (void)l;
    played.changes++;
    played.change = *change;
}

uint64_t store_lost_segment(const struct store *s)
{
    (void)s;
    return 4711;
}

const char *store_why(const struct store *s)
{
    (void)s;
    return "a segment is missing";
}

void query_late(struct request *r)
{
    reply_error(r, ERR_UNAVAILABLE, NULL);
}

void request_hash(struct request *r, struct str password, request_hash_fn *done)
{
    played.hashes++;
    done(r, played.hash_queue_full
                ? (struct str){NULL, 0}
                : request_printf(r, "hash of %.*s", (int)password.n, password.p));
}

/* Pages are tested over HTTP. */
void request_verify(struct request *r, struct str password, struct str hash,
                    request_verify_fn *done)
{
    (void)r, (void)password, (void)hash, (void)done;
    ck_abort_msg("no test checks a password");
}

void reply_redirect(struct request *r, struct str location)
{
    (void)r, (void)location;
    ck_abort_msg("no test is redirected");
}

/* ---- no cluster ---- */

bool cluster_reads_are_stale(const struct http *h)
{
    ck_assert_ptr_eq(h, &http);
    return false;
}

struct log_position cluster_reads_position(const struct http *h)
{
    ck_assert_ptr_eq(h, &http);
    return (struct log_position){0};
}

void reply_stale(struct request *r)
{
    (void)r;
    ck_abort_msg("a node without a cluster is never behind");
}

bool http_ready(const struct http *h)
{
    ck_assert_ptr_eq(h, &http);
    return !played.not_ready;
}

/* ---- the auditor's judgement of addresses ---- */

bool audit_url_plain(struct str url, const struct conf *of, struct str *host)
{
    (void)url, (void)of, (void)host;
    return false;
}

bool audit_url_normalise(struct str url, const struct conf *of, struct buf *out, struct buf *host,
                         const char **why)
{
    ck_assert_ptr_eq(of, &conf);
    if (!str_eq(url, STR("https://EXAMPLE.com"))) {
        *why = "must be http or https";
        return false;
    }
    buf_adds(out, "https://example.com/");
    buf_adds(host, "example.com");
    return true;
}

/*
 * ---- handlers that are tested on a whole server (t/server/widget*): their rows are in the table,
 * and nobody calls them here ----
 */

#define NOT_PLAYED(name)                                                                           \
    void name(struct request *r)                                                                   \
    {                                                                                              \
        ck_abort_msg("%s is not played: %p", #name, (void *)r);                                    \
    }
NOT_PLAYED(widget_init)
NOT_PLAYED(widget_message)
NOT_PLAYED(widget_messages)
NOT_PLAYED(widget_stream)
NOT_PLAYED(widget_read)
NOT_PLAYED(widget_clear)
NOT_PLAYED(widget_close)
NOT_PLAYED(widget_request_human)
NOT_PLAYED(widget_erase)
NOT_PLAYED(widget_events)
NOT_PLAYED(widget_lead)
NOT_PLAYED(widget_typing)
NOT_PLAYED(widget_rating)
NOT_PLAYED(widget_coupon)
NOT_PLAYED(conversations_list)
NOT_PLAYED(conversations_get)
NOT_PLAYED(conversations_reply)
NOT_PLAYED(conversations_claim)
NOT_PLAYED(conversations_release)
NOT_PLAYED(conversations_note)
NOT_PLAYED(conversations_close)
NOT_PLAYED(conversations_reopen)
NOT_PLAYED(conversations_typing)
NOT_PLAYED(leads_list)
NOT_PLAYED(events_list)
NOT_PLAYED(ratings_list)
NOT_PLAYED(wp_handshake)
NOT_PLAYED(wp_posts_sync)
NOT_PLAYED(wp_posts_changed)
NOT_PLAYED(wp_products_sync)
NOT_PLAYED(wp_products_changed)
NOT_PLAYED(wp_coupons_sync)
NOT_PLAYED(wp_status)
NOT_PLAYED(wp_coupons_pending)

void played_body_is(const char *want)
{
    ck_assert_str_eq(played.body.p, want);
}

void played_body_has(const char *part)
{
    ck_assert_msg(strstr(played.body.p, part) != NULL, "%s is not in %s", part, played.body.p);
}

void played_graded(void)
{
    played.reports_count = 0;
    played_report(41, REPORT_DONE, "{\"title\":{}}");
}
