/* assay cluster join: copies the store of another node; the server then follows the log. */
#include "cmd/cmd_cluster.h"
#include "cmd/cmd_store.h"
#include "cmd/guard.h"

#include "core/auth/secret_file.h"
#include "core/cluster/store_copy.h"
#include "core/writer/leading.h"
#include "store/backup.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

const struct cmd_option cmd_cluster_join_options[] = {
    {"--replace", NULL,
     "replace the store of this node; data.mdb is kept as data.mdb.before-restore"},
    {.name = NULL},
};

struct join {
    const struct conf *conf;
    const char *from;
    struct cluster_log *log;
    struct cluster_log_head head;
    struct cluster_log_node source; /* name "": not found */
    struct cluster_log_node self;   /* while it joins: with an id for that */
    int64_t seen_ms;                /* since a node with the name of this one was seen */
};

static bool is_live(const struct cluster_log_node *n)
{
    return n->seen_ms < CLUSTER_LOG_LEASE_MS;
}

/* ---- the store of this node ---- */

static struct store *open_store(const char *dir, char *why, size_t why_size)
{
    struct store *s;
    const struct store_options options = {
        .dir = dir, .max_readers = CONF_STORE_READERS, .mode = STORE_READ};
    return store_open(&options, &s, why, why_size) == STORE_OK ? s : NULL;
}

/* A server that could not follow has made one. */
static bool has_records(const char *dir)
{
    char path[4096 + 16], why[512];
    snprintf(path, sizeof(path), "%.4000s/data.mdb", dir);
    if (access(path, F_OK) != 0 && errno == ENOENT)
        return false;
    struct store *s = open_store(dir, why, sizeof(why));
    bool empty = s != NULL && store_is_empty(s);
    if (s != NULL)
        store_read_end(s);
    store_close(s);
    return !empty;
}

/* The position of a store, and its id. Without a position: zeros. */
static int read_place(const char *dir, uint8_t id[STORE_ID_BYTES], struct store_position *out)
{
    char why[512];
    struct store *s = open_store(dir, why, sizeof(why));
    if (s == NULL)
        return cmd_refuse("%s", why);
    *out = (struct store_position){0};
    enum store_status status = store_id(s, id);
    if (status == STORE_OK)
        status = store_position_get(s, out);
    if (status != STORE_OK && status != STORE_NOT_FOUND)
        cmd_refuse("%s", store_why(s));
    store_read_end(s);
    store_close(s);
    return status == STORE_OK || status == STORE_NOT_FOUND ? CMD_DONE : CMD_REFUSED;
}

/* ---- registering ---- */

static void find_nodes(void *arg, const struct cluster_log_node *n)
{
    struct join *j = arg;
    bool named = strcmp(n->name, j->from) == 0 || strcmp(n->address, j->from) == 0;
    if (named && (j->source.name[0] == '\0' || n->seen_ms < j->source.seen_ms))
        j->source = *n;
    if (strcmp(n->name, j->self.name) == 0 && n->seen_ms < j->seen_ms)
        j->seen_ms = n->seen_ms;
}

static int check_nodes(const struct join *j)
{
    if (j->source.name[0] == '\0')
        return cmd_refuse("there is no node %s; assay cluster status lists all", j->from);
    if (strcmp(j->source.name, j->self.name) == 0)
        return cmd_refuse("this is node %s itself: name another one", j->from);
    if (j->source.differs_at != 0)
        return cmd_refuse("node %s was stopped by a verification: name another node", j->from);
    if (!is_live(&j->source))
        return cmd_refuse("node %s is away: start its server, or name another node", j->from);
    if (j->seen_ms < CLUSTER_LOG_LEASE_MS)
        return cmd_refuse("a node with the name %s was seen %lld s ago: stop its server, try "
                          "again in %d s if it is stopped, or choose another cluster.name",
                          j->self.name, (long long)(j->seen_ms / 1000),
                          CLUSTER_LOG_LEASE_MS / 1000);
    return CMD_DONE;
}

/*
 * Before the copy begins, so that the log keeps what follows it: from an entry on that the source
 * has certainly applied.
 */
static int register_self(struct join *j)
{
    const struct cluster_log_engine *engine = j->log->engine;
    enum cluster_log_status status = engine->nodes(j->log, find_nodes, j);
    if (status == CLUSTER_LOG_OK) {
        int refused = check_nodes(j);
        if (refused != CMD_DONE)
            return refused;
        j->self.sequence = j->source.sequence;
        j->self.free_bytes = SPACE_UNKNOWN;
        if (getrandom(j->self.id, sizeof(j->self.id), 0) != sizeof(j->self.id))
            return cmd_refuse("no random bytes: %s", strerror(errno));
        status = engine->position(j->log, &j->self, &j->head);
    }
    return status == CLUSTER_LOG_OK ? CMD_DONE : cmd_log_problem(j->log, status);
}

static int begin(struct join *j)
{
    char why[POSITION_WHY];
    leading_describe(j->conf, &j->self);
    enum cluster_log_status status = j->log->engine->position(j->log, NULL, &j->head);
    if (status != CLUSTER_LOG_OK)
        return cmd_log_problem(j->log, status);
    return position_reads(&j->head, why) ? register_self(j) : cmd_refuse("%s", why);
}

static void remove_replaced(void *arg, const struct cluster_log_node *n)
{
    const struct join *j = arg;
    if (strcmp(n->name, j->self.name) == 0 && !is_live(n))
        j->log->engine->remove(j->log, n->id, CLUSTER_LOG_LEASE_MS);
}

/* Under the id of the new store; that for joining and those of replaced stores go. */
static int register_store(struct join *j)
{
    struct store_position position = {0};
    struct cluster_log_node joining = j->self;
    const struct cluster_log_engine *engine = j->log->engine;
    int status = read_place(j->conf->data_dir, j->self.id, &position);
    if (status != CMD_DONE)
        return status;
    j->self.sequence = position.sequence;
    enum cluster_log_status done = engine->position(j->log, &j->self, &j->head);
    if (done == CLUSTER_LOG_OK)
        done = engine->remove(j->log, joining.id, 0);
    if (done == CLUSTER_LOG_OK)
        done = engine->nodes(j->log, remove_replaced, j);
    return done == CLUSTER_LOG_OK ? CMD_DONE : cmd_log_problem(j->log, done);
}

/* ---- the copy ---- */

static bool show_copy(void *arg, uint64_t done, uint64_t total)
{
    (void)arg;
    cmd_progress("Copying", done, total);
    return !cmd_interrupted();
}

static bool show_check(void *arg, uint64_t done, uint64_t total)
{
    (void)arg;
    cmd_progress("Checking and restoring", done, total);
    return !cmd_interrupted();
}

static struct channel_tls_context *make_context(const struct conf *conf, char *why, size_t size)
{
    struct channel_tls_key key;
    if (!secret_file_key(conf->cluster_key_file, key.bytes, why, size))
        return NULL;
    struct channel_tls_context *tls = channel_tls_context_new(&key, CHANNEL_VERSION);
    explicit_bzero(&key, sizeof(key));
    if (tls == NULL)
        snprintf(why, size, "out of memory");
    return tls;
}

static bool receive(const struct join *j, int fd, char why[STORE_COPY_WHY])
{
    struct channel channel;
    struct channel_tls_context *tls = make_context(j->conf, why, STORE_COPY_WHY);
    if (tls == NULL)
        return false;
    bool good = channel_tls_connect(tls, &channel, j->source.address, why, STORE_COPY_WHY) &&
                store_copy_receive(&channel, fd, show_copy, NULL, why);
    channel_close(&channel);
    channel_tls_context_free(tls);
    cmd_progress_end();
    return good;
}

static int fetch(const struct join *j, char path[STORE_PATH_BYTES])
{
    char why[STORE_COPY_WHY];
    if (store_receive(j->conf->data_dir, path, why, sizeof(why)) != STORE_OK)
        return cmd_refuse("%s", why);
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0)
        return cmd_refuse("%s: %s", path, strerror(errno));
    bool good = receive(j, fd, why);
    close(fd);
    if (good)
        return CMD_DONE;
    if (why[0] == '\0')
        return cmd_refuse("interrupted; %s is unchanged", j->conf->data_dir);
    return cmd_refuse("cannot copy the store of node %s: %s; %s is unchanged", j->source.name, why,
                      j->conf->data_dir);
}

/* The copy in restore.part. */
static int check_log(const struct join *j, char path[STORE_PATH_BYTES])
{
    uint8_t id[STORE_ID_BYTES];
    struct store_position position;
    *strrchr(path, '/') = '\0';
    int status = read_place(path, id, &position);
    if (status != CMD_DONE || memcmp(position.log, j->head.log, sizeof(position.log)) == 0)
        return status;
    return cmd_refuse(
        "the store of node %s does not follow this log: name another node; %s is unchanged",
        j->source.name, j->conf->data_dir);
}

static int install(const struct join *j)
{
    char name[NODE_TEXT + 16], why[512] = "";
    snprintf(name, sizeof(name), "of node %s", j->source.name);
    guard_at(NULL, "the check of the copy");
    enum store_status stored =
        store_received(name, j->conf->data_dir, show_check, NULL, why, sizeof(why));
    cmd_progress_end();
    if (stored == STORE_OK)
        return CMD_DONE;
    if (cmd_interrupted())
        return cmd_refuse("interrupted; %s is unchanged", j->conf->data_dir);
    return cmd_refuse("%s is unchanged: %s", j->conf->data_dir,
                      why[0] == '\0' ? store_status_text(stored) : why);
}

static int copy(const struct join *j)
{
    char path[STORE_PATH_BYTES];
    int status = fetch(j, path);
    if (status == CMD_DONE)
        status = check_log(j, path);
    if (status == CMD_DONE)
        return install(j);
    store_restore_clear(j->conf->data_dir);
    return status;
}

/* ---- the command ---- */

static int join_log(struct join *j)
{
    int status = begin(j);
    if (status != CMD_DONE)
        return status;
    status = copy(j);
    if (status != CMD_DONE) {
        j->log->engine->remove(j->log, j->self.id, 0);
        return status;
    }
    status = register_store(j);
    if (status == CMD_DONE)
        cmd_say("%s has the store of node %s. Start the server of this node: it follows the log.",
                j->conf->data_dir, j->source.name);
    return status;
}

static int join_locked(struct cmd *cmd)
{
    struct join j = {.conf = cmd->conf, .from = cmd->words[0], .seen_ms = INT64_MAX};
    if (!cmd_has(cmd, "--replace") && has_records(cmd->conf->data_dir))
        return cmd_refuse("data_dir %s has a store; give --replace to replace it",
                          cmd->conf->data_dir);
    j.log = cmd_log_open(cmd);
    if (j.log == NULL)
        return CMD_REFUSED;
    int status = join_log(&j);
    j.log->engine->free(j.log);
    return status;
}

static int join(struct cmd *cmd)
{
    char why[512];
    int lock;
    cmd_catch_interrupts();
    if (client_become_owner(cmd->conf, why, sizeof(why)) != 0)
        return cmd_refuse("%s", why);
    int status = cmd_data_lock(cmd->conf->data_dir, &lock);
    if (status != CMD_DONE)
        return status;
    status = join_locked(cmd);
    close(lock);
    return status;
}

static void clear(struct cmd *cmd)
{
    store_restore_clear(cmd->conf->data_dir);
}

int cmd_cluster_join(struct cmd *cmd)
{
    const struct guard guard = {"this node has not joined", cmd->conf->data_dir,
                                "Name another node; data_dir is unchanged", clear};
    return guard_run(cmd, &guard, join);
}
