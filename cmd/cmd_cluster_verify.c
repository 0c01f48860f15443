/* assay cluster verify: have the records of all nodes the same hash? */
#include "cmd/cmd_cluster.h"

#include "core/cluster/verification.h"
#include "core/shm/scoreboard.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define POLL_US 200000
#define BEGIN_MS 30000   /* until a node leads and begins */
#define FIRST_MS 3600000 /* until the first node has its hash */

/* Results of nodes without a hash. */
#define NO_ANSWER "no answer"
#define STOPPED "stopped"

/* The hashes after the entry ${asked}, of live and of stopped nodes. */
struct looking {
    struct verification v; /* its sequence: the highest that a node has a hash of */
    struct cluster_log_node nodes[VERIFICATION_NODES];
    size_t count;
    uint64_t asked;
    bool begun; /* the leader has appended the entry */
};

/* When a look ends that is not complete. */
struct patience {
    uint64_t began_ms, until_ms;
    bool first; /* a node has its hash */
};

static void look_at_node(void *arg, const struct cluster_log_node *n)
{
    struct looking *l = arg;
    bool looks =
        n->seen_ms < CLUSTER_LOG_LEASE_MS || n->stopped[0] != '\0' || n->hash_sequence > l->asked;
    if (!looks || l->count == VERIFICATION_NODES)
        return;
    l->nodes[l->count++] = *n;
    if (n->hash_sequence > l->v.sequence)
        l->v.sequence = n->hash_sequence;
}

/* Nodes that the verification has stopped are judged too. */
static void judge_all(struct looking *l)
{
    for (size_t i = 0; i < l->count; i++) {
        struct cluster_log_node n = l->nodes[i];
        if (n.hash_sequence == l->v.sequence) {
            n.differs_at = 0;
            n.seen_ms = 0;
            n.stopped[0] = '\0';
        }
        verification_add(&l->v, &n);
    }
}

static enum cluster_log_status look(struct cluster_log *log, uint64_t asked, struct looking *l)
{
    struct cluster_log_head head;
    *l = (struct looking){.v.sequence = asked, .asked = asked};
    enum cluster_log_status status = log->engine->position(log, NULL, &head);
    if (status == CLUSTER_LOG_OK)
        status = log->engine->nodes(log, look_at_node, l);
    if (status != CLUSTER_LOG_OK)
        return status;
    l->begun = !head.verify;
    memcpy(l->v.leader, head.leader, sizeof(l->v.leader));
    judge_all(l);
    return CLUSTER_LOG_OK;
}

/* Does every node that takes part have its hash? */
static bool is_complete(const struct looking *l)
{
    bool complete = l->v.sequence > l->asked && l->v.count > 0;
    for (size_t i = 0; i < l->v.count; i++)
        complete = complete && l->v.nodes[i].hash_sequence == l->v.sequence;
    return complete;
}

static const char *result_of(const struct looking *l, const struct cluster_log_node *n)
{
    if (n->hash_sequence != l->v.sequence)
        return n->stopped[0] != '\0' ? STOPPED : NO_ANSWER;
    switch (verification_judge(&l->v, n->id)) {
    case VERDICT_EQUAL:
        return "equal";
    case VERDICT_DIFFERS:
        return "differs";
    default:
        return "no majority";
    }
}

static void print(const struct looking *l, bool json)
{
    char hash[2 * STORE_HASH_BYTES + 1] = "";
    struct records r = {0};
    records_start(&r, json);
    for (size_t i = 0; i < l->count; i++) {
        const struct cluster_log_node *n = &l->nodes[i];
        for (size_t j = 0; j < STORE_HASH_BYTES; j++)
            snprintf(hash + 2 * j, 3, "%02x", n->hash[j]);
        records_text(&r, "node", str_of(n->name));
        records_number(&r, "entry", n->hash_sequence);
        records_text(&r, "hash", str_of(n->hash_sequence == 0 ? NULL : hash));
        records_text(&r, "result", str_of(result_of(l, n)));
        records_end_row(&r);
    }
    records_finish(&r);
}

static bool is_patient(struct patience *p, const struct looking *l)
{
    const uint64_t now = clock_mono_ms();
    if (!p->first && l->v.sequence > l->asked) {
        p->first = true;
        p->until_ms = now + verification_wait_ms(now - p->began_ms);
    } else if (!p->first && !l->begun) {
        p->until_ms = p->began_ms + BEGIN_MS;
    } else if (!p->first) {
        p->until_ms = p->began_ms + FIRST_MS;
    }
    return now < p->until_ms && !cmd_interrupted();
}

static enum cluster_log_status await(struct cluster_log *log, struct looking *l)
{
    uint64_t asked;
    struct patience patience = {.began_ms = clock_mono_ms()};
    enum cluster_log_status status = log->engine->verify(log, &asked);
    if (status == CLUSTER_LOG_OK)
        status = look(log, asked, l);
    while (status == CLUSTER_LOG_OK && !is_complete(l) && is_patient(&patience, l)) {
        usleep(POLL_US);
        status = look(log, asked, l);
    }
    return status;
}

/* ---- the result ---- */

static size_t count_results(const struct looking *l, const char *result)
{
    size_t count = 0;
    for (size_t i = 0; i < l->count; i++)
        count += strcmp(result_of(l, &l->nodes[i]), result) == 0;
    return count;
}

static int say_unfinished(const struct looking *l)
{
    if (cmd_interrupted())
        return cmd_refuse("interrupted; the nodes continue and log the result");
    if (!l->begun)
        return cmd_refuse("no node has begun within %d s: no node leads, as assay cluster status "
                          "shows; the next one that leads begins",
                          BEGIN_MS / 1000);
    return cmd_refuse(
        "no node has hashed its records within an hour; the nodes continue and log the result");
}

static void say_silent(const struct looking *l)
{
    for (size_t i = 0; i < l->count; i++) {
        const struct cluster_log_node *n = &l->nodes[i];
        const char *result = result_of(l, n);
        if (strcmp(result, NO_ANSWER) == 0)
            cmd_say("Node %s did not answer in time: its log says why. It has entry %" PRIu64 ".",
                    n->name, n->sequence);
        else if (strcmp(result, STOPPED) == 0)
            cmd_say("Node %s is stopped: %s.", n->name, n->stopped);
    }
}

static int say_result(struct looking *l)
{
    const size_t equal = count_results(l, "equal");
    say_silent(l);
    if (equal == l->count) {
        cmd_say("All nodes that follow have the same records at entry %" PRIu64 ".", l->v.sequence);
        return CMD_DONE;
    }
    if (equal + count_results(l, NO_ANSWER) + count_results(l, STOPPED) == l->count)
        return cmd_refuse("the nodes that answered have the same records at entry %" PRIu64
                          "; the others are not compared",
                          l->v.sequence);
    return cmd_refuse("nodes differ at entry %" PRIu64 ": a node that differs stops; copy the "
                      "store of another node to it by assay cluster join FROM --replace",
                      l->v.sequence);
}

int cmd_cluster_verify(struct cmd *cmd)
{
    struct looking l;
    struct cluster_log *log = cmd_log_open(cmd);
    if (log == NULL)
        return CMD_REFUSED;
    cmd_catch_interrupts();
    enum cluster_log_status status = await(log, &l);
    if (status != CLUSTER_LOG_OK)
        return cmd_log_refuse(log, status);
    log->engine->free(log);
    l.v.late = !cmd_interrupted();
    print(&l, cmd->json);
    return l.v.sequence > l.asked && !cmd_interrupted() ? say_result(&l) : say_unfinished(&l);
}
