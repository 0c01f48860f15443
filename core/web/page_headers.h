/* The headers of every page for people. */
#ifndef ASSAY_WEB_PAGE_HEADERS_H
#define ASSAY_WEB_PAGE_HEADERS_H

struct request;

/*
 * page_headers(r): add Content-Security-Policy, Referrer-Policy and Cross-Origin-Opener-Policy to
 * the response. A page loads styles and scripts of this server alone, and is in no frame.
 */
void page_headers(struct request *r);

#endif
