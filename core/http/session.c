#include "core/http/session.h"

#include "core/http/cors.h"
#include "core/http/cors_request.h"
#include "core/auth/jwt.h"
#include "core/http/http.h"

#include <stdlib.h>

#define SLOTS 1024
#define ORIGIN_REMEMBERED 128

/* A token that was verified, and what was found of it. */
struct seen {
    size_t size; /* of ${text}; 0: empty */
    char text[JWT_SIZE];
    struct jwt claims;
    uint64_t generation; /* of the secrets it was verified with */
    uint64_t version;    /* of the store when it was looked up; 0: not yet */
    uint64_t workspace;
    char origin[ORIGIN_REMEMBERED]; /* that was allowed then; its length, or SIZE_MAX where none was sent */
    size_t origin_n;
    bool lead_wanted; /* the agent wants a lead before a chat, and there is none */
};

struct sessions {
    struct seen slot[SLOTS];
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

/* The signature is at the end, so tokens spread by it. */
static struct seen *slot_of(struct sessions *s, struct str token)
{
    uint64_t tail;
    memcpy(&tail, token.p + token.n - sizeof(tail), sizeof(tail));
    return &s->slot[(tail * UINT64_C(0x9E3779B97F4A7C15) >> 32) % SLOTS];
}

/* In a time that tells nothing of where they differ, and in steps of words: a token is some hundred bytes. */
static bool same(const char *a, const char *b, size_t n)
{
    uint64_t differ = 0, x, y;
    for (; n >= sizeof(x); a += sizeof(x), b += sizeof(x), n -= sizeof(x)) {
        memcpy(&x, a, sizeof(x));
        memcpy(&y, b, sizeof(y));
        differ |= x ^ y;
    }
    for (size_t i = 0; i < n; i++)
        differ |= (uint64_t)(a[i] ^ b[i]);
    return differ == 0;
}

/* Its place, once it is known to be a good token; NULL when it is none. */
static struct seen *verify(struct request *r, struct str token)
{
    const struct signing_keys *secrets = r->http->keys;
    struct jwt claims;
    if (token.n < sizeof(uint64_t) || token.n >= JWT_SIZE)
        return NULL;
    struct seen *seen = slot_of(r->http->sessions, token);
    bool known = seen->size == token.n && same(seen->text, token.p, token.n) &&
                 seen->generation == signing_keys_generation(secrets) && seen->claims.exp + JWT_LEEWAY_S > r->now_ms / 1000;
    if (known)
        return seen;
    if (!jwt_verify(secrets, token, r->now_ms, r->conf->jwt_ttl_ms, &claims))
        return NULL;
    *seen = (struct seen){.size = token.n, .claims = claims, .generation = signing_keys_generation(secrets)};
    memcpy(seen->text, token.p, token.n);
    return seen;
}

struct look {
    struct request *r;
    struct seen *seen;
    enum session_verdict verdict;
};

static enum session_verdict judge_agent(struct request *r, const struct store_agent *agent)
{
    return !agent->is_published ? SESSION_UNPUBLISHED : cors_allowed(agent->origins, cors_origin(r)) ? SESSION_GOOD : SESSION_FORBIDDEN;
}

bool session_allows(struct request *r, const struct store_agent *agent)
{
    return judge_agent(r, agent) == SESSION_GOOD;
}

bool session_signed(struct request *r, int64_t now_ms)
{
    struct jwt claims;
    return jwt_verify(r->http->keys, r->session.token, now_ms, r->conf->jwt_ttl_ms, &claims);
}

static void learn(struct request *r, struct seen *seen, uint64_t workspace)
{
    struct str origin = cors_origin(r);
    seen->workspace = workspace;
    if (origin.n > ORIGIN_REMEMBERED)
        return;
    seen->version = store_snapshot_version(r->store);
    seen->origin_n = origin.p == NULL ? SIZE_MAX : origin.n;
    if (origin.p != NULL)
        memcpy(seen->origin, origin.p, origin.n);
}

static void session_found(void *arg, enum store_status status, const struct store_agent *agent, const struct store_conversation *c)
{
    struct look *look = arg;
    if (status != STORE_OK) {
        look->verdict = status == STORE_NOT_FOUND ? SESSION_BAD : SESSION_UNAVAILABLE;
        return;
    }
    look->verdict = judge_agent(look->r, agent);
    look->seen->lead_wanted = agent->require_lead && !c->lead_captured;
    if (look->verdict == SESSION_GOOD)
        learn(look->r, look->seen, c->workspace);
}

static void agent_found(void *arg, enum store_status status, const struct store_agent *agent)
{
    struct look *look = arg;
    look->verdict = status == STORE_OK ? judge_agent(look->r, agent) : status == STORE_NOT_FOUND ? SESSION_GOOD : SESSION_UNAVAILABLE;
}

static bool remembered(struct request *r, const struct seen *seen)
{
    struct str origin = cors_origin(r);
    return seen->version != 0 && seen->version == store_version(r->store) && seen->origin_n == (origin.p == NULL ? SIZE_MAX : origin.n) &&
           (origin.p == NULL || memcmp(seen->origin, origin.p, origin.n) == 0);
}

static enum session_verdict look_up(struct request *r, struct seen *seen)
{
    struct look look = {r, seen, SESSION_UNAVAILABLE};
    seen->version = 0;
    store_session_get(r->store, &seen->claims.agent, &seen->claims.visitor, &seen->claims.conversation, session_found, &look);
    if (look.verdict != SESSION_BAD || (r->route->flags & ROUTE_ERASED) == 0)
        return look.verdict;
    r->session.erased = true;
    store_agent_get(r->store, &seen->claims.agent, agent_found, &look);
    return look.verdict;
}

enum session_verdict session_find(struct request *r, struct str token)
{
    struct seen *seen = verify(r, token);
    if (seen == NULL)
        return SESSION_BAD;
    memcpy(r->visitor, seen->claims.visitor.b, ULID_BYTES);
    memcpy(r->agent, seen->claims.agent.b, ULID_BYTES);
    r->session.token = token;
    r->session.agent = seen->claims.agent;
    r->session.visitor = seen->claims.visitor;
    r->session.conversation = seen->claims.conversation;
    r->session.expires_at = seen->claims.exp * 1000;
    enum session_verdict verdict = remembered(r, seen) ? SESSION_GOOD : look_up(r, seen);
    r->workspace = seen->workspace;
    if (verdict == SESSION_BAD) { /* the token of somebody who is gone is charged to its sender's address, as every bad one */
        memset(r->visitor, 0, sizeof(r->visitor));
        memset(r->agent, 0, sizeof(r->agent));
    }
    if (verdict == SESSION_GOOD && seen->lead_wanted && (r->route->flags & ROUTE_CHAT) != 0)
        return SESSION_LEAD_WANTED;
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
