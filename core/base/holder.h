/*
 * Who has what we cannot have: an address that is listened on, a Unix socket, a locked file. As far
 * as /proc tells: the descriptors of another user's process are root's to see. For messages; slow.
 */
#ifndef ASSAY_BASE_HOLDER_H
#define ASSAY_BASE_HOLDER_H

#include <sys/socket.h>
#include <sys/types.h>

/*
 * Each returns a process, or 0 where it cannot be told. holder_of_address(sa): who listens on this
 * port of this address, or of all addresses. holder_of_unix(fd): who listens on what ${fd} is
 * connected to. holder_of_lock(path): who has the file locked as a whole (flock).
 */
pid_t holder_of_address(const struct sockaddr *sa);
pid_t holder_of_unix(int fd);
pid_t holder_of_lock(const char *path);

/* holder_text(pid, out): "pid 4711 (nginx)"; where it is not
 * there or 0, "another process". */
#define HOLDER_TEXT 64
void holder_text(pid_t pid, char out[HOLDER_TEXT]);

#endif
