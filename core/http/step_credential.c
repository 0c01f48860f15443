#include "core/http/steps_internal.h"

#include "core/http/cluster_reads.h"
#include "core/http/credential_cache.h"
#include "core/http/pipeline.h"
#include "core/http/session.h"
#include "core/auth/credential.h"
#include "core/async/writer_client.h"

#include <stdio.h>

/* how often a worker sends the last use of a key to the writer */
#define TOUCH_EVERY_MS 60000

static enum step refuse_credential(struct request *r, bool sent, const char *message)
{
    reply_header(r, "www-authenticate",
                 sent ? STR("Bearer realm=\"assay\", error=\"invalid_token\"")
                      : STR("Bearer realm=\"assay\""));
    reply_error(r, ERR_UNAUTHORIZED, "%s", message);
    return STEP_DONE;
}

static void note_use(struct request *r)
{
    uint64_t *slot =
        &r->http->touched[r->key % (sizeof(r->http->touched) / sizeof(r->http->touched[0]))];
    uint64_t mark = r->key << 20 | ((uint64_t)(r->now_ms / TOUCH_EVERY_MS) & 0xfffff);
    if (r->now_ms - r->credential.last_used_at < TOUCH_EVERY_MS || *slot == mark)
        return;
    *slot = mark;
    struct store_change change = {.kind = CHANGE_KEY_TOUCH, .id = r->key};
    writer_client_send(r->http->writer, &change);
}

static void key_found(void *arg, enum store_status status, const struct store_key *key)
{
    struct request *r = arg;
    r->credential_status = status;
    if (status == STORE_OK) {
        r->credential = *key;
        credential_cache_store(r->http->credentials, key, store_snapshot_version(r->store));
    }
    r->key_looked_up = true;
    if (r->waits_for_key)
        pipeline_resume(r);
}

/* Columns: name, what to send; messages for an unknown, revoked, expired one. */
static const struct {
    const char *name, *send, *unknown, *revoked, *expired;
} texts[] = {
    [AUTH_API_KEY] = {"an API key", "Send an API key: Authorization: Bearer asy_key_….",
                      "This API key is unknown. Check that it is complete.",
                      "This API key was revoked. Ask for another one.",
                      "This API key has expired. Ask for another one."},
    [AUTH_JWT] =
        {"a visitor's token",
         "Send the visitor's token from POST /api/v1/widget/init: Authorization: Bearer ….",
         "This visitor's token is invalid or has expired. Get another one with POST "
         "/api/v1/widget/init.",
         NULL, NULL},
    [AUTH_WP_TOKEN] = {"a workspace token",
                       "Send a workspace token: Authorization: Bearer asy_wp_….",
                       "This workspace token is unknown. Check that it is complete.",
                       "This workspace token was revoked. Ask for another one.",
                       "This workspace token has expired. Ask for another one."},
};

/* The kind of the credential is told by its first characters, valid or not. */
static enum step refuse_unknown(struct request *r, struct str token)
{
    char message[200];
    const unsigned auth = r->route->auth;
    const char *sent = credential_looks_like(token);
    if (sent == NULL || strcmp(sent, texts[auth].name) == 0)
        return refuse_credential(r, true, texts[auth].unknown);
    snprintf(message, sizeof(message), "This operation needs %s. The credential looks like %s. %s",
             texts[auth].name, sent, texts[auth].send);
    return refuse_credential(r, true, message);
}

static enum step find_session(struct request *r, struct str token)
{
    switch (session_find(r, token)) {
    case SESSION_GOOD:
        return STEP_NEXT;
    case SESSION_FORBIDDEN:
        return step_refuse(r, ERR_ORIGIN_FORBIDDEN);
    case SESSION_UNPUBLISHED:
        return step_refuse(r, ERR_AGENT_NOT_FOUND);
    case SESSION_LEAD_REQUIRED:
        return step_refuse(r, ERR_LEAD_REQUIRED);
    case SESSION_UNAVAILABLE:
        return step_refuse(r, ERR_UNAVAILABLE);
    default:
        /* its signature is valid, and its visitor unknown */
        return r->session.token.p != NULL && cluster_reads_confirm(r, 1) ? STEP_WAIT
                                                                         : refuse_unknown(r, token);
    }
}

static enum step look_up(struct request *r, struct str token, enum credential_kind kind)
{
    const struct cached_key *cached;
    int found = credential_cache_find(r->http->credentials, token, kind, &cached);
    r->credential_status = found == 0 ? STORE_NOT_FOUND : found < 0 ? STORE_IO : STORE_OK;
    if (found != 1)
        return STEP_NEXT;
    r->store_version = store_version(r->store);
    if (cached->store_version == r->store_version) {
        r->credential = cached->key;
        return STEP_NEXT;
    }
    store_key_find(r->store, cached->hash, key_found, r);
    r->waits_for_key = !r->key_looked_up;
    return r->key_looked_up ? STEP_NEXT : STEP_WAIT;
}

/* Unknown paths below the prefixes of bulk sync are charged to the token. */
static enum step find_unrouted_token(struct request *r)
{
    struct str query, path = route_path(r->h2o, &query), token;
    static const struct str prefixes[] = {STR("/v1/wp/"), STR("/api/v1/wp/")};
    r->credential_status = STORE_NOT_FOUND;
    for (size_t i = 0; i < sizeof(prefixes) / sizeof(prefixes[0]); i++)
        if (str_starts(path, prefixes[i]) && request_bearer(r, &token))
            return look_up(r, token, CREDENTIAL_TOKEN);
    return STEP_NEXT;
}

enum step step_find_credential(struct request *r)
{
    struct str token;
    if (r->route == NULL)
        return find_unrouted_token(r);
    if (r->route->auth == AUTH_NONE)
        return STEP_NEXT;
    if (!request_bearer(r, &token))
        return refuse_credential(r, false, texts[r->route->auth].send);
    if (r->route->auth == AUTH_JWT)
        return find_session(r, token);
    return look_up(r, token, r->route->auth == AUTH_WP_TOKEN ? CREDENTIAL_TOKEN : CREDENTIAL_KEY);
}

static bool is_expired(const struct store_key *key, int64_t now_ms)
{
    return key->expires_at != 0 && key->expires_at <= now_ms;
}

static enum step refuse_scope(struct request *r)
{
    const struct credential_scope *scope = credential_scopes;
    while (scope->name != NULL && (scope->bit & r->route->scope & ~r->scopes) == 0)
        scope++;
    enum { CHALLENGE_SIZE = 128 };
    char *challenge = request_alloc(r, CHALLENGE_SIZE);
    int n =
        snprintf(challenge, CHALLENGE_SIZE,
                 "Bearer realm=\"assay\", error=\"insufficient_scope\", scope=\"%s\"", scope->name);
    reply_header(r, "www-authenticate", (struct str){challenge, (size_t)n});
    reply_error(r, ERR_INSUFFICIENT_SCOPE,
                "The credential does not have the scope %s, which the operation needs. Use one "
                "that has it.",
                scope->name);
    return STEP_DONE;
}

enum step step_check_credential(struct request *r)
{
    const struct store_key *key = &r->credential;
    if (r->route == NULL) {
        r->token =
            r->credential_status == STORE_OK && key->revoked_at == 0 && !is_expired(key, r->now_ms)
                ? key->id
                : 0;
        return STEP_NEXT;
    }
    if (r->route->auth == AUTH_NONE || r->route->auth == AUTH_JWT)
        return STEP_NEXT;
    if (r->credential_status == STORE_NOT_FOUND) {
        struct str token = {"", 0};
        request_bearer(r, &token);
        /* looked up: it is well-formed */
        return r->key_looked_up && cluster_reads_confirm(r, 2) ? STEP_WAIT
                                                               : refuse_unknown(r, token);
    }
    if (r->credential_status != STORE_OK)
        return step_refuse(r, ERR_UNAVAILABLE);
    if (key->revoked_at != 0)
        return refuse_credential(r, true, texts[r->route->auth].revoked);
    if (is_expired(key, r->now_ms))
        return refuse_credential(r, true, texts[r->route->auth].expired);
    r->key = key->id;
    r->workspace = key->workspace;
    r->scopes = key->scopes;
    r->token = r->route->auth == AUTH_WP_TOKEN ? key->id : 0;
    note_use(r);
    if ((r->scopes & r->route->scope) == r->route->scope)
        return STEP_NEXT;
    return refuse_scope(r);
}
