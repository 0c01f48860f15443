/* Writes JSON strings and times to a buffer. Pure functions, any process. */
#ifndef ASSAY_TEXT_JSON_OUT_H
#define ASSAY_TEXT_JSON_OUT_H

#include "store/bytes.h"

/*
 * json_string(b, s): append ${s} as a JSON string. Each byte that is not UTF-8 becomes U+FFFD, so
 * that the document is always well-formed.
 */
void json_string(struct buf *b, struct str s);

/* json_text(b, s): json_string, or null if s.p is NULL. */
void json_text(struct buf *b, struct str s);

/*
 * json_time(b, ms): append milliseconds since the epoch as an RFC 3339 time in UTC and whole
 * seconds, "2026-05-07T13:00:00Z"; null for 0. Clamped to the years 0001 to 9999.
 */
void json_time(struct buf *b, int64_t ms);

#endif
