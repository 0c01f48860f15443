#include "config.h"

#include "core/audit/text.h"
#include "core/audit/url.h"

#include <arpa/inet.h>
#include <curl/curl.h>
#include <stdlib.h>

/*
 * Links as browsers read them (WHATWG URL, 4.4), where libcurl differs: any number of slashes and
 * backslashes after the scheme of a URL with a host stands for two; none or one, after the page's
 * own scheme, makes the URL relative; a backslash in a path is a slash.
 */

static struct str special_scheme(struct str text)
{
    static const struct str schemes[] = {
        {"https:", 6}, {"http:", 5}, {"ftp:", 4}, {"wss:", 4}, {"ws:", 3}};
    for (size_t i = 0; i < sizeof(schemes) / sizeof(*schemes); i++)
        if (text_starts(text, schemes[i].p))
            return schemes[i];
    return STR("");
}

static size_t count_slashes(struct str text)
{
    size_t n = 0;
    while (n < text.n && (text.p[n] == '/' || text.p[n] == '\\'))
        n++;
    return n;
}

static bool has_colon_before_path(struct str text)
{
    size_t n = 0;
    while (n < text.n && text.p[n] != ':' && strchr("/\\?#", text.p[n]) == NULL)
        n++;
    return n > 0 && n < text.n && text.p[n] == ':';
}

/* Drop line breaks and tabs; up to the query, a backslash becomes a slash. */
static void add_path(struct buf *out, struct str text)
{
    bool in_path = true;
    for (size_t i = 0; i < text.n; i++) {
        char c = text.p[i];
        in_path = in_path && c != '?' && c != '#';
        if (c != '\t' && c != '\n' && c != '\r')
            buf_add(out, in_path && c == '\\' ? "/" : text.p + i, 1);
    }
}

static void add_reference(struct buf *out, struct str text, struct str base)
{
    struct str scheme = special_scheme(text), page, rest;
    if (scheme.n == 0 && has_colon_before_path(text)) {
        buf_str(out, text);
        return;
    }
    text = text_from(text, scheme.n);
    size_t slashes = count_slashes(text);
    if (slashes < 2 && text_starts(base, scheme.p))
        scheme.n = 0;
    buf_str(out, scheme);
    if (scheme.n > 0 || slashes >= 2) {
        buf_adds(out, "//");
        text = text_from(text, slashes);
    } else if (text.n == 0 || text.p[0] == '#') {
        /* libcurl 7.88 drops the last segment of the path for a fragment alone */
        text_split(base, '#', &page, &rest);
        buf_str(out, page);
    }
    add_path(out, text);
}

/*
 * Rejects hosts that libcurl accepts and browsers do not: malformed addresses, and characters that
 * names cannot contain.
 */
static bool is_host(const char *host)
{
    struct in_addr unused;
    size_t n = strlen(host);
    if (host[0] == '[')
        return strchr(host, '%') == NULL;
    if (strpbrk(host, "%|^<>") != NULL)
        return false;
    n -= n > 0 && host[n - 1] == '.';
    size_t label = n;
    while (label > 0 && host[label - 1] != '.')
        label--;
    bool number = n > label && strspn(host + label, "0123456789") >= n - label;
    return !number || inet_pton(AF_INET, host, &unused) == 1;
}

static bool resolve(CURLU *u, const char *base, const char *text, char **host, char **out)
{
    const unsigned how = CURLU_NON_SUPPORT_SCHEME | CURLU_URLENCODE | CURLU_ALLOW_SPACE;
    if (curl_url_set(u, CURLUPART_URL, base, CURLU_NON_SUPPORT_SCHEME) != CURLUE_OK ||
        curl_url_set(u, CURLUPART_URL, text, how) != CURLUE_OK)
        return false;
    CURLUcode code = curl_url_get(u, CURLUPART_HOST, host, 0);
    if (code != CURLUE_OK ? code != CURLUE_NO_HOST : !is_host(*host))
        return false;
    return curl_url_get(u, CURLUPART_URL, out, CURLU_NO_DEFAULT_PORT | CURLU_PUNYCODE) == CURLUE_OK;
}

bool url_resolve(struct str text, const char *base, struct buf *out)
{
    char *absolute = NULL, *host = NULL;
    struct buf reference = {0};
    CURLU *u = curl_url();
    add_reference(&reference, text_trim(text), str_of(base));
    buf_add(&reference, "", 1);
    bool ok = u != NULL && buf_ok(&reference) &&
              memchr(reference.p, '\0', reference.n) == reference.p + reference.n - 1 &&
              resolve(u, base, reference.p, &host, &absolute);
    if (ok) {
        char *at = absolute, *end = strstr(absolute, "://");
        for (; end != NULL && *at != '\0' && (at < end + 3 || strchr("/?#", *at) == NULL); at++)
            *at = text_lower(*at);
        buf_adds(out, absolute);
    }
    curl_free(host);
    curl_free(absolute);
    buf_free(&reference);
    curl_url_cleanup(u);
    return ok;
}

bool url_same(struct str a, struct str b)
{
    size_t digits = 0; /* hex digits of an escape still to come */
    if (a.n != b.n)
        return false;
    for (size_t i = 0; i < a.n; i++) {
        if (a.p[i] != b.p[i] && (digits == 0 || text_lower(a.p[i]) != text_lower(b.p[i])))
            return false;
        digits = a.p[i] == '%' ? 2 : digits - (digits > 0);
    }
    return true;
}

bool url_has_scheme(struct str url)
{
    struct str scheme, rest;
    if (!text_split(url, ':', &scheme, &rest) || scheme.n == 0)
        return false;
    for (size_t i = 0; i < scheme.n; i++)
        if (!text_is_letter(scheme.p[i]) &&
            !(i > 0 && strchr("0123456789+-.", scheme.p[i]) != NULL))
            return false;
    return true;
}
