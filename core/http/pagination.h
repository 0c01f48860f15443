/*
 * Pagination of a list in Laravel's format: `links` and `meta` in the body, and a Link header (RFC
 * 8288). Pure functions.
 */
#ifndef ASSAY_HTTP_PAGINATION_H
#define ASSAY_HTTP_PAGINATION_H

#include "store/bytes.h"

/* The largest page number that a caller may send. */
#define PAGINATION_PAGE_MAX 2147483647

/*
 * A longer Link header is left out: it may not fit into a proxy's buffer, and the body has links.
 */
#define PAGINATION_LINK_MAX 4096

struct pagination {
    struct str base_url; /* without a trailing slash */
    struct str path;     /* "/api/v1/reports" */
    struct str query;    /* raw, well-formed; the links keep all of it except the page */
    uint64_t page;       /* from 1 */
    unsigned per_page;
    uint64_t total;     /* of all pages */
    size_t count;       /* items on this page */
    struct str ignored; /* JSON array of unknown names in the query; empty: none */
};

/*
 * pagination_render(p, envelope, link): append `"links":{…},"meta":{…}` to ${envelope} and the
 * value of the Link header to ${link} (empty if too long). An empty list has one page. The previous
 * page of one past the end is the last page.
 */
void pagination_render(const struct pagination *p, struct buf *envelope, struct buf *link);

#endif
