/*
 * The Prefer header (RFC 7240), as far as it is honoured here: `wait=N`, `respond-async` and
 * `handling=strict`. Pure functions; conditions.c applies them to a request.
 */
#ifndef ASSAY_HTTP_PREFER_H
#define ASSAY_HTTP_PREFER_H

#include "store/bytes.h"

#define PREFER_WAIT_MAX 30 /* seconds */
#define PREFER_APPLIED_SIZE 24

struct prefer {
    bool wait, async;           /* honoured */
    unsigned wait_s;            /* valid where ${wait} */
    bool strict, handling_seen; /* the first handling counts */
    bool wait_seen;             /* the first wait counts, be it well-formed or not */
};

/*
 * prefer_parse(header, p): take in one header line; several are one list. A wait that is malformed
 * or over PREFER_WAIT_MAX is as if it were not there; the same preference a second time is ignored.
 */
void prefer_parse(struct str header, struct prefer *p);

/*
 * prefer_applied(p, out): what to say in Preference-Applied, in ${out}; p NULL where nothing is
 * honoured. respond-async leaves nothing to wait for, so it stands alone. `handling` is not part of
 * it: it is judged where fields are parsed.
 */
struct str prefer_applied(const struct prefer *p, char out[PREFER_APPLIED_SIZE]);

#endif
