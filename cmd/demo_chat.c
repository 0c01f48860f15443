/* The shop's agent and the element of its chat. */
#include "cmd/cmd_embed.h"
#include "cmd/cmd_store.h"
#include "cmd/demo.h"

#include "core/api/agent.h"

#define NAME "Harbour Coffee"
#define COLOR "#6b3e1e"
#define THEME "{\"color\":\"" COLOR "\",\"greeting\":\"Hello! Ask us anything about coffee.\"}"
#define PROMPTS_MAX 10

struct search {
    struct ulid id;
    bool found;
};

static void note_agent(void *arg, enum store_status status, const struct store_agent *agent)
{
    struct search *search = arg;
    if (status != STORE_OK || agent == NULL || !str_eq(agent->name, STR(NAME)))
        return;
    search->id = agent->id;
    search->found = true;
}

/* The questions to try are the agent's starter prompts. */
static bool settings(const struct demo_catalogue *catalogue, struct buf *out)
{
    const struct json *questions = json_member(catalogue->json, "questions");
    const char *prompts[PROMPTS_MAX + 1] = {NULL};
    struct agent_mistake mistake;
    for (size_t i = 0; i < json_length(questions) && i < PROMPTS_MAX; i++)
        prompts[i] = json_chars(json_item(questions, i));
    const struct agent_change wishes = {.theme = THEME, .starter_prompts = prompts};
    return agent_settings((struct str){NULL, 0}, &wishes, out, &mistake);
}

int demo_agent(struct client *client, uint64_t workspace, const struct demo_catalogue *catalogue,
               struct ulid *id)
{
    struct search search = {.found = false};
    struct buf origins = {0}, looks = {0};
    struct store_answer answer = {.status = STORE_OK};
    store_agent_each(client_store(client), workspace, note_agent, &search);
    store_read_end(client_store(client));
    const char *port = strrchr(catalogue->origin, ':');
    buf_printf(&origins, "%s\nhttp://localhost%s\n", catalogue->origin, port);
    struct store_change change = {.kind = search.found ? CHANGE_AGENT_UPDATE : CHANGE_AGENT_CREATE,
                                  .workspace = workspace,
                                  .agent = search.id,
                                  .name = STR(NAME),
                                  .fields = AGENT_HAS_NAME | AGENT_HAS_ORIGINS |
                                            AGENT_HAS_SETTINGS | AGENT_HAS_PUBLISHED |
                                            AGENT_PUBLISHED};
    int status =
        settings(catalogue, &looks) ? CMD_DONE : cmd_refuse("the demo's agent cannot be described");
    change.text = buf_view(&origins);
    change.data = buf_view(&looks);
    if (status == CMD_DONE)
        status = cmd_store_change(client, &change, &answer);
    if (status == CMD_DONE && answer.status != STORE_OK)
        status = cmd_store_refuse(client, answer.status);
    *id = search.found ? search.id : answer.first;
    buf_free(&origins);
    buf_free(&looks);
    return status;
}

bool demo_chat_element(const char *api, const struct ulid *agent, struct buf *out)
{
    char id[ULID_TEXT + 1] = "";
    ulid_text(agent, id);
    return embed_element(api, id, &(struct embed_looks){.color = COLOR}, out);
}
