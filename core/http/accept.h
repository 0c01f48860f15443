/* Accept, Accept-Encoding and Accept-Language (RFC 9110 §12.5). Pure functions. */
#ifndef ASSAY_HTTP_ACCEPT_H
#define ASSAY_HTTP_ACCEPT_H

#include "store/bytes.h"

/*
 * accept_quality(header, want, any): the quality in thousandths of ${want} ("gzip") in ${header}:
 * its own, else that of ${any} ("*"), else 0. Ignores case and all parameters but q.
 */
int accept_quality(struct str header, struct str want, struct str any);

/*
 * accept_language(header, code): the quality in thousandths of the language ${code} ("de"): its
 * own, else that of "*", or that of a variant ("de-AT") if it is higher.
 */
int accept_language(struct str header, struct str code);

/* accept_json(header): an Accept header accepts application/json; an empty one does. */
bool accept_json(struct str header);

/*
 * accept_prefers_html(header): an Accept header names text/html, with a higher quality than
 * application/json has. Browsers send such headers; a program's star-slash-star is none.
 */
bool accept_prefers_html(struct str header);

#endif
