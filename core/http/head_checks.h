/*
 * Checks of a request head against request smuggling: malformed heads that libh2o 2.2.5 accepts,
 * and in which another server may see other requests (RFC 9112 §5, §6.3, §11.2). Pure functions.
 */
#ifndef ASSAY_HTTP_HEAD_CHECKS_H
#define ASSAY_HTTP_HEAD_CHECKS_H

#include "store/bytes.h"

#define HEAD_MAX_BYTES (32u << 10)

/*
 * head_fault(raw, http11, chunked): ${raw} begins with the head, which libh2o has parsed. A
 * sentence about what is wrong, for a 400 that ends the connection; NULL: nothing. *chunked: it has
 * a Transfer-Encoding.
 */
const char *head_fault(struct str raw, bool http11, bool *chunked);

#endif
