/*
 * The limiters: which there are, what they count and by which key. One plain value without pointers (struct limiters): the built-in rows as
 * the configuration changed and completed them. The master puts it into shared memory (limiter_stats.h); workers and commands judge by it.
 * Pure functions, any process.
 *
 * A limiter has up to four windows, all of which a request must fit. A window is keyed by one thing about the caller; a caller of whom that
 * is not known (no credential, or a wrong one) is counted by its address, apart from all other keys. Keys as people write them:
 *
 *   ip         203.0.113.7, or an IPv6 network: 2001:db8:1:2::/64 (limits.ipv6_prefix); any address in it means the same
 *   ip+agent   203.0.113.7/01HZY…, 2001:db8:1:2::/64/01HZY…; of an agent that is not known: 203.0.113.7/-
 *   jwt        VISITOR/AGENT, two ULIDs
 *   token      the id of a workspace token
 *   api_key    the id of an API key
 *   …          an address, in place of any of the last three: callers without a good credential
 */
#ifndef ASSAY_CONF_LIMITERS_H
#define ASSAY_CONF_LIMITERS_H

#include "core/base/cidr.h"
#include "store/bytes.h"

/* The built-in limiters; a row of the route table names one. Those that the configuration adds have the numbers after these. */
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
    LIMITERS_BUILT_IN
};

#define LIMITERS_MAX 32 /* limiters, LIMITER_NONE among them */
#define LIMITER_NAME_MAX 32
#define LIMITER_WINDOWS_MAX 4
#define LIMITER_ROUTES_MAX 16
#define LIMITER_ROUTE_SIZE 96
#define LIMITERS_OVERRIDES_MAX 1024
#define LIMITERS_EXEMPT_MAX 256

/* What a window is keyed by; whoever shares one of the later shares all of the earlier of the same kind. */
enum limiter_by { BY_IP_AGENT, BY_JWT, BY_TOKEN, BY_API_KEY, BY_IP, LIMITER_BYS };

struct limiter_window {
    uint32_t limit; /* 0: this window does not count */
    uint32_t seconds;
    uint32_t by; /* enum limiter_by */
};

/* A key as it is counted: what it is of, then the address' or id's bits. */
#define LIMITER_KEY_MAX 33
struct limiter_key {
    uint8_t size;
    uint8_t bytes[LIMITER_KEY_MAX];
};

/* Another limit for one key of one window. */
struct limiter_override {
    uint32_t limiter, window, limit; /* limit 0: this key is not counted there */
    struct limiter_key key;
};

struct limiter_row {
    char name[LIMITER_NAME_MAX + 1];
    bool dry_run; /* counts, tells and logs, and refuses nobody */
    uint32_t windows_count, routes_count;
    struct limiter_window windows[LIMITER_WINDOWS_MAX]; /* the more special keys first, as ratelimit_take wants them */
    /* "METHOD /path" as the route table has it, or "* /path" for every method; a path may end in a "*" that stands for any rest */
    char routes[LIMITER_ROUTES_MAX][LIMITER_ROUTE_SIZE];
    uint32_t counter;                                /* limiter_stats.h's */
    uint32_t override_from[LIMITER_WINDOWS_MAX + 1]; /* the overrides of window i are those from [i] to [i + 1] */
};

struct limiters {
    uint32_t count; /* of ${rows}; the first is LIMITER_NONE's and empty */
    uint32_t ipv6_prefix;
    uint32_t exempt_count, overrides_count;
    struct limiter_row rows[LIMITERS_MAX];
    struct cidr exempt[LIMITERS_EXEMPT_MAX];
    struct limiter_override overrides[LIMITERS_OVERRIDES_MAX];
};

/* limiters_defaults(out): the built-in rows. */
void limiters_defaults(struct limiters *out);

/* limiters_find(limits, name): the number of the limiter; LIMITER_NONE. */
unsigned limiters_find(const struct limiters *limits, const char *name);

/*
 * limiters_of_path(limits, method, path): the limiter whose routes name ${path} (as the route table has it, or as it was asked for) and
 * ${method}; the longest path wins, then a named method. LIMITER_NONE: no row names it.
 */
unsigned limiters_of_path(const struct limiters *limits, struct str method, struct str path);

/* limiters_route_parts(route, method, path): the two words of a row's route. False where it has not that form. */
bool limiters_route_parts(const char *route, struct str *method, struct str *path);

/* limiters_sort(limits): put windows and overrides in the order that the others rely on; after a change. */
void limiters_sort(struct limiters *limits);

/* limiters_exempt(limits, ip): whether nobody at that address is refused. */
bool limiters_exempt(const struct limiters *limits, const struct ip *ip);

/* limiters_limit(limits, limiter, window, key): what holds for that key: the window's limit, or its override's. 0: none. */
uint32_t limiters_limit(const struct limiters *limits, unsigned limiter, unsigned window, const struct limiter_key *key);

/* ---- keys ---- */

#define LIMITER_ULID 16 /* bytes */

/* Who asks, as far as it is known: ids of 0 and ULIDs of NULL are not. */
struct limiter_caller {
    const struct ip *ip;
    uint64_t api_key, token;
    const uint8_t *visitor, *agent;
};

/* limiter_key_make(by, ipv6_prefix, caller, out): the caller's key in a window of that kind. */
void limiter_key_make(enum limiter_by by, unsigned ipv6_prefix, const struct limiter_caller *caller, struct limiter_key *out);

/* limiter_key_parse(by, ipv6_prefix, text, out): a key as people write it. False: ${text} is none of that kind. */
bool limiter_key_parse(enum limiter_by by, unsigned ipv6_prefix, const char *text, struct limiter_key *out);

/* limiter_key_text(key, ipv6_prefix, out): the same back; what limiter_key_parse reads to the same key. */
#define LIMITER_TEXT_SIZE 81
void limiter_key_text(const struct limiter_key *key, unsigned ipv6_prefix, char out[LIMITER_TEXT_SIZE]);

/* limiter_by_name(by): "ip+agent". limiter_by_find(name): LIMITER_BYS where there is none. */
const char *limiter_by_name(enum limiter_by by);
enum limiter_by limiter_by_find(const char *name);

#endif
