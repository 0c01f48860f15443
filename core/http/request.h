/*
 * A request in the pipeline, for handlers.
 *
 * Before the handler runs, the pipeline (pipeline.c) has done what the route's row says: head
 * checks, method, client address, credential and scope, limiter, media type, size, and the types of
 * the fields. The handler checks the rest, asks the store, and calls exactly one reply_ function,
 * at once or from a continuation. Continuations of a client that is gone are dropped.
 */
#ifndef ASSAY_HTTP_REQUEST_H
#define ASSAY_HTTP_REQUEST_H

#include "core/async/waiter.h"
#include "core/conf/conf.h"
#include "core/http/route_table.h"
#include "ratelimit/ratelimit.h"
#include "store/store.h"

#include <h2o.h>
#include <time.h>

struct http;
struct store_answer;

typedef void request_change_fn(struct request *r, const struct store_answer *answer);

/* A visitor, from the token. */
struct session {
    struct ulid agent, visitor, conversation;
    struct str token;   /* as sent */
    int64_t expires_at; /* ms since the epoch */
    bool erased;        /* the visitor is erased; only with ROUTE_ERASED */
};

/* The limiter's state of a request; limit.c. */
struct request_limit {
    struct ratelimit_state state;
    bool charged;                       /* done, also if no limiter applies */
    bool applies;                       /* ${limiter} was charged */
    bool refused;                       /* by ${limiter} */
    bool unavailable;                   /* refused, since Redis is away */
    unsigned limiter;                   /* if ${applies} */
    struct ratelimit_window prefetched; /* by limit_prefetch; hash 0: none */
    uint64_t prefetched_version;        /* of the limits */
    int64_t ahead_ms;                   /* the clock that decided, minus ${now_ms} */
    struct deferred_response *deferred; /* reply.c: it waits for the limiter */
};

struct request {
    struct waiter wait; /* the first member: request_of */
    h2o_req_t *h2o;
    struct http *http;
    const struct conf *conf;
    struct store *store;
    const struct route *route;        /* NULL until found */
    const struct route *other_method; /* without route: a row of the path with another method */
    struct str args[PATH_ARGS_MAX];   /* decoded path arguments, in order */
    struct str query;                 /* raw, without "?" */
    struct str id;                    /* X-Request-Id */
    struct ip client_ip;
    int64_t now_ms; /* wall clock at the arrival */
    /* of an API key or a workspace token */
    uint64_t key, workspace;
    uint32_t scopes;
    uint64_t token;         /* id of a workspace token; 0: none */
    struct session session; /* AUTH_JWT */
    /* of a JWT, for the limiter; the agent also from a body; 0: unknown */
    uint8_t visitor[LIMITER_ULID], agent[LIMITER_ULID];
    struct fields_unknown *unknown; /* fields that the route does not have, or NULL: fields.h */
    /* for handlers, between continuations */
    uint64_t version;
    void *state;
    /* ---- for the pipeline ---- */
    unsigned step;
    enum store_status credential_status;
    uint64_t store_version; /* when the credential was looked up */
    bool key_looked_up, waits_for_key;
    bool confirmed;                /* in a cluster: the head of the log, since its arrival */
    bool changed;                  /* a change was sent */
    bool compressed;               /* the body is gzip */
    struct large_body *large_body; /* processed in a thread, or NULL */
    bool is_head, replied;
    int status;
    size_t sent_bytes;
    uint64_t started_us, answered_us; /* CLOCK_MONOTONIC; answered_us with an access log only */
    struct str etag;
    request_change_fn *change_done;
    request_fn *await_done;
    struct request_limit limit;
    /* ---- not zeroed when a request begins ---- */
    struct value values[FIELDS_MAX]; /* of the route's fields */
    struct store_key credential;     /* without its name */
};

/* request_of(w): the request that contains ${w}; NULL for NULL. */
static inline struct request *request_of(struct waiter *w)
{
    return (struct request *)w;
}

/*
 * request_alloc(r, size): memory that lives as long as the request. Never NULL: libh2o aborts the
 * process when memory is short.
 * request_printf(r, format, …): a string in such memory.
 */
void *request_alloc(struct request *r, size_t size);
struct str request_printf(struct request *r, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/*
 * request_header(r, name, value): the first header with this lower-case name; false: none.
 * request_header_twice(r, name): are there more of them?
 */
bool request_header(struct request *r, const char *name, struct str *value);
bool request_header_twice(const struct request *r, const char *name);

/* request_token_header(r, name, value): the same for a name that libh2o knows, which is faster. */
static inline bool request_token_header(struct request *r, const h2o_token_t *name,
                                        struct str *value)
{
    ssize_t at = h2o_find_header(&r->h2o->headers, name, -1);
    if (at < 0)
        return false;
    *value =
        (struct str){r->h2o->headers.entries[at].value.base, r->h2o->headers.entries[at].value.len};
    return true;
}

/*
 * request_bearer(r, token): the credential of Authorization: Bearer, borrowed; false without one.
 */
bool request_bearer(struct request *r, struct str *token);

/* request_id_of(h, req): the caller's X-Request-Id if valid, or a new one; lives as ${req}. */
struct str request_id_of(struct http *h, h2o_req_t *req);

/* request_base_url(r): base_url of the configuration, or the address of the first listener. */
struct str request_base_url(struct request *r);

/*
 * request_base_path(r): the path of request_base_url, "" or such as "/assay", which a proxy in
 * front of this server adds. What precedes it is the origin.
 * request_is_tls(r): the request came to a listener with TLS.
 */
struct str request_base_path(struct request *r);
bool request_is_tls(struct request *r);

#endif
