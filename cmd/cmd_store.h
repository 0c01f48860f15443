/* What commands on the store share: reaching it, changing it, finding a workspace. */
#ifndef ASSAY_CMD_STORE_H
#define ASSAY_CMD_STORE_H

#include "client.h"
#include "cmd.h"

/* cmd_store_there(cmd): is there a store in data_dir? False: told. */
bool cmd_store_there(struct cmd *cmd);

/* cmd_store_open(cmd): the store of the configuration; NULL when it has been told why not. To be closed with client_close. */
struct client *cmd_store_open(struct cmd *cmd);

/*
 * cmd_store_change(client, change, answer): carry out a change. CMD_DONE once it was answered, whatever the answer; CMD_REFUSED, told, when
 * nobody could be reached.
 */
int cmd_store_change(struct client *client, const struct store_change *change,
                     struct store_answer *answer);

/* cmd_store_refuse(client, status): the sentence about an answer other than STORE_OK that has no better one. */
int cmd_store_refuse(struct client *client, unsigned status);

/* cmd_workspace_find(client, text, id): the workspace of that name or, else, id. CMD_DONE or CMD_REFUSED, told. */
int cmd_workspace_find(struct client *client, const char *text, uint64_t *id);

/* cmd_id_parse(text, id): a positive number; CMD_DONE or CMD_REFUSED, told. */
int cmd_id_parse(const char *text, uint64_t *id);

/* cmd_store_purge(client): where no server runs, take away what was deleted as a whole. CMD_DONE or CMD_REFUSED, told. */
int cmd_store_purge(struct client *client);

#endif
