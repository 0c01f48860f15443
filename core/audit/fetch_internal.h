/*
 * One request over libcurl, under the guard: its socket goes where the guard lets it, its bytes are counted after decompression, its
 * redirect is reported and not followed. The engine (job.h) runs many.
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
    FETCH_REFUSED, /* nobody listens: a kind of FETCH_CONNECT */
    FETCH_BROKEN,  /* connected, but the answer is not one: a kind of FETCH_CONNECT */
    FETCH_CUT,     /* the answer began and broke off */
    FETCH_CODING,  /* its Content-Encoding is unknown, or not what the body is */
    FETCH_TLS,
    FETCH_UNVERIFIED, /* the certificate does not verify; why in certificate.reason */
    FETCH_TIMEOUT,
    FETCH_TOO_LARGE,
    FETCH_FORBIDDEN, /* every address was refused by the guard */
    FETCH_NOT_HTML,
    FETCH_MEMORY,
};

/* What is wanted of the body. */
enum fetch_body {
    FETCH_BODY_HTML, /* all of it, of a page that is HTML and neither redirects nor fails; more than max_body, as sent or decoded, is FETCH_TOO_LARGE */
    FETCH_BODY_HEAD, /* its first max_body bytes */
    FETCH_BODY_NONE,
};

struct fetch;
typedef void fetch_head_fn(void *arg);

struct fetch_request {
    const struct url *url;
    enum fetch_body body;
    uint64_t max_body;
    unsigned timeout_ms;
    bool verify;        /* the certificate */
    fetch_head_fn *head; /* NULL, or called when the head of an HTML page that will be graded has come; no libcurl call may be made in it */
    void *head_arg;
    void *owner;        /* fetch_owner tells it when libcurl reports an end */
};

/*
 * fetch_new(conf, guard): a request to be, both borrowed; cookies live as long as it does. Each start opens a connection of its own, which
 * is closed when it ends. NULL when memory is short.
 */
struct fetch *fetch_new(const struct conf *conf, struct guard *guard);
void fetch_free(struct fetch *fetch); /* after it left the multi handle */

/*
 * fetch_start(fetch, multi, request): begin; url and strings are copied by libcurl. False when libcurl would not. A fetch can be started
 * again when it has ended.
 */
bool fetch_start(struct fetch *fetch, CURLM *multi, const struct fetch_request *request);

/*
 * fetch_end(fetch, multi, code): it ended with libcurl's ${code}: take it from ${multi} and say how it went. fetch_cancel: take it away
 * unfinished; harmless when it is not running.
 */
enum fetch_error fetch_end(struct fetch *fetch, CURLM *multi, CURLcode code);
void fetch_cancel(struct fetch *fetch, CURLM *multi);

/* fetch_is_looking_up(fetch): it runs, and does not know its host's address yet. */
bool fetch_is_looking_up(const struct fetch *fetch);

void *fetch_owner(CURL *easy);

/* What came. Borrowed until the fetch starts again or is freed. */
long fetch_status(const struct fetch *fetch);
struct str fetch_body(const struct fetch *fetch);
/* fetch_location(fetch): where a redirect (301, 302, 303, 307, 308) leads, as written; empty when it is none. */
struct str fetch_location(const struct fetch *fetch);
/* fetch_retry_after(fetch): the seconds a 429 or 503 asks to wait; -1 when it is neither or does not say. */
int64_t fetch_retry_after(const struct fetch *fetch);
/* fetch_describe(fetch, arena, out): fill headers, certificate, version, timings and sizes of ${out}. */
void fetch_describe(const struct fetch *fetch, struct arena *arena, struct fact_response *out);
/* fetch_reason(fetch): the sentence part that says why the certificate did not verify; "" when it did. */
const char *fetch_reason(const struct fetch *fetch);

#endif
