/* The state of a fetch, shared by fetch.c (the request) and fetch_response.c (the response). */
#ifndef ASSAY_FETCH_STATE_INTERNAL_H
#define ASSAY_FETCH_STATE_INTERNAL_H

#include "core/audit/fetch_internal.h"

#define FETCH_SOCKETS_KEPT 4

struct fetch {
    CURL *easy;
    struct curl_slist *request_headers;
    const struct conf *conf;
    struct guard *guard;
    struct fetch_request request;
    bool private_host, running;
    /* the response */
    struct buf head;   /* header lines of the last response */
    size_t head_bytes; /* of all responses, interim ones and trailers included */
    struct buf body;
    uint64_t decoded_bytes;
    long status;
    bool head_done, body_begun;
    bool done_early;                /* ended by us because the rest is not needed */
    unsigned sockets;               /* number of sockets that the guard allowed */
    int socket;                     /* the last of them, while it connects */
    int opened[FETCH_SOCKETS_KEPT]; /* the last ones; libcurl closes them */
    bool connected;                 /* TCP is connected; TLS may not be */
    bool refused_by_guard, too_large, not_html;
    volatile bool cut;      /* the watchdog cut the connection */
    int64_t received_at_ms; /* time of the last look at received_bytes */
    char reason[160];
    bool verified;
};

/* fetch_header(f, name): value of the first header ${name} of the last response. */
struct str fetch_header(const struct fetch *f, const char *name);

#endif
