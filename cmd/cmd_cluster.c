/* assay cluster: begins the log of a cluster, shows and removes its nodes. */
#include "cmd/cmd_cluster.h"
#include "cmd/cmd_store.h"

#include "core/shm/scoreboard.h"
#include "core/writer/leading.h"
#include "store/rows.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <sys/random.h>

#define OPERATOR "operator" /* the name of its connection */

const struct cmd_option cmd_cluster_new_log_options[] = {
    {"--from", "NODE",
     "cluster.name of this node, whose store the log begins with; by default its host name"},
    {.name = NULL},
};

struct cluster_log *cmd_log_open(const struct cmd *cmd)
{
    if (cmd->conf->cluster_log[0] == '\0') {
        cmd_refuse("the configuration has no cluster: set cluster.log");
        return NULL;
    }
    struct cluster_log *l = cluster_log_new(cmd->conf->cluster_log, OPERATOR);
    if (l == NULL)
        cmd_refuse("out of memory");
    return l;
}

int cmd_log_problem(const struct cluster_log *l, enum cluster_log_status status)
{
    return status == CLUSTER_LOG_NONE
               ? cmd_refuse("the database has no log: run assay cluster init once")
               : cmd_refuse("the log: %s", l->engine->why(l));
}

int cmd_log_refuse(struct cluster_log *l, enum cluster_log_status status)
{
    int refused = cmd_log_problem(l, status);
    l->engine->free(l);
    return refused;
}

/* ---- a new log ---- */

/*
 * The chain before the first entry: zeros, so that empty stores can follow; otherwise a chain that
 * no store has.
 */
static bool choose_head(struct store *s, struct cluster_log_head *head)
{
    bool empty = store_is_empty(s);
    store_read_end(s);
    return getrandom(head->log, sizeof(head->log), 0) == sizeof(head->log) &&
           (empty || getrandom(head->chain, sizeof(head->chain), 0) == sizeof(head->chain));
}

static enum store_status set_position(struct store *s, const struct cluster_log_head *head)
{
    struct store_txn *t;
    struct store_position position = {0};
    memcpy(position.log, head->log, sizeof(position.log));
    memcpy(position.chain, head->chain, sizeof(position.chain));
    enum store_status status = store_begin(s, &t);
    if (status != STORE_OK)
        return status;
    store_position_set(t, &position);
    return store_commit(t);
}

/* Another node that may run. */
struct running {
    uint8_t self[STORE_ID_BYTES];
    struct cluster_log_node node;
    bool found;
};

static void find_running(void *arg, const struct cluster_log_node *n)
{
    struct running *r = arg;
    if (n->seen_ms >= CLUSTER_LOG_LEASE_MS || memcmp(n->id, r->self, sizeof(r->self)) == 0)
        return;
    r->node = *n;
    r->found = true;
}

/* What other nodes append to the log of before would be lost. */
static int refuse_while_others_run(struct cluster_log *l, struct store *s)
{
    struct running r = {.found = false};
    enum store_status known = store_id(s, r.self);
    store_read_end(s);
    if (known != STORE_OK)
        return cmd_refuse("the id of the store cannot be read: %s", store_why(s));
    enum cluster_log_status status = l->engine->nodes(l, find_running, &r);
    if (status != CLUSTER_LOG_OK && status != CLUSTER_LOG_NONE)
        return cmd_log_problem(l, status);
    if (!r.found)
        return CMD_DONE;
    return cmd_refuse("node %s was seen %lld s ago: stop the servers of all nodes, or try again "
                      "in %d s if they are stopped",
                      r.node.name, (long long)(r.node.seen_ms / 1000), CLUSTER_LOG_LEASE_MS / 1000);
}

static int make_log(const struct cmd *cmd, struct client *client, bool replace)
{
    struct store *s = client_store(client);
    struct cluster_log_head head = {0};
    struct cluster_log *l = cmd_log_open(cmd);
    if (l == NULL)
        return CMD_REFUSED;
    const int others = replace ? refuse_while_others_run(l, s) : CMD_DONE;
    if (others != CMD_DONE) {
        l->engine->free(l);
        return others;
    }
    if (!choose_head(s, &head)) {
        l->engine->free(l);
        return cmd_refuse("no random bytes: %s", strerror(errno));
    }
    enum cluster_log_status made = l->engine->make(l, &head, replace);
    if (made != CLUSTER_LOG_OK)
        return cmd_log_refuse(l, made);
    l->engine->free(l);
    enum store_status status = set_position(s, &head);
    if (status != STORE_OK)
        return cmd_store_refuse(client, status);
    cmd_say("The log begins with the store of this node. Start the servers of the cluster.");
    return CMD_DONE;
}

static int new_log(struct cmd *cmd, bool replace)
{
    struct client *client = cmd_store_open(cmd);
    if (client == NULL)
        return CMD_REFUSED;
    int status = client_is_live(client) ? cmd_refuse("the server of this node runs: stop it first")
                                        : make_log(cmd, client, replace);
    client_close(client);
    return status;
}

int cmd_cluster_init(struct cmd *cmd)
{
    return new_log(cmd, false);
}

int cmd_cluster_new_log(struct cmd *cmd)
{
    struct cluster_log_node self = {0};
    const char *from = cmd_value(cmd, "--from");
    if (from == NULL)
        return cmd_misuse(cmd, "name this node by --from");
    leading_describe(cmd->conf, &self);
    if (strcmp(from, self.name) != 0)
        return cmd_refuse("this node is %s, not %s: run the command there", self.name, from);
    return new_log(cmd, true);
}

/* ---- status ---- */

struct listing {
    struct records records;
    struct cluster_log_head head;
};

static const char *role_of(const struct listing *l, const struct cluster_log_node *n)
{
    if (n->differs_at != 0)
        return "differs";
    if (n->stopped[0] != '\0')
        return "stopped";
    if (l->head.lease_ms > 0 && memcmp(n->id, l->head.leader, NODE_BYTES) == 0)
        return "leads";
    return n->seen_ms > CLUSTER_LOG_LEASE_MS ? "away" : "follows";
}

static void put_space(struct records *r, uint64_t free_bytes)
{
    if (free_bytes == SPACE_UNKNOWN)
        records_text(r, "free_bytes", str_of(NULL));
    else
        records_number(r, "free_bytes", free_bytes);
}

static void put_node(void *arg, const struct cluster_log_node *n)
{
    struct listing *l = arg;
    struct records *r = &l->records;
    records_text(r, "node", str_of(n->name));
    records_text(r, "address", str_of(n->address[0] == '\0' ? NULL : n->address));
    records_text(r, "version", str_of(n->version));
    records_number(r, "format", n->format);
    records_text(r, "role", str_of(role_of(l, n)));
    records_number(r, "position", n->sequence);
    records_number(r, "behind",
                   n->sequence < l->head.sequence ? l->head.sequence - n->sequence : 0);
    records_number(r, "seen_ms_ago", n->seen_ms > 0 ? (uint64_t)n->seen_ms : 0);
    put_space(r, n->free_bytes);
    if (r->json)
        records_text(r, "stopped", str_of(n->stopped[0] == '\0' ? NULL : n->stopped));
    records_end_row(r);
}

static void say_stopped(void *arg, const struct cluster_log_node *n)
{
    (void)arg;
    if (n->stopped[0] != '\0')
        cmd_say("Node %s is stopped: %s.", n->name, n->stopped);
}

static void put_warning(void *arg, const char *sentence)
{
    (void)arg;
    cmd_say("warning: %s", sentence);
}

static void say_head(const struct cluster_log_head *h)
{
    if (h->lease_ms > 0)
        cmd_say("Node %s leads, epoch %" PRIu64 ". The log ends at entry %" PRIu64 ".",
                h->leader_name, h->epoch, h->sequence);
    else
        cmd_say("No node leads. The log ends at entry %" PRIu64 ".", h->sequence);
}

/* Within the time of a call. */
static void say_clock(const struct cluster_log_head *h)
{
    const long long offset_ms = clock_wall_ms() - h->clock_ms;
    if (llabs(offset_ms) > CLUSTER_CLOCK_MS)
        cmd_say(
            "warning: the clock of this host is %lld ms %s that of PostgreSQL: set both by NTP, "
            "for example with chrony",
            llabs(offset_ms), offset_ms > 0 ? "ahead of" : "behind");
}

int cmd_cluster_status(struct cmd *cmd)
{
    struct listing listing = {0};
    struct cluster_log *l = cmd_log_open(cmd);
    if (l == NULL)
        return CMD_REFUSED;
    enum cluster_log_status status = l->engine->position(l, NULL, &listing.head);
    if (status != CLUSTER_LOG_OK)
        return cmd_log_refuse(l, status);
    say_head(&listing.head);
    say_clock(&listing.head);
    records_start(&listing.records, cmd->json);
    status = l->engine->nodes(l, put_node, &listing);
    records_finish(&listing.records);
    if (status == CLUSTER_LOG_OK)
        status = l->engine->nodes(l, say_stopped, NULL);
    if (status == CLUSTER_LOG_OK)
        status = l->engine->warnings(l, put_warning, NULL);
    if (status != CLUSTER_LOG_OK)
        return cmd_log_refuse(l, status);
    l->engine->free(l);
    return CMD_DONE;
}

/* ---- remove ---- */

#define SAME_NAME_MAX 16 /* nodes; a node that joins again has another id */

struct named {
    const char *name;
    uint8_t ids[SAME_NAME_MAX][NODE_BYTES];
    size_t count;
    int64_t seen_ms; /* of the one that was seen last */
};

static void find_named(void *arg, const struct cluster_log_node *n)
{
    struct named *named = arg;
    if (strcmp(n->name, named->name) != 0 || named->count == SAME_NAME_MAX)
        return;
    memcpy(named->ids[named->count++], n->id, NODE_BYTES);
    if (n->seen_ms < named->seen_ms)
        named->seen_ms = n->seen_ms;
}

int cmd_cluster_remove(struct cmd *cmd)
{
    struct named named = {.name = cmd->words[0], .seen_ms = INT64_MAX};
    struct cluster_log *l = cmd_log_open(cmd);
    if (l == NULL)
        return CMD_REFUSED;
    enum cluster_log_status status = l->engine->nodes(l, find_named, &named);
    size_t removed = 0;
    for (; removed < named.count && status == CLUSTER_LOG_OK; removed += status == CLUSTER_LOG_OK)
        status = l->engine->remove(l, named.ids[removed], CLUSTER_LOG_LEASE_MS);
    if (status != CLUSTER_LOG_OK && status != CLUSTER_LOG_NONE)
        return cmd_log_refuse(l, status);
    l->engine->free(l);
    if (named.count == 0)
        return cmd_refuse("there is no node %s; assay cluster status lists all", named.name);
    if (removed < named.count)
        return cmd_refuse("node %s was seen %lld s ago: stop its server, or try again in %d s "
                          "if it is stopped",
                          named.name, (long long)(named.seen_ms / 1000),
                          CLUSTER_LOG_LEASE_MS / 1000);
    cmd_say("Node %s is deregistered. It registers itself when it follows the log again.",
            named.name);
    return CMD_DONE;
}
