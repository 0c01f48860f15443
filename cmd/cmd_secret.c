#include "cmd/cmd_store.h"

#include "core/auth/jwt.h"
#include "core/auth/secret_file.h"
#include "core/auth/signing_keys.h"
#include "core/cluster/sealed.h"
#include "core/shm/scoreboard.h"
#include "core/web/report_cookie.h"

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

static int send_sealed(struct client *client, struct str sealed)
{
    struct store_answer answer;
    const struct store_change change = {.kind = CHANGE_SIGNING_KEYS, .data = sealed};
    return cmd_store_apply(client, &change, &answer);
}

static int rotate_everywhere(const struct cmd *cmd, struct client *client, const char *path)
{
    char why[SECRETS_PATH + 256];
    struct channel_tls_key key;
    struct buf text = {0}, sealed = {0};
    /* a key signs when every node that answers has it */
    const int64_t settle_ms = cmd->conf->cluster_max_lag_ms, from_ms = clock_wall_ms() + settle_ms;
    int status = CMD_DONE;
    if (!secret_file_key(cmd->conf->cluster_key_file, key.bytes, why, sizeof(why)) ||
        signing_keys_next(path, from_ms, keep_ms(cmd->conf) + settle_ms, &text, why, sizeof(why)) !=
            0)
        status = cmd_refuse("%s", why);
    else if (!seal(&key, buf_view(&text), &sealed))
        status = cmd_refuse("out of memory");
    else
        status = send_sealed(client, buf_view(&sealed));
    explicit_bzero(&key, sizeof(key));
    if (text.p != NULL)
        explicit_bzero(text.p, text.n);
    buf_free(&text);
    buf_free(&sealed);
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
                cluster ? " after cluster.max_lag" : "");
    client_close(client);
    return status;
}
