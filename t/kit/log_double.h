/*
 * An engine of the log of a cluster in memory, whose faults a test switches: for tests of the log
 * thread. Its functions may be called in any thread.
 */
#ifndef ASSAY_T_KIT_LOG_DOUBLE_H
#define ASSAY_T_KIT_LOG_DOUBLE_H

#include "core/cluster/cluster_log.h"

#define LOG_DOUBLE_ENTRIES 1000

enum log_double_call { CALL_LEAD, CALL_APPEND, CALL_READ, CALL_POSITION, CALL_WAIT, CALL_KINDS };

/*
 * log_double_new(): an empty log that nobody leads; log_thread_free frees only what it hands out.
 * log_double_free(): after it.
 */
void log_double_new(void);
void log_double_free(void);
struct cluster_log *log_double(void);

/*
 * log_double_add(rows): another node appends, in the newest format; log_double_add_in: in another.
 * log_double_take(lease_ms): another node takes the lead, with an epoch of its own; 0: it leaves it
 * at once. log_double_trim(before).
 * log_double_other(free_bytes, seen_ms): what the log notes of another node, which knows the newest
 * format; log_double_other_knows(format): the newest one that it knows.
 * log_double_ahead(ms): its clock is ahead of that of this node.
 */
void log_double_add(const char *rows);
void log_double_add_in(uint32_t format, const char *rows);
void log_double_take(int64_t lease_ms);
void log_double_trim(uint64_t before);
void log_double_other(uint64_t free_bytes, int64_t seen_ms);
void log_double_other_knows(uint32_t format);
void log_double_ahead(int64_t ms);

/*
 * log_double_fail(call, status, times): these calls fail. log_double_append_too(): the appends that
 * fail append nevertheless. log_double_hold(call, holds): calls wait until ${holds} is false.
 * log_double_is_held(call): one of them waits.
 */
void log_double_fail(enum log_double_call call, enum cluster_log_status status, unsigned times);
void log_double_append_too(void);
void log_double_hold(enum log_double_call call, bool holds);
bool log_double_is_held(enum log_double_call call);

/* log_double_taken(taken): another live server has the id of the node "own". */
void log_double_taken(bool taken);

/*
 * log_double_calls(call): how many there were. log_double_node(): what was last noted;
 * log_double_notes(): how often. log_double_stopped(stops): what stop was last called with, and how
 * often it was.
 */
unsigned log_double_calls(enum log_double_call call);
struct cluster_log_node log_double_node(void);
unsigned log_double_notes(void);
struct cluster_log_node log_double_stopped(unsigned *stops);
struct cluster_log_head log_double_head(void);

/* log_double_rows(sequence): of an entry, a new string. log_double_format: its format. */
uint32_t log_double_format(uint64_t sequence);
char *log_double_rows(uint64_t sequence);

#endif
