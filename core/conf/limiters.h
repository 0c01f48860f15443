/*
 * The limiters: their windows, keys, routes and overrides. struct limiters is a plain value without
 * pointers: the built-in limiters as changed and extended by the configuration. The master copies
 * it to shared memory (limiter_stats.h); workers and commands use it.
 *
 * A limiter has up to four windows; a request must fit into all of them. A window counts one kind
 * of key. A caller without the credential of that key is counted by address, separately from other
 * keys. Keys as text:
 *
 *   ip         203.0.113.7, or an IPv6 network: 2001:db8:1:2::/64 (limits.ipv6_prefix); any address
 *              in it means the same
 *   ip+agent   203.0.113.7/01HZY…, 2001:db8:1:2::/64/01HZY…; an unknown agent: 203.0.113.7/-
 *   jwt        VISITOR/AGENT, two ULIDs
 *   token      the id of a workspace token
 *   api_key    the id of an API key
 *   …          an address instead of one of the last three: callers without a valid credential
 *   report     the id of a report in the path, whether or not the report exists; requests for other
 *              paths are not counted
 */
#ifndef ASSAY_CONF_LIMITERS_H
#define ASSAY_CONF_LIMITERS_H

#include "core/base/cidr.h"
#include "store/bytes.h"

/* The built-in limiters, as named in the route table. The configuration's have higher numbers. */
enum limiter {
    LIMITER_NONE,
    LIMITER_WIDGET_INIT,
    LIMITER_WIDGET_SESSION,
    LIMITER_WIDGET_LEADS,
    LIMITER_WIDGET_TYPING,
    LIMITER_WIDGET_SATISFACTION,
    LIMITER_WIDGET_COUPON,
    LIMITER_BULK_SYNC,
    LIMITER_API,
    LIMITER_REPORT_PASSWORD,
    LIMITERS_BUILT_IN
};

#define LIMITERS_MAX 32 /* including LIMITER_NONE */
#define LIMITER_NAME_MAX 32
#define LIMITER_WINDOWS_MAX 4
#define LIMITER_ROUTES_MAX 16
#define LIMITER_ROUTE_SIZE 96
#define LIMITERS_OVERRIDES_MAX 1024
#define LIMITERS_EXEMPT_MAX 256
#define LIMITER_LEASE_MAX 100000

/* What decides when limits.engine is redis and Redis does not answer. */
enum limiter_fallback {
    FALLBACK_LOCAL,  /* the table of this node, with the limit divided by the number of nodes */
    FALLBACK_REFUSE, /* answer 503 */
    FALLBACK_ADMIT,
};

/* What a window counts; the more special kinds come first. */
enum limiter_by { BY_IP_AGENT, BY_JWT, BY_TOKEN, BY_API_KEY, BY_REPORT, BY_IP, LIMITER_BYS };

struct limiter_window {
    uint32_t limit; /* 0: the window is off */
    uint32_t seconds;
    uint32_t by; /* enum limiter_by */
};

/* A key in binary: its kind, then the bits of the address or id. */
#define LIMITER_KEY_MAX 33
struct limiter_key {
    uint8_t size;
    uint8_t bytes[LIMITER_KEY_MAX];
};

/* A limit for a single key of a window. */
struct limiter_override {
    uint32_t limiter, window, limit; /* limit 0: the key is not counted */
    struct limiter_key key;
};

struct limiter_row {
    char name[LIMITER_NAME_MAX + 1];
    bool dry_run;      /* counts, sends headers and logs, but does not refuse */
    uint32_t fallback; /* enum limiter_fallback */
    /* requests that a worker takes ahead from Redis; 0 or 1: it asks for each request */
    uint32_t lease;
    uint32_t windows_count, routes_count;
    struct limiter_window windows[LIMITER_WINDOWS_MAX]; /* in order of enum limiter_by */
    /* "METHOD /path" or "* /path"; a "*" at the end of the path stands for any rest */
    char routes[LIMITER_ROUTES_MAX][LIMITER_ROUTE_SIZE];
    uint32_t counter;                                /* in limiter_stats.h */
    uint32_t override_from[LIMITER_WINDOWS_MAX + 1]; /* window i has those from [i] to [i + 1] */
};

struct limiters {
    uint32_t count; /* of ${rows}, including an empty one for LIMITER_NONE */
    uint32_t ipv6_prefix;
    uint32_t exempt_count, overrides_count;
    struct limiter_row rows[LIMITERS_MAX];
    struct cidr exempt[LIMITERS_EXEMPT_MAX];
    struct limiter_override overrides[LIMITERS_OVERRIDES_MAX];
};

/* limiters_defaults(out): the built-in limiters. */
void limiters_defaults(struct limiters *out);

/* limiters_find(limits, name): the number of the limiter, or LIMITER_NONE. */
unsigned limiters_find(const struct limiters *limits, const char *name);

/*
 * limiters_of_path(limits, method, path): the limiter whose routes match ${method} and ${path}, of
 * the route table or of a request. The longest path wins, then a named method. LIMITER_NONE: none.
 */
unsigned limiters_of_path(const struct limiters *limits, struct str method, struct str path);

/* limiters_route_parts(route, method, path): split "METHOD /path". False: not in this form. */
bool limiters_route_parts(const char *route, struct str *method, struct str *path);

/* limiters_sort(limits): sort windows and overrides after a change; lookups need it. */
void limiters_sort(struct limiters *limits);

/* limiters_exempt(limits, ip): whether requests from ${ip} are never refused. */
bool limiters_exempt(const struct limiters *limits, const struct ip *ip);

/* limiters_limit(limits, limiter, window, key): the limit of this key; 0: none. */
uint32_t limiters_limit(const struct limiters *limits, unsigned limiter, unsigned window,
                        const struct limiter_key *key);

/* limiter_fallback_name(fallback): "local". */
const char *limiter_fallback_name(enum limiter_fallback fallback);

/* limiter_one_key(row): all its windows count the same kind of key. */
bool limiter_one_key(const struct limiter_row *row);

/* ---- keys ---- */

#define LIMITER_ULID 16 /* bytes */

/* The caller of a request. Unknown: an id of 0, a ULID of NULL. */
struct limiter_caller {
    const struct ip *ip;
    uint64_t api_key, token;
    const uint8_t *visitor, *agent;
    uint64_t report; /* in the path */
};

/*
 * limiter_key_make(by, ipv6_prefix, caller, out): the caller's key of this kind. False: it has
 * none, so the window does not count the request.
 */
bool limiter_key_make(enum limiter_by by, unsigned ipv6_prefix, const struct limiter_caller *caller,
                      struct limiter_key *out);

/* limiter_key_parse(by, ipv6_prefix, text, out): parse a key. False: not a key of this kind. */
bool limiter_key_parse(enum limiter_by by, unsigned ipv6_prefix, const char *text,
                       struct limiter_key *out);

/* limiter_key_text(key, ipv6_prefix, out): the key as text, which limiter_key_parse reads back. */
#define LIMITER_TEXT_SIZE 81
void limiter_key_text(const struct limiter_key *key, unsigned ipv6_prefix,
                      char out[LIMITER_TEXT_SIZE]);

/* limiter_by_name(by): "ip+agent". limiter_by_find(name): LIMITER_BYS: no such name. */
const char *limiter_by_name(enum limiter_by by);
enum limiter_by limiter_by_find(const char *name);

#endif
