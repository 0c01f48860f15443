/*
 * A request on its way through the pipeline, and what a handler may do with it. Worker processes
 * only.
 *
 * The pipeline (pipeline.c) has done, by the route's row, before a handler sees the request: head
 * checks, method, client address, credential and scope, limiter, media type, size and the fields'
 * types. A handler judges what is left, asks the store, and ends in exactly one reply_… call, at
 * once or from a continuation. Continuations (request_change, request_await, request_hash) are
 * called only while the client's request is still there; a vanished client's are dropped. Memory:
 * request_alloc, freed with the request.
 */
#ifndef ASSAY_HTTP_REQUEST_H
#define ASSAY_HTTP_REQUEST_H

#include "core/conf/conf.h"
#include "core/async/waiter.h"
#include "core/http/err.h"
#include "core/conf/limiters.h"
#include "ratelimit/ratelimit.h"
#include "store/store.h"

#include <h2o.h>
#include <time.h>

struct http;
struct query;
struct request;

enum route_auth {
    AUTH_NONE,
    AUTH_API_KEY,
    AUTH_JWT,      /* a visitor's token; r->session is who it is */
    AUTH_WP_TOKEN, /* a workspace token with wp:sync; as an API key, and r->token */
};
enum route_body {
    BODY_NONE,
    BODY_FIELDS, /* a JSON object or a form of the same fields; may be empty */
    /* JSON alone; may be compressed, and then its size counts after decompression as well */
    BODY_SYNC,
};
enum route_flag {
    ROUTE_INTERNAL = 1,   /* on internal_listen as well, and there without base path rules */
    ROUTE_IDEMPOTENT = 2, /* takes Idempotency-Key */
    ROUTE_BODY_FIRST = 4, /* its limiter's key is in the body: charged once that is read */
    ROUTE_PRIVATE = 8,    /* on internal_listen alone; with ROUTE_INTERNAL */
    ROUTE_TEXT = 16,      /* answers text, whatever Accept says */
    ROUTE_ERASED = 32,    /* AUTH_JWT: answers a visitor who is erased already, too */
    /* AUTH_JWT: not for a visitor whose agent wants a lead first, and has none of it */
    ROUTE_CHAT = 64,
    /*
     * the same for everybody: pages of any origin may read it, and the handler says how long it is
     * kept
     */
    ROUTE_PUBLIC = 128,
    /*
     * for people: the handler says how long it is kept, and pages of other origins cannot read it
     */
    ROUTE_PAGE = 256,
};

/*
 * Fields of a query (BODY_NONE), of a form, or the members of an object, where null counts as not
 * sent (BODY_FIELDS).
 */
enum field_type {
    FIELD_TEXT,
    FIELD_CHOICE,
    FIELD_NUMBER,
    FIELD_CHARS, /* text, its length in characters */
    FIELD_JSON,  /* of a JSON body alone, as what follows */
    /*
     * the same as it stands in the body, well-formed but not parsed: for what is large; one of a
     * route's
     */
    FIELD_TREE,
    FIELD_BOOL,  /* its number is 0 or 1 */
};
struct json_object;
struct field {
    const char *name;
    enum field_type type;
    const char *const *choices; /* FIELD_CHOICE: NULL-terminated; the value's number is the index */
    uint64_t min, max;          /* FIELD_NUMBER: range; FIELD_TEXT: length in bytes (max 0: 2048) */
    const char *initial;        /* value when not sent (as it would be sent), or NULL: none */
};
#define FIELDS_MAX 12

/*
 * The value of route->fields[i]. ${sent}: the caller sent it; an initial value has sent false and
 * is filled in all the same.
 */
struct value {
    bool sent;
    /*
     * decoded; p NULL when neither sent nor initial; of FIELD_JSON: as compact JSON; of FIELD_TREE:
     * as sent
     */
    struct str text;
    uint64_t number;
    struct json_object *json; /* FIELD_JSON's; lives as long as the request */
};

typedef void request_fn(struct request *r);

/* One row of the route table (core/api/routes.c). */
struct route {
    const char *method; /* GET answers HEAD too */
    const char *path;   /* a segment in braces is an argument: /api/v1/reports/{id} */
    enum route_auth auth;
    uint32_t scope;       /* enum scope, 0: none */
    /* whose headers every response has; the configuration may put another in its place */
    enum limiter limiter;
    enum route_body body;
    uint32_t max_body;          /* bytes; of BODY_SYNC the configuration says it */
    uint32_t flags;             /* enum route_flag */
    const struct field *fields; /* ends with a NULL name; NULL: none */
    request_fn *handler;
};
extern const struct route routes[];
extern const size_t routes_count;

#define PATH_ARGS_MAX 2

/* Who a visitor's token is. */
struct session {
    struct ulid agent, visitor, conversation;
    struct str token;   /* as sent */
    int64_t expires_at; /* ms since the epoch */
    bool erased;        /* the visitor is not there any more; only with ROUTE_ERASED */
};

struct store_answer;
typedef void request_change_fn(struct request *r, const struct store_answer *answer);

struct request {
    struct waiter wait; /* the first member: request_of */
    h2o_req_t *h2o;
    struct http *http;
    const struct conf *conf;
    struct store *store;
    const struct route *route;      /* NULL until found */
    /* where none is: one of the path with another method, or NULL */
    const struct route *other;
    struct str args[PATH_ARGS_MAX]; /* decoded path arguments, in order */
    struct str query;               /* raw, without "?" */
    struct str id;                  /* X-Request-Id */
    struct ip client_ip;
    /* the credential's, valid where route->auth is AUTH_API_KEY */
    uint64_t key, workspace;
    uint32_t scopes;
    /* whom the limiter may charge instead of the address; 0 where not known */
    uint64_t token;                               /* id of a workspace token */
    /* of a verified JWT; the agent also of a body, where it exists */
    uint8_t visitor[LIMITER_ULID], agent[LIMITER_ULID];
    enum store_status credential_status;
    uint64_t seen; /* store_version when the credential was looked at */
    bool looked_up, waits_for_key, compressed; /* pipeline's own */
    struct session session; /* AUTH_JWT */
    uint64_t version; /* for handlers: between two continuations */
    void *state;      /* for handlers: between two continuations */
    struct fields_unknown *unknown; /* names that the route does not know, or NULL: fields.h */
    struct large_body *large_body; /* a large body that was read off the loop, or NULL */
    int64_t now_ms;   /* wall clock at arrival, for judging expiry */
    /* pipeline's own */
    bool replied;
    bool is_head;
    unsigned step;
    int status;
    size_t sent_bytes;
    uint64_t started_us;
    request_change_fn *change_done;
    request_fn *await_done;
    /* when the answer began, of CLOCK_MONOTONIC; where there is an access log */
    uint64_t answered_us;
    struct str etag;
    struct {
        struct ratelimit_state state;
        bool settled, told, refused; /* charged or free; a limiter is on it; that refuses it */
        unsigned limiter;            /* where told */
        struct ratelimit_window expected; /* by limit_expect; its hash is 0 where it was not */
        uint64_t expected_by;             /* the version of the limits */
    } limit;
    /* what follows is not zeroed at a request's beginning */
    struct value values[FIELDS_MAX]; /* those of the route's fields */
    struct store_key credential;     /* as found; without its name */
};

/* request_of(w): the request that contains ${w}; NULL: NULL. */
static inline struct request *request_of(struct waiter *w)
{
    return (struct request *)w;
}

/*
 * request_alloc(r, size): memory that lives as long as the request; never NULL (the process aborts
 * when memory is out, as libh2o does).
 */
void *request_alloc(struct request *r, size_t size);
/* request_printf(r, format, …): a string in such memory. */
struct str request_printf(struct request *r, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/*
 * request_header(r, name, value): a request header's value by its lower-case name; false when
 * absent. Repeated headers: the first.
 */
bool request_header(struct request *r, const char *name, struct str *value);

/* request_base_url(r): base_url of the configuration, or the address of the first listener. */
struct str request_base_url(struct request *r);

/* ---- replies: exactly one per request ---- */

/*
 * reply_header(r, name, value): add a response header; ${name} is a lower-case literal, ${value}
 * lives as long as the request.
 */
void reply_header(struct request *r, const char *name, struct str value);

/*
 * reply_parts(r, status, type, parts, count): send the bytes of ${parts}, copied before it returns
 * (so LMDB values may be among them). gzip, Content-Length, HEAD and X-Request-Id are its business.
 */
void reply_parts(struct request *r, int status, const char *type, const struct str *parts,
                 size_t count);
/* reply_json: the same, as application/json. */
void reply_json(struct request *r, int status, const struct str *parts, size_t count);
/*
 * reply_shared(r, status, body): JSON in memory of h2o_mem_alloc_shared, which the request shares
 * until it is sent.
 */
void reply_shared(struct request *r, int status, h2o_iovec_t body);
/*
 * reply_chunked(r, status, length, more): JSON of ${length} bytes that is made while its client
 * takes it, so that a slow one keeps little memory: ${more} appends the next piece, of REPLY_CHUNK
 * bytes or what the item takes that reaches them. Where that cannot be made any more (false), the
 * connection ends, and the client sees that the answer is not whole.
 */
#define REPLY_CHUNK (32u << 10)
typedef bool reply_more_fn(struct request *r, struct buf *out);
void reply_chunked(struct request *r, int status, size_t length, reply_more_fn *more);
/*
 * reply_fixed(r, type, body, gzip): 200 with ${body}, or ${gzip}, the same compressed, for who
 * takes it. Both live for ever.
 */
void reply_fixed(struct request *r, const char *type, struct str body, struct str gzip);
/* reply_empty(r, status): no body (204, 304). */
void reply_empty(struct request *r, int status);

/*
 * reply_error(r, err, format, …): the contract's error body; a NULL ${format} takes the row's
 * message.
 */
void reply_error(struct request *r, enum err err, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* reply_store_error(r, status): the error a refused store operation is. */
void reply_store_error(struct request *r, enum store_status status);
/* reply_invalid(r, field, message): 422 with one field's message. */
void reply_invalid(struct request *r, const char *field, const char *message);

/*
 * reply_etag(r, version): for GETs. Set the strong ETag of ${version} (an opaque record or list
 * version; the program's version is added here) and Cache-Control: private, no-cache (no-store for
 * visitors; none with ROUTE_PUBLIC or ROUTE_PAGE); where If-None-Match matches it, send 304 and
 * return true: the handler is done.
 */
bool reply_etag(struct request *r, uint64_t version);

/*
 * request_if_match(r, change): put the versions of If-Match into change->match ("*" and no header:
 * any; a tag we never made: one no record has).
 */
void request_if_match(struct request *r, struct store_change *change);

/*
 * request_idempotency(r, change): put Idempotency-Key, bound to credential and path, and the digest
 * of the body into ${change}. No header: nothing. False: the key is empty, over 255 characters or
 * not printable ASCII, and 400 has been replied.
 */
bool request_idempotency(struct request *r, struct store_change *change);

/*
 * request_prefer(r, wait_ms, async): read Prefer (RFC 7240): `wait=N` into *wait_ms (≤ 30 s; a
 * larger or malformed one is ignored), `respond-async` into *async. Sets nothing where absent.
 * Returns what was honoured for Preference-Applied, p NULL: nothing.
 */
struct str request_prefer(struct request *r, unsigned *wait_ms, bool *async);

/* request_is_strict(r): does Prefer (RFC 7240) say `handling=strict`? */
bool request_is_strict(struct request *r);

/* ---- continuations: at most one at a time ---- */

/*
 * request_change(r, change, done): send ${change} to the writer (copied); ${done} when it is
 * durable or refused. A writer that is gone for 30 s: 503, and ${done} is not called.
 */
void request_change(struct request *r, const struct store_change *change, request_change_fn *done);

/*
 * request_await(r, report, timeout_ms, done): ${done} when ${report} is finished or deleted,
 * ${timeout_ms} are over, or the worker drains. Check the record first: it may be finished already.
 */
void request_await(struct request *r, uint64_t report, unsigned timeout_ms, request_fn *done);

/* request_run_in_pool(r, job): work in the thread for large bodies (thread_pool.h). */
struct pool_job;
void request_run_in_pool(struct request *r, struct pool_job *job);

/*
 * request_query(r, query): ${r} waits for it, and ${query}->over replies. Where too many wait: 503
 * with Retry-After, and ${query}->over is called with NULL.
 * query_late(r): reply 503 with Retry-After, for a query that is not done.
 */
void request_query(struct request *r, struct query *query);
void query_late(struct request *r);

/*
 * request_hash(r, password, done): scrypt on the hash thread; ${done} gets the text to store, p
 * NULL when the queue was full (answer 503).
 */
typedef void request_hash_fn(struct request *r, struct str hash);
void request_hash(struct request *r, struct str password, request_hash_fn *done);

#endif
