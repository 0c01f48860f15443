#include "cmd/cmd_key.h"

const struct cmd_option cmd_token_create_options[] = {
    {"--workspace", "NAME", "workspace to sync, by name or id"},
    {"--name", "TEXT", "description of the token"},
    {"--require-signature", NULL, "refuse requests that are not signed with the token"},
    {"--expires", "DURATION", "lifetime, such as 90d; default: does not expire"},
    {.name = NULL},
};

int cmd_token_create(struct cmd *cmd)
{
    return cmd_credential_create(cmd, CREDENTIAL_TOKEN,
                                 SCOPE_WP_SYNC |
                                     (cmd_has(cmd, "--require-signature") ? SCOPE_SIGNED : 0u));
}

int cmd_token_list(struct cmd *cmd)
{
    return cmd_credential_list(cmd, CREDENTIAL_TOKEN);
}

int cmd_token_revoke(struct cmd *cmd)
{
    return cmd_credential_revoke(cmd, CREDENTIAL_TOKEN);
}

int cmd_token_rotate(struct cmd *cmd)
{
    return cmd_credential_rotate(cmd, CREDENTIAL_TOKEN);
}
