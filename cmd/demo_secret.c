/* The demo's workspace, and its API key and workspace token, each kept in a file under var/. */
#include "cmd/cmd_store.h"
#include "cmd/demo.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define WORKSPACE "demo"

static void note_workspace(void *arg, enum store_status status,
                           const struct store_workspace *workspace)
{
    uint64_t *id = arg;
    *id = status == STORE_OK ? workspace->id : 0;
}

uint64_t demo_workspace(struct client *client)
{
    uint64_t id = 0;
    struct store_change change = {.kind = CHANGE_WORKSPACE_CREATE, .name = STR(WORKSPACE)};
    struct store_answer answer = {.status = STORE_OK};
    store_workspace_find(client_store(client), STR(WORKSPACE), note_workspace, &id);
    store_read_end(client_store(client));
    if (id != 0)
        return id;
    if (cmd_store_change(client, &change, &answer) != CMD_DONE)
        return 0;
    if (answer.status != STORE_OK)
        cmd_store_refuse(client, answer.status);
    return answer.status == STORE_OK ? answer.id : 0;
}

bool demo_secret_read(struct demo_secret *secret)
{
    enum credential_kind kind;
    FILE *file = fopen(secret->path, "re");
    if (file == NULL)
        return false;
    bool read = fgets(secret->text, sizeof(secret->text), file) != NULL;
    fclose(file);
    secret->text[read ? strcspn(secret->text, "\n") : 0] = '\0';
    return credential_parse(str_of(secret->text), &kind) && kind == secret->kind;
}

static bool secret_write(const struct demo_secret *secret)
{
    char path[64];
    snprintf(path, sizeof(path), "%s.new", secret->path);
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd < 0)
        return false;
    bool written = dprintf(fd, "%s\n", secret->text) > 0 && fchmod(fd, 0600) == 0;
    return close(fd) == 0 && written && rename(path, secret->path) == 0;
}

int demo_secret_make(struct cmd *cmd, struct demo_secret *secret)
{
    uint8_t hash[CREDENTIAL_HASH];
    struct store_change change = {
        .kind = CHANGE_KEY_CREATE, .name = STR("demo"), .scopes = secret->scopes};
    struct store_answer answer = {.status = STORE_OK};
    if (!credential_new(credential_prefix(secret->kind), secret->text) ||
        !credential_hash(str_of(secret->text), hash))
        return cmd_refuse("no secret could be made");
    struct client *client = cmd_store_open(cmd);
    if (client == NULL)
        return CMD_REFUSED;
    change.hash = (struct str){(const char *)hash, sizeof(hash)};
    change.workspace = demo_workspace(client);
    int status = change.workspace == 0 ? CMD_REFUSED : cmd_store_change(client, &change, &answer);
    if (status == CMD_DONE && answer.status != STORE_OK)
        status = cmd_store_refuse(client, answer.status);
    if (status == CMD_DONE && !secret_write(secret))
        status = cmd_refuse("%s cannot be written: %s", secret->path, strerror(errno));
    client_close(client);
    return status;
}
