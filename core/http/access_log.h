/*
 * The access log: a line per request, in JSON or the combined format, buffered for a second or 64
 * KiB. Worker processes only. What was never answered, since its client went, has status 0. No
 * credential or password is ever in it: a line has the path and query, with what looks like one
 * masked (redact.h), and no header but the user agent's.
 *
 * Times of JSON, microseconds: receive_us, from its first byte until it was there (to the
 * millisecond); then answer_us, until the answer began, of which wait_us for the writer, a
 * password's hash, a grade, or other requests' turns; and took_us, until the answer was sent.
 */
#ifndef ASSAY_HTTP_ACCESS_LOG_H
#define ASSAY_HTTP_ACCESS_LOG_H

#include "core/http/request.h"

struct access_log *access_log_open(const struct conf *conf);
void access_log_close(struct access_log *log);
void access_log_reopen(struct access_log *log);
/*
 * access_log_add(log, r, took_us): when the request is over. access_log_flush(log, all): write what
 * is buffered if it is much or ${all}, or a second old.
 */
void access_log_add(struct access_log *log, const struct request *r, uint64_t took_us);
void access_log_flush(struct access_log *log, bool all);

#endif
