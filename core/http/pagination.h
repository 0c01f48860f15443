/*
 * The pagination envelope of a list, as Laravel's clients know it: `links` and `meta` in the body,
 * and a Link header (RFC 8288). api.md §3. Pure functions.
 */
#ifndef ASSAY_HTTP_PAGINATION_H
#define ASSAY_HTTP_PAGINATION_H

#include "store/bytes.h"

/*
 * Pages are numbered from 1; a list asked for a higher page than this is a mistake of the caller.
 */
#define PAGINATION_PAGE_MAX 2147483647

/*
 * A longer Link header is left out: proxies refuse an answer whose head does not fit their buffer,
 * and the body has the links anyway.
 */
#define PAGINATION_LINK_MAX 4096

struct pagination {
    struct str base_url; /* without a trailing slash */
    struct str path;     /* "/api/v1/reports" */
    /* raw, as it came, known to decode well; kept in the links but for the page */
    struct str query;
    uint64_t page; /* from 1 */
    unsigned per_page;
    uint64_t total;     /* of all pages */
    size_t count;       /* items on this page */
    struct str ignored; /* JSON array of the query's unknown names; empty: there are none */
};

/*
 * pagination_render(p, envelope, link):
 * Append `"links":{…},"meta":{…}` to ${envelope} and the Link header's value to ${link} (left empty
 * where it would be too long). The last page is at least 1, so an empty list has one page; the page
 * before one that is past the end is the last.
 */
void pagination_render(const struct pagination *p, struct buf *envelope, struct buf *link);

#endif
