#include "cmd/cmd_key.h"
#include "core/conf/values.h"
#include "core/shm/scoreboard.h"

#include <inttypes.h>
#include <stdlib.h>

#define OVERLAP_DEFAULT "24h"
#define DEFAULT_SCOPES                                                                             \
    (SCOPE_REPORTS_READ | SCOPE_REPORTS_WRITE | SCOPE_PROJECTS_READ | SCOPE_PROJECTS_WRITE)

const struct cmd_option cmd_key_create_options[] = {
    {"--workspace", "NAME", "workspace of the key, by name or id"},
    {"--name", "TEXT", "description of the key"},
    {"--scope", "SCOPE",
     "permission, can be repeated: reports:read, reports:write, projects:read, projects:write, "
     "conversations:read, conversations:write; default: the first four"},
    {"--expires", "DURATION", "lifetime, such as 90d; default: does not expire"},
    {.name = NULL},
};
const struct cmd_option cmd_key_list_options[] = {
    {"--workspace", "NAME", "list only this workspace, given by name or id"},
    {.name = NULL},
};
const struct cmd_option cmd_key_rotate_options[] = {
    {"--overlap", "DURATION",
     "how long the old one stays valid; default " OVERLAP_DEFAULT "; 0: it ends at once"},
    {.name = NULL},
};

/* By kind: its noun, and the message of an empty list. */
static const struct {
    const char *noun, *none;
} words[CREDENTIAL_KINDS] = {
    [CREDENTIAL_KEY] = {"key", "There are no keys. Create one with assay key create --workspace "
                               "NAME."},
    [CREDENTIAL_TOKEN] = {"token", "There are no tokens. Create one with assay token create "
                                   "--workspace NAME."},
};

static void records_scopes(struct records *records, uint32_t bits)
{
    const char *names[32];
    size_t count = 0;
    for (const struct credential_scope *scope = credential_scopes; scope->name != NULL; scope++)
        if ((bits & scope->bit) != 0)
            names[count++] = scope->name;
    records_list(records, "scopes", names, count);
}

static int no_scope(const struct cmd *cmd, const char *name)
{
    struct buf list = {0};
    for (const struct credential_scope *scope = credential_scopes; scope->name != NULL; scope++)
        if (scope->bit != SCOPE_WP_SYNC)
            buf_printf(&list, "%s%s", list.n == 0 ? "" : ", ", scope->name);
    int status =
        cmd_misuse(cmd, "an API key has no scope \"%s\"; give --scope once for each of: %.*s", name,
                   (int)list.n, list.p);
    buf_free(&list);
    return status;
}

static int scopes_given(const struct cmd *cmd, uint32_t *bits)
{
    *bits = 0;
    for (size_t g = 0; g < cmd->given_count; g++) {
        if (strcmp(cmd->given[g].name, "--scope") != 0)
            continue;
        const struct credential_scope *scope = credential_scopes;
        while (scope->name != NULL && strcmp(scope->name, cmd->given[g].value) != 0)
            scope++;
        if (scope->name == NULL || scope->bit == SCOPE_WP_SYNC)
            return no_scope(cmd, cmd->given[g].value);
        *bits |= scope->bit;
    }
    if (*bits == 0)
        *bits = DEFAULT_SCOPES;
    return CMD_DONE;
}

static int no_credential(enum credential_kind kind, uint64_t id)
{
    const char *noun = words[kind].noun;
    return cmd_refuse("there is no %s %" PRIu64 "; assay %s list shows all", noun, id, noun);
}

/* A new secret and its hash. */
static int make_secret(enum credential_kind kind, char secret[CREDENTIAL_SIZE],
                       uint8_t hash[CREDENTIAL_HASH])
{
    if (!credential_new(credential_prefix(kind), secret))
        return cmd_refuse("cannot get random numbers from the system");
    if (!credential_hash(str_of(secret), hash))
        return cmd_refuse("OpenSSL could not compute SHA-256");
    return CMD_DONE;
}

static void print_secret(const struct cmd *cmd, enum credential_kind kind, uint64_t id,
                         const struct store_change *change, const char *secret)
{
    if (!cmd->json) {
        cmd_say("Created %s %" PRIu64 ". Keep its secret; it is not shown again:", words[kind].noun,
                id);
        puts(secret);
        return;
    }
    struct records records;
    records_start(&records, true);
    records_number(&records, "id", id);
    if (change->kind == CHANGE_KEY_CREATE) {
        records_number(&records, "workspace_id", change->workspace);
        records_text(&records, "name", change->name.n == 0 ? (struct str){NULL, 0} : change->name);
        records_scopes(&records, change->scopes);
        if (kind == CREDENTIAL_TOKEN)
            records_bool(&records, "require_signature", (change->scopes & SCOPE_SIGNED) != 0);
        records_time(&records, "expires_at", change->expires_at);
    }
    records_text(&records, "secret", str_of(secret));
    records_end_row(&records);
    records_finish(&records);
}

/* The time ${text} from now, in ms since the epoch. */
static int duration_from_now(const struct cmd *cmd, const char *option, const char *text,
                             int64_t *at_ms)
{
    uint64_t ms;
    if (!value_duration(text, &ms) || ms > (uint64_t)36500 * 86400000)
        return cmd_misuse(cmd, "%s: \"%s\" is not a duration such as 90d or 24h", option, text);
    *at_ms = clock_wall_ms() + (int64_t)ms;
    return CMD_DONE;
}

/* Make a secret, store its hash with ${change}, and print it. */
static int store_secret(struct cmd *cmd, enum credential_kind kind, struct client *client,
                        const struct store_change *change)
{
    char secret[CREDENTIAL_SIZE];
    uint8_t hash[CREDENTIAL_HASH];
    struct store_answer answer = {.status = STORE_OK};
    struct store_change stored = *change;
    stored.hash = (struct str){(const char *)hash, sizeof(hash)};
    int status = make_secret(kind, secret, hash);
    if (status == CMD_DONE)
        status = cmd_store_change(client, &stored, &answer);
    if (status != CMD_DONE)
        return status;
    if (answer.status == STORE_NOT_FOUND && change->kind == CHANGE_KEY_ROTATE)
        return no_credential(kind, change->id);
    if (answer.status != STORE_OK)
        return cmd_store_refuse(client, answer.status);
    print_secret(cmd, kind, answer.id, change, secret);
    return CMD_DONE;
}

int cmd_credential_create(struct cmd *cmd, enum credential_kind kind, uint32_t scopes_bits)
{
    const char *workspace = cmd_value(cmd, "--workspace"), *name = cmd_value(cmd, "--name"),
               *expires = cmd_value(cmd, "--expires");
    struct store_change change = {
        .kind = CHANGE_KEY_CREATE, .name = str_of(name == NULL ? "" : name), .scopes = scopes_bits};
    int status = CMD_DONE;
    if (workspace == NULL)
        return cmd_misuse(cmd, "--workspace NAME is required");
    if (name != NULL && cmd_name_check(name) != CMD_DONE)
        return CMD_REFUSED;
    if (expires != NULL)
        status = duration_from_now(cmd, "--expires", expires, &change.expires_at);
    if (status == CMD_DONE && expires != NULL && change.expires_at <= clock_wall_ms())
        status = cmd_misuse(cmd, "--expires: the lifetime must be greater than 0");
    if (status != CMD_DONE)
        return status;
    struct client *client = cmd_store_open(cmd);
    if (client == NULL)
        return CMD_REFUSED;
    status = cmd_workspace_find(client, workspace, &change.workspace);
    if (status == CMD_DONE)
        status = store_secret(cmd, kind, client, &change);
    client_close(client);
    return status;
}

int cmd_key_create(struct cmd *cmd)
{
    uint32_t bits;
    int status = scopes_given(cmd, &bits);
    return status == CMD_DONE ? cmd_credential_create(cmd, CREDENTIAL_KEY, bits) : status;
}

struct key_kind {
    enum store_status status;
    bool token;
};

static void note_kind(void *arg, enum store_status status, const struct store_key *key)
{
    *(struct key_kind *)arg =
        (struct key_kind){status, status == STORE_OK && scopes_of_token(key->scopes)};
}

/* Keys and tokens share their ids, but a command for keys must not change a token. */
static int check_kind(struct client *client, enum credential_kind kind, uint64_t id)
{
    struct key_kind found = {.status = STORE_NOT_FOUND};
    store_key_get(client_store(client), id, note_kind, &found);
    store_read_end(client_store(client));
    if (found.status == STORE_NOT_FOUND ||
        (found.status == STORE_OK && found.token != (kind == CREDENTIAL_TOKEN)))
        return no_credential(kind, id);
    return found.status == STORE_OK ? CMD_DONE : cmd_store_refuse(client, found.status);
}

int cmd_credential_rotate(struct cmd *cmd, enum credential_kind kind)
{
    const char *overlap = cmd_value(cmd, "--overlap");
    struct store_change change = {.kind = CHANGE_KEY_ROTATE};
    int status = cmd_id_parse(cmd->words[0], &change.id);
    if (status == CMD_DONE)
        status = duration_from_now(cmd, "--overlap", overlap == NULL ? OVERLAP_DEFAULT : overlap,
                                   &change.expires_at);
    if (status != CMD_DONE)
        return status;
    struct client *client = cmd_store_open(cmd);
    if (client == NULL)
        return CMD_REFUSED;
    status = check_kind(client, kind, change.id);
    if (status == CMD_DONE)
        status = store_secret(cmd, kind, client, &change);
    client_close(client);
    return status;
}

int cmd_key_rotate(struct cmd *cmd)
{
    return cmd_credential_rotate(cmd, CREDENTIAL_KEY);
}

int cmd_credential_revoke(struct cmd *cmd, enum credential_kind kind)
{
    struct store_change change = {.kind = CHANGE_KEY_REVOKE};
    struct store_answer answer = {.status = STORE_OK};
    if (cmd_id_parse(cmd->words[0], &change.id) != CMD_DONE)
        return CMD_REFUSED;
    struct client *client = cmd_store_open(cmd);
    if (client == NULL)
        return CMD_REFUSED;
    int status = check_kind(client, kind, change.id);
    if (status == CMD_DONE)
        status = cmd_store_apply(client, &change, &answer);
    if (status == CMD_DONE)
        cmd_say("Revoked %s %" PRIu64 ".", words[kind].noun, change.id);
    client_close(client);
    return status;
}

int cmd_key_revoke(struct cmd *cmd)
{
    return cmd_credential_revoke(cmd, CREDENTIAL_KEY);
}

struct named {
    uint64_t id;
    char *name;
};

struct listing {
    struct records records;
    enum store_status status;
    int64_t now_ms;
    enum credential_kind kind;
    struct named *workspaces;
    size_t workspaces_count;
};

/* Collect the names of workspaces. Without memory for a name, only the id is shown. */
static void note_workspace(void *arg, enum store_status status,
                           const struct store_workspace *workspace)
{
    struct listing *listing = arg;
    (void)status;
    if (workspace == NULL)
        return;
    struct named *grown =
        realloc(listing->workspaces, (listing->workspaces_count + 1) * sizeof(*grown));
    char *name = strndup(workspace->name.p, workspace->name.n);
    if (grown != NULL)
        listing->workspaces = grown;
    if (grown != NULL && name != NULL)
        listing->workspaces[listing->workspaces_count++] =
            (struct named){.id = workspace->id, .name = name};
    else
        free(name);
}

static struct str workspace_name(const struct listing *listing, uint64_t id)
{
    for (size_t i = 0; i < listing->workspaces_count; i++)
        if (listing->workspaces[i].id == id)
            return str_of(listing->workspaces[i].name);
    return (struct str){NULL, 0};
}

static void list_one(void *arg, enum store_status status, const struct store_key *key)
{
    struct listing *listing = arg;
    struct records *records = &listing->records;
    listing->status = status;
    if (key == NULL || scopes_of_token(key->scopes) != (listing->kind == CREDENTIAL_TOKEN))
        return;
    bool revoked = key->revoked_at != 0,
         expired = key->expires_at != 0 && key->expires_at <= listing->now_ms;
    records_number(records, "id", key->id);
    records_text(records, "workspace", workspace_name(listing, key->workspace));
    records_number(records, "workspace_id", key->workspace);
    records_text(records, "name", key->name.n == 0 ? (struct str){NULL, 0} : key->name);
    records_text(records, "state", str_of(revoked ? "revoked" : expired ? "expired" : "active"));
    records_scopes(records, key->scopes);
    if (listing->kind == CREDENTIAL_TOKEN)
        records_bool(records, "require_signature", (key->scopes & SCOPE_SIGNED) != 0);
    records_time(records, "created_at", key->created_at);
    records_time(records, "last_used_at", key->last_used_at);
    records_time(records, "expires_at", key->expires_at);
    records_time(records, "revoked_at", key->revoked_at);
    records_end_row(records);
}

int cmd_credential_list(struct cmd *cmd, enum credential_kind kind)
{
    struct client *client = cmd_store_open(cmd);
    if (client == NULL)
        return CMD_REFUSED;
    uint64_t workspace;
    int status = cmd_workspace_given(cmd, client, &workspace);
    if (status == CMD_DONE) {
        struct listing listing = {.status = STORE_OK, .now_ms = clock_wall_ms(), .kind = kind};
        records_start(&listing.records, cmd->json);
        store_workspace_each(client_store(client), note_workspace, &listing);
        store_key_each(client_store(client), workspace, list_one, &listing);
        store_read_end(client_store(client));
        for (size_t i = 0; i < listing.workspaces_count; i++)
            free(listing.workspaces[i].name);
        free(listing.workspaces);
        status = cmd_store_list_end(client, &listing.records, listing.status, words[kind].none);
    }
    client_close(client);
    return status;
}

int cmd_key_list(struct cmd *cmd)
{
    return cmd_credential_list(cmd, CREDENTIAL_KEY);
}
