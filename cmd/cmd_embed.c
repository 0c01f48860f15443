/* agent embed: the element that brings an agent's chat to a page, its script pinned by version and digest. */
#include "cmd_embed.h"
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

struct pinned {
    char src[4096], integrity[SCRIPT_INTEGRITY_SIZE];
};

static bool pin(const char *base, struct pinned *out)
{
    char version[SCRIPT_VERSION_SIZE];
    script_version_text(version);
    return strpbrk(base, "\"<>&") == NULL && script_integrity(out->integrity) &&
           (size_t)snprintf(out->src, sizeof(out->src), "%s/widget/%s/widget.js", base, version) < sizeof(out->src);
}

bool embed_element(const char *base, const char *agent, struct buf *out)
{
    struct pinned pinned;
    if (!pin(base, &pinned))
        return false;
    buf_printf(out, "<script src=\"%s\" integrity=\"%s\" crossorigin=\"anonymous\" data-agent=\"%s\" async></script>", pinned.src,
               pinned.integrity, agent);
    return buf_ok(out);
}

static int print_element(const char *base, const char *agent)
{
    struct buf element = {0};
    bool good = embed_element(base, agent, &element);
    if (good)
        printf("%.*s\n", (int)element.n, element.p);
    buf_free(&element);
    return good ? CMD_DONE : cmd_refuse("the element cannot be made: base_url does not fit into an attribute");
}

static int print_record(const char *base, const char *agent)
{
    struct pinned pinned;
    struct records records;
    if (!pin(base, &pinned))
        return cmd_refuse("the element cannot be made: base_url does not fit into an attribute");
    records_start(&records, true);
    records_text(&records, "agent_id", str_of(agent));
    records_text(&records, "src", str_of(pinned.src));
    records_text(&records, "integrity", str_of(pinned.integrity));
    records_end_row(&records);
    records_finish(&records);
    return CMD_DONE;
}

int cmd_agent_embed(struct cmd *cmd)
{
    char base[4096];
    const struct conf *conf = cmd->conf;
    const struct conf_listen *first = &conf->listen[0];
    int status = agent_known(cmd, cmd->words[0]);
    if (status != CMD_DONE)
        return status;
    if (conf->base_url[0] != '\0')
        snprintf(base, sizeof(base), "%s", conf->base_url);
    else {
        snprintf(base, sizeof(base), "%s%s", first->tls_certificate[0] != '\0' ? "https://" : "http://", first->address);
        cmd_say("base_url is not set, so this names the first listener; pages of others need the public address there.");
    }
    return (cmd->json ? print_record : print_element)(base, cmd->words[0]);
}
