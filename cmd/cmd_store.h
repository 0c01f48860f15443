/* Helpers of the commands that use the store. They report errors before they return CMD_REFUSED. */
#ifndef ASSAY_CMD_STORE_H
#define ASSAY_CMD_STORE_H

#include "cmd/store_client.h"
#include "cmd/cmd.h"

/* cmd_store_there(cmd): whether data_dir contains a store. If not, an error is reported. */
bool cmd_store_there(struct cmd *cmd);

/*
 * cmd_data_lock(dir, lock): make data_dir if it is missing, and lock it, so that no server starts.
 * CMD_DONE: the caller closes ${lock}.
 */
int cmd_data_lock(const char *dir, int *lock);

/* cmd_store_open(cmd): open the store; NULL after an error. Close it with client_close. */
struct client *cmd_store_open(struct cmd *cmd);

/* cmd_store_change(client, change, answer): send a change. CMD_DONE: answered, with any status. */
int cmd_store_change(struct client *client, const struct store_change *change,
                     struct store_answer *answer);

/* cmd_store_apply(client, change, answer): the same; CMD_DONE only if the status is STORE_OK. */
int cmd_store_apply(struct client *client, const struct store_change *change,
                    struct store_answer *answer);

/* cmd_store_refuse(client, status): report a status of the store. Returns CMD_REFUSED. */
int cmd_store_refuse(struct client *client, unsigned status);

/*
 * cmd_store_list_end(client, records, status, none): print and free the records of a list that
 * ended with ${status}; ${none} is the message for an empty list.
 */
int cmd_store_list_end(struct client *client, struct records *records, enum store_status status,
                       const char *none);

/* cmd_workspace_find(client, text, id): the workspace with this name or, else, this id. */
int cmd_workspace_find(struct client *client, const char *text, uint64_t *id);

/* cmd_workspace_given(cmd, client, id): the workspace of --workspace; 0 without that option. */
int cmd_workspace_given(const struct cmd *cmd, struct client *client, uint64_t *id);

/* cmd_agent_missing(id): report that there is no such agent. Returns CMD_REFUSED. */
int cmd_agent_missing(const char *id);

/* cmd_id_parse(text, id): parse a positive number. */
int cmd_id_parse(const char *text, uint64_t *id);

/* cmd_store_purge(client): if no server runs, remove the records of deleted owners. */
int cmd_store_purge(struct client *client);

#endif
