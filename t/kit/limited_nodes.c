#include "t/kit/limited_nodes.h"

struct redis *redis;
struct server *nodes[NODES];
char *key_file;

static struct server internals[NODES];

/* ---- the nodes ---- */

char *nodes_yaml(const char *options, const char *limiters)
{
    return text("internal_listen: 127.0.0.1:0\nlimits:\n  engine: redis\n"
                "  redis: { key_file: %s, nodes: %d, %s }\n  limiters: { %s }\n",
                key_file, NODES, options, limiters);
}

char *nodes_at_redis(const char *more, const char *limiters)
{
    return nodes_yaml(text("address: \"%s\"%s%s", redis->address, *more ? ", " : "", more),
                      limiters);
}

void nodes_start(const char *lines)
{
    for (size_t i = 0; i < NODES; i++) {
        server_start_with(nodes[i], lines);
        internals[i] = server_internal(nodes[i]);
    }
}

void nodes_stop(void)
{
    for (size_t i = 0; i < NODES; i++)
        server_stop(nodes[i]);
}

void nodes_setup(void)
{
    redis = redis_primary("enable-debug-command local\n");
    for (size_t i = 0; i < NODES; i++)
        nodes[i] = server_new(&(struct server_options){.workers = 2});
    key_file = redis_key_file(nodes[0]->dir);
}

void nodes_teardown(void)
{
    for (size_t i = 0; i < NODES; i++)
        server_discard(nodes[i]);
    redis_stop(redis);
}

long nodes_fallbacks(void)
{
    long sum = 0;
    for (size_t i = 0; i < NODES; i++)
        sum += metric(&internals[i], "assay_limiter_fallback_total{limiter=\"api\"}");
    return sum;
}

bool nodes_connected(void *unused)
{
    (void)unused;
    for (size_t i = 0; i < NODES; i++)
        if (metric(&internals[i], "assay_limiter_workers_without_redis") != 0)
            return false;
    return true;
}

struct response *nodes_ask(size_t node)
{
    return http(nodes[node], .path = "/api/v1/reports");
}

bool nodes_fell_back(void *count)
{
    return nodes_fallbacks() >= *(const long *)count;
}

bool nodes_log(const char *words)
{
    for (size_t i = 0; i < NODES; i++)
        if (strstr(server_log(nodes[i]), words) != NULL)
            return true;
    return false;
}
