#include "t/kit/nodes.h"

#include "t/kit/supervisor.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>

enum { CATCH_UP_MS = 30000, MOVE_MS = 1000, STOP_MS = 20000, PROCESSES_MAX = 64 };

/* ---- making ---- */

static char *conninfo_of(const struct nodes *n, const struct node *node)
{
    uint16_t port = node->proxy ? fault_proxy_port(node->proxy) : n->log->port;
    return postgres_conninfo(port, n->standby ? n->standby->port : 0);
}

static char *key_file(const struct nodes *n)
{
    return text("%s/cluster.key", n->node[0].server->dir);
}

static void make_key_file(const struct nodes *n)
{
    char *path = key_file(n);
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    ck_assert_int_ge(fd, 0);
    for (int i = 0; i < 32; i++)
        ck_assert_int_gt(dprintf(fd, "%02x", i), 0);
    ck_assert_int_gt(dprintf(fd, "\n"), 0);
    close(fd);
    free(path);
}

void node_configure(struct nodes *n, unsigned i)
{
    struct node *node = &n->node[i];
    char *info = conninfo_of(n, node), *key = key_file(n);
    char *yaml = text("base_url: http://assay.example\n"
                      "cluster: { log: \"%s\", name: node%u, address: \"127.0.0.1:%u\","
                      " key_file: %s%s }\n%s",
                      info, i, node->port, key, n->options.cluster ? n->options.cluster : "",
                      n->options.yaml ? n->options.yaml : "");
    server_configure(node->server, yaml);
    free(yaml);
    free(key);
    free(info);
}

/* The port is known before the first start, so that threads may ask at any time. */
static void choose_port(struct server *s)
{
    s->port = loopback_port();
    s->address = text("127.0.0.1:%u", s->port);
    s->url = text("http://%s", s->address);
}

unsigned nodes_add(struct nodes *n)
{
    unsigned i = n->count++;
    ck_assert_uint_lt(i, NODES_MAX);
    struct node *node = &n->node[i];
    node->server = server_new(&(struct server_options){.origin = n->origin, .no_key = true});
    node->server->key = n->key;
    node->port = loopback_port();
    choose_port(node->server);
    if (i == 0)
        make_key_file(n);
    if (n->options.proxies)
        node->proxy = fault_proxy_new(n->log->port);
    if (n->options.relay_proxies)
        nodes_add_relay(n, i);
    if (n->options.clocks && wall_clock_possible())
        node->server->options.clock = node->clock = wall_clock_new();
    node_configure(n, i);
    return i;
}

static void make_log(struct nodes *n)
{
    n->log = postgres_new();
    if (n->options.standby != NODES_NO_STANDBY)
        n->standby = postgres_follow(n->log, n->options.standby == NODES_SYNCHRONOUS
                                                 ? POSTGRES_SYNCHRONOUS
                                                 : POSTGRES_ASYNCHRONOUS);
}

static void make_key(struct nodes *n)
{
    struct server *leader = n->node[nodes_await_leader(n, NODES_AWAY)].server;
    assay_ok(leader, "workspace", "create", "main", NULL);
    n->key = key_new(leader, "main", NULL);
    for (unsigned i = 0; i < n->count; i++)
        n->node[i].server->key = n->key;
    nodes_catch_up(n);
}

struct nodes *nodes_new(const struct nodes_options *options)
{
    struct nodes *n = calloc(1, sizeof(*n));
    ck_assert_ptr_nonnull(n);
    n->options = *options;
    n->origin = origin_usual();
    make_log(n);
    for (unsigned i = 0; i < NODES_CALLERS; i++)
        n->asked[i] = i % (options->count ? options->count : 3);
    for (unsigned i = 0; i < (options->count ? options->count : 3); i++)
        nodes_add(n);
    assay_ok(n->node[0].server, "cluster", "init", NULL);
    if (options->relay_proxies)
        nodes_use_relays(n);
    for (unsigned i = 0; i < n->count; i++)
        node_start(n, i);
    make_key(n);
    return n;
}

void nodes_free(struct nodes *n)
{
    for (unsigned i = 0; i < n->count; i++) {
        if (n->node[i].server->pid > 0)
            node_kill(n, i);
        server_free(n->node[i].server);
        fault_proxy_free(n->node[i].proxy);
        fault_proxy_free(n->node[i].relay);
        wall_clock_free(n->node[i].clock);
    }
    postgres_free(n->standby);
    postgres_free(n->log);
    origin_stop(n->origin);
    free(n);
}

/* ---- processes ---- */

void node_start(struct nodes *n, unsigned i)
{
    server_start_again(n->node[i].server);
}

void node_stop(struct nodes *n, unsigned i)
{
    struct server *s = n->node[i].server;
    server_signal(s, SIGTERM);
    int status = server_wait(s, STOP_MS);
    ck_assert_msg(status == 0, "node %u: TERM: exit status %d\n%s", i, status, server_log(s));
}

static size_t processes_of(const struct server *s, pid_t pids[PROCESSES_MAX])
{
    size_t count = server_children(s, pids, PROCESSES_MAX);
    ck_assert_uint_le(count, PROCESSES_MAX);
    return count;
}

/* The master is stopped first: it starts no other process meanwhile. */
void node_pause(struct nodes *n, unsigned i)
{
    pid_t pids[PROCESSES_MAX];
    const struct server *s = n->node[i].server;
    process_stop(s->pid);
    size_t count = processes_of(s, pids);
    for (size_t j = 0; j < count; j++)
        process_stop(pids[j]);
    n->node[i].paused = true;
}

void node_resume(struct nodes *n, unsigned i)
{
    pid_t pids[PROCESSES_MAX];
    const struct server *s = n->node[i].server;
    size_t count = processes_of(s, pids);
    for (size_t j = 0; j < count; j++)
        kill(pids[j], SIGCONT);
    server_signal(s, SIGCONT);
    n->node[i].paused = false;
}

void node_kill(struct nodes *n, unsigned i)
{
    pid_t pids[PROCESSES_MAX];
    struct server *s = n->node[i].server;
    process_stop(s->pid);
    size_t count = processes_of(s, pids);
    for (size_t j = 0; j < count; j++)
        kill(pids[j], SIGKILL);
    server_kill(s);
    n->node[i].paused = false;
}

static bool has_writer(void *arg)
{
    return server_process(arg, "assayd: writer") > 0;
}

pid_t node_writer(struct nodes *n, unsigned i)
{
    struct server *s = n->node[i].server;
    ck_assert_msg(wait_until(has_writer, s, STOP_MS), "node %u has no writer\n%s", i,
                  server_log(s));
    return server_process(s, "assayd: writer");
}

void node_kill_writer(struct nodes *n, unsigned i)
{
    pid_t writer = server_process(n->node[i].server, "assayd: writer");
    if (writer > 0)
        kill(writer, SIGKILL);
}

/* ---- the log ---- */

int nodes_leader(const struct nodes *n)
{
    char *name = postgres_query(n->log, "SELECT n.name FROM assay_cluster c"
                                        " JOIN assay_node n ON n.node = c.leader"
                                        " WHERE c.lease_until > clock_timestamp()");
    int leader = name ? atoi(name + strlen("node")) : NODES_AWAY;
    free(name);
    return leader;
}

struct election {
    const struct nodes *n;
    int other, leader;
};

static bool is_led(void *arg)
{
    struct election *e = arg;
    e->leader = nodes_leader(e->n);
    return e->leader != NODES_AWAY && e->leader != e->other;
}

char *nodes_logs(const struct nodes *n)
{
    char *all = text("%s", "");
    for (unsigned i = 0; i < n->count; i++) {
        char *log = server_log(n->node[i].server);
        char *longer = text("%s--- node %u (pid %d)\n%s", all, i, (int)n->node[i].server->pid, log);
        free(log);
        free(all);
        all = longer;
    }
    return all;
}

unsigned nodes_await_leader(const struct nodes *n, int other)
{
    struct election e = {.n = n, .other = other};
    ck_assert_msg(wait_until(is_led, &e, LEAD_MS), "no node leads\n%s", nodes_logs(n));
    return (unsigned)e.leader;
}

void nodes_promote(struct nodes *n)
{
    struct postgres *killed = n->log;
    postgres_kill(n->log);
    postgres_promote(n->standby);
    n->log = n->standby;
    n->standby = killed;
}

uint64_t nodes_entries(const struct nodes *n)
{
    char *head = postgres_query(n->log, "SELECT head FROM assay_cluster");
    ck_assert_ptr_nonnull(head);
    uint64_t entries = strtoull(head, NULL, 10);
    free(head);
    return entries;
}

static bool is_caught_up(void *arg)
{
    const struct nodes *n = arg;
    uint64_t entries = nodes_entries(n);
    for (unsigned i = 0; i < n->count; i++)
        if (n->node[i].server->pid > 0 && node_position(n, i) != entries)
            return false;
    return nodes_entries(n) == entries;
}

void nodes_catch_up(const struct nodes *n)
{
    if (wait_until(is_caught_up, (void *)n, CATCH_UP_MS))
        return;
    for (unsigned i = 0; i < n->count; i++)
        fprintf(stderr, "node %u is at %llu\n", i, (unsigned long long)node_position(n, i));
    ck_abort_msg("the log has %llu entries\n%s", (unsigned long long)nodes_entries(n),
                 nodes_logs(n));
}

/* ---- requests ---- */

struct move {
    const struct nodes *nodes;
    unsigned from, to;
};

static bool has_as_much(void *arg)
{
    const struct move *m = arg;
    return node_position(m->nodes, m->to) >= node_position(m->nodes, m->from);
}

/* The node before may be dead; its store says what it answered. */
static void ask_another(struct nodes *n, unsigned caller)
{
    unsigned from = n->asked[caller];
    for (unsigned i = 1; i < n->count; i++) {
        struct move m = {n, from, (from + i) % n->count};
        if (n->node[m.to].server->pid == 0 || !wait_until(has_as_much, &m, MOVE_MS))
            continue;
        n->asked[caller] = m.to;
        return;
    }
}

struct response *nodes_ask(void *arg, unsigned caller, const struct call *call)
{
    struct nodes *n = arg;
    struct response *r = http_call(n->node[n->asked[caller]].server, call);
    if (r->status == 0 || r->status >= 500)
        ask_another(n, caller);
    return r;
}

struct response *nodes_write_call(struct nodes *n, const struct call *call)
{
    struct call patient = *call;
    patient.may_fail = true;
    for (int64_t deadline = now_ms() + LEAD_MS;;) {
        struct response *r = nodes_ask(n, NODES_WRITE, &patient);
        if (r->status > 0 && r->status < 500)
            return r;
        ck_assert_msg(now_ms() < deadline, "%s\n%s", response_text(r), nodes_logs(n));
        response_free(r);
        poll(NULL, 0, 5);
    }
}

void nodes_create(struct nodes *n, const char *name)
{
    struct response *r = nodes_write(n, .method = "POST", .path = "/api/v1/reports",
                                     .headers = {"Prefer: respond-async"},
                                     .body = form("url", text("http://127.0.0.9/%s", name), NULL));
    expect_status(r, 202);
    response_free(r);
}

void node_forget_seen(const struct nodes *n, unsigned i)
{
    free(postgres_query(n->log,
                        "UPDATE assay_node SET seen_at = seen_at - interval '11 s'"
                        " WHERE name = 'node%u'",
                        i));
}

void nodes_forget_seen(const struct nodes *n)
{
    for (unsigned i = 0; i < n->count; i++)
        node_forget_seen(n, i);
}

void nodes_expect_reports(const struct nodes *n, int64_t total)
{
    nodes_catch_up(n);
    for (unsigned i = 0; i < n->count; i++)
        if (n->node[i].server->pid > 0)
            expect_int(http_get(n->node[i].server, "/api/v1/reports"), "meta.total", total);
}
