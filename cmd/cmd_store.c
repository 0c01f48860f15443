#include "cmd_store.h"

#include "conf_value.h"

#include <errno.h>
#include <unistd.h>

#define PURGE_SLICE 1000

/* Opening a store makes it where there is none, and nobody backs up or checks an empty one. */
bool cmd_store_there(struct cmd *cmd)
{
    char path[4096 + 16];
    snprintf(path, sizeof(path), "%.4096s/data.mdb", cmd->conf->data_dir);
    if (access(path, F_OK) == 0 || errno != ENOENT)
        return true;
    cmd_refuse("there is no store in %s: name the server's configuration with -c FILE",
               cmd->conf->data_dir);
    return false;
}

struct client *cmd_store_open(struct cmd *cmd)
{
    char why[512] = "";
    struct client *client = NULL;
    if (client_open(cmd->conf, &client, why, sizeof(why)) == 0)
        return client;
    cmd_refuse("%s", why);
    return NULL;
}

int cmd_store_change(struct client *client, const struct store_change *change,
                     struct store_answer *answer)
{
    if (client_change(client, change, answer) == 0)
        return CMD_DONE;
    return cmd_refuse("the writer did not answer within 30 s, so it is not known whether this was "
                      "done; look, then try again");
}

int cmd_store_refuse(struct client *client, unsigned status)
{
    const char *why = status == STORE_IO || status == STORE_FULL || status == STORE_CORRUPT
                          ? store_why(client_store(client))
                          : NULL;
    return cmd_refuse("the store refused: %s%s%s", store_status_text((enum store_status)status),
                      why == NULL || why[0] == '\0' ? "" : ": ", why == NULL ? "" : why);
}

int cmd_id_parse(const char *text, uint64_t *id)
{
    if (value_number(text, id) && *id > 0)
        return CMD_DONE;
    return cmd_refuse("\"%s\" is not an id; an id is a number, as the list command shows it", text);
}

struct finding {
    enum store_status status;
    uint64_t id;
};

static void found_workspace(void *arg, enum store_status status,
                            const struct store_workspace *workspace)
{
    struct finding *finding = arg;
    finding->status = status;
    finding->id = status == STORE_OK ? workspace->id : 0;
}

int cmd_workspace_find(struct client *client, const char *text, uint64_t *id)
{
    struct finding finding = {.status = STORE_NOT_FOUND};
    struct store *store = client_store(client);
    store_workspace_find(store, str_of(text), found_workspace, &finding);
    if (finding.status == STORE_NOT_FOUND && value_number(text, id))
        store_workspace_get(store, *id, found_workspace, &finding);
    store_read_end(store);
    *id = finding.id;
    if (finding.status == STORE_OK)
        return CMD_DONE;
    if (finding.status == STORE_NOT_FOUND)
        return cmd_refuse("there is no workspace \"%s\"; assay workspace list shows them", text);
    return cmd_store_refuse(client, finding.status);
}

static bool show_purge(void *arg, uint64_t done, uint64_t total)
{
    (void)arg;
    cmd_progress("Deleting its records", done, total);
    return true;
}

int cmd_store_purge(struct client *client)
{
    struct store_change change = {.kind = CHANGE_PURGE, .limit = PURGE_SLICE};
    struct store_answer answer = {.status = STORE_OK};
    enum store_status status = store_maintain(client_store(client), show_purge, NULL);
    while (status == STORE_OK && answer.status == STORE_OK)
        if (client_change(client, &change, &answer) != 0)
            break;
    cmd_progress_end();
    if (status == STORE_OK && answer.status != STORE_NOT_FOUND)
        status = (enum store_status)answer.status;
    return status == STORE_OK ? CMD_DONE : cmd_store_refuse(client, status);
}
