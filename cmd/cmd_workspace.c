#include "cmd/cmd_store.h"
#include "core/conf/values.h"

#include <inttypes.h>

static int create(struct cmd *cmd, struct client *client)
{
    const char *name = cmd->words[0];
    struct store_change change = {.kind = CHANGE_WORKSPACE_CREATE, .name = str_of(name)};
    struct store_answer answer = {.status = STORE_OK};
    int status = cmd_store_change(client, &change, &answer);
    if (status != CMD_DONE)
        return status;
    if (answer.status == STORE_EXISTS)
        return cmd_refuse("there is already a workspace \"%s\"", name);
    if (answer.status != STORE_OK)
        return cmd_store_refuse(client, answer.status);
    if (cmd->json) {
        struct records records;
        records_start(&records, true);
        records_number(&records, "id", answer.id);
        records_text(&records, "name", str_of(name));
        records_end_row(&records);
        records_finish(&records);
    } else {
        cmd_say("Created workspace \"%s\". Its id:", name);
        printf("%" PRIu64 "\n", answer.id);
    }
    return CMD_DONE;
}

int cmd_workspace_create(struct cmd *cmd)
{
    uint64_t number;
    if (cmd_name_check(cmd->words[0]) != CMD_DONE)
        return CMD_REFUSED;
    if (value_number(cmd->words[0], &number))
        return cmd_refuse("a name must not consist of digits only, because that is an id");
    struct client *client = cmd_store_open(cmd);
    if (client == NULL)
        return CMD_REFUSED;
    int status = create(cmd, client);
    client_close(client);
    return status;
}

struct listing {
    struct records records;
    enum store_status status;
};

static void list_one(void *arg, enum store_status status, const struct store_workspace *workspace)
{
    struct listing *listing = arg;
    listing->status = status;
    if (workspace == NULL)
        return;
    records_number(&listing->records, "id", workspace->id);
    records_text(&listing->records, "name", workspace->name);
    records_number(&listing->records, "projects", workspace->projects);
    records_number(&listing->records, "reports", workspace->reports);
    records_time(&listing->records, "created_at", workspace->created_at);
    records_end_row(&listing->records);
}

int cmd_workspace_list(struct cmd *cmd)
{
    struct client *client = cmd_store_open(cmd);
    if (client == NULL)
        return CMD_REFUSED;
    struct listing listing = {.status = STORE_OK};
    records_start(&listing.records, cmd->json);
    store_workspace_each(client_store(client), list_one, &listing);
    store_read_end(client_store(client));
    int status = cmd_store_list_end(client, &listing.records, listing.status,
                                    "There are no workspaces. Create one with assay workspace "
                                    "create NAME.");
    client_close(client);
    return status;
}

int cmd_workspace_delete(struct cmd *cmd)
{
    struct client *client = cmd_store_open(cmd);
    if (client == NULL)
        return CMD_REFUSED;
    struct store_change change = {.kind = CHANGE_WORKSPACE_DELETE};
    struct store_answer answer = {.status = STORE_OK};
    int status = cmd_workspace_find(client, cmd->words[0], &change.id);
    if (status == CMD_DONE)
        status = cmd_store_apply(client, &change, &answer);
    if (status == CMD_DONE && !client_is_live(client))
        status = cmd_store_purge(client);
    if (status == CMD_DONE)
        cmd_say("Deleted workspace \"%s\" and everything in it.", cmd->words[0]);
    client_close(client);
    return status;
}
