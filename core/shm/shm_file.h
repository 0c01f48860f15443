/* A file of run_dir that several processes map: made by the master before it forks. */
#ifndef ASSAY_SHM_SHM_FILE_H
#define ASSAY_SHM_SHM_FILE_H

#include <stddef.h>
#include <sys/types.h>

/*
 * shm_file_create(path, size, mode): a new file of zeros in place of the one at ${path}, mapped for
 * writing; who maps the old one keeps it. All of its space is allocated: a page that a full file
 * system cannot provide later would kill the process that writes to it. NULL with errno.
 */
void *shm_file_create(const char *path, size_t size, mode_t mode);

/* shm_file_open(path, size): map it read-only; NULL with errno, EPROTO where it is smaller. */
void *shm_file_open(const char *path, size_t size);

/* shm_file_close(p, size): unmap it; NULL does nothing. */
void shm_file_close(const void *p, size_t size);

#endif
