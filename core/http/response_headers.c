/* Headers that responses have, whatever their body. */
#include "core/http/reply_internal.h"

#include "core/conn/connection.h"
#include "core/http/reply.h"

#include <stdio.h>

void reply_header(struct request *r, const char *name, struct str value)
{
    const h2o_token_t *token = h2o_lookup_token(name, strlen(name));
    if (token != NULL)
        reply_token(r, token, value);
    else
        h2o_add_header_by_str(&r->h2o->pool, &r->h2o->res.headers, name, strlen(name), 0, NULL,
                              value.p, value.n);
}

void reply_security_headers(struct request *r)
{
    static h2o_iovec_t sniffing = {H2O_STRLIT("x-content-type-options")},
                       hsts = {H2O_STRLIT("strict-transport-security")};
    uint64_t hsts_s = conn_hsts_s(r->wait.conn);
    /* responses contain text of callers, and must not be taken for a page */
    reply_push(r, &sniffing, NULL, STR("nosniff"));
    if (hsts_s == 0)
        return;
    enum { VALUE_SIZE = 32 };
    char *value = h2o_mem_alloc_pool(&r->h2o->pool, VALUE_SIZE);
    int n = snprintf(value, VALUE_SIZE, "max-age=%llu", (unsigned long long)hsts_s);
    reply_push(r, &hsts, NULL, (struct str){value, (size_t)n});
}
