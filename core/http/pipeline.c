#include "pipeline.h"

#include "form.h"
#include "fields.h"
#include "client_ip.h"
#include "cors_request.h"
#include "head.h"
#include "inflate.h"
#include "limit.h"
#include "memo.h"
#include "reading.h"
#include "reply.h"
#include "route.h"
#include "session.h"
#include "signature.h"
#include "stream.h"
#include "access_log.h"
#include "../doors.h"
#include "../link.h"
#include "../traffic.h"

#include <strings.h>
#include <sys/random.h>
#include <time.h>

enum step { STEP_NEXT, STEP_DONE /* replied */, STEP_WAIT /* a continuation calls pipeline_resume */ };

/* a key's last use is told once in this time, per worker */
#define TOUCH_EVERY_MS 60000

static struct str view(h2o_iovec_t v)
{
    return (struct str){v.base, v.len};
}

/* ---- head checks ---- */

static enum step check_head(struct request *r)
{
    /* the library keeps the head at the start of its input until the request ends, a body behind it */
    h2o_buffer_t *input = r->conn->socket->input;
    bool chunked;
    const char *fault = head_fault((struct str){input->bytes, input->size}, r->h2o->version >= 0x101, &chunked);
    /* the library's decoder is laxer about chunk sizes than others ("0x5" ends the body): whatever follows such a body is not read */
    if (chunked)
        r->h2o->http1_is_persistent = 0;
    if (fault == NULL)
        return STEP_NEXT;
    r->h2o->http1_is_persistent = 0;
    conn_linger(r->conn);
    reply_error(r, ERR_BAD_REQUEST, "%s", fault);
    return STEP_DONE;
}

/* ---- route ---- */

static bool decode_args(struct request *r)
{
    for (size_t i = 0; i < PATH_ARGS_MAX && r->args[i].p != NULL; i++)
        if (memchr(r->args[i].p, '%', r->args[i].n) != NULL)
            r->args[i] = form_decode(r->args[i], false, request_alloc(r, r->args[i].n));
    return true;
}

static bool path_valid(struct request *r, struct str path)
{
    if (memchr(path.p, '%', path.n) == NULL)
        return utf8_valid(path);
    return form_decode(path, false, request_alloc(r, path.n)).p != NULL;
}

static void reply_allow(struct request *r, const struct route *row, bool options)
{
    struct buf allow = {0};
    route_allow(row, &allow);
    reply_header(r, "allow", request_printf(r, "%.*s", (int)allow.n, allow.p));
    buf_free(&allow);
    if (options)
        reply_empty(r, 204);
    else
        reply_error(r, ERR_METHOD_NOT_ALLOWED, NULL);
}

static enum step find_route(struct request *r)
{
    struct str path = route_path(r->h2o, &r->query), method = view(r->h2o->input.method);
    r->is_head = str_eq(method, STR("HEAD"));
    if (!path_valid(r, path)) {
        reply_error(r, ERR_BAD_REQUEST,
                    "The path is malformed: every %%XX must be two hexadecimal digits, and the text they make UTF-8 without NUL.");
        return STEP_DONE;
    }
    r->route = route_find(method, path, r->conn->internal, r->args, &r->other);
    if (r->route != NULL && decode_args(r))
        return STEP_NEXT;
    r->route = NULL;
    return cors_preflight(r) ? STEP_DONE : STEP_NEXT; /* to lead_back, by way of who it is */
}

/* no such path, or not by this method: told once it is known whom the limiter of its surface charges */
static enum step lead_back(struct request *r)
{
    if (r->route != NULL)
        return STEP_NEXT;
    if (r->other != NULL)
        reply_allow(r, r->other, h2o_memis(r->h2o->input.method.base, r->h2o->input.method.len, H2O_STRLIT("OPTIONS")));
    else
        reply_error(r, ERR_NOT_FOUND, NULL);
    return STEP_DONE;
}

/* ---- Accept ---- */

static enum step check_accept(struct request *r)
{
    ssize_t at = h2o_find_header(&r->h2o->headers, H2O_TOKEN_ACCEPT, -1);
    if (at < 0 || r->route == NULL || (r->route->flags & ROUTE_TEXT) != 0)
        return STEP_NEXT;
    struct str accept = view(r->h2o->headers.entries[at].value);
    if (str_eq(accept, STR("application/json")) || str_eq(accept, STR("*/*")) || accept_json(accept))
        return STEP_NEXT;
    reply_error(r, ERR_NOT_ACCEPTABLE, NULL);
    return STEP_DONE;
}

/* ---- client address ---- */

/*
 * the lines of X-Forwarded-For from the last to the first, and in each the addresses from right to left: the first that is no trusted
 * proxy's
 */
static void follow_proxies(struct request *r)
{
    const h2o_headers_t *headers = &r->h2o->headers;
    for (size_t i = headers->size; i > 0; i--) {
        const h2o_header_t *h = &headers->entries[i - 1];
        if (h->name == &H2O_TOKEN_X_FORWARDED_FOR->buf && !client_right_most(&r->conf->trusted_proxies, view(h->value), &r->client_ip))
            return;
    }
}

static enum step find_client(struct request *r)
{
    struct conn *c = r->conn;
    if (!c->peer_known) {
        struct sockaddr_storage peer = {0};
        c->peer_known = true;
        if (h2o_socket_getpeername(c->socket, (struct sockaddr *)&peer) == 0 || !ip_of((struct sockaddr *)&peer, &c->peer))
            c->local = true; /* a Unix socket: whoever may connect to it is a proxy of this host */
    }
    r->client_ip = c->peer;
    if (c->direct)
        return STEP_NEXT;
    if (c->local || (r->conf->trusted_proxies.count > 0 && cidr_list_has(&r->conf->trusted_proxies, &c->peer)))
        follow_proxies(r);
    return STEP_NEXT;
}

/* ---- credential ---- */

static enum step refuse_credential(struct request *r, bool sent, const char *message)
{
    reply_header(r, "www-authenticate", sent ? STR("Bearer realm=\"assay\", error=\"invalid_token\"") : STR("Bearer realm=\"assay\""));
    reply_error(r, ERR_UNAUTHORIZED, "%s", message);
    return STEP_DONE;
}

static bool bearer(struct request *r, struct str *token)
{
    ssize_t at = h2o_find_header(&r->h2o->headers, H2O_TOKEN_AUTHORIZATION, -1);
    struct str value = at < 0 ? (struct str){"", 0} : view(r->h2o->headers.entries[at].value);
    if (value.n < 7 || (memcmp(value.p, "Bearer ", 7) != 0 && strncasecmp(value.p, "Bearer ", 7) != 0))
        return false;
    *token = (struct str){value.p + 7, value.n - 7};
    while (token->n > 0 && *token->p == ' ')
        *token = (struct str){token->p + 1, token->n - 1};
    return token->n > 0;
}

/* say, now and then, that a key is in use */
static void touch(struct request *r)
{
    uint64_t *slot = &r->worker->touched[r->key % (sizeof(r->worker->touched) / sizeof(r->worker->touched[0]))];
    uint64_t mark = r->key << 20 | ((uint64_t)(r->now_ms / TOUCH_EVERY_MS) & 0xfffff);
    if (r->now_ms - r->credential.last_used_at < TOUCH_EVERY_MS || *slot == mark)
        return;
    *slot = mark;
    struct store_change change = {.kind = CHANGE_KEY_TOUCH, .id = r->key};
    link_send(r->worker->link, &change);
}

static void key_found(void *arg, enum store_status status, const struct store_key *key)
{
    struct request *r = arg;
    r->credential_status = status;
    if (status == STORE_OK) {
        r->credential = *key;
        memo_key_learn(r->worker->memo, key, store_snapshot_version(r->store));
    }
    r->looked_up = true;
    if (r->waits_for_key)
        pipeline_resume(r);
}

/* Columns by kind of credential: what to send, what is said of one that is unknown, revoked, expired. */
static const struct {
    const char *send, *unknown, *revoked, *expired;
} credential_words[] = {
    [AUTH_API_KEY] = {"Send an API key: Authorization: Bearer asy_key_….", "This API key is not known; check that it was copied whole.",
                      "This API key was revoked.", "This API key has expired."},
    [AUTH_JWT] = {"Send the visitor's token of POST /api/v1/widget/init: Authorization: Bearer ….",
                  "This visitor's token is not good, or has expired: get another one by POST /api/v1/widget/init.", NULL, NULL},
    [AUTH_WP_TOKEN] = {"Send a workspace token: Authorization: Bearer asy_wp_….",
                       "This workspace token is not known; check that it was copied whole.", "This workspace token was revoked.",
                       "This workspace token has expired."},
};

static enum step find_session(struct request *r, struct str token)
{
    switch (session_find(r, token)) {
    case SESSION_GOOD:
        return STEP_NEXT;
    case SESSION_FORBIDDEN:
        reply_error(r, ERR_ORIGIN_FORBIDDEN, NULL);
        return STEP_DONE;
    case SESSION_UNPUBLISHED:
        reply_error(r, ERR_AGENT_NOT_FOUND, NULL);
        return STEP_DONE;
    case SESSION_LEAD_WANTED:
        reply_error(r, ERR_LEAD_REQUIRED, NULL);
        return STEP_DONE;
    case SESSION_UNAVAILABLE:
        reply_error(r, ERR_UNAVAILABLE, NULL);
        return STEP_DONE;
    default:
        return refuse_credential(r, true, credential_words[AUTH_JWT].unknown);
    }
}

static enum step look_up(struct request *r, struct str token, enum credential_kind kind)
{
    const struct memo_key *known;
    int there = memo_key(r->worker->memo, token, kind, &known);
    r->credential_status = there == 0 ? STORE_NOT_FOUND : there < 0 ? STORE_IO : STORE_OK;
    if (there != 1)
        return STEP_NEXT;
    r->seen = store_version(r->store);
    if (known->seen == r->seen) {
        r->credential = known->key;
        return STEP_NEXT;
    }
    store_key_find(r->store, known->hash, key_found, r);
    r->waits_for_key = !r->looked_up;
    return r->looked_up ? STEP_NEXT : STEP_WAIT;
}

/* All below the two prefixes of bulk sync counts for the token that is sent, also what is not there. */
static enum step find_strangers_token(struct request *r)
{
    struct str query, path = route_path(r->h2o, &query), token;
    static const struct str surfaces[] = {STR("/v1/wp/"), STR("/api/v1/wp/")};
    r->credential_status = STORE_NOT_FOUND;
    for (size_t i = 0; i < sizeof(surfaces) / sizeof(surfaces[0]); i++)
        if (path.n >= surfaces[i].n && memcmp(path.p, surfaces[i].p, surfaces[i].n) == 0 && bearer(r, &token))
            return look_up(r, token, CREDENTIAL_TOKEN);
    return STEP_NEXT;
}

static enum step find_credential(struct request *r)
{
    struct str token;
    if (r->route == NULL)
        return find_strangers_token(r);
    if (r->route->auth == AUTH_NONE)
        return STEP_NEXT;
    if (!bearer(r, &token))
        return refuse_credential(r, false, credential_words[r->route->auth].send);
    if (r->route->auth == AUTH_JWT)
        return find_session(r, token);
    return look_up(r, token, r->route->auth == AUTH_WP_TOKEN ? CREDENTIAL_TOKEN : CREDENTIAL_KEY);
}

static bool is_over(const struct store_key *key, int64_t now_ms)
{
    return key->expires_at != 0 && key->expires_at <= now_ms;
}

static enum step judge_credential(struct request *r)
{
    const struct store_key *key = &r->credential;
    if (r->route == NULL) {
        r->token = r->credential_status == STORE_OK && key->revoked_at == 0 && !is_over(key, r->now_ms) ? key->id : 0;
        return STEP_NEXT;
    }
    if (r->route->auth == AUTH_NONE || r->route->auth == AUTH_JWT)
        return STEP_NEXT;
    if (r->credential_status == STORE_NOT_FOUND)
        return refuse_credential(r, true, credential_words[r->route->auth].unknown);
    if (r->credential_status != STORE_OK) {
        reply_error(r, ERR_UNAVAILABLE, NULL);
        return STEP_DONE;
    }
    if (key->revoked_at != 0)
        return refuse_credential(r, true, credential_words[r->route->auth].revoked);
    if (is_over(key, r->now_ms))
        return refuse_credential(r, true, credential_words[r->route->auth].expired);
    r->key = key->id;
    r->workspace = key->workspace;
    r->scopes = key->scopes;
    r->token = r->route->auth == AUTH_WP_TOKEN ? key->id : 0;
    touch(r);
    if ((r->scopes & r->route->scope) == r->route->scope)
        return STEP_NEXT;
    reply_header(r, "www-authenticate", STR("Bearer realm=\"assay\", error=\"insufficient_scope\""));
    reply_error(r, ERR_INSUFFICIENT_SCOPE, NULL);
    return STEP_DONE;
}

/* ---- limiter ---- */

static enum step expect_charge(struct request *r)
{
    limit_expect(r);
    return STEP_NEXT;
}

static enum step charge(struct request *r)
{
    if (limit_charge(r))
        return STEP_NEXT;
    reply_error(r, ERR_RATE_LIMITED, NULL);
    return STEP_DONE;
}

static enum step limit(struct request *r)
{
    return (r->route->flags & ROUTE_BODY_FIRST) != 0 ? STEP_NEXT : charge(r);
}

static enum step limit_by_body(struct request *r)
{
    return (r->route->flags & ROUTE_BODY_FIRST) != 0 ? charge(r) : STEP_NEXT;
}

/* ---- body rules ---- */

static enum step refuse_type(struct request *r)
{
    static const struct str taken[] = {
        [BODY_FORM] = STR("application/x-www-form-urlencoded"),
        [BODY_JSON] = STR("application/json, application/x-www-form-urlencoded"),
        [BODY_SYNC] = STR("application/json"),
    };
    reply_header(r, "accept-post", taken[r->route->body]);
    if (r->route->body == BODY_SYNC)
        reply_header(r, "accept-encoding", STR("gzip"));
    reply_error(r, ERR_UNSUPPORTED_MEDIA_TYPE, NULL);
    return STEP_DONE;
}

static bool is_type(struct str type, struct str wanted)
{
    if (type.n < wanted.n || strncasecmp(type.p, wanted.p, wanted.n) != 0)
        return false;
    return type.n == wanted.n || type.p[wanted.n] == ';' || type.p[wanted.n] == ' ' || type.p[wanted.n] == '\t';
}

static bool is(struct str s, struct str wanted)
{
    return s.n == wanted.n && strncasecmp(s.p, wanted.p, s.n) == 0;
}

static bool is_form(struct str type)
{
    return is_type(type, STR("application/x-www-form-urlencoded"));
}

static bool is_json(struct str type)
{
    return is_type(type, STR("application/json"));
}

static size_t max_body(const struct route *route, const struct conf *conf)
{
    return route->body == BODY_SYNC ? conf->sync_max_bytes : route->max_body;
}

static enum step check_body(struct request *r)
{
    struct str type, coding;
    if (r->route->body == BODY_NONE)
        return STEP_NEXT;
    if (r->h2o->entity.len > max_body(r->route, r->conf)) {
        reply_error(r, ERR_PAYLOAD_TOO_LARGE, NULL);
        return STEP_DONE;
    }
    bool typed = request_header(r, "content-type", &type);
    bool taken = typed && ((r->route->body != BODY_SYNC && is_form(type)) || (r->route->body != BODY_FORM && is_json(type)));
    if (typed ? !taken : r->h2o->entity.len > 0)
        return refuse_type(r);
    if (!request_header(r, "content-encoding", &coding) || is(coding, STR("identity")))
        return STEP_NEXT;
    r->compressed = r->route->body == BODY_SYNC && (is(coding, STR("gzip")) || is(coding, STR("x-gzip")));
    return r->compressed ? STEP_NEXT : refuse_type(r);
}

/* ---- signature ---- */

static enum step refuse_signature(struct request *r, enum err err, const char *message)
{
    reply_header(r, "www-authenticate", STR("Bearer realm=\"assay\""));
    reply_error(r, err, message == NULL ? NULL : "%s", message);
    return STEP_DONE;
}

/* What takes long to judge and to inflate is read off the loop. Deflate makes up to 1,032 times as much of a byte: both bounds are one. */
#define LARGE_BYTES ((size_t)256 * 1024)
#define LARGE_PACKED_BYTES (LARGE_BYTES / 1024)

static enum step read_large(struct request *r)
{
    struct str header = {"", 0}, token;
    if (r->route->body != BODY_SYNC || r->h2o->entity.len <= (r->compressed ? LARGE_PACKED_BYTES : LARGE_BYTES) || !bearer(r, &token))
        return STEP_NEXT;
    request_header(r, "x-signature", &header);
    if (header.n == 0 && (r->scopes & SCOPE_SIGNED) != 0)
        return STEP_NEXT; /* to be refused */
    if (reading_send(r, max_body(r->route, r->conf), header, token))
        return STEP_WAIT;
    reply_error(r, ERR_UNAVAILABLE, NULL);
    return STEP_DONE;
}

static enum step check_signature(struct request *r)
{
    struct str header, token;
    if (r->route->auth != AUTH_WP_TOKEN || !bearer(r, &token))
        return STEP_NEXT;
    if (!request_header(r, "x-signature", &header))
        return (r->scopes & SCOPE_SIGNED) != 0 ? refuse_signature(r, ERR_SIGNATURE_MISSING, NULL) : STEP_NEXT;
    switch (r->reading != NULL && r->reading->is_signed ? r->reading->signature
                                                       : signature_judge(header, token, view(r->h2o->entity), r->now_ms / 1000)) {
    case SIGNATURE_GOOD:
        return STEP_NEXT;
    case SIGNATURE_MALFORMED:
        return refuse_signature(r, ERR_SIGNATURE_MISMATCH, "X-Signature must be t=<unix>,v1=<64 hexadecimal digits>.");
    case SIGNATURE_OLD:
        return refuse_signature(r, ERR_SIGNATURE_MISMATCH, "The time of X-Signature is more than 300 seconds from ours: set the clock.");
    default:
        return refuse_signature(r, ERR_SIGNATURE_MISMATCH, NULL);
    }
}

/* ---- compression ---- */

static void plain_free(void *arg)
{
    buf_free(arg);
}

static enum step inflate_body(struct request *r)
{
    if (!r->compressed)
        return STEP_NEXT;
    struct buf *plain = r->reading != NULL ? &r->reading->plain : h2o_mem_alloc_shared(&r->h2o->pool, sizeof(*plain), plain_free);
    if (r->reading == NULL)
        *plain = (struct buf){0};
    switch (r->reading != NULL ? r->reading->inflated : inflate_gzip(view(r->h2o->entity), max_body(r->route, r->conf), plain)) {
    case INFLATE_OK:
        r->h2o->entity = h2o_iovec_init(plain->p, plain->n);
        return STEP_NEXT;
    case INFLATE_TOO_LARGE:
        reply_error(r, ERR_PAYLOAD_TOO_LARGE, NULL);
        return STEP_DONE;
    case INFLATE_NO_MEMORY:
        reply_error(r, ERR_UNAVAILABLE, NULL);
        return STEP_DONE;
    default:
        reply_error(r, ERR_BAD_REQUEST, "The body is not gzip, or ends early.");
        return STEP_DONE;
    }
}

/* ---- fields ---- */

static enum step parse_fields(struct request *r)
{
    if (r->route->body == BODY_NONE)
        return fields_parse(r, r->query) ? STEP_NEXT : STEP_DONE;
    /* a query beside a form means nothing, but must be well-formed */
    if (r->query.n > 0 && form_decode(r->query, true, request_alloc(r, r->query.n)).p == NULL) {
        reply_error(r, ERR_BAD_REQUEST,
                    "The query is malformed: every %%XX must be two hexadecimal digits, and the text they make UTF-8 without NUL.");
        return STEP_DONE;
    }
    struct str type;
    bool json = r->h2o->entity.len > 0 && request_header(r, "content-type", &type) && is_json(type);
    return (json ? fields_parse_json : fields_parse)(r, view(r->h2o->entity)) ? STEP_NEXT : STEP_DONE;
}

/* whom the body names is whom a limiter that waits for it charges */
static enum step find_agent(struct request *r)
{
    if ((r->route->flags & ROUTE_BODY_FIRST) != 0)
        session_agent_of_body(r);
    return STEP_NEXT;
}

static enum step handle(struct request *r)
{
    r->route->handler(r);
    return STEP_DONE;
}

/*
 * The pipeline, in the order of decisions (design: accept → client → head checks → route → credential → limiter → body → fields → handler).
 * Whatever is answered before the limiter is charged when it is sent (reply.c).
 */
static enum step (*const steps[])(struct request *r) = {
    find_client, check_head, find_route,      expect_charge, check_accept, find_credential, judge_credential, lead_back,
    limit,       check_body, read_large,      check_signature, inflate_body, parse_fields,  find_agent,       limit_by_body,
    handle,
};

void pipeline_resume(struct request *r)
{
    struct store *store = r->store;
    while (r->step < sizeof(steps) / sizeof(steps[0]))
        if (steps[r->step++](r) != STEP_NEXT)
            break;
    store_read_end(store);
}

/* ---- a request's beginning and end ---- */

static bool id_acceptable(struct str id)
{
    if (id.n == 0 || id.n > 128)
        return false;
    for (size_t i = 0; i < id.n; i++) {
        char c = id.p[i];
        if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' || c == '_' || c == '-'))
            return false;
    }
    return true;
}

static void hex(char *to, uint64_t v)
{
    for (int shift = 60; shift >= 0; shift -= 4)
        *to++ = "0123456789abcdef"[v >> shift & 15];
}

/* the hex number of ${n} digits, one more */
static void count_up(char *digits, size_t n)
{
    while (n-- > 0) {
        if (digits[n] != 'f') {
            digits[n] = digits[n] == '9' ? 'a' : (char)(digits[n] + 1);
            return;
        }
        digits[n] = '0';
    }
}

/* this worker's random prefix and a counter */
struct str pipeline_id(struct worker *w)
{
    count_up(w->id, sizeof(w->id));
    return (struct str){w->id, sizeof(w->id)};
}

/* the caller's, or a new one */
static struct str request_id(struct worker *w, h2o_req_t *req)
{
    for (size_t i = 0; i < req->headers.size; i++) {
        const h2o_header_t *h = &req->headers.entries[i];
        if (h->name->len != strlen("x-request-id") || memcmp(h->name->base, "x-request-id", h->name->len) != 0)
            continue;
        if (id_acceptable(view(h->value)))
            return view(h->value);
        break;
    }
    char *text = h2o_mem_alloc_pool(&req->pool, sizeof(w->id));
    memcpy(text, pipeline_id(w).p, sizeof(w->id));
    return (struct str){text, sizeof(w->id)};
}

bool pipeline_start(struct worker *w)
{
    uint64_t prefix;
    w->memo = memo_new();
    w->limiting = limiting_new(w);
    w->sessions = sessions_new();
    w->streams = streams_new();
    if (w->memo == NULL || w->sessions == NULL || w->streams == NULL || w->limiting == NULL || getrandom(&prefix, sizeof(prefix), 0) != sizeof(prefix))
        return false;
    hex(w->id, prefix);
    hex(w->id + sizeof(w->id) / 2, 0);
    return true;
}

void pipeline_finish(struct worker *w)
{
    memo_free(w->memo);
    limiting_free(w->limiting);
    sessions_free(w->sessions);
    streams_free(w->streams);
}

static void note_answer(struct request *r, bool streamed)
{
    const struct process *p = r->worker->process;
    uint64_t took_us = request_clock_us() - r->started_us;
    if (r->replied)
        traffic_answered(p->traffic, p->index, r->route == NULL ? routes_count : (size_t)(r->route - routes), r->status, streamed ? TRAFFIC_UNTIMED : took_us);
    access_log_add(r->worker->access_log, r, took_us);
}

static void on_request_end(void *arg)
{
    struct request *r = arg;
    struct conn *c = r->conn;
    if (r->pending != NULL)
        r->pending->request = NULL;
    c->request = NULL;
    c->requests++;
    c->since_ms = r->worker->now_ms;
    bool streamed = c->streaming;
    c->receiving = c->head_done = c->sending = c->streaming = false;
    conn_hold(c, 0);
    score_add(r->worker->process->score->requests, 1);
    note_answer(r, streamed);
}

struct pipeline_handler {
    h2o_handler_t super;
    struct worker *worker;
};

static int on_request(h2o_handler_t *self, h2o_req_t *req)
{
    struct worker *w = ((struct pipeline_handler *)self)->worker;
    struct request *r = h2o_mem_alloc_shared(&req->pool, sizeof(*r), on_request_end);
    memset(r, 0, offsetof(struct request, values)); /* fields_parse fills those, find_credential and others what is behind them */
    r->h2o = req;
    r->worker = w;
    r->conf = w->conf;
    r->store = w->store;
    r->now_ms = (int64_t)h2o_now(w->ctx.loop);
    r->conn = conn_of(req);
    r->conn->request = r;
    r->id = request_id(w, req);
    r->started_us = request_clock_us();
    h2o_vector_reserve(&req->pool, &req->res.headers, 8);
    pipeline_resume(r);
    return 0;
}

/* ---- what the library answers by itself ---- */

struct library_filter {
    h2o_filter_t super;
    struct worker *worker;
};
struct library_answer {
    h2o_ostream_t super;
    h2o_iovec_t body;
};

static void send_ours(h2o_ostream_t *self, h2o_req_t *req, h2o_iovec_t *bufs, size_t count, h2o_send_state_t state)
{
    struct library_answer *answer = (struct library_answer *)self;
    (void)bufs;
    (void)count;
    h2o_ostream_send_next(self, req, &answer->body, h2o_memis(req->input.method.base, req->input.method.len, H2O_STRLIT("HEAD")) ? 0 : 1,
                          state);
}

/* a request that never was in the pipeline: what the limiter needs of it */
static struct request *stranger(struct worker *w, h2o_req_t *req)
{
    struct request *r = h2o_mem_alloc_pool(&req->pool, sizeof(*r));
    memset(r, 0, sizeof(*r));
    r->h2o = req;
    r->worker = w;
    r->conf = w->conf;
    r->now_ms = (int64_t)h2o_now(w->ctx.loop);
    r->conn = conn_of(req);
    r->started_us = request_clock_us();
    find_client(r);
    return r;
}

/* errors before any handler (413, 417, a broken chunk) in the contract's shape */
static void on_library_answer(h2o_filter_t *self, h2o_req_t *req, h2o_ostream_t **slot)
{
    struct worker *w = ((struct library_filter *)self)->worker;
    if (w->replying) {
        h2o_setup_next_ostream(req, slot);
        return;
    }
    struct request *r = stranger(w, req);
    conn_linger(conn_of(req));
    bool admitted = limit_charge(r);
    struct buf body = {0};
    enum err err = admitted ? err_of_status(req->res.status) : ERR_RATE_LIMITED;
    if (!admitted) {
        req->res.status = err_row(err)->status;
        req->res.reason = err_row(err)->reason;
    }
    error_body(&body, err, err_row(err)->message);
    struct library_answer *answer = (struct library_answer *)h2o_add_ostream(req, sizeof(*answer), slot);
    answer->body = h2o_strdup(&req->pool, body.p, body.n);
    buf_free(&body);
    answer->super.do_send = send_ours;
    req->res.headers.size = 0;
    req->res.content_length = answer->body.len;
    struct str id = r->id = request_id(w, req);
    r->status = req->res.status;
    r->sent_bytes = answer->body.len;
    r->answered_us = r->started_us;
    access_log_add(w->access_log, r, 0);
    h2o_add_header(&req->pool, &req->res.headers, H2O_TOKEN_CONTENT_TYPE, NULL, H2O_STRLIT("application/json"));
    h2o_add_header_by_str(&req->pool, &req->res.headers, H2O_STRLIT("x-request-id"), 0, NULL, id.p, id.n);
    h2o_add_header_by_str(&req->pool, &req->res.headers, H2O_STRLIT("x-content-type-options"), 0, NULL, H2O_STRLIT("nosniff"));
    limit_headers(r);
    cors_headers(r);
    h2o_setup_next_ostream(req, &answer->super.next);
}

static void put_handler(struct worker *w, h2o_pathconf_t *path)
{
    struct pipeline_handler *handler = (struct pipeline_handler *)h2o_create_handler(path, sizeof(*handler));
    handler->super.on_req = on_request;
    handler->worker = w;
}

void pipeline_register(struct worker *w, h2o_hostconf_t *host)
{
    put_handler(w, h2o_config_register_path(host, "/", 0));
    put_handler(w, &host->fallback_path); /* absolute-form targets */
    struct library_filter *filter = (struct library_filter *)h2o_create_filter(&host->fallback_path, sizeof(*filter));
    filter->super.on_setup_ostream = on_library_answer;
    filter->worker = w;
}

size_t pipeline_max_body(const struct conf *conf)
{
    size_t max = 0;
    for (size_t i = 0; i < routes_count; i++) {
        size_t bytes = max_body(&routes[i], conf);
        max = bytes > max ? bytes : max;
    }
    return max;
}
