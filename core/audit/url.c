#include "config.h"

#include "core/audit/url.h"
#include "core/audit/guard_internal.h"
#include "core/audit/text.h"

#include <curl/curl.h>
#include <locale.h>
#include <stdlib.h>

/*
 * An IDN may map to an address or to a name with a trailing dot, so the result is parsed again
 * until it is stable.
 */
#define ROUNDS 4

/*
 * libcurl maps IDN with the locale's charset. A thread-local locale leaves the process's locale
 * unchanged.
 */
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
            return "The URL contains control characters. Remove them.";
        if (c == '\\')
            return "The URL contains a backslash. Use / instead.";
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
        return "The server is out of memory. Try again later.";
    default:
        return "The URL is malformed.";
    }
}

/* The host as the guard reads it, malloc'd; NULL if it cannot be mapped to ASCII. */
static char *host_of(CURLU *u)
{
    char *host = NULL;
    if (curl_url_get(u, CURLUPART_HOST, &host, CURLU_PUNYCODE) != CURLUE_OK || host == NULL) {
        curl_free(host); /* libcurl 7.88 sets it even on failure */
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
        n = 0; /* one trailing dot marks a complete name; two are invalid */
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

/* Parse ${text}, map its host, and write the URL again. NULL: refused, with ${why}. */
static char *round_trip(CURLU *u, const char *text, char **host, const char **why)
{
    CURLUcode code = curl_url_set(u, CURLUPART_URL, text, CURLU_URLENCODE | CURLU_ALLOW_SPACE);
    if (code != CURLUE_OK) {
        *why = parse_why(code);
        return NULL;
    }
    if (has_part(u, CURLUPART_USER) || has_part(u, CURLUPART_PASSWORD)) {
        *why = "The URL contains a user name or password. Remove it.";
        return NULL;
    }
    if (has_part(u, CURLUPART_ZONEID)) {
        *why = "The URL's IPv6 address contains a zone. Remove it.";
        return NULL;
    }
    char *scheme = NULL;
    bool http = curl_url_get(u, CURLUPART_SCHEME, &scheme, 0) == CURLUE_OK &&
                (strcmp(scheme, "http") == 0 || strcmp(scheme, "https") == 0);
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
    if (n < 0 || (size_t)n >= sizeof(bracketed) ||
        curl_url_set(u, CURLUPART_HOST, bracketed, 0) != CURLUE_OK ||
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
    if (base != NULL && text.p[0] == '#')
        text = str_of(base); /* libcurl 7.88 would drop the last segment of the path */
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

/* Join ${count} strings, malloc'd; NULL when memory is short. */
static char *joined(const char *const *pieces, size_t count)
{
    struct buf all = {0};
    for (size_t i = 0; i < count; i++)
        buf_adds(&all, pieces[i]);
    buf_add(&all, "", 1);
    if (!buf_ok(&all))
        buf_free(&all);
    return all.p;
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
        out->target =
            joined((const char *[]){path, has_query ? "?" : "", has_query ? query : ""}, 3);
        out->origin = joined((const char *[]){scheme, v6 ? "://[" : "://", out->host, v6 ? "]" : "",
                                              usual ? "" : ":", usual ? "" : port},
                             6);
        ok = out->target != NULL && out->origin != NULL;
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
        *why = "The server is out of memory. Try again later.";
        return false;
    }
    if (!guard_port_open(out->port, conf)) {
        out->forbidden = true;
        *why =
            "The URL's port is not open to grading. Use a URL without a port, or ask the server's "
            "operator to open this one with the option audit.ports.";
        return false;
    }
    enum guard_host host = guard_host_judge(out->host, conf, why);
    out->private_host = host == GUARD_HOST_PRIVATE;
    out->forbidden = host == GUARD_HOST_REFUSED;
    return !out->forbidden;
}

bool url_judge(struct str text, const char *base, const struct conf *conf, struct url *out,
               const char **why)
{
    *out = (struct url){0};
    *why = "The server is out of memory. Try again later.";
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

/* Where a byte may occur in a plain URL. Dot and question mark have further rules below. */
enum { IN_LABEL = 1, IN_TARGET = 2 };
enum { PLAIN_NAME_MAX = 253 };

static const uint8_t plain_bytes[256] = {
    ['a' ... 'z'] = IN_LABEL | IN_TARGET,
    ['0' ... '9'] = IN_LABEL | IN_TARGET,
    ['-'] = IN_LABEL | IN_TARGET,
    ['A' ... 'Z'] = IN_TARGET,
    ['/'] = IN_TARGET,
    ['_'] = IN_TARGET,
    ['~'] = IN_TARGET,
    ['!'] = IN_TARGET,
    ['$'] = IN_TARGET,
    ['&'] = IN_TARGET,
    ['\''] = IN_TARGET,
    ['('] = IN_TARGET,
    [')'] = IN_TARGET,
    ['*'] = IN_TARGET,
    ['+'] = IN_TARGET,
    [','] = IN_TARGET,
    [';'] = IN_TARGET,
    ['='] = IN_TARGET,
    [':'] = IN_TARGET,
    ['@'] = IN_TARGET,
    ['?'] = IN_TARGET,
    ['.'] = IN_TARGET,
};

static bool plain_is(char c, unsigned part)
{
    return plain_bytes[(unsigned char)c] & part;
}

/*
 * The host at the start of ${text}: at least two labels, none of an IDN, the last one not beginning
 * with a digit.
 */
static bool plain_host(struct str text, struct str *host)
{
    size_t at = 0, label = 0;
    for (;; at++) {
        if (at < text.n && plain_is(text.p[at], IN_LABEL))
            continue;
        if (at == label || at - label > 63 ||
            (at - label >= 4 && memcmp(text.p + label, "xn--", 4) == 0))
            return false;
        if (at == text.n || text.p[at] != '.')
            break;
        label = at + 1;
    }
    *host = (struct str){text.p, at};
    return at <= PLAIN_NAME_MAX && label > 0 && text.p[label] >= 'a' && text.p[label] <= 'z';
}

/*
 * Nothing that libcurl would escape, cut or resolve: no dot after a slash, no question mark at the
 * end.
 */
static bool plain_target(struct str text)
{
    if (text.n == 0 || text.p[0] != '/')
        return false;
    for (size_t i = 1; i < text.n; i++)
        if (!plain_is(text.p[i], IN_TARGET) || (text.p[i] == '.' && text.p[i - 1] == '/'))
            return false;
    return text.p[text.n - 1] != '?';
}

static struct str plain_scheme(struct str text)
{
    static const struct str schemes[] = {{"https://", 8}, {"http://", 7}};
    for (size_t i = 0; i < sizeof(schemes) / sizeof(*schemes); i++)
        if (text.n >= schemes[i].n && memcmp(text.p, schemes[i].p, schemes[i].n) == 0)
            return schemes[i];
    return (struct str){NULL, 0};
}

/*
 * Length of the port at the start of ${text}, such as ":8080": shortest form, not the scheme's
 * default; 0: none.
 */
static size_t plain_port(struct str text, uint16_t own, uint16_t *port)
{
    unsigned value = 0;
    size_t at = 1;
    *port = own;
    if (text.n < 2 || text.p[0] != ':' || text.p[1] == '0')
        return 0;
    for (; at < text.n && at < 6 && text_is_digit(text.p[at]); at++)
        value = value * 10 + (unsigned)(text.p[at] - '0');
    if (at == 1 || value > UINT16_MAX || value == own)
        return 0;
    *port = (uint16_t)value;
    return at;
}

bool url_plain(struct str text, struct str *host, uint16_t *port)
{
    size_t scheme = plain_scheme(text).n;
    if (scheme == 0 || text.n > URL_MAX_BYTES || !plain_host(text_from(text, scheme), host))
        return false;
    struct str rest = text_from(text, scheme + host->n);
    return plain_target(text_from(rest, plain_port(rest, text.p[4] == 's' ? 443 : 80, port)));
}

/* The guard's verdict on a plain URL. A refused one is judged again in full, for the reason. */
static bool plain_judge(struct str host, uint16_t port, const struct conf *conf)
{
    return guard_port_open(port, conf) && !guard_name_refused(host, conf);
}

/* Drop www. only if a full name is left: www.com is a site of its own. */
static struct str project_of(struct str host)
{
    bool www =
        host.n > 4 && memcmp(host.p, "www.", 4) == 0 && memchr(host.p + 4, '.', host.n - 4) != NULL;
    return www ? text_from(host, 4) : host;
}

bool audit_url_plain(struct str url, const struct conf *conf, struct str *host)
{
    uint16_t port;
    if (!url_plain(url, host, &port) || !plain_judge(*host, port, conf))
        return false;
    *host = project_of(*host);
    return true;
}

bool audit_url_normalise(struct str url, const struct conf *conf, struct buf *out, struct buf *host,
                         const char **why)
{
    struct url judged = {0};
    struct str name;
    bool ok = true;
    if (audit_url_plain(url, conf, &name)) {
        buf_str(out, url);
        buf_str(host, name);
    } else {
        ok = url_judge(url, NULL, conf, &judged, why);
        if (ok) {
            buf_adds(out, judged.text);
            buf_str(host, project_of(str_of(judged.host)));
        }
    }
    url_free(&judged);
    if (ok && !(buf_ok(out) && buf_ok(host))) {
        *why = "The server is out of memory. Try again later.";
        ok = false;
    }
    return ok;
}
