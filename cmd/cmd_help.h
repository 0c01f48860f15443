/* Help, and messages about wrong commands and options, with the nearest existing name. */
#ifndef ASSAY_CMD_HELP_H
#define ASSAY_CMD_HELP_H

#include "cmd/cmd.h"

extern const struct cmd_option cmd_global_options[]; /* ends with a NULL name */

/*
 * cmd_help_words(cmd, words, count): print help about a command ("key create"), a group of commands
 * ("key") or everything ("all"); without words, the screen. Returns CMD_DONE or CMD_USAGE.
 */
int cmd_help_words(struct cmd *cmd, const char *const *words, size_t count);

/* Report wrong usage. Each returns CMD_USAGE. */
int cmd_help_no_command(struct cmd *cmd);                   /* there is no such command */
int cmd_help_no_option(struct cmd *cmd, const char *text);  /* no command has this option */
int cmd_help_takes_no(struct cmd *cmd, const char *option); /* this command does not have it */

#endif
