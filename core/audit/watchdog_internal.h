/*
 * Watchdog for transfers. libcurl reads a connection until no data is left, so a server that sends
 * meaningless HTTP/2 frames faster than they are read keeps it busy forever. After a second or two
 * of CPU time the watchdog cuts such a connection. Process-wide state, one thread.
 */
#ifndef ASSAY_WATCHDOG_INTERNAL_H
#define ASSAY_WATCHDOG_INTERNAL_H

#include <stdbool.h>

/* watchdog_start(): start; false when the system refuses. watchdog_stop(): stop. */
bool watchdog_start(void);
void watchdog_stop(void);

/*
 * watchdog_enter(), watchdog_leave(): around each call of libcurl that reads. watchdog_progress():
 * that call made progress.
 */
void watchdog_enter(void);
void watchdog_leave(void);
void watchdog_progress(void);

/*
 * watchdog_add(socket, cut): watch ${socket} of a transfer; ${*cut} is set when it is cut.
 * watchdog_remove(cut): stop watching that transfer's sockets.
 */
void watchdog_add(int socket, volatile bool *cut);
void watchdog_remove(const volatile bool *cut);

#endif
