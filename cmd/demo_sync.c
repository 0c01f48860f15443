/* The shop's catalogue, sent by bulk sync as a shop's plugin does (packaging/SYNC.md). */
#include "cmd/demo.h"

#include <inttypes.h>
#include <stdio.h>
#include <time.h>

#define ENVELOPE "\"site_url\":\"%s\",\"plugin_version\":\"demo\""
#define INDEX_TRIES 150
#define INDEX_REST_MS 200

bool demo_catalogue_read(unsigned port, struct demo_catalogue *out)
{
    struct buf text = {0};
    snprintf(out->origin, sizeof(out->origin), "http://127.0.0.1:%u", port);
    const struct demo_slot slots[] = {{"origin", str_of(out->origin)}, {NULL, {"", 0}}};
    demo_fill(demo_text("catalogue.json"), slots, &text);
    out->json = buf_ok(&text) ? json_read(buf_view(&text)) : NULL;
    buf_free(&text);
    return out->json != NULL;
}

bool demo_handshake(const char *api, const char *token, const struct demo_catalogue *catalogue)
{
    char url[256], body[192];
    struct demo_answer answer;
    snprintf(url, sizeof(url), "%s/v1/wp/handshake", api);
    snprintf(body, sizeof(body), "{" ENVELOPE "}", catalogue->origin);
    demo_shop_call("POST", url, token, str_of(body), &answer);
    bool good = answer.status == 200;
    demo_answer_free(&answer);
    return good;
}

/* CMD_DONE if the server took every item. */
static int judge_batch(const struct demo_answer *answer)
{
    const struct json *data = json_member(answer->body, "data");
    const struct json *results = json_member(data, "results");
    if (answer->status != 200)
        return demo_answer_refuse(answer);
    for (size_t i = 0; i < json_length(results); i++) {
        const struct json *error = json_member(json_item(results, i), "error");
        if (error != NULL)
            return cmd_refuse("the server refused an item of the catalogue: %s",
                              json_chars(json_item(results, i)));
    }
    return CMD_DONE;
}

/* A full sync of one kind in one batch: items that left the catalogue are deleted. */
static int send_kind(const char *api, const char *token, const char *agent,
                     const struct demo_catalogue *catalogue, const char *kind)
{
    char url[256];
    struct buf body = {0};
    struct demo_answer answer;
    snprintf(url, sizeof(url), "%s/v1/wp/%s/sync", api, kind);
    buf_printf(&body,
               "{\"agent_id\":\"%s\"," ENVELOPE ",\"sync_id\":\"demo-%" PRId64
               "\",\"complete\":true,\"%s\":",
               agent, catalogue->origin, (int64_t)time(NULL), kind);
    buf_adds(&body, json_chars(json_member(catalogue->json, kind)));
    buf_adds(&body, "}");
    if (!buf_ok(&body))
        return buf_free(&body), cmd_refuse("the catalogue does not fit into memory");
    demo_shop_call("POST", url, token, buf_view(&body), &answer);
    int status = judge_batch(&answer);
    demo_answer_free(&answer);
    buf_free(&body);
    return status;
}

static int await_index(const char *api, const char *token, const char *agent)
{
    char url[256];
    const struct timespec rest = {.tv_nsec = INDEX_REST_MS * 1000000L};
    snprintf(url, sizeof(url), "%s/v1/wp/status?agent_id=%s", api, agent);
    for (int tries = 0; tries < INDEX_TRIES && !demo_pending(); tries++) {
        struct demo_answer answer;
        demo_shop_call("GET", url, token, STR(""), &answer);
        bool indexed = json_true(json_member(json_member(answer.body, "data"), "indexed"));
        int status =
            answer.status == 200 || answer.status == 429 ? CMD_DONE : demo_answer_refuse(&answer);
        demo_answer_free(&answer);
        if (indexed || status != CMD_DONE)
            return status;
        nanosleep(&rest, NULL);
    }
    return cmd_refuse("the catalogue is still being indexed; run the demo again");
}

int demo_sync(const char *api, const char *token, const struct ulid *agent,
              const struct demo_catalogue *catalogue)
{
    static const char *const kinds[] = {"posts", "products", "coupons"};
    char id[ULID_TEXT + 1] = "";
    int status = CMD_DONE;
    ulid_text(agent, id);
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]) && status == CMD_DONE; i++)
        status = send_kind(api, token, id, catalogue, kinds[i]);
    return status == CMD_DONE ? await_index(api, token, id) : status;
}
