/*
 * URLs as the fetcher will read them: parsed by libcurl, so that what was judged is what is fetched. Any process; no look-ups.
 */
#ifndef ASSAY_URL_H
#define ASSAY_URL_H

#include "core/conf/conf.h"
#include "store/bytes.h"

#define URL_MAX_BYTES 2048

/* A URL that was judged fit to fetch. Owns its strings; url_free gives them back. */
struct url {
    char *text;       /* normalised: lower-case punycode host, no default port, no fragment, no user */
    char *host;       /* lower case, punycode, no trailing dot, no brackets */
    char *target;     /* path and query, as sent */
    char *origin;     /* scheme://host[:port] */
    uint16_t port;
    bool https;
    bool private_host; /* a name that only conf->audit_allow_private may open */
    bool forbidden;    /* refused by the guard (host or port), not malformed */
};

/*
 * url_judge(text, base, conf, out, why):
 * Resolve ${text} against ${base} (NULL: it must be absolute), normalise it and judge it as audits.md says "before any look-up". False: not
 * acceptable, ${why} a static sentence, and ${out}->forbidden tells a refusal of the guard; ${out} must be freed either way.
 */
bool url_judge(struct str text, const char *base, const struct conf *conf, struct url *out, const char **why);
void url_free(struct url *url);

/*
 * url_resolve(text, base, out): ${text} resolved against ${base}, absolute, without judging it and with any scheme; false when it is no
 * URL. ${out} is appended to. For reading links of a page: what browsers forgive (backslashes, too many or too few slashes) is forgiven.
 * The process' LC_CTYPE is UTF-8, see audit_new.
 *
 * url_same(a, b): whether two absolute URLs are the same but for the case of their escapes' digits.
 */
bool url_resolve(struct str text, const char *base, struct buf *out);
bool url_same(struct str a, struct str b);

/* url_has_scheme(url): ${url} is absolute: it begins with a scheme and a colon. */
bool url_has_scheme(struct str url);

/*
 * url_plain(text, host, port): whether ${text} is an http or https URL of the plainest kind, one that url_judge (which has the last word on any
 * other) takes as it is, to the byte, where the guard lets its host and ${port} through. ${host}, within ${text}, is then what url_judge
 * finds. Many a good URL is not plain: it has an address, an escape, or a dot after a slash.
 */
bool url_plain(struct str text, struct str *host, uint16_t *port);

#endif
