/*
 * The error log: a line for each event on standard error, as JSON or text (log.format), with time,
 * level, process and message. Log an event once, where it is handled. Never log a secret, password
 * or token. Each call site may log 100 lines in 10 s; further ones are counted. Any process.
 */
#ifndef ASSAY_BASE_LOG_H
#define ASSAY_BASE_LOG_H

enum log_level { LOG_LEVEL_ERROR, LOG_LEVEL_WARN, LOG_LEVEL_INFO, LOG_LEVEL_DEBUG };
enum log_format { LOG_FORMAT_JSON, LOG_FORMAT_COMBINED };

/* log_open(process, level, format): after each fork. */
void log_open(const char *process, enum log_level level, enum log_format format);

/*
 * log_write(level, format, …): a sentence without a full stop: what happened, where, and what to
 * do. It does not add errno: pass strerror.
 */
void log_write(enum log_level level, const char *format, ...) __attribute__((format(printf, 2, 3)));

#define log_error(...) log_write(LOG_LEVEL_ERROR, __VA_ARGS__)
#define log_warn(...) log_write(LOG_LEVEL_WARN, __VA_ARGS__)
#define log_info(...) log_write(LOG_LEVEL_INFO, __VA_ARGS__)
#define log_debug(...) log_write(LOG_LEVEL_DEBUG, __VA_ARGS__)

#endif
