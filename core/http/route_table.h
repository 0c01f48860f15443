/* Rows of the route table, and the fields that a route takes. The table is core/api/routes.c. */
#ifndef ASSAY_HTTP_ROUTE_TABLE_H
#define ASSAY_HTTP_ROUTE_TABLE_H

#include "core/conf/limiters.h"
#include "store/bytes.h"

#include <stdint.h>

struct json_object;
struct request;

typedef void request_fn(struct request *r);

enum route_auth {
    AUTH_NONE,
    AUTH_API_KEY,
    AUTH_JWT,      /* a visitor's token: r->session */
    AUTH_WP_TOKEN, /* a workspace token with wp:sync: as an API key, and r->token */
};

enum route_body {
    BODY_NONE,
    BODY_FIELDS, /* a JSON object, or a form with the same fields; may be empty */
    BODY_SYNC,   /* JSON; may be gzip, and then max_body also limits the decompressed size */
};

enum route_flag {
    ROUTE_INTERNAL = 1,   /* also on internal_listen */
    ROUTE_PRIVATE = 8,    /* only on internal_listen; with ROUTE_INTERNAL */
    ROUTE_IDEMPOTENT = 2, /* accepts Idempotency-Key */
    ROUTE_BODY_FIRST = 4, /* the limiter's key is in the body: charged after it is read */
    ROUTE_TEXT = 16,      /* the response is text, whatever Accept says */
    ROUTE_ERASED = 32,    /* AUTH_JWT: also for an erased visitor */
    ROUTE_CHAT = 64,      /* AUTH_JWT: refused while the agent requires a lead and has none */
    ROUTE_PUBLIC = 128,   /* same for everybody; any origin may read it; own Cache-Control */
    ROUTE_PAGE = 256,     /* a page for people; other origins cannot read it; own Cache-Control */
};

/* A field of a query (BODY_NONE) or a body (BODY_FIELDS). In JSON, null counts as not sent. */
enum field_type {
    FIELD_TEXT,
    FIELD_CHOICE,
    FIELD_NUMBER,
    FIELD_CHARS, /* text with its length in characters */
    FIELD_JSON,  /* only in JSON bodies, as the next two */
    FIELD_TREE,  /* checked but not parsed, for large values; at most one per route */
    FIELD_BOOL,  /* number is 0 or 1 */
};

struct field {
    const char *name;
    enum field_type type;
    const char *const *choices; /* FIELD_CHOICE: ends with NULL; the number is the index */
    uint64_t min, max;          /* FIELD_NUMBER: range; FIELD_TEXT: length in bytes (max 0: 2048) */
    const char *initial;        /* the value if it is not sent, as it would be sent; NULL: none */
};
#define FIELDS_MAX 12

/* The value of route->fields[i]. */
struct value {
    bool sent;       /* false for an initial value */
    struct str text; /* decoded; p NULL: none; FIELD_JSON: compact; FIELD_TREE: as sent */
    uint64_t number;
    struct json_object *json; /* FIELD_JSON; lives as long as the request */
};

struct route {
    const char *method; /* GET also answers HEAD */
    const char *path;   /* a segment in braces is an argument: /api/v1/reports/{id} */
    enum route_auth auth;
    uint32_t scope;       /* enum scope; 0: none */
    enum limiter limiter; /* the configuration may choose another */
    enum route_body body;
    uint32_t max_body;          /* bytes; for BODY_SYNC see the configuration */
    uint32_t flags;             /* enum route_flag */
    const struct field *fields; /* ends with a NULL name; NULL: none */
    request_fn *handler;
};

#define PATH_ARGS_MAX 2
#define ROUTES_MAX 127

extern const struct route routes[];
extern const size_t routes_count;

#endif
