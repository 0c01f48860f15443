/* For tests that send exact bytes: parts of request heads, and short timeouts. */
#ifndef ASSAY_T_RAW_KIT_H
#define ASSAY_T_RAW_KIT_H

#include "t/kit/harness.h"

#define SHORT_TIMEOUTS                                                                             \
    "timeouts: { header: 1s, body: 1500ms, send: 2s, idle: 2500ms }\nreports: { wait: 6s }"

#define LINE "GET /healthz HTTP/1.1\r\n"
#define HOST "Host: x\r\n"
#define GET_REPORTS "GET /api/v1/reports HTTP/1.1\r\n" HOST
#define POST_REPORTS                                                                               \
    "POST /api/v1/reports HTTP/1.1\r\n" HOST "Content-Type: application/x-www-form-urlencoded\r\n"

/* A request that must not be answered when it is in the body of another one. */
#define SMUGGLED "GET /api/v1/openapi.json HTTP/1.1\r\nHost: x\r\n\r\n"

#endif
