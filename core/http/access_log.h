/*
 * The access log: a line per answered request, in JSON or the combined format, buffered and written when the loop has nothing else to do.
 * Worker processes only. No credential, password or query value of a secret is ever in it: the line has the path and query as they came,
 * and no header but the user agent's.
 */
#ifndef ASSAY_HTTP_ACCESS_LOG_H
#define ASSAY_HTTP_ACCESS_LOG_H

#include "request.h"

struct access_log *access_log_open(const struct conf *conf);
void access_log_close(struct access_log *log);
void access_log_reopen(struct access_log *log);
/*
 * access_log_add(log, r, took_us): when the request is over. access_log_flush(log, all): write what is buffered if it is much or ${all}, or a second
 * old.
 */
void access_log_add(struct access_log *log, const struct request *r, uint64_t took_us);
void access_log_flush(struct access_log *log, bool all);

#endif
