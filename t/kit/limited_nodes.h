/*
 * Three servers without a cluster whose limits are in one Redis. They have stores of their own, in
 * which the first API key has the same id, so its callers share the limit of the limiter `api`.
 */
#ifndef ASSAY_T_KIT_LIMITED_NODES_H
#define ASSAY_T_KIT_LIMITED_NODES_H

#include "t/kit/limit_callers.h"
#include "t/kit/redis_servers.h"

#define NODES 3
#define PATIENT "timeout: 1s" /* so that a busy machine needs no fallback */
#define API(limit, seconds, more)                                                                  \
    "api: { windows: [ { limit: " #limit ", seconds: " #seconds ", key: api_key } ]" more " }"

extern struct redis *redis; /* the primary */
extern struct server *nodes[NODES];
extern char *key_file; /* of the nodes that are started next */

/*
 * nodes_setup: a Redis, and servers that are not started. nodes_teardown: ends all.
 * nodes_start(lines): starts all. nodes_stop: each must end well.
 */
void nodes_setup(void);
void nodes_teardown(void);
void nodes_start(const char *lines);
void nodes_stop(void);

/*
 * nodes_yaml(options, limiters): a configuration; ${options} of limits.redis beside nodes and
 * key_file. nodes_at_redis(options, limiters): the same with the address of ${redis}; options may
 * be "".
 */
char *nodes_yaml(const char *options, const char *limiters);
char *nodes_at_redis(const char *options, const char *limiters);

/*
 * nodes_ask(node): a request. nodes_fallbacks: decisions of fallbacks of all nodes.
 * nodes_connected(NULL): Redis answers all workers; nodes_fell_back(count): a fallback decided so
 * often; both for wait_until. nodes_log(words): a node has logged them.
 */
struct response *nodes_ask(size_t node);
long nodes_fallbacks(void);
bool nodes_connected(void *unused);
bool nodes_fell_back(void *count);
bool nodes_log(const char *words);

#endif
