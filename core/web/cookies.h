/*
 * Cookies (RFC 6265): reading one of a request, and setting one. Cookies of this server are for
 * pages alone: the API takes none.
 */
#ifndef ASSAY_WEB_COOKIES_H
#define ASSAY_WEB_COOKIES_H

#include "core/http/request.h"

#define COOKIE_VALUE_MAX 512 /* bytes; a longer one is not ours */

/*
 * cookie_next(rest, name, value): the next cookie ${name} in ${rest}, the value of a Cookie header,
 * which then begins behind it; false: there is none. Names are compared with their case. A value in
 * double quotes is read without them. A value that is too long, or has a character that no cookie
 * may have, is skipped.
 * cookie_any(r, name, accept, arg): ${accept} takes a cookie ${name} of the request. There may be
 * several: other hosts of the same domain can set some, and browsers may send those first.
 */
bool cookie_next(struct str *rest, struct str name, struct str *value);
typedef bool cookie_accept_fn(void *arg, struct str value);
bool cookie_any(struct request *r, struct str name, cookie_accept_fn *accept, void *arg);

struct cookie {
    struct str name, value; /* characters that a cookie may have */
    struct str path;        /* without ";" */
    unsigned max_age_s;     /* 0: the browser deletes the cookie */
    bool secure;            /* sent by TLS only */
};

/* cookie_text(c, out): the value of Set-Cookie. It is HttpOnly and SameSite=Lax. */
void cookie_text(const struct cookie *c, struct buf *out);

/* cookie_set(r, c): add Set-Cookie to the response. */
void cookie_set(struct request *r, const struct cookie *c);

/* cookie_secure(r): browsers reach this server by TLS: this request did, or base_url says so. */
bool cookie_secure(struct request *r);

#endif
