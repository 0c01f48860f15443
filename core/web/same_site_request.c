#include "core/http/reply.h"
#include "core/web/same_site.h"

bool same_site(struct request *r)
{
    struct request_source source = {
        .host = {r->h2o->input.authority.base, r->h2o->input.authority.len},
        .base_url = request_base_url(r),
        .tls = request_is_tls(r)};
    request_header(r, "sec-fetch-site", &source.fetch_site);
    request_header(r, "origin", &source.origin);
    if (request_source_is_ours(&source))
        return true;
    reply_error(r, ERR_ORIGIN_FORBIDDEN,
                "A page of another site sent this request. Open the page on this server and send "
                "the form there.");
    return false;
}
