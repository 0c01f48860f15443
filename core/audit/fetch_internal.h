/*
 * One HTTP request with libcurl, under the guard. The guard decides on the socket's address, the
 * size limit counts decoded bytes, and a redirect is reported, not followed. The engine
 * (job_internal.h) runs many at once.
 */
#ifndef ASSAY_FETCH_INTERNAL_H
#define ASSAY_FETCH_INTERNAL_H

#include "core/audit/facts_internal.h"
#include "core/audit/guard_internal.h"
#include "core/audit/url.h"

#include <curl/curl.h>

/* How a request ended. */
enum fetch_error {
    FETCH_OK,
    FETCH_DNS,
    FETCH_CONNECT,
    FETCH_REFUSED, /* a FETCH_CONNECT: nothing listens on the port */
    FETCH_BROKEN,  /* a FETCH_CONNECT: connected, but the response is not valid HTTP */
    FETCH_CUT,     /* the response began and was cut off */
    FETCH_CODING,  /* Content-Encoding unknown, or not that of the body */
    FETCH_TLS,
    FETCH_UNVERIFIED, /* the certificate does not verify; see fetch_reason */
    FETCH_TIMEOUT,
    FETCH_TOO_LARGE,
    FETCH_FORBIDDEN, /* the guard refused every address */
    FETCH_NOT_HTML,
    FETCH_MEMORY,
};

/* How much of the body to read. */
enum fetch_body {
    /*
     * All of it, if the response is HTML, no redirect and no error; more than max_body bytes,
     * received or decoded, is FETCH_TOO_LARGE.
     */
    FETCH_BODY_HTML,
    FETCH_BODY_HEAD, /* the first max_body bytes */
    FETCH_BODY_NONE,
};

struct fetch;
typedef void fetch_head_fn(void *arg);

struct fetch_request {
    const struct url *url;
    enum fetch_body body;
    uint64_t max_body;
    unsigned timeout_ms;
    bool verify; /* verify the certificate */
    /*
     * May be NULL. Called when the head of an HTML page that will be graded is complete; must not
     * call libcurl.
     */
    fetch_head_fn *head;
    void *head_arg;
    void *owner; /* returned by fetch_owner when libcurl reports the end */
};

/*
 * fetch_new(conf, guard): a request, not started; both arguments are borrowed. It keeps cookies
 * between starts. Each start opens a new connection and closes it at the end. NULL when memory is
 * short.
 */
struct fetch *fetch_new(const struct conf *conf, struct guard *guard);
void fetch_free(struct fetch *fetch); /* after it left the multi handle */

/*
 * fetch_start(fetch, multi, request): start; libcurl copies URL and strings. False when libcurl
 * refuses. A fetch that has ended can be started again.
 */
bool fetch_start(struct fetch *fetch, CURLM *multi, const struct fetch_request *request);

/*
 * fetch_end(fetch, multi, code): libcurl reported the end with ${code}: remove it from ${multi} and
 * return how it went.
 * fetch_cancel(fetch, multi): remove it unfinished; no effect when it is not running.
 */
enum fetch_error fetch_end(struct fetch *fetch, CURLM *multi, CURLcode code);
void fetch_cancel(struct fetch *fetch, CURLM *multi);

/* fetch_is_resolving(fetch): it is running and still resolving its host name. */
bool fetch_is_resolving(const struct fetch *fetch);

void *fetch_owner(CURL *easy);

/* The response. Borrowed until the fetch starts again or is freed. */
long fetch_status(const struct fetch *fetch);
struct str fetch_body(const struct fetch *fetch);
/*
 * fetch_location(fetch): target of a redirect (301, 302, 303, 307, 308) as written; empty if it is
 * none.
 */
struct str fetch_location(const struct fetch *fetch);
/*
 * fetch_retry_after(fetch): seconds that a 429 or 503 asks to wait; -1: another status, or none
 * given.
 */
int64_t fetch_retry_after(const struct fetch *fetch);
/*
 * fetch_describe(fetch, arena, out): fill headers, certificate, version, timings and sizes of
 * ${out}.
 */
void fetch_describe(const struct fetch *fetch, struct arena *arena, struct fact_response *out);
/* fetch_reason(fetch): why the certificate did not verify, as part of a sentence; "" if it did. */
const char *fetch_reason(const struct fetch *fetch);

#endif
