/*
 * A cluster of assayd on loopback: nodes, the PostgreSQL that has their log, on request a standby
 * of it and a fault proxy between each node and it. All nodes know the same key, and grade pages of
 * one origin. Tests that use this file link t/kit/libharness.a, libpq and the store.
 *
 * A node is a struct server of t/kit/harness.h, and everything of that file works with it. Its log
 * may end with changes that failed: the functions here do not take that for a crash. A function
 * that fails fails the running test.
 */
#ifndef ASSAY_T_NODES_KIT_H
#define ASSAY_T_NODES_KIT_H

#include "t/kit/fault_proxy.h"
#include "t/kit/harness.h"
#include "t/kit/postgres.h"
#include "t/kit/wall_clock.h"

enum { NODES_MAX = 4, NODES_AWAY = -1, NODES_CALLERS = 8, NODES_WRITE = 7, LEAD_MS = 15000 };

struct node {
    struct server *server;     /* pid 0: it does not run */
    struct fault_proxy *proxy; /* on the way to the log */
    struct fault_proxy *relay; /* before cluster.address: other nodes connect to it */
    struct wall_clock *clock;
    uint16_t port; /* of cluster.address */
    bool paused;
};

enum nodes_standby { NODES_NO_STANDBY, NODES_SYNCHRONOUS, NODES_ASYNCHRONOUS };

struct nodes_options {
    unsigned count; /* of nodes; 0: three */
    enum nodes_standby standby;
    bool proxies;        /* each node has a ${proxy} */
    bool relay_proxies;  /* each node has a ${relay} */
    bool clocks;         /* each node has a ${clock}, where wall_clock_possible() */
    const char *yaml;    /* additional configuration of each node, or NULL */
    const char *cluster; /* additional members of its `cluster` map, as ", key: value", or NULL */
};

struct nodes {
    struct nodes_options options;
    struct origin *origin; /* origin_usual */
    struct postgres *log, *standby;
    struct node node[NODES_MAX];
    unsigned count;
    char *key;
    unsigned asked[NODES_CALLERS]; /* the node that each caller asks */
};

/*
 * nodes_new(options): all nodes run, one leads, and there is a workspace "main" with a key.
 * nodes_free: kills what runs and removes all.
 * nodes_add(n): one more node with an empty store, not started; its index. node_configure: writes
 * its configuration again.
 */
struct nodes *nodes_new(const struct nodes_options *options);
void nodes_free(struct nodes *n);
unsigned nodes_add(struct nodes *n);
void node_configure(struct nodes *n, unsigned i);

/*
 * node_start(n, i): starts it, on its port of before.
 * node_stop: TERM. node_kill: SIGKILL to all its processes at once. node_kill_writer: to its
 * writer, if it has one. node_pause: SIGSTOP to all its processes. node_resume: SIGCONT.
 */
void node_start(struct nodes *n, unsigned i);
void node_stop(struct nodes *n, unsigned i);
void node_kill(struct nodes *n, unsigned i);
void node_kill_writer(struct nodes *n, unsigned i);
void node_pause(struct nodes *n, unsigned i);
void node_resume(struct nodes *n, unsigned i);

/*
 * node_fill_disk(n, i): no file of its processes grows beyond the size of its store, as on a full
 * disk. node_free_disk: files may grow again. nodes_faults.c has both, and the proxies of relays.
 */
void node_fill_disk(const struct nodes *n, unsigned i);
void node_free_disk(const struct nodes *n, unsigned i);

/* nodes_logs(n): the error logs of all nodes, for messages. */
char *nodes_logs(const struct nodes *n);

/* node_writer(n, i): the pid of its writer; waits for one. */
pid_t node_writer(struct nodes *n, unsigned i);

/*
 * nodes_leader(n): the node whose lead lasts, by the log; NODES_AWAY: none. nodes_await_leader(n,
 * other): waits until a node leads, other than ${other} (NODES_AWAY: any); its index.
 */
int nodes_leader(const struct nodes *n);
unsigned nodes_await_leader(const struct nodes *n, int other);

/*
 * nodes_promote(n): kills the primary and promotes the standby. The nodes know both.
 */
void nodes_promote(struct nodes *n);

/* nodes_entries(n): how many entries the log has had. node_position: how many the store has. */
uint64_t nodes_entries(const struct nodes *n);
uint64_t node_position(const struct nodes *n, unsigned i);

/* nodes_catch_up(n): waits until every node that runs is at the end of the log. */
void nodes_catch_up(const struct nodes *n);

/*
 * nodes_ask(n, caller, call): sends the request to a node. After no answer, or a status from 500
 * on, the next node that runs and has what the one before has gets the next request of this caller.
 * Callers may be threads.
 * nodes_write(n, call): as the caller NODES_WRITE, until a node answers; fails after LEAD_MS.
 * nodes_create(n, name): a report of a page of this name, which nobody can reach.
 * node_forget_seen(n, i): in the log, as if its server had ended a while ago; nodes_forget_seen(n):
 * all of them.
 * nodes_expect_reports(n, total): every node that runs lists that many, when it has all entries.
 */
struct response *nodes_ask(void *n, unsigned caller, const struct call *call);
#define nodes_write(n, ...) nodes_write_call((n), &(struct call){__VA_ARGS__})
struct response *nodes_write_call(struct nodes *n, const struct call *call);
void nodes_create(struct nodes *n, const char *name);
void node_forget_seen(const struct nodes *n, unsigned i);
void nodes_forget_seen(const struct nodes *n);
void nodes_expect_reports(const struct nodes *n, int64_t total);

/*
 * nodes_expect_equal(n): all nodes are at the end of the log, give the same answers and have the
 * same rows in replicated spaces; `assay check` finds nothing, while they run and afterwards. It
 * stops all nodes.
 */
void nodes_expect_equal(struct nodes *n);

/*
 * For nodes.c: nodes_add_relay(n, i): a proxy before the address of node ${i}. nodes_use_relays(n):
 * there is a log: each node gets the proxies as the addresses of the others.
 */
void nodes_add_relay(struct nodes *n, unsigned i);
void nodes_use_relays(const struct nodes *n);

/*
 * nodes_main(name, processes, setup, teardown, add): the main function of a program with one case
 * of tests, which ${add} adds; so many processes share them. ${setup} and ${teardown}: of each
 * test, or NULL. Without PostgreSQL it is skipped.
 */
typedef void add_tests_fn(TCase *tcase);
static inline int nodes_main(const char *name, int processes, void (*setup)(void),
                             void (*teardown)(void), add_tests_fn *add)
{
    if (postgres_missing()) {
        puts(postgres_missing());
        return SUITE_SKIPPED;
    }
    suite_processes(processes);
    Suite *suite = suite_create(name);
    TCase *tcase = harness_case(suite, name);
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_set_timeout(tcase, 240);
    add(tcase);
    return harness_main(suite);
}

#endif
