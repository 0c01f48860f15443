#include "cmd/cmd.h"

int cmd_config_dump(struct cmd *cmd)
{
    conf_dump(cmd->conf, stdout);
    return CMD_DONE;
}

int cmd_config_sample(struct cmd *cmd)
{
    (void)cmd;
    conf_sample(stdout);
    return CMD_DONE;
}
