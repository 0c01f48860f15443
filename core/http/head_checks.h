/*
 * Head checks: what libh2o 2.2.5 accepts and a server must not, since two readers of such a head
 * may see two requests in it (RFC 9112 §5, §6.3, §11.2). Pure.
 */
#ifndef ASSAY_HTTP_HEAD_CHECKS_H
#define ASSAY_HTTP_HEAD_CHECKS_H

#include "store/bytes.h"

#define HEAD_MAX_BYTES (32u << 10)

/*
 * head_fault(raw, http11, chunked): ${raw} begins at a request line and holds its whole head, which
 * the library has parsed. What is wrong with it, a sentence; NULL when nothing is. Any fault means
 * 400 and the end of the connection. *chunked: it has a Transfer-Encoding.
 */
const char *head_fault(struct str raw, bool http11, bool *chunked);

#endif
