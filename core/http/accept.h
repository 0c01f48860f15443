/*
 * Accept and Accept-Encoding (RFC 9110 §12.5), as far as a server of one format needs them. Pure.
 */
#ifndef ASSAY_HTTP_ACCEPT_H
#define ASSAY_HTTP_ACCEPT_H

#include "store/bytes.h"

/*
 * accept_quality(header, want, any): the quality, in thousandths, that ${header} gives to ${want}
 * ("gzip"): its own, else that of ${any} ("*"), else 0. Names are compared without case, parameters
 * but q are ignored.
 */
int accept_quality(struct str header, struct str want, struct str any);

/*
 * accept_json(header): whether an Accept header leaves room for application/json; one that is empty
 * does.
 */
bool accept_json(struct str header);

#endif
