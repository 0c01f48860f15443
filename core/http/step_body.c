#include "core/http/steps_internal.h"

#include "core/http/fields.h"
#include "core/text/chars.h"
#include "core/text/form.h"
#include "core/http/inflate.h"
#include "core/http/large_body.h"
#include "core/http/session.h"
#include "core/auth/request_signature.h"

#include <strings.h>

/* ---- body rules ---- */

static enum step refuse_type(struct request *r)
{
    static const struct str taken[] = {
        [BODY_FIELDS] = STR("application/json, application/x-www-form-urlencoded"),
        [BODY_SYNC] = STR("application/json"),
    };
    reply_header(r, "accept-post", taken[r->route->body]);
    if (r->route->body == BODY_SYNC)
        reply_header(r, "accept-encoding", STR("gzip"));
    return step_refuse(r, ERR_UNSUPPORTED_MEDIA_TYPE);
}

static bool is_type(struct str type, struct str wanted)
{
    if (type.n < wanted.n || strncasecmp(type.p, wanted.p, wanted.n) != 0)
        return false;
    return type.n == wanted.n || type.p[wanted.n] == ';' || type.p[wanted.n] == ' ' ||
           type.p[wanted.n] == '\t';
}

static bool is_form(struct str type)
{
    return is_type(type, STR("application/x-www-form-urlencoded"));
}

static bool is_json(struct str type)
{
    return is_type(type, STR("application/json"));
}

size_t step_max_body(const struct route *route, const struct conf *conf)
{
    return route->body == BODY_SYNC ? conf->sync_max_bytes : route->max_body;
}

enum step step_check_body(struct request *r)
{
    struct str type, coding;
    if (r->route->body == BODY_NONE)
        return STEP_NEXT;
    if (r->h2o->entity.len > step_max_body(r->route, r->conf))
        return step_refuse(r, ERR_PAYLOAD_TOO_LARGE);
    bool typed = request_token_header(r, H2O_TOKEN_CONTENT_TYPE, &type);
    bool taken = typed && (is_json(type) || (r->route->body != BODY_SYNC && is_form(type)));
    if (typed ? !taken : r->h2o->entity.len > 0)
        return refuse_type(r);
    if (!request_token_header(r, H2O_TOKEN_CONTENT_ENCODING, &coding) ||
        chars_equal(coding, STR("identity")))
        return STEP_NEXT;
    r->compressed = r->route->body == BODY_SYNC &&
                    (chars_equal(coding, STR("gzip")) || chars_equal(coding, STR("x-gzip")));
    return r->compressed ? STEP_NEXT : refuse_type(r);
}

/* ---- signature ---- */

static enum step refuse_signature(struct request *r, enum err err, const char *message)
{
    reply_header(r, "www-authenticate", STR("Bearer realm=\"assay\""));
    reply_error(r, err, message == NULL ? NULL : "%s", message);
    return STEP_DONE;
}

enum step step_check_signature(struct request *r)
{
    struct str header, token;
    if (r->route->auth != AUTH_WP_TOKEN || !request_bearer(r, &token))
        return STEP_NEXT;
    if (!request_header(r, "x-signature", &header))
        return (r->scopes & SCOPE_SIGNED) != 0 ? refuse_signature(r, ERR_SIGNATURE_MISSING, NULL)
                                               : STEP_NEXT;
    switch (r->large_body != NULL && r->large_body->is_signed
                ? r->large_body->signature
                : signature_check(header, token, view(r->h2o->entity), r->now_ms / 1000)) {
    case SIGNATURE_GOOD:
        return STEP_NEXT;
    case SIGNATURE_MALFORMED:
        return refuse_signature(r, ERR_SIGNATURE_MISMATCH,
                                "X-Signature must be t=<unix>,v1=<64 hexadecimal digits>.");
    case SIGNATURE_OLD:
        return refuse_signature(r, ERR_SIGNATURE_MISMATCH,
                                "The time of X-Signature differs from the server's by more than "
                                "300 seconds. Set the clock.");
    default:
        return refuse_signature(r, ERR_SIGNATURE_MISMATCH, NULL);
    }
}

/* ---- compression ---- */

static void plain_free(void *arg)
{
    buf_free(arg);
}

enum step step_inflate_body(struct request *r)
{
    if (!r->compressed)
        return STEP_NEXT;
    struct buf *plain = r->large_body != NULL
                            ? &r->large_body->plain
                            : h2o_mem_alloc_shared(&r->h2o->pool, sizeof(*plain), plain_free);
    if (r->large_body == NULL)
        *plain = (struct buf){0};
    switch (r->large_body != NULL
                ? r->large_body->inflated
                : inflate_gzip(view(r->h2o->entity), step_max_body(r->route, r->conf), plain)) {
    case INFLATE_OK:
        r->h2o->entity = h2o_iovec_init(plain->p, plain->n);
        return STEP_NEXT;
    case INFLATE_TOO_LARGE:
        return step_refuse(r, ERR_PAYLOAD_TOO_LARGE);
    case INFLATE_NO_MEMORY:
        return step_refuse(r, ERR_UNAVAILABLE);
    default:
        reply_error(r, ERR_BAD_REQUEST, "The body is not valid gzip, or is incomplete.");
        return STEP_DONE;
    }
}

/* ---- fields ---- */

enum step step_parse_fields(struct request *r)
{
    if (r->route->body == BODY_NONE)
        return fields_parse(r, r->query) ? STEP_NEXT : STEP_DONE;
    if (!fields_check_unused_query(r))
        return STEP_DONE;
    struct str type;
    bool json = r->h2o->entity.len > 0 && request_token_header(r, H2O_TOKEN_CONTENT_TYPE, &type) &&
                is_json(type);
    return (json ? fields_parse_json : fields_parse)(r, view(r->h2o->entity)) ? STEP_NEXT
                                                                              : STEP_DONE;
}

/* For limiters that count by the agent in the body. */
enum step step_find_agent(struct request *r)
{
    if ((r->route->flags & ROUTE_BODY_FIRST) != 0)
        session_agent_of_body(r);
    return STEP_NEXT;
}
