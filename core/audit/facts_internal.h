/*
 * Everything known about a page when the checks run: the response, its HTML and the responses to
 * the probes. Filled by the engine or a test, read by the checks; independent of libcurl.
 */
#ifndef ASSAY_FACTS_INTERNAL_H
#define ASSAY_FACTS_INTERNAL_H

#include "core/audit/charset_internal.h"
#include "core/audit/page_internal.h"

struct fact_header {
    struct str name, value;
};

#define FACT_HEADERS_MAX 256
#define FACT_HOPS_MAX 32

struct fact_certificate {
    bool verified;
    struct str reason; /* why verification failed */
    struct str issuer, not_before, not_after;
};

/* The page's own response. Its strings live in the facts' arena. */
struct fact_response {
    long status;
    struct str url;    /* final, normalised */
    struct str origin; /* scheme://host[:port] */
    struct str host;
    struct str target; /* path and query */
    bool https;
    struct str hops[FACT_HOPS_MAX]; /* URLs that redirected, in order */
    size_t hop_count;
    struct fact_header headers[FACT_HEADERS_MAX];
    size_t header_count;
    struct fact_certificate certificate;
    unsigned http_version; /* 10, 11, 20, 30 */
    unsigned load_ms, ttfb_ms;
    uint64_t wire_bytes, decoded_bytes; /* of the body */
    uint64_t gzip_bytes;                /* size of the decoded body after gzip; 0: not computed */
};

enum probe_state {
    PROBE_NONE,   /* not asked for */
    PROBE_CLOSED, /* the connection was refused */
    PROBE_FAILED, /* no response for another reason */
    PROBE_DONE,
};

struct fact_probe {
    enum probe_state state;
    long status;
    struct str url;       /* requested */
    struct str final_url; /* after redirects */
    struct str body;      /* robots.txt only, at most ROBOTS_MAX_BYTES */
};

struct facts {
    struct arena arena;
    struct fact_response response;
    struct charset charset;
    struct page page;
    /* base for relative links: the first base href, else the final URL; zero-terminated */
    struct str base_url;
    struct fact_probe robots, missing, favicon, http_form;
    int64_t now_ms;  /* wall clock, epoch */
    size_t resolved; /* cost spent by facts_resolve */
};

void facts_init(struct facts *facts);
void facts_free(struct facts *facts);

/*
 * facts_read(facts, body, deadline_ms): fill charset, page, base_url and gzip_bytes from the
 * decoded ${body}. The response with its headers must be set.
 */
enum page_status facts_read(struct facts *facts, struct str body, unsigned deadline_ms);

/*
 * facts_header(facts, name, from): value of the next ${name} header at ${*from} or later; p is NULL
 * at the end.
 * facts_header_first(facts, name): value of the first one; empty if there is none.
 */
struct str facts_header(const struct facts *facts, const char *name, size_t *from);
struct str facts_header_first(const struct facts *facts, const char *name);

/*
 * facts_title_element(facts): the first title outside SVG, or NULL. facts_title(facts): its text,
 * or empty.
 */
const struct page_element *facts_title_element(const struct facts *facts);
struct str facts_title(const struct facts *facts);

/* facts_protocol(facts): the version of HTTP that the response used, such as "HTTP/2". */
struct str facts_protocol(const struct facts *facts);

/* facts_wants_favicon(facts): the page has no icon link. */
bool facts_wants_favicon(const struct facts *facts);

/*
 * facts_may_resolve(facts, spent): add the cost of resolving one more URL to ${spent}; a long base
 * URL costs more. False when the page's budget is used up: 10,000 URLs with a base of usual length.
 */
bool facts_may_resolve(const struct facts *facts, size_t *spent);

/*
 * facts_resolve(facts, url): ${url} as an absolute URL, in the arena; empty when it is invalid or
 * the budget is used up.
 */
struct str facts_resolve(struct facts *facts, struct str url);

#endif
