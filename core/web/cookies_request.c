#include "core/web/cookies.h"

#include "core/http/reply.h"

bool cookie_any(struct request *r, struct str name, cookie_accept_fn *accept, void *arg)
{
    const h2o_headers_t *headers = &r->h2o->headers;
    struct str value;
    ssize_t at = -1;
    while ((at = h2o_find_header(headers, H2O_TOKEN_COOKIE, at)) >= 0) {
        struct str rest = {headers->entries[at].value.base, headers->entries[at].value.len};
        while (cookie_next(&rest, name, &value))
            if (accept(arg, value))
                return true;
    }
    return false;
}

void cookie_set(struct request *r, const struct cookie *c)
{
    size_t room = c->name.n + c->value.n + c->path.n + 96;
    struct buf text = {.p = request_alloc(r, room), .cap = room};
    cookie_text(c, &text);
    reply_header(r, "set-cookie", buf_view(&text));
}

bool cookie_secure(struct request *r)
{
    return request_is_tls(r) || str_starts(request_base_url(r), STR("https://"));
}
