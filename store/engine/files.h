/* Writes to files that survive a crash. No state; any thread. */
#ifndef ASSAY_STORE_ENGINE_FILES_H
#define ASSAY_STORE_ENGINE_FILES_H

#include <stdbool.h>
#include <stddef.h>

/* store_sync_dir(dir): fsync a directory, so that a new name in it survives a crash; 0, or -1. */
int store_sync_dir(const char *dir);

/* store_write_all(fd, p, n): write all ${n} bytes, in several writes if necessary; false: errno. */
bool store_write_all(int fd, const void *p, size_t n);

#endif
