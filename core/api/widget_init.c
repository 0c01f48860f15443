/*
 * POST /api/v1/widget/init: the page opens the chat. A known visitor's conversation is only read; a
 * new visitor or conversation is stored first. Of the visitor's secret only the SHA-256 is stored.
 */
#include "core/api/widget_internal.h"
#include "core/api/render_widget_internal.h"

#include "core/auth/credential.h"
#include "core/auth/jwt.h"
#include "core/http/cluster_reads.h"
#include "core/http/http.h"
#include "core/http/cors.h"
#include "core/http/cors_request.h"
#include "core/text/json_out.h"

#include <inttypes.h>

/* state of a request that waits for its conversation */
struct init {
    struct str anonymous_id; /* in the response */
    char secret[CREDENTIAL_SIZE];
    uint8_t sent_hash[CREDENTIAL_HASH], secret_hash[CREDENTIAL_HASH];
    struct ulid agent, visitor, conversation;
    enum err refused; /* ERRS: not refused */
};

static void check_agent(void *arg, enum store_status status, const struct store_agent *agent)
{
    struct request *r = arg;
    struct init *init = r->state;
    if (status == STORE_NOT_FOUND || (status == STORE_OK && !agent->is_published))
        init->refused = ERR_AGENT_NOT_FOUND;
    else if (status != STORE_OK)
        init->refused = err_of_store(status);
    else if (!cors_allowed(agent->origins, cors_origin(r)))
        init->refused = ERR_ORIGIN_FORBIDDEN;
}

/* ---- the response ---- */

struct init_reply {
    struct request *r;
    struct buf body, state; /* state: the part after the messages */
    enum store_status status;
    struct ulid cleared;
};

static void add_agent(void *arg, enum store_status status, const struct store_agent *agent,
                      const struct store_conversation *c)
{
    struct init_reply *reply = arg;
    reply->status = status;
    if (status != STORE_OK)
        return;
    buf_adds(&reply->body, ",\"agent\":");
    render_agent(agent, &reply->body);
    widget_put_state(&reply->state, c);
    buf_adds(&reply->state,
             c->lead_captured ? ",\"lead_captured\":true" : ",\"lead_captured\":false");
    reply->cleared = c->cleared;
}

static bool add_token(struct request *r, const struct init *init, struct buf *out)
{
    char token[JWT_SIZE];
    int64_t ttl_s = r->conf->jwt_ttl_ms / 1000, now_s = r->now_ms / 1000;
    const struct jwt claims = {.agent = init->agent,
                               .visitor = init->visitor,
                               .conversation = init->conversation,
                               .iat = now_s,
                               .exp = now_s + ttl_s,
                               .position = cluster_reads_position(r->http)};
    size_t n = jwt_sign(r->http->keys, r->now_ms, &claims, token);
    buf_adds(out, ",\"jwt\":\"");
    buf_add(out, token, n);
    buf_adds(out, "\",\"expires_at\":");
    json_time(out, claims.exp * 1000);
    buf_printf(out, ",\"expires_in\":%" PRId64, ttl_s);
    return n > 0;
}

static void reply_init(struct request *r)
{
    const struct init *init = r->state;
    struct init_reply reply = {.r = r};
    widget_put_id(&reply.body, "\"conversation_id\":", &init->conversation);
    widget_put_id(&reply.body, ",\"visitor_id\":", &init->visitor);
    buf_adds(&reply.body, ",\"anonymous_id\":");
    json_string(&reply.body, init->anonymous_id);
    bool good = add_token(r, init, &reply.body);
    store_session_get(r->store, &init->agent, &init->visitor, &init->conversation, add_agent,
                      &reply);
    if (!good)
        reply_error(r, ERR_INTERNAL, NULL);
    else if (reply.status != STORE_OK)
        reply_error(
            r, reply.status == STORE_NOT_FOUND ? ERR_AGENT_NOT_FOUND : err_of_store(reply.status),
            NULL);
    else {
        const struct ulid conversation = init->conversation;
        buf_adds(&reply.body, ",");
        widget_page_reply(r, &conversation, &reply.cleared, NULL, &reply.body, &reply.state);
    }
    buf_free(&reply.body);
    buf_free(&reply.state);
}

/* ---- the conversation ---- */

static void created(struct request *r, const struct store_answer *answer)
{
    struct init *init = r->state;
    if (answer->status != STORE_OK) {
        reply_error(r,
                    answer->status == STORE_NOT_FOUND ? ERR_AGENT_NOT_FOUND
                                                      : err_of_store(answer->status),
                    NULL);
        return;
    }
    init->conversation = answer->first;
    init->visitor = answer->second;
    init->anonymous_id = answer->code != 0 ? str_of(init->secret) : r->values[INIT_ANON].text;
    reply_init(r);
}

static void visitor_found(void *arg, enum store_status status, const struct store_conversation *c)
{
    struct request *r = arg;
    struct init *init = r->state;
    if (status != STORE_OK)
        return;
    init->conversation = c->id;
    init->visitor = c->visitor;
    init->anonymous_id = r->values[INIT_ANON].text;
}

/* What is known about the page, as JSON; stored with a new visitor. */
static struct str page_info(struct request *r)
{
    static const struct {
        const char *name;
        unsigned field;
    } members[] = {
        {"locale", INIT_LOCALE}, {"page_title", INIT_TITLE}, {"referrer", INIT_REFERRER}};
    struct buf out = {0};
    for (size_t i = 0; i < sizeof(members) / sizeof(members[0]); i++) {
        buf_printf(&out, "%s\"%s\":", i == 0 ? "{" : ",", members[i].name);
        json_text(&out, r->values[members[i].field].sent ? r->values[members[i].field].text
                                                         : (struct str){NULL, 0});
    }
    buf_adds(&out, "}");
    struct str copy = buf_ok(&out) ? api_copy(r, buf_view(&out)) : (struct str){NULL, 0};
    buf_free(&out);
    return copy;
}

static bool new_secret(struct init *init)
{
    return credential_new("anon_", init->secret) &&
           credential_hash(str_of(init->secret), init->secret_hash);
}

static void create(struct request *r, struct init *init)
{
    struct store_change *change = request_alloc(r, sizeof(*change));
    *change =
        (struct store_change){.kind = CHANGE_VISITOR_INIT,
                              .agent = init->agent,
                              .match = {(const char *)init->secret_hash, sizeof(init->secret_hash)},
                              .url = r->values[INIT_PAGE_URL].sent ? r->values[INIT_PAGE_URL].text
                                                                   : (struct str){NULL, 0},
                              .data = page_info(r),
                              .expires_at = r->now_ms - WIDGET_RESUME_MS};
    if (r->values[INIT_ANON].sent)
        change->hash = (struct str){(const char *)init->sent_hash, sizeof(init->sent_hash)};
    if (new_secret(init))
        request_change(r, change, created);
    else
        reply_error(r, ERR_INTERNAL, NULL);
}

void widget_init(struct request *r)
{
    struct init *init = request_alloc(r, sizeof(*init));
    *init = (struct init){.refused = ERRS};
    r->state = init;
    if (!r->values[INIT_AGENT].sent) {
        reply_invalid(r, "agent_id", "is required: the agent's id");
        return;
    }
    if (!ulid_parse(r->values[INIT_AGENT].text, &init->agent)) {
        reply_error(r, ERR_AGENT_NOT_FOUND, NULL);
        return;
    }
    store_agent_get(r->store, &init->agent, check_agent, r);
    if (init->refused != ERRS) {
        reply_error(r, init->refused, NULL);
        return;
    }
    if (r->values[INIT_ANON].sent) {
        if (cluster_reads_are_stale(r->http)) {
            reply_stale(r);
            return;
        }
        if (!credential_hash(r->values[INIT_ANON].text, init->sent_hash)) {
            reply_error(r, ERR_INTERNAL, NULL);
            return;
        }
        store_visitor_resume(r->store, &init->agent, init->sent_hash, r->now_ms - WIDGET_RESUME_MS,
                             visitor_found, r);
    }
    if (!ulid_none(&init->conversation))
        reply_init(r);
    else
        create(r, init);
}
