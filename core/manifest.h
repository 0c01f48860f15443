/*
 * What a master passes on to the one that succeeds it (upgrade.h): a text of a line for each thing, in memory, with the numbers of
 * descriptors that are open in both. The master's alone.
 */
#ifndef ASSAY_MANIFEST_H
#define ASSAY_MANIFEST_H

#include "seats.h"

/* manifest_write(m): a descriptor to read it from; -1 with errno. */
int manifest_write(const struct master *m);

/*
 * manifest_read(m, fd): into m->elder, m->data_lock, m->run_lock and m->writer_fd; takes over ${fd}. 0, or -1 with the reason logged: what
 * it names is not there, or these two versions or configurations cannot follow each other.
 */
int manifest_read(struct master *m, int fd);

/* manifest_fd(fd): it is open, and stays in this program. manifest_refuse(why): log it; -1. */
bool manifest_fd(int fd);
int manifest_refuse(const char *why);

#endif
