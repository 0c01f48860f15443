#include "t/kit/three_nodes.h"

#include <poll.h>

enum { SOON_MS = 2000 };

struct nodes_options three_nodes_options;
struct nodes *nodes;
unsigned leader;

void three_nodes_begin(void)
{
    nodes = nodes_new(&three_nodes_options);
    leader = nodes_await_leader(nodes, NODES_AWAY);
    server = nodes->node[leader].server;
    nodes->asked[NODES_WRITE] = leader;
}

void three_nodes_end(void)
{
    nodes_free(nodes);
}

unsigned follower(unsigned i)
{
    return (leader + 1 + i) % nodes->count;
}

struct server *follower_server(unsigned i)
{
    return nodes->node[follower(i)].server;
}

int64_t created(const char *name)
{
    struct response *r = nodes_write(nodes, .method = "POST", .path = "/api/v1/reports",
                                     .headers = {"Prefer: respond-async"},
                                     .body = form("url", text("http://127.0.0.9/%s", name), NULL));
    expect_status(r, 202);
    int64_t id = int_at(r, "data.id");
    response_free(r);
    return id;
}

int64_t total_on(unsigned i)
{
    struct response *r = http_get(nodes->node[i].server, "/api/v1/reports");
    expect_status(r, 200);
    int64_t total = int_at(r, "meta.total");
    response_free(r);
    return total;
}

void warm_up(unsigned i)
{
    for (unsigned j = 0; j < WARM_UPS; j++)
        expect_status(http(nodes->node[i].server, .method = "POST", .path = "/api/v1/reports",
                           .headers = {"Prefer: respond-async"},
                           .body = form("url", text("http://127.0.0.9/warm%u-%u", i, j), NULL)),
                      202);
}

void expect_says(unsigned i, const char *words)
{
    const struct server *s = nodes->node[i].server;
    ck_assert_msg(server_says(s, words, 0, SAYS_MS), "node %u does not say: %s\n%s", i, words,
                  server_log(s));
}

void start_with_clock(unsigned i, int64_t offset_ms)
{
    struct node *node = &nodes->node[i];
    if (!node->clock)
        node->server->options.clock = node->clock = wall_clock_new();
    wall_clock_step(node->clock, offset_ms);
    node_start(nodes, i);
}

void stream_expect(struct raw *raw, const char *words)
{
    static char seen[65536];
    size_t n = 0;
    for (int64_t deadline = now_ms() + SOON_MS; now_ms() < deadline;) {
        struct pollfd p = {raw->fd, POLLIN, 0};
        if (poll(&p, 1, 50) <= 0)
            continue;
        ssize_t got = read(raw->fd, seen + n, sizeof(seen) - 1 - n);
        ck_assert_msg(got > 0, "the stream ends:\n%s", seen);
        n += (size_t)got;
        seen[n] = '\0';
        if (strstr(seen, words))
            return;
    }
    ck_abort_msg("%s did not arrive:\n%s", words, seen);
}

struct raw *stream_open(const struct server *s, const struct visitor *v)
{
    struct raw *raw = raw_open(s);
    raw_text(raw,
             "GET /api/v1/widget/conversation/stream HTTP/1.1\r\nHost: x\r\n"
             "Authorization: Bearer %s\r\nAccept: text/event-stream\r\n\r\n",
             v->jwt);
    stream_expect(raw, ": here");
    return raw;
}
