#include "cmd/cmd_store.h"

#include "core/auth/jwt.h"
#include "core/shm/scoreboard.h"
#include "core/auth/signing_keys.h"
#include "core/web/report_cookie.h"

int cmd_secret_rotate(struct cmd *cmd)
{
    char path[SECRETS_PATH], why[SECRETS_PATH + 256];
    int64_t token_ms = (int64_t)cmd->conf->jwt_ttl_ms + JWT_LEEWAY_S * 1000,
            life_ms = token_ms > REPORT_COOKIE_LIFE_MS ? token_ms : REPORT_COOKIE_LIFE_MS,
            keep_ms = life_ms + SECRETS_SETTLE_MS;
    /* opening the store creates data_dir and switches root to its owner, who must own the file */
    struct client *client = cmd_store_open(cmd);
    if (client == NULL)
        return CMD_REFUSED;
    signing_keys_path(cmd->conf, path);
    int status = signing_keys_rotate(path, clock_wall_ms(), keep_ms, why, sizeof(why)) == 0
                     ? CMD_DONE
                     : cmd_refuse("%s", why);
    if (status == CMD_DONE)
        cmd_say(
            "Visitors' tokens and cookies of reports are signed with a new secret. Existing ones "
            "stay valid until they expire.");
    client_close(client);
    return status;
}
