/*
 * The error log: one line an event on standard error, as JSON or text (log.format), each with time, level, process and message. Log once,
 * where a thing is handled. No secret, password or token
 * ever goes in. Each place that logs may write 100 lines in 10 s, of each process; how many were left out is said with its next. Any process; log_open after the fork sets the process' name.
 */
#ifndef ASSAY_BASE_LOG_H
#define ASSAY_BASE_LOG_H

enum log_level { LOG_LEVEL_ERROR, LOG_LEVEL_WARN, LOG_LEVEL_INFO, LOG_LEVEL_DEBUG };
enum log_format { LOG_FORMAT_JSON, LOG_FORMAT_COMBINED };

void log_open(const char *process, enum log_level level, enum log_format format);

/*
 * log_write(level, format, …): what happened, where, and what to do, in one sentence without a full stop. Uses errno nowhere: pass strerror
 * yourself.
 */
void log_write(enum log_level level, const char *format, ...) __attribute__((format(printf, 2, 3)));

#define log_error(...) log_write(LOG_LEVEL_ERROR, __VA_ARGS__)
#define log_warn(...) log_write(LOG_LEVEL_WARN, __VA_ARGS__)
#define log_info(...) log_write(LOG_LEVEL_INFO, __VA_ARGS__)
#define log_debug(...) log_write(LOG_LEVEL_DEBUG, __VA_ARGS__)

#endif
