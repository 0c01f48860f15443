#include "config.h"

#include "url.h"
#include "audit.h"
#include "guard.h"
#include "text.h"

#include <locale.h>
#include <stdlib.h>

/* An IDN may map to an address or a name with a trailing dot, so what came out is read again until it stays the same. */
#define ROUNDS 4

/* libcurl maps IDN by the locale's charset. A thread's own locale leaves the process' alone. */
static locale_t utf8_locale(void)
{
    static locale_t made;
    if (made == (locale_t)0)
        made = newlocale(LC_CTYPE_MASK, "C.UTF-8", (locale_t)0);
    return made;
}

static const char *bad_bytes(struct str text)
{
    if (text.n == 0)
        return "The URL is empty.";
    if (text.n > URL_MAX_BYTES)
        return "The URL is longer than 2048 characters.";
    for (size_t i = 0; i < text.n; i++) {
        unsigned char c = (unsigned char)text.p[i];
        if (c < 0x20 || c == 0x7F)
            return "The URL has control characters.";
        if (c == '\\')
            return "The URL has a backslash. Use / instead.";
    }
    return NULL;
}

static bool has_part(CURLU *u, CURLUPart part)
{
    char *text = NULL;
    bool there = curl_url_get(u, part, &text, 0) == CURLUE_OK && text != NULL;
    curl_free(text);
    return there;
}

static const char *parse_why(CURLUcode code)
{
    switch (code) {
    case CURLUE_UNSUPPORTED_SCHEME:
    case CURLUE_BAD_SCHEME:
    case CURLUE_BAD_SLASHES:
        return "The URL must begin with http:// or https://.";
    case CURLUE_BAD_PORT_NUMBER:
        return "The URL's port is not a number from 1 to 65535.";
    case CURLUE_BAD_IPV6:
        return "The URL's IPv6 address is malformed.";
    case CURLUE_NO_HOST:
    case CURLUE_BAD_HOSTNAME:
        return "The URL's host name is missing or malformed.";
    case CURLUE_OUT_OF_MEMORY:
        return "Memory is short.";
    default:
        return "The URL is malformed.";
    }
}

/* The host as the guard reads it, malloc'd; NULL when it cannot be mapped to ASCII. */
static char *host_of(CURLU *u)
{
    char *host = NULL;
    if (curl_url_get(u, CURLUPART_HOST, &host, CURLU_PUNYCODE) != CURLUE_OK || host == NULL) {
        curl_free(host); /* libcurl 7.88 hands it out though it could not be mapped */
        return NULL;
    }
    size_t n = strlen(host);
    size_t from = 0;
    if (n > 2 && host[0] == '[') {
        from = 1;
        n -= 2;
    }
    if (n > 0 && host[from + n - 1] == '.')
        n--;
    if (n > 0 && host[from + n - 1] == '.')
        n = 0; /* one dot at the end says that the name is whole; two are none */
    char *out = n == 0 ? NULL : strndup(host + from, n);
    curl_free(host);
    for (char *p = out; p != NULL && *p != '\0'; p++) {
        *p = text_lower(*p);
        if ((unsigned char)*p <= ' ' || (unsigned char)*p >= 0x7F) {
            free(out);
            return NULL;
        }
    }
    return out;
}

/* One round: read ${text}, map its host, and write it all out again. NULL: refused, with ${why}. */
static char *round_trip(CURLU *u, const char *text, char **host, const char **why)
{
    CURLUcode code = curl_url_set(u, CURLUPART_URL, text, CURLU_URLENCODE | CURLU_ALLOW_SPACE);
    if (code != CURLUE_OK) {
        *why = parse_why(code);
        return NULL;
    }
    if (has_part(u, CURLUPART_USER) || has_part(u, CURLUPART_PASSWORD)) {
        *why = "The URL has a user name or password. Leave them out.";
        return NULL;
    }
    if (has_part(u, CURLUPART_ZONEID)) {
        *why = "The URL's IPv6 address has a zone. Leave it out.";
        return NULL;
    }
    char *scheme = NULL;
    bool http = curl_url_get(u, CURLUPART_SCHEME, &scheme, 0) == CURLUE_OK && (strcmp(scheme, "http") == 0 || strcmp(scheme, "https") == 0);
    curl_free(scheme);
    if (!http) {
        *why = "The URL must begin with http:// or https://.";
        return NULL;
    }
    *host = host_of(u);
    *why = "The URL's host name is missing or malformed.";
    if (*host == NULL)
        return NULL;
    char bracketed[264];
    bool v6 = strchr(*host, ':') != NULL;
    int n = snprintf(bracketed, sizeof(bracketed), v6 ? "[%s]" : "%s", *host);
    char *out = NULL, *copy = NULL;
    if (n < 0 || (size_t)n >= sizeof(bracketed) || curl_url_set(u, CURLUPART_HOST, bracketed, 0) != CURLUE_OK ||
        curl_url_set(u, CURLUPART_FRAGMENT, NULL, 0) != CURLUE_OK ||
        curl_url_get(u, CURLUPART_URL, &out, CURLU_NO_DEFAULT_PORT) != CURLUE_OK)
        return NULL;
    copy = strdup(out);
    curl_free(out);
    return copy;
}

static char *normalise(CURLU *u, struct str text, const char *base, char **host, const char **why)
{
    *why = bad_bytes(text);
    if (*why != NULL)
        return NULL;
    if (base != NULL && curl_url_set(u, CURLUPART_URL, base, 0) != CURLUE_OK) {
        *why = "The URL is malformed.";
        return NULL;
    }
    char *now = strndup(text.p, text.n);
    for (unsigned i = 0; now != NULL && i < ROUNDS; i++) {
        free(*host);
        *host = NULL;
        char *next = round_trip(u, now, host, why);
        bool stays = next != NULL && strcmp(now, next) == 0;
        free(now);
        now = next;
        if (stays)
            return now;
    }
    if (now != NULL)
        *why = "The URL's host name is malformed.";
    free(now);
    return NULL;
}

static bool split(CURLU *u, struct url *out)
{
    char *scheme = NULL, *port = NULL, *path = NULL, *query = NULL;
    bool ok = curl_url_get(u, CURLUPART_SCHEME, &scheme, 0) == CURLUE_OK &&
              curl_url_get(u, CURLUPART_PORT, &port, CURLU_DEFAULT_PORT) == CURLUE_OK &&
              curl_url_get(u, CURLUPART_PATH, &path, 0) == CURLUE_OK;
    if (ok) {
        bool has_query = curl_url_get(u, CURLUPART_QUERY, &query, 0) == CURLUE_OK && query != NULL;
        out->https = strcmp(scheme, "https") == 0;
        out->port = (uint16_t)strtoul(port, NULL, 10);
        bool usual = out->port == (out->https ? 443 : 80);
        bool v6 = strchr(out->host, ':') != NULL;
        ok = asprintf(&out->target, "%s%s%s", path, has_query ? "?" : "", has_query ? query : "") >= 0 &&
             asprintf(&out->origin, "%s://%s%s%s%s%s", scheme, v6 ? "[" : "", out->host, v6 ? "]" : "", usual ? "" : ":",
                      usual ? "" : port) >= 0;
    }
    curl_free(scheme);
    curl_free(port);
    curl_free(path);
    curl_free(query);
    return ok;
}

static bool judge(CURLU *u, struct url *out, const struct conf *conf, const char **why)
{
    if (strlen(out->text) > URL_MAX_BYTES) {
        *why = "The URL is longer than 2048 characters.";
        return false;
    }
    if (!split(u, out)) {
        *why = "Memory is short.";
        return false;
    }
    if (!guard_port_open(out->port, conf)) {
        out->forbidden = true;
        *why = "The URL's port is not one that may be graded.";
        return false;
    }
    enum guard_host host = guard_host_judge(out->host, conf, why);
    out->private_host = host == GUARD_HOST_PRIVATE;
    out->forbidden = host == GUARD_HOST_REFUSED;
    return !out->forbidden;
}

bool url_judge(struct str text, const char *base, const struct conf *conf, struct url *out, const char **why)
{
    *out = (struct url){0};
    *why = "Memory is short.";
    locale_t before = uselocale(utf8_locale());
    CURLU *u = curl_url();
    bool ok = false;
    if (u != NULL) {
        out->text = normalise(u, text_trim(text), base, &out->host, why);
        ok = out->text != NULL && judge(u, out, conf, why);
    }
    curl_url_cleanup(u);
    uselocale(before);
    return ok;
}

void url_free(struct url *url)
{
    free(url->text);
    free(url->host);
    free(url->target);
    free(url->origin);
    *url = (struct url){0};
}

bool url_resolve(struct str text, const char *base, struct buf *out)
{
    char *absolute = NULL;
    CURLU *u = curl_url();
    text = text_trim(text);
    char *copy = strndup(text.p, text.n);
    bool ok = u != NULL && copy != NULL && memchr(text.p, '\0', text.n) == NULL &&
              curl_url_set(u, CURLUPART_URL, base, CURLU_NON_SUPPORT_SCHEME) == CURLUE_OK &&
              curl_url_set(u, CURLUPART_URL, copy, CURLU_NON_SUPPORT_SCHEME | CURLU_URLENCODE | CURLU_ALLOW_SPACE) == CURLUE_OK &&
              curl_url_get(u, CURLUPART_URL, &absolute, CURLU_NO_DEFAULT_PORT) == CURLUE_OK;
    if (ok) {
        char *host = strstr(absolute, "://");
        for (char *at = absolute; host != NULL && *at != '\0' && (at < host + 3 || strchr("/?#", *at) == NULL); at++)
            *at = text_lower(*at);
        buf_adds(out, absolute);
    }
    curl_free(absolute);
    free(copy);
    curl_url_cleanup(u);
    return ok;
}

bool audit_url_normalise(struct str url, const struct conf *conf, struct buf *out, struct buf *host, const char **why)
{
    struct url judged;
    bool ok = url_judge(url, NULL, conf, &judged, why);
    if (ok) {
        /* www. is dropped only where a whole name is left: www.com is a site of its own. */
        const char *name = judged.host;
        if (strncmp(name, "www.", 4) == 0 && strchr(name + 4, '.') != NULL)
            name += 4;
        buf_adds(out, judged.text);
        buf_adds(host, name);
        ok = buf_ok(out) && buf_ok(host);
        if (!ok)
            *why = "Memory is short.";
    }
    url_free(&judged);
    return ok;
}
