#include "core/web/page_headers.h"

#include "core/http/reply.h"

void page_headers(struct request *r)
{
    static const struct str policy =
        STR("default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self' data:; "
            "connect-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'");
    reply_header(r, "content-security-policy", policy);
    reply_header(r, "referrer-policy", STR("same-origin"));
    reply_header(r, "cross-origin-opener-policy", STR("same-origin"));
}
