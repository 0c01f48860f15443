/*
 * Whose token it is that a visitor sends: verified, its agent published, its visitor and
 * conversation there, the page's origin allowed. What was found is remembered for as long as
 * neither the secrets nor the store have changed, so that the second request of a visitor costs a
 * comparison. Worker processes only.
 */
#ifndef ASSAY_HTTP_SESSION_H
#define ASSAY_HTTP_SESSION_H

#include "core/http/request.h"

struct sessions;

struct sessions *sessions_new(void);
void sessions_free(struct sessions *s);

enum session_verdict {
    SESSION_GOOD,
    SESSION_BAD, /* no token of ours, expired, or whom it names is gone */
    SESSION_UNPUBLISHED,
    SESSION_FORBIDDEN,   /* the origin */
    SESSION_LEAD_WANTED, /* the route is a chat's, and the agent wants a lead before one */
    SESSION_UNAVAILABLE,
};

/*
 * session_find(r, token): judge ${token}; with SESSION_GOOD r->session, r->visitor, r->agent and
 * r->workspace are filled in.
 */
enum session_verdict session_find(struct request *r, struct str token);

/*
 * session_allows(r, agent), session_signed(r, now_ms): of a request that was let in and is answered
 * for long: would it still be, by what its agent is now, and by the secrets that are known now?
 */
bool session_allows(struct request *r, const struct store_agent *agent);
bool session_signed(struct request *r, int64_t now_ms);

/*
 * session_agent_of_body(r): the agent that the first field of the body names, if there is a
 * published one: r->agent. For routes with ROUTE_BODY_FIRST, whose limiter charges by it.
 */
void session_agent_of_body(struct request *r);

#endif
