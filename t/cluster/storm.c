/*
 * Faults of every kind at random moments under load: processes and nodes are killed and stopped,
 * connections to the database and between nodes are cut, delayed and silenced, the database is
 * killed, clocks are stepped, disks are full. Nothing acknowledged is lost, nothing is applied
 * twice, and all nodes have the same records.
 * ASSAY_STORM_SECONDS sets the duration, ASSAY_STORM_SEED the order. ASSAY_STORM_FAULTS=relay has
 * only the faults with this word in their name.
 */
#include "t/kit/changes.h"
#include "t/kit/nodes.h"

#include <poll.h>
#include <signal.h>

enum { DAY_MS = 86400000, STUCK_MS = 12000 };
enum { SECONDS = 20, PATIENCE_MS = 60000, FAULTS_MIN = 10, ANSWERS_MIN = 50 };

struct storm {
    struct nodes *nodes;
    struct changes changes;
    uint64_t random;
    int64_t longest_ms; /* until up to 60 changes are answered */
};

static unsigned below(struct storm *s, unsigned most)
{
    return (unsigned)(changes_random(&s->random) % most);
}

/* The leader more often than others. */
static unsigned any_node(struct storm *s)
{
    int leader = nodes_leader(s->nodes);
    return leader != NODES_AWAY && below(s, 2) == 0 ? (unsigned)leader : below(s, s->nodes->count);
}

/* ---- faults ---- */

static void kill_writer(struct storm *s)
{
    node_kill_writer(s->nodes, any_node(s));
}

static void kill_process(struct storm *s)
{
    pid_t pids[32];
    size_t count = server_children(s->nodes->node[any_node(s)].server, pids, COUNT(pids));
    if (count)
        kill(pids[below(s, (unsigned)count)], SIGKILL);
}

static void kill_node(struct storm *s)
{
    unsigned i = any_node(s);
    node_kill(s->nodes, i);
    poll(NULL, 0, (int)below(s, 500));
    node_start(s->nodes, i);
}

static void restart_node(struct storm *s)
{
    unsigned i = any_node(s);
    node_stop(s->nodes, i);
    node_start(s->nodes, i);
}

static void stop_writer(struct storm *s)
{
    pid_t writer = server_process(s->nodes->node[any_node(s)].server, "assayd: writer");
    if (!writer)
        return;
    kill(writer, SIGSTOP);
    poll(NULL, 0, (int)below(s, 1000));
    kill(writer, SIGCONT);
}

/*
 * One process sleeps, its siblings work on. Now and then longer than the master waits for a sign of
 * life of its children.
 */
static void stop_process(struct storm *s)
{
    static const char *const titles[] = {"assayd: worker 0", "assayd: worker 1", "assayd: writer",
                                         "assayd: auditor 0", "the master"};
    const struct server *server = s->nodes->node[any_node(s)].server;
    unsigned which = below(s, COUNT(titles));
    pid_t pid = which + 1 == COUNT(titles) ? server->pid : server_process(server, titles[which]);
    if (!pid)
        return;
    kill(pid, SIGSTOP);
    poll(NULL, 0, below(s, 8) == 0 ? STUCK_MS : (int)(1000 + below(s, 3000)));
    kill(pid, SIGCONT);
}

/* Shorter than the lease, and now and then longer. */
static void stop_node(struct storm *s)
{
    unsigned i = any_node(s);
    node_pause(s->nodes, i);
    poll(NULL, 0, below(s, 8) == 0 ? STUCK_MS : (int)below(s, 500));
    node_resume(s->nodes, i);
}

static struct fault_proxy *any_proxy(struct storm *s)
{
    return s->nodes->node[any_node(s)].proxy;
}

/* Those of the leader are in use. */
static struct fault_proxy *any_relay(struct storm *s)
{
    return s->nodes->node[any_node(s)].relay;
}

static void cut_after(struct storm *s, struct fault_proxy *proxy)
{
    enum fault_side side = below(s, 2) == 0 ? TO_SERVER : TO_CLIENT;
    fault_proxy_cut_after(proxy, side, 1 + below(s, 4000));
}

static void drop(struct storm *s, struct fault_proxy *proxy)
{
    fault_proxy_drop(proxy);
    poll(NULL, 0, (int)below(s, 1500));
    fault_proxy_pass(proxy);
}

static void cut_log(struct storm *s)
{
    fault_proxy_cut(any_proxy(s));
}

static void cut_log_after(struct storm *s)
{
    cut_after(s, any_proxy(s));
}

static void drop_log(struct storm *s)
{
    drop(s, any_proxy(s));
}

static void cut_relays(struct storm *s)
{
    fault_proxy_cut(any_relay(s));
}

static void cut_relay_after(struct storm *s)
{
    cut_after(s, any_relay(s));
}

static void drop_relays(struct storm *s)
{
    drop(s, any_relay(s));
}

/* Answers arrive late, and the writer dies meanwhile: after the append, before the commit. */
static void kill_behind_append(struct storm *s)
{
    unsigned i = any_node(s);
    fault_proxy_delay(s->nodes->node[i].proxy, TO_CLIENT, 100);
    poll(NULL, 0, (int)(50 + below(s, 150)));
    node_kill_writer(s->nodes, i);
    fault_proxy_pass(s->nodes->node[i].proxy);
}

static void kill_database(struct storm *s)
{
    postgres_kill(s->nodes->log);
    poll(NULL, 0, (int)below(s, 500));
    postgres_start(s->nodes->log);
}

static void stop_database(struct storm *s)
{
    postgres_pause(s->nodes->log);
    poll(NULL, 0, (int)below(s, 1500));
    postgres_resume(s->nodes->log);
}

/* ---- clocks and disks ---- */

/* A running node; its clock is a day late, right, or a day early afterwards. */
static void step_clock(struct storm *s)
{
    struct wall_clock *clock = s->nodes->node[any_node(s)].clock;
    if (clock)
        wall_clock_step(clock, (int64_t)DAY_MS * ((int)below(s, 3) - 1));
}

/* Its writer may be killed meanwhile: the next one cannot write either. */
static void fill_disk(struct storm *s)
{
    unsigned i = any_node(s);
    node_fill_disk(s->nodes, i);
    poll(NULL, 0, (int)(500 + below(s, 1500)));
    if (below(s, 2) == 0)
        node_kill_writer(s->nodes, i);
    poll(NULL, 0, (int)below(s, 1500));
    node_free_disk(s->nodes, i);
}

static const struct fault {
    const char *name;
    unsigned weight;
    void (*happen)(struct storm *s);
} faults[] = {
    {"writer killed", 8, kill_writer},
    {"writer killed behind an append", 8, kill_behind_append},
    {"process killed", 3, kill_process},
    {"node killed", 2, kill_node},
    {"node restarted", 1, restart_node},
    {"writer stopped", 3, stop_writer},
    {"node stopped", 2, stop_node},
    {"process stopped", 1, stop_process},
    {"log cut", 3, cut_log},
    {"log cut within a message", 4, cut_log_after},
    {"log silent", 2, drop_log},
    {"relays cut", 3, cut_relays},
    {"relay cut within a frame", 4, cut_relay_after},
    {"relays silent", 2, drop_relays},
    {"clock stepped", 3, step_clock},
    {"disk full", 2, fill_disk},
    {"database killed", 1, kill_database},
    {"database stopped", 1, stop_database},
};

static unsigned happened[COUNT(faults)];

static unsigned weight_of(const struct fault *fault)
{
    const char *word = getenv("ASSAY_STORM_FAULTS");
    return !word || strstr(fault->name, word) ? fault->weight : 0;
}

static void one_fault(struct storm *s)
{
    unsigned weights = 0, i = 0;
    for (unsigned j = 0; j < COUNT(faults); j++)
        weights += weight_of(&faults[j]);
    ck_assert_msg(weights > 0, "no fault is named by ASSAY_STORM_FAULTS");
    for (unsigned choice = below(s, weights); choice >= weight_of(&faults[i]); i++)
        choice -= weight_of(&faults[i]);
    happened[i]++;
    faults[i].happen(s);
}

/* ---- the storm ---- */

struct goal {
    struct changes *changes;
    unsigned answers;
};

static bool is_reached(void *arg)
{
    const struct goal *goal = arg;
    return goal->changes->acknowledged >= goal->answers;
}

/* After each fault changes are answered again. */
static void let_work(struct storm *s)
{
    int64_t since = now_ms();
    struct goal goal = {&s->changes, s->changes.acknowledged + 1 + below(s, 60)};
    ck_assert_msg(wait_until(is_reached, &goal, PATIENCE_MS), "no change is answered\n%s",
                  nodes_logs(s->nodes));
    int64_t took = now_ms() - since;
    s->longest_ms = took > s->longest_ms ? took : s->longest_ms;
}

static unsigned rage(struct storm *s, unsigned seconds)
{
    unsigned count = 0;
    int64_t deadline = now_ms() + 1000 * (int64_t)seconds;
    for (; now_ms() < deadline || count < FAULTS_MIN; count++) {
        let_work(s);
        one_fault(s);
    }
    let_work(s);
    return count;
}

static char *description(unsigned seed, unsigned count, const struct storm *s)
{
    char *out = text("seed %u: %u faults, changes answered within %lld ms (", seed, count,
                     (long long)s->longest_ms);
    for (unsigned i = 0; i < COUNT(faults); i++) {
        char *longer = text("%s%s%s %u", out, i ? ", " : "", faults[i].name, happened[i]);
        free(out);
        out = longer;
    }
    char *closed = text("%s)", out);
    free(out);
    return closed;
}

START_TEST(no_acknowledged_change_is_lost_or_applied_twice)
{
    unsigned seed = changes_setting("ASSAY_STORM_SEED", (unsigned)getpid());
    unsigned seconds = changes_setting("ASSAY_STORM_SECONDS", SECONDS);
    struct nodes *n =
        nodes_new(&(struct nodes_options){.proxies = true, .relay_proxies = true, .clocks = true});
    struct storm s = {.nodes = n, .random = 88172645463325252u ^ ((uint64_t)seed << 20)};
    s.changes = (struct changes){
        .origin = n->origin, .ask = nodes_ask, .arg = n, .late = true, .pause_ms = 2 + seconds / 5};
    fprintf(stderr, "seed %u\n", seed);
    changes_start(&s.changes, s.random);
    char *what = description(seed, rage(&s, seconds), &s);
    changes_end(&s.changes, what);
    ck_assert_uint_ge(s.changes.acknowledged, ANSWERS_MIN);
    changes_expect_graded(n->node[nodes_await_leader(n, NODES_AWAY)].server);
    nodes_catch_up(n);
    for (unsigned i = 0; i < n->count; i++)
        changes_expect(&s.changes, n->node[i].server);
    nodes_expect_equal(n);
    nodes_free(n);
}
END_TEST

int main(void)
{
    if (postgres_missing()) {
        puts(postgres_missing());
        return SUITE_SKIPPED;
    }
    Suite *suite = suite_create("storm");
    TCase *tcase = harness_case(suite, "a cluster");
    tcase_set_timeout(tcase, 600 + 2 * changes_setting("ASSAY_STORM_SECONDS", SECONDS));
    tcase_add_test(tcase, no_acknowledged_change_is_lost_or_applied_twice);
    return harness_main(suite);
}
