/* Accept and Accept-Encoding (RFC 9110 §12.5) for a server with one format. Pure functions. */
#ifndef ASSAY_HTTP_ACCEPT_H
#define ASSAY_HTTP_ACCEPT_H

#include "store/bytes.h"

/*
 * accept_quality(header, want, any): the quality in thousandths of ${want} ("gzip") in ${header}:
 * its own, else that of ${any} ("*"), else 0. Ignores case and all parameters but q.
 */
int accept_quality(struct str header, struct str want, struct str any);

/* accept_json(header): an Accept header accepts application/json; an empty one does. */
bool accept_json(struct str header);

#endif
