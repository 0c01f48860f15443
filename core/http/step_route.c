#include "core/http/steps_internal.h"

#include "core/http/accept.h"
#include "core/http/client_ip.h"
#include "core/http/cors_request.h"
#include "core/text/form.h"
#include "core/http/head_checks.h"
#include "core/conn/connection.h"

/* ---- head checks ---- */

enum step step_check_head(struct request *r)
{
    /* libh2o keeps the head at the start of its input until the request ends */
    h2o_buffer_t *input = r->wait.conn->socket->input;
    bool chunked;
    const char *fault =
        head_fault((struct str){input->bytes, input->size}, r->h2o->version >= 0x101, &chunked);
    /*
     * libh2o accepts malformed chunk sizes ("0x5" ends the body), so nothing after a chunked body
     * is read
     */
    if (chunked)
        r->h2o->http1_is_persistent = 0;
    if (fault == NULL)
        return STEP_NEXT;
    r->h2o->http1_is_persistent = 0;
    conn_linger(r->wait.conn);
    reply_error(r, ERR_BAD_REQUEST, "%s", fault);
    return STEP_DONE;
}

/* ---- route ---- */

static bool decode_args(struct request *r)
{
    for (size_t i = 0; i < PATH_ARGS_MAX && r->args[i].p != NULL; i++)
        if (memchr(r->args[i].p, '%', r->args[i].n) != NULL)
            r->args[i] = form_decode(r->args[i], false, request_alloc(r, r->args[i].n));
    return true;
}

static bool path_valid(struct request *r, struct str path)
{
    if (memchr(path.p, '%', path.n) == NULL)
        return utf8_valid(path);
    return form_decode(path, false, request_alloc(r, path.n)).p != NULL;
}

static void reply_allow(struct request *r, const struct route *row, bool options)
{
    struct buf allow = {0};
    route_allow(row, &allow);
    reply_header(r, "allow", request_printf(r, "%.*s", (int)allow.n, allow.p));
    buf_free(&allow);
    if (options)
        reply_empty(r, 204);
    else
        reply_error(r, ERR_METHOD_NOT_ALLOWED, NULL);
}

enum step step_find_route(struct request *r)
{
    struct str path = route_path(r->h2o, &r->query), method = view(r->h2o->input.method);
    r->is_head = str_eq(method, STR("HEAD"));
    if (!path_valid(r, path)) {
        reply_error(r, ERR_BAD_REQUEST,
                    "The path is malformed. Each %% needs two hexadecimal digits; decoded, the "
                    "path must be UTF-8 without NUL.");
        return STEP_DONE;
    }
    r->route = route_find(method, path, r->wait.conn->internal, r->args, &r->other_method);
    if (r->route != NULL && decode_args(r))
        return STEP_NEXT;
    r->route = NULL;
    if (!cors_preflight(r))
        return STEP_NEXT; /* to step_reply_unrouted */
    reply_empty(r, 204);
    return STEP_DONE;
}

/* 404 or 405, after the credential is known, which the limiter needs. */
enum step step_reply_unrouted(struct request *r)
{
    if (r->route != NULL)
        return STEP_NEXT;
    if (r->other_method == NULL)
        return step_refuse(r, ERR_NOT_FOUND);
    struct str method = view(r->h2o->input.method);
    reply_allow(r, r->other_method, str_eq(method, STR("OPTIONS")));
    return STEP_DONE;
}

/* ---- Accept ---- */

enum step step_check_accept(struct request *r)
{
    struct str accept;
    if (r->route == NULL || (r->route->flags & ROUTE_TEXT) != 0 ||
        !request_token_header(r, H2O_TOKEN_ACCEPT, &accept))
        return STEP_NEXT;
    if (str_eq(accept, STR("application/json")) || str_eq(accept, STR("*/*")) ||
        accept_json(accept))
        return STEP_NEXT;
    return step_refuse(r, ERR_NOT_ACCEPTABLE);
}

/* ---- client address ---- */

/*
 * X-Forwarded-For from the last line to the first, up to an address that is not a trusted proxy's.
 */
static void follow_proxies(struct request *r)
{
    const h2o_headers_t *headers = &r->h2o->headers;
    for (size_t i = headers->size; i > 0; i--) {
        const h2o_header_t *h = &headers->entries[i - 1];
        if (h->name == &H2O_TOKEN_X_FORWARDED_FOR->buf &&
            !client_right_most(&r->conf->trusted_proxies, view(h->value), &r->client_ip))
            return;
    }
}

enum step step_find_client(struct request *r)
{
    struct conn *c = r->wait.conn;
    if (!c->peer_known) {
        struct sockaddr_storage peer = {0};
        c->peer_known = true;
        if (h2o_socket_getpeername(c->socket, (struct sockaddr *)&peer) == 0 ||
            !ip_of((struct sockaddr *)&peer, &c->peer))
            c->unix_socket = true; /* its peer is a proxy on this host */
    }
    r->client_ip = c->peer;
    if (c->direct)
        return STEP_NEXT;
    if (c->unix_socket ||
        (r->conf->trusted_proxies.count > 0 && cidr_list_has(&r->conf->trusted_proxies, &c->peer)))
        follow_proxies(r);
    return STEP_NEXT;
}
