/*
 * The access log: a line for each request, in JSON or the combined format, buffered for a second or
 * 64 KiB. Status 0: the client left before the response. A line has no credential or password: path
 * and query are masked (redact.h), and the only header is User-Agent.
 *
 * Times in JSON, in microseconds: receive_us, from the first byte to the last of the request (in
 * whole milliseconds); answer_us, until the response began; wait_us, the part of it that waited for
 * the writer, a thread, a report or a queue; took_us, until the response was sent.
 */
#ifndef ASSAY_HTTP_ACCESS_LOG_H
#define ASSAY_HTTP_ACCESS_LOG_H

#include "core/http/request.h"

struct access_log *access_log_open(const struct conf *conf);
void access_log_close(struct access_log *log);
void access_log_reopen(struct access_log *log);
/*
 * access_log_add(log, r, took_us): when the request has ended.
 * access_log_flush(log, all): write the buffer if it is a second old, or ${all}.
 */
void access_log_add(struct access_log *log, const struct request *r, uint64_t took_us);
void access_log_flush(struct access_log *log, bool all);

#endif
