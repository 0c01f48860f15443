/*
 * Finds the process that holds a resource: a listening address, a Unix socket or a file lock, by
 * /proc. Only root can see the descriptors of other users. Slow; for error messages.
 */
#ifndef ASSAY_BASE_HOLDER_H
#define ASSAY_BASE_HOLDER_H

#include <sys/socket.h>
#include <sys/types.h>

/*
 * Each returns a process, or 0: unknown.
 * holder_of_address(sa): listens on this port, at this address or at all.
 * holder_of_unix(fd): listens on the socket that ${fd} is connected to.
 * holder_of_lock(path): has locked the file (flock).
 */
pid_t holder_of_address(const struct sockaddr *sa);
pid_t holder_of_unix(int fd);
pid_t holder_of_lock(const char *path);

/* holder_text(pid, out): "pid 4711 (nginx)", or "another process" if it is unknown or gone. */
#define HOLDER_TEXT 64
void holder_text(pid_t pid, char out[HOLDER_TEXT]);

#endif
