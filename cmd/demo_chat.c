/* The demo's chat: an agent of the workspace, and a page of another origin that has it. */
#include "cmd/cmd_embed.h"
#include "cmd/cmd_store.h"
#include "cmd/demo.h"

#include "core/api/agent.h"

#include <string.h>

#define NAME "Harbour Coffee"
#define COLOR "#6b3e1e"

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

static bool settings(struct buf *out)
{
    static const char *const prompts[] = {"When are you open?", "Where is my order?", NULL};
    struct agent_mistake mistake;
    return agent_settings((struct str){NULL, 0},
                          &(struct agent_wishes){.theme = "{\"color\":\"" COLOR "\",\"greeting\":\"Hello! Ask us anything about coffee.\"}",
                                                 .starter_prompts = prompts},
                          out, &mistake);
}

int demo_agent_have(struct client *client, uint64_t workspace, unsigned port, struct ulid *id)
{
    struct search search = {.found = false};
    struct buf origins = {0}, looks = {0};
    struct store_answer answer = {.status = STORE_OK};
    store_agent_each(client_store(client), workspace, note_agent, &search);
    store_read_end(client_store(client));
    buf_printf(&origins, "http://127.0.0.1:%u\nhttp://localhost:%u\n", port, port);
    struct store_change change = {.kind = search.found ? CHANGE_AGENT_UPDATE : CHANGE_AGENT_CREATE,
                                  .workspace = workspace,
                                  .agent = search.id,
                                  .name = STR(NAME),
                                  .fields =
                                      AGENT_HAS_NAME | AGENT_HAS_ORIGINS | AGENT_HAS_SETTINGS | AGENT_HAS_PUBLISHED | AGENT_PUBLISHED};
    int status = settings(&looks) ? CMD_DONE : cmd_refuse("the demo's agent cannot be described");
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

bool demo_chat_page(const char *api, const struct ulid *agent, struct buf *page)
{
    char id[ULID_TEXT + 1] = "";
    ulid_text(agent, id);
    buf_adds(page, "<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n<meta name=\"viewport\" content=\"width=device-width, "
                   "initial-scale=1\">\n"
                   "<title>Harbour Coffee</title>\n<h1>Harbour Coffee</h1>\n"
                   "<p>This page comes from another origin than the server, under a Content-Security-Policy that allows its script and its "
                   "calls and nothing else. "
                   "The button in the corner opens the chat; the terminal shows how an operator answers.</p>\n");
    bool good = embed_element(api, id, &(struct embed_looks){.color = COLOR}, page);
    buf_adds(page, "\n</html>\n");
    return good && buf_ok(page);
}

bool demo_chat_head(const char *api, struct buf *head)
{
    buf_printf(head,
               "Content-Security-Policy: default-src 'none'; script-src %s; connect-src %s; style-src 'none'; require-trusted-types-for "
               "'script'\r\n",
               api, api);
    return buf_ok(head);
}
