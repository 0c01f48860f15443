#ifdef HAVE_CONFIG_H
#include "config.h"
#endif
#include "core/http/etag.h"

#include "core/text/chars.h"
#include "core/text/form.h"

_Static_assert(sizeof(PACKAGE_VERSION) <= ETAG_SIZE - sizeof("\"18446744073709551615--gz\""),
               "the version does not fit in a tag");

/* Write ${v} in decimal before ${end}; returns its start. */
static size_t decimal_before(char out[ETAG_SIZE], size_t end, uint64_t v)
{
    do {
        out[--end] = (char)('0' + v % 10);
        v /= 10;
    } while (v != 0);
    return end;
}

struct str etag_format(uint64_t version, char out[ETAG_SIZE])
{
    static const char end[] = "-" PACKAGE_VERSION "\"";
    size_t at = ETAG_SIZE - (sizeof(end) - 1);
    memcpy(out + at, end, sizeof(end) - 1);
    at = decimal_before(out, at, version);
    out[--at] = '"';
    return (struct str){out + at, ETAG_SIZE - at};
}

struct str etag_compressed(struct str etag, char out[ETAG_SIZE])
{
    size_t n = etag.n - 1;
    memcpy(out, etag.p, n);
    memcpy(out + n, "-gz\"", 4);
    return (struct str){out, n + 4};
}

/* The next tag, with quotes and without W/; false at the end or for a malformed list. */
static bool tag_next(struct str *rest, struct str *tag, bool *weak)
{
    const char *p = rest->p, *end = rest->p + rest->n;
    while (p < end && (*p == ' ' || *p == '\t' || *p == ','))
        ++p;
    *weak = end - p >= 2 && p[0] == 'W' && p[1] == '/';
    if (*weak)
        p += 2;
    if (end - p < 2 || *p != '"')
        return false;
    const char *close = memchr(p + 1, '"', (size_t)(end - p) - 1);
    if (close == NULL)
        return false;
    *tag = (struct str){p, (size_t)(close + 1 - p)};
    *rest = (struct str){close + 1, (size_t)(end - close) - 1};
    return true;
}

static bool is_star(struct str header)
{
    return str_eq(blanks_trim(header), STR("*"));
}

enum etag_match etag_none_match(struct str header, struct str etag)
{
    char buffer[ETAG_SIZE];
    struct str gzip = etag_compressed(etag, buffer);
    struct str tag;
    bool weak;
    if (is_star(header))
        return ETAG_HIT;
    while (tag_next(&header, &tag, &weak)) {
        if (str_eq(tag, etag))
            return ETAG_HIT;
        if (str_eq(tag, gzip))
            return ETAG_GZIP;
    }
    return ETAG_MISS;
}

/* The version in a tag; only the exact text that etag_format makes of it counts. */
static bool tag_version(struct str tag, uint64_t *version)
{
    char plain_buffer[ETAG_SIZE], gzip_buffer[ETAG_SIZE];
    const char *dash = memchr(tag.p, '-', tag.n);
    if (dash == NULL ||
        !number_parse((struct str){tag.p + 1, (size_t)(dash - tag.p) - 1}, UINT64_MAX - 1, version))
        return false;
    struct str plain = etag_format(*version, plain_buffer);
    return str_eq(tag, plain) || str_eq(tag, etag_compressed(plain, gzip_buffer));
}

bool etag_versions(struct str header, uint64_t *versions, size_t max, size_t *count)
{
    struct str tag;
    bool weak;
    if (is_star(header))
        return false;
    while (tag_next(&header, &tag, &weak)) {
        uint64_t version;
        if (!weak && *count < max && tag_version(tag, &version))
            versions[(*count)++] = version;
    }
    return true;
}
