/*
 * URLs, parsed by libcurl, so that the URL that is judged is the URL that is fetched. No DNS
 * lookups. Any process.
 */
#ifndef ASSAY_URL_H
#define ASSAY_URL_H

#include "core/conf/conf.h"
#include "store/bytes.h"

#define URL_MAX_BYTES 2048

/* A URL accepted for fetching. Owns its strings; free with url_free. */
struct url {
    char *text;   /* normalised: lower-case punycode host, no default port, no fragment, no user */
    char *host;   /* lower case, punycode, no trailing dot, no brackets */
    char *target; /* path and query, as sent */
    char *origin; /* scheme://host[:port] */
    uint16_t port;
    bool https;
    bool private_host; /* only an address of conf->audit_allow_private is acceptable */
    bool forbidden;    /* refused by the guard (host or port), not malformed */
};

/*
 * url_judge(text, base, conf, out, why):
 * Resolve ${text} against ${base} (NULL: it must be absolute), normalise it and judge host and
 * port. False: refused; ${why} is a static sentence, and ${out}->forbidden tells whether the guard
 * refused it. ${out} must be freed either way.
 */
bool url_judge(struct str text, const char *base, const struct conf *conf, struct url *out,
               const char **why);
void url_free(struct url *url);

/*
 * url_resolve(text, base, out): append ${text} resolved against ${base} to ${out}: any scheme, not
 * judged. False if it is invalid. For links of a page: forgives what browsers forgive (backslashes,
 * too many or too few slashes). The process's LC_CTYPE must be UTF-8 (audit_new sets it).
 *
 * url_same(a, b): two absolute URLs are equal, except for the case of hex digits in escapes.
 */
bool url_resolve(struct str text, const char *base, struct buf *out);
bool url_same(struct str a, struct str b);

/* url_has_scheme(url): ${url} begins with a scheme and a colon. */
bool url_has_scheme(struct str url);

/*
 * url_plain(text, host, port): fast path: ${text} is an http or https URL in a form that url_judge
 * returns unchanged if the guard accepts host and ${port}. ${host}, within ${text}, is what
 * url_judge would return. False: unknown, as for addresses, escapes or a dot after a slash; call
 * url_judge.
 */
bool url_plain(struct str text, struct str *host, uint16_t *port);

/*
 * audit_url_normalise(url, conf, out, host, why):
 * Judge and normalise a page's URL without a DNS lookup. Appends the normalised URL (at most 2048
 * characters) to ${out} and the project's name (the host in lower-case punycode, without `www.` and
 * port) to ${host}. False: the URL is refused, and ${why} is a static sentence.
 *
 * audit_url_plain(url, conf, host): fast path for URLs that are already normalised, as most are.
 * ${host} is the project's name, within ${url}. False: unknown; call audit_url_normalise.
 */
bool audit_url_normalise(struct str url, const struct conf *conf, struct buf *out, struct buf *host,
                         const char **why);
bool audit_url_plain(struct str url, const struct conf *conf, struct str *host);

#endif
