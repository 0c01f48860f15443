/*
 * Cross-site requests: a page of another site can make a browser send a form here. A request that
 * changes something must come from a page of this server, or from no page.
 */
#ifndef ASSAY_WEB_SAME_SITE_H
#define ASSAY_WEB_SAME_SITE_H

#include "core/http/request.h"

/* What a request says about its source; p NULL: no such header. */
struct request_source {
    struct str fetch_site; /* Sec-Fetch-Site, which recent browsers send to secure origins */
    struct str origin;     /* Origin */
    struct str host;       /* Host */
    struct str base_url;
    bool tls;
};

/*
 * request_source_is_ours(s): Sec-Fetch-Site is same-origin or none. Without that header: Origin is
 * the origin of base_url or the host that the request was sent to, or there is no Origin, as with
 * programs. ASCII letters are compared without their case.
 */
bool request_source_is_ours(const struct request_source *s);

/* same_site(r): the request may change something; false: 403 was sent. */
bool same_site(struct request *r) __attribute__((warn_unused_result));

#endif
