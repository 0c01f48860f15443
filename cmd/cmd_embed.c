/* assay agent embed: the script element that adds an agent to a page. */
#include "cmd/cmd_embed.h"
#include "cmd/cmd_store.h"

#include "core/widget/script.h"
#include "core/api/agent.h"
#include "core/text/json_scan.h"

#include <string.h>

struct known {
    enum store_status status;
    struct embed_looks *looks;
};

/* Whether the JSON value ${text} is a colour of the widget. It is then safe in an attribute. */
static bool is_color(struct str text)
{
    if ((text.n != 6 && text.n != 9) || text.p[1] != '#')
        return false;
    for (size_t i = 2; i < text.n - 1; i++)
        if (memchr("0123456789abcdefABCDEF", text.p[i], 22) == NULL)
            return false;
    return true;
}

static void read_looks(struct str theme, struct embed_looks *out)
{
    struct str color = {NULL, 0}, position = {NULL, 0};
    if (theme.n == 0)
        return;
    json_scan_member(theme, JSON_SCAN_DEPTH, STR("color"), &color, NULL);
    json_scan_member(theme, JSON_SCAN_DEPTH, STR("position"), &position, NULL);
    if (is_color(color))
        snprintf(out->color, sizeof(out->color), "%.*s", (int)color.n - 2, color.p + 1);
    out->position = str_eq(position, STR("\"left\""))    ? "left"
                    : str_eq(position, STR("\"right\"")) ? "right"
                                                         : NULL;
}

static void note_agent(void *arg, enum store_status status, const struct store_agent *agent)
{
    struct known *known = arg;
    known->status = status;
    if (status == STORE_OK)
        read_looks(agent_setting(agent, STR("theme")), known->looks);
}

/* CMD_DONE: the agent exists. */
static int find_agent(struct cmd *cmd, const char *text, struct embed_looks *looks)
{
    struct ulid id;
    struct known known = {STORE_NOT_FOUND, looks};
    struct client *client = cmd_store_open(cmd);
    if (client == NULL)
        return CMD_REFUSED;
    if (ulid_parse(str_of(text), &id))
        store_agent_get(client_store(client), &id, note_agent, &known);
    store_read_end(client_store(client));
    int status = CMD_DONE;
    if (known.status == STORE_NOT_FOUND)
        status = cmd_agent_missing(text);
    else if (known.status != STORE_OK)
        status = cmd_store_refuse(client, known.status);
    client_close(client);
    return status;
}

struct pinned {
    char src[4096], integrity[SCRIPT_INTEGRITY_SIZE];
};

static bool make_pinned(const char *base, struct pinned *out)
{
    char version[SCRIPT_VERSION_SIZE];
    script_version_text(version);
    return strpbrk(base, "\"<>&") == NULL && script_integrity(out->integrity) &&
           (size_t)snprintf(out->src, sizeof(out->src), "%s/widget/%s/widget.js", base, version) <
               sizeof(out->src);
}

bool embed_element(const char *base, const char *agent, const struct embed_looks *looks,
                   struct buf *out)
{
    struct pinned pinned;
    if (!make_pinned(base, &pinned))
        return false;
    buf_printf(out,
               "<script src=\"%s\" integrity=\"%s\" crossorigin=\"anonymous\" data-agent=\"%s\"",
               pinned.src, pinned.integrity, agent);
    if (looks->color[0] != '\0')
        buf_printf(out, " data-color=\"%s\"", looks->color);
    if (looks->position != NULL)
        buf_printf(out, " data-position=\"%s\"", looks->position);
    buf_adds(out, " async></script>");
    return buf_ok(out);
}

static int no_element(void)
{
    return cmd_refuse("base_url cannot be used in an HTML attribute; remove quotes, <, > and &");
}

static int print_element(const char *base, const char *agent, const struct embed_looks *looks)
{
    struct buf element = {0};
    bool good = embed_element(base, agent, looks, &element);
    if (good)
        printf("%.*s\n", (int)element.n, element.p);
    buf_free(&element);
    return good ? CMD_DONE : no_element();
}

static int print_record(const char *base, const char *agent, const struct embed_looks *looks)
{
    struct pinned pinned;
    struct records records;
    if (!make_pinned(base, &pinned))
        return no_element();
    records_start(&records, true);
    records_text(&records, "agent_id", str_of(agent));
    records_text(&records, "src", str_of(pinned.src));
    records_text(&records, "integrity", str_of(pinned.integrity));
    records_text(&records, "color",
                 looks->color[0] == '\0' ? (struct str){NULL, 0} : str_of(looks->color));
    records_text(&records, "position",
                 looks->position == NULL ? (struct str){NULL, 0} : str_of(looks->position));
    records_end_row(&records);
    records_finish(&records);
    return CMD_DONE;
}

int cmd_agent_embed(struct cmd *cmd)
{
    char base[4096];
    struct embed_looks looks = {.position = NULL};
    const struct conf *conf = cmd->conf;
    const struct conf_listen *first = &conf->listen[0];
    int status = find_agent(cmd, cmd->words[0], &looks);
    if (status != CMD_DONE)
        return status;
    if (conf->base_url[0] != '\0')
        snprintf(base, sizeof(base), "%s", conf->base_url);
    else {
        snprintf(base, sizeof(base), "%s%s",
                 first->tls_certificate[0] != '\0' ? "https://" : "http://", first->address);
        cmd_say("base_url is not set, so the element uses the first listener. Set base_url to the "
                "public URL of the server.");
    }
    return (cmd->json ? print_record : print_element)(base, cmd->words[0], &looks);
}
