/*
 * The Prefer header (RFC 7240): `wait=N`, `respond-async` and `handling=strict`. Pure functions;
 * conditions.c applies them.
 */
#ifndef ASSAY_HTTP_PREFER_H
#define ASSAY_HTTP_PREFER_H

#include "store/bytes.h"

#define PREFER_WAIT_MAX 30 /* seconds */
#define PREFER_APPLIED_SIZE 24

struct prefer {
    bool wait, async;           /* sent and valid */
    unsigned wait_s;            /* if ${wait} */
    bool strict, handling_seen; /* the first handling counts */
    bool wait_seen;             /* the first wait counts, valid or not */
};

/*
 * prefer_parse(header, p): read one header line; several lines form one list. A malformed wait, one
 * over PREFER_WAIT_MAX and a repeated preference are ignored.
 */
void prefer_parse(struct str header, struct prefer *p);

/*
 * prefer_applied(p, out): the value of Preference-Applied, in ${out}; p NULL: none. respond-async
 * excludes wait. fields_request.c adds `handling=strict`.
 */
struct str prefer_applied(const struct prefer *p, char out[PREFER_APPLIED_SIZE]);

#endif
