/*
 * A visitor's token: its signature, agent, visitor, conversation, and the origin of the page. The
 * result is cached until the signing keys or the store change, so a repeated token costs only a
 * comparison.
 */
#ifndef ASSAY_HTTP_SESSION_H
#define ASSAY_HTTP_SESSION_H

#include "core/http/request.h"

struct sessions;

/* sessions_new(): the cache; NULL when memory is short. */
struct sessions *sessions_new(void);
void sessions_free(struct sessions *s);

enum session_verdict {
    SESSION_GOOD,
    SESSION_BAD, /* invalid, expired, or of an erased visitor */
    SESSION_UNPUBLISHED,
    SESSION_FORBIDDEN,     /* the origin */
    SESSION_LEAD_REQUIRED, /* the agent requires a lead before a chat */
    SESSION_UNAVAILABLE,
};

/*
 * session_find(r, token): check ${token}. SESSION_GOOD: r->session, r->visitor, r->agent and
 * r->workspace are set.
 */
enum session_verdict session_find(struct request *r, struct str token);

/* session_position(r, token, out): that of a valid token; log 0: none. False: it is invalid. */
struct log_position;
bool session_position(struct request *r, struct str token, struct log_position *out);

/*
 * For a request that is answered for a long time:
 * session_allows(r, agent): the agent still allows its origin.
 * session_signed(r, now_ms): its token is still valid.
 */
bool session_allows(struct request *r, const struct store_agent *agent);
bool session_signed(struct request *r, int64_t now_ms);

/*
 * session_agent_of_body(r): set r->agent to the published agent that the first field of the body
 * names, for the limiter of ROUTE_BODY_FIRST.
 */
void session_agent_of_body(struct request *r);

#endif
