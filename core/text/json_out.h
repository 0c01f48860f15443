/*
 * JSON going out: strings and times appended to a buffer. Pure functions, any process. (JSON coming
 * in is json-c's business.)
 */
#ifndef ASSAY_TEXT_JSON_OUT_H
#define ASSAY_TEXT_JSON_OUT_H

#include "store/bytes.h"

/*
 * json_string(b, s): append ${s} as a quoted JSON string. What is not UTF-8 becomes U+FFFD, a bad
 * byte each, so that the document is well-formed whatever ${s} holds. A slash stays as it is.
 */
void json_string(struct buf *b, struct str s);

/* json_text(b, s): json_string, or null where s.p is NULL. */
void json_text(struct buf *b, struct str s);

/*
 * json_time(b, ms): append milliseconds since the epoch as a quoted RFC 3339 time in UTC, whole
 * seconds, "2026-05-07T13:00:00Z"; null for 0. Years 0001 to 9999; what is beyond stops at the
 * border.
 */
void json_time(struct buf *b, int64_t ms);

#endif
