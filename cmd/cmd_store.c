#include "cmd/cmd_store.h"

#include "core/base/data_lock.h"
#include "core/conf/values.h"
#include "store/backup.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define PURGE_SLICE 1000

/* Opening a store would create a missing one, which makes no sense for backup and check. */
bool cmd_store_there(struct cmd *cmd)
{
    char path[4096 + 16];
    snprintf(path, sizeof(path), "%.4096s/data.mdb", cmd->conf->data_dir);
    if (access(path, F_OK) == 0 || errno != ENOENT)
        return true;
    cmd_refuse("there is no store in %s; name the configuration of the server with -c FILE",
               cmd->conf->data_dir);
    return false;
}

int cmd_data_lock(const char *dir, int *lock)
{
    char who[HOLDER_TEXT];
    if (mkdir(dir, 0700) != 0 && errno != EEXIST)
        return cmd_refuse("cannot create data_dir %s: %s", dir, strerror(errno));
    *lock = data_lock(dir);
    if (*lock >= 0)
        return CMD_DONE;
    if (errno != EWOULDBLOCK)
        return cmd_refuse("cannot lock data_dir %s: %s", dir, strerror(errno));
    data_holder(dir, who);
    return cmd_refuse("%s is in use by %s; stop that server or command first", dir, who);
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
    return cmd_refuse(
        answer->status == STORE_AWAY
            ? "the server that had the change ended, and no node of the cluster leads, so it is "
              "unknown whether the change is done; check, then try again"
            : "the writer did not answer within 30 s, so it is unknown whether the change is done; "
              "check, then try again");
}

int cmd_store_apply(struct client *client, const struct store_change *change,
                    struct store_answer *answer)
{
    int status = cmd_store_change(client, change, answer);
    if (status != CMD_DONE || answer->status == STORE_OK)
        return status;
    return cmd_store_refuse(client, answer->status);
}

int cmd_store_refuse(struct client *client, unsigned status)
{
    if (status == STORE_AWAY)
        return cmd_refuse(client_is_live(client)
                              ? "no node of the cluster leads, or its log does not answer: nothing "
                                "was changed; see assay cluster status"
                              : "in a cluster a running server makes the change: start it");
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
    return cmd_refuse("\"%s\" is not an id; an id is a number, which the list command shows", text);
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
        return cmd_refuse("there is no workspace \"%s\"; assay workspace list shows all", text);
    return cmd_store_refuse(client, finding.status);
}

int cmd_workspace_given(const struct cmd *cmd, struct client *client, uint64_t *id)
{
    const char *name = cmd_value(cmd, "--workspace");
    *id = 0;
    return name == NULL ? CMD_DONE : cmd_workspace_find(client, name, id);
}

int cmd_agent_missing(const char *id)
{
    return cmd_refuse("there is no agent \"%s\"; assay agent list shows all", id);
}

int cmd_store_list_end(struct client *client, struct records *records, enum store_status status,
                       const char *none)
{
    bool empty = !records->json && records->columns == 0 && status == STORE_NOT_FOUND;
    if (empty)
        cmd_say("%s", none);
    records_finish(records);
    if (status == STORE_OK || status == STORE_NOT_FOUND)
        return CMD_DONE;
    return cmd_store_refuse(client, status);
}

static bool show_purge(void *arg, uint64_t done, uint64_t total)
{
    (void)arg;
    cmd_progress("Deleting records", done, total);
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
