#include "cmd/cmd_cluster.h"
#include "cmd/cmd_store.h"

#include "core/auth/jwt.h"
#include "core/auth/secret_file.h"
#include "core/auth/signing_keys.h"
#include "core/cluster/sealed.h"
#include "core/shm/scoreboard.h"
#include "core/web/report_cookie.h"

#include <poll.h>

static int64_t keep_ms(const struct conf *conf)
{
    int64_t token_ms = (int64_t)conf->jwt_ttl_ms + JWT_LEEWAY_S * 1000,
            life_ms = token_ms > REPORT_COOKIE_LIFE_MS ? token_ms : REPORT_COOKIE_LIFE_MS;
    return life_ms + SECRETS_SETTLE_MS;
}

static int rotate_here(const struct cmd *cmd, const char *path)
{
    char why[SECRETS_PATH + 256];
    return signing_keys_rotate(path, clock_wall_ms(), keep_ms(cmd->conf), why, sizeof(why)) == 0
               ? CMD_DONE
               : cmd_refuse("%s", why);
}

/* ---- in a cluster ---- */

/* A node that is late learns of another rotation. */
#define TRIES 20
#define RETRY_MS 250

struct rotation {
    const struct cmd *cmd;
    struct client *client;
    const char *path;
    struct channel_tls_key key;
    struct buf before; /* the sealed keys of the store; empty: none */
    struct buf sealed; /* the next ones */
    char why[SECRETS_PATH + 256];
};

static void wipe(struct buf *b)
{
    if (b->p != NULL)
        explicit_bzero(b->p, b->n);
    buf_free(b);
}

/* All nodes have the clock of the log. */
static int read_clock(const struct cmd *cmd, int64_t *now_ms)
{
    struct cluster_log_head head;
    struct cluster_log *l = cmd_log_open(cmd);
    if (l == NULL)
        return CMD_REFUSED;
    enum cluster_log_status status = l->engine->position(l, NULL, &head);
    if (status != CLUSTER_LOG_OK)
        return cmd_log_refuse(l, status);
    l->engine->free(l);
    *now_ms = head.clock_ms;
    return CMD_DONE;
}

static enum store_status read_before(struct rotation *r)
{
    struct str sealed;
    struct store *store = client_store(r->client);
    enum store_status status = store_signing_keys(store, &sealed);
    buf_reset(&r->before);
    if (status == STORE_OK)
        buf_str(&r->before, sealed);
    store_read_end(store);
    return status == STORE_NOT_FOUND ? STORE_OK : status;
}

/* Those of the store; of the file if they are sealed with an earlier cluster.key_file. */
static bool read_text(struct rotation *r, struct buf *out)
{
    return (r->before.n > 0 && unseal(&r->key, buf_view(&r->before), out)) ||
           signing_keys_read(r->path, out, r->why, sizeof(r->why)) == 0;
}

static bool seal_next(struct rotation *r, struct str text)
{
    buf_reset(&r->sealed);
    if (seal(&r->key, text, &r->sealed))
        return true;
    snprintf(r->why, sizeof(r->why), "out of memory");
    return false;
}

/*
 * A key signs when every node that answers has it. The nodes look at their own clocks: one that is
 * ahead by more than the leeway makes tokens that the others refuse in any case.
 */
static bool make_next(struct rotation *r, int64_t now_ms)
{
    const struct conf *conf = r->cmd->conf;
    const int64_t settle_ms = (int64_t)conf->cluster_max_lag_ms + JWT_LEEWAY_S * 1000;
    struct buf text = {0}, next = {0};
    bool good = read_text(r, &text) &&
                signing_keys_next(r->path, buf_view(&text), now_ms + settle_ms,
                                  keep_ms(conf) + settle_ms, &next, r->why, sizeof(r->why)) == 0 &&
                seal_next(r, buf_view(&next));
    wipe(&text);
    wipe(&next);
    return good;
}

static int try_rotation(struct rotation *r, struct store_answer *answer)
{
    int64_t now_ms = 0;
    if (read_clock(r->cmd, &now_ms) != CMD_DONE)
        return CMD_REFUSED;
    enum store_status status = read_before(r);
    if (status != STORE_OK)
        return cmd_store_refuse(r->client, status);
    if (!make_next(r, now_ms))
        return cmd_refuse("%s", r->why);
    const struct store_change change = {
        .kind = CHANGE_SIGNING_KEYS, .data = buf_view(&r->sealed), .text = buf_view(&r->before)};
    return cmd_store_change(r->client, &change, answer);
}

static int rotate(struct rotation *r)
{
    struct store_answer answer;
    int status = try_rotation(r, &answer);
    for (unsigned i = 0; status == CMD_DONE && answer.status == STORE_STALE && i < TRIES; i++) {
        poll(NULL, 0, RETRY_MS);
        status = try_rotation(r, &answer);
    }
    if (status != CMD_DONE || answer.status == STORE_OK)
        return status;
    return answer.status == STORE_STALE
               ? cmd_refuse("the secrets were rotated on another node, and this node has not "
                            "applied that: wait until assay cluster status shows it at the end of "
                            "the log, then try again")
               : cmd_store_refuse(r->client, answer.status);
}

static int rotate_everywhere(const struct cmd *cmd, struct client *client, const char *path)
{
    struct rotation r = {.cmd = cmd, .client = client, .path = path};
    int status = secret_file_key(cmd->conf->cluster_key_file, r.key.bytes, r.why, sizeof(r.why))
                     ? rotate(&r)
                     : cmd_refuse("%s", r.why);
    explicit_bzero(&r.key, sizeof(r.key));
    buf_free(&r.before);
    buf_free(&r.sealed);
    return status;
}

int cmd_secret_rotate(struct cmd *cmd)
{
    char path[SECRETS_PATH];
    bool cluster = cmd->conf->cluster_log[0] != '\0';
    /* opening the store creates data_dir and switches root to its owner, who must own the file */
    struct client *client = cmd_store_open(cmd);
    if (client == NULL)
        return CMD_REFUSED;
    signing_keys_path(cmd->conf, path);
    int status = cluster ? rotate_everywhere(cmd, client, path) : rotate_here(cmd, path);
    if (status == CMD_DONE)
        cmd_say("Visitors' tokens and cookies of reports are signed with a new secret%s. Existing "
                "ones stay valid until they expire.",
                cluster ? ", half a minute after cluster.max_lag" : "");
    client_close(client);
    return status;
}
