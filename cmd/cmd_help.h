/* What assay prints about itself: help, and the nearest name for one that does not exist. */
#ifndef ASSAY_CMD_HELP_H
#define ASSAY_CMD_HELP_H

#include "cmd.h"

extern const struct cmd_option cmd_global_options[]; /* ends with a NULL name */

/* cmd_help_screen(out): every subject and option of every command, on one screen of 80 columns. */
void cmd_help_screen(FILE *out);

/*
 * cmd_help_words(cmd, words, count): help on standard output about a command ("key create"), about
 * a subject ("key"), about everything ("all"), or the screen without words. CMD_DONE or CMD_USAGE.
 */
int cmd_help_words(struct cmd *cmd, const char *const *words, size_t count);

/* Sentences about a wrong call; each returns CMD_USAGE. */
int cmd_help_no_command(struct cmd *cmd);                   /* no row has these words */
int cmd_help_no_option(struct cmd *cmd, const char *text);  /* no row has this option */
int cmd_help_takes_no(struct cmd *cmd, const char *option); /* this row does not have it */

#endif
