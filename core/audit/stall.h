/*
 * A transfer that libcurl does not come back from: it reads a connection until nothing is there, and a server that sends HTTP/2 frames which
 * mean nothing, faster than they are read, keeps it there for ever. After a second or two of the processor's time such a connection is cut.
 * One engine's, of a single-threaded process.
 */
#ifndef ASSAY_STALL_H
#define ASSAY_STALL_H

#include <stdbool.h>

/* stall_start(): begin to watch; false: the system does not let us. stall_stop(): end it. */
bool stall_start(void);
void stall_stop(void);

/* stall_enter(), stall_leave(): around each call of libcurl that reads. stall_step(): it goes on, and tells us so. */
void stall_enter(void);
void stall_leave(void);
void stall_step(void);

/*
 * stall_add(socket, cut): ${socket} is a transfer's, whose ${*cut} is set when it is cut. stall_remove(cut): forget that transfer's sockets.
 */
void stall_add(int socket, volatile bool *cut);
void stall_remove(const volatile bool *cut);

#endif
