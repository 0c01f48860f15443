#include "core/web/same_site.h"

#include "core/text/chars.h"

/* "scheme://host:port/path" without the path. */
static struct str origin_of(struct str url)
{
    const char *colon = url.n == 0 ? NULL : memchr(url.p, ':', url.n);
    size_t from = colon == NULL ? url.n : (size_t)(colon - url.p) + strlen("://");
    const char *slash = from >= url.n ? NULL : memchr(url.p + from, '/', url.n - from);
    return slash == NULL ? url : (struct str){url.p, (size_t)(slash - url.p)};
}

/* ${s} begins with ${prefix}, which is cut off. */
static bool cut_prefix(struct str *s, struct str prefix)
{
    if (s->n < prefix.n || !chars_equal((struct str){s->p, prefix.n}, prefix))
        return false;
    *s = (struct str){s->p + prefix.n, s->n - prefix.n};
    return true;
}

/*
 * A proxy may speak TLS with the browser and plain HTTP with this server, so https is accepted
 * everywhere. A page without TLS may not send to a server with TLS.
 */
static bool is_host(struct str origin, struct str host, bool tls)
{
    return host.n > 0 &&
           (cut_prefix(&origin, STR("https://")) ||
            (!tls && cut_prefix(&origin, STR("http://")))) &&
           chars_equal(origin, host);
}

bool request_source_is_ours(const struct request_source *s)
{
    if (s->fetch_site.p != NULL)
        return str_eq(s->fetch_site, STR("same-origin")) || str_eq(s->fetch_site, STR("none"));
    return s->origin.p == NULL ||
           (s->origin.n > 0 && chars_equal(s->origin, origin_of(s->base_url))) ||
           is_host(s->origin, s->host, s->tls);
}
