/* agent embed: the element that brings an agent's chat to a page, its script pinned by version and digest. */
#include "cmd_store.h"

#include "api/script.h"

#include <string.h>

static void note_status(void *arg, enum store_status status, const struct store_agent *agent)
{
    (void)agent;
    *(enum store_status *)arg = status;
}

/* CMD_DONE where there is such an agent. */
static int agent_known(struct cmd *cmd, const char *text)
{
    struct ulid id;
    enum store_status found = STORE_NOT_FOUND;
    struct client *client = cmd_store_open(cmd);
    if (client == NULL)
        return CMD_REFUSED;
    if (ulid_parse(str_of(text), &id))
        store_agent_get(client_store(client), &id, note_status, &found);
    store_read_end(client_store(client));
    int status = CMD_DONE;
    if (found == STORE_NOT_FOUND)
        status = cmd_refuse("there is no agent \"%s\"; assay agent list shows them", text);
    else if (found != STORE_OK)
        status = cmd_store_refuse(client, found);
    client_close(client);
    return status;
}

static void print(const struct cmd *cmd, const char *id, const char *src, const char *integrity)
{
    if (!cmd->json) {
        printf("<script src=\"%s\" integrity=\"%s\" crossorigin=\"anonymous\" data-agent=\"%s\" async></script>\n", src, integrity, id);
        return;
    }
    struct records records;
    records_start(&records, true);
    records_text(&records, "agent_id", str_of(id));
    records_text(&records, "src", str_of(src));
    records_text(&records, "integrity", str_of(integrity));
    records_end_row(&records);
    records_finish(&records);
}

int cmd_agent_embed(struct cmd *cmd)
{
    char src[4096], version[SCRIPT_VERSION_SIZE], integrity[SCRIPT_INTEGRITY_SIZE];
    const struct conf *conf = cmd->conf;
    bool known = conf->base_url[0] != '\0';
    const char *base = known ? conf->base_url : conf->listen[0].address;
    int status = agent_known(cmd, cmd->words[0]);
    if (status != CMD_DONE)
        return status;
    if (!script_integrity(integrity))
        return cmd_refuse("the script's digest could not be made");
    if (!known)
        cmd_say("base_url is not set, so this names the first listener; pages of others need the public address there.");
    script_version_text(version);
    const char *scheme = known ? "" : conf->listen[0].tls_certificate[0] != '\0' ? "https://" : "http://";
    if (strpbrk(base, "\"<>&") != NULL || (size_t)snprintf(src, sizeof(src), "%s%s/widget/%s/widget.js", scheme, base, version) >= sizeof(src))
        return cmd_refuse("base_url does not fit into an attribute");
    print(cmd, cmd->words[0], src, integrity);
    return CMD_DONE;
}
