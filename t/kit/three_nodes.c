#include "t/kit/three_nodes.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/stat.h>

enum { SOON_MS = 2000 };

struct nodes *nodes;
unsigned leader;
volatile int64_t *step_ms;
static char clock_path[] = "/tmp/assay-clock-XXXXXX"; /* of ${step_ms} */

void three_nodes_begin(void)
{
    nodes = nodes_new(&(struct nodes_options){0});
    leader = nodes_await_leader(nodes, NODES_AWAY);
    server = nodes->node[leader].server;
    nodes->asked[NODES_WRITE] = leader;
}

void three_nodes_end(void)
{
    nodes_free(nodes);
    if (step_ms != NULL)
        unlink(clock_path);
}

void step_clock(bool on)
{
    if (step_ms == NULL) {
        int fd = mkstemp(clock_path);
        ck_assert_int_ge(fd, 0);
        ck_assert_int_eq(ftruncate(fd, sizeof(*step_ms)), 0);
        ck_assert_int_eq(fchmod(fd, 0644), 0);
        step_ms = mmap(NULL, sizeof(*step_ms), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        ck_assert_ptr_ne((void *)step_ms, MAP_FAILED);
        close(fd);
    }
    if (on) {
        setenv("STEPPED_CLOCK", clock_path, 1);
        setenv("LD_PRELOAD", realpath("t/kit/stepped_clock.so", NULL), 1);
    } else {
        unsetenv("STEPPED_CLOCK");
        unsetenv("LD_PRELOAD");
    }
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

void expect_says(unsigned i, const char *words)
{
    const struct server *s = nodes->node[i].server;
    ck_assert_msg(server_says(s, words, 0, SAYS_MS), "node %u does not say: %s\n%s", i, words,
                  server_log(s));
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
