/*
 * A transfer that libcurl does not come back from: it reads a connection until nothing is there, and a server that sends HTTP/2 frames which
 * mean nothing, faster than they are read, keeps it there for ever. After a second or two of the processor's time such a connection is cut.
 * One engine's, of a single-threaded process.
 */
#ifndef ASSAY_WATCHDOG_INTERNAL_H
#define ASSAY_WATCHDOG_INTERNAL_H

#include <stdbool.h>

/* watchdog_start(): begin to watch; false: the system does not let us. watchdog_stop(): end it. */
bool watchdog_start(void);
void watchdog_stop(void);

/* watchdog_enter(), watchdog_leave(): around each call of libcurl that reads. watchdog_step(): it goes on, and tells us so. */
void watchdog_enter(void);
void watchdog_leave(void);
void watchdog_step(void);

/*
 * watchdog_add(socket, cut): ${socket} is a transfer's, whose ${*cut} is set when it is cut. watchdog_remove(cut): forget that transfer's sockets.
 */
void watchdog_add(int socket, volatile bool *cut);
void watchdog_remove(const volatile bool *cut);

#endif
