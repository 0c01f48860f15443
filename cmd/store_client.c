#include "cmd/store_client.h"

#include "core/ipc/channel.h"
#include "core/base/data_lock.h"
#include "core/process/process.h"
#include "core/shm/scoreboard.h"
#include "store/rows.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#define GIVE_UP_MS 30000
#define LOCK_WAIT_MS 5000

struct client {
    const struct conf *conf;
    struct store *store;
    char path[108];
    bool live;
    struct channel channel;
    uint64_t id, sequence;
    int lock;
};

static int refuse(char *why, size_t size, const char *format, const char *a, const char *b)
{
    snprintf(why, size, format, a, b);
    return -1;
}

static void refuse_held(const struct conf *conf, char *why, size_t size)
{
    char who[HOLDER_TEXT];
    data_holder(conf->data_dir, who);
    snprintf(why, size,
             "data_dir %s is in use by %s, but not with run_dir %s; name its configuration with "
             "-c, or wait until it ends",
             conf->data_dir, who, conf->run_dir);
}

/* Files in data_dir get its owner. A new data_dir gets the user of the server. */
int client_become_owner(const struct conf *conf, char *why, size_t why_size)
{
    struct stat st;
    uid_t uid;
    gid_t gid;
    const char *dir = conf->data_dir;
    if (mkdir(dir, 0700) == 0) {
        if (process_user(conf, &uid, &gid) && chown(dir, uid, gid) != 0)
            return refuse(why, why_size, "data_dir %s: %s", dir, strerror(errno));
    } else if (errno != EEXIST)
        return refuse(why, why_size, "data_dir %s: %s", dir, strerror(errno));
    if (stat(dir, &st) != 0)
        return refuse(why, why_size, "data_dir %s: %s", dir, strerror(errno));
    if (geteuid() == 0 && st.st_uid != 0 && (setegid(st.st_gid) != 0 || seteuid(st.st_uid) != 0))
        return refuse(why, why_size, "cannot switch to the owner of data_dir %s: %s", dir,
                      strerror(errno));
    return 0;
}

static bool say_hello(struct client *c)
{
    int fd = channel_connect(c->path);
    if (fd < 0)
        return false;
    channel_init(&c->channel, fd);
    channel_put(&c->channel, FRAME_HELLO, c->id, 0, (struct str){0});
    return true;
}

/* Connect to the writer, or lock the store; wait if another command has locked it. */
static bool connect_or_lock(struct client *c)
{
    uint64_t deadline_ms = clock_mono_ms() + LOCK_WAIT_MS;
    for (;;) {
        if ((c->live = say_hello(c)) || (c->lock = data_lock(c->conf->data_dir)) >= 0)
            return true;
        if (errno != EWOULDBLOCK || clock_mono_ms() >= deadline_ms)
            return false;
        poll(NULL, 0, 20);
    }
}

int client_open(const struct conf *conf, struct client **out, char *why, size_t why_size)
{
    char reason[512];
    struct client *c = calloc(1, sizeof(*c));
    if (c == NULL)
        return refuse(why, why_size, "%s%s", "out of memory", "");
    c->conf = conf;
    c->lock = -1;
    c->channel.fd = -1;
    snprintf(c->path, sizeof(c->path), "%s/writer.sock", conf->run_dir);
    if (getrandom(&c->id, sizeof(c->id), 0) != sizeof(c->id) ||
        client_become_owner(conf, why, why_size) != 0)
        goto fail;
    if (!connect_or_lock(c)) {
        if (errno == EWOULDBLOCK)
            refuse_held(conf, why, why_size);
        else
            refuse(why, why_size, "cannot lock data_dir %s: %s", conf->data_dir, strerror(errno));
        goto fail;
    }
    struct store_options options = {.dir = conf->data_dir,
                                    .map_size = conf->store_map_size,
                                    .mapped_bytes = conf->store_index_map_size,
                                    .max_readers = CONF_STORE_READERS,
                                    .mode = c->live ? STORE_READ : STORE_WRITE};
    if (store_open(&options, &c->store, reason, sizeof(reason)) != STORE_OK) {
        refuse(why, why_size, "%s%s", reason, "");
        goto fail;
    }
    *out = c;
    return 0;
fail:
    client_close(c);
    return -1;
}

static enum store_status change_locally(struct client *c, const struct store_change *change,
                                        struct store_answer *answer)
{
    struct store_txn *t;
    if (c->conf->cluster_log[0] != '\0')
        return STORE_AWAY;
    enum store_status status = store_begin(c->store, &t);
    if (status != STORE_OK)
        return status;
    store_position_forget(t); /* what changes without its log leaves it */
    store_apply(t, change, clock_wall_ms(), answer);
    status = store_txn_error(t);
    if (status != STORE_OK || answer->status != STORE_OK) {
        store_abort(t);
        return status;
    }
    return store_commit(t);
}

/* Wait for the answer to c->sequence. False: the writer has ended. */
static bool await_answer(struct client *c, struct store_answer *answer, uint64_t deadline_ms)
{
    struct frame f;
    for (;;) {
        int left = channel_flush(&c->channel);
        if (left < 0 || clock_mono_ms() >= deadline_ms)
            return false;
        struct pollfd fd = {c->channel.fd, (short)(POLLIN | (left == 1 ? POLLOUT : 0)), 0};
        if (poll(&fd, 1, 1000) < 0 && errno != EINTR)
            return false;
        int got = channel_read(&c->channel);
        while (channel_next(&c->channel, &f) == 1)
            if (f.head.type == FRAME_ANSWER && f.head.a == c->sequence &&
                f.payload.n == sizeof(*answer)) {
                memcpy(answer, f.payload.p, sizeof(*answer));
                return true;
            }
        if (got < 0)
            return false;
    }
}

/* As a worker would refuse it. */
static bool log_is_away(const struct client *c)
{
    char path[4096];
    snprintf(path, sizeof(path), "%s/scoreboard", c->conf->run_dir);
    const struct scoreboard *s = c->conf->cluster_log[0] == '\0' ? NULL : scoreboard_open(path);
    bool away = s != NULL && cluster_log_is_away(&s->cluster, clock_mono_us());
    scoreboard_close(s);
    return away;
}

static int change_by_writer(struct client *c, const struct store_change *change,
                            struct store_answer *answer)
{
    struct buf wire = {0};
    uint64_t deadline_ms = clock_mono_ms() + GIVE_UP_MS;
    unsigned sent = 0;
    int status = -1;
    if (log_is_away(c)) {
        *answer = (struct store_answer){.status = STORE_AWAY};
        return 0;
    }
    change_encode(change, &wire);
    c->sequence++;
    while (status != 0 && clock_mono_ms() < deadline_ms) {
        if (c->channel.fd < 0 && !say_hello(c)) {
            poll(NULL, 0, 50); /* until a new writer has started */
            continue;
        }
        channel_put(&c->channel, FRAME_CHANGE, c->sequence, c->sequence - 1, buf_view(&wire));
        sent++;
        if (await_answer(c, answer, deadline_ms))
            status = 0;
        else
            channel_close(&c->channel);
    }
    buf_free(&wire);
    /* the leader of before may have executed what was sent to it */
    return status == 0 && answer->status == STORE_AWAY && sent > 1 ? -1 : status;
}

int client_change(struct client *c, const struct store_change *change, struct store_answer *answer)
{
    sigset_t stop, before;
    sigemptyset(&stop);
    sigaddset(&stop, SIGINT);
    sigaddset(&stop, SIGTERM);
    sigaddset(&stop, SIGHUP);
    sigprocmask(SIG_BLOCK, &stop, &before);
    int result = 0;
    *answer = (struct store_answer){0};
    if (c->live)
        result = change_by_writer(c, change, answer);
    else {
        enum store_status status = change_locally(c, change, answer);
        if (status != STORE_OK)
            answer->status = status;
    }
    sigprocmask(SIG_SETMASK, &before, NULL);
    return result;
}

static bool send_out(struct client *c)
{
    int left = channel_flush(&c->channel);
    for (uint64_t end_ms = clock_mono_ms() + GIVE_UP_MS; left == 1 && clock_mono_ms() < end_ms;) {
        struct pollfd fd = {c->channel.fd, POLLOUT, 0};
        poll(&fd, 1, 1000);
        left = channel_flush(&c->channel);
    }
    return left == 0;
}

bool client_send_local(struct client *c, const struct store_change *change)
{
    struct buf wire = {0};
    bool sent = false;
    change_encode(change, &wire);
    for (int tries = 0; tries < 2 && !sent && c->live; tries++) {
        if (c->channel.fd < 0 && !say_hello(c))
            break;
        channel_put(&c->channel, FRAME_LOCAL, 0, 0, buf_view(&wire));
        sent = send_out(c);
        if (!sent)
            channel_close(&c->channel); /* of a writer that ended */
    }
    buf_free(&wire);
    return sent;
}

struct store *client_store(struct client *c)
{
    return c->store;
}

bool client_is_live(const struct client *c)
{
    return c->live;
}

void client_close(struct client *c)
{
    if (c == NULL)
        return;
    channel_close(&c->channel);
    store_close(c->store);
    if (c->lock >= 0)
        close(c->lock);
    free(c);
}
