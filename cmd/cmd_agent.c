#include "cmd/cmd_store.h"

#include "core/api/agent.h"
#include "core/http/cors.h"

#include <endian.h>
#include <stdlib.h>
#include <string.h>

#define SETTING_OPTIONS                                                                            \
    {"--name", "TEXT", "name that visitors see"},                                                  \
        {"--origin", "ORIGIN",                                                                     \
         "site that may show the agent, can be repeated: https://example.com, * for all, \"\" "    \
         "for none"},                                                                              \
        {"--prompt", "TEXT", "question offered at the start of a chat, can be repeated"},          \
        {"--theme", "JSON",                                                                        \
         "appearance, such as "                                                                    \
         "{\"color\":\"#0b6e4f\",\"position\":\"left\",\"title\":\"Help\",\"greeting\":\"Hello!"   \
         "\"}"},                                                                                   \
        {"--lead-fields", "JSON",                                                                  \
         "fields of the lead form besides the e-mail address, such as [{\"name\":\"company\"}]"},  \
    {                                                                                              \
        "--language", "TAG",                                                                       \
            "language of the widget and of synced content that names none; default for a new "     \
            "agent: en"                                                                            \
    }

const struct cmd_option cmd_agent_create_options[] = {
    {"--workspace", "NAME", "workspace of the agent, by name or id"},
    SETTING_OPTIONS,
    {"--require-lead", NULL, "show the lead form before the chat"},
    {"--unpublished", NULL, "do not publish the agent yet"},
    {.name = NULL},
};
const struct cmd_option cmd_agent_update_options[] = {
    SETTING_OPTIONS,
    {"--require-lead", NULL, "show the lead form before the chat"},
    {"--no-require-lead", NULL, "let visitors chat without the lead form"},
    {"--published", NULL, "publish the agent: it answers visitors"},
    {"--unpublished", NULL, "unpublish the agent: it answers nobody"},
    {.name = NULL},
};

/* An option, its opposite, and the bits of a change that they set. */
struct flag {
    const char *yes, *no;
    uint32_t has, value;
};
static const struct flag flags[] = {
    {"--published", "--unpublished", AGENT_HAS_PUBLISHED, AGENT_PUBLISHED},
    {"--require-lead", "--no-require-lead", AGENT_HAS_LEAD, AGENT_LEAD},
};

static void flags_given(const struct cmd *cmd, struct store_change *change)
{
    for (size_t i = 0; i < sizeof(flags) / sizeof(flags[0]); i++) {
        if (cmd_has(cmd, flags[i].yes))
            change->fields |= flags[i].has | flags[i].value;
        else if (cmd_has(cmd, flags[i].no))
            change->fields |= flags[i].has;
    }
}

/* Each --origin as a line of ${out}; a single empty one means none. */
static int origins_given(const struct cmd *cmd, struct buf *out)
{
    char normal[CORS_ORIGIN_MAX];
    for (size_t i = 0; i < cmd->given_count; i++) {
        const char *text = cmd->given[i].value;
        if (strcmp(cmd->given[i].name, "--origin") != 0 || text[0] == '\0')
            continue;
        if (!cors_origin_normal(str_of(text), normal))
            return cmd_refuse("--origin: \"%s\" is not an origin; give scheme://host[:port] "
                              "without a path, such as https://example.com, or *",
                              text);
        if (!cors_allowed(buf_view(out), str_of(normal)))
            buf_printf(out, "%s\n", normal);
    }
    if (out->n > STORE_ORIGINS_MAX)
        return cmd_refuse("--origin: too many origins; all together may have %d bytes",
                          STORE_ORIGINS_MAX);
    return CMD_DONE;
}

/* The settings that the options give; ${prompts} has space for every option. False: none. */
static bool wishes_given(const struct cmd *cmd, const char **prompts, struct agent_change *out)
{
    size_t count = 0;
    bool asked = cmd_has(cmd, "--prompt");
    for (size_t i = 0; i < cmd->given_count; i++)
        if (strcmp(cmd->given[i].name, "--prompt") == 0 && cmd->given[i].value[0] != '\0')
            prompts[count++] = cmd->given[i].value;
    prompts[count] = NULL;
    *out = (struct agent_change){.theme = cmd_value(cmd, "--theme"),
                                 .lead_form_fields = cmd_value(cmd, "--lead-fields"),
                                 .language_default = cmd_value(cmd, "--language"),
                                 .starter_prompts = asked ? prompts : NULL};
    return asked || out->theme != NULL || out->lead_form_fields != NULL ||
           out->language_default != NULL;
}

/* Name the option instead of the setting: "--theme: must be …". */
static int settings_refuse(const struct agent_mistake *mistake)
{
    static const struct {
        const char *setting, *option;
    } rows[] = {{"theme", "--theme"},
                {"starter_prompts", "--prompt"},
                {"lead_form_fields", "--lead-fields"},
                {"language_default", "--language"}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]) && mistake->setting != NULL; i++)
        if (strcmp(rows[i].setting, mistake->setting) == 0)
            return cmd_refuse("%s: %s", rows[i].option, mistake->text);
    return cmd_refuse("%s", mistake->text);
}

/* The settings ${present}, changed by the options. ${given}: whether there are such options. */
static int settings_given(const struct cmd *cmd, struct str present, struct buf *out, bool *given)
{
    struct agent_mistake mistake;
    const char **prompts = calloc(cmd->given_count + 1, sizeof(*prompts));
    struct agent_change wishes;
    if (prompts == NULL)
        return cmd_refuse("out of memory");
    *given = wishes_given(cmd, prompts, &wishes);
    bool good = agent_settings(present, &wishes, out, &mistake);
    free(prompts);
    return good ? CMD_DONE : settings_refuse(&mistake);
}

struct wanted {
    struct store_change change;
    struct buf origins, settings;
};

static void wanted_free(struct wanted *wanted)
{
    buf_free(&wanted->origins);
    buf_free(&wanted->settings);
}

/* The change that the options ask for, to an agent with ${settings}. */
static int wanted_make(const struct cmd *cmd, struct str settings, struct wanted *wanted)
{
    struct store_change *change = &wanted->change;
    const char *name = cmd_value(cmd, "--name");
    bool given = false;
    if (name != NULL && cmd_name_check(name) != CMD_DONE)
        return CMD_REFUSED;
    change->name = str_of(name == NULL ? "" : name);
    change->fields |= name == NULL ? 0 : AGENT_HAS_NAME;
    flags_given(cmd, change);
    int status = origins_given(cmd, &wanted->origins);
    if (status == CMD_DONE)
        status = settings_given(cmd, settings, &wanted->settings, &given);
    if (status != CMD_DONE)
        return status;
    change->fields |=
        (cmd_has(cmd, "--origin") ? AGENT_HAS_ORIGINS : 0u) | (given ? AGENT_HAS_SETTINGS : 0u);
    change->text = buf_view(&wanted->origins);
    change->data = buf_view(&wanted->settings);
    return CMD_DONE;
}

static void print_id(const struct cmd *cmd, const struct ulid *id, const char *name)
{
    char text[ULID_TEXT + 1] = "";
    ulid_text(id, text);
    if (!cmd->json) {
        cmd_say("Created agent \"%s\". Its id:", name);
        puts(text);
        return;
    }
    struct records records;
    records_start(&records, true);
    records_text(&records, "id", str_of(text));
    records_text(&records, "name", str_of(name));
    records_end_row(&records);
    records_finish(&records);
}

static int create(struct cmd *cmd, struct client *client, const char *workspace,
                  struct store_change *change)
{
    struct store_answer answer = {.status = STORE_OK};
    int status = cmd_workspace_find(client, workspace, &change->workspace);
    if (status == CMD_DONE)
        status = cmd_store_apply(client, change, &answer);
    if (status == CMD_DONE)
        print_id(cmd, &answer.first, cmd_value(cmd, "--name"));
    return status;
}

int cmd_agent_create(struct cmd *cmd)
{
    const char *workspace = cmd_value(cmd, "--workspace");
    struct wanted wanted = {.change = {.kind = CHANGE_AGENT_CREATE}};
    if (workspace == NULL)
        return cmd_misuse(cmd, "--workspace NAME is required");
    if (cmd_value(cmd, "--name") == NULL)
        return cmd_misuse(cmd, "--name TEXT is required");
    int status = wanted_make(cmd, (struct str){NULL, 0}, &wanted);
    wanted.change.fields |= cmd_has(cmd, "--unpublished") ? 0u : AGENT_PUBLISHED;
    struct client *client = status == CMD_DONE ? cmd_store_open(cmd) : NULL;
    if (client != NULL) {
        status = create(cmd, client, workspace, &wanted.change);
        client_close(client);
    } else if (status == CMD_DONE)
        status = CMD_REFUSED;
    wanted_free(&wanted);
    return status;
}

/* ---- update, delete ---- */

struct found {
    enum store_status status;
    uint64_t version;
    struct buf settings;
};

static void note_agent(void *arg, enum store_status status, const struct store_agent *agent)
{
    struct found *found = arg;
    found->status = status;
    if (status != STORE_OK)
        return;
    found->version = agent->version;
    buf_str(&found->settings, agent->settings);
}

/* One try; STORE_PRECONDITION in ${answer}: the agent was changed by another client meanwhile. */
static int update_try(struct cmd *cmd, struct client *client, const struct ulid *id,
                      struct store_answer *answer)
{
    struct found found = {.status = STORE_NOT_FOUND};
    store_agent_get(client_store(client), id, note_agent, &found);
    store_read_end(client_store(client));
    *answer = (struct store_answer){.status = found.status};
    if (found.status != STORE_OK)
        return CMD_DONE;
    struct wanted wanted = {.change = {.kind = CHANGE_AGENT_UPDATE, .agent = *id}};
    int status = wanted_make(cmd, buf_view(&found.settings), &wanted);
    buf_free(&found.settings);
    uint64_t version = htole64(found.version);
    wanted.change.match = (struct str){(const char *)&version, sizeof(version)};
    if (status == CMD_DONE && wanted.change.fields == 0)
        status = cmd_misuse(cmd, "nothing to change; give at least one option");
    if (status == CMD_DONE)
        status = cmd_store_change(client, &wanted.change, answer);
    wanted_free(&wanted);
    return status;
}

int cmd_agent_update(struct cmd *cmd)
{
    struct ulid id;
    struct store_answer answer = {.status = STORE_PRECONDITION};
    if (!ulid_parse(str_of(cmd->words[0]), &id))
        return cmd_agent_missing(cmd->words[0]);
    struct client *client = cmd_store_open(cmd);
    if (client == NULL)
        return CMD_REFUSED;
    int status = CMD_DONE;
    for (int tries = 0; status == CMD_DONE && answer.status == STORE_PRECONDITION && tries < 5;
         tries++)
        status = update_try(cmd, client, &id, &answer);
    if (status == CMD_DONE && answer.status == STORE_NOT_FOUND)
        status = cmd_agent_missing(cmd->words[0]);
    else if (status == CMD_DONE && answer.status != STORE_OK)
        status = cmd_store_refuse(client, answer.status);
    if (status == CMD_DONE)
        cmd_say("Changed agent %s.", cmd->words[0]);
    client_close(client);
    return status;
}

int cmd_agent_delete(struct cmd *cmd)
{
    struct store_change change = {.kind = CHANGE_AGENT_DELETE};
    struct store_answer answer = {.status = STORE_OK};
    if (!ulid_parse(str_of(cmd->words[0]), &change.agent))
        return cmd_agent_missing(cmd->words[0]);
    struct client *client = cmd_store_open(cmd);
    if (client == NULL)
        return CMD_REFUSED;
    int status = cmd_store_change(client, &change, &answer);
    if (status == CMD_DONE && answer.status == STORE_NOT_FOUND)
        status = cmd_agent_missing(cmd->words[0]);
    else if (status == CMD_DONE && answer.status != STORE_OK)
        status = cmd_store_refuse(client, answer.status);
    if (status == CMD_DONE && !client_is_live(client))
        status = cmd_store_purge(client);
    if (status == CMD_DONE)
        cmd_say("Deleted agent %s and its conversations, leads, events and ratings.",
                cmd->words[0]);
    client_close(client);
    return status;
}

/* ---- list ---- */

struct listing {
    struct records records;
    enum store_status status;
};

static void list_origins(struct records *records, struct str origins)
{
    const char *words[STORE_ORIGINS_MAX / 8];
    size_t count = 0;
    char *lines = strndup(origins.p, origins.n), *rest = NULL;
    if (lines == NULL)
        abort();
    for (char *line = strtok_r(lines, "\n", &rest);
         line != NULL && count < sizeof(words) / sizeof(words[0]);
         line = strtok_r(NULL, "\n", &rest))
        words[count++] = line;
    records_list(records, "allowed_origins", words, count);
    free(lines);
}

static void list_one(void *arg, enum store_status status, const struct store_agent *agent)
{
    struct listing *listing = arg;
    struct records *records = &listing->records;
    char id[ULID_TEXT + 1] = "";
    listing->status = status;
    if (agent == NULL)
        return;
    ulid_text(&agent->id, id);
    records_text(records, "id", str_of(id));
    records_number(records, "workspace_id", agent->workspace);
    records_text(records, "name", agent->name);
    records_bool(records, "is_published", agent->is_published);
    records_bool(records, "require_lead_before_chat", agent->require_lead);
    list_origins(records, agent->origins);
    if (records->json) /* a table has no room for these */
        records_members(records, agent->settings);
    records_time(records, "created_at", agent->created_at);
    records_time(records, "updated_at", agent->updated_at);
    records_end_row(records);
}

int cmd_agent_list(struct cmd *cmd)
{
    struct client *client = cmd_store_open(cmd);
    if (client == NULL)
        return CMD_REFUSED;
    uint64_t workspace;
    int status = cmd_workspace_given(cmd, client, &workspace);
    if (status == CMD_DONE) {
        struct listing listing = {.status = STORE_OK};
        records_start(&listing.records, cmd->json);
        store_agent_each(client_store(client), workspace, list_one, &listing);
        store_read_end(client_store(client));
        status = cmd_store_list_end(client, &listing.records, listing.status,
                                    "There are no agents. Create one with assay agent create "
                                    "--workspace NAME --name TEXT.");
    }
    client_close(client);
    return status;
}
