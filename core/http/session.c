#include "core/http/session.h"

#include "core/http/cache_slot_internal.h"
#include "core/http/cors.h"
#include "core/http/cors_request.h"
#include "core/auth/jwt.h"
#include "core/http/http.h"

#include <stdlib.h>

#define ENTRIES 1024
#define ORIGIN_CACHED_MAX 128

/* A verified token and what was found for it. */
struct session_entry {
    size_t size; /* of ${text}; 0: empty */
    char text[JWT_SIZE];
    struct jwt claims;
    uint64_t generation; /* of the signing keys */
    uint64_t version;    /* of the store at the lookup; 0: not yet */
    uint64_t workspace;
    char origin[ORIGIN_CACHED_MAX]; /* allowed at the lookup */
    size_t origin_n;                /* its length; SIZE_MAX: none was sent */
    bool lead_required;             /* before a chat, and there is none */
};

struct sessions {
    struct session_entry entries[ENTRIES];
};

struct sessions *sessions_new(void)
{
    return calloc(1, sizeof(struct sessions));
}

void sessions_free(struct sessions *s)
{
    if (s == NULL)
        return;
    explicit_bzero(s, sizeof(*s));
    free(s);
}

/* The end of a token is its signature, which is random. */
static struct session_entry *entry_of(struct sessions *s, struct str token)
{
    uint64_t tail;
    memcpy(&tail, token.p + token.n - sizeof(tail), sizeof(tail));
    return &s->entries[cache_slot(tail, ENTRIES)];
}

/* Its entry if the signature is valid, or NULL. */
static struct session_entry *verify(struct request *r, struct str token)
{
    const struct signing_keys *keys = r->http->keys;
    struct jwt claims;
    if (token.n < sizeof(uint64_t) || token.n >= JWT_SIZE)
        return NULL;
    struct session_entry *entry = entry_of(r->http->sessions, token);
    bool known = entry->size == token.n && same_secret(entry->text, token.p, token.n) &&
                 entry->generation == signing_keys_generation(keys) &&
                 entry->claims.exp + JWT_LEEWAY_S > r->now_ms / 1000;
    if (known)
        return entry;
    if (!jwt_verify(keys, token, r->now_ms, r->conf->jwt_ttl_ms, &claims))
        return NULL;
    *entry = (struct session_entry){
        .size = token.n, .claims = claims, .generation = signing_keys_generation(keys)};
    memcpy(entry->text, token.p, token.n);
    return entry;
}

bool session_position(struct request *r, struct str token, struct log_position *out)
{
    const struct session_entry *entry = verify(r, token);
    if (entry != NULL)
        *out = entry->claims.position;
    return entry != NULL;
}

struct lookup {
    struct request *r;
    struct session_entry *entry;
    enum session_verdict verdict;
};

static enum session_verdict check_agent(struct request *r, const struct store_agent *agent)
{
    return !agent->is_published                           ? SESSION_UNPUBLISHED
           : cors_allowed(agent->origins, cors_origin(r)) ? SESSION_GOOD
                                                          : SESSION_FORBIDDEN;
}

bool session_allows(struct request *r, const struct store_agent *agent)
{
    return check_agent(r, agent) == SESSION_GOOD;
}

bool session_signed(struct request *r, int64_t now_ms)
{
    struct jwt claims;
    return jwt_verify(r->http->keys, r->session.token, now_ms, r->conf->jwt_ttl_ms, &claims);
}

static void store_entry(struct request *r, struct session_entry *entry, uint64_t workspace)
{
    struct str origin = cors_origin(r);
    entry->workspace = workspace;
    if (origin.n > ORIGIN_CACHED_MAX)
        return;
    entry->version = store_snapshot_version(r->store);
    entry->origin_n = origin.p == NULL ? SIZE_MAX : origin.n;
    if (origin.p != NULL)
        memcpy(entry->origin, origin.p, origin.n);
}

static void session_found(void *arg, enum store_status status, const struct store_agent *agent,
                          const struct store_conversation *c)
{
    struct lookup *lookup = arg;
    if (status != STORE_OK) {
        lookup->verdict = status == STORE_NOT_FOUND ? SESSION_BAD : SESSION_UNAVAILABLE;
        return;
    }
    lookup->verdict = check_agent(lookup->r, agent);
    lookup->entry->lead_required = agent->require_lead && !c->lead_captured;
    if (lookup->verdict == SESSION_GOOD)
        store_entry(lookup->r, lookup->entry, c->workspace);
}

static void agent_found(void *arg, enum store_status status, const struct store_agent *agent)
{
    struct lookup *lookup = arg;
    lookup->verdict = status == STORE_OK          ? check_agent(lookup->r, agent)
                      : status == STORE_NOT_FOUND ? SESSION_GOOD
                                                  : SESSION_UNAVAILABLE;
}

static bool is_cached(struct request *r, const struct session_entry *entry)
{
    struct str origin = cors_origin(r);
    return entry->version != 0 && entry->version == store_version(r->store) &&
           entry->origin_n == (origin.p == NULL ? SIZE_MAX : origin.n) &&
           (origin.p == NULL || memcmp(entry->origin, origin.p, origin.n) == 0);
}

static enum session_verdict look_up(struct request *r, struct session_entry *entry)
{
    struct lookup lookup = {r, entry, SESSION_UNAVAILABLE};
    entry->version = 0;
    store_session_get(r->store, &entry->claims.agent, &entry->claims.visitor,
                      &entry->claims.conversation, session_found, &lookup);
    if (lookup.verdict != SESSION_BAD || (r->route->flags & ROUTE_ERASED) == 0)
        return lookup.verdict;
    r->session.erased = true;
    store_agent_get(r->store, &entry->claims.agent, agent_found, &lookup);
    return lookup.verdict;
}

enum session_verdict session_find(struct request *r, struct str token)
{
    struct session_entry *entry = verify(r, token);
    if (entry == NULL)
        return SESSION_BAD;
    memcpy(r->visitor, entry->claims.visitor.b, ULID_BYTES);
    memcpy(r->agent, entry->claims.agent.b, ULID_BYTES);
    r->session.token = token;
    r->session.agent = entry->claims.agent;
    r->session.visitor = entry->claims.visitor;
    r->session.conversation = entry->claims.conversation;
    r->session.expires_at = entry->claims.exp * 1000;
    enum session_verdict verdict = is_cached(r, entry) ? SESSION_GOOD : look_up(r, entry);
    r->workspace = entry->workspace;
    if (verdict == SESSION_BAD) { /* charged by address */
        memset(r->visitor, 0, sizeof(r->visitor));
        memset(r->agent, 0, sizeof(r->agent));
    }
    if (verdict == SESSION_GOOD && entry->lead_required && (r->route->flags & ROUTE_CHAT) != 0)
        return SESSION_LEAD_REQUIRED;
    return verdict;
}

static void body_agent_found(void *arg, enum store_status status, const struct store_agent *agent)
{
    struct request *r = arg;
    if (status == STORE_OK && agent->is_published)
        memcpy(r->agent, agent->id.b, ULID_BYTES);
}

void session_agent_of_body(struct request *r)
{
    struct ulid id;
    if (ulid_parse(r->values[0].text, &id))
        store_agent_get(r->store, &id, body_agent_found, r);
}
